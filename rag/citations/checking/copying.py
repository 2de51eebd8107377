"""A statement beside a window of its source, term by term: a copy, or one with a thing changed.

A copy is the only way to be supported. Every word that tells something, every figure, name,
negation and condition of the statement stands in one window of the source, in the same order, with
nothing left out but whole clauses that limit nothing. It is narrow on purpose: what is said in
other words is open.
"""

import re
from collections.abc import Iterator, Sequence

from rag.citations.checking.given import tells
from rag.citations.checking.naming import are_siblings, same_name
from rag.citations.checking.reading import Place, Reading, SourceText, Term
from rag.citations.leaning import limits
from rag.text.amounts import Figure, agree
from rag.text.languages import all_words, told
from rag.text.related import alternatives, opposites

_BOUNDARY = re.compile(rf"[,;:–—()\"“”]|\s-\s|\b(?:{told('ands')}|{told('ors')})\b")
_PAIRWISE = all_words("pairwise")
_FEWEST = 3  # terms that follow each other in both, to be one changed


def is_carried(said: Reading, names: Sequence[str], source: SourceText) -> bool:
    """Whether a statement stands in one window of the source."""
    is_read_alike = said.language is source.language and bool(said.terms)
    return is_read_alike and any(
        _holds(said, names, source, at) for at in range(len(source.places))
    )


def _holds(said: Reading, names: Sequence[str], source: SourceText, at: int) -> bool:
    place = source.places[at]
    if place.window.kind in ("code", "row"):
        return False
    if not place.words.union(source.context.content).issuperset(said.words):
        return False  # told by the words alone, without reading more of it
    if place.own.is_supposed != said.is_supposed or not _names_the_same(names, place, source):
        return False
    if _is_limited_around(said, place, source, at):
        return False
    free = frozenset((*place.around.words, *source.context.words))  # they may stand anywhere
    if place.window.kind == "cell":  # but for the names of other rows and columns
        return _is_of_the_cell(said, place, free - source.labels.difference(place.around.words))
    return any(_fits(said, place, free, begin) for begin in range(len(place.own.terms) or 1))


def _is_of_the_cell(said: Reading, place: Place, free: frozenset[str]) -> bool:
    """A label, a header and one value: in any order."""
    there, own = place.own.terms, said.terms
    told = (any(_same(term, each) for each in there) or term.key in free for term in own)
    value = (each for each in there if each.key not in place.around.words)
    return all(told) and all(any(_same(term, each) for term in own) for each in value)


def _fits(said: Reading, place: Place, free: frozenset[str], begin: int) -> bool:
    """Whether the terms of a statement follow each other in a window from here."""
    there = place.own.terms
    end = begin
    for term in said.terms:
        if end < len(there) and _same(term, there[end]):
            end += 1
        elif term.key not in free:
            return False
    left = (*there[:begin], *there[end:])
    is_whole = _may_begin(said, place, begin) and _is_boundary(place, end - 1, end)
    return begin < end and is_whole and not any(each.limits for each in left)


def _may_begin(said: Reading, place: Place, begin: int) -> bool:
    """Nothing is left out before, but a clause, or the name that a pronoun stands for."""
    names = {word for name in place.own.names for word in name.split()}
    if all(each.spelled in names for each in place.own.terms[:begin]) and begin:
        return not said.names
    return _is_boundary(place, begin - 1, begin)


def _is_boundary(place: Place, before: int, behind: int) -> bool:
    """Whether a clause ends between two terms, or the window does."""
    there, text = place.own.terms, place.own.text
    if before < 0 or behind >= len(there):
        return True
    return bool(_BOUNDARY.search(text, there[before].end, there[behind].start))


def _same(said: Term, there: Term) -> bool:
    if isinstance(said.key, str) or isinstance(there.key, str):
        return said.key == there.key
    one, other = said.key, there.key
    is_exact = one.comparator == other.comparator and one.per == other.per
    is_whole = (one.upper is None) == (other.upper is None)
    return is_exact and is_whole and bool(one.unit) >= bool(other.unit) and agree(one, other)


def _is_limited_around(said: Reading, place: Place, source: SourceText, at: int) -> bool:
    """Whether its lead-in or heading denies or limits, or the sentence behind it."""
    own = {term.key for term in said.terms}
    above = (*place.around.terms, *source.context.terms)
    if any(term.limits and term.key not in own for term in above):
        return True
    if any(word in _PAIRWISE for word in place.own.raw) and not said.raw & _PAIRWISE:
        return True
    following = source.places[at + 1] if at + 1 < len(source.places) else None
    is_prose = following is not None and following.window.kind == place.window.kind == "sentence"
    return bool(is_prose and following and limits(following.own.text, cites=False))


def _names_the_same(names: Sequence[str], place: Place, source: SourceText) -> bool:
    """Whether no other thing of the family is meant: its name stands in the window or above it."""
    own = (*place.own.names, *place.around.names)
    if not names:
        return not any(are_siblings(one, other) for one in own for other in source.names)
    there = own if any(are_siblings(n, each) for n in names for each in own) else source.names
    return all(
        any(same_name(name, each) for each in there)
        or not any(are_siblings(name, each) for each in (*own, *source.context.names))
        for name in names
    )


# ── One thing changed ────────────────────────────────────────────────────────────────────────


def altered(said: Reading, sources: Sequence[SourceText]) -> tuple[Place, Figure | None] | None:
    """The window that says the same in the same order, but for one thing that it says otherwise.

    With the figure that it gives, where it is a figure.
    """
    own, denials = _split(said.terms)
    if len(own) < _FEWEST:
        return None
    words = frozenset(said.words)
    found: tuple[Place, Figure | None] | None = None
    for place in (each for source in sources for each in source.places):
        if place.window.kind in ("row", "code") or len(words - place.own.content) > 1:
            continue
        there, theirs = _split(place.own.terms)
        for start, changed in _repeats(own, there):
            inside = {at - start for at in theirs if start <= at < start + len(own)}
            is_denied = inside != denials - {len(own)}
            if not changed and not is_denied:
                return None
            if len(changed) + is_denied == 1:
                keys = (there[start + at].key for at in changed)
                figure = next((key for key in keys if isinstance(key, Figure)), None)
                found = found or (place, figure)
    return found


def _split(terms: Sequence[Term]) -> tuple[list[Term], set[int]]:
    """The terms without denials, and before which of them one stands."""
    kept: list[Term] = []
    denials: set[int] = set()
    for term in terms:
        if term.limits and term.key == "not":
            denials ^= {len(kept)}  # two deny nothing
        else:
            kept.append(term)
    return kept, denials


def _repeats(own: Sequence[Term], there: Sequence[Term]) -> Iterator[tuple[int, list[int]]]:
    """Where all terms stand in a row, and which one of them in another way."""
    for start in range(len(there) - len(own) + 1):
        changed: list[int] = []
        for at, (one, other) in enumerate(zip(own, there[start:], strict=False)):
            if not _tells(one, other):
                changed.append(at)
                if len(changed) > 1 or not _excludes(one, other):
                    break
        else:
            yield start, changed


def _tells(one: Term, other: Term) -> bool:
    if isinstance(one.key, Figure) and isinstance(other.key, Figure):
        return tells(one.key, other.key)
    return one.key == other.key


def _excludes(one: Term, other: Term) -> bool:
    """Whether only one of both can stand there: two figures, opposite words, other days."""
    if isinstance(one.key, Figure) and isinstance(other.key, Figure):
        figures = (one.key, other.key)
        is_bare = any(e.kind == "amount" and not e.unit for e in figures)  # `at 8`: a time
        return is_bare or one.key.kind == other.key.kind
    if isinstance(one.key, Figure) or isinstance(other.key, Figure):
        return False
    against = opposites().get(one.key, frozenset()) | alternatives(one.spelled)
    return other.key in against or other.spelled in against

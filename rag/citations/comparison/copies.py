"""A statement beside the windows of its source, term by term: a copy, or one with a thing changed.

A copy is the only way for prose to be supported. Every word that tells something, every figure,
name, negation and condition stands in the source in the same order: in one window, or in several
sentences of it that the statement joins. What is left out are whole clauses that limit nothing.
"""

import re
from collections.abc import Iterator, Sequence

from rag.citations.comparison.figures import are_siblings, is_about, same_name
from rag.citations.comparison.parser import NOT, Place, Reading, SourceText, Term
from rag.language.amounts import Figure, agree
from rag.language.languages import phrases
from rag.language.synonyms import opposites

_BOUNDARY = re.compile(rf"[,;:–—()\"“”]|\s-\s|\b(?:{phrases('ands')}|{phrases('ors')})\b")
_FEWEST = 3  # terms that follow each other in both, to be one changed, or one of several sentences


def is_carried(reading: Reading, names: Sequence[str], source: SourceText) -> bool:
    """Whether a statement stands in the source, in one window or in sentences that it joins."""
    if reading.language is not source.language or not reading.terms:
        return False
    if not source.words.issuperset(reading.words):
        return False  # told by the words alone, without reading more of it
    return any(_holds(reading, names, source, position) for position in range(len(source.places)))


def _holds(reading: Reading, names: Sequence[str], source: SourceText, position: int) -> bool:
    place = source.places[position]
    if place.window.kind == "cell":
        free = _free(place, source) - source.labels.difference(place.around.words)
        is_of_it = place.words.union(source.context.content).issuperset(reading.words)
        is_meant = is_of_it and _is_apart(reading, names, source, [position])
        return is_meant and _is_of_the_cell(reading, place, free)
    if place.window.kind in ("code", "row"):
        return False
    return any(
        _is_apart(reading, names, source, used)
        for begin in range(len(place.own.terms) or 1)
        if _may_begin(reading, place, begin)
        for used in _covered(reading, 0, source, position, begin)
    )


def _covered(
    reading: Reading, first: int, source: SourceText, position: int, begin: int
) -> Iterator[list[int]]:
    """The windows that hold all terms from `first` on, each after the other, from here."""
    place = source.places[position]
    terms = place.own.terms
    done, end = _followed(reading.terms, first, place, begin, _free(place, source))
    left = (*terms[:begin], *terms[end:])
    if end == begin or not _is_boundary(place.own, end - 1, end) or any(t.limits for t in left):
        return
    lacking = len(reading.terms) - done
    if not lacking:
        yield [position]
    elif min(end - begin, lacking) >= _FEWEST and _is_boundary(reading, done - 1, done):
        for later in range(position + 1, len(source.places)):
            following = source.places[later]
            if following.window.kind == "sentence":
                yield from ([position, *used] for used in _covered(reading, done, source, later, 0))


def _followed(
    terms: Sequence[Term], first: int, place: Place, begin: int, free: frozenset[str]
) -> tuple[int, int]:
    """Up to which term they follow each other, and up to which of the window."""
    there, end = place.own.terms, begin
    for done in range(first, len(terms)):
        if end < len(there) and _same(terms[done], there[end]):
            end += 1
        elif terms[done].key not in free:
            return done, end
    return len(terms), end


def _free(place: Place, source: SourceText) -> frozenset[str]:
    """Words that may stand anywhere: of title, headings, lead-in."""
    return frozenset((*place.around.words, *source.context.words))


def _is_of_the_cell(reading: Reading, place: Place, free: frozenset[str]) -> bool:
    """A label, a header and one value: in any order."""
    terms, stated = place.own.terms, reading.terms
    is_there = (any(_same(term, other) for other in terms) or term.key in free for term in stated)
    value = (term for term in terms if term.key not in place.around.words)
    return all(is_there) and all(any(_same(term, other) for term in stated) for other in value)


def _may_begin(reading: Reading, place: Place, begin: int) -> bool:
    """Nothing is left out before, but a clause, or the name that a pronoun stands for."""
    names = {word for name in place.own.names for word in name.split()}
    if begin and all(term.spelled in names for term in place.own.terms[:begin]):
        return not reading.names
    return _is_boundary(place.own, begin - 1, begin)


def _is_boundary(reading: Reading, before: int, behind: int) -> bool:
    """Whether a clause ends between two terms, or all of it does."""
    terms = reading.terms
    if before < 0 or behind >= len(terms):
        return True
    return bool(_BOUNDARY.search(reading.text, terms[before].end, terms[behind].start))


def _same(term: Term, there: Term) -> bool:
    if isinstance(term.key, str) or isinstance(there.key, str):
        return term.key == there.key
    one, other = term.key, there.key
    is_exact = one.comparator == other.comparator and one.per == other.per
    is_whole = (one.upper is None) == (other.upper is None)
    return is_exact and is_whole and bool(one.unit) >= bool(other.unit) and agree(one, other)


def _is_apart(
    reading: Reading, names: Sequence[str], source: SourceText, used: Sequence[int]
) -> bool:
    """Whether nothing around the windows says of what else, or how far, they hold."""
    places = [source.places[position] for position in used]
    stated = {term.key for term in reading.terms}
    above = (*source.context.terms, *(term for place in places for term in place.around.terms))
    is_limited = any(term.limits and term.key not in stated for term in above)
    beside = [name for place in places for name in (*place.own.names, *place.around.names)]
    return not is_limited and _names_the_same(names, beside, source)


def _names_the_same(names: Sequence[str], beside: Sequence[str], source: SourceText) -> bool:
    """Whether no other thing of the family is meant: its name stands in the window or above it."""
    has_sibling = any(are_siblings(name, other) for name in names for other in beside)
    there = beside if has_sibling else source.names
    return all(
        any(same_name(name, other) for other in there)
        or not any(are_siblings(name, other) for other in (*beside, *source.context.names))
        for name in names
    )


# ── One thing changed ────────────────────────────────────────────────────────────────────────


def altered(reading: Reading, sources: Sequence[SourceText]) -> tuple[Place, Figure | None] | None:
    """The window that says the same in the same order, but for one thing that it says otherwise.

    With the figure that it gives, where it is a figure.
    """
    terms, denials = _split(reading.terms)
    if len(terms) < _FEWEST:
        return None
    words = frozenset(reading.words)
    repeated: tuple[Place, Figure | None] | None = None
    for source in sources:
        for place in source.places:
            if place.window.kind in ("row", "code") or len(words - place.own.content) > 1:
                continue
            there, theirs = _split(place.own.terms)
            elsewhere = source.words - place.own.content
            for start, changed in _repeats(terms, there, elsewhere):
                inside = {their - start for their in theirs if start <= their < start + len(terms)}
                is_denied = inside != denials - {len(terms)}
                if not changed and not is_denied:
                    return None
                if len(changed) + is_denied == 1:
                    keys = (there[start + position].key for position in changed)
                    figure = next((key for key in keys if isinstance(key, Figure)), None)
                    repeated = repeated or (place, figure)
    return repeated


def _split(terms: Sequence[Term]) -> tuple[list[Term], set[int]]:
    """The terms without denials, and before which of them one stands."""
    kept: list[Term] = []
    denials: set[int] = set()
    for term in terms:
        if term.limits and term.key == NOT:
            denials.add(len(kept))
        else:
            kept.append(term)
    return kept, denials


def _repeats(
    terms: Sequence[Term], there: Sequence[Term], elsewhere: frozenset[str]
) -> Iterator[tuple[int, list[int]]]:
    """Where all terms stand in a row, and which one of them in another way."""
    for start in range(len(there) - len(terms) + 1):
        changed: list[int] = []
        for index, (one, other) in enumerate(zip(terms, there[start:], strict=False)):
            if not _tells(one, other):
                changed.append(index)
                if len(changed) > 1 or not _excludes(one, other, elsewhere, len(terms)):
                    break
        else:
            yield start, changed


def _tells(one: Term, other: Term) -> bool:
    if isinstance(one.key, Figure) and isinstance(other.key, Figure):
        return is_about(one.key, other.key)
    return one.key == other.key


def _excludes(one: Term, other: Term, elsewhere: frozenset[str], terms: int) -> bool:
    """Whether only one of both can stand there: two figures, opposite words, two of its words.

    A source that uses both words means two things by them, and a synonym by neither.
    """
    if isinstance(one.key, Figure) and isinstance(other.key, Figure):
        return one.key.kind == other.key.kind
    if isinstance(one.key, Figure) or isinstance(other.key, Figure):
        return False
    if other.key in opposites().get(one.key, frozenset()):
        return True
    return terms > _FEWEST and one.is_word and other.is_word and one.key in elsewhere

"""Whether a source says what a statement says, in the same words: the only way to be supported.

Every word that tells something, every figure, name, negation and condition of the statement stands
in one window of the source, in the same order, with nothing left out but whole clauses that limit
nothing. It is narrow on purpose: what is said in other words is open.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag.citations.checking.naming import are_siblings, same_name
from rag.citations.checking.reading import Place, Reading, SourceText, Term, read
from rag.citations.leaning import limits
from rag.text.amounts import Figure, agree
from rag.text.languages import Language, all_words
from rag.text.sentences import split_sentences

_BOUNDARY = re.compile(r"[,;:–—()\"“”]|\s-\s|\b(?:and|or|und|oder|sowie)\b")
_PAIRWISE = all_words("pairwise")


@dataclass(frozen=True, slots=True)
class _Copy:
    """A statement to be found in a window: `around` is what it says of itself elsewhere."""

    reading: Reading
    names: Sequence[str]
    keys: frozenset[str]  # of its terms, but for figures


def is_carried(text: str, names: Sequence[str], source: SourceText, language: Language) -> bool:
    """Whether each sentence of a text stands in one window of the source."""
    if language is not source.language:
        return False
    spans = split_sentences(text)
    parts = [text[span.start : span.end] for span in spans] if len(spans) > 1 else [text]
    return all(_in_a_window(part, names, source, language) for part in parts)


def _in_a_window(text: str, names: Sequence[str], source: SourceText, language: Language) -> bool:
    reading = read(text, source.lexicon, language)
    keys = frozenset(term.key for term in reading.terms if isinstance(term.key, str))
    said = _Copy(reading, reading.names or names, keys)
    return bool(reading.terms) and any(_holds(said, source, at) for at in range(len(source.places)))


def _holds(said: _Copy, source: SourceText, at: int) -> bool:
    place = source.places[at]
    if place.window.kind in ("code", "row") or place.own.is_supposed != said.reading.is_supposed:
        return False
    free = _free_words(place, source)
    if not said.keys <= place.keys | free:
        return False
    if not _names_the_same(said.names, place, source):
        return False
    if _is_limited_around(said.reading, place, source, at):
        return False
    if place.window.kind == "cell":
        return _is_of_the_cell(said, place, free)
    return any(_fits(said, place, free, begin) for begin in range(len(place.own.terms) or 1))


def _is_of_the_cell(said: _Copy, place: Place, free: frozenset[str]) -> bool:
    """A label, a header and one value: in any order."""
    there, own = place.own.terms, said.reading.terms
    told = (any(_same(term, each) for each in there) or term.key in free for term in own)
    value = (each for each in there if each.key not in place.around.words)
    return all(told) and all(any(_same(term, each) for term in own) for each in value)


def _fits(said: _Copy, place: Place, free: frozenset[str], begin: int) -> bool:
    """Whether the terms of a statement follow each other in a window from here."""
    there = place.own.terms
    at, taken = begin, list[int]()
    for term in said.reading.terms:
        found = next((i for i in range(at, len(there)) if _same(term, there[i])), None)
        if found is None or (taken and not _may_skip(place, taken[-1] + 1, found)):
            if isinstance(term.key, str) and term.key in free:
                continue
            return False
        if not taken and not _may_begin(said, place, found):
            return False
        taken.append(found)
        at = found + 1
    if not taken or not _may_skip(place, taken[-1] + 1, len(there)):
        return False
    left = [there[i] for i in range(len(there)) if i not in taken]
    return not any(each.limits for each in left)


def _may_begin(said: _Copy, place: Place, found: int) -> bool:
    """Nothing is left out before, but a clause, or the name that a pronoun stands for."""
    left = place.own.terms[:found]
    if not left:
        return True
    names = {word for name in place.own.names for word in name.split()}
    if all(isinstance(t.key, str) and (t.spelled in names) for t in left):
        return not said.reading.names
    return _may_skip(place, 0, found)


def _may_skip(place: Place, start: int, stop: int) -> bool:
    """Whether the terms between are none, or a part of their own."""
    there, text = place.own.terms, place.text
    if start >= stop:
        return True
    before = text[there[start - 1].end if start else 0 : there[start].start]
    after = text[there[stop - 1].end : there[stop].start if stop < len(there) else len(text)]
    if start == 0:
        return bool(_BOUNDARY.search(after))
    if stop == len(there):
        return bool(_BOUNDARY.search(before))
    return bool(_BOUNDARY.search(before) and _BOUNDARY.search(after))


def _same(said: Term, there: Term) -> bool:
    if isinstance(said.key, str) or isinstance(there.key, str):
        return said.key == there.key
    return _same_figure(said.key, there.key)


def _same_figure(said: Figure, there: Figure) -> bool:
    is_exact = said.comparator == there.comparator and said.per == there.per
    is_whole = (said.upper is None) == (there.upper is None)
    return is_exact and is_whole and bool(said.unit) >= bool(there.unit) and agree(said, there)


def _free_words(place: Place, source: SourceText) -> frozenset[str]:
    """Words of lead-in, label, header, title and headings: they may stand anywhere."""
    return frozenset((*place.around.words, *source.context.words))


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
    return bool(is_prose and following and limits(following.text, cites=False))


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

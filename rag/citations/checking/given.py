"""Figures with what they are given for: the words around each, up to the next of its kind.

Two figures of a sentence are told apart by these words: `5 W on the left side and 15 W on the
right side`. Words of closed sets (days, colours) and codes (IP57) are given in the same way.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from zlib import crc32

from rag.citations.checking.reading import Place, Reading, SourceText, Term
from rag.text.amounts import Figure, comparable
from rag.text.related import alternatives

KINDS = ("amount", "ordinal", "date", "clock")  # of figures; all other kinds are of words
_DIVIDES = re.compile(
    r"[,;:()–—|]|\b(?:and|but|while|whereas|or|und|aber|während|sowie|oder)\b", re.IGNORECASE
)
_JOINS = re.compile(r"\s*(?:to|and|or|from|bis|und|oder|von|–|-)?\s*", re.IGNORECASE)
_ENDS = {"to", "bis"}  # of a range
_CODE = re.compile(r"([^\W\d_]+)\W?[^\W_]*\d")
_DENIES = 4  # terms before a figure, among which a denial bears on it
_BESIDE = 40  # characters from a figure to the word for what it counts


@dataclass(frozen=True, slots=True)
class Given:
    """A figure in a sentence, and what it is given for."""

    figure: Figure
    words: frozenset[str]  # around it; of a cell its label, its header and what else its row says
    lent: frozenset[str]  # before the first figure of its kind: they hold for the later ones, too
    names: tuple[str, ...]
    counted: frozenset[str]  # the word right behind it, else right before
    is_denied: bool  # a denial stands close before it
    is_range: bool  # an end of one, or one of several in a row


@dataclass(frozen=True, slots=True)
class GivenBySource(Given):
    """… in a window of a source."""

    place: Place


def given_in(reading: Reading, text: str) -> Iterator[Given]:
    """The figures, codes and words of closed sets of a sentence, in order."""
    figures = sorted((*reading.figures, *_choices(reading)), key=lambda each: each.start)
    for figure in figures:
        runs = _runs(text, [each for each in figures if comparable(figure, each)])
        at = next(i for i, run in enumerate(runs) if figure in run)
        start, end = runs[at][0].start, runs[at][-1].end
        left = _divided(text, runs[at - 1][-1].end, start)[1] if at else 0
        right = _divided(text, end, runs[at + 1][0].start)[0] if at + 1 < len(runs) else len(text)
        before = list(_terms(reading, left, start))
        behind = list(_terms(reading, end, right))
        first = _terms(reading, 0, runs[0][0].start) if at else ()
        yield Given(
            figure=figure,
            words=_words((*before, *behind)),
            lent=_words(first),
            names=tuple(
                name.text.lower()
                for name in reading.named
                if left <= name.start and name.end <= right
            ),
            counted=_counted(reading, before, behind, start, end),
            is_denied=any(each.key == "not" for each in before[-_DENIES:]),
            is_range=len(runs[at]) > 1,
        )


def _choices(reading: Reading) -> Iterator[Figure]:
    """Words of which one excludes another, and codes, as values of the set that they are of."""
    for term in reading.terms:
        if not isinstance(term.key, str):
            continue
        others = alternatives(term.spelled) or alternatives(term.key)
        code = _CODE.match(term.spelled) if term.spelled in reading.codes else None
        kind = f"one of {min(others | {term.key})}" if others else f"code {code[1]}" if code else ""
        if kind:
            value = float(crc32((term.key if others else term.spelled).encode()))
            yield Figure(value, term.spelled, kind=kind, start=term.start, end=term.end)


def _runs(text: str, figures: Sequence[Figure]) -> list[list[Figure]]:
    """Figures in a row, such as the ends of a range."""
    found: list[list[Figure]] = []
    for figure in figures:
        if found and _JOINS.fullmatch(text, found[-1][-1].end, figure.start):
            found[-1].append(figure)
        else:
            found.append([figure])
    return found


def _divided(text: str, start: int, end: int) -> tuple[int, int]:
    """Up to where words between two figures belong to the first, from where to the second.

    Where nothing divides them they belong to both.
    """
    found = list(_DIVIDES.finditer(text, start, end))
    return (found[-1].start(), found[-1].end()) if found else (end, start)


def _terms(reading: Reading, start: int, end: int) -> Iterator[Term]:
    return (
        term
        for term in reading.terms
        if isinstance(term.key, str) and start <= term.start and term.end <= end
    )


def _words(terms: Sequence[Term] | Iterator[Term]) -> frozenset[str]:
    return frozenset(str(term.key) for term in terms if term.key not in _ENDS)


def _counted(
    reading: Reading, before: Sequence[Term], behind: Sequence[Term], start: int, end: int
) -> frozenset[str]:
    told = [t for t in behind if t.key in reading.words and t.end <= end + _BESIDE][:1]
    told = told or [t for t in before if t.key in reading.words and start <= t.start + _BESIDE][-1:]
    return _words(told)


@lru_cache(maxsize=256)
def given_by(source: SourceText) -> tuple[GivenBySource, ...]:
    """The figures of a source, those of a table from its cells."""
    found: list[GivenBySource] = []
    names = source.heading.names
    rows = _words_of_rows(source)
    for place in source.places:
        if place.window.kind == "cell":
            found += _of_cell(place, rows.get(place.window.start, frozenset()))
        elif place.window.kind not in ("row", "code"):
            names = place.own.names or names
            found += _of_sentence(place, names)
    return tuple(found)


def _of_sentence(place: Place, names: tuple[str, ...]) -> Iterator[GivenBySource]:
    for each in given_in(place.own, place.text):
        yield GivenBySource(
            each.figure,
            each.words.union(place.around.words),
            each.lent,
            each.names or names,
            each.counted,
            each.is_denied,
            each.is_range,
            place,
        )


def _words_of_rows(source: SourceText) -> dict[int, frozenset[str]]:
    """What tells a row from others beside its label: the cells that hold no figure."""
    found: dict[int, frozenset[str]] = {}
    for place in source.places:
        if place.window.kind == "cell" and not place.own.figures:
            told = _words(_terms(place.own, 0, len(place.text)))
            found[place.window.start] = found.get(place.window.start, frozenset()) | told
    return found


def _of_cell(place: Place, row: frozenset[str]) -> Iterator[GivenBySource]:
    """The figures of a cell, given for its label, its header and what else its row says."""
    numbers = (each for each in place.around.raw if any(map(str.isdigit, each)))
    words = row.union(place.around.words, place.own.words, numbers)
    names = place.around.names or place.own.names
    label = len(place.text.partition(": ")[0])
    for figure in (*place.own.figures, *_choices(place.own)):
        if figure.start >= label:
            yield GivenBySource(
                figure,
                words,
                frozenset(),
                names,
                frozenset(),
                place.own.is_negated,
                is_range=False,
                place=place,
            )

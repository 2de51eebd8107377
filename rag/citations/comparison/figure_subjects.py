"""Figures with what they are given for: the words around each, up to the next of its kind.

Two figures of a sentence are told apart by these words: `5 W on the left side and 15 W on the
right side`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from rag.citations.comparison.parser import Place, Reading, SourceText, Term, within
from rag.language.amounts import Figure, agree, comparable
from rag.language.languages import all_words, any_of
from rag.runtime.budget import paced

_CONJUNCTIONS = any_of(all_words("conjunctions"))
_DIVIDES = re.compile(rf"[,;:)–—|]|\b(?:{_CONJUNCTIONS})\b", re.IGNORECASE)
_PARTS = re.compile(rf"[;|]|[.!?]\s|, (?:{_CONJUNCTIONS})\b", re.IGNORECASE)  # before all others
_FINEST = 4  # decimals that figures are rounded to
_BESIDE = 40  # characters from a figure to the word for what it counts


@dataclass(frozen=True, slots=True)
class AttributedFigure:
    """A figure in a statement or a window of a source, and what it is given for there."""

    figure: Figure
    place: Place
    words: frozenset[str]  # around it; of a cell its label and its header
    names: tuple[str, ...]
    lent: frozenset[str] = frozenset()  # before the first of its kind: they hold for later ones
    counted: frozenset[str] = frozenset()  # the word right behind it, else right before
    dates: frozenset[float] = frozenset()  # around it, as the words

    @property
    def is_of_cell(self) -> bool:
        return self.place.window.kind == "cell"


def figures_in(place: Place, names: tuple[str, ...]) -> Iterator[AttributedFigure]:
    """The figures of a sentence, in order.

    They are given for these names where none stands beside them.
    """
    reading, text = place.own, place.own.text
    figures = reading.figures
    for index, figure in enumerate(figures):
        start, end = figure.start, figure.end
        nearest = _alike(figure, figures, range(index - 1, -1, -1))
        behind_it = _alike(figure, figures, range(index + 1, len(figures)))
        first = nearest and _alike(figure, figures, range(index))
        left = _divided(text, nearest.end, start)[1] if nearest else 0
        right = _divided(text, end, behind_it.start)[0] if behind_it else len(text)
        before, behind = _between(reading, left, start), _between(reading, end, right)
        own = [e.text.lower() for e in reading.named if left <= e.start and e.end <= right]
        yield AttributedFigure(
            figure=figure,
            place=place,
            words=_keys((*before, *behind)).union(place.around.words),
            names=tuple(own) or names,
            lent=_keys(_between(reading, 0, first.start)) if first else frozenset(),
            counted=_counted(before, behind, start, end),
            dates=dates_of(within(figures, left, right)),
        )


def _alike(figure: Figure, figures: Sequence[Figure], places: range) -> Figure | None:
    """The first of those at these places that measures the same, beside it."""
    for each in map(figures.__getitem__, paced(places)):
        is_beside = each.end <= figure.start or each.start >= figure.end
        if is_beside and comparable(figure, each):
            return each
    return None


def is_about(figure: Figure, there: Figure) -> bool:
    """Whether a figure that was said is the source's: the same, or rounded.

    Money is not rounded: `€130` is another price than `€129.90`.
    """
    if agree(figure, there):
        return True
    if not comparable(figure, there) or figure.kind != "amount" or figure.unit != there.unit:
        return False
    if not figure.unit.isalpha() and figure.unit != "%":
        return False
    return there.value % 1 > 0 and any(
        round(there.value, digits) == figure.value != 0 for digits in range(_FINEST)
    )


def _between(reading: Reading, start: int, end: int) -> list[Term]:
    """The words that stand there."""
    every = within(reading.terms, start, end)
    return [each for each in every if isinstance(each.key, str) and each.end <= end]


def _keys(terms: Sequence[Term]) -> frozenset[str]:
    return frozenset(str(term.key) for term in terms)


def _divided(text: str, start: int, end: int) -> tuple[int, int]:
    """Up to where words between two figures belong to the first, from where to the second.

    Where nothing divides them they belong to both.
    """
    found = list(_PARTS.finditer(text, start, end)) or list(_DIVIDES.finditer(text, start, end))
    return (found[-1].start(), found[-1].end()) if found else (end, start)


def _counted(
    before: Sequence[Term], behind: Sequence[Term], start: int, end: int
) -> frozenset[str]:
    told = [each for each in behind if each.is_word and each.end <= end + _BESIDE][:1]
    last = [each for each in before if each.is_word and start <= each.start + _BESIDE][-1:]
    return _keys(told or last)


@lru_cache(maxsize=256)
def figures_by(source: SourceText) -> tuple[AttributedFigure, ...]:
    """The figures of a source, those of a table from its cells."""
    found: list[AttributedFigure] = []
    for place in source.places:
        if place.window.kind == "cell":
            found += _of_cell(place)
        elif place.window.kind not in ("row", "code"):
            found += figures_in(place, place.own.names)
    return tuple(found)


def _of_cell(place: Place) -> Iterator[AttributedFigure]:
    """The figures of a cell, given for its label and its header."""
    words = frozenset((*place.around.words, *place.own.words))
    names = place.around.names or place.own.names
    dates = dates_of((*place.around.figures, *place.own.figures))
    return (
        AttributedFigure(figure, place, words, names, dates=dates) for figure in place.own.figures
    )


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two things that a sentence compares."""

    words: frozenset[str]
    names: frozenset[str]
    dates: frozenset[float]


def compared(reading: Reading, than: frozenset[str]) -> tuple[Side, Side] | None:
    """What stands before the one word `than` of a sentence, and what behind it."""
    results = [token for token in reading.tokens if token.lowered in than]
    if len(results) != 1:
        return None
    ends = (0, results[0].start, len(reading.text))
    before, behind = (
        Side(
            _keys([e for e in within(reading.terms, *each) if isinstance(e.key, str)]),
            frozenset(e.text.lower() for e in reading.named if each[0] <= e.start < each[1]),
            dates_of(within(reading.figures, *each)),
        )
        for each in pairwise(ends)
    )
    return before, behind


def dates_of(figures: Sequence[Figure]) -> frozenset[float]:
    """The dates among some figures."""
    return frozenset(figure.base for figure in figures if figure.kind == "date")

"""What becomes of each figure of a statement: carried by its sources, or another one given."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product

from rag.citations.comparison.parser import Place, Reading, SourceText, Term, stretches_between
from rag.language.amounts import Figure, agree, comparable
from rag.language.languages import all_words, any_of
from rag.language.names import VARIANTS
from rag.runtime.budget import paced

_SAYS_THE_REST = 0.5  # of the words around a figure, to be told another one for them
_SAME_NAME = 0.25


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


@dataclass(frozen=True, slots=True)
class WeighedFigure:
    """What became of one figure of a statement."""

    stated: AttributedFigure
    carried: AttributedFigure | None = None
    instead: AttributedFigure | None = None  # what the source gives for the same


@dataclass(frozen=True, slots=True, eq=False)
class _NearFigure:
    near: float
    source: AttributedFigure


def weigh(figure: AttributedFigure, sources: Sequence[SourceText]) -> WeighedFigure:
    """Find the figure where the sources speak of the same."""
    every = [
        _NearFigure(_affinity(figure, other), other)
        for source in sources
        for other in figures_by(source)
        if is_about(figure.figure, other.figure) or comparable(figure.figure, other.figure)
    ]
    same = [near for near in every if _is_same(figure, near)]
    other = [near for near in every if near not in same]
    if not same:
        rival = max(
            (e for e in other if _is_of_same_quantity(figure, e)), key=_nearest, default=None
        )
        return WeighedFigure(figure, instead=rival.source if rival else None)
    best = max(same, key=_nearest)
    figures = [_told_apart(figure, near, other) for near in same]
    if all(figures):
        return WeighedFigure(figure, instead=max(filter(None, figures), key=_nearest).source)
    if all(names_agree(figure.names, near.source.names) < 0 for near in same):
        return WeighedFigure(figure, instead=best.source)  # only for another of the family
    return WeighedFigure(figure, carried=best.source)


def _is_same(stated: AttributedFigure, near: _NearFigure) -> bool:
    """Whether it carries the figure: one without a unit only where it is given for the same."""
    figure, there = stated.figure, near.source
    is_bare = bool(figure.unit) != bool(there.figure.unit) and figure.kind == "amount"
    is_meant = there.is_of_cell or not is_bare or near.near >= _SAYS_THE_REST
    return is_meant and is_about(figure, there.figure)


def _affinity(figure: AttributedFigure, other: AttributedFigure) -> float:
    """Of the words around a figure those that stand around another, more where both name one."""
    words = figure.words | figure.lent
    is_same = names_agree(figure.names, other.names) > 0
    return len(words & (other.words | other.lent)) / max(1, len(words)) + _SAME_NAME * is_same


def _nearest(figure: _NearFigure) -> tuple[float, int]:
    return figure.near, -len(figure.source.words)


def _is_of_same_quantity(stated: AttributedFigure, near: _NearFigure) -> bool:
    """Whether another figure is given for the same: both with a unit, or counting the same."""
    figure, there = stated.figure, near.source.figure
    if near.near < _SAYS_THE_REST:
        return False
    if figure.kind != "amount" or (figure.unit and figure.dimension == there.dimension):
        return True
    return not (figure.unit or there.unit) and bool(stated.counted & near.source.counted)


def _told_apart(
    figure: AttributedFigure, carrying: _NearFigure, other: Sequence[_NearFigure]
) -> _NearFigure | None:
    """The other figure, where all that tells the two apart in a statement speaks for that one."""
    dimension = carrying.source.figure.dimension
    rivals = (near for near in other if near.source.figure.dimension == dimension)
    fits = (rival for rival in rivals if _speaks_for(figure, carrying, rival))
    return max(fits, key=_nearest, default=None)


def _speaks_for(figure: AttributedFigure, carrying: _NearFigure, rival: _NearFigure) -> bool:
    mine, theirs = carrying.source, rival.source
    are_cells = mine.is_of_cell and theirs.is_of_cell
    if not are_cells and mine.place is not theirs.place:
        return False
    agreed = [names_agree(figure.names, other.names) for other in (mine, theirs)]
    if agreed[0] != agreed[1]:
        return agreed[0] < agreed[1]
    apart = theirs.words - mine.words - mine.lent
    own_words = mine.words - theirs.words - theirs.lent
    if not own_words and mine.lent >= theirs.lent and mine.lent:
        return False  # said shortly, of what stands before it: `otherwise up to £2,500`
    return not figure.words.isdisjoint(apart) and figure.words.isdisjoint(own_words)


_CONJUNCTIONS = any_of(all_words("conjunctions"))
_DIVIDES = re.compile(rf"[,;:)–—|]|\b(?:{_CONJUNCTIONS})\b", re.IGNORECASE)
_PARTS = re.compile(rf"[;|]|[.!?]\s|, (?:{_CONJUNCTIONS})\b", re.IGNORECASE)  # before all others
_FINEST = 4  # decimals that figures are rounded to
_BESIDE = 40  # characters from a figure to the word for what it counts


def figures_in(place: Place, names: tuple[str, ...]) -> Iterator[AttributedFigure]:
    """The figures of a sentence, in order.

    They are given for these names where none stands beside them.
    """
    reading, text = place.reading, place.reading.text
    figures = reading.figures
    for index, figure in enumerate(figures):
        start, end = figure.start, figure.end
        nearest = _alike(figure, figures, range(index - 1, -1, -1))
        behind_it = _alike(figure, figures, range(index + 1, len(figures)))
        first = nearest and _alike(figure, figures, range(index))
        left = _divided(text, nearest.end, start)[1] if nearest else 0
        right = _divided(text, end, behind_it.start)[0] if behind_it else len(text)
        before, behind = _between(reading, left, start), _between(reading, end, right)
        beside = [n.text.lower() for n in reading.name_spans if left <= n.start and n.end <= right]
        yield AttributedFigure(
            figure=figure,
            place=place,
            words=_term_keys((*before, *behind)).union(place.around.words),
            names=tuple(beside) or names,
            lent=_term_keys(_between(reading, 0, first.start)) if first else frozenset(),
            counted=_counted(before, behind, start, end),
            dates=dates_of(stretches_between(figures, left, right)),
        )


def _alike(figure: Figure, figures: Sequence[Figure], places: range) -> Figure | None:
    """The first of those at these places that measures the same, beside it."""
    for other in map(figures.__getitem__, paced(places)):
        is_beside = other.end <= figure.start or other.start >= figure.end
        if is_beside and comparable(figure, other):
            return other
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
    terms = stretches_between(reading.terms, start, end)
    return [term for term in terms if isinstance(term.key, str) and term.end <= end]


def _term_keys(terms: Sequence[Term]) -> frozenset[str]:
    return frozenset(str(term.key) for term in terms)


def _divided(text: str, start: int, end: int) -> tuple[int, int]:
    """Up to where words between two figures belong to the first, from where to the second.

    Where nothing divides them they belong to both.
    """
    matches = list(_PARTS.finditer(text, start, end)) or list(_DIVIDES.finditer(text, start, end))
    return (matches[-1].start(), matches[-1].end()) if matches else (end, start)


def _counted(
    before: Sequence[Term], behind: Sequence[Term], start: int, end: int
) -> frozenset[str]:
    terms = [term for term in behind if term.is_word and term.end <= end + _BESIDE][:1]
    last = [term for term in before if term.is_word and start <= term.start + _BESIDE][-1:]
    return _term_keys(terms or last)


@lru_cache(maxsize=256)
def figures_by(source: SourceText) -> tuple[AttributedFigure, ...]:
    """The figures of a source, those of a table from its cells."""
    figures: list[AttributedFigure] = []
    for place in source.places:
        if place.window.kind == "cell":
            figures += _of_cell(place)
        elif place.window.kind not in ("row", "code"):
            figures += figures_in(place, place.reading.names)
    return tuple(figures)


def _of_cell(place: Place) -> Iterator[AttributedFigure]:
    """The figures of a cell, given for its label and its header."""
    words = frozenset((*place.around.words, *place.reading.words))
    names = place.around.names or place.reading.names
    dates = dates_of((*place.around.figures, *place.reading.figures))
    return (
        AttributedFigure(figure, place, words, names, dates=dates)
        for figure in place.reading.figures
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
            _term_keys(
                [e for e in stretches_between(reading.terms, *side) if isinstance(e.key, str)]
            ),
            frozenset(n.text.lower() for n in reading.name_spans if side[0] <= n.start < side[1]),
            dates_of(stretches_between(reading.figures, *side)),
        )
        for side in pairwise(ends)
    )
    return before, behind


def dates_of(figures: Sequence[Figure]) -> frozenset[float]:
    """The dates among some figures."""
    return frozenset(figure.base for figure in figures if figure.kind == "date")


_NAME_WORD = re.compile(r"[^\W_]+|\+")
_SHORTEST_WORD = 3  # letters; what is shorter tells a model from another: `Amp 50 BT`


@lru_cache(maxsize=16384)
def name_words(name: str) -> tuple[str, ...]:
    """The words of a name, with the sign that tells a model from another."""
    return tuple(_NAME_WORD.findall(name.lower()))


@lru_cache(maxsize=16384)
def same_name(name: str, there: str) -> bool:
    """The whole name, or its end: `One+` may stand for `Cantoro One+`, `Aero 5` not for
    `Aero 5 Pro`."""
    short, long = sorted((name_words(name), name_words(there)), key=len)
    return bool(short) and long[-len(short) :] == short


@lru_cache(maxsize=16384)
def are_siblings(name: str, there: str) -> bool:
    """Names of two things of one family, such as `Aero 5` and `Aero 5 Pro`: what they begin with
    is the same, and all that they differ in tells a model from another."""
    one, other = name_words(name), name_words(there)
    if same_name(name, there):
        return False
    shared = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if shared is None:  # one goes on where the other ends: `Étude ANC 1.9.2` is an `Étude ANC`
        shared = min(len(one), len(other))
    apart = (*one[shared:], *other[shared:])
    return shared > 0 and min(len(one), len(other)) > 1 and all(map(_tells_a_model, apart))


def _tells_a_model(word: str) -> bool:
    return word in VARIANTS or len(word) < _SHORTEST_WORD or any(map(str.isdigit, word))


def names_agree(names: Sequence[str], there: Sequence[str]) -> float:
    """1 where one is named there, -1 where only a sibling is; 0 where none is named."""
    pairs = list(product(names, there))
    if any(same_name(one, other) for one, other in pairs):
        return 1.0
    return -1.0 if any(are_siblings(one, other) for one, other in pairs) else 0.0

"""What becomes of each figure of a statement: carried by its sources, or another one given."""

from collections.abc import Sequence
from dataclasses import dataclass

from rag.citations.comparison.figure_subjects import AttributedFigure, figures_by, is_about
from rag.citations.comparison.names import names_agree
from rag.citations.comparison.parser import SourceText
from rag.language.amounts import comparable

_SAYS_THE_REST = 0.5  # of the words around a figure, to be told another one for them
_SAME_NAME = 0.25


@dataclass(frozen=True, slots=True)
class WeighedFigure:
    """What became of one figure of a statement."""

    said: AttributedFigure
    carried: AttributedFigure | None = None
    instead: AttributedFigure | None = None  # what the source gives for the same


@dataclass(frozen=True, slots=True, eq=False)
class _NearFigure:
    near: float
    given: AttributedFigure


def weigh(figure: AttributedFigure, sources: Sequence[SourceText]) -> WeighedFigure:
    """Find the figure where the sources speak of the same."""
    every = [
        _NearFigure(_affinity(figure, given), given)
        for source in sources
        for given in figures_by(source)
        if is_about(figure.figure, given.figure) or comparable(figure.figure, given.figure)
    ]
    same = [each for each in every if _is_same(figure, each)]
    other = [each for each in every if each not in same]
    if not same:
        rival = max((e for e in other if _fits(figure, e)), key=_nearest, default=None)
        return WeighedFigure(figure, instead=rival.given if rival else None)
    best = max(same, key=_nearest)
    told = [_told_apart(figure, each, other) for each in same]
    if all(told):
        return WeighedFigure(figure, instead=max(filter(None, told), key=_nearest).given)
    if all(names_agree(figure.names, each.given.names) < 0 for each in same):
        return WeighedFigure(figure, instead=best.given)  # only for another of the family
    return WeighedFigure(figure, carried=best.given)


def _is_same(said: AttributedFigure, found: _NearFigure) -> bool:
    """Whether it carries the figure: one without a unit only where it is given for the same."""
    figure, there = said.figure, found.given
    is_bare = bool(figure.unit) != bool(there.figure.unit) and figure.kind == "amount"
    is_told = there.is_of_cell or not is_bare or found.near >= _SAYS_THE_REST
    return is_told and is_about(figure, there.figure)


def _affinity(figure: AttributedFigure, given: AttributedFigure) -> float:
    """Of the words around a figure those that stand around another, more where both name one."""
    own = figure.words | figure.lent
    is_same = names_agree(figure.names, given.names) > 0
    return len(own & (given.words | given.lent)) / max(1, len(own)) + _SAME_NAME * is_same


def _nearest(figure: _NearFigure) -> tuple[float, int]:
    return figure.near, -len(figure.given.words)


def _fits(said: AttributedFigure, found: _NearFigure) -> bool:
    """Whether another figure is given for the same: both with a unit, or counting the same."""
    figure, there = said.figure, found.given.figure
    if found.near < _SAYS_THE_REST:
        return False
    if figure.kind != "amount" or (figure.unit and figure.dimension == there.dimension):
        return True
    return not (figure.unit or there.unit) and bool(said.counted & found.given.counted)


def _told_apart(
    figure: AttributedFigure, own: _NearFigure, other: Sequence[_NearFigure]
) -> _NearFigure | None:
    """The other figure, where all that tells the two apart in a statement speaks for that one."""
    rivals = (
        each
        for each in other
        if each.given.figure.dimension == own.given.figure.dimension
        and _speaks_for(figure, own, each)
    )
    return max(rivals, key=_nearest, default=None)


def _speaks_for(figure: AttributedFigure, own: _NearFigure, rival: _NearFigure) -> bool:
    mine, theirs = own.given, rival.given
    are_cells = mine.is_of_cell and theirs.is_of_cell
    if not are_cells and mine.place is not theirs.place:
        return False
    agreed = [names_agree(figure.names, each.names) for each in (mine, theirs)]
    if agreed[0] != agreed[1]:
        return agreed[0] < agreed[1]
    apart = theirs.words - mine.words - mine.lent
    own_words = mine.words - theirs.words - theirs.lent
    if not own_words and mine.lent >= theirs.lent and mine.lent:
        return False  # said shortly, of what stands before it: `otherwise up to £2,500`
    return not figure.words.isdisjoint(apart) and figure.words.isdisjoint(own_words)

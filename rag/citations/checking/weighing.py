"""What becomes of each figure of a statement: carried by its sources, or another one given."""

from collections.abc import Sequence
from dataclasses import dataclass

from rag.citations.checking.given import Given, given_by, tells
from rag.citations.checking.naming import names_agree
from rag.citations.checking.reading import SourceText
from rag.language.amounts import comparable

_SAYS_THE_REST = 0.5  # of the words around a figure, to be told another one for them
_SAME_NAME = 0.25


@dataclass(frozen=True, slots=True)
class Weighed:
    """What became of one figure of a statement."""

    said: Given
    carried: Given | None = None
    instead: Given | None = None  # what the source gives for the same


@dataclass(frozen=True, slots=True, eq=False)
class _NearGiven:
    near: float
    given: Given


def weigh(said: Given, sources: Sequence[SourceText]) -> Weighed:
    """Find the figure where the sources speak of the same."""
    every = [
        _NearGiven(_affinity(said, given), given)
        for source in sources
        for given in given_by(source)
        if tells(said.figure, given.figure) or comparable(said.figure, given.figure)
    ]
    same = [each for each in every if _is_same(said, each)]
    other = [each for each in every if each not in same]
    if not same:
        rival = max((e for e in other if _fits(said, e)), key=_nearest, default=None)
        return Weighed(said, instead=rival.given if rival else None)
    best = max(same, key=_nearest)
    told = [_told_apart(said, each, other) for each in same]
    if all(told):
        return Weighed(said, instead=max(filter(None, told), key=_nearest).given)
    if all(names_agree(said.names, each.given.names) < 0 for each in same):
        return Weighed(said, instead=best.given)  # only for another of the family
    return Weighed(said, carried=best.given)


def _is_same(said: Given, found: _NearGiven) -> bool:
    """Whether it carries the figure: one without a unit only where it is given for the same."""
    figure, there = said.figure, found.given
    is_bare = bool(figure.unit) != bool(there.figure.unit) and figure.kind == "amount"
    is_told = there.is_of_cell or not is_bare or found.near >= _SAYS_THE_REST
    return is_told and tells(figure, there.figure)


def _affinity(said: Given, given: Given) -> float:
    """Of the words around a figure those that stand around another, more where both name one."""
    own = said.words | said.lent
    is_same = names_agree(said.names, given.names) > 0
    return len(own & (given.words | given.lent)) / max(1, len(own)) + _SAME_NAME * is_same


def _nearest(found: _NearGiven) -> tuple[float, int]:
    return found.near, -len(found.given.words)


def _fits(said: Given, found: _NearGiven) -> bool:
    """Whether another figure is given for the same: both with a unit, or counting the same."""
    figure, there = said.figure, found.given.figure
    if found.near < _SAYS_THE_REST:
        return False
    if figure.kind != "amount" or (figure.unit and figure.dimension == there.dimension):
        return True
    return not (figure.unit or there.unit) and bool(said.counted & found.given.counted)


def _told_apart(said: Given, own: _NearGiven, other: Sequence[_NearGiven]) -> _NearGiven | None:
    """The other figure, where all that tells the two apart in a statement speaks for that one."""
    rivals = (
        each
        for each in other
        if each.given.figure.dimension == own.given.figure.dimension
        and _speaks_for(said, own, each)
    )
    return max(rivals, key=_nearest, default=None)


def _speaks_for(said: Given, own: _NearGiven, rival: _NearGiven) -> bool:
    mine, theirs = own.given, rival.given
    are_cells = mine.is_of_cell and theirs.is_of_cell
    if not are_cells and mine.place is not theirs.place:
        return False
    agreed = [names_agree(said.names, each.names) for each in (mine, theirs)]
    if agreed[0] != agreed[1]:
        return agreed[0] < agreed[1]
    apart = theirs.words - mine.words - mine.lent
    own_words = mine.words - theirs.words - theirs.lent
    if not own_words and mine.lent >= theirs.lent and mine.lent:
        return False  # said shortly, of what stands before it: `otherwise up to £2,500`
    return not said.words.isdisjoint(apart) and said.words.isdisjoint(own_words)

"""Two values of a statement that its source gives the other way round."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from rag.citations.checking.given import Given, GivenBySource, given_by
from rag.citations.checking.reading import SourceText
from rag.citations.checking.weighing import of_names, share_held
from rag.text.amounts import agree, comparable

_NEARER = 0.2  # by so much each value has to be nearer to the place of the other
_NEAR = 0.5  # of the words around it that stand there


def swapped(
    given: Sequence[Given], names: Sequence[str], sources: Sequence[SourceText]
) -> GivenBySource | None:
    """What a source gives in place of a value whose place another of the statement has."""
    there = [each for source in sources for each in given_by(source)]
    pairs = combinations([each for each in given if not each.is_range], 2)
    return next((found for pair in pairs for found in _crossed(*pair, names, there)), None)


def _crossed(
    one: Given, other: Given, names: Sequence[str], there: Sequence[GivenBySource]
) -> Iterator[GivenBySource]:
    figures = (one.figure, other.figure)
    if not comparable(*figures) or agree(*figures):
        return
    first = [each for each in there if agree(one.figure, each.figure)]
    second = [each for each in there if agree(other.figure, each.figure)]
    if not first or not second:
        return
    straight = (_near(one, first, names), _near(other, second, names))
    crossed = (_near(one, second, names), _near(other, first, names))
    if all(x >= max(_NEAR, s + _NEARER) for s, x in zip(straight, crossed, strict=True)):
        yield max(second, key=lambda each: _near(one, [each], names))


def _near(said: Given, there: Sequence[GivenBySource], names: Sequence[str]) -> float:
    return max(_share(said, each) + of_names(said.names or names, each.names) for each in there)


def _share(said: Given, there: GivenBySource) -> float:
    return share_held(said.words | said.beside, there.words | there.beside)

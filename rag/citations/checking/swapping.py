"""Two values of a statement that its source gives the other way round."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from rag.citations.checking.given import Given, GivenBySource, given_by
from rag.citations.checking.naming import names_agree
from rag.citations.checking.reading import SourceText, is_held
from rag.text.amounts import agree, comparable

_NEARER = 0.2  # by so much each value has to be nearer to the place of the other
_NEAR = 0.5  # of the words around it that stand there
_SAME_NAME, _OTHER_NAME = 0.25, 0.6


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
    return max(_share(said, each) + _of_names(said.names or names, each) for each in there)


def _share(said: Given, there: GivenBySource) -> float:
    held = sum(is_held(word, there.words) for word in said.words) + len(said.beside & there.beside)
    return held / max(1, len(said.words) + len(said.beside))


def _of_names(names: Sequence[str], there: GivenBySource) -> float:
    agreed = names_agree(names, there.names)
    return _SAME_NAME if agreed > 0 else -_OTHER_NAME if agreed < 0 else 0.0

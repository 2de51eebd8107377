"""The figures that one of a statement may follow from, by what they are given for."""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

from rag.citations.checking.case import Case
from rag.citations.checking.given import Given, given_by
from rag.citations.checking.naming import names_agree
from rag.citations.checking.reading import share
from rag.text.amounts import Figure
from rag.text.words import stem


@dataclass(frozen=True)
class Operands:
    """Those of the sources of a statement."""

    case: Case

    @cached_property
    def nearest(self) -> list[tuple[float, Given]]:
        """All, those first that are given for what most words of the statement name."""
        words = self.case.reading.words
        found = [
            (share(words, each.words | each.lent), each)
            for source in self.case.sources
            for each in given_by(source)
        ]
        return sorted(found, key=lambda each: -each[0])

    @cached_property
    def figures(self) -> list[Figure]:
        """All of them."""
        return [given.figure for _, given in self.nearest]

    @cached_property
    def named(self) -> list[Given]:
        """Those that no other that measures the same is nearer than, with the words in common.

        `A canoe for a full day` names that price of the canoe, and no price of a full day else.
        """
        said, names = frozenset(self.case.reading.words), self.case.names
        found = [
            (
                _common(said, each) | {f"={n}" for n in each.names if names_agree(names, [n]) > 0},
                each,
            )
            for _, each in self.nearest
        ]
        alike: dict[str, set[frozenset[str]]] = defaultdict(set)
        for words, each in found:
            alike[each.figure.dimension].add(words)
        return [
            each
            for words, each in found
            if words and not any(words < others for others in alike[each.figure.dimension])
        ]

    def is_per(self, amount: Figure, period: str) -> bool:
        """Whether it is of so long, as itself, its header or its sentence says."""
        return any(
            each.figure.base == amount.base
            and (period == each.figure.per or stem(period) in each.words | each.lent)
            for each in self.named
        )


def _common(said: frozenset[str], given: Given) -> frozenset[str]:
    """The words that a figure is given for in a statement as well."""
    return said & given.words or said & given.lent

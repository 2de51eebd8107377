"""The figures that one of a statement may follow from, by what they are given for."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from rag.citations.checking.case import Case
from rag.citations.checking.given import Given, given_by
from rag.citations.checking.naming import names_agree
from rag.citations.checking.reading import share
from rag.text.amounts import Figure
from rag.text.words import stem

Key = TypeVar("Key", str, float)
_NAMED = 0.3  # what the same name is worth, beside the share of words


@dataclass(frozen=True)
class Operands:
    """Those of the sources of a statement."""

    case: Case

    @cached_property
    def nearest(self) -> list[tuple[float, Given]]:
        """All, those first that are given for what most words of the statement name."""
        words, names = self.case.reading.words, self.case.names
        found = [
            (
                share(words, each.words | each.lent)
                + _NAMED * (names_agree(names, each.names) > 0),
                each,
            )
            for source in self.case.sources
            for each in given_by(source)
        ]
        return sorted(found, key=lambda each: -each[0])

    @cached_property
    def figures(self) -> list[Figure]:
        """All of them."""
        return [given.figure for _, given in self.nearest]

    @cached_property
    def _named(self) -> list[tuple[frozenset[str], Given]]:
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
            (words, each)
            for words, each in found
            if words and not any(words < others for others in alike[each.figure.dimension])
        ]

    def named(self, but: Figure) -> list[Figure]:
        """Those that the statement names.

        None without a unit, where others have its own: `1 renewal` is no part of `€ 4`.
        """
        named = [each.figure for _, each in self._named]
        if but.unit and any(each.dimension == but.dimension for each in named):
            named = [each for each in named if each.unit or each.kind != "amount"]
        return named

    # ── Grounds to work something out from them ──

    def counts(self, many: Figure, amount: Figure) -> bool:
        """Whether the amount is one of what is counted: `two adults` and `€8 for adults`.

        What is counted is named beside it, or there is no other.
        """
        given = self._of(amount)
        if any(many.unit and each.figure.per == many.unit for each in given):
            return True
        others = [each for each in self._alike(amount) if each.figure.base != amount.base]
        said = next((each for each in self.case.given if each.figure is many), None)
        if said is None:
            return False
        counted = said.counted | ({stem(many.unit)} if many.unit else set())
        return not others or any(counted & (each.words | each.lent) for each in given)

    def is_per(self, amount: Figure, period: str) -> bool:
        """Whether it is of so long, as itself, its header or its sentence says."""
        return any(
            period == each.figure.per or stem(period) in each.words | each.lent
            for each in self._of(amount)
        )

    def _alike(self, amount: Figure) -> list[Given]:
        return self._by_dimension.get(amount.dimension, [])

    def _of(self, amount: Figure) -> list[Given]:
        return self._by_value.get(amount.base, [])

    @cached_property
    def _by_dimension(self) -> dict[str, list[Given]]:
        return _grouped((each.figure.dimension, each) for _, each in self._named)

    @cached_property
    def _by_value(self) -> dict[float, list[Given]]:
        return _grouped((each.figure.base, each) for _, each in self._named)


def _grouped(pairs: Iterable[tuple[Key, Given]]) -> dict[Key, list[Given]]:
    found: dict[Key, list[Given]] = defaultdict(list)
    for key, each in pairs:
        found[key].append(each)
    return found


def _common(said: frozenset[str], given: Given) -> frozenset[str]:
    """The words that a figure is given for in a statement as well."""
    return said & given.words or said & given.lent

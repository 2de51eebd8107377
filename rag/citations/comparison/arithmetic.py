"""Figures that follow from others: sums, differences, products, shares and counts, recomputed."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations, product

from rag.citations.comparison.case import Case
from rag.citations.comparison.parser import (
    AttributedFigure,
    Side,
    compared,
    figures_by,
    names_agree,
    share,
)
from rag.language.amounts import UNIT_SIGNS, Figure, agree, number_shown
from rag.language.words import all_meanings, phrases, stem

# A bound is no difference: "more than 80", "5 or more".
_DIFFERENCE = re.compile(
    rf"\b(?<!or )(?:{'|'.join(map(phrases, ('increases', 'decreases', 'differences')))})\b"
    rf"(?! (?:{phrases('than')}) (?:[€$£]|EUR )?\d)",
    re.IGNORECASE,
)
_INCREASE, _DECREASE = (
    re.compile(rf"\b(?:{phrases(kind)})\b", re.IGNORECASE) for kind in ("increases", "decreases")
)
_SUM = re.compile(rf"\b(?:{phrases('sums')})\b", re.IGNORECASE)
_SHARE = re.compile(rf"%|\b(?:{phrases('shares')})\b", re.IGNORECASE)
_THAN = frozenset(phrases("than").split("|"))
_TOLERANCE = 0.005
_FINEST = 3  # decimals that a percentage is rounded to
_ONE = frozenset(word for word, number in all_meanings("numbers").items() if number == 1)
_MOST = 14  # figures of one dimension that are combined
_MOST_COUNTS = 6
_GROUPS = ((2, 3 * _MOST), (3, _MOST))  # so many are summed, of so many
_MULTIPLES: dict[str, float] = all_meanings("multiples")
_JOINT: dict[str, float] = all_meanings("joint")
_PERIODS = {("year", "month"): 12, ("year", "week"): 52, ("week", "day"): 7, ("year", "day"): 365}
_Result = tuple[float, str]  # in the base unit of the figure, and how


class Computation:
    """Recomputes the figures of a statement from others, by operations that its words name."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._text = case.statement.text
        self._derivations: dict[tuple[Figure, bool], str] = {}

    def derivations(self) -> list[str]:
        """Return how figures that no source gives follow from others that the statement names."""
        sourced = [figure for source in self._case.sources for figure in source.figures]
        missing = [figure for figure in self._figures if not any(agree(figure, s) for s in sourced)]
        ways = list(dict.fromkeys(self.how(figure, is_proof=True) for figure in missing))
        counts = [figure for figure in self._figures if figure not in missing and not figure.unit]
        used = all(any(_uses(way, count) for way in ways) for count in counts)
        return [way for way in ways if way] if used else []

    def how(self, figure: Figure, *, is_proof: bool = False) -> str:
        """Return how a figure follows from any source's figures; a proof uses named ones only."""
        if (figure, is_proof) not in self._derivations:
            fits = (
                how
                for value, how in self._results(figure, is_proof=is_proof)
                if _is_as_much(value, figure)
            )
            self._derivations[figure, is_proof] = next(fits, "")
        return self._derivations[figure, is_proof]

    def is_used(self, figure: Figure) -> bool:
        """Whether a figure may follow from others, or another figure of the statement from it."""
        if not self._case.reading.raw.isdisjoint(_THAN):
            pairs = _pairs_of_dimension(_addends(figure, [near.figure for near in self._nearest]))
            if any(_is_as_much(a.base - b.base, figure) for a, b in pairs):
                return True
        ways = (self.how(other) for other in self._figures if other is not figure)
        return bool(self.how(figure)) or any(figure.phrase in way for way in ways)

    @cached_property
    def _figures(self) -> list[Figure]:
        return [weighed.stated.figure for weighed in self._case.weighed]

    # ── What it may follow from ──

    @cached_property
    def _nearest(self) -> list[AttributedFigure]:
        """Return all figures, first those whose words the statement shares most."""
        words = self._case.reading.words
        figures = (figure for source in self._case.sources for figure in figures_by(source))
        return sorted(figures, key=lambda figure: -share(words, figure.words | figure.lent))

    @cached_property
    def _nearest_by_words(self) -> list[AttributedFigure]:
        """Return the figures that share more words than any other of the same dimension.

        `A canoe for a full day` names that price of the canoe, and no other price of a full day.
        """
        results = [(self._common(near), near) for near in self._nearest]
        alike: dict[str, set[frozenset[str]]] = defaultdict(set)
        for words, near in results:
            alike[near.figure.dimension].add(words)
        return [
            near
            for words, near in results
            if words and not any(words < others for others in alike[near.figure.dimension])
        ]

    def _common(self, figure: AttributedFigure) -> frozenset[str]:
        """Return the words and names that a figure and the statement share."""
        words = frozenset(self._case.reading.words)
        names = (f"={n}" for n in figure.names if names_agree(self._case.names, [n]) > 0)
        return (words & figure.words or words & figure.lent).union(names)

    def _is_per(self, amount: Figure, period: str) -> bool:
        """Whether an amount is per that period, as its unit, header or sentence says."""
        return any(
            figure.figure.base == amount.base
            and (period == figure.figure.per or stem(period) in figure.words | figure.lent)
            for figure in self._nearest_by_words
        )

    # ── Worked out ──

    def _results(self, figure: Figure, *, is_proof: bool) -> Iterator[_Result]:
        """Yield products by factors of the statement, and other results that its words name."""
        figures = self._nearest_by_words if is_proof else self._nearest
        text, others = self._text, [other for other in self._figures if other is not figure]
        every = others + [sourced.figure for sourced in figures]
        amounts = [e for e in every if e.unit or not figure.unit or e not in others]
        same, counts = _addends(figure, amounts), _counts(others)
        near = [near.figure for near in self._nearest_by_words]
        if _SUM.search(text) and len(_addends(figure, near)) > 1:
            counts = []  # `the three plans together` are not three times one of them
        yield from self._products(figure, same, counts, every)
        if _DIFFERENCE.search(text):
            pairs = [
                e for e in _pairs_of_dimension(same) if not is_proof or not self._is_reversed(*e)
            ]
            yield from ((a.base - b.base, f"{a.phrase} − {b.phrase}") for a, b in pairs)
        if _SUM.search(text):
            yield from _sums(_addends(figure, amounts, each_once=False))
        yield from _ratios(figure, others, figures, self._case.reading.raw)
        is_share = _SHARE.search(text) or any(e.unit == "%" for e in near)
        shared = [e for e in same if (is_share or e in others) and e.unit not in ("", "%")]
        yield from _shares(shared, every)

    def _is_reversed(self, more: Figure, less: Figure) -> bool:
        """Whether the statement calls the lower of two the higher: the words before `than` are
        those of the lower.
        """
        is_higher, is_lower = (bool(e.search(self._text)) for e in (_INCREASE, _DECREASE))
        sides = compared(self._case.reading, _THAN)
        if sides is None or is_higher is is_lower:
            return False
        near = self._nearest_by_words
        leanings = [
            _leaning(one, other, sides)
            for one, other in product(near, near)
            if agree(one.figure, more) and agree(other.figure, less)
        ]
        return (max(leanings, default=0) if is_higher else -min(leanings, default=0)) < 0

    def _products(
        self,
        figure: Figure,
        amounts: Sequence[Figure],
        counts: Sequence[Figure],
        figures: Sequence[Figure],
    ) -> Iterator[_Result]:
        """Yield multiples of an amount: so many times, twice, or 100 days of `€120 a day`."""
        words = self._case.reading.raw
        periods = {figure.per, *(UNIT_SIGNS.get(word, "") for word in words)}
        factors = _MULTIPLES | _JOINT if _SUM.search(self._text) else _MULTIPLES
        taken = [factor for word, factor in factors.items() if word in words]
        for amount in amounts:
            times = [count.value for count in counts if count is not amount] + taken
            times += [
                factor
                for (long, short), factor in _PERIODS.items()
                if long in periods and self._is_per(amount, short)
            ]
            yield from ((amount.base * n, f"{number_shown(n)} × {amount.phrase}") for n in times)
            for other in figures:
                if other.unit and other.unit == amount.per:
                    yield amount.base * other.value, f"{other.phrase} × {amount.phrase}"


def _leaning(more: AttributedFigure, less: AttributedFigure, sides: Sequence[Side]) -> int:
    """Return above 0 if the words before `than` are the higher figure's, else below 0."""
    subject, other = (side.words.union(side.names, side.dates) for side in sides)
    one, rival = (
        figure.words.union(figure.lent, figure.dates, figure.names if figure.is_of_cell else ())
        for figure in (more, less)
    )
    higher, lower = one - rival, rival - one
    return len(higher & subject) - len(higher & other) - len(lower & subject) + len(lower & other)


def _is_as_much(value: float, figure: Figure) -> bool:
    return abs(value - figure.base) <= _TOLERANCE * max(abs(figure.base), 1e-9)


def _uses(way: str, count: Figure) -> bool:
    """Whether a sum has a number as a factor, or so many terms: `both together`, `2 × €6`."""
    terms = way.count(" + ") + 1
    return number_shown(count.value) in way.split() or count.value == 1 or 2 < count.value == terms


def _shares(amounts: Sequence[Figure], figures: Sequence[Figure]) -> Iterator[_Result]:
    """Yield a percentage of an amount, and the amount less or plus it."""
    percents = [figure for figure in figures if figure.unit == "%"]
    for percent, figure in product(percents, amounts):
        part = figure.base * percent.value / 100
        yield part, f"{percent.phrase} of {figure.phrase}"
        yield figure.base - part, f"{figure.phrase} less {percent.phrase}"
        yield figure.base + part, f"{figure.phrase} and {percent.phrase} of it"


def _ratios(
    figure: Figure,
    stated: Sequence[Figure],
    sourced: Sequence[AttributedFigure],
    words: frozenset[str],
) -> Iterator[_Result]:
    """Yield the percentage that one amount of a sentence is of another, or so many in so many."""
    if figure.kind != "amount" or figure.unit not in ("", "%"):
        return
    counts = [f.value for f in stated if f.kind == "amount" and not f.unit]
    counts += [1.0] * (not words.isdisjoint(_ONE))
    for one, other in combinations([e for e in sourced if e.figure.unit != "%"], 2):
        if one.place is other.place and one.figure.upper is other.figure.upper is None:
            for more, less in _pairs_of_dimension([one.figure, other.figure]):
                if more.kind == "amount" and less.base > 0:
                    ratio, how = less.base / more.base, f"{less.phrase} of {more.phrase}"
                    if figure.unit:
                        yield from ((round(100 * ratio, n), how) for n in range(_FINEST))
                    else:
                        yield from ((n * ratio, how) for n in counts if n != more.base)
                        yield from ((n / ratio, how) for n in counts if n != less.base)


def _sums(same: Sequence[Figure]) -> Iterator[_Result]:
    for count, most in _GROUPS:
        for group in combinations(same[:most], count):
            yield sum(f.base for f in group), " + ".join(f.phrase for f in group)


def _pairs_of_dimension(figures: Sequence[Figure]) -> Iterator[tuple[Figure, Figure]]:
    """Yield pairs of figures of one dimension, the higher first."""
    for one, other in combinations(figures, 2):
        if one.dimension == other.dimension:
            yield (one, other) if one.base >= other.base else (other, one)


def _addends(figure: Figure, figures: Sequence[Figure], *, each_once: bool = True) -> list[Figure]:
    """Return the amounts that can be added to the figure."""
    figures = [figure for figure in figures if figure.upper is None]  # a range is no term
    amounts = [other for other in figures if other.kind == figure.kind == "amount"]
    fits = [amount for amount in amounts if amount.dimension == figure.dimension]
    fits = fits or [replace(amount, unit=figure.unit) for amount in amounts if not amount.unit]
    distinct = {(amount.base, amount.dimension): amount for amount in fits}
    return (list(distinct.values()) if each_once else fits)[: 3 * _MOST]


def _counts(figures: Sequence[Figure]) -> list[Figure]:
    """Return the counts in a statement: bare numbers, days, weeks, km; no money, no share."""
    amounts = (f for f in figures if f.kind == "amount" and (not f.unit or f.unit[0].isalpha()))
    return [f for f in amounts if 1 < f.value <= 1000 and f.value % 1 == 0][:_MOST_COUNTS]

"""Figures that follow from others: sums, differences, products, shares and counts, recomputed."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import combinations, permutations, product

from rag.citations.checking.operands import Operands
from rag.text.amounts import UNIT_SIGNS, Figure, date_parts, number_shown
from rag.text.languages import all_meanings, told
from rag.text.words import tokens

# A bound is no difference: "more than 80", "5 or more".
_DIFFERENCE = re.compile(
    rf"\b(?<!or )(?:{'|'.join(map(told, ('increases', 'decreases', 'differences')))})\b"
    rf"(?! (?:{told('than')}) (?:[€$£]|EUR )?\d)",
    re.IGNORECASE,
)
_SUM = re.compile(rf"\b(?:{told('sums')})\b", re.IGNORECASE)
_SHARE = re.compile(rf"%|\b(?:{told('shares')})\b", re.IGNORECASE)
_TOLERANCE = 0.005
_ROUGH = 0.06
_MOST = 14  # figures of one dimension that are combined
_MOST_COUNTS = 6
_GROUPS = ((2, 3 * _MOST), (3, _MOST))  # so many are summed, of so many
_MULTIPLES: dict[str, float] = all_meanings("multiples")
_JOINT: dict[str, float] = all_meanings("joint")
_PERIODS = {("year", "month"): 12, ("year", "week"): 52, ("week", "day"): 7, ("year", "day"): 365}
_DAY = 86_400  # seconds
_ALL_DAY = 24  # hours
_LEAP_YEAR = 2000  # of days without one
_Result = tuple[float, str]  # in the base unit of the figure, and how


@dataclass(frozen=True, slots=True)
class Sum:
    """A statement's figure beside those that it may follow from."""

    figure: Figure
    text: str
    own: Sequence[Figure]  # the others of the statement
    known: Sequence[Figure]  # these and those of its sources, the nearest first
    grounds: Operands
    is_proof: bool  # else it is enough that it may follow

    def counts(self, many: Figure, amount: Figure) -> bool:
        """As far as it is to be known."""
        return not self.is_proof or self.grounds.counts(many, amount)


def compute(asked: Sum) -> str:
    """How a figure follows from others in a way that the words name; "" where it does not."""
    figure = asked.figure
    margin = _margin(figure, _ROUGH if figure.comparator == "~" else _TOLERANCE)
    return next((how for value, how in _results(asked) if abs(value - figure.base) <= margin), "")


def adds_up(text: str) -> bool:
    """Whether words of a statement say that its figure is a sum."""
    return bool(_SUM.search(text))


def is_difference(figure: Figure, known: Sequence[Figure]) -> bool:
    """Whether it lies between two others, whatever words say so."""
    pairs = _pairs(_alike(figure, known))
    return any(abs(a.base - b.base - figure.base) <= _margin(figure) for a, b in pairs)


def _margin(figure: Figure, tolerance: float = _TOLERANCE) -> float:
    return tolerance * max(abs(figure.base), 1e-9)


def _results(asked: Sum) -> Iterator[_Result]:
    """Products as often as the statement itself says; the others where its words name them."""
    figure, text, own, known = asked.figure, asked.text, asked.own, asked.known
    amounts = [each for each in known if each.unit or not figure.unit or each not in own]
    same, counts = _alike(figure, amounts), _counts(own)
    yield from _products(asked, same, counts)
    if asked.is_proof or adds_up(text):
        yield from _several(asked, same, counts)
    if _DIFFERENCE.search(text):
        pairs = _pairs(_alike(figure, amounts))
        yield from ((a.base - b.base, f"{a.shown} − {b.shown}") for a, b in pairs)
        yield from ((100 - each.base, f"100 − {each.shown}") for each in same if each.unit == "%")
    if figure.dimension == "time":
        yield from _spans(known)
    if adds_up(text):
        yield from _sums(_alike(figure, amounts, each_once=False))
    is_share = _SHARE.search(text) or any(e.unit == "%" for e in asked.grounds.named(figure))
    shared = [each for each in same if (is_share or each in own) and each.unit != "%"]
    times = (pair for pair in product(counts, shared) if asked.counts(*pair))
    yield from _shares(
        [
            *((each.base, each.shown) for each in shared),
            *((n.value * a.base, f"{number_shown(n.value)} × {a.shown}") for n, a in times),
        ],
        known,
    )


def _products(asked: Sum, amounts: Sequence[Figure], counts: Sequence[Figure]) -> Iterator[_Result]:
    """So many times an amount, twice of it, or 100 days and a year of `€120 a day`."""
    said = [each.lowered for each in tokens(asked.text)]
    periods = {asked.figure.per, *(UNIT_SIGNS.get(each, "") for each in said)}
    for amount in amounts:
        times = [e.value for e in counts if e is not amount and asked.counts(e, amount)]
        taken = _MULTIPLES | _JOINT if adds_up(asked.text) else _MULTIPLES
        times += [factor for word, factor in taken.items() if word in said]
        times += [
            factor
            for (long, short), factor in _PERIODS.items()
            if long in periods and asked.grounds.is_per(amount, short)
        ]
        yield from ((amount.base * n, f"{number_shown(n)} × {amount.shown}") for n in times)
        for each in asked.known:
            if each.unit and each.unit == amount.per:
                yield amount.base * each.value, f"{each.shown} × {amount.shown}"


def _several(asked: Sum, same: Sequence[Figure], counts: Sequence[Figure]) -> Iterator[_Result]:
    """`240 + 2 × 45`, `2 × 8 + 3 × 5`."""
    for one, other in permutations(same[:_MOST], 2):
        for many in (each for each in counts if asked.counts(each, other)):
            times = f"{number_shown(many.value)} × {other.shown}"
            yield one.base + many.value * other.base, f"{one.shown} + {times}"
            for more in (each for each in counts if each is not many and asked.counts(each, one)):
                total = more.value * one.base + many.value * other.base
                yield total, f"{number_shown(more.value)} × {one.shown} + {times}"


def _spans(known: Sequence[Figure]) -> Iterator[_Result]:
    """From one time of day to another; from a day to another, itself counted or not."""
    for later, earlier in _pairs([each for each in known if each.kind == "clock"][:_MOST]):
        hours = later.value - earlier.value
        yield 3600 * hours, f"{earlier.shown} to {later.shown}"
        yield 3600 * (_ALL_DAY - hours), f"{later.shown} to {earlier.shown}"  # overnight
    days = [(_day_of(each), each) for each in known if each.kind == "date"][:_MOST]
    for (one, first), (other, second) in permutations(days, 2):
        if one and other and one < other:
            apart = (other - one).days
            yield from (
                (_DAY * (apart + each), f"{first.shown} to {second.shown}") for each in (0, 1)
            )


def _day_of(figure: Figure) -> date | None:
    year, month, day = date_parts(figure)
    try:
        return date(year or _LEAP_YEAR, month, day)
    except ValueError:  # a year alone, or 31 June
        return None


def _shares(amounts: Sequence[_Result], known: Sequence[Figure]) -> Iterator[_Result]:
    """A percentage of an amount, off it or on top of it."""
    percents = [each for each in known if each.unit == "%"]
    for percent, (amount, shown) in product(percents, amounts):
        part = amount * percent.value / 100
        yield part, f"{percent.shown} of {shown}"
        yield amount - part, f"{shown} less {percent.shown}"
        yield amount + part, f"{shown} and {percent.shown} of it"


def _sums(same: Sequence[Figure]) -> Iterator[_Result]:
    """Of two or three amounts."""
    for count, most in _GROUPS:
        for group in combinations(same[:most], count):
            yield sum(each.base for each in group), " + ".join(each.shown for each in group)


def _pairs(figures: Sequence[Figure]) -> Iterator[tuple[Figure, Figure]]:
    """Two of one dimension, the higher first."""
    for one, other in combinations(figures, 2):
        if one.dimension == other.dimension:
            yield (one, other) if one.base >= other.base else (other, one)


def _alike(figure: Figure, known: Sequence[Figure], *, each_once: bool = True) -> list[Figure]:
    """Amounts that can be added to the figure."""
    fits = [
        each if each.unit else replace(each, unit=figure.unit)
        for each in known
        if each.kind == figure.kind == "amount"
        and (each.dimension == figure.dimension or not each.unit)
    ]
    return (_distinct(fits) if each_once else fits)[: 3 * _MOST]


def _distinct(figures: Sequence[Figure]) -> list[Figure]:
    """Each value once, both ends of ranges."""
    seen: dict[tuple[float, str], Figure] = {}
    for each in figures:
        for one in dict.fromkeys((each.lower, each.higher)):
            seen.setdefault((one.base, one.dimension), one)
    return list(seen.values())


def _counts(own: Sequence[Figure]) -> list[Figure]:
    """How many, as the statement says: bare numbers, days, weeks, km; no money and no share."""
    amounts = (f for f in own if f.kind == "amount" and (not f.unit or f.unit[0].isalpha()))
    return [f for f in amounts if 1 < f.value <= 1000 and f.value % 1 == 0][:_MOST_COUNTS]

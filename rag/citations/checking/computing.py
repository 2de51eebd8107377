"""Figures that follow from others: sums, differences, products, shares and counts, recomputed."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

from rag.citations.checking.operands import Operands
from rag.text.amounts import UNIT_SIGNS, Figure, number_shown
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
_MOST = 14  # figures of one dimension that are combined
_MOST_COUNTS = 6
_GROUPS = ((2, 3 * _MOST), (3, _MOST))  # so many are summed, of so many
_MULTIPLES: dict[str, float] = all_meanings("multiples")
_JOINT: dict[str, float] = all_meanings("joint")
_PERIODS = {("year", "month"): 12, ("year", "week"): 52, ("week", "day"): 7, ("year", "day"): 365}
_Result = tuple[float, str]  # in the base unit of the figure, and how


@dataclass(frozen=True, slots=True)
class Sum:
    """A statement's figure beside those that it may follow from."""

    figure: Figure
    text: str
    own: Sequence[Figure]  # the others of the statement
    known: Sequence[Figure]  # these and those of its sources, the nearest first
    grounds: Operands


def compute(asked: Sum) -> str:
    """How a figure follows from others in a way that the words name; "" where it does not."""
    figure = asked.figure
    fits = (how for value, how in _results(asked) if abs(value - figure.base) <= _margin(figure))
    return next(fits, "")


def is_difference(figure: Figure, known: Sequence[Figure]) -> bool:
    """Whether it lies between two others, whatever words say so."""
    pairs = _pairs(_alike(figure, known))
    return any(abs(a.base - b.base - figure.base) <= _margin(figure) for a, b in pairs)


def _margin(figure: Figure) -> float:
    return _TOLERANCE * max(abs(figure.base), 1e-9)


def _results(asked: Sum) -> Iterator[_Result]:
    """Products as often as the statement itself says; the others where its words name them."""
    figure, text, own, known = asked.figure, asked.text, asked.own, asked.known
    amounts = [each for each in known if each.unit or not figure.unit or each not in own]
    same, counts = _alike(figure, amounts), _counts(own)
    named = _alike(figure, [each.figure for each in asked.grounds.named])
    if _SUM.search(text) and len(named) > 1:
        counts = []  # `the three plans together` are not three times one of them
    yield from _products(asked, same, counts)
    if _DIFFERENCE.search(text):
        pairs = _pairs(_alike(figure, amounts))
        yield from ((a.base - b.base, f"{a.shown} − {b.shown}") for a, b in pairs)
    if _SUM.search(text):
        yield from _sums(_alike(figure, amounts, each_once=False))
    is_share = _SHARE.search(text) or any(e.figure.unit == "%" for e in asked.grounds.named)
    shared = [each for each in same if (is_share or each in own) and each.unit != "%"]
    yield from _shares(shared, known)


def _products(asked: Sum, amounts: Sequence[Figure], counts: Sequence[Figure]) -> Iterator[_Result]:
    """So many times an amount, twice of it, or 100 days and a year of `€120 a day`."""
    said = [each.lowered for each in tokens(asked.text)]
    periods = {asked.figure.per, *(UNIT_SIGNS.get(each, "") for each in said)}
    for amount in amounts:
        times = [each.value for each in counts if each is not amount]
        taken = _MULTIPLES | _JOINT if _SUM.search(asked.text) else _MULTIPLES
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


def _shares(amounts: Sequence[Figure], known: Sequence[Figure]) -> Iterator[_Result]:
    """A percentage of an amount, off it or on top of it."""
    percents = [each for each in known if each.unit == "%"]
    for percent, each in product(percents, amounts):
        part = each.base * percent.value / 100
        yield part, f"{percent.shown} of {each.shown}"
        yield each.base - part, f"{each.shown} less {percent.shown}"
        yield each.base + part, f"{each.shown} and {percent.shown} of it"


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
    amounts = [each for each in known if each.kind == figure.kind == "amount"]
    fits = [each for each in amounts if each.dimension == figure.dimension]
    fits = fits or [replace(each, unit=figure.unit) for each in amounts if not each.unit]
    return (_distinct(fits) if each_once else fits)[: 3 * _MOST]


def _distinct(figures: Sequence[Figure]) -> list[Figure]:
    """Each value once."""
    return list({(each.base, each.dimension): each for each in figures}.values())


def _counts(own: Sequence[Figure]) -> list[Figure]:
    """How many, as the statement says: bare numbers, days, weeks, km; no money and no share."""
    amounts = (f for f in own if f.kind == "amount" and (not f.unit or f.unit[0].isalpha()))
    return [f for f in amounts if 1 < f.value <= 1000 and f.value % 1 == 0][:_MOST_COUNTS]

"""Figures that follow from others: sums, differences, products, shares and counts, recomputed."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations, permutations, product

from rag.text.amounts import Figure, number_shown
from rag.text.languages import told

# A bound is no difference: "more than 80", "5 or more".
_DIFFERENCE, _INCREASE, _DECREASE = (
    re.compile(
        rf"\b(?<!or )(?:{words})\b(?! than (?:[€$£]|EUR )?\d| als \d)",
        re.IGNORECASE,
    )
    for words in (
        "|".join(map(told, ("increases", "decreases", "differences"))),
        told("increases"),
        told("decreases"),
    )
)
_SUM = re.compile(rf"\b(?:{told('sums')})\b", re.IGNORECASE)
_TIMES = re.compile(rf"\b(?:{told('multiples')})\b|×|\dx\b", re.IGNORECASE)
_RATIO = re.compile(rf"\b(?:{told('ratios')})\b", re.IGNORECASE)
_SHARE = re.compile(rf"%|\b(?:{told('shares')})\b", re.IGNORECASE)
_OF = re.compile(r"(?:%|percent|prozent) (?:of|from|von|vom|der|des)\b", re.IGNORECASE)
_TOLERANCE = 0.005
_ROUGH = 0.06
_HALF = 0.5  # of a percentage that was worked out
_MOST = 14  # figures of one dimension that are combined
_GROUPS = ((2, 3 * _MOST), (3, _MOST), (4, 8))  # so many are summed, of so many
_FACTORS = (2.0, 3.0, 0.5, 12.0, 52.0, 7.0)
_Result = tuple[float, str]  # in the base unit of the figure, and how


def compute(figure: Figure, text: str, own: Sequence[Figure], known: Sequence[Figure]) -> str:
    """How a figure follows from known ones in a way that the words name; "" where it does not.

    `own` are the other figures of the statement, `known` these and those of its sources.
    """
    margin = _margin(figure, _ROUGH if figure.comparator == "~" else _TOLERANCE)
    exact = _clocks(known) if figure.kind == "clock" else _results(figure, text, own, known)
    found = (how for value, how in exact if abs(value - figure.base) <= margin)
    shares = _percentages(text, known) if figure.unit == "%" else ()
    rounded = (how for value, how in shares if abs(value - figure.value) <= max(_HALF, margin))
    return next(chain(found, rounded), "")


def adds_up(text: str) -> bool:
    """Whether words of a statement say that its figure is a sum."""
    return bool(_SUM.search(text))


def may_follow(figure: Figure, known: Sequence[Figure]) -> bool:
    """Whether it is the sum or difference of two figures, or one so many times or parted so often.

    No words name it, so that it proves nothing; but a reader may have worked it out.
    """
    same = [each.base for each in _alike(figure, known)]
    sums = (abs(one + sign * other) for one, other in combinations(same, 2) for sign in (1, -1))
    times = (each * by**sign for each in same for by in range(2, 13) for sign in (1, -1))
    return any(abs(each - abs(figure.base)) <= _margin(figure) for each in chain(sums, times))


def _margin(figure: Figure, tolerance: float = _TOLERANCE) -> float:
    return tolerance * max(abs(figure.base), 1e-9)


def _results(
    figure: Figure, text: str, own: Sequence[Figure], known: Sequence[Figure]
) -> Iterator[_Result]:
    """Products as often as the statement itself says; the others where its words name them."""
    amounts = [each for each in known if each.unit or not figure.unit or each not in own]
    same, counts = _alike(figure, amounts), _counts(own)
    factors = [*counts, *(_FACTORS if _TIMES.search(text) else ())]
    yield from _products(same, factors, known)
    if _DIFFERENCE.search(text):
        yield from ((a.base - b.base, f"{a.shown} − {b.shown}") for a, b in _pairs(same))
        yield from ((100 - each.base, f"100 − {each.shown}") for each in same if each.unit == "%")
    if figure.dimension == "time":
        times = _pairs([each for each in known if each.kind == "clock"][:_MOST])
        yield from ((3600 * (a.value - b.value), f"{b.shown} to {a.shown}") for a, b in times)
    if _SUM.search(text):
        yield from _sums(_alike(figure, amounts, each_once=False), counts)
    if figure.unit in ("", "×") and _RATIO.search(text):
        pairs = _pairs(_measured(known))
        yield from ((a.base / b.base, f"{a.shown} ÷ {b.shown}") for a, b in pairs)
    is_own = [each for each in same if each in own]
    yield from _shares(same if _SHARE.search(text) else is_own, known)


def _products(
    amounts: Sequence[Figure], factors: Sequence[float], known: Sequence[Figure]
) -> Iterator[_Result]:
    """So many times an amount, or 100 days of `€120 a day`."""
    for amount, many in product(amounts, factors):
        if many != amount.value:
            yield amount.base * many, f"{number_shown(many)} × {amount.shown}"
    for amount, each in product(amounts, known):
        if each.unit and each.unit == amount.per:
            yield amount.base * each.value, f"{each.shown} × {amount.shown}"


def _clocks(known: Sequence[Figure]) -> Iterator[_Result]:
    """So long before or after a time of day: `last admission is 45 minutes before closing`."""
    for start, span in product(known, known):
        if start.kind == "clock" and span.dimension == "time":
            yield start.value + span.base / 3600, f"{span.shown} after {start.shown}"
            yield start.value - span.base / 3600, f"{span.shown} before {start.shown}"


def _shares(same: Sequence[Figure], known: Sequence[Figure]) -> Iterator[_Result]:
    """A percentage of an amount, or off it."""
    percents = [each for each in known if each.unit == "%"]
    for percent, amount in product(percents, (each for each in same if each.unit != "%")):
        part = amount.base * percent.value / 100
        yield part, f"{percent.shown} of {amount.shown}"
        yield amount.base - part, f"{amount.shown} less {percent.shown}"


def _sums(same: Sequence[Figure], counts: Sequence[float]) -> Iterator[_Result]:
    """Of two to four amounts, or of amounts so many times: `240 + 2 × 45`, `2 × (6.50 + 3.20)`."""
    for count, most in _GROUPS:
        for group in combinations(same[:most], count):
            yield sum(each.base for each in group), " + ".join(each.shown for each in group)
    for many in counts:
        shown = number_shown(many)
        for one, other in permutations(same[:_MOST], 2):
            yield one.base + many * other.base, f"{one.shown} + {shown} × {other.shown}"
            yield many * (one.base + other.base), f"{shown} × ({one.shown} + {other.shown})"


def _percentages(text: str, known: Sequence[Figure]) -> Iterator[_Result]:
    """What share one amount is of another, or how much more or less, as the words say.

    What is more is so by a share of the lower of both, what is less by one of the higher.
    """
    is_change = bool(_DIFFERENCE.search(text))
    is_more, is_less = bool(_INCREASE.search(text)), bool(_DECREASE.search(text))
    for high, low in _pairs(_measured(known)):
        ratio = low.base / high.base
        shares = (ratio, 1 / ratio) if _OF.search(text) else ()
        rise = (1 / ratio - 1,) if is_change and is_more >= is_less else ()
        fall = (1 - ratio,) if is_change and is_less >= is_more else ()
        for each in (*shares, *rise, *fall):
            yield 100 * each, f"{number_shown(100 * each)} % from {low.shown} and {high.shown}"


def _pairs(figures: Sequence[Figure]) -> Iterator[tuple[Figure, Figure]]:
    """Two of one dimension, the higher first."""
    for one, other in combinations(figures, 2):
        if one.dimension == other.dimension:
            yield (one, other) if one.base >= other.base else (other, one)


def _measured(known: Sequence[Figure]) -> list[Figure]:
    """Amounts that one may be divided by another of."""
    amounts = [each for each in known if each.kind == "amount" and each.unit not in ("", "%")]
    return [each for each in _distinct(amounts) if each.base > 0][:_MOST]


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


def _counts(own: Sequence[Figure]) -> list[float]:
    """How many, as the statement says: bare numbers, days, weeks, km; no money and no share."""
    amounts = (f for f in own if f.kind == "amount" and (not f.unit or f.unit[0].isalpha()))
    return [f.value for f in amounts if 1 < f.value <= 1000 and f.value % 1 == 0]

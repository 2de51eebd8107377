"""Figures that follow from others: sums, differences, products, shares and counts, recomputed."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from rag.text.amounts import Figure, number_shown

_DIFFERENCE = re.compile(
    r"\b(?<!or )(?:more|less|fewer|difference|differs?|gap|extra|remain\w*|left|leaves?|minus|"
    r"save[sd]?|saving|heavier|lighter|longer|shorter|larger|smaller|faster|slower|cheaper|higher|"
    r"lower|taller|wider|deeper|dearer|older|newer|later|earlier|ahead|mehr|weniger|unterschied|"
    r"differenz|länger|kürzer|schwerer|leichter|teurer|billiger|günstiger|größer|kleiner|höher|"
    r"niedriger|später|früher|schneller|langsamer|übrig|bleiben|bleibt|spart)\b"
    # a bound, not a difference: "more than 80", "5 or more"
    r"(?! than (?:[€$£]|EUR )?\d| als \d)",
    re.IGNORECASE,
)
_SPAN = re.compile(r"\b(?:open|runs?|lasts?|from|between|a day|täglich|geöffnet)\b", re.IGNORECASE)
_SUM = re.compile(
    r"\b(?:total|altogether|together|sum|sums|combined|overall|in all|add(?:s|ed)? up|plus|both|"
    r"all (?:two|three|four|five)|comes? to|come to|make|makes|would get|separately|"
    r"insgesamt|zusammen|gesamt\w*|summe|also)\b",
    re.IGNORECASE,
)
_TIMES = re.compile(
    r"\b(?:twice|double[ds]?|triple|half|as (?:many|much)|doppelt|dreifach|halb\w*|"
    r"yearly|annually|monthly|weekly|jährlich|monatlich|a year|per year|pro jahr)\b|×|\dx\b",
    re.IGNORECASE,
)
_RATIO = re.compile(r"\b(?:times|twice|double|half|mal|doppelt\w*|[a-z]+fach)\b", re.IGNORECASE)
_SHARE = re.compile(
    r"%|\b(?:percent|prozent|discount|off|rabatt|therefore|would|costs? you|half|pay|zahl\w*)\b",
    re.IGNORECASE,
)
_TOLERANCE = 0.005
_ROUGH = 0.06
_MOST = 14  # figures of one dimension that are combined
_FACTORS = (2.0, 3.0, 0.5, 12.0, 52.0, 7.0)


def is_computation(text: str) -> bool:
    """Whether the words say that a figure was worked out from others."""
    return bool(_DIFFERENCE.search(text) or _SUM.search(text))


def compute(figure: Figure, text: str, own: Sequence[Figure], known: Sequence[Figure]) -> str:
    """How a figure follows from known ones in a way that the words name; "" where it does not.

    `own` are the other figures of the statement, `known` these and those of its sources.
    """
    ways = (*_WAYS,)
    found = (how for way in ways for how in way(figure, text, own, known))
    return next(found, "")


def what_it_gives(text: str, known: Sequence[Figure], figure: Figure) -> str:
    """What the named computation gives of the two nearest operands: `12 − 5 = 7`."""
    same = [each for each in _alike(figure, known) if each.unit]
    if len(same) < 2:
        return ""
    high, low = sorted(same[:2], key=lambda each: -each.base)
    scale = figure.base / figure.value if figure.value else 1.0
    is_difference = bool(_DIFFERENCE.search(text))
    value = (high.base - low.base if is_difference else high.base + low.base) / scale
    sign = "−" if is_difference else "+"
    return f"{high.shown} {sign} {low.shown} = {number_shown(value)} {figure.unit}".strip()


# ── Ways ─────────────────────────────────────────────────────────────────────────────────────


def _differences(
    figure: Figure, text: str, own: Sequence[Figure], known: Sequence[Figure]
) -> Iterator[str]:
    if _DIFFERENCE.search(text):
        for one, other in combinations(_alike(figure, known), 2):
            high, low = sorted((one, other), key=lambda each: -each.base)
            if _is(high.base - low.base, figure):
                yield f"{high.shown} − {low.shown}"


def _spans(
    figure: Figure, text: str, own: Sequence[Figure], known: Sequence[Figure]
) -> Iterator[str]:
    """Hours between two times of day."""
    clocks = [each for each in known if each.kind == "clock"]
    if figure.dimension == "time" and _SPAN.search(text):
        for one, other in combinations(clocks[:_MOST], 2):
            if _is(3600 * abs(one.value - other.value), figure):
                yield f"{one.shown} to {other.shown}"


def _sums(
    figure: Figure, text: str, own: Sequence[Figure], known: Sequence[Figure]
) -> Iterator[str]:
    """Of two to four amounts, or of amounts so many times."""
    if not _SUM.search(text):
        return
    same = _alike(figure, known)
    for count, most in ((2, 3 * _MOST), (3, _MOST), (4, 8)):
        for group in combinations(same[:most], count):
            if _is(sum(each.base for each in group), figure):
                yield " + ".join(each.shown for each in group)
    for many in _counts(own):
        yield from _multiples(figure, many, same[:_MOST])


def _multiples(figure: Figure, many: float, same: Sequence[Figure]) -> Iterator[str]:
    """`240 + 2 × 45`, `2 × (6.50 + 3.20)`."""
    for one, other in combinations(same, 2):
        for single, several in ((one, other), (other, one)):
            if _is(single.base + many * several.base, figure):
                yield f"{single.shown} + {number_shown(many)} × {several.shown}"
        if _is(many * (one.base + other.base), figure):
            yield f"{number_shown(many)} × ({one.shown} + {other.shown})"


def _products(
    figure: Figure, text: str, own: Sequence[Figure], known: Sequence[Figure]
) -> Iterator[str]:
    """An amount so many times, as often as the statement itself says."""
    factors = [*_counts(own), *(_FACTORS if _TIMES.search(text) else ())]
    for amount in _alike(figure, known):
        for factor in factors:
            if (
                amount.unit == figure.unit
                and amount.value != factor
                and _is(amount.base * factor, figure)
            ):
                yield f"{number_shown(factor)} × {amount.shown}"


def _ratios(
    figure: Figure, text: str, own: Sequence[Figure], known: Sequence[Figure]
) -> Iterator[str]:
    """How often one amount goes into another: `five times`, `twice`."""
    if figure.unit not in ("", "×") or not _RATIO.search(text):
        return
    amounts = _distinct([each for each in known if each.kind == "amount" and each.unit])[:_MOST]
    for one, other in combinations(amounts, 2):
        if one.dimension == other.dimension and one.base and other.base:
            high, low = sorted((one, other), key=lambda each: -each.base)
            if _is(high.base / low.base, figure):
                yield f"{high.shown} ÷ {low.shown}"


def _shares(
    figure: Figure, text: str, own: Sequence[Figure], known: Sequence[Figure]
) -> Iterator[str]:
    """A percentage of an amount, or off it."""
    percents = [each for each in known if each.unit == "%"]
    if not _SHARE.search(text):
        return
    for percent in percents:
        for amount in _alike(figure, known):
            part = amount.base * percent.value / 100
            if amount.unit == "%":
                continue
            if _is(part, figure):
                yield f"{percent.shown} of {amount.shown}"
            if _is(amount.base - part, figure):
                yield f"{amount.shown} less {percent.shown}"


def _percentages(
    figure: Figure, text: str, own: Sequence[Figure], known: Sequence[Figure]
) -> Iterator[str]:
    """What share one amount is of another, or how much more or less."""
    if figure.unit != "%":
        return
    amounts = _distinct([e for e in known if e.kind == "amount" and e.unit not in ("", "%")])
    for one, other in combinations(amounts[:_MOST], 2):
        if one.dimension == other.dimension and one.base and other.base:
            low, high = sorted((one.base, other.base))
            for ratio in (low / high, high / low, 1 - low / high, high / low - 1):
                if abs(100 * ratio - figure.value) <= _margin(figure):
                    yield f"{number_shown(100 * ratio)} % from {one.shown} and {other.shown}"


def _margin(figure: Figure) -> float:
    """How far a percentage may be off: half of one, more where it is called approximate."""
    return max(0.5, _ROUGH * figure.value) if figure.comparator == "~" else 0.5


_WAYS = (_products, _differences, _spans, _sums, _ratios, _shares, _percentages)


def _alike(figure: Figure, known: Sequence[Figure]) -> list[Figure]:
    """Distinct amounts that can be added to the figure."""
    fits = [
        each if each.unit else replace(each, unit=figure.unit)
        for each in known
        if each.kind == figure.kind == "amount"
        and (each.dimension == figure.dimension or not each.unit)
        and each.kind == "amount"
    ]
    return _distinct(fits)[: 3 * _MOST]


def _distinct(figures: Sequence[Figure]) -> list[Figure]:
    seen: dict[tuple[float, str], Figure] = {}
    for each in figures:
        for one in _ends(each):
            seen.setdefault((one.base, one.dimension), one)
    return list(seen.values())


def _ends(figure: Figure) -> Iterator[Figure]:
    yield figure.lower
    if figure.upper is not None:
        yield figure.higher


def _counts(own: Sequence[Figure]) -> list[float]:
    """How many, as the statement says: bare numbers, and days, weeks and the like."""
    return [f.value for f in own if f.kind == "amount" and 1 < f.value <= 1000 and f.value % 1 == 0]


def _is(value: float, figure: Figure) -> bool:
    wanted = figure.base
    margin = _ROUGH if figure.comparator == "~" else _TOLERANCE
    return abs(value - wanted) <= margin * max(abs(wanted), 1e-9)

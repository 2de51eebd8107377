"""Read the figures of a text with unit, comparator and range; also numbers written in words."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from rag.language.amounts import (
    LETTERS_OF_MONEY,
    POWER,
    UNIT_SIGNS,
    Figure,
    clocks,
    dates,
    power_of,
    read_digits,
)
from rag.language.lazy_patterns import re, regex
from rag.language.words import Language, all_meanings, all_words, any_of, language_of, phrases

_DIGITS = r"\d+(?:[.,'’\u00a0\u2009\u202f]\d+)*"
_UNIT = any_of(UNIT_SIGNS)
_CURRENCY = r"(?:EUR|USD|GBP|CHF|SEK|NOK|JPY|[€$£¥])"
_NUMBERS: dict[str, float] = all_meanings("numbers")
_FRACTIONS: dict[str, float] = all_meanings("fractions")
_ORDINALS: dict[str, int] = all_meanings("ordinals")
_COMPARATORS: dict[str, str] = all_meanings("comparators")
_COMPARATORS_BEHIND: dict[str, str] = all_meanings("comparators_behind")
_SCALES: dict[str, float] = all_meanings("scales")
_AMOUNT = re.compile(
    rf"(?:(?P<currency>{_CURRENCY})[ \u00a0]?)?"
    rf"(?<![\w.,:/])(?P<sign>[-−+±]|(?:{phrases('minus')}) )?(?P<number>{_DIGITS})"
    rf"(?P<power>{POWER})?"
    rf"(?P<ordinal>{phrases('ordinal_endings')})?"
    rf"(?:[ \u00a0-](?P<scale>{any_of(_SCALES)})\b\.?"
    rf"|(?(currency)(?P<letter>(?-i:{any_of(LETTERS_OF_MONEY)}))\b))?"
    rf"(?:[ \u00a0\u202f-]?(?P<unit>{_UNIT})(?![\w/]))?",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+")
_HUNDREDS = any_of(word for word, value in _NUMBERS.items() if value >= 100)
_TENS = any_of(word for word, value in _NUMBERS.items() if 20 <= value < 100)
_ONES = any_of(word for word, value in _NUMBERS.items() if value < 10)
# These are ordinals only where something is counted off.
_OFTEN_NONE = all_words("often_no_ordinal")
_HALF_MORE = rf"(?:{phrases('half_more')})\b"
_SPELLED_OUT = regex.compile(
    rf"(?<!\p{{L}})(?:(?P<count>(?:(?:{_TENS})[ -](?:{_ONES})|{any_of(_NUMBERS)})"
    rf"(?:[ -](?:{_HUNDREDS})(?:[ -](?:{_ONES}))?(?!\p{{L}}))*+)(?!\p{{L}})"
    rf"(?:[ -](?P<fraction>{any_of(_FRACTIONS)})(?!\p{{L}}))?"
    rf"|(?P<half>{phrases('half')})(?: (?:{phrases('articles')}))?(?= (?:{_UNIT})(?![\w/]))"
    rf"|(?:{phrases('articles')})(?= (?:{_UNIT}){_HALF_MORE})"
    rf"|(?P<ordinal>{any_of(_ORDINALS.keys() - _OFTEN_NONE)}|(?:{any_of(_OFTEN_NONE)})"
    rf"(?=\W+(?:{phrases('counted_off')})\b))\b)"
    rf"(?P<more>{_HALF_MORE})?(?:[ \u00a0-]{{1,2}}(?P<unit>{_UNIT})(?![\w/]))?"
    rf"(?P<more>{_HALF_MORE})?",
    regex.IGNORECASE,
)
_EXACTLY = re.compile(rf"\b(?:{phrases('exactly')})\W+$", re.IGNORECASE)
_AND = phrases("ands")
_RANGE = re.compile(
    rf"[ \u00a0]?(?:{phrases('up_to')}|–|—|-|{_AND}|{phrases('ors')})[ \u00a0]?", re.IGNORECASE
)
_TIMES = re.compile(r"[ \u00a0]?[×x*][ \u00a0]?$")
_PER = re.compile(
    rf"[ \u00a0]?(?:/|(?:{phrases('per')}) )[ \u00a0]?(?P<per>{_UNIT}|{phrases('nights')})\b",
    re.IGNORECASE,
)
_CODE_BEFORE = re.compile(r"[^\W\d_][^\W_]*[-_/.]?$")


@lru_cache(maxsize=8192)
def read_figures(text: str, language: Language | None = None) -> tuple[Figure, ...]:
    """Return the figures of a text in order, without model codes, versions and addresses."""
    days = list(dates(text))
    days += _without_overlaps(clocks(text), days)
    amounts = _without_overlaps(_written(text, language or language_of(text)), days)
    amounts += _without_overlaps(_spelled(text), [*days, *amounts])
    amounts.sort(key=lambda figure: figure.start)
    joined = _with_ranges(text, _with_units_of_products(text, amounts))
    bounded = (_with_comparator(text, figure) for figure in joined)
    return tuple(sorted([*days, *bounded], key=lambda figure: figure.start))


def _without_overlaps(figures: Iterable[Figure], taken: Sequence[Figure]) -> list[Figure]:
    """Return the figures that share no character with the taken ones."""
    return [
        figure
        for figure in figures
        if not any(other.start < figure.end and figure.start < other.end for other in taken)
    ]


def _written(text: str, language: Language) -> Iterator[Figure]:
    for match in _AMOUNT.finditer(text):
        start, end = match.span()
        number = match["number"]
        rest = text[match.end("number") : match.end("number") + 1]
        before = text[max(0, match.start("number") - 12) : match.start("number")]
        is_code = bool(_CODE_BEFORE.search(before)) and not match["currency"]
        letter = match["letter"] or ""
        glued = rest.isalpha() and not (match["unit"] or match["ordinal"] or letter)
        read = _value(number, language)
        if glued or is_code or read is None:
            continue
        is_range = text[:start][-4:].rstrip()[-1:].isdigit()
        is_negative = (match["sign"] or "+") not in "+±" and not is_range
        power = match["power"] or ""
        if power[:1] and power[0] not in "×x·*⋅ \u00a0":  # 10⁶
            read = 1.0
        value = read * 10.0 ** power_of(power and "10" + power[-4:]) * (-1 if is_negative else 1)
        unit = _sign(match["currency"] or match["unit"] or "")
        kind = "ordinal" if match["ordinal"] else "amount"
        scale = float(_SCALES.get((match["scale"] or "").lower(), LETTERS_OF_MONEY.get(letter, 1)))
        yield Figure(value * scale, unit, kind=kind, start=start, end=end, scale=scale)


def _value(number: str, language: Language) -> float | None:
    """Return the value by the language's convention.

    `1,500` is a thousand and a half in English, `1.500` in German; else it has a decimal sign.
    """
    if number.count(".") > 1 and (language.decimal_point == "." or number.count(".") > 2):
        return None  # a version, an address
    read = read_digits(number, decimal=language.decimal_point)
    if read is None:
        return float(number) if number.isdecimal() else None
    return float(read[0])


def _sign(unit: str) -> str:
    return UNIT_SIGNS.get(unit.lower(), unit.lower())


def _spelled(text: str) -> Iterator[Figure]:
    """Yield the numbers, fractions and ordinals that are written in words.

    Examples: `twelve business days`, `four fifths`, `half a kilogram`, `an hour and a half`,
    `tenth`.
    """
    for match in _SPELLED_OUT.finditer(text):
        start, end = match.span()
        words = _WORD.findall((match["count"] or match["ordinal"] or "").lower())
        if match["ordinal"]:
            end = match.end("ordinal")
            yield Figure(float(_ORDINALS[words[0]]), kind="ordinal", start=start, end=end)
            continue
        value = _counted(words) if words else 0.5 if match["half"] else 1.0
        value *= _FRACTIONS[match["fraction"].lower()] if match["fraction"] else 1
        value += sum(
            0.25 if "quart" in more or "viertel" in more else 0.5 for more in match.captures("more")
        )
        unit = _sign(match["unit"] or "")
        is_one = value == 1 and len(words) == 1 and not match["fraction"]
        if unit or not is_one or _EXACTLY.search(text[:start][-12:]):
            yield Figure(value, unit, start=start, end=end)


def _counted(words: Sequence[str]) -> float:
    """Return the value of number words: `twenty five`, `two hundred`."""
    value = 0.0
    for number in map(_NUMBERS.__getitem__, words):
        value = value * number if value and number >= 100 else value + number
    return value


def _with_units_of_products(text: str, figures: Sequence[Figure]) -> list[Figure]:
    """Give each factor of `206 × 148 × 42 mm` the unit that stands behind the last."""
    results = list(figures)
    for position in range(len(results) - 2, -1, -1):
        one, other = results[position : position + 2]
        if not one.unit and other.unit and _TIMES.fullmatch(text[one.end : other.start]):
            results[position] = replace(one, unit=other.unit)
    return results


_BETWEEN = re.compile(rf"\b(?:{phrases('between')}) $", re.IGNORECASE)


def _with_ranges(text: str, figures: Sequence[Figure]) -> list[Figure]:
    """Join ranges into one figure with two ends: `4 to 6 days`, `10–20 s`."""
    results: list[Figure] = []
    for figure in figures:
        last = results[-1] if results else None
        between = text[last.end : figure.start] if last else ""
        if (
            last is not None
            and last.kind == figure.kind == "amount"
            and last.upper is None
            and last.unit in ("", figure.unit)
            and _RANGE.fullmatch(between)
            and (last.value < abs(figure.value))
            and (not re.search(_AND, between) or _BETWEEN.search(text[: last.start]))
        ):
            value = replace(figure, value=last.value, upper=abs(figure.value), start=last.start)
            results[-1] = value
        else:
            results.append(figure)
    return results


_BEFORE = re.compile(
    rf"(?:^|[\s(])(?P<words>{any_of(_COMPARATORS)})"
    rf"(?: (?:{phrases('articles')}))?[ \u00a0]?$",
    re.IGNORECASE,
)
_BEHIND = re.compile(rf" (?P<words>{any_of(_COMPARATORS_BEHIND)})\b", re.IGNORECASE)


def _with_comparator(text: str, figure: Figure) -> Figure:
    """Return the figure with the comparator before or behind it, and the unit it is counted per."""
    before = _BEFORE.search(text[max(0, figure.start - 24) : figure.start])
    behind = _BEHIND.match(text, figure.end)
    comparator = _COMPARATORS[before["words"].lower()] if before else ""
    if behind and not comparator:
        comparator = _COMPARATORS_BEHIND[behind["words"].lower()]
    per = _PER.match(text, figure.end)
    counted = _sign(per["per"]) if per and figure.unit else ""
    return replace(figure, comparator=comparator, per=counted)

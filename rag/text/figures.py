"""The figures of a text: with unit, comparator and range; spelled numbers, fractions, ordinals."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from rag.text.amounts import UNIT_SIGNS, Figure
from rag.text.dates import clocks, dates
from rag.text.languages import GERMAN, Language, all_meanings, any_of
from rag.text.late import re
from rag.text.words import language_of

_DIGITS = r"\d+(?:[.,'’\u00a0\u202f]\d+)*"
_UNIT = any_of(UNIT_SIGNS)
_CURRENCY = r"(?:EUR|USD|GBP|CHF|SEK|NOK|JPY|[€$£¥])"
_SPELLED: dict[str, float] = all_meanings("numbers")
_SPELLED_FRACTIONS: dict[str, float] = all_meanings("fractions")
_SPELLED_ORDINALS: dict[str, int] = all_meanings("ordinals")
_COMPARATORS: dict[str, str] = all_meanings("comparators")
_COMPARATORS_BEHIND: dict[str, str] = all_meanings("comparators_behind")
_AMBIGUOUS = {"one", "eins", "second", "third", "first", "erste", "ersten", "erster", "erstes"}

_EXACTLY = {"only", "just", "exactly", "nur", "genau"}  # before a word that may be no figure
_COUNTED_OFF = {"day", "week", "month", "year", "time", "tag", "woche", "monat", "jahr"}


_SCALES = {word: value for word, value in _SPELLED.items() if value >= 1e3}
_AMOUNT = re.compile(
    rf"(?:(?P<currency>{_CURRENCY})[ \u00a0]?)?"
    rf"(?<![\w.,:/])(?P<sign>[-−+±]|minus )?(?P<number>{_DIGITS})"
    rf"(?P<ordinal>st|nd|rd|th)?"
    rf"(?:[ \u00a0-](?P<scale>{any_of(_SCALES)})\b)?"
    rf"(?:[ \u00a0\u202f-]?(?P<unit>{_UNIT})(?![\w/]))?",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+")
_UNIT_BEHIND = re.compile(rf"[ \u00a0-]{{1,2}}(?P<unit>{_UNIT})(?![\w/])", re.IGNORECASE)
_HALF_MORE = re.compile(r" and a (?:half|quarter)\b|einhalb\b", re.IGNORECASE)
_RANGE = re.compile(r"[ \u00a0]?(?:to|bis|–|—|-|and|und|or|oder)[ \u00a0]?", re.IGNORECASE)
_TIMES = re.compile(r"[ \u00a0]?[×x*][ \u00a0]?$")
_PER = re.compile(
    rf"[ \u00a0]?(?:/|per |a |an |each |every |pro |je |im |am )[ \u00a0]?"
    rf"(?P<per>{_UNIT}|night|nacht)\b",
    re.IGNORECASE,
)
_CODE_BEFORE = re.compile(r"[^\W\d_][^\W_]*[-_/.]?$")


@lru_cache(maxsize=8192)
def read_figures(text: str, language: Language | None = None) -> tuple[Figure, ...]:
    """The figures of a text in order; model codes, versions and addresses are none."""
    days = list(dates(text))
    days += _beside(clocks(text), days)
    amounts = _beside(_written(text, language or language_of(text)), days)
    amounts += _beside(_spelled(text), [*days, *amounts])
    amounts.sort(key=lambda figure: figure.start)
    joined = _with_ranges(text, _with_units_of_products(text, amounts))
    bounded = (_bounded(text, figure) for figure in joined)
    return tuple(sorted([*days, *bounded], key=lambda figure: figure.start))


def _beside(figures: Iterable[Figure], taken: Sequence[Figure]) -> list[Figure]:
    """Those that share no character with one that is taken."""
    return [
        each
        for each in figures
        if not any(other.start < each.end and each.start < other.end for other in taken)
    ]


def _written(text: str, language: Language) -> Iterator[Figure]:
    for found in _AMOUNT.finditer(text):
        start, end = found.span()
        number = found["number"]
        rest = text[found.end("number") : found.end("number") + 1]
        before = text[max(0, found.start("number") - 12) : found.start("number")]
        is_code = bool(_CODE_BEFORE.search(before)) and not found["currency"]
        glued = rest.isalpha() and not (found["unit"] or found["ordinal"])
        if glued or is_code or number.count(".") > 1:
            continue
        value = _value(number, language)
        if (found["sign"] or "").lower() in ("-", "−", "minus ") and not text[:start].rstrip()[
            -1:
        ].isdigit():
            value = -value
        unit = _sign(found["currency"] or found["unit"] or "")
        kind = "ordinal" if found["ordinal"] else "amount"
        scale = _SCALES.get((found["scale"] or "").lower(), 1.0)
        yield Figure(value * scale, unit, kind=kind, start=start, end=end, scale=scale)


def _value(number: str, language: Language) -> float:
    """`1,500` is a thousand and a half in English, `1.500` in German; else a decimal sign."""
    plain = re.sub(r"['’\u00a0\u202f]", "", number)
    grouping = "." if language is GERMAN else ","
    decimal = "," if language is GERMAN else "."
    if re.fullmatch(rf"\d{{1,3}}(?:\{grouping}\d{{3}})+(?:\{decimal}\d+)?", plain):
        plain = plain.replace(grouping, "")
    plain = plain.replace(",", ".")
    whole, _, digits = plain.rpartition(".") if plain.count(".") > 1 else ("", "", plain)
    return float(whole.replace(".", "") + digits)


def _sign(unit: str) -> str:
    return UNIT_SIGNS.get(unit.lower(), unit.lower())


def _with_unit_behind(text: str, figure: Figure) -> Figure:
    found = _UNIT_BEHIND.match(text, figure.end)
    if found is None:
        return figure
    return replace(figure, unit=_sign(found["unit"]), end=found.end())


_Word = tuple[str, int, int]  # in lower case, with its place
_NO_WORD: _Word = ("", 0, 0)


def _spelled(text: str) -> Iterator[Figure]:
    """`twelve business days`, `four fifths`, `half a kilogram`, `an hour and a half`, `tenth`."""
    words = [(found[0].lower(), found.start(), found.end()) for found in _WORD.finditer(text)]
    past = 0
    for at, (_, start, _) in enumerate(words):
        figure = None if start < past else _spelled_at(text, words, at)
        if figure is not None:
            past = figure.end
            yield figure


def _spelled_at(text: str, words: Sequence[_Word], at: int) -> Figure | None:
    word, start, end = words[at]
    following = words[at + 1] if at + 1 < len(words) else _NO_WORD
    if word in _SPELLED and following[0] in _SPELLED_FRACTIONS:
        value = _SPELLED[word] * _SPELLED_FRACTIONS[following[0]]
        return Figure(value, start=start, end=following[2])
    if word in _SPELLED:
        return _cardinal(text, words, at)
    if word in ("half", "halbe", "halben", "halbes"):
        return _half_of(text, start, end)
    if word in ("a", "an") and following[0] in UNIT_SIGNS and _HALF_MORE.match(text, following[2]):
        one = Figure(1.0, _sign(following[0]), start=start, end=following[2])
        return _with_half(text, one)
    if word in _SPELLED_ORDINALS and (word not in _AMBIGUOUS or following[0] in _COUNTED_OFF):
        return Figure(float(_SPELLED_ORDINALS[word]), kind="ordinal", start=start, end=end)
    return None


def _cardinal(text: str, words: Sequence[_Word], at: int) -> Figure | None:
    word, start, _ = words[at]
    value, end = _compound(words, at)
    figure = _with_half(text, _with_unit_behind(text, Figure(value, start=start, end=end)))
    if not figure.unit:  # `two and a half hours`
        figure = _with_unit_behind(text, figure)
    before = words[at - 1][0] if at else ""
    is_figure = figure.unit or word not in _AMBIGUOUS or before in _EXACTLY
    return figure if is_figure else None


def _compound(words: Sequence[_Word], at: int) -> tuple[float, int]:
    """`twenty five`, `two hundred`: the value, and where it ends."""
    value = _SPELLED[words[at][0]]
    end = words[at][2]
    while at + 1 < len(words) and words[at + 1][0] in _SPELLED and words[at + 1][1] - end == 1:
        following = _SPELLED[words[at + 1][0]]
        if following >= 100:
            value *= following
        elif value >= 20 and following < 10:
            value += following
        else:
            break
        at += 1
        end = words[at][2]
    return value, end


def _with_half(text: str, figure: Figure) -> Figure:
    found = _HALF_MORE.match(text, figure.end)
    if found is None:
        return figure
    more = 0.25 if "quarter" in found[0] else 0.5
    return replace(figure, value=figure.value + more, end=found.end())


def _half_of(text: str, start: int, end: int) -> Figure | None:
    found = re.compile(rf" (?:an? |eine[ns]? )?(?P<unit>{_UNIT})(?![\w/])", re.I).match(text, end)
    if found is None:
        return None
    return Figure(0.5, _sign(found["unit"]), start=start, end=found.end())


def _with_units_of_products(text: str, figures: Sequence[Figure]) -> list[Figure]:
    """`206 × 148 × 42 mm`: the unit stands once, behind the last."""
    found = list(figures)
    for at in range(len(found) - 2, -1, -1):
        one, other = found[at], found[at + 1]
        if not one.unit and other.unit and _TIMES.fullmatch(text[one.end : other.start]):
            found[at] = replace(one, unit=other.unit)
    return found


_BETWEEN = re.compile(r"\b(?:between|zwischen) $", re.IGNORECASE)


def _with_ranges(text: str, figures: Sequence[Figure]) -> list[Figure]:
    """`4 to 6 days`, `10–20 s`: one figure with two ends."""
    found: list[Figure] = []
    for figure in figures:
        last = found[-1] if found else None
        between = text[last.end : figure.start] if last else ""
        if (
            last is not None
            and last.kind == figure.kind == "amount"
            and last.upper is None
            and last.unit in ("", figure.unit)
            and _RANGE.fullmatch(between)
            and (last.value < abs(figure.value))
            and (not re.search(r"and|und", between) or _BETWEEN.search(text[: last.start]))
        ):
            value = replace(figure, value=last.value, upper=abs(figure.value), start=last.start)
            found[-1] = value
        else:
            found.append(figure)
    return found


_BEFORE = re.compile(
    rf"(?:^|[\s(])(?P<said>{any_of(_COMPARATORS)})"
    r"(?: the| a| an| einer| einem| dem| der)?[ \u00a0]?$",
    re.IGNORECASE,
)
_BEHIND = re.compile(rf" (?P<said>{any_of(_COMPARATORS_BEHIND)})\b", re.IGNORECASE)


def _bounded(text: str, figure: Figure) -> Figure:
    """The figure with the comparator before or behind it, and what it is counted per."""
    before = _BEFORE.search(text[max(0, figure.start - 24) : figure.start])
    behind = _BEHIND.match(text, figure.end)
    comparator = _COMPARATORS[before["said"].lower()] if before else ""
    if behind and not comparator:
        comparator = _COMPARATORS_BEHIND[behind["said"].lower()]
    per = _PER.match(text, figure.end)
    counted = _sign(per["per"]) if per and figure.unit else ""
    return replace(figure, comparator=comparator, per=counted)

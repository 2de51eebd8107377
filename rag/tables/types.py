"""What the cells of a column are, by evidence from all of them.

Plan: each distinct text is read in every way that it allows; the type that reads almost all of
them wins. What one cell leaves open (1,234 or 3/4/2025) the other cells of its column decide.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from rag.language.amounts import (
    CURRENCIES,
    NUMERIC_DATE,
    UNIT_SIGNS,
    decimal_sign,
    grouped_by_blanks,
    parse_figure,
    read_date,
    sign_of,
)
from rag.language.grids import is_blank, is_formula
from rag.language.languages import all_words, phrases
from rag.records import ColumnType

ROW, TOTAL = "row", "is_total"  # what a file of rows holds beside its columns
ENOUGH = 0.85  # of the filled cells must read as a type
CURRENCY = "€$£¥₹"
ORDINAL = re.compile(rf"^(?:{phrases('ordinal_endings')})$", re.IGNORECASE)
DURATION = re.compile(r"\+?(?:(\d{1,3}):)?(\d{1,3}):(\d{2}(?:[.,]\d+)?)")
QUARTER = re.compile(
    rf"(?:(?P<y1>\d{{4}})[\s/-]*)?(?:Q|(?:{phrases('quarter')})\s)(?P<q>[1-4])"
    r"(?:[\s/-]*'?(?P<y2>\d{4}|\d\d))?",
    re.IGNORECASE,
)
YES, NO = all_words("yes"), all_words("no")
TRUE = YES | {"✓", "✔", "x"}
FALSE = NO | {"✗", "✘"}
MONEY = re.compile(rf"[{CURRENCY}]|\b(?:EUR|USD|GBP|CHF)\b")
CODE = re.compile(r"0\d+")
CellValue = float | int | bool | date | datetime | None


@dataclass(frozen=True, slots=True)
class ColumnReading:
    """How the texts of one column are to be read."""

    type: ColumnType
    read: Callable[[str], CellValue]
    unit: str = ""
    note: str = ""


def reading_of(
    texts: Sequence[str], header: str = "", decimal: str = "", *, is_typed: bool = False
) -> ColumnReading:
    """The way to read a column, from distinct texts of it.

    `decimal` is the decimal sign of its table where that is known; `is_typed`: its figures are the
    file's own and written in no convention.
    """
    filled = [t for t in map(str.strip, texts) if not is_blank(t) and not is_formula(t)]
    plain = ColumnReading(ColumnType.TEXT, lambda text: None)
    if not filled or any(CODE.fullmatch(text) for text in filled):
        return plain
    attempts: list[Callable[[Sequence[str]], ColumnReading]] = [
        _booleans, _quarters, _dates, _durations,
        lambda some: _numbers(some, header, decimal, is_typed),
    ]  # fmt: skip
    for attempt in attempts:
        reading = attempt(filled)
        hits = sum(1 for text in filled if reading.read(text) is not None)
        if hits >= ENOUGH * len(filled) and (hits == len(filled) or len(filled) > 3):
            return reading
    return plain


# ── Booleans, quarters, durations ────────────────────────────────────────────────────────────


def _booleans(filled: Sequence[str]) -> ColumnReading:
    lowered = {text.casefold() for text in filled}
    is_pair = lowered <= TRUE | FALSE and bool(lowered & TRUE)

    def read(text: str) -> CellValue:
        word = text.strip().casefold()
        return word in TRUE if is_pair and word in TRUE | FALSE else None

    return ColumnReading(ColumnType.BOOLEAN, read)


def _quarters(_filled: Sequence[str]) -> ColumnReading:
    def read(text: str) -> CellValue:
        match = QUARTER.fullmatch(text.strip())
        if not match:
            return None
        year = int(match["y1"] or match["y2"] or 0)
        return (year + 2000 if 0 < year < 100 else year) * 10 + int(match["q"])

    return ColumnReading(ColumnType.QUARTER, read)


def _durations(_filled: Sequence[str]) -> ColumnReading:
    def read(text: str) -> CellValue:
        match = DURATION.fullmatch(text.strip())
        if not match:
            return None
        hours, minutes, seconds = match.groups()
        return int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds.replace(",", "."))

    return ColumnReading(ColumnType.DURATION, read)


# ── Dates ────────────────────────────────────────────────────────────────────────────────────


def _dates(filled: Sequence[str]) -> ColumnReading:
    firsts, seconds, dotted = [], [], False
    for text in filled:
        match = NUMERIC_DATE.fullmatch(text)
        if match and len(match[1]) <= 2:
            firsts.append(int(match[1]))
            seconds.append(int(match[3]))
            dotted |= match[2] == "."
    month_first = bool(firsts) and not dotted and max(firsts) <= 12 and max(seconds) > 12
    is_open = bool(firsts) and not dotted and max(firsts) <= 12 and max(seconds) <= 12
    note = "read as day before month: nothing in the column says which" if is_open else ""
    return ColumnReading(
        ColumnType.DATE, lambda text: read_date(text, month_first=month_first), "", note
    )


# ── Numbers ──────────────────────────────────────────────────────────────────────────────────


def _numbers(filled: Sequence[str], header: str, decimal: str, is_typed: bool) -> ColumnReading:
    """Figures of one unit; what 1.234 is the column decides, or its table."""
    looked = filled[:5000]
    decimal = "." if is_typed else decimal_sign(looked) or decimal or _decimal_of_money(looked)
    blanks = grouped_by_blanks(looked)
    unread = ColumnReading(ColumnType.NUMBER, lambda text: None)

    def read(text: str) -> CellValue:  # a comma before three digits mostly groups
        figure = parse_figure(text, decimal=decimal, blanks=blanks)
        return figure.number if figure and (figure.exact or "," in text) else None

    units = [_unit_of(text, decimal, blanks) for text in looked]
    named = {sign_of(unit) for unit in units if unit}
    if len(named) > 1:
        return unread  # kg beside m: no sum means anything
    unit = max(units, key=len)
    if len(unit) == 1 and unit.isalpha() and "" in units:  # 12, 14A, 16: house numbers
        return unread
    return ColumnReading(ColumnType.NUMBER, read, unit or unit_in_header(header))


def _decimal_of_money(filled: Sequence[str]) -> str:
    """Money has no three decimals."""
    is_money = all(map(MONEY.search, filled))
    return "," if is_money and any("." in text for text in filled) else ""


def _unit_of(text: str, decimal: str, blanks: bool) -> str:
    figure = parse_figure(text, decimal=decimal, blanks=blanks)
    return "" if figure is None or ORDINAL.match(figure.unit) else figure.unit


def unit_in_header(header: str) -> str:
    """The unit that a column's name gives: "Weight (kg)", "Revenue in EUR", "Price €"."""
    match = re.search(r"[(\[]\s*([^)\]\d]{1,8}?)\s*[)\]]\s*$", header) or re.search(
        r"\b(?:in|\|)\s+(EUR|USD|GBP|CHF|JPY|kg|g|km|m|cm|mm|€|\$|£|%)\s*$|"
        r"[ _](EUR|USD|GBP|CHF|JPY|kg|km)$",
        header,
        re.IGNORECASE,
    )
    if match is None:
        readable = re.findall(r"[(\[]([^()\[\]\d]{1,8})[)\]]", header)  # "Torque (Nm) dry"
        named = [unit for unit in readable if unit.casefold() in UNIT_SIGNS]
        return next((sign for sign in CURRENCY if sign in header), named[0] if named else "")
    unit = (match[1] or match[match.re.groups]).strip()
    return sign_of(unit) if unit.casefold() in CURRENCIES else unit


def read_number(text: str, *, comma_is_decimal: bool = False) -> float | int | None:
    """A figure with sign, currency, unit, scale or ordinal; None where there is more than that."""
    figure = parse_figure(text, decimal="," if comma_is_decimal else ".")
    return None if figure is None else figure.number


def truth_of(value: object) -> bool | None:
    """Whether a value says yes or no; None where it says something else."""
    word = str(value).strip().casefold()
    if value is True or word in YES:
        return True
    return False if value is False or word in NO else None

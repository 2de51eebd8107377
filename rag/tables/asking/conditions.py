"""Conditions in a question: what is left out, yes and no, times, figures, from one to another."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from rag.records import ColumnType, TableColumn
from rag.tables.asking.question import FIGURES, ORDINAL, Question, number_in
from rag.tables.asking.words import (
    AND_UP_TO,
    BETWEEN,
    COMPARED,
    CURRENCIES,
    IDLE,
    LACKING,
    NOT,
    NUMBER_WORDS,
    OPERATORS,
    OR_LESS,
    OR_MORE,
)
from rag.tables.plan import Filter, Op, Part
from rag.tables.reading.types import MONTHS

QUARTER = re.compile(r"q([1-4])$")
SIGNS = {">=": Op.AT_LEAST, "<=": Op.AT_MOST, ">": Op.MORE, "<": Op.LESS}
SPELT = ("first", "second", "third", "fourth")
REACH = 3  # words between a figure and the column that it belongs to


def read_conditions(question: Question) -> None:
    """Find them, once columns and values are known."""
    _negations(question)
    _blanks(question)
    _yes_or_no(question)
    _times(question)
    _figures(question)
    _spans(question)
    _verbs(question)


def _negations(question: Question) -> None:
    """What stands behind "without", to the next word that begins another thought."""
    for match in NOT.finditer(question.masked):
        first, at = question.at(match.start()), question.at(match.end() - 1) + 1
        reach = at + 4
        named = {i for each in question.values for i in range(each.start, each.end)}
        named |= {i for each in question.columns for i in range(each.start, each.end)}
        end = at
        while end < min(reach, len(question.words)) and question.words[end] not in ("but", "aber"):
            reach += question.words[end] in ("and", "or", "und", "oder") or end in named
            end += 1
        question.negated |= set(range(at, end))
        if any(at <= each.start < end for each in question.values):
            question.use(first, at)


def _blanks(question: Question) -> None:
    """ "Without a price": where a column has empty cells, these."""
    for found in list(question.columns):
        at = found.start - 1
        at -= at > 0 and question.words[at] in ("a", "an", "any", "the")
        has_blanks = question.column(found.column).blanks > 0
        if at >= 0 and question.words[at] in LACKING and has_blanks:
            question.columns.remove(found)
            question.use(at, found.end)
            _condition(question, at, found.end, Filter(found.column, Op.BLANK))


def _yes_or_no(question: Question) -> None:
    """A column of yes and no that is named is a condition: "cancelled bookings"."""
    for found in list(question.columns):
        before = question.words[found.start - 1] if found.start else ""
        is_other = before in KEYS or question.words[found.end : found.end + 1] in (["is"], ["="])
        if is_other or question.column(found.column).type is not ColumnType.BOOLEAN:
            continue
        lacks = found.start in question.negated or before in ("non", "no", "nicht", "not")
        question.columns.remove(found)
        start = found.start - (before in ("non", "no", "nicht", "not"))
        _condition(question, start, found.end, Filter(found.column, Op.IS, (not lacks,)))


KEYS = frozenset({"by", "per", "each", "every", "nach", "pro", "je", "which", "what", "and"})


# ── Times ────────────────────────────────────────────────────────────────────────────────────


def _times(question: Question) -> None:
    """Quarters, months and days as conditions on the columns that have them."""
    table = question.index.table
    dates = [column for column in table.columns if column.type is ColumnType.DATE]
    quarters = [column for column in table.columns if column.type is ColumnType.QUARTER]
    taken = {at for each in question.values for at in range(each.start, each.end)}
    for at, word in enumerate(question.words):
        if at in taken:
            continue
        quarter = QUARTER.match(word)
        number = int(quarter[1]) if quarter else _spelt_quarter(question.words, at)
        if number and (quarters or dates):
            column = (quarters or dates)[0].name
            end = at + (1 if quarter else 2)
            _condition(question, at, end, Filter(column, Op.IS, (number,), Part.QUARTER))
        elif word in MONTHS and dates and len(word) > 2:
            _month(question, at, MONTHS[word], _named_of(question, dates).name)


def _spelt_quarter(words: Sequence[str], at: int) -> int:
    follows = words[at + 1] if at + 1 < len(words) else ""
    return SPELT.index(words[at]) + 1 if follows == "quarter" and words[at] in SPELT else 0


def _named_of(question: Question, columns: Sequence[TableColumn]) -> TableColumn:
    named = {found.column for found in question.columns}
    return next((column for column in columns if column.name in named), columns[0])


def _month(question: Question, at: int, month: int, column: str) -> None:
    words = question.words
    sides = [side for side in (at - 1, at + 1) if 0 <= side < len(words)]
    _condition(question, at, at + 1, Filter(column, Op.IS, (month,), Part.MONTH))
    for side in sides:
        day = ORDINAL.sub(r"\1", words[side])
        if day.isdigit() and 1 <= int(day) <= 31:
            _condition(question, side, side + 1, Filter(column, Op.IS, (int(day),), Part.DAY))
            break


def _condition(question: Question, start: int, end: int, found: Filter) -> None:
    question.conditions.append((start, end, found))


# ── Figures ──────────────────────────────────────────────────────────────────────────────────


def _figures(question: Question) -> None:
    """Numbers as conditions: "more than 2 points", "in 2003", "week 5", "50 or more"."""
    taken = {at for each in question.values for at in range(each.start, each.end)}
    taken |= {at for start, end, _ in question.conditions for at in range(start, end)}
    taken |= set(range(*question.top))
    for at, word in enumerate(question.words):
        number = number_in(word)
        if at in taken or number is None:
            continue
        before = " ".join(question.words[max(0, at - 4) : at])
        after = " ".join(question.words[at + 1 : at + 4])
        op, length = _comparison(before, after)
        if op is None and word in NUMBER_WORDS and word == "one":
            continue
        found = _belongs_to(question, at, number, op, is_time=length < 0)
        if found is not None:
            start = at - abs(length)
            _condition(question, max(0, start), at + 1, found)


def _comparison(before: str, after: str) -> tuple[Op | None, int]:
    """The sign before a figure and how many words it takes; negative for one of time."""
    if OR_MORE.match(after):
        return Op.AT_LEAST, 0
    if OR_LESS.match(after):
        return Op.AT_MOST, 0
    for pattern, sign in COMPARED:
        found = re.search(rf"(?:^|\s)({pattern.pattern})(?: the| year| age| of)*\s*$", before)
        if found:
            length = len(found[0].split())
            return SIGNS[sign[:-1] if sign.endswith("t") else sign], (
                -length if sign.endswith("t") else length
            )
    return None, 0


def _belongs_to(
    question: Question, at: int, number: float, op: Op | None, *, is_time: bool
) -> Filter | None:
    """The column that a figure is compared with: one named beside it, else one that holds it."""
    is_year = isinstance(number, int) and 1500 <= number <= 2100
    beside = _beside(question, at)
    if beside is not None:
        is_amount = op is not None and not is_time and _may_hold(beside, number)
        if is_amount or not is_year or _has_years(beside):
            named = _of_named(question, beside, number, op, is_year=is_year)
            if named is not None or op is None or beside.type in FIGURES:
                return named
    if is_year:
        found = _year(question, number, op or Op.IS)
        if found is not None:
            return found
    if is_time:
        return None
    holders = [column for column in question.index.table.columns if _may_hold(column, number)]
    if op is not None:
        figures = [column for column in holders if not column.is_identifier]
        figures = _of_unit(question, at, figures) or figures
        return Filter(figures[0].name, op, (number,)) if len(figures) == 1 else None
    return Filter(holders[0].name, Op.IS, (number,)) if len(holders) == 1 else None


def _of_named(
    question: Question, column: TableColumn, number: float, op: Op | None, *, is_year: bool
) -> Filter | None:
    if column.type is ColumnType.DATE:
        return Filter(column.name, op or Op.IS, (number,), Part.YEAR) if is_year else None
    if column.type in FIGURES:
        return Filter(column.name, op or Op.IS, (number,))
    return _text_figure(question, column, number) if op is None else None


def _of_unit(question: Question, at: int, columns: Sequence[TableColumn]) -> list[TableColumn]:
    """Those in the unit that follows a figure: "under 50 euros"."""
    word = question.words[at + 1] if at + 1 < len(question.words) else ""
    unit = CURRENCIES.get(word, word)
    found = [column for column in columns if column.unit.casefold() == unit]
    if found:
        question.use(at + 1, at + 2)
    return found


def _beside(question: Question, at: int) -> TableColumn | None:
    """The column named nearest to a figure, after it rather than before."""
    near: list[tuple[int, TableColumn]] = []
    for found in question.columns:
        if at < found.start <= at + REACH:
            near.append((found.start - at, question.column(found.column)))
        elif found.end <= at and at - found.end <= REACH - 1:
            near.append((at - found.end + 2, question.column(found.column)))
    return min(near, key=lambda pair: pair[0])[1] if near else None


def _text_figure(question: Question, column: TableColumn, number: float) -> Filter | None:
    wanted = f"{number:g}"
    values = tuple(
        value
        for value in question.index.values.get(column.name, ())
        if wanted in re.findall(r"\d+", value)
    )
    return Filter(column.name, Op.IS, values) if 0 < len(values) <= 50 else None


def _has_years(column: TableColumn) -> bool:
    if column.type is ColumnType.DATE:
        return True
    return _range(column)[1] >= 1500 and _range(column)[0] >= 1000


def _year(question: Question, number: float, op: Op) -> Filter | None:
    columns = question.index.table.columns
    for column in columns:
        if column.type is ColumnType.NUMBER and _has_years(column) and _range(column)[1] <= 2200:
            return Filter(column.name, op, (number,))
    for column in columns:
        if column.type is ColumnType.DATE:
            return Filter(column.name, op, (number,), Part.YEAR)
        if column.type is ColumnType.QUARTER and _range(column)[1] > 10:
            return Filter(column.name, op, (number,), Part.YEAR)
    for column in columns if op is Op.IS else ():
        found = _text_figure(question, column, number)
        if found is not None:
            return found
    return None


def _may_hold(column: TableColumn, number: float) -> bool:
    low, high = _range(column)
    return column.type in FIGURES and low <= number <= high


def _range(column: TableColumn) -> tuple[float, float]:
    try:
        return float(column.low), float(column.high)
    except ValueError:
        return (0.0, 0.0)


def _spans(question: Question) -> None:
    """ "Between March and May", "from 2020 to 2022": two conditions are the ends of one."""
    words = question.words
    ordered = sorted(question.conditions, key=lambda each: each[0])
    for low, high in pairwise(ordered):
        first, last = low[2], high[2]
        opens = low[0] > 0 and words[low[0] - 1] in BETWEEN
        joined = high[0] == low[1] + 1 and words[low[1]] in AND_UP_TO
        alike = (first.column, first.part) == (last.column, last.part)
        is_plain = first.op is last.op is Op.IS and len(first.values) == len(last.values) == 1
        if opens and joined and alike and is_plain:
            question.conditions.remove(low)
            question.conditions.remove(high)
            question.use(low[0] - 1, high[1])
            _condition(question, low[0], low[1], replace(first, op=Op.AT_LEAST))
            _condition(question, high[0], high[1], replace(last, op=Op.AT_MOST))


def _verbs(question: Question) -> None:
    """ "Hired after 2020": a word right before a time tells what the day was of."""
    dates = [c for c in question.index.table.columns if c.type is ColumnType.DATE]
    if len(dates) != 1:
        return
    taken = {at for each in question.values for at in range(each.start, each.end)}
    taken |= {at for each in question.columns for at in range(each.start, each.end)}
    for start, _end, each in question.conditions:
        at = start if question.words[start] in TIMED else start - 1
        word = question.words[at - 1] if at > 0 else ""
        is_free = at - 1 not in taken and word not in OPERATORS and word not in IDLE
        if each.part and question.words[at] in TIMED and is_free and word.endswith(("ed", "t")):
            question.use(at - 1, at)
            question.doubts.append(f"took “{word}” for {dates[0].name}")


TIMED = frozenset({"in", "after", "before", "since", "until", "on", "during", "between", "from"})

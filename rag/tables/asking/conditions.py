"""Conditions in a question: what is left out, yes and no, times, figures, two columns compared."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from rag.records import ColumnType, TableColumn
from rag.tables.asking.choosing import has_years, measured_by, took
from rag.tables.asking.comparing import (
    Span,
    compare_columns,
    condition,
    named_at,
    phrases_of,
    said_before,
)
from rag.tables.asking.index import Found
from rag.tables.asking.question import FIGURES, Question, number_in
from rag.tables.asking.times import conditions_of, meant, time_at
from rag.tables.asking.words import (
    ADJECTIVES,
    AND_UP_TO,
    BETWEEN,
    IDLE,
    LACKING,
    NOT,
    OPERATORS,
    OR_LESS,
    OR_MORE,
    SCALES,
    UNITS,
    is_of_money,
)
from rag.tables.plan import Filter, Op, Part
from rag.tables.wordforms import normalised
from rag.text.languages import words

REACH = 3  # words between a figure and the column that it belongs to


def read_conditions(question: Question) -> None:
    """Find them, once columns and values are known."""
    _negations(question)
    _blanks(question)
    _yes_or_no(question)
    phrases = phrases_of(question)
    compare_columns(question, phrases)
    _times(question, phrases)
    _figures(question, phrases)
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
        at = _before(question, found)
        has_blanks = question.column(found.column).blanks > 0
        if at >= 0 and question.words[at] in LACKING and has_blanks:
            question.columns.remove(found)
            condition(question, at, found.end, Filter(found.column, Op.BLANK))


def _before(question: Question, found: Found) -> int:
    """Where the word before it stands, an article apart; -1 if it opens the question."""
    at = found.start - 1
    return at - (at > 0 and question.words[at] in ("a", "an", "any", "the"))


def _yes_or_no(question: Question) -> None:
    """A column of yes and no that is named is a condition: "cancelled bookings"."""
    for found in list(question.columns):
        at = _before(question, found)
        before = question.words[at] if at >= 0 else ""
        is_other = before in KEYS or question.words[found.end : found.end + 1] in (["is"], ["="])
        if is_other or question.column(found.column).type is not ColumnType.BOOLEAN:
            continue
        lacks = found.start in question.negated or before in DENYING
        question.columns.remove(found)
        start = at if before in DENYING | {"without", "ohne"} else found.start
        last = question.conditions[-1] if question.conditions else None
        if last and start - last[1] <= 1 and last[2].column == found.column:  # "need | no licence"
            question.conditions.pop()
            start, lacks = last[0], lacks or last[2].values == (False,)
        condition(question, start, found.end, Filter(found.column, Op.IS, (not lacks,)))


DENYING = words("non no nicht not kein keine keinen")
KEYS = words("by per each every nach pro je which what and")


# ── Times ────────────────────────────────────────────────────────────────────────────────────


def _times(question: Question, phrases: list[Span]) -> None:
    """Days, months and quarters; between two of them; a word that compares before one."""
    words = question.words
    taken = {at for each in question.values for at in range(each.start, each.end)}
    taken |= set(range(*question.top))
    at = 0
    while at < len(words):
        found = None if at in taken else time_at(words, at)
        if found is None:
            at += 1
            continue
        start, op = said_before(phrases, words, at)
        joint = found.end < len(words) and words[found.end] in AND_UP_TO
        last = time_at(words, found.end + 1) if joint and found.end + 1 < len(words) else None
        opens = at > 0 and words[at - 1] in BETWEEN
        if opens and last is not None and op is Op.IS:
            ends = replace(found, year=found.year or last.year), last
            pairs = zip(ends, (Op.AT_LEAST, Op.AT_MOST), strict=True)
            conditions = [each for time, op in pairs for each in conditions_of(question, time, op)]
            if conditions:
                condition(question, at - 1, last.end, *conditions)
            at = last.end
            continue
        conditions = conditions_of(question, found, op)
        if conditions:
            condition(question, start, found.end, *conditions)
        at = found.end


# ── Figures ──────────────────────────────────────────────────────────────────────────────────


def _figures(question: Question, phrases: Sequence[Span]) -> None:
    """Numbers as conditions: "more than 2 points", "in 2003", "week 5", "50 or more"."""
    taken = {at for each in question.values for at in range(each.start, each.end)}
    taken |= {at for start, end, _ in question.conditions for at in range(start, end)}
    taken |= set(range(*question.top))
    for at, word in enumerate(question.words):
        number = number_in(word)
        if at in taken or number is None:
            continue
        start, op = said_before(phrases, question.words, at)
        end = at + 1
        if question.words[end : end + 1] and question.words[end] in SCALES:
            number *= SCALES[question.words[end]]
            end += 1
        unit = _unit_at(question.words, end)
        op = _sided(question, end + bool(unit)) or op
        if op is Op.IS and word == "one":
            continue
        found = _belongs_to(question, at, number, (start, op), unit)
        if found:
            condition(question, start, end, *found)


def _unit_at(words: Sequence[str], at: int) -> str:
    """The unit behind a figure; of "5 and 6 euros" both figures have it."""
    is_first = words[at : at + 1] and words[at] in AND_UP_TO and len(words) > at + 2
    if is_first and number_in(words[at + 1]) is not None:
        at += 2
    return UNITS.get(words[at], "") if at < len(words) else ""


def _sided(question: Question, at: int) -> Op | None:
    """ "50 or more", "32 GB of RAM or more"."""
    named = named_at(question, at + (question.words[at : at + 1] == ["of"]))
    for place in (at, named.end if named else at):
        rest = " ".join(question.words[place : place + 3])
        for pattern, op in ((OR_MORE, Op.AT_LEAST), (OR_LESS, Op.AT_MOST)):
            match = pattern.match(rest)
            if match is not None:
                question.use(place, place + len(match[0].split()))
                return op
    return None


def _belongs_to(
    question: Question, at: int, number: float, said: tuple[int, Op], unit: str
) -> list[Filter]:
    """The column that a figure is compared with: one named beside it, else one that holds it."""
    start, op = said
    is_year = isinstance(number, int) and 1500 <= number <= 2100 and not unit
    compares = question.words[start:at] if op is not Op.IS else []
    beside = _beside(question, start, at, compares=op is not Op.IS)
    if beside is not None and not _takes_unit(question, beside, at, unit):
        beside = None
    if beside is not None:
        is_amount = op is not Op.IS and _may_hold(beside, number)
        if is_amount or not is_year or beside.type is ColumnType.DATE or has_years(beside):
            named = _of_named(question, beside, number, op, is_year=is_year)
            if named or op is Op.IS or beside.type in FIGURES:
                return named
    if is_year and not set(compares) & {"more", "less", "fewer", "mehr", "weniger"}:
        found = _year(question, number, op, at)
        if found:
            return found
    return _of_holders(question, at, number, op, (compares, unit))


def _of_holders(
    question: Question, at: int, number: float, op: Op, said: tuple[Sequence[str], str]
) -> list[Filter]:
    """The only column whose figures reach so far, or that its words or its unit mean."""
    compares, unit = said
    figures = [
        column
        for column in question.index.table.columns
        if column.type in FIGURES and not column.is_identifier
    ]
    if unit:
        figures = [column for column in figures if _takes_unit(question, column, at, unit)]
    adjective = next((ADJECTIVES[word][0] for word in compares if word in ADJECTIVES), "")
    if adjective:
        hinted = measured_by(question, adjective)
        return [Filter(hinted.name, op, (number,))] if hinted in figures and hinted else []
    holders = figures if unit else [column for column in figures if _may_hold(column, number)]
    if op is Op.IS:
        holders = [c for c in question.index.table.columns if _may_hold(c, number)]
    if len(holders) > 1 and all(map(is_of_money, holders)) and unit:
        took(question, "price", holders)
        holders = holders[:1]
    return [Filter(holders[0].name, op, (number,))] if len(holders) == 1 else []


def _takes_unit(question: Question, column: TableColumn, at: int, unit: str) -> bool:
    """Whether a figure in this unit can be one of the column's; its word is used then."""
    if not unit or column.type not in FIGURES:
        return True
    is_own = UNITS.get(normalised(column.unit), column.unit).casefold() == unit.casefold()
    is_named = unit in {UNITS.get(word) for word in normalised(column.name).split()}
    if is_own or is_named:
        places = (i for i, word in enumerate(question.words) if i > at and word in UNITS)
        place = next(places)
        question.use(place, place + 1)
    return is_own or is_named


def _of_named(
    question: Question, column: TableColumn, number: float, op: Op, *, is_year: bool
) -> list[Filter]:
    if column.type is ColumnType.DATE:
        return _of_year(column.name, int(number), op) if is_year else []
    if column.type in FIGURES:
        return [Filter(column.name, op, (number,))]
    return []


def _of_year(column: str, year: int, op: Op) -> list[Filter]:
    return [Filter(column, op, (year,), Part.YEAR)]


def _beside(
    question: Question, start: int, at: int, *, compares: bool = False
) -> TableColumn | None:
    """The column named nearest to a figure, after it rather than before."""
    near: list[tuple[int, TableColumn]] = []
    for found in question.columns:
        if compares and question.column(found.column).type is ColumnType.TEXT:
            continue
        if at < found.start <= at + REACH:
            near.append((found.start - at, question.column(found.column)))
        elif found.end <= at and start - found.end <= REACH - 1:
            near.append((max(0, start - found.end) + 2, question.column(found.column)))
    return min(near, key=lambda pair: pair[0])[1] if near else None


def _year(question: Question, number: float, op: Op, at: int) -> list[Filter]:
    columns = question.index.table.columns
    for column in columns:
        if has_years(column):
            return [Filter(column.name, op, (number,))]
    dates = [column for column in columns if column.type is ColumnType.DATE]
    if dates:
        return _of_year(meant(question, dates, at).name, int(number), op)
    for column in columns:
        if column.type is ColumnType.QUARTER and _range(column)[1] > 10:
            return _of_year(column.name, int(number), op)
    return []


def _may_hold(column: TableColumn, number: float) -> bool:
    low, high = _range(column)
    return column.type in FIGURES and low <= number <= high


def _range(column: TableColumn) -> tuple[float, float]:
    try:
        return float(column.low), float(column.high)
    except ValueError:
        return (0.0, 0.0)


def _spans(question: Question) -> None:
    """ "From 2020 to 2022", "between 5 and 6 euros": two conditions are the ends of one."""
    words = question.words
    ordered = sorted(question.conditions, key=lambda each: each[0])
    for low, high in pairwise(ordered):
        first, last = low[2], high[2]
        opens = low[0] > 0 and words[low[0] - 1] in BETWEEN
        joined = high[0] in (low[1] + 1, low[1] + 2) and words[high[0] - 1] in AND_UP_TO
        alike = (first.column, first.part) == (last.column, last.part)
        is_plain = first.op is last.op is Op.IS and len(first.values) == len(last.values) == 1
        if opens and joined and alike and is_plain:
            question.conditions.remove(low)
            question.conditions.remove(high)
            question.use(low[0] - 1, high[1])
            condition(question, low[0], low[1], replace(first, op=Op.AT_LEAST))
            condition(question, high[0], high[1], replace(last, op=Op.AT_MOST))


def _verbs(question: Question) -> None:
    """ "Hired after 2020" where the column is "Date": a word before a time tells of what it is."""
    dates = [c for c in question.index.table.columns if c.type is ColumnType.DATE]
    if len(dates) != 1 or not GENERIC.search(normalised(dates[0].name)):
        return
    known = {at for e in (*question.columns, *question.values) for at in range(e.start, e.end)}
    for start, _end, each in question.conditions:
        at = start if question.words[start] in TIMED else start - 1
        word = question.words[at - 1] if at > 0 else ""
        is_free = at - 1 not in question.used | known and word not in OPERATORS and word not in IDLE
        if each.column == dates[0].name and is_free and word.endswith(("ed", "t", "n")):
            question.use(at - 1, at)
            question.doubt(f"took “{word}” for {dates[0].name}")


GENERIC = re.compile(r"\b(?:date|day|datum|tag|time|when|zeit|check in|start|from)\b")
TIMED = words("in after before since until on during between from")

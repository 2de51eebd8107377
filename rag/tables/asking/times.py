"""Times in a question: days, months, quarters, years, as conditions on their columns."""

from calendar import monthrange
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from rag.records import ColumnType, TableColumn
from rag.tables.asking.question import ORDINAL, Question
from rag.tables.asking.words import MONTHS
from rag.tables.plan import Filter, Op, Part
from rag.tables.wordforms import normalised
from rag.text.languages import all_meanings

ORDINALS = {normalised(word): at for word, at in all_meanings("ordinals").items()}


@dataclass(frozen=True, slots=True)
class Time:
    """Words `[start, end)` that say a time; 0: not said."""

    start: int
    end: int
    year: int = 0
    quarter: int = 0
    month: int = 0
    day: int = 0

    def parts(self) -> Iterator[tuple[Part, int]]:
        """What of it is said, the smallest first."""
        named = {Part.DAY: self.day, Part.MONTH: self.month, Part.QUARTER: self.quarter}
        yield from ((part, value) for part, value in named.items() if value)
        if self.year:
            yield Part.YEAR, self.year

    def days(self, year: int) -> tuple[date, date]:
        """Its first and its last day."""
        first = self.month or 3 * self.quarter - 2 if self.quarter or self.month else 1
        last = self.month or 3 * self.quarter or 12
        end = self.day or monthrange(year, last)[1]
        return date(year, first, self.day or 1), date(year, last, end)


def time_at(words: Sequence[str], at: int) -> Time | None:
    """The time that begins with a word; a year alone is left to the figures."""
    found = _day(words, at) or _month(words, at) or _quarter(words, at)
    if found is None or found.year:
        return found
    end = found.end + (words[found.end : found.end + 1] in (["of"], ["in"], ["des"]))
    year = _year(words, end)
    return Time(at, end + 1, year, found.quarter, found.month, found.day) if year else found


def _year(words: Sequence[str], at: int) -> int:
    word = words[at] if at < len(words) else ""
    return int(word) if len(word) == 4 and word.isdigit() and 1500 <= int(word) <= 2100 else 0


def _day(words: Sequence[str], at: int) -> Time | None:
    """ "10 January", "March 5th", and a day in figures, which `words_of` writes 2024.01.10."""
    numbers = words[at].split(".")
    if [len(each) for each in numbers] == [4, 2, 2] and "".join(numbers).isdigit():
        year, month, day = map(int, numbers)
        return Time(at, at + 1, year, 0, month, day)
    end = at + 1 + (words[at + 1 : at + 2] == ["of"])
    follows = words[end] if end < len(words) else ""
    for said, named, last in ((words[at], follows, end + 1), (follows, words[at], at + 2)):
        number = ORDINAL.sub(r"\1", said)
        if named in MONTHS and len(named) > 2 and number.isdigit() and 1 <= int(number) <= 31:
            return Time(at, last, 0, 0, MONTHS[named], int(number))
    return None


def _month(words: Sequence[str], at: int) -> Time | None:
    if words[at] not in MONTHS or len(words[at]) < 3:
        return None
    return Time(at, at + 1, month=MONTHS[words[at]])


def _quarter(words: Sequence[str], at: int) -> Time | None:
    word, follows = words[at], words[at + 1] if at + 1 < len(words) else ""
    if len(word) == 2 and word[0] == "q" and word[1] in "1234":
        return Time(at, at + 1, quarter=int(word[1]))
    number = ORDINALS.get(word) or int(ORDINAL.sub(r"\1", word) if ORDINAL.match(word) else 0)
    if follows in ("quarter", "quartal", "quartals") and 1 <= number <= 4:
        return Time(at, at + 2, quarter=number)
    return None


# ── Of which column ──────────────────────────────────────────────────────────────────────────


def conditions_of(question: Question, found: Time, op: Op = Op.IS) -> list[Filter]:
    """What a time asks of a table; nothing where no column can say it."""
    columns = question.index.table.columns
    dates = [column for column in columns if column.type is ColumnType.DATE]
    quarters = [column for column in columns if column.type is ColumnType.QUARTER]
    if quarters and found.quarter and op is Op.IS:
        column = meant(question, quarters, found.start)
        quarter = Filter(column.name, op, (found.quarter,), Part.QUARTER)
        if len(column.high) > 1:  # its quarters are those of a year
            year = [Filter(column.name, op, (found.year,), Part.YEAR)] if found.year else []
            return [quarter, *year]
        return _with_year(question, found, quarter)
    if dates:
        return _of_dates(question, meant(question, dates, found.start), found, op)
    return []


def meant(question: Question, columns: Sequence[TableColumn], at: int) -> TableColumn:
    """The one that is named, nearest first; else the first, and that is said."""
    near = sorted(question.columns, key=lambda each: abs(each.start - at))
    named = (column for each in near for column in columns if column.name == each.column)
    found = next(named, None)
    if found is None and len(columns) > 1:
        question.doubt(f"took {columns[0].name} for the time: the question names none")
    return found or columns[0]


def _of_dates(question: Question, column: TableColumn, found: Time, op: Op) -> list[Filter]:
    if op is Op.IS and not found.day:
        return [Filter(column.name, op, (value,), part) for part, value in found.parts()]
    spanned = {column.low[:4], column.high[:4]}
    year = found.year or (int(spanned.pop()) if len(spanned) == 1 else 0)
    if not year:
        parts = list(found.parts())
        if len(parts) > 1:  # a day of a month, of any year
            is_plain = op is Op.IS
            return [Filter(column.name, op, (v,), part) for part, v in parts] if is_plain else []
        return [Filter(column.name, op, (value,), part) for part, value in parts]
    return list(within(column.name, *found.days(year), op))


def within(column: str, first: date, last: date, op: Op) -> Iterator[Filter]:
    """Days as bounds: after a month is after its last day, since a year from its first."""
    following = str(last + timedelta(days=1))
    if op is Op.IS and first == last:
        yield Filter(column, Op.IS, (str(first),))
    if op in (Op.AT_LEAST, Op.LESS):
        yield Filter(column, op, (str(first),))
    if op is Op.MORE:
        yield Filter(column, Op.AT_LEAST, (following,))
    if op is Op.AT_MOST:
        yield Filter(column, Op.LESS, (following,))


def _with_year(question: Question, found: Time, condition: Filter) -> list[Filter]:
    """The year that is said beside a quarter or month stands in a column of its own."""
    years = [
        Filter(column.name, Op.IS, (found.year,))
        for column in question.index.table.columns
        if column.type is ColumnType.NUMBER and column.low[:2] in ("18", "19", "20")
        and len(column.low) == 4
    ]  # fmt: skip
    if not found.year:
        return [condition]
    return [condition, years[0]] if years else []

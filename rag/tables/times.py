"""Times in a question: days, months, quarters, years, as conditions on their columns."""

from calendar import monthrange
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from rag.records import ColumnType, TableColumn
from rag.tables.plan import Filter, Op, Part
from rag.tables.vocabulary import MONTHS, has_years, number_in, ordinal_in


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


def time_at(words: Sequence[str], position: int) -> Time | None:
    """The time that begins with a word."""
    found = _day(words, position) or _month(words, position) or _quarter(words, position)
    if found is None:
        year = _year(words, position)
        return Time(position, position + 1, year) if year else None
    if found.year:
        return found
    end = found.end + (words[found.end : found.end + 1] in (["of"], ["in"], ["des"]))
    year = _year(words, end)
    return Time(position, end + 1, year, found.quarter, found.month, found.day) if year else found


def _year(words: Sequence[str], position: int) -> int:
    word = words[position] if position < len(words) else ""
    return int(word) if len(word) == 4 and word.isdigit() and 1500 <= int(word) <= 2100 else 0


def _day(words: Sequence[str], position: int) -> Time | None:
    """ "10 January", "March 5th", and a day in figures, which `words_of` writes 2024.01.10."""
    numbers = words[position].split(".")
    if [len(number) for number in numbers] == [4, 2, 2] and "".join(numbers).isdigit():
        year, month, day = map(int, numbers)
        return Time(position, position + 1, year, 0, month, day)
    end = position + 1 + (words[position + 1 : position + 2] == ["of"])
    follows = words[end] if end < len(words) else ""
    for said, named, last in (
        (words[position], follows, end + 1),
        (follows, words[position], position + 2),
    ):
        number = ordinal_in(said) or number_in(said) or 0
        if named in MONTHS and len(named) > 2 and number in range(1, 32):
            return Time(position, last, 0, 0, MONTHS[named], int(number))
    return None


def _month(words: Sequence[str], position: int) -> Time | None:
    if words[position] not in MONTHS or len(words[position]) < 3:
        return None
    return Time(position, position + 1, month=MONTHS[words[position]])


def _quarter(words: Sequence[str], position: int) -> Time | None:
    word, follows = words[position], words[position + 1] if position + 1 < len(words) else ""
    if len(word) == 2 and word[0] == "q" and word[1] in "1234":
        return Time(position, position + 1, quarter=int(word[1]))
    number = ordinal_in(word)
    if follows in ("quarter", "quartal", "quartals") and 1 <= number <= 4:
        return Time(position, position + 2, quarter=number)
    return None


# ── Of which column ──────────────────────────────────────────────────────────────────────────


def columns_of(columns: Sequence[TableColumn], time: Time) -> list[TableColumn]:
    """Those that can say it."""
    if time.quarter:
        quarters = [c for c in columns if c.type is ColumnType.QUARTER]
        if quarters:
            return quarters
    if time.year and not (time.quarter or time.month):
        years = [c for c in columns if has_years(c)]
        years += [c for c in columns if c.type is ColumnType.QUARTER and len(c.high) > 1]
        if years:
            return years
    return [c for c in columns if c.type is ColumnType.DATE]


def conditions_of(
    column: TableColumn, time: Time, op: Op, columns: Sequence[TableColumn]
) -> list[Filter]:
    """What a time asks of a column; nothing where it cannot be said."""
    if column.type is ColumnType.NUMBER:
        return [Filter(column.name, op, (time.year,))]
    if column.type is ColumnType.QUARTER:
        return _of_quarter(column, time, op, columns)
    if op is Op.IS and not time.day:
        return [Filter(column.name, op, (value,), part) for part, value in time.parts()]
    if time.year and not (time.quarter or time.month):
        return [Filter(column.name, op, (time.year,), Part.YEAR)]
    spanned = {column.low[:4], column.high[:4]}
    year = time.year or (int(spanned.pop()) if len(spanned) == 1 else 0)
    if year:
        return list(between_days(column.name, *time.days(year), op))
    parts = list(time.parts())
    if len(parts) > 1 and op is not Op.IS:
        return []
    return [Filter(column.name, op, (value,), part) for part, value in parts]


def between_days(column: str, first: date, last: date, op: Op) -> Iterator[Filter]:
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


def _of_quarter(
    column: TableColumn, time: Time, op: Op, columns: Sequence[TableColumn]
) -> list[Filter]:
    """Its year stands in the quarter, or in a column of its own."""
    if time.month or op is not Op.IS:
        return []
    quarter = [Filter(column.name, op, (time.quarter,), Part.QUARTER)] if time.quarter else []
    if not time.year:
        return quarter
    if len(column.high) > 1:
        return [*quarter, Filter(column.name, op, (time.year,), Part.YEAR)]
    years = [Filter(column.name, op, (time.year,)) for column in columns if has_years(column)]
    return [*quarter, *years] if len(years) == 1 else []

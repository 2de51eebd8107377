"""What a question names of one table: columns, values, figures, times; and the words left over."""

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field, replace

from rag.records import ColumnType, TableColumn
from rag.tables.asking.index import Found, TableIndex, stem
from rag.tables.asking.words import (
    COMPARED,
    IDLE,
    NUMBER_WORDS,
    OPERATORS,
    OR_LESS,
    OR_MORE,
    SUPERLATIVES,
    TOP,
)
from rag.tables.plan import Filter, Op, Part
from rag.tables.reading.types import MONTHS
from rag.tables.wordforms import normalised

THOUSANDS = re.compile(r"(?<=\d)[,'](?=\d{3}\b)")
GLUED = re.compile(r"(?<=\d)(?=[a-z]{1,3}\b)(?!(?:st|nd|rd|th)\b)")
ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)$")
QUARTER = re.compile(r"q([1-4])$")
SIGNS = {">=": Op.AT_LEAST, "<=": Op.AT_MOST, ">": Op.MORE, "<": Op.LESS}
FIGURES = frozenset({ColumnType.NUMBER, ColumnType.DURATION})
SPELT = ("first", "second", "third", "fourth")
REACH = 3  # words between a figure and the column that it belongs to


def words_of(question: str) -> list[str]:
    """The words of a question as values are compared, figures without their commas."""
    text = THOUSANDS.sub("", question.casefold())
    return normalised(GLUED.sub(" ", text).replace("#", " # ")).split()


@dataclass
class Question:
    """A question over one table, taken apart."""

    words: list[str]
    index: TableIndex
    columns: list[Found] = field(default_factory=list)
    values: list[Found] = field(default_factory=list)
    conditions: list[tuple[int, int, Filter]] = field(default_factory=list)
    used: set[int] = field(default_factory=set)
    doubts: list[str] = field(default_factory=list)
    top: tuple[int, int] = (0, 0)  # where "top 10" stands

    @property
    def masked(self) -> str:
        """The words, those of values and conditions out of sight."""
        hidden = {at for each in self.values for at in range(each.start, each.end)}
        hidden |= {at for start, end, _ in self.conditions for at in range(start, end)}
        return " ".join("¤" if at in hidden else word for at, word in enumerate(self.words))

    def says(self, pattern: re.Pattern[str]) -> bool:
        """Whether words say this that do not name a column."""
        named = {at for each in self.columns for at in range(each.start, each.end)}
        return any(self.at(found.start()) not in named for found in pattern.finditer(self.masked))

    def at(self, offset: int) -> int:
        """Which word of `masked` stands at a character."""
        return self.masked.count(" ", 0, offset)

    def column(self, name: str) -> TableColumn:
        return next(column for column in self.index.table.columns if column.name == name)

    def use(self, start: int, end: int) -> None:
        self.used.update(range(start, end))

    def unused(self) -> tuple[str, ...]:
        """Words that neither the plan nor its table's name accounts for."""
        table = self.index.table
        known = set(map(stem, normalised(f"{table.name} {table.document_title}").split()))
        return tuple(
            word
            for at, word in enumerate(self.words)
            if at not in self.used
            and word not in IDLE
            and (word not in OPERATORS or (word in NUMBER_WORDS and word != "one"))
            and stem(word) not in known
        )


def read_question(text: str, index: TableIndex) -> Question:
    """Find everything that the table knows of a question."""
    question = Question(words_of(text), index)
    _counts(question)
    _choose(question)
    _times(question)
    _figures(question)
    for found in (*question.columns, *question.values):
        question.use(found.start, found.end)
    for start, end, _ in question.conditions:
        question.use(start, end)
    return question


def _counts(question: Question) -> None:
    """ "Top 10", "the three cheapest": a figure that limits, and compares with nothing."""
    match = TOP.search(" ".join(question.words))
    if match is not None:
        question.top = question.at(match.start()), question.at(match.end() - 1) + 1
        question.use(*question.top)


# ── Columns and values ───────────────────────────────────────────────────────────────────────


def _choose(question: Question) -> None:
    """Of what overlaps, the longest and surest; of twins, the one whose column is named."""
    words, index = question.words, question.index
    columns = [found for found in index.columns_named(words) if not _is_operator(found, words)]
    has_dates = any(column.type is ColumnType.DATE for column in index.table.columns)
    idle = MONTHS if has_dates else ()  # where there are dates, months are read as times
    values = [found for found in index.values_named(words) if not _says_nothing(found, words, idle)]
    named = {found.column for found in columns if found.score >= 1}
    ranked = sorted(
        [*columns, *values],
        key=lambda found: (
            -(found.score + (0.15 if found.is_value and found.column in named else 0)),
            -found.length,
            found.start,
        ),
    )
    taken = set(range(*question.top))
    for found in ranked:
        span = set(range(found.start, found.end))
        if span & taken:
            continue
        twins = [
            other.column
            for other in ranked
            if other is not found
            and other.is_value
            and found.is_value
            and (other.start, other.end, other.score) == (found.start, found.end, found.score)
        ]
        if twins and found.column not in named:
            said = " ".join(words[found.start : found.end])
            question.doubts.append(f"took “{said}” for {found.column}, not {twins[0]}")
        if found.is_near:
            question.doubts.append(f"read “{words[found.start]}” as “{found.values[0]}”")
        taken |= span
        (question.values if found.is_value else question.columns).append(found)
    question.columns.sort(key=lambda found: found.start)
    question.values.sort(key=lambda found: found.start)


def _is_operator(found: Found, words: Sequence[str]) -> bool:
    """A partial name that is a word of asking: "number", "total", "first"."""
    return found.score < 1 and all(
        word in OPERATORS or word in IDLE for word in words[found.start : found.end]
    )


def _says_nothing(found: Found, words: Sequence[str], idle: Container[str]) -> bool:
    gram = words[found.start : found.end]
    return all(word in IDLE or word in OPERATORS or word in idle for word in gram) or (
        found.length == 1 and number_in(gram[0]) is not None
    )


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


def number_in(word: str) -> float | int | None:
    """A figure in digits or in words."""
    ordinal = ORDINAL.match(word)
    if ordinal:
        return int(ordinal[1])
    if word in NUMBER_WORDS:
        return NUMBER_WORDS[word]
    if re.fullmatch(r"\d{1,15}(?:\.\d+)?", word):
        return float(word) if "." in word else int(word)
    return None


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
    if beside is not None and not (is_year and not _has_years(beside)):
        if beside.type is ColumnType.DATE:
            return Filter(beside.name, op or Op.IS, (number,), Part.YEAR) if is_year else None
        if beside.type in FIGURES:
            return Filter(beside.name, op or Op.IS, (number,))
        return None if op else _text_figure(question, beside, number)
    if is_year:
        found = _year(question, number, op or Op.IS)
        if found is not None:
            return found
    if is_time:
        return None
    holders = [column for column in question.index.table.columns if _may_hold(column, number)]
    if op is not None:
        figures = [column for column in holders if not column.is_identifier]
        return Filter(figures[0].name, op, (number,)) if len(figures) == 1 else None
    return Filter(holders[0].name, Op.IS, (number,)) if len(holders) == 1 else None


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


# ── Conditions together ──────────────────────────────────────────────────────────────────────


def filters_of(question: Question, without: Iterable[Found] = ()) -> tuple[Filter, ...]:
    """All conditions; several values of one column are alternatives."""
    left_out = set(map(id, without))
    merged: dict[tuple[str, Op, Part], Filter] = {}
    others: list[Filter] = []
    for found in question.values:
        if id(found) in left_out:
            continue
        key = (found.column, found.op or Op.IS, Part.WHOLE)
        known = merged.get(key)
        values = (*(known.values if known else ()), *found.values)
        merged[key] = Filter(found.column, key[1], tuple(dict.fromkeys(values)))
    for _start, _end, each in question.conditions:
        key = (each.column, each.op, each.part)
        if each.op is Op.IS and key in merged:
            merged[key] = replace(each, values=(*merged[key].values, *each.values))
        elif each.op is Op.IS:
            merged[key] = each
        else:
            others.append(each)
    return (*merged.values(), *others)


def is_superlative(word: str) -> bool:
    """Whether a word asks for one end of an order."""
    return word in SUPERLATIVES

"""Plans: a question over a table as data, which code turns into SQL and into words."""

import re
from calendar import month_name
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from enum import StrEnum
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rag.errors import TooLarge, UserError
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
from rag.language.words import all_words, phrases, read_lists
from rag.records import ColumnType, Table, TableColumn

ROW_WORDS = read_lists("rows")  # in which rows are asked for and told of
ROW, TOTAL = "row", "is_total"  # columns that each file of rows has besides its own
ENOUGH = 0.85  # of the filled cells that must parse as a type
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
    """How to parse the texts of a column."""

    type: ColumnType
    read: Callable[[str], CellValue]
    unit: str = ""
    note: str = ""


def reading_of(
    texts: Sequence[str], header: str = "", decimal: str = "", *, is_typed: bool = False
) -> ColumnReading:
    """Choose how to parse a column, from its distinct texts.

    `decimal` is the decimal sign of its table where that is known. With `is_typed` its figures are
    typed values of the file, which need no interpretation.
    """
    filled = [t for t in map(str.strip, texts) if not is_blank(t) and not is_formula(t)]
    plain = ColumnReading(ColumnType.TEXT, lambda text: None)
    if not filled or any(CODE.fullmatch(text) for text in filled):
        return plain
    for reading in _attempts(filled, header, decimal, is_typed):
        hits = sum(1 for text in filled if reading.read(text) is not None)
        if hits >= ENOUGH * len(filled) and (hits == len(filled) or len(filled) > 3):
            return reading
    return plain


def _attempts(
    filled: Sequence[str], header: str, decimal: str, is_typed: bool
) -> Iterator[ColumnReading]:
    yield _booleans(filled)
    yield ColumnReading(ColumnType.QUARTER, _quarter)
    yield _dates(filled)
    yield ColumnReading(ColumnType.DURATION, _duration)
    yield _numbers(filled, header, decimal, is_typed)


def _booleans(filled: Sequence[str]) -> ColumnReading:
    lowered = {text.casefold() for text in filled}
    is_pair = lowered <= TRUE | FALSE and bool(lowered & TRUE)

    def read(text: str) -> CellValue:
        word = text.strip().casefold()
        return word in TRUE if is_pair and word in TRUE | FALSE else None

    return ColumnReading(ColumnType.BOOLEAN, read)


def _quarter(text: str) -> CellValue:
    match = QUARTER.fullmatch(text.strip())
    if not match:
        return None
    year = int(match["y1"] or match["y2"] or 0)
    return (year + 2000 if 0 < year < 100 else year) * 10 + int(match["q"])


def _duration(text: str) -> CellValue:
    match = DURATION.fullmatch(text.strip())
    if not match:
        return None
    hours, minutes, seconds = match.groups()
    return int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds.replace(",", "."))


def _dates(filled: Sequence[str]) -> ColumnReading:
    firsts, seconds, dotted = [], [], False
    for text in filled:
        match = NUMERIC_DATE.fullmatch(text)
        if match and len(match[1]) <= 2:
            firsts.append(int(match[1]))
            seconds.append(int(match[3]))
            dotted |= match[2] == "."
    is_open = bool(firsts) and not dotted and max(firsts) <= 12
    month_first = is_open and max(seconds) > 12
    note = (
        "read as day before month: nothing in the column says which"
        if is_open and not month_first
        else ""
    )
    return ColumnReading(
        ColumnType.DATE, lambda text: read_date(text, month_first=month_first), "", note
    )


def _numbers(filled: Sequence[str], header: str, decimal: str, is_typed: bool) -> ColumnReading:
    """Parse figures of one unit; the column, or its table, decides what 1.234 is."""
    looked = filled[:5000]
    decimal = "." if is_typed else decimal_sign(looked) or decimal or _decimal_of_money(looked)
    blanks = grouped_by_blanks(looked)
    unread = ColumnReading(ColumnType.NUMBER, lambda text: None)

    def read(text: str) -> CellValue:  # a comma before three digits mostly groups
        figure = parse_figure(text, decimal=decimal, blanks=blanks)
        return figure.number if figure and (figure.exact or "," in text) else None

    figures = [parse_figure(text, decimal=decimal, blanks=blanks) for text in looked]
    units = [
        "" if figure is None or ORDINAL.match(figure.unit) else figure.unit for figure in figures
    ]
    signs = {sign_of(unit) for unit in units if unit}
    if len(signs) > 1:
        return unread  # kg and m: a sum has no meaning
    unit = max(units, key=len)
    if len(unit) == 1 and unit.isalpha() and "" in units:  # 12, 14A, 16: house numbers
        return unread
    return ColumnReading(ColumnType.NUMBER, read, unit or unit_in_header(header))


def _decimal_of_money(filled: Sequence[str]) -> str:
    """Amounts of money do not have three decimals."""
    is_money = all(map(MONEY.search, filled))
    return "," if is_money and any("." in text for text in filled) else ""


def unit_in_header(header: str) -> str:
    """Return the unit in a column's name: "Weight (kg)", "Revenue in EUR", "Price €"."""
    match = re.search(r"[(\[]\s*([^)\]\d]{1,8}?)\s*[)\]]\s*$", header) or re.search(
        r"\b(?:in|\|)\s+(EUR|USD|GBP|CHF|JPY|kg|g|km|m|cm|mm|€|\$|£|%)\s*$|"
        r"[ _](EUR|USD|GBP|CHF|JPY|kg|km)$",
        header,
        re.IGNORECASE,
    )
    if match is None:
        readable = re.findall(r"[(\[]([^()\[\]\d]{1,8})[)\]]", header)  # "Torque (Nm) dry"
        units = [unit for unit in readable if unit.casefold() in UNIT_SIGNS]
        return next((sign for sign in CURRENCY if sign in header), units[0] if units else "")
    unit = (match[1] or match[match.re.groups]).strip()
    return sign_of(unit) if unit.casefold() in CURRENCIES else unit


def read_number(text: str) -> float | int | None:
    """Parse a figure with sign, currency, unit, scale or ordinal; None where there is more text."""
    figure = parse_figure(text, decimal=".")
    return None if figure is None else figure.number


def truth_of(value: object) -> bool | None:
    """Return whether a value says yes or no; None where it says something else."""
    word = str(value).strip().casefold()
    if value is True or word in YES:
        return True
    return False if value is False or word in NO else None


ROWS = "#"  # stands for the rows: their count, or their order in the file
MOST_ROWS = 1_000
MOST_SAID = 6  # values of a condition that are written out
MONTHS = {str(number): month_name[number] for number in range(1, 13)}
Scalar = str | float | int | bool


class Op(StrEnum):
    """The comparisons; several values of `IS` are alternatives."""

    IS = "is"
    NOT = "is not"
    LESS = "below"
    AT_MOST = "at most"
    MORE = "above"
    AT_LEAST = "at least"
    HAS = "contains"
    LACKS = "does not contain"
    BLANK = "is blank"
    FILLED = "is filled"


class Part(StrEnum):
    """A part of a date or quarter."""

    WHOLE = ""
    YEAR = "year"
    QUARTER = "quarter"
    MONTH = "month"
    DAY = "day"


class Kind(StrEnum):
    """The aggregates."""

    COUNT = "count"
    DISTINCT = "distinct"
    SUM = "sum"
    AVERAGE = "average"
    MEDIAN = "median"
    MIN = "min"
    MAX = "max"
    SPREAD = "spread"  # the largest less the smallest
    SHARE = "share"  # a group's part of the sum over all groups, in percent
    CHANGE = "change"  # of the sum against the previous group, in percent


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on a column, or on "measure 1" of the groups.

    With `other` it compares with that column of the same row.
    """

    column: str
    op: Op = Op.IS
    values: tuple[Scalar, ...] = ()
    part: Part = Part.WHOLE
    other: str = ""


@dataclass(frozen=True, slots=True)
class Key:
    """A column by which rows are grouped."""

    column: str
    part: Part = Part.WHOLE


@dataclass(frozen=True, slots=True)
class Measure:
    """An aggregate of a column; of `#` only the count."""

    kind: Kind
    column: str = ROWS


MEASURED = "measure "  # followed by a number: refers to a measure in place of a column


@dataclass(frozen=True, slots=True)
class Order:
    """An order by a column, by `#` (as in the file), or by a measure ("measure 1")."""

    by: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """The rows a number of rows after (or before) those that meet conditions."""

    of: tuple[Filter, ...]
    rows: int = 1  # negative: before


@dataclass(frozen=True, slots=True)
class TablePlan:
    """A query of one table."""

    table: str = ""
    filters: tuple[Filter, ...] = ()
    group: tuple[Key, ...] = ()
    measures: tuple[Measure, ...] = ()
    order: tuple[Order, ...] = ()
    limit: int | None = None
    columns: tuple[str, ...] = ()  # the columns to show where nothing is aggregated
    outer: Kind | None = None  # an aggregate of the groups' figures
    step: Step | None = None
    each: tuple[Key, ...] = ()  # the limit applies to each value of these keys
    among: "TablePlan | None" = None  # restricts the rows to this plan's result
    chart: str = ""  # "", "auto", "bar", "line", "share", "none": how it is drawn

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def compared(self) -> frozenset[str]:
        """The columns whose values are compared, ordered or aggregated."""
        filtered = {filter_.column for filter_ in self.filters if filter_.op not in (Op.IS, Op.NOT)}
        return frozenset(filtered | {m.column for m in self.measures} | {o.by for o in self.order})


@dataclass(frozen=True, slots=True)
class Choice:
    """A table and a plan that a question may mean."""

    table: Table
    plan: TablePlan
    unused: tuple[str, ...] = ()  # words of the question that the plan does not use
    is_sure: bool = False  # it may be answered without asking back
    used: int = 0  # words of columns, values, rows, times and figures

    @property
    def is_cell(self) -> bool:
        """Whether it only looks up cells, which passages contain as well."""
        return not (self.plan.measures or self.plan.order or self.plan.group)


def plan_from(values: Mapping[str, Any]) -> TablePlan:
    """Read a plan from JSON. Raises UserError with what is wrong or too much."""
    refuse_vast(values)
    try:
        return _READER().validate_python(_plain(values))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise UserError(f"The plan cannot be read: {place}: {first['msg']}.") from error


@cache
def _READER() -> TypeAdapter[TablePlan]:  # noqa: N802  (a constant, made when it is first needed)
    return TypeAdapter(TablePlan)


def _plain(node: Any, name: str = "") -> Any:
    """Remove nulls; turn a bare name into a key, and a bare value into a list."""
    if isinstance(node, Mapping):
        entries = {("values" if key == "value" else key): value for key, value in node.items()}
        return {k: _plain(v, k) for k, v in entries.items() if v not in (None, {}) and v != ""}
    if name == "values" and not isinstance(node, list | tuple):
        return [node]
    if isinstance(node, list | tuple):
        is_key = name in ("group", "each")
        return [{"column": e} if is_key and isinstance(e, str) else _plain(e) for e in node]
    return node


# ── Against a table ──────────────────────────────────────────────────────────────────────────


def checked(plan: TablePlan, table: Table) -> TablePlan:
    """Return the plan if the table can answer it. Raises UserError with what it cannot answer."""
    for name in columns_of_plan(plan):
        _check_name(name, plan, table)
    for condition in conditions(plan):
        _check_values(condition, table)
    for measure in plan.measures:
        _check_measure(measure, table)
    if plan.among is not None:
        checked(plan.among, table)
    if plan.limit is not None and not 1 <= plan.limit <= MOST_ROWS:
        raise UserError(f"The limit is {plan.limit}; expected 1 to {MOST_ROWS:,} rows.")
    if plan.outer is not None and not plan.measures:
        raise UserError("A figure of the groups' figures needs a measure.")
    return plan


def _check_name(name: str, plan: TablePlan, table: Table) -> None:
    if name.startswith(MEASURED) and name not in measure_places(len(plan.measures)):
        raise UserError(f"The plan speaks of {name}, but has {len(plan.measures)}.")
    if name != ROWS and not name.startswith(MEASURED):
        column_of(table, name)


def conditions(plan: TablePlan) -> list[Filter]:
    """Return all filters, including those of the step."""
    return [*plan.filters, *(plan.step.of if plan.step else ())]


UNCOMPARED = (Op.BLANK, Op.FILLED)  # operators without a value


def _check_values(filter_: Filter, table: Table) -> None:
    """Check that a filter has values, of the column's type."""
    is_figure = filter_.column.startswith(MEASURED)
    if (is_figure or filter_.other) and filter_.op in (Op.HAS, Op.LACKS, *UNCOMPARED):
        raise UserError(
            f"“{filter_.op}” says nothing of {filter_.column}; expected such as “above”."
        )
    if filter_.op in UNCOMPARED or filter_.other:
        return
    if not filter_.values:
        raise UserError(f"The condition “{filter_.op}” needs a value.")
    column = None if is_figure or filter_.column == ROWS else column_of(table, filter_.column)
    is_as_written = filter_.op in (Op.IS, Op.NOT) and all(
        isinstance(v, str) for v in filter_.values
    )
    if filter_.op in (Op.HAS, Op.LACKS) or (column and column.has_text and is_as_written):
        return
    kind = column.type if column and not filter_.part else ColumnType.NUMBER
    for value in map(str, filter_.values):
        is_number = read_number(value) is not None
        is_date = kind is ColumnType.DATE and (read_date(value) or re.fullmatch("[0-9]{4}", value))
        if kind in (ColumnType.NUMBER, ColumnType.DURATION) and not is_number:
            raise UserError(f"{value[:40]!r} is no number, and the condition needs one.")
        if kind is ColumnType.DATE and not is_date:
            raise UserError(f"{value[:40]!r} is no date such as 2026-05-31, nor a year.")


FIGURES_ONLY = frozenset({Kind.SUM, Kind.AVERAGE, Kind.MEDIAN, Kind.SHARE, Kind.CHANGE})
ADDABLE = frozenset({ColumnType.NUMBER, ColumnType.DURATION})


def _check_measure(measure: Measure, table: Table) -> None:
    if measure.column == ROWS:
        if measure.kind not in (Kind.COUNT, Kind.SHARE):
            raise UserError(f"The {measure.kind} of rows says nothing; name a column.")
        return
    column = column_of(table, measure.column)
    if measure.kind in FIGURES_ONLY and column.type not in ADDABLE:
        raise UserError(f"{column.name} holds {column.type}s: there is no {measure.kind} of them.")


def measure_places(count: int) -> list[str]:
    """Return the names that refer to so many measures in place of a column."""
    return [f"{MEASURED}{number}" for number in range(1, count + 1)]


def columns_of_plan(plan: TablePlan) -> list[str]:
    """Return every column that the plan names."""
    filters = conditions(plan)
    return [
        *(filter_.column for filter_ in filters),
        *(filter_.other for filter_ in filters if filter_.other),
        *(key.column for key in (*plan.group, *plan.each)),
        *(measure.column for measure in plan.measures),
        *(order.by for order in plan.order),
        *plan.columns,
    ]


def column_of(table: Table, name: str) -> TableColumn:
    """Return a column by name. Raises UserError with the existing names."""
    for column in table.columns:
        if column.name == name:
            return column
    for column in table.columns:
        if column.name.casefold() == name.casefold().strip():
            return column
    names = ", ".join(column.name for column in table.columns[:30])
    raise UserError(f"{table.name} has no column {name!r}. It has: {names}.")


def of_group(plan: TablePlan, row: Sequence[Scalar | None]) -> TablePlan:
    """Return the plan for the rows of one group of its result."""
    keys = tuple(
        Filter(key.column, Op.BLANK, (), key.part)
        if value is None
        else Filter(key.column, Op.IS, (value,), key.part)
        for key, value in zip(plan.group, row, strict=False)
    )
    filters = (filter_ for filter_ in plan.filters if not filter_.column.startswith(MEASURED))
    return replace(
        plan, filters=(*filters, *keys), group=(), measures=(), order=(), limit=None, each=()
    )


# ── In words ─────────────────────────────────────────────────────────────────────────────────


def in_words(plan: TablePlan) -> str:
    """Describe the plan in one line: "add up Revenue by Product with Quarter Q3, highest 10"."""
    parts = [_subject_words(plan)]
    if plan.filters:
        parts[0] += f" with {' and '.join(filter_words(filter_, plan) for filter_ in plan.filters)}"
    if plan.among is not None:
        parts.append(f"of those ({in_words(plan.among)})")
    if plan.step is not None:
        side = "after" if plan.step.rows > 0 else "before"
        of = " and ".join(map(filter_words, plan.step.of))
        parts.append(f"the row {side} the one with {of}")
    parts += [] if is_extreme(plan) else _order_words(plan)
    if plan.each:
        parts.append(f"in each {' and '.join(map(key_words, plan.each))}")
    return ", ".join(parts)


def is_extreme(plan: TablePlan) -> bool:
    """Return whether the plan shows the first rows by an order, with their names."""
    by = plan.order[0].by if plan.order else ""
    return bool(plan.limit and not plan.measures and by in plan.columns and plan.columns[1:])


def _subject_words(plan: TablePlan) -> str:
    if is_extreme(plan):
        end, count = plan.order[0], "" if plan.limit == 1 else f"{plan.limit} "
        rows = " and ".join(column_words(column) for column in plan.columns if column != end.by)
        return f"the {count}{rows} with the {_side(end)} {column_words(end.by)}"
    by = " and ".join(map(key_words, plan.group))
    what = " and ".join(map(measure_words, plan.measures))
    what = what or ", ".join(map(column_words, plan.columns)) or "all columns"
    if plan.outer is not None:
        what = f"{plan.outer} of the {what}"
    return f"{what} by {by}" if by else what


def _side(order: Order) -> str:
    return "highest" if order.descending else "lowest"


def column_words(name: str) -> str:
    """Return a column's name as words: `price_eur` is two."""
    return name.replace("_", " ")


def filter_words(filter_: Filter, plan: TablePlan | None = None) -> str:
    """Describe a condition; one on a measure needs its plan."""
    name = key_words(Key(filter_.column, filter_.part))
    if plan is not None and name.startswith(MEASURED):
        name = measure_words(plan.measures[int(name.removeprefix(MEASURED)) - 1])
    if filter_.other:
        comparison = "equal to" if filter_.op is Op.IS else str(filter_.op)
        return f"{name} {comparison} {column_words(filter_.other)}"
    operands = [part_words(value, filter_.part) for value in filter_.values[:MOST_SAID]]
    more = len(filter_.values) - len(operands)
    values = " or ".join(operands) + (f" or {more} more" if more else "")
    sign = "" if filter_.op is Op.IS else f"{filter_.op} "
    return f"{name} {sign}{values}".rstrip()


def part_words(value: Scalar, part: Part) -> str:
    """Write a value as its part of a date: "Q3", "May"."""
    if part is Part.QUARTER:
        return f"Q{value}"
    if part is Part.MONTH and str(value) in MONTHS:
        return MONTHS[str(value)]
    return value_words(value)


def value_words(value: Scalar) -> str:
    """Write a value without needless digits."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def key_words(key: Key) -> str:
    """Describe a group key."""
    is_same = key.part.casefold() == key.column.casefold()
    name = column_words(key.column)
    return f"{key.part} of {name}" if key.part and not is_same else name


def measure_words(measure: Measure) -> str:
    """Describe a measure."""
    name = column_words(measure.column)
    if measure.column == ROWS:
        return "share of rows" if measure.kind is Kind.SHARE else "count of rows"
    if measure.kind is Kind.DISTINCT:
        return f"count of different {name}"
    if measure.kind is Kind.SPREAD:
        return f"difference in {name}"
    return f"{_CALLED.get(measure.kind, measure.kind)} {name}"


_CALLED = {
    Kind.SUM: "total", Kind.MIN: "lowest", Kind.MAX: "highest", Kind.SHARE: "share of",
    Kind.CHANGE: "change of",
}  # fmt: skip


def measure_names(measures: Sequence[Measure]) -> list[str]:
    """Return the names of the result's figure columns."""
    return [
        ("Share (%)" if measure.kind is Kind.SHARE else "Rows")
        if measure.column == ROWS
        else f"{measure.column} ({SHORT.get(measure.kind, measure.kind)})"
        for measure in measures
    ]


SHORT = {Kind.DISTINCT: "different", Kind.SHARE: "share, %", Kind.CHANGE: "change, %"}


def _order_words(plan: TablePlan) -> list[str]:
    if not plan.order:
        return [] if plan.limit is None else [f"first {plan.limit}"]
    first = plan.order[0]
    side, count = _side(first), "" if plan.limit is None else f" {plan.limit}"
    if first.by == ROWS:
        return [f"{'last' if first.descending else 'first'}{count} of the table"]
    if first.by.startswith(MEASURED):
        return [f"{side}{count or ' first'}"]
    return [f"{side}{count} by {first.by}" if count else f"ordered by {first.by}, {side} first"]


_OFFERED = {code: ROW_WORDS[f"offered_{code}"] for code in ("en", "de", "fr")}


def offer_words(plan: TablePlan, table: str, code: str) -> str:
    """Describe a plan in a language, for the button that chooses it."""
    forms = _OFFERED.get(code, _OFFERED["en"])
    text = _offered_subject(plan, table, forms)
    if plan.group:
        keys = f" {forms['and']} ".join(map(key_words, plan.group))
        text += forms["by"].format(key=keys)
    signs = dict(pair.split(": ") for pair in forms["ops"].split("; "))
    for form, is_without in (("with", False), ("without", True)):
        those = [e for e in plan.filters if (_truth(e) is False) is is_without]
        conditions = f" {forms['and']} ".join(
            _offered_condition(filter_, signs, forms) for filter_ in those
        )
        text += forms[form].format(conditions=conditions) if conditions else ""
    if plan.order and not is_extreme(plan):
        text += forms["falling" if plan.order[0].descending else "rising"]
        text += forms["first"].format(count=plan.limit) if plan.limit else ""
    return capitalised(text)


def _offered_subject(plan: TablePlan, table: str, forms: Mapping[str, str]) -> str:
    if is_extreme(plan):
        by, names = plan.order[0], [name for name in plan.columns if name != plan.order[0].by]
        return forms["end" if plan.limit == 1 else "ends"].format(
            column=_joined(names, forms),
            side=forms["highest" if by.descending else "lowest"],
            by=column_words(by.by),
            count=plan.limit,
        )
    if not plan.measures:
        return forms["columns" if plan.columns else "all"].format(
            column=_joined(plan.columns, forms), table=table
        )
    measures = [
        forms["count" if measure.column == ROWS else str(measure.kind)].format(
            column=column_words(measure.column), table=table
        )
        for measure in plan.measures
    ]
    return ", ".join(measures)


def _joined(names: Sequence[str], forms: Mapping[str, str]) -> str:
    return f" {forms['and']} ".join(map(column_words, names))


def _truth(filter_: Filter) -> bool | None:
    """Return whether a condition asks for yes or no; None where it asks for something else."""
    truths = {truth_of(value) for value in filter_.values}
    truth = truths.pop() if len(truths) == 1 else None
    is_plain = truth is not None and filter_.op in (Op.IS, Op.NOT)
    return (truth is (filter_.op is Op.IS)) if is_plain else None


def _offered_condition(filter_: Filter, signs: Mapping[str, str], forms: Mapping[str, str]) -> str:
    """Describe a condition: "Fee above 2", "Depot Mole or Rime".

    A condition on a yes/no column is described by the column's name only.
    """
    if _truth(filter_) is not None:
        return filter_.column
    values = [part_words(value, filter_.part) for value in filter_.values[:MOST_SAID]]
    operand = f" {forms['or']} ".join(values) or column_words(filter_.other)
    name = key_words(Key(filter_.column, filter_.part))
    return " ".join(filter(None, (name, signs.get(str(filter_.op), ""), operand)))


def capitalised(text: str) -> str:
    """Return the text with a capital letter at its beginning."""
    return text[:1].upper() + text[1:]


MOST = {
    "filters": 50,
    "values": 1_000,
    "group": 8,
    "measures": 20,
    "order": 10,
    "columns": 1_000,
    "each": 8,
    "of": 20,
}  # fmt: skip
MOST_IN_ALL = 3_000  # entries of a plan in total
MOST_KEYS = 50  # of one object
DEEPEST = 12  # nesting of objects and lists: a plan within three others
LONGEST_TEXT = 2_000  # of one value or name
MOST_COLUMNS = 400  # of a queried grid: wider ones exceed DuckDB's memory limit
LONGEST_QUESTION = 1_000  # characters: longer texts are not questions to a table


def refuse_long(question: str) -> None:
    """Raise TooLarge with the question's length and the limit."""
    if len(question) > LONGEST_QUESTION:
        raise TooLarge(
            f"The question has {len(question):,} characters; a table is asked in at most "
            f"{LONGEST_QUESTION:,}. Send a plan, or ask for less at once."
        )


def refuse_vast(plan: Mapping[str, Any]) -> None:
    """Raise TooLarge with what exceeds which limit."""
    seen, waiting = 0, [("plan", plan, 1)]
    while waiting:
        name, value, depth = waiting.pop()
        seen += 1
        _check(name, value)
        if depth > DEEPEST:
            raise TooLarge(f"The plan is nested deeper than {DEEPEST} levels, the limit.")
        if seen > MOST_IN_ALL:
            raise TooLarge(f"The plan has more than {MOST_IN_ALL:,} entries, the limit.")
        if isinstance(value, Mapping):
            waiting += [(str(key), child, depth + 1) for key, child in value.items()]
        elif isinstance(value, list | tuple):
            waiting += [("", child, depth + 1) for child in value]


def _check(name: str, value: Any) -> None:
    most = MOST.get(name, MOST_IN_ALL)
    if isinstance(value, list | tuple) and len(value) > most:
        raise TooLarge(
            f"The plan has {len(value):,} {name or 'entries'}; at most {most:,} are taken."
        )
    if isinstance(value, Mapping) and len(value) > MOST_KEYS:
        raise TooLarge(f"{name or 'An entry'} has {len(value):,} fields; at most {MOST_KEYS}.")
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        raise TooLarge(
            f"A text of the plan has {len(value):,} characters; at most {LONGEST_TEXT:,} are taken."
        )

"""What a question asks of a table, as data: what code turns into SQL, and people can read."""

from calendar import month_name
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from rag.errors import UserError
from rag.records import ColumnType, Table, TableColumn

ROWS = "#"  # stands for the rows themselves: counted, or in the order of the file
ROW, TOTAL = "row", "is_total"  # what a file of rows holds beside its columns
MOST_ROWS = 1_000
MOST_SAID = 6  # values of a condition in words
MONTHS = {str(number): month_name[number] for number in range(1, 13)}
Scalar = str | float | int | bool


class Op(StrEnum):
    """How a value is compared; several values of `IS` are alternatives."""

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
    """What of a date or quarter is meant."""

    WHOLE = ""
    YEAR = "year"
    QUARTER = "quarter"
    MONTH = "month"
    DAY = "day"


class Kind(StrEnum):
    """Ways to make one figure of many."""

    COUNT = "count"
    DISTINCT = "distinct"
    SUM = "sum"
    AVERAGE = "average"
    MEDIAN = "median"
    MIN = "min"
    MAX = "max"
    SPREAD = "spread"  # the largest less the smallest
    SHARE = "share"  # of the sum over all groups, in percent
    CHANGE = "change"  # of the sum, against the group before, in percent


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on a column; with `of`, against that column's value in the rows which meet it."""

    column: str
    op: Op
    values: tuple[Scalar, ...] = ()
    part: Part = Part.WHOLE
    of: tuple["Filter", ...] = ()


@dataclass(frozen=True, slots=True)
class Key:
    """A column by which rows are put together."""

    column: str
    part: Part = Part.WHOLE


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure; of `#` only the count."""

    kind: Kind
    column: str = ROWS


@dataclass(frozen=True, slots=True)
class Order:
    """By a column, by `#` (as in the file), or by a measure ("measure 1")."""

    by: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """The rows that come so many after (or before) those which meet a condition."""

    of: tuple[Filter, ...]
    rows: int = 1  # negative: before


@dataclass(frozen=True, slots=True)
class TablePlan:
    """One question to one table."""

    table: str
    filters: tuple[Filter, ...] = ()
    group: tuple[Key, ...] = ()
    measures: tuple[Measure, ...] = ()
    order: tuple[Order, ...] = ()
    limit: int | None = None
    columns: tuple[str, ...] = ()  # of the rows themselves, where nothing is measured
    outer: Kind | None = None  # one figure of the groups' figures
    step: Step | None = None
    chart: str = ""  # "", "auto", "bar", "line", "share", "none": how it is drawn

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Understood:
    """A plan with what the planner made of the question."""

    plan: TablePlan
    score: float
    unused: tuple[str, ...] = ()  # words of the question that the plan does not use
    doubts: tuple[str, ...] = field(default=())


def plan_from(given: Mapping[str, Any]) -> TablePlan:
    """A plan from JSON. Raises UserError that names what is wrong."""
    try:
        return TablePlan(
            table=str(given.get("table", "")),
            filters=tuple(map(_filter, given.get("filters") or ())),
            group=tuple(_key(each) for each in given.get("group") or ()),
            measures=tuple(_measure(each) for each in given.get("measures") or ()),
            order=tuple(_order(each) for each in given.get("order") or ()),
            limit=None if given.get("limit") is None else int(given["limit"]),
            columns=tuple(map(str, given.get("columns") or ())),
            outer=Kind(given["outer"]) if given.get("outer") else None,
            step=_step(given.get("step")),
            chart=str(given.get("chart") or ""),
        )
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise UserError(f"The plan cannot be read: {error}.") from error


def _filter(given: Mapping[str, Any]) -> Filter:
    values = given.get("values", given.get("value", ()))
    several = values if isinstance(values, list | tuple) else [values]
    if not all(isinstance(value, str | int | float | bool) for value in several):
        raise ValueError("'values' of a filter must be texts, numbers, true or false")
    return Filter(
        str(given["column"]),
        Op(given.get("op", "is")),
        tuple(several),
        Part(given.get("part") or ""),
        tuple(map(_filter, given.get("of") or ())),
    )


def _key(given: Any) -> Key:
    if isinstance(given, str):
        return Key(given)
    return Key(str(given["column"]), Part(given.get("part") or ""))


def _measure(given: Mapping[str, Any]) -> Measure:
    return Measure(Kind(given["kind"]), str(given.get("column") or ROWS))


def _order(given: Mapping[str, Any]) -> Order:
    return Order(str(given["by"]), bool(given.get("descending", False)))


def _step(given: Mapping[str, Any] | None) -> Step | None:
    return None if not given else Step(tuple(map(_filter, given["of"])), int(given.get("rows", 1)))


# ── Against a table ──────────────────────────────────────────────────────────────────────────


def checked(plan: TablePlan, table: Table) -> TablePlan:
    """The plan, if the table can answer it. Raises UserError that names what it cannot."""
    for column in _named_columns(plan):
        if column != ROWS:
            column_of(table, column)
    for measure in plan.measures:
        _check_measure(measure, table)
    for order in plan.order:
        if order.by.startswith("measure ") and order.by not in _measure_names(plan):
            raise UserError(f"The plan orders by {order.by}, but has {len(plan.measures)}.")
    if plan.limit is not None and not 1 <= plan.limit <= MOST_ROWS:
        raise UserError(f"The limit is {plan.limit}; expected 1 to {MOST_ROWS:,} rows.")
    if plan.outer is not None and not plan.measures:
        raise UserError("A figure of the groups' figures needs a measure.")
    return plan


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


def _measure_names(plan: TablePlan) -> set[str]:
    return {f"measure {number}" for number in range(1, len(plan.measures) + 1)}


def _named_columns(plan: TablePlan) -> list[str]:
    filters = [*plan.filters, *(plan.step.of if plan.step else ())]
    filters += [inner for each in filters for inner in each.of]
    by = [order.by for order in plan.order if not order.by.startswith("measure ")]
    return [
        *(each.column for each in filters),
        *(key.column for key in plan.group),
        *(measure.column for measure in plan.measures),
        *by,
        *plan.columns,
    ]


def column_of(table: Table, name: str) -> TableColumn:
    """Raises UserError with the names that there are."""
    for column in table.columns:
        if column.name == name:
            return column
    for column in table.columns:
        if column.name.casefold() == name.casefold().strip():
            return column
    known = ", ".join(column.name for column in table.columns[:30])
    raise UserError(f"{table.name} has no column {name!r}. It has: {known}.")


def of_group(plan: TablePlan, row: Sequence[Scalar | None]) -> TablePlan:
    """The plan for the rows of one group of its result."""
    own = tuple(
        Filter(
            key.column,
            Op.BLANK if value is None else Op.IS,
            () if value is None else (value,),
            key.part,
        )
        for key, value in zip(plan.group, row, strict=False)
    )
    return replace(plan, filters=(*plan.filters, *own), group=(), measures=(), order=(), limit=None)


# ── In words ─────────────────────────────────────────────────────────────────────────────────


def in_words(plan: TablePlan) -> str:
    """The plan in one line: "Quarter is Q3, sum of Revenue by Product, highest 10"."""
    parts = [_filter_words(each) for each in plan.filters]
    if plan.step is not None:
        side = "after" if plan.step.rows > 0 else "before"
        parts.append(f"the row {side} the one where {_joined(plan.step.of)}")
    measured = " and ".join(map(measure_words, plan.measures))
    by = " and ".join(map(key_words, plan.group))
    what = measured or ", ".join(plan.columns) or "all columns"
    if plan.outer is not None:
        what = f"{plan.outer} of the {measured}"
    parts.append(f"{what} by {by}" if by else what)
    parts += _order_words(plan)
    return ", ".join(parts)


def _joined(filters: Sequence[Filter]) -> str:
    return " and ".join(map(_filter_words, filters))


def _filter_words(each: Filter) -> str:
    name = key_words(Key(each.column, each.part))
    if each.of:
        return f"{name} {each.op} that of the row where {_joined(each.of)}"
    shown = [_part_words(value, each.part) for value in each.values[:MOST_SAID]]
    more = len(each.values) - len(shown)
    values = " or ".join(shown) + (f" or {more} more" if more else "")
    sign = "=" if each.op is Op.IS else each.op
    return f"{name} {sign} {values}".rstrip()


def _part_words(value: Scalar, part: Part) -> str:
    if part is Part.QUARTER:
        return f"Q{value}"
    if part is Part.MONTH and str(value) in MONTHS:
        return MONTHS[str(value)]
    return value_words(value)


def value_words(value: Scalar) -> str:
    """A value without needless digits."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def key_words(key: Key) -> str:
    """What rows are put together by."""
    is_same = key.part.casefold() == key.column.casefold()
    return f"{key.part} of {key.column}" if key.part and not is_same else key.column


def measure_words(measure: Measure) -> str:
    """What a measure is called over its column."""
    if measure.column == ROWS:
        return "share of rows" if measure.kind is Kind.SHARE else "number of rows"
    if measure.kind is Kind.DISTINCT:
        return f"number of different {measure.column}"
    if measure.kind is Kind.SPREAD:
        return f"difference in {measure.column}"
    return f"{measure.kind} of {measure.column}"


def _order_words(plan: TablePlan) -> list[str]:
    if not plan.order:
        return [] if plan.limit is None else [f"first {plan.limit}"]
    first = plan.order[0]
    count = "" if plan.limit is None else f" {plan.limit}"
    if first.by == ROWS:
        return [f"{'last' if first.descending else 'first'}{count} of the table"]
    if first.by.startswith("measure "):
        return [f"{'highest' if first.descending else 'lowest'}{count or ' first'}"]
    side = "highest" if first.descending else "lowest"
    return [f"{side}{count} by {first.by}" if count else f"ordered by {first.by}, {side} first"]

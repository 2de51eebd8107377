"""Results of tables as the pages show them: rows, picture, and the plan as a form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from markupsafe import Markup

from rag.errors import UserError
from rag.records import ColumnType, Message, Table
from rag.render.chart import Chart, chart_of, sorted_places
from rag.seams import SourceRegister
from rag.tables.execution.result import TableResult, result_from
from rag.tables.plan import (
    MEASURED,
    ROWS,
    Filter,
    Kind,
    Op,
    Order,
    Part,
    Scalar,
    TablePlan,
    measure_places,
    measure_words,
    plan_from,
    value_words,
)
from rag.tables.types import read_number

ROWS_IN_ANSWER = 20
SPARE = 2  # empty lines for more conditions
BETWEEN = ";"


@dataclass(frozen=True, slots=True)
class ShownResult:
    """A result ready to be shown."""

    result: TableResult
    number: int
    rows: tuple[tuple[str, ...], ...]
    places: tuple[int, ...]  # where each stands in the result, from 0
    chart: Chart | None
    sorted_by: int = -1
    is_descending: bool = False

    @property
    def svg(self) -> Markup:
        """Written by us; every text in it is escaped there."""
        return Markup(self.chart.svg if self.chart else "")

    @property
    def makes_chart(self) -> bool:
        """Whether these rows can be drawn, also where nobody asked for it."""
        return chart_of(self.result, "bar") is not None

    @property
    def left_out(self) -> int:
        return len(self.result.rows) - len(self.rows)


def shown_result(
    session: SourceRegister,
    number: int,
    *,
    limit: int | None = None,
    order: str = "",
    chart: str = "",
) -> ShownResult | None:
    """The result behind a number; `order` is a column from 0, with a minus for descending."""
    stored = session.result(number)
    if stored is None:
        return None
    result = result_from(stored)
    by = int(order.lstrip("-")) if order.lstrip("-").isdecimal() else -1
    down = order.startswith("-")
    places = sorted_places(result, by, down)[:limit]
    shown = tuple(tuple(result.shown(result.rows[place])) for place in places)
    return ShownResult(result, number, shown, tuple(places), chart_of(result, chart), by, down)


def result_of(session: SourceRegister, message: Message) -> ShownResult | None:
    """The table that an answer shows, its first rows."""
    if message.answer is None or message.answer.result is None:
        return None
    shown = shown_result(session, message.answer.result, limit=ROWS_IN_ANSWER)
    return None if shown is None or shown.result.is_figure or not shown.rows else shown


def without_rows(text: str) -> str:
    """An answer's words without the rows that stand below them as a table."""
    return "\n".join(line for line in text.split("\n") if not line.startswith("|"))


# ── The plan as a form, which works without scripts ───────────────────────────────────────────────


class Form(Protocol):
    """What a browser sends."""

    def getlist(self, key: str) -> list[str]: ...
    def get(self, key: str) -> str | None: ...


@dataclass(frozen=True, slots=True)
class PlanForm:
    """What the form shows."""

    plan: TablePlan
    columns: tuple[str, ...]
    filters: tuple[tuple[str, str, str, str], ...]  # column, part, op, values
    group: tuple[tuple[str, str], ...]
    measures: tuple[tuple[str, str], ...]
    orders: tuple[tuple[str, str], ...]  # value, words
    kept: int  # conditions that the form cannot say and leaves as they are
    ops: Sequence[str] = tuple(Op)
    parts: Sequence[str] = tuple(Part)
    kinds: Sequence[str] = tuple(Kind)


def form_of(plan: TablePlan, table: Table) -> PlanForm:
    """The lines of a plan, and empty ones for more."""
    columns = tuple(column.name for column in table.columns)
    plain = [filter_ for filter_ in plan.filters if _is_plain(filter_)]
    filters = [
        (f.column, str(f.part), str(f.op), f"{BETWEEN} ".join(map(value_words, f.values)))
        for f in plain
    ]
    measures = [(str(measure.kind), measure.column) for measure in plan.measures]
    return PlanForm(
        plan=plan,
        columns=columns,
        filters=(*filters, *[("", "", str(Op.IS), "")] * SPARE),
        group=(*((key.column, str(key.part)) for key in plan.group), ("", "")),
        measures=(*measures, ("", "")),
        orders=(
            (ROWS, "the order of the table"),
            *zip(
                measure_places(len(plan.measures)), map(measure_words, plan.measures), strict=True
            ),
            *((name, name) for name in columns),
        ),
        kept=len(plan.filters) - len(plain),
    )


def _is_plain(filter_: Filter) -> bool:
    """Whether the form can say it: a column against values."""
    return not (filter_.other or filter_.column.startswith(MEASURED))


def plan_from_form(form: Form, plan: TablePlan, table: Table) -> TablePlan:
    """The plan as it was changed. Raises UserError that says what is missing or cannot be."""
    kinds = {column.name: column.type for column in table.columns}
    conditions = _lines(form, "filter", "column", "part", "op", "values")
    read = plan_from(
        {
            "filters": [
                condition | {"values": _values(condition, kinds)} for condition in conditions
            ],
            "group": _lines(form, "group", "column", "part"),
            "measures": _lines(form, "measure", "kind", "column"),
            "limit": _limit((form.get("limit") or "").strip()),
        }
    )
    if read.group and not read.measures:
        raise UserError(
            "Rows are put together, but no figure is chosen. Choose one, such as count."
        )
    return replace(
        plan,
        filters=(*(filter_ for filter_ in plan.filters if not _is_plain(filter_)), *read.filters),
        group=read.group,
        measures=read.measures,
        order=_order(form, len(read.measures), grouped=bool(read.group)),
        limit=read.limit,
        columns=() if read.measures else tuple(form.getlist("columns")),
        outer=plan.outer if read.measures else None,
    )


def _lines(form: Form, what: str, *fields: str) -> list[dict[str, str]]:
    """Those of one kind, whose first field says something."""
    lines = zip(*(form.getlist(f"{what}_{field}") for field in fields), strict=False)
    return [dict(zip(fields, line, strict=True)) for line in lines if line[0]]


def _values(line: Mapping[str, str], kinds: Mapping[str, ColumnType]) -> tuple[Scalar, ...]:
    kind, op, part = kinds.get(line["column"]), line["op"], line["part"]
    values = tuple(filter(None, map(str.strip, line["values"].split(BETWEEN))))
    if op in (Op.BLANK, Op.FILLED):
        return ()
    if op in (Op.HAS, Op.LACKS):
        return values
    if part or kind in (ColumnType.NUMBER, ColumnType.DURATION):
        bare = [value.lstrip("Qq") if part else value for value in values]
        numbers = map(read_number, bare)
        return tuple(v if n is None else n for v, n in zip(bare, numbers, strict=True))
    if kind is ColumnType.BOOLEAN:
        return tuple(value.casefold() in ("yes", "true", "1", "ja") for value in values)
    return values


def _order(form: Form, measures: int, *, grouped: bool) -> tuple[Order, ...]:
    by = form.get("order") or ROWS
    down = form.get("descending") is not None
    if by.startswith(MEASURED) and by not in measure_places(measures):
        by = ROWS
    is_default = by == ROWS and (not down or measures > 0)
    return () if is_default or (measures and not grouped) else (Order(by, down),)


def _limit(text: str) -> int | None:
    if text and not text.isdecimal():
        raise UserError(
            f"The number of rows is {text[:20]!r}; a whole number such as 10 is expected."
        )
    return int(text) if text else None

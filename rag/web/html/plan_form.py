"""A plan as a form that works without scripts, and the form as a plan."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from rag.errors import UserError
from rag.records import ColumnType, Table
from rag.tables.plan import (
    MEASURED,
    ROWS,
    Filter,
    Key,
    Kind,
    Measure,
    Op,
    Order,
    Part,
    Scalar,
    TablePlan,
    measure_words,
    value_words,
)
from rag.tables.reading.types import read_number

SPARE = 2  # empty lines for more conditions
BETWEEN = ";"


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
    plain = [each for each in plan.filters if _is_plain(each)]
    filters = [
        (
            each.column,
            str(each.part),
            str(each.op),
            f"{BETWEEN} ".join(map(value_words, each.values)),
        )
        for each in plain
    ]
    measures = [(str(each.kind), each.column) for each in plan.measures]
    return PlanForm(
        plan=plan,
        columns=columns,
        filters=(*filters, *[("", "", str(Op.IS), "")] * SPARE),
        group=(*((key.column, str(key.part)) for key in plan.group), ("", "")),
        measures=(*measures, ("", "")),
        orders=(
            (ROWS, "the order of the table"),
            *((f"measure {at}", measure_words(m)) for at, m in enumerate(plan.measures, 1)),
            *((name, name) for name in columns),
        ),
        kept=len(plan.filters) - len(plain),
    )


def _is_plain(each: Filter) -> bool:
    """Whether the form can say it: a column against values."""
    return not (each.of or each.other or each.column.startswith(MEASURED))


def plan_from_form(form: Form, plan: TablePlan, table: Table) -> TablePlan:
    """The plan as it was changed. Raises UserError that says what is missing or cannot be."""
    kinds = {column.name: column.type for column in table.columns}
    lines = zip(
        *(form.getlist(f"filter_{part}") for part in ("column", "part", "op", "values")),
        strict=False,
    )
    filters = [
        Filter(column, Op(op), _values(values, kinds.get(column), Op(op), part), Part(part))
        for column, part, op, values in lines
        if column and _is_known(op, Op) and _is_known(part, Part)
    ]
    groups = zip(form.getlist("group_column"), form.getlist("group_part"), strict=False)
    group = tuple(
        Key(column, Part(part)) for column, part in groups if column and _is_known(part, Part)
    )
    figures = zip(form.getlist("measure_kind"), form.getlist("measure_column"), strict=False)
    measures = tuple(
        Measure(Kind(kind), column or ROWS)
        for kind, column in figures
        if kind and _is_known(kind, Kind)
    )
    if group and not measures:
        raise UserError(
            "Rows are put together, but no figure is chosen. Choose one, such as count."
        )
    return replace(
        plan,
        filters=(*(each for each in plan.filters if not _is_plain(each)), *filters),
        group=group,
        measures=measures,
        order=_order(form, measures, grouped=bool(group)),
        limit=_limit(form.get("limit") or ""),
        columns=() if measures else tuple(form.getlist("columns")),
        outer=plan.outer if measures else None,
    )


def _is_known(value: str, kind: type[Op | Part | Kind]) -> bool:
    if value not in list(kind):
        raise UserError(f"{value[:40]!r} is none of {', '.join(filter(None, kind))}.")
    return True


def _values(text: str, kind: ColumnType | None, op: Op, part: str) -> tuple[Scalar, ...]:
    given = tuple(each.strip() for each in text.split(BETWEEN) if each.strip())
    if op in (Op.BLANK, Op.FILLED):
        return ()
    if not given:
        raise UserError(
            f"The condition “{op}” needs a value; several are separated by “{BETWEEN}”."
        )
    if op in (Op.HAS, Op.LACKS):
        return given
    if part or kind in (ColumnType.NUMBER, ColumnType.DURATION):
        return tuple(_figure(each.lstrip("Qq") if part else each) for each in given)
    if kind is ColumnType.BOOLEAN:
        return tuple(each.casefold() in ("yes", "true", "1", "ja") for each in given)
    return given


def _figure(text: str) -> Scalar:
    number = read_number(text)
    if number is None:
        raise UserError(f"{text[:40]!r} is no number, and the condition needs one.")
    return number


def _order(form: Form, measures: Sequence[Measure], *, grouped: bool) -> tuple[Order, ...]:
    by = form.get("order") or ROWS
    down = form.get("descending") is not None
    if by.startswith("measure ") and int(by.removeprefix("measure ") or 0) > len(measures):
        by = ROWS
    is_default = by == ROWS and (not down or bool(measures))
    return () if is_default or (measures and not grouped) else (Order(by, down),)


def _limit(text: str) -> int | None:
    if not text.strip():
        return None
    if not text.strip().isdecimal():
        raise UserError(
            f"The number of rows is {text[:20]!r}; a whole number such as 10 is expected."
        )
    return int(text)

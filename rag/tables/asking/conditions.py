"""Conditions in a question: values, what is left out, yes and no, times, figures."""

from collections.abc import Sequence
from dataclasses import replace

from rag.records import ColumnType, TableColumn
from rag.tables.asking.index import Use
from rag.tables.asking.matching import Matched
from rag.tables.asking.times import Time, columns_of, conditions_of
from rag.tables.asking.words import (
    CUES,
    FIGURES,
    ORDERED,
    THAN,
    Adjective,
    has_unit,
    has_years,
    is_of_money,
    measured_by,
)
from rag.tables.plan import Filter, Op

OPS = {"=": Op.IS, ">=": Op.AT_LEAST, "<=": Op.AT_MOST, ">": Op.MORE, "<": Op.LESS}


def read_conditions(reading: Matched) -> None:
    """Find them all, and use their words."""
    for name in dict.fromkeys(use.name for use in reading.of("column")):
        _yes_or_no(reading, [use for use in reading.of("column") if use.name == name])
    _between(reading)
    for use in reading.of("time", "number"):
        if use not in reading.used:
            _compared(reading, use)
    _columns_compared(reading)
    for use in reading.of("value"):
        _value(reading, use)


def filters_of(reading: Matched) -> tuple[Filter, ...]:
    """All conditions; several values of one column are alternatives."""
    merged: list[Filter] = []
    for _at, each in sorted(reading.filters, key=lambda pair: pair[0]):
        same = next((old for old in merged if is_alternative(old, each)), None)
        if same is None:
            merged.append(each)
        else:
            values = tuple(dict.fromkeys((*same.values, *each.values)))
            merged[merged.index(same)] = replace(same, values=values)
    return tuple(merged)


def is_alternative(old: Filter, new: Filter) -> bool:
    """Whether both are of the same thing, so that their values stand beside each other."""
    is_same = (old.column, old.part, old.op) == (new.column, new.part, new.op)
    return is_same and old.op in (Op.IS, Op.NOT)


def _add(reading: Matched, at: int, *filters: Filter) -> None:
    reading.filters += [(at, each) for each in filters]


# ── Values ───────────────────────────────────────────────────────────────────────────────────


def _value(reading: Matched, use: Use) -> None:
    denied = _denied(reading, use)
    _add(reading, use.start, Filter(use.name, Op.NOT if denied else Op.IS, use.values))
    reading.use(use, denied, *_beside(reading, use))


def _denied(reading: Matched, use: Use) -> Use | None:
    """ "Without" before it, and other values between."""
    before = reading.before(use.start)
    while before is not None and before.kind in ("value", "column", "or"):
        before = reading.before(before.start)
    return before if before is not None and before.kind == "not" else None


def _beside(reading: Matched, use: Use) -> list[Use]:
    """Its column's own name next to it: "warranty of …", "the group speakers"."""
    near = (reading.before(use.start), reading.after(use.end))
    return [each for each in near if each and each.kind == "column" and each.name == use.name]


def _is_grouped(reading: Matched, uses: Sequence[Use]) -> bool:
    before = [reading.before(each.start) for each in uses]
    return any(each is not None and each.kind == "group" for each in before)


def _yes_or_no(reading: Matched, uses: list[Use]) -> None:
    """A column of yes and no is a condition; "without a price" are a column's empty cells."""
    column, start = reading.column(uses[0]), uses[0].start
    before = [reading.before(each.start) for each in uses]
    denied = next((each for each in before if each is not None and each.kind == "not"), None)
    if column.type is not ColumnType.BOOLEAN:
        if denied is not None and (none := _none_of(reading, column)):
            _add(reading, start, none)
            reading.use(*uses, denied)
        return
    if _is_grouped(reading, uses) or reading.words[max(0, start - 1)] in ("which", "what"):
        return
    said = {reading.words[at] for each in uses for at in range(each.start, each.end)}
    if denied is None and all(map(reading.index.is_named, said)):  # a fight song is no fight
        reading.ways = max(reading.ways, 2)
        if reading.way % 2:
            rows = {each: replace(each, kind="rows") for each in uses}
            reading.uses = [rows.get(each, each) for each in reading.uses]
            return
    _add(reading, start, Filter(column.name, Op.IS, (denied is None,)))
    reading.use(*uses, denied)


def _none_of(reading: Matched, column: TableColumn) -> Filter | None:
    """How a column says that there is none: empty cells, "None", 0."""
    if column.blanks:
        return Filter(column.name, Op.BLANK)
    denying = (
        v for v in reading.index.values.get(column.name, ()) if CUES.get((v.casefold(),)) == "not"
    )
    said = next(denying, None)
    if said is not None:
        return Filter(column.name, Op.IS, (said,))
    return Filter(column.name, Op.IS, (0,)) if column.low == "0" else None


# ── Figures and times ────────────────────────────────────────────────────────────────────────


def _between(reading: Matched) -> None:
    for use in reading.of("between"):
        first = reading.after(use.end)
        joint = reading.after(first.end) if first else None
        last = reading.after(joint.end) if joint and joint.kind in ("and", "compared") else None
        if first is None or last is None or not {first.kind, last.kind} <= {"time", "number"}:
            continue
        column = _column_for(reading, last, use) or _column_for(reading, first, use)
        if isinstance(first.told, Time) and isinstance(last.told, Time) and not first.told.year:
            first = replace(first, told=replace(first.told, year=last.told.year))
        pairs = ((first, Op.AT_LEAST), (last, Op.AT_MOST))
        found = [e for each, op in pairs for e in _filters(reading, each, op, column)]
        if len(found) >= 2:
            _add(reading, use.start, *found)
            reading.used += [e for e in reading.uses if use.start <= e.start < last.end]


def _compared(reading: Matched, use: Use) -> None:
    """A figure or a time with what compares it, and its column."""
    sign, op = _sign(reading, use)
    behind = reading.after(use.end)
    column = _column_for(reading, use, sign)
    if behind is not None and behind.kind == "compared" and behind.name.startswith("or "):
        op = OPS[behind.name.removeprefix("or ")]
        reading.use(behind)
    found = _filters(reading, use, op, column)
    if found:
        _add(reading, use.start, *found)
        reading.use(use, sign)


def _sign(reading: Matched, use: Use) -> tuple[Use | None, Op]:
    before = reading.before(use.start)
    if before is not None and before.kind == "compared" and not before.name.startswith("or "):
        return before, OPS[before.name]
    if before is not None and before.kind == "adjective" and isinstance(before.told, Adjective):
        than = set(reading.words[before.end : use.start]) & THAN
        if than and before.told.degree == "more":
            return before, Op.MORE if before.told.up else Op.LESS
    return None, Op.IS


def _filters(reading: Matched, use: Use, op: Op, column: TableColumn | None) -> list[Filter]:
    columns = reading.index.table.columns
    if isinstance(use.told, Time):
        is_figure = column is not None and column.type in FIGURES and not has_years(column)
        if is_figure and column is not None:
            return [Filter(column.name, op, (use.told.year,))]
        fitting = columns_of(columns, use.told)
        if column is not None and column in fitting:
            fitting = [column]
        elif len(fitting) > 1:
            reading.doubts.append("took a column for the time: the question names none")
        chosen = reading.choose(fitting)
        return conditions_of(chosen, use.told, op, columns) if chosen else []
    if column is None or not isinstance(use.told, tuple) or column.type not in FIGURES:
        return []
    return [Filter(column.name, op, (use.told[0],))]


def _column_for(reading: Matched, use: Use, sign: Use | None) -> TableColumn | None:
    """The column of a figure: named beside it, meant by "heavier", or of its unit."""
    if sign is not None and isinstance(sign.told, Adjective) and sign.told.measures:
        hinted = measured_by(sign.told, reading.index.table.columns)
        return reading.choose(hinted)
    unit = use.told[1] if isinstance(use.told, tuple) else ""
    start = sign.start if sign is not None else use.start
    for near in (reading.after(use.end), reading.before(start)):
        if near is None or near.kind != "column" or (near in reading.used and sign is None):
            continue
        column = reading.column(near)
        if isinstance(use.told, Time):
            is_bare = use.told.year and use.length == 1 and (sign or near.start >= use.end)
            fits = column in columns_of(reading.index.table.columns, use.told)
            fits = fits or bool(is_bare and _may_hold(column, use.told.year))
        else:
            fits = column.type in FIGURES
        if fits and (not unit or has_unit(column, unit) or not _units(reading)):
            reading.use(near)
            return column
    is_time = isinstance(use.told, Time)
    return None if is_time else _of_unit(reading, unit, named=sign is not None)


def _may_hold(column: TableColumn, figure: int) -> bool:
    """Of a year that may be a figure: "price over 2000"."""
    return column.type in FIGURES and float(column.low or 0) <= figure <= float(column.high or 0)


def _units(reading: Matched) -> bool:
    return any(column.unit for column in reading.index.table.columns)


def _of_unit(reading: Matched, unit: str, *, named: bool) -> TableColumn | None:
    """The only one of this unit; of several, the one that is named."""
    columns = [c for c in reading.index.table.columns if unit and has_unit(c, unit)]
    said = [e for e in reading.of("column") if reading.column(e).type in FIGURES]
    fitting = [e for e in said if not unit or reading.column(e) in columns]
    if named and len({e.name for e in fitting}) == 1:
        reading.use(fitting[0])
        return reading.column(fitting[0])
    if len(columns) > 1 and is_of_money(columns[0]):
        return reading.choose(columns)
    return columns[0] if len(columns) == 1 else None


def _columns_compared(reading: Matched) -> None:
    """ "A fee higher than the deposit", "more booked than seats": two columns of a row."""
    for use in reading.of("compared", "adjective", "after"):
        if use in reading.used:
            continue
        op = _column_op(use)
        second = reading.after(use.end)
        first = reading.before(use.start)
        if first is None or first.kind != "column" or reading.column(first).type not in ORDERED:
            first, second = second, reading.after(second.end) if second else None
        pair = [e for e in (first, second) if e is not None and e.kind == "column"]
        if op is None or len(pair) != 2 or pair[0].name == pair[1].name:
            continue
        if all(reading.column(e).type in ORDERED for e in pair):
            _add(reading, use.start, Filter(pair[0].name, op, other=pair[1].name))
            reading.use(use, *pair)


def _column_op(use: Use) -> Op | None:
    if use.kind == "compared":
        return OPS.get(use.name)
    if isinstance(use.told, Adjective):
        is_more = use.told.degree == "more"
        return (Op.MORE if use.told.up else Op.LESS) if is_more else None
    return {"more": Op.MORE, "less": Op.LESS, "fewer": Op.LESS}.get(use.name)

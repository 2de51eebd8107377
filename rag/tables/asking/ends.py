"""One end of an order: "top 10 products", "which driver has the most points"."""

from dataclasses import replace

from rag.records import TableColumn
from rag.tables.asking.index import Use
from rag.tables.asking.matching import Matched
from rag.tables.asking.words import (
    ADJECTIVES,
    COUNTED,
    FIGURES,
    MAIN,
    MOST,
    ORDERED,
    Adjective,
    goes_down,
    has_years,
    is_added,
    measured_by,
    of_price,
    parts_of,
)
from rag.tables.plan import MEASURED, Filter, Key, Kind, Measure, Op, Order, TablePlan
from rag.tables.wordforms import is_identifier

FIRST = f"{MEASURED}1"


def is_end(use: Use, reading: Matched) -> bool:
    """ "Tallest"; "taller" of two that are named."""
    degree = use.told.degree if isinstance(use.told, Adjective) else ""
    is_of_two = any(len(each.values) > 1 for _at, each in reading.filters)
    is_of_two |= len({each.values for _at, each in reading.filters}) > 1
    is_most = degree == "most" or (degree == "more" and is_of_two)
    return is_most and use not in reading.used


def ranked(
    reading: Matched, end: Use, groups: tuple[Key, ...], filters: tuple[Filter, ...]
) -> TablePlan | None:
    """ "Top 10 products", "which driver has the most points"."""
    others = [e for e in reading.of("adjective") if is_end(e, reading) and e is not end]
    limit = limit_of(reading, end)
    adjective, at = _of_end(reading, end)
    others = [e for e in others if e not in reading.used]
    if others and end.name == "top":  # "top 5 most expensive"
        reading.use(end)
        found = ranked(reading, others[0], groups, filters)
        return found and replace(found, limit=max(limit, found.limit or 1))
    if others:
        return None
    figure = _measured_end(reading, adjective, at)
    if figure is None and end.name in ("top", "bottom") and limit > 1:
        figure = _main(reading)
    named = [e for e in reading.free() if figure is None or e.name != figure.name]
    named = [e for e in named if reading.column(e).type not in FIGURES or e.start < end.start]
    reading.use(end, *named[:1])
    target = named[0].name if named else ""
    if figure is None:
        return _most_rows(reading, end, at, target, TablePlan("", filters, limit=limit))
    plan = TablePlan("", filters, order=(Order(figure.name, goes_down(adjective, figure)),))
    return _ordered(reading, replace(plan, limit=limit, each=groups), target, _adds(end, figure))


def _adds(end: Use, figure: TableColumn) -> bool:
    """ "The most" may be of many rows; "the highest", "the cheapest" are one figure."""
    return end.name in COUNTED | {"top", "bottom"} and is_added(figure)


def _most_rows(
    reading: Matched, end: Use, at: int, target: str, plan: TablePlan
) -> TablePlan | None:
    """ "Which valley has the most trails": rows are counted, where the rows are what is said."""
    if end.name not in COUNTED or not target or not reading.index.repeats(target):
        return None
    noun = reading.after(at)
    is_of_rows = noun is None or noun.kind in ("rows", "people")
    if noun is not None and not is_of_rows and noun.name not in (reading.index.subject, target):
        return None
    if noun is None and at < len(reading.words):
        return None  # a word that nobody knows
    behind = reading.after(noun.end) if noun is not None else None
    if is_of_rows and behind is not None and behind.name == target:
        return None  # "the most common surname"
    reading.use(noun)
    order = (Order(FIRST, end.name in MOST),)
    return replace(plan, group=(Key(target),), measures=(Measure(Kind.COUNT),), order=order)


def _ordered(reading: Matched, plan: TablePlan, target: str, adds: bool) -> TablePlan | None:
    """Rows, or groups where several rows share what is asked for, in the order of a figure."""
    (order,), subject = plan.order, reading.index.subject
    alone = [e for e in plan.filters if e.op is Op.IS and len(e.values) == 1 and not e.part]
    name = target or subject
    if plan.limit == 1 and name in {each.column for each in alone}:
        return None  # an end of what is one thing
    if target and reading.index.repeats(name) and (adds or (plan.limit or 1) > 1):
        kind = Kind.SUM if adds else Kind.MAX if order.descending else Kind.MIN
        if kind is Kind.SUM:
            reading.leave(order.by)  # "departures" may be none of "departure day"
        else:
            reading.doubts.append(f"took the {kind} of {order.by} of each: it is not added up")
        by = (Order(FIRST, order.descending),)
        measures = (Measure(kind, order.by),)
        return replace(plan, group=(*plan.each, Key(name)), measures=measures, order=by)
    among = [e.column for e in plan.filters if e.op is Op.IS and len(e.values) > 1]
    shown = [*(key.column for key in plan.each), *among, subject, name, order.by]
    return replace(plan, columns=tuple(dict.fromkeys(shown)))


def _of_end(reading: Matched, end: Use) -> tuple[Adjective, int]:
    """What "cheapest" or "most expensive" is, and where it ends."""
    told = ADJECTIVES[end.name]
    follows = reading.after(end.end)
    plain = follows.told if follows is not None and follows.start == end.end else None
    if end.name in ("most", "least") and isinstance(plain, Adjective) and follows is not None:
        reading.use(follows)
        up = plain.up == (end.name == "most")
        return Adjective(up, plain.measures, "most"), follows.end
    return told, end.end


def _measured_end(reading: Matched, adjective: Adjective, at: int) -> TableColumn | None:
    """The figure that an end is of: named behind it, measured by its adjective, or named at all."""
    columns = reading.index.table.columns
    follows = reading.after(at)
    if follows is not None and follows.kind == "column":
        column = reading.column(follows)
        hinted = measured_by(adjective, columns) if adjective.measures else []
        is_other = bool(adjective.measures) and column not in hinted
        is_other = is_other and (of_price(adjective.measures) or column.type not in FIGURES)
        if column.type in ORDERED and not is_other:
            reading.use(follows, reading.before(follows.start) if follows.start > at else None)
            return column
    if adjective.measures:
        hinted = measured_by(adjective, columns)
        found = reading.choose(hinted)
        if found is not None:
            reading.use(*(e for e in reading.free() if e.name == found.name))
            return found
        if adjective.measures[0] not in ("height", "size"):
            return None
    free = [e for e in reading.free(figures=True) if not has_years(reading.column(e))]
    free.sort(key=lambda use: use.start < at)
    reading.use(*free[:1])
    return reading.column(free[0]) if free else None


def _main(reading: Matched) -> TableColumn | None:
    """What a top is of where the question names no figure; that is said."""
    figures = [c for c in reading.index.table.columns if c.type in FIGURES and not is_identifier(c)]
    for word in MAIN:
        for column in figures:
            if word in parts_of(column.name):
                reading.doubts.append(f"ranked by {column.name}: the question names no figure")
                return column
    return None


def limit_of(reading: Matched, end: Use) -> int:
    """ "Top 5", "the three cheapest", "which two boats have the most …"."""
    for use in reading.of("number"):
        number = use.told[0] if isinstance(use.told, tuple) and not use.told[1] else 0
        near = (reading.after(use.end), reading.before(use.start))
        is_near = end in near or any(e and e.kind in ("rows", "column") for e in near[:1])
        if use not in reading.used and isinstance(number, int) and number > 0 and is_near:
            reading.use(use)
            return number
    return 1

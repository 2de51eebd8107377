"""What follow-ups change of a plan's groups, figures and order."""

from dataclasses import replace

from rag.records import ColumnType
from rag.tables.asking.ends import limit_of
from rag.tables.asking.follow_up import FollowUp
from rag.tables.asking.index import Use
from rag.tables.asking.planner import groups_of
from rag.tables.asking.words import (
    ORDERED,
    Adjective,
    goes_down,
    measured_by,
)
from rag.tables.plan import (
    MEASURED,
    ROWS,
    Kind,
    Measure,
    Order,
    TablePlan,
)

FIRST = f"{MEASURED}1"
KINDS = {"sum": Kind.SUM, "average": Kind.AVERAGE, "median": Kind.MEDIAN, "count": Kind.COUNT}
ENDS = {"max": Kind.MAX, "maximum": Kind.MAX, "maximale": Kind.MAX,
    "min": Kind.MIN, "minimum": Kind.MIN, "minimale": Kind.MIN}  # fmt: skip


def reshaped(asked: FollowUp, plan: TablePlan) -> TablePlan:
    """Sorted, cut off at one end, or by other groups and with other figures."""
    reading = asked.reading
    if asked.says("reverse") and plan.order:
        first = plan.order[0]
        return replace(plan, order=(replace(first, descending=not first.descending),))
    if asked.says("sort", "falling", "rising"):
        return sorted(asked, plan)
    end = next(iter(ends(asked)), None)
    kind = next((KINDS[e.kind] for e in reading.of(*KINDS)), None)
    reading.use(*reading.of(*KINDS))
    if end is not None and end.name in ENDS and plan.measures:
        kind = ENDS[end.name]
        reading.use(end)
    elif end is not None:
        return from_end(asked, plan, end)
    plan = grouped(asked, plan)
    if reading.of("share") and plan.measures:
        reading.takes("share")
        return shared(asked, plan)
    if kind is Kind.COUNT and asked.points:
        reading.use(*reading.free())
        return TablePlan(plan.table, plan.filters, measures=(Measure(Kind.COUNT),))
    return measured(asked, plan, kind)


def ends(asked: FollowUp) -> list[Use]:
    """Words for one end of an order."""
    found = asked.reading.of("adjective")
    return [e for e in found if isinstance(e.told, Adjective) and e.told.degree == "most"]


def grouped(asked: FollowUp, plan: TablePlan) -> TablePlan:
    """ "By region" adds a group; rows that were listed are counted by it."""
    keys = groups_of(asked.reading)
    if not keys or keys == plan.group:
        return plan
    if not plan.measures:
        measures = (Measure(Kind.COUNT),)
        return replace(plan, group=keys, measures=measures, columns=(), order=(), limit=None)
    if asked.says("instead"):
        return replace(plan, group=keys, outer=None)
    kept = (k for k in plan.group if k not in keys)
    return replace(plan, group=(*kept, *keys), outer=None)


def shared(asked: FollowUp, plan: TablePlan) -> TablePlan:
    """ "As a share": of all groups together, or of the whole table."""
    base = plan.measures[0]
    share = Measure(Kind.SHARE, base.column)
    is_whole = not plan.group and not plan.filters
    if share in plan.measures or is_whole or base.kind not in (Kind.SUM, Kind.COUNT):
        return plan
    return replace(plan, measures=(base, share), outer=None)


def measured(asked: FollowUp, plan: TablePlan, kind: Kind | None) -> TablePlan:
    """Another way to put figures together, or another figure."""
    named = asked.reading.free(figures=True)
    asked.reading.use(*named[:1])
    figures = [asked.reading.column(each) for each in named]
    if not plan.measures:
        if kind not in (Kind.AVERAGE, Kind.MEDIAN, Kind.SUM) or not figures:
            return plan
        measure = Measure(kind, figures[0].name)
        return replace(plan, measures=(measure,), columns=(), order=(), limit=None)
    if kind is Kind.COUNT:
        return replace(plan, measures=(Measure(Kind.COUNT),))
    old = plan.measures[0]
    column = figures[0].name if figures else old.column
    if (kind is None and not figures) or column == ROWS:
        return plan
    wanted = kind or (old.kind if old.column != ROWS else Kind.SUM)
    rest = tuple(replace(e, column=column) if figures else e for e in plan.measures[1:])
    return replace(plan, measures=tuple(dict.fromkeys((Measure(wanted, column), *rest))))


def sorted(asked: FollowUp, plan: TablePlan) -> TablePlan:
    """ "Sort by price", "highest first": figures from the highest, names from the lowest."""
    named = [each.name for each in asked.reading.of("column")]
    asked.reading.use(*asked.reading.of("column", "group", "adjective", "first"))
    texts = [n for n in named if asked.reading.index.column(n).type is ColumnType.TEXT]
    down = asked.says("falling") or not (asked.says("rising") or texts or not plan.measures)
    if plan.measures:
        by = named[0] if named else FIRST
        return replace(plan, order=(Order(by, down),))
    columns = plan.columns or (asked.reading.index.subject,)
    by = named[0] if named else (plan.order[0].by if plan.order else columns[0])
    return replace(plan, order=(Order(by, down),))


def from_end(asked: FollowUp, plan: TablePlan, end: Use) -> TablePlan:
    """ "The cheapest three of those", "which is the cheapest?", "the lowest instead"."""
    adjective = end.told if isinstance(end.told, Adjective) else Adjective(up=True)
    said = limit_of(asked.reading, end)
    asked.reading.use(end, *(e for e in asked.reading.of("rows")))
    if plan.measures and plan.group:
        order = (Order(FIRST, adjective.up),)
        return replace(plan, order=order, limit=said, outer=None)
    is_instead = said == 1 and plan.limit and asked.says("instead")
    known = [order.by for order in plan.order] + [each.column for each in plan.measures]
    own = [n for n in known if n != ROWS and not n.startswith(MEASURED)]
    free = asked.reading.free(figures=True)
    asked.reading.use(*free[:1])
    index = asked.reading.index
    hinted = measured_by(adjective, index.table.columns)
    old = [index.column(name) for name in own]
    columns = [*map(asked.reading.column, free), *(c for c in old if c in hinted), *hinted, *old]
    columns = [column for column in columns if column.type in ORDERED]
    if not columns:
        return plan
    column = columns[0]
    shown = plan.columns or ((index.subject,) if plan.measures or said == 1 else ())
    shown = tuple(dict.fromkeys((*shown, column.name))) if shown else ()
    order = (Order(column.name, goes_down(adjective, column)),)
    limit = plan.limit if is_instead else said
    return replace(plan, measures=(), outer=None, order=order, limit=limit, columns=shown)

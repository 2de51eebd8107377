"""Follow-ups as changes of the plan before: "What about Q4?", "by region", "the cheapest three".

A follow-up is short, or points back ("those", "there"), and says only what changes. What it does
not change stays. Words of it that the table does not know make it another question.
"""

from collections.abc import Sequence
from dataclasses import replace

from rag.records import ColumnType
from rag.tables.asking.conditions import filters_of, is_alternative, read_conditions
from rag.tables.asking.follow_up import FollowUp
from rag.tables.asking.index import TableIndex, Use
from rag.tables.asking.matching import readings
from rag.tables.asking.planner import asked_columns, chart_of
from rag.tables.asking.reshaping import reshaped
from rag.tables.asking.words import (
    PARTS,
    said_in,
    stems,
    words_of,
)
from rag.tables.plan import (
    Filter,
    Key,
    Kind,
    Op,
    Part,
    TablePlan,
    Understood,
)

KINDS = {"sum": Kind.SUM, "average": Kind.AVERAGE, "median": Kind.MEDIAN, "count": Kind.COUNT}
SIDES = {Op.AT_MOST: Op.LESS, Op.AT_LEAST: Op.MORE}


def edited(text: str, index: TableIndex, plans: Sequence[TablePlan]) -> Understood | None:
    """The newest plan as a follow-up changes it; `plans` are those before, newest last."""
    if not plans or not words_of(text):
        return None
    reading = readings(text, index, by_meaning=False)[0]
    asked = FollowUp(reading, plans)
    if not asked.leans():
        return None
    if asked.says("undo") and not asked.unused():
        return Understood(plans[-2] if len(plans) > 1 else plans[0], 1.0)
    read_conditions(reading)
    if asked.stands_alone():
        return None
    changed = made(asked)
    unused = tuple(asked.unused())
    if changed == plans[-1] and not asked.says("sort", "all_of"):
        return None
    if unused and not (asked.points and reading.used):
        return None
    return Understood(changed, 1.0, unused, tuple(dict.fromkeys(reading.doubts)))


# ── What becomes of the plan ─────────────────────────────────────────────────────────────


def made(asked: FollowUp) -> TablePlan:
    """The plan, changed."""
    together = compared(asked) if asked.says("compare") and asked.plan.measures else None
    plan = together or pointed_at(asked)
    if plan is None:
        plan = narrowed(asked, shifted(asked, without(asked, asked.plan)))
        plan = all_of(asked, plan)
        plan = reshaped(asked, plan)
        if asked.points and not asked.says("instead"):
            plan = among(asked, plan)
    chart = chart_of(asked.reading)
    return replace(plan, chart=chart) if chart else plan


def among(asked: FollowUp, plan: TablePlan) -> TablePlan:
    """ "Of those" are the ones that were shown, where not all were."""
    is_other = (plan.order, plan.measures) != (asked.plan.order, asked.plan.measures)
    shown = replace(asked.plan, chart="")
    return replace(plan, among=shown) if asked.plan.limit and is_other else plan


def pointed_at(asked: FollowUp) -> TablePlan | None:
    """ "When was that?", "how many seats has it?": another cell of the row that was shown."""
    reading, plan = asked.reading, asked.plan
    is_rows = not (plan.group or plan.measures) and bool(plan.order or plan.filters)
    says_more = reading.of("value", "number", "adjective", "group", *KINDS)
    wanted = [e.name for e in reading.free() if e.name not in plan.columns]
    wanted = wanted or asked_columns(reading, set(plan.columns))
    if not is_rows or says_more or not wanted or not (asked.points or plan.limit == 1):
        return None
    reading.use(*reading.free())
    shown = dict.fromkeys((*wanted, *plan.columns))
    return replace(plan, columns=tuple(shown))


def without(asked: FollowUp, plan: TablePlan) -> TablePlan:
    """ "Drop the region": a group goes whose column stands behind "without"."""
    denied = asked.reading.of("not")
    gone = [e for e in asked.reading.free() if denied and e.start >= denied[-1].end]
    kept = tuple(key for key in plan.group if key.column not in {e.name for e in gone})
    if len(kept) == len(plan.group):
        return plan
    asked.reading.use(*gone, *denied)
    return replace(plan, group=kept)


def narrowed(asked: FollowUp, plan: TablePlan) -> TablePlan:
    """A value takes the place of one of the same column, or is added."""
    kept = list(plan.filters)
    for each in filters_of(asked.reading):
        same = next((old for old in kept if is_alternative(old, each)), None)
        if same is not None and (asked.says("as_well") or each.op is Op.NOT):
            each = replace(each, values=tuple(dict.fromkeys((*same.values, *each.values))))
        kept = [old for old in kept if not _gives_way(old, each)]
        kept.append(each)
    return replace(plan, filters=tuple(kept))


def shifted(asked: FollowUp, plan: TablePlan) -> TablePlan:
    """The condition on a time, one further or one back."""
    said = next((e for e in asked.said if e[2] in ("earlier", "later")), None)
    part = next((PARTS[w] for w in asked.reading.words if w in PARTS), Part.YEAR)
    if said is None:
        return plan
    asked.reading.filters.clear()
    asked.reading.use(*asked.reading.free())
    for at, each in enumerate(plan.filters):
        column = asked.reading.index.column(each.column)
        is_year = part is Part.YEAR and not each.part and column.type is ColumnType.NUMBER
        if each.op is Op.IS and (each.part == part or is_year):
            by = 1 if said[2] == "later" else -1
            values = tuple(value + by for value in each.values if isinstance(value, int))
            moved = replace(each, values=values or each.values)
            return replace(plan, filters=(*plan.filters[:at], moved, *plan.filters[at + 1 :]))
    return plan


def all_of(asked: FollowUp, plan: TablePlan) -> TablePlan:
    """ "For all regions": the condition on that column goes."""
    for _start, end, name in asked.said:
        word = asked.reading.words[end] if end < len(asked.reading.words) else ""
        if name != "all_of" or not word:
            continue
        own = [e.name for e in asked.reading.of("column") if e.start == end]
        kept = [e for e in plan.filters if e.column not in own and not _is_part(e, word)]
        if len(kept) < len(plan.filters):
            asked.reading.use(*(e for e in asked.reading.of("column") if e.start == end))
            asked.reading.use(Use(end, end + 1, "all_of"))
            return replace(plan, filters=tuple(kept))
    return plan


def compared(asked: FollowUp) -> TablePlan | None:
    """ "Compare with 2024", "both years": alternatives, each with its own figure."""
    fresh = [each for each in filters_of(asked.reading) if each.op is Op.IS]
    filters, keys = list(asked.plan.filters), list(asked.plan.group)
    for each in fresh or both(asked):
        old = next((old for old in filters if is_alternative(old, each)), None)
        values = tuple(dict.fromkeys((*(old.values if old else ()), *each.values)))
        filters = [other for other in filters if other is not old]
        filters += [replace(each, values=values)] if len(values) > 1 else []
        key = Key(each.column, each.part)
        keys += [] if key in keys else [key]
    return replace(asked.plan, filters=tuple(filters), group=tuple(keys), outer=None, limit=None)


def both(asked: FollowUp) -> list[Filter]:
    """The value that was asked about before the one that stands."""
    named = asked.reading.free()
    asked.reading.use(*named)
    parts = {
        PARTS[w.removesuffix("s")] for w in asked.reading.words if w.removesuffix("s") in PARTS
    }
    for standing in asked.plan.filters:
        is_meant = standing.part in parts or standing.column in {e.name for e in named}
        for past in reversed(asked.plans[:-1]):
            for each in past.filters:
                if is_meant and is_alternative(each, standing) and each != standing:
                    words = {w for w in asked.reading.words if w.removesuffix("s") in PARTS}
                    at = [i for i, w in enumerate(asked.reading.words) if w in words]
                    asked.reading.use(*(Use(i, i + 1, "compare") for i in at))
                    return [each]
    return []


def standing(queries: Sequence[str], plans: Sequence[TablePlan]) -> list[TablePlan]:
    """The plans that stand: what was undone does not."""
    kept: list[TablePlan] = []
    for query, plan in zip(queries, plans, strict=True):
        is_undone = bool(said_in(words_of(query), "undo"))
        if is_undone and len(kept) > 1 and kept[-2] == plan:
            kept.pop()
        elif not kept or kept[-1] != plan:
            kept.append(plan)
    return kept


def _gives_way(old: Filter, new: Filter) -> bool:
    if (old.column, bool(old.other)) != (new.column, bool(new.other)):
        return False
    parts = {old.part, new.part}
    if len(parts) > 1:  # a month is one of the year that stands
        return new.op is not Op.NOT and (Part.WHOLE in parts or Part.YEAR not in parts)
    sides = [SIDES.get(each.op, each.op) for each in (old, new)]
    return sides[0] == sides[1] or (Op.IS in sides and new.op is not Op.NOT)


def _is_part(each: Filter, word: str) -> bool:
    """ "All years", "all regions": what the condition is of."""
    said = set(stems(word))
    names = [part for name in each.column.casefold().split() for part in stems(name)]
    return bool(said & {*names, *(stems(each.part) if each.part else ())})

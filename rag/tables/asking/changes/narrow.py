"""What follow-ups change of a plan's conditions: other values, fewer, more, side by side."""

import re
from collections.abc import Sequence
from dataclasses import replace

from rag.records import ColumnType
from rag.tables.asking.choosing import PARTS, part_keys
from rag.tables.asking.index import stem
from rag.tables.asking.question import Question, filters_of
from rag.tables.plan import Filter, Key, Op, Part, TablePlan
from rag.tables.wordforms import normalised

ALL_OF = re.compile(
    r"\b(?:back to |for |over |across |fur )?(?:all|any|every|alle)(?: the| of the| der)? (\w+)\b"
)
BESIDES = re.compile(r"\b(?:as well|too|also|add|plus|includ\w+|along with|auch|dazu)\b")
COMPARE = re.compile(
    r"\b(?:compared?|versus|vs|side by side|next to each other|both|vergl\w+|nebeneinander|beide)\b"
)
SHIFTS = {
    f"{side} {part}": (part, -1 if side in ("last", "previous", "prior") else 1)
    for part in (Part.YEAR, Part.QUARTER, Part.MONTH)
    for side in ("last", "previous", "prior", "next", "following")
} | {
    f"{part} {side}": (part, -1 if side == "before" else 1)
    for part in (Part.YEAR, Part.QUARTER, Part.MONTH)
    for side in ("before", "after")
}


def narrowed(plan: TablePlan, question: Question, said: str) -> TablePlan:
    """A value takes the place of one of the same column, or is added."""
    fresh = filters_of(question)
    kept, said_now = list(plan.filters), list[Filter]()
    for each in fresh:
        same = next((old for old in kept if _is_alternative(old, each)), None)
        if same is not None and (BESIDES.search(said) or each.op is Op.NOT):
            each = replace(each, values=tuple(dict.fromkeys((*same.values, *each.values))))
        kept = [old for old in kept if old in said_now or not _gives_way(old, each)]
        kept.append(each)
        said_now.append(each)
    group = tuple(
        key for key in plan.group
        if not any(
            (f.column, f.part, f.op) == (key.column, key.part, Op.IS) and len(f.values) == 1
            for f in fresh
        )
        or len(plan.group) == 1
    )  # fmt: skip
    return replace(plan, filters=tuple(kept), group=group)


def _is_alternative(old: Filter, new: Filter) -> bool:
    is_same = (old.column, old.part, old.op) == (new.column, new.part, new.op)
    return is_same and old.op in (Op.IS, Op.NOT)


SIDES = {Op.AT_MOST: Op.LESS, Op.AT_LEAST: Op.MORE}


def _gives_way(old: Filter, new: Filter) -> bool:
    if (old.column, bool(old.other)) != (new.column, bool(new.other)):
        return False
    parts = {old.part, new.part}
    if len(parts) > 1:  # a month is one of the year that stands
        return new.op is not Op.NOT and (Part.WHOLE in parts or Part.YEAR not in parts)
    sides = [SIDES.get(each.op, each.op) for each in (old, new)]
    return sides[0] == sides[1] or (Op.IS in sides and new.op is not Op.NOT)


def without_groups(plan: TablePlan, question: Question, said: str) -> TablePlan:
    """ "Drop the region": a group goes whose column stands behind "without"."""
    gone = {found.column for found in question.columns if found.start in question.negated}
    kept = tuple(key for key in plan.group if key.column not in gone)
    if len(kept) == len(plan.group):
        return plan
    question.use(0, len(question.words) if not question.values else 0)
    return replace(plan, group=kept)


def shifted(plan: TablePlan, question: Question, said: str) -> TablePlan:
    """The condition on a time, one further or one back."""
    found = next((shift for words, shift in SHIFTS.items() if words in said), None)
    if found is None:
        return plan
    part, by = found
    question.conditions, question.columns = [], []
    for at, each in enumerate(plan.filters):
        moved = _moved(each, part, by, question)
        if moved is not None:
            return replace(plan, filters=(*plan.filters[:at], moved, *plan.filters[at + 1 :]))
    return plan


def _moved(each: Filter, part: Part, by: int, question: Question) -> Filter | None:
    column = question.column(each.column)
    is_year = part is Part.YEAR and not each.part and column.type is ColumnType.NUMBER
    if each.op is not Op.IS or not (each.part == part or is_year):
        return None
    values = tuple(value + by for value in each.values if isinstance(value, int))
    most = {Part.QUARTER: 4, Part.MONTH: 12}.get(part, 9999)
    return replace(each, values=values) if values and all(1 <= v <= most for v in values) else None


def all_of(plan: TablePlan, question: Question, said: str) -> TablePlan:
    """ "For all regions": the condition on that column goes."""
    for match in ALL_OF.finditer(said):
        wanted = stem(match[1])
        kept = tuple(
            each
            for each in plan.filters
            if wanted not in {stem(word) for word in normalised(each.column).split()}
            and not (each.part and stem(each.part) == wanted)
        )
        if len(kept) < len(plan.filters):
            return replace(plan, filters=kept)
    return plan


def compared(plans: Sequence[TablePlan], question: Question, said: str) -> TablePlan | None:
    """ "Compare with 2024", "both years side by side": alternatives, each with its own figure."""
    plan = plans[-1]
    if not COMPARE.search(said) or not plan.measures:
        return None
    fresh = [each for each in filters_of(question) if each.op is Op.IS]
    if not fresh:
        return _both(plans, question)
    filters = list(plan.filters)
    keys = list(plan.group)
    for each in fresh:
        old = next((old for old in filters if _is_alternative(old, each)), None)
        values = tuple(dict.fromkeys((*(old.values if old else ()), *each.values)))
        filters = [other for other in filters if other is not old]
        filters += [replace(each, values=values)] if len(values) > 1 else []
        key = Key(each.column, each.part)
        keys += [] if key in keys else [key]
    return replace(plan, filters=tuple(filters), group=tuple(keys), outer=None, limit=None)


def _both(plans: Sequence[TablePlan], question: Question) -> TablePlan | None:
    """The last two values that were asked about."""
    plan = plans[-1]
    part = next((PARTS[word] for word in question.words if word in PARTS), None)
    named = [Key(found.column) for found in question.columns]
    keys = named[:1] or (part_keys(question, part)[-1:] if part else [])
    if not keys:
        return None
    (key,) = keys
    asked = [
        value
        for each in (each for past in plans for each in past.filters)
        if (each.column, each.part, each.op) == (key.column, key.part, Op.IS)
        for value in each.values
    ]
    last = tuple(dict.fromkeys(reversed(asked)))[1::-1]
    filters = tuple(f for f in plan.filters if (f.column, f.part) != (key.column, key.part))
    if len(last) == 2:
        filters = (*filters, Filter(key.column, Op.IS, last, key.part))
    group = plan.group if key in plan.group else (*plan.group, key)
    return replace(plan, filters=filters, group=group, outer=None, limit=None)

"""A follow-up over rows as a change of the last plan: "What about Q4?", "by region".

Every word that carries meaning has to be a change; else it is another question.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from rag.records import ColumnType
from rag.tables.matcher import FIRST, KINDS, Matched, Piece, TableWords, cover, pieces_of
from rag.tables.plan import Filter, Kind, Measure, Op, Order, TablePlan
from rag.tables.vocabulary import CHANGES, changes_in, drawing_in, goes_down, is_idle, words_of

_OPENING = frozenset(
    word
    for name in ("opening", "pointing", "as_well", "instead")
    for said in CHANGES[name]
    for word in said
)


def changed(question: str, table: TableWords, last: TablePlan) -> TablePlan | None:
    """The last plan with what the question changes of it; None where a word says anything else."""
    words = words_of(question)
    drawn, said = drawing_in(words)
    choices = product(*cover(list(pieces_of(words, table, set()))))
    pieces = sorted(next(choices, ()), key=lambda piece: piece.start)
    matched = Matched(words, pieces, table)
    if _stands_alone(matched):
        return None
    plan = _edited(matched, last)
    if drawn:
        plan = replace(plan, chart=drawn)
    taken = said | {
        position for piece in matched.used for position in range(piece.start, piece.end)
    }
    left = [w for index, w in enumerate(words) if index not in taken and not _is_idle(w)]
    return None if left or plan == last else plan


def _stands_alone(matched: Matched) -> bool:
    """Whether it names what is to be done and of what, and neither begins nor points back."""
    if changes_in(matched.words, "back", "rows") or _begins_back(matched.words):
        return False
    is_asked = bool(matched.of("count", *KINDS)) or any(
        piece.told.degree == "most" for piece in matched.of("adjective")
    )
    return is_asked and bool(matched.of("rows") or matched.free())


def _begins_back(words: Sequence[str]) -> bool:
    return any(start == 0 for start, _end, _name in changes_in(words, "fragment"))


def _is_idle(word: str) -> bool:
    return is_idle(word) or word in _OPENING


def _edited(matched: Matched, last: TablePlan) -> TablePlan:
    """Conditions, groups, the measure, the order and the limit, each as the words say it."""
    plan = _with_conditions(matched, last)
    plan = _with_groups(matched, plan)
    plan = _with_measure(matched, plan)
    return _with_end(matched, plan)


def _with_conditions(matched: Matched, plan: TablePlan) -> TablePlan:
    """A value takes the place of the values of its column."""
    filters = matched.filters()
    kept = (e for e in plan.filters if not _is_replaced(e, filters) or _adds(e, filters))
    return replace(plan, filters=(*kept, *filters))


def _is_replaced(kept: Filter, filters: Sequence[Filter]) -> bool:
    """Whether one of these is of the same column, and of the same part of its dates or of all."""
    return any(
        each.column == kept.column and (each.part == kept.part or not (each.part and kept.part))
        for each in filters
    )


def _adds(kept: Filter, filters: Sequence[Filter]) -> bool:
    """ "Without Berlin" stands beside what was chosen."""
    return all(each.op is Op.NOT for each in filters if each.column == kept.column)


def _with_groups(matched: Matched, plan: TablePlan) -> TablePlan:
    keys = matched.groups()
    if not keys:
        return plan
    new = tuple(key for key in keys if key not in plan.group)
    if plan.limit and plan.group:  # the top ten, told apart
        return replace(plan, group=(*plan.group, *new))
    measures = plan.measures or _measures_of(plan, matched.table)
    return replace(
        plan, group=new or plan.group, measures=measures, columns=(), order=(), limit=None
    )


def _measures_of(plan: TablePlan, table: TableWords) -> tuple[Measure, ...]:
    by = plan.order[0].by if plan.order else ""
    return (Measure(Kind.SUM, by) if by in table.by_name else Measure(Kind.COUNT),)


def _with_measure(matched: Matched, plan: TablePlan) -> TablePlan:
    pieces = matched.of(*KINDS)
    figures = matched.free(figures=True)
    if not plan.measures or not (pieces or figures):
        return plan
    old = plan.measures[0]
    kind = KINDS[pieces[0].kind] if pieces else old.kind
    column = figures[0].name if figures else old.column
    if column not in matched.table.by_name:
        return plan
    kind = Kind.SUM if kind is Kind.COUNT else kind
    matched.use(*pieces[:1], *figures[:1])
    return replace(plan, measures=(Measure(kind, column),))


def _with_end(matched: Matched, plan: TablePlan) -> TablePlan:
    """The other end of the order, and how many."""
    ends = [p for p in matched.of("adjective") if p.told.degree == "most"]
    for piece in matched.of("number"):
        if piece not in matched.used and plan.order and _is_count(piece):
            matched.use(piece)
            plan = replace(plan, limit=int(piece.told[0]))
    if not ends or not plan.order:
        return plan
    by = plan.order[0].by
    column = matched.table.by_name.get(plan.measures[0].column if by == FIRST else by)
    if column is None or column.type is ColumnType.TEXT:
        return plan
    measured = matched.measured(ends[0])
    if measured and column not in measured:
        return plan
    matched.use(ends[0])
    falls = goes_down(ends[0].told, column)
    return replace(plan, order=(Order(by, falls), *plan.order[1:]))


def _is_count(piece: Piece) -> bool:
    number, unit = piece.told
    return not unit and float(number).is_integer() and 0 < number <= 1_000

"""What follow-ups change of a plan's groups, figures, order, length and picture."""

import re
from dataclasses import replace

from rag.records import ColumnType
from rag.tables.asking.changes.narrow import BESIDES
from rag.tables.asking.choosing import (
    directed,
    grouped_by,
    is_added,
    measured_by,
    named_figures,
)
from rag.tables.asking.ends import End, end_of
from rag.tables.asking.question import FIGURES, Question
from rag.tables.asking.words import COUNT, KINDS, SHARE
from rag.tables.plan import ROWS, Kind, Measure, Order, TablePlan

CHART = re.compile(
    r"\b(?:(bar|line|pie|share|column|balken|linien|kreis)[ -]?)?(?:chart|graph|diagram|plot|"
    r"picture|visuali[sz]\w*|diagramm)\b|\b(balken|linien|kreis|saulen)diagramm\b"
)
DRAWN = re.compile(rf"\b(?:as|in|with) an? {CHART.pattern}|^(?:plot|draw|chart)\b", re.IGNORECASE)
DRAWINGS = {
    "pie": "share", "kreis": "share", "column": "bar", "balken": "bar", "saulen": "bar",
    "linien": "line",
}  # fmt: skip
SORT = re.compile(r"\b(?:sort(?:ed)?|order(?:ed)?|rank(?:ed)?|sortiere?t?)\b")
DOWN = re.compile(
    r"\b(?:descending|desc|(?:highest|largest|biggest|most|newest|latest) first|high to low|"
    r"highest to lowest|absteigend)\b"
)
UP = re.compile(
    r"\b(?:ascending|asc|(?:lowest|smallest|fewest|oldest|earliest|cheapest) first|low to high|"
    r"lowest to highest|aufsteigend)\b"
)
REVERSED = re.compile(r"\b(?:reverse[d]?|other way round|the other way|umgekehrt)\b")
TABLE = re.compile(r"\b(?:as a table|no chart|without (?:the |a )?chart|als tabelle)\b")
INSTEAD = re.compile(r"\b(?:instead|rather|statt|stattdessen)\b")
ENDS = {"max": Kind.MAX, "maximum": Kind.MAX, "min": Kind.MIN, "minimum": Kind.MIN}


def reshaped(plan: TablePlan, question: Question, said: str) -> TablePlan:
    """Sorted, or cut off at one end, or else by other groups and with other figures."""
    if REVERSED.search(said) and plan.order:
        first = plan.order[0]
        return replace(plan, order=(replace(first, descending=not first.descending),))
    if any(pattern.search(said) for pattern in (SORT, DOWN, UP)):
        return _sorted(plan, question, said)
    end = end_of(question)
    if end is not None and (end.word in ENDS and not end.count):
        kind: Kind | None = ENDS[end.word]
    elif end is not None and not end.is_in_file:
        return _from_end(plan, question, end, said)
    else:
        kind = next((kind for kind, pattern in KINDS if pattern.search(said)), None)
        kind = Kind.COUNT if COUNT.search(said) else kind
    grouped = _grouped(plan, question, said)
    if SHARE.search(said) and grouped.measures:
        return _shared(grouped, question)
    return _measured(grouped, question, said, kind)


# ── Groups ───────────────────────────────────────────────────────────────────────────────────


def _grouped(plan: TablePlan, question: Question, said: str) -> TablePlan:
    """ "By region" adds a group; rows that were listed are counted by it."""
    keys = tuple(key for _found, key in grouped_by(question))
    if not keys or keys == plan.group:
        return plan
    if not plan.measures:
        measures = (Measure(Kind.COUNT),)
        return replace(plan, group=keys, measures=measures, columns=(), order=(), limit=None)
    if INSTEAD.search(said):
        return replace(plan, group=keys, outer=None)
    times = {key.column for key in keys if key.part}
    kept = (k for k in plan.group if k not in keys and not (k.part and k.column in times))
    return replace(plan, group=(*kept, *keys), outer=None)


# ── Figures ──────────────────────────────────────────────────────────────────────────────────


def _shared(plan: TablePlan, question: Question) -> TablePlan:
    """ "As a share": of all groups together, or of the whole table."""
    base = plan.measures[0]
    share = Measure(Kind.SHARE, base.column)
    is_whole = not plan.group and not plan.filters
    if share in plan.measures or is_whole or base.kind not in (Kind.SUM, Kind.COUNT):
        return plan
    question.takes(SHARE.search(question.masked))
    return replace(plan, measures=(base, share), outer=None)


def _measured(plan: TablePlan, question: Question, said: str, kind: Kind | None) -> TablePlan:
    """Another way to put figures together, or another figure."""
    compared = {each.column for _s, _e, each in question.conditions}
    figures = [column for column in named_figures(question) if column.name not in compared]
    if not plan.measures:
        if kind not in (Kind.AVERAGE, Kind.MEDIAN, Kind.SUM) or not figures:
            return plan
        measure = Measure(kind, figures[0].name)
        return replace(plan, measures=(measure,), columns=(), order=(), limit=None)
    old = plan.measures[0]
    column = figures[0].name if figures else old.column
    if kind is Kind.COUNT:
        return replace(plan, measures=(Measure(Kind.COUNT),))
    if (kind is None and not figures) or column == ROWS:
        return plan
    wanted = kind or (old.kind if old.column != ROWS else Kind.SUM)
    if figures and kind is None and wanted is Kind.SUM and not is_added(figures[0]):
        wanted = Kind.AVERAGE
    if figures and BESIDES.search(said):
        return replace(plan, measures=(*plan.measures, Measure(wanted, column)), outer=None)
    rest = tuple(replace(e, column=column) if figures else e for e in plan.measures[1:])
    return replace(plan, measures=tuple(dict.fromkeys((Measure(wanted, column), *rest))))


# ── Order ────────────────────────────────────────────────────────────────────────────────────


def _sorted(plan: TablePlan, question: Question, said: str) -> TablePlan:
    """ "Sort by price", "highest first": figures from the highest, names from the lowest."""
    named = [found.column for found in question.columns]
    texts = [name for name in named if question.column(name).type is ColumnType.TEXT]
    down = bool(DOWN.search(said)) or not (UP.search(said) or texts or not plan.measures)
    if plan.measures:
        at = next((i for i, m in enumerate(plan.measures, 1) if m.column in named), 0)
        return replace(
            plan, order=(Order(named[0] if named and not at else f"measure {at or 1}", down),)
        )
    columns = plan.columns or (question.index.subject,)
    by = named[0] if named else (plan.order[0].by if plan.order else columns[0])
    return replace(plan, order=(Order(by, down),))


def _from_end(plan: TablePlan, question: Question, end: End, said: str) -> TablePlan:
    """ "The cheapest three of those", "which is the cheapest?", "the lowest instead"."""
    count = end.count or 1
    if plan.measures and plan.group:
        return replace(plan, order=(Order("measure 1", end.down),), limit=count, outer=None)
    if not end.count and plan.limit and INSTEAD.search(said):
        count = plan.limit
    hinted = measured_by(question, end.adjective) if end.adjective else None
    known = [order.by for order in plan.order] + [each.column for each in plan.measures]
    own = [question.column(name) for name in known if name != ROWS and not name.startswith("meas")]
    named = [*named_figures(question), *([hinted] if hinted else []), *own]
    named = [column for column in named if column.type in FIGURES | {ColumnType.DATE}]
    if not named:
        return plan
    column = named[0]
    down = directed(end.adjective, "", column, down=end.down)
    columns = plan.columns or ((question.index.subject,) if plan.measures or not end.count else ())
    if columns:
        columns = tuple(dict.fromkeys((*columns, column.name)))
    order = (Order(column.name, down),)
    return replace(plan, measures=(), outer=None, order=order, limit=count, columns=columns)


def add_chart(plan: TablePlan, question: Question, said: str) -> TablePlan:
    """ "As a chart", "as bars"."""
    table, match = TABLE.search(said), CHART.search(said)
    for found in (table, match):
        if found is not None:
            question.use(said.count(" ", 0, found.start()), said.count(" ", 0, found.end()) + 1)
    if table is not None:
        return replace(plan, chart="none")
    if match is None:
        return plan
    wanted = match[1] or match[2] or "auto"
    return replace(plan, chart=DRAWINGS.get(wanted, wanted))

"""What follow-ups change of a plan's groups, figures, order, length and picture."""

import re
from collections.abc import Sequence
from dataclasses import replace

from rag.records import ColumnType, TableColumn
from rag.tables.asking.choosing import (
    directed,
    figure_columns,
    grouped_by,
    is_added,
    measured_by,
    named_figures,
    part_keys,
    superlative,
)
from rag.tables.asking.narrow import BESIDES
from rag.tables.asking.question import FIGURES, Question, number_in
from rag.tables.asking.words import AVERAGE, CHANGE, MEDIAN, SHARE, SUPERLATIVES, TOP
from rag.tables.plan import (
    ROWS,
    Key,
    Kind,
    Measure,
    Op,
    Order,
    Part,
    TablePlan,
    key_words,
    value_words,
)

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
    r"absteigend)\b"
)
UP = re.compile(
    r"\b(?:ascending|asc|(?:lowest|smallest|fewest|oldest|earliest|cheapest) first|low to high|"
    r"aufsteigend)\b"
)
REVERSED = re.compile(r"\b(?:reverse[d]?|other way round|the other way|umgekehrt)\b")
ONE = re.compile(r"\b(first|last|erste|letzte)(?: one| row| entry)?$")
TABLE = re.compile(r"\b(?:as a table|no chart|without (?:the |a )?chart|als tabelle)\b")
INSTEAD = re.compile(r"\b(?:instead|rather|statt|stattdessen)\b")
KINDS = (
    (MEDIAN, Kind.MEDIAN),
    (AVERAGE, Kind.AVERAGE),
    (re.compile(r"\b(?:max|maximum|maximal\w*)\b"), Kind.MAX),
    (re.compile(r"\b(?:min|minimum|minimal\w*)\b"), Kind.MIN),
    (re.compile(r"\b(?:count|number of|anzahl)\b"), Kind.COUNT),
    (re.compile(r"\b(?:sum|total|in total|summe|gesamt)\b"), Kind.SUM),
)


def add_groups(plan: TablePlan, question: Question, said: str) -> TablePlan:
    """ "By region" adds a group; a list of rows becomes its main figure by group."""
    if SORT.search(said) or TOP.search(said):
        return plan
    keys = tuple(key for _found, key in grouped_by(question))
    if CHANGE.search(said) and not keys:
        keys = _time_of_change(question, said)
    if _is_of_one_year(plan):
        keys = tuple(key for key in keys if key.part is not Part.YEAR or len(keys) == 1)
    if not keys or keys == plan.group:
        return plan
    plan = _freed(plan, keys, question)
    if not plan.measures:
        measure = _measure_of(plan, question)
        return replace(plan, group=keys, measures=(measure,), columns=(), order=(), limit=None)
    if INSTEAD.search(said):
        return replace(plan, group=keys, outer=None)
    times = {key.column for key in keys if key.part}
    kept = tuple(
        key for key in plan.group if key not in keys and not (key.part and key.column in times)
    )
    return replace(plan, group=(*kept, *keys), outer=None)


def _is_of_one_year(plan: TablePlan) -> bool:
    return any(
        each.part is Part.YEAR and each.op is Op.IS and len(each.values) == 1
        for each in plan.filters
    )


def _time_of_change(question: Question, said: str) -> tuple[Key, ...]:
    part = next((part for part in (Part.MONTH, Part.QUARTER) if part in said), Part.YEAR)
    return tuple(part_keys(question, part))


def _freed(plan: TablePlan, keys: tuple[Key, ...], question: Question) -> TablePlan:
    """What rows are put together by is not held to one value, unless that is said just now."""
    said = {each.column for each in question.values}
    said |= {each.column for _s, _e, each in question.conditions}
    gone = [
        each
        for each in plan.filters
        if each.op is Op.IS and len(each.values) == 1 and each.column not in said
        and Key(each.column, each.part) in keys
    ]  # fmt: skip
    for each in gone:
        name, value = key_words(Key(each.column, each.part)), value_words(each.values[0])
        question.doubt(f"took all of {name}, not only {value}")
    return replace(plan, filters=tuple(f for f in plan.filters if f not in gone))


def _measure_of(plan: TablePlan, question: Question) -> Measure:
    by = [order.by for order in plan.order if order.by != ROWS]
    named = [question.column(name) for name in by] or [
        column for column in figure_columns(question) if column.name in plan.columns
    ]
    if named and named[0].type is ColumnType.NUMBER:
        return Measure(Kind.SUM if is_added(named[0]) else Kind.AVERAGE, named[0].name)
    return Measure(Kind.COUNT)


def change_figures(plan: TablePlan, question: Question, said: str) -> TablePlan:
    """Another way to put figures together, or another figure."""
    if SORT.search(said) or DOWN.search(said) or UP.search(said):
        return plan
    kind, figures = _wanted(question, said)
    if not plan.measures:
        return _measured(plan, kind, figures)
    old = plan.measures[0]
    column = figures[0].name if figures else old.column
    if CHANGE.search(said) and column != ROWS:
        measures = (Measure(Kind.SUM, column), Measure(Kind.CHANGE, column))
        return replace(plan, measures=measures, order=(), limit=None)
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


def _measured(plan: TablePlan, kind: Kind | None, figures: Sequence[TableColumn]) -> TablePlan:
    """Rows that were listed become one figure of theirs."""
    if kind not in (Kind.AVERAGE, Kind.MEDIAN, Kind.SUM) or not figures:
        return plan
    measure = Measure(kind, figures[0].name)
    return replace(plan, measures=(measure,), columns=(), order=(), limit=None)


def _wanted(question: Question, said: str) -> tuple[Kind | None, list[TableColumn]]:
    """How to put together which figures; none where one end of an order is asked for."""
    is_other = "statt " in said or "instead of" in said
    kind = _kind_of(INSTEAD.split(said)[0] if is_other else said)
    is_end = TOP.search(said) or any(word in SUPERLATIVES for word in question.masked.split())
    if is_end and kind not in (Kind.MAX, Kind.MIN):
        return None, []
    compared = {each.column for _s, _e, each in question.conditions}
    figures = [column for column in named_figures(question) if column.name not in compared]
    return (None if SHARE.search(said) and kind is Kind.SUM else kind), figures


def _kind_of(said: str) -> Kind | None:
    return next((kind for pattern, kind in KINDS if pattern.search(said)), None)


def add_share(plan: TablePlan, question: Question, said: str) -> TablePlan:
    """ "As a share": of all groups together, or of the whole table."""
    if not SHARE.search(said) or not plan.measures:
        return plan
    base = plan.measures[0]
    share = Measure(Kind.SHARE, base.column)
    is_whole = not plan.group and not plan.filters
    if share in plan.measures or is_whole or base.kind not in (Kind.SUM, Kind.COUNT):
        return plan
    question.use(0, len(question.words) if len(said.split()) <= 6 and not question.values else 0)
    return replace(plan, measures=(base, share), outer=None)


def reorder(plan: TablePlan, question: Question, said: str) -> TablePlan:
    """ "Sort by price", "highest first", "the other way round"."""
    if REVERSED.search(said) and plan.order:
        first = plan.order[0]
        return replace(plan, order=(replace(first, descending=not first.descending),))
    if not SORT.search(said) and not DOWN.search(said) and not UP.search(said):
        return plan
    down = bool(DOWN.search(said)) or (not UP.search(said) and _sorts_down(plan, question))
    named = [found.column for found in question.columns]
    if plan.measures:
        at = next((i for i, m in enumerate(plan.measures, 1) if m.column in named), 0)
        if named and not at and question.column(named[0]).type is ColumnType.NUMBER:
            added = Measure(Kind.SUM, named[0])
            at = len(plan.measures) + 1
            plan = replace(plan, measures=(*plan.measures, added))
        by = named[0] if named and not at else f"measure {at or 1}"
        return replace(plan, order=(Order(by, down),))
    columns = plan.columns or (question.index.subject,)
    by = named[0] if named else (plan.order[0].by if plan.order else columns[0])
    return replace(plan, order=(Order(by, down),))


def _sorts_down(plan: TablePlan, question: Question) -> bool:
    """Figures from the highest, names and prices one asks for by "sort by" from the lowest."""
    named = [question.column(found.column) for found in question.columns]
    return bool(plan.measures) and not any(c.type is ColumnType.TEXT for c in named)


def cut_off(plan: TablePlan, question: Question, said: str) -> TablePlan:
    """ "The cheapest three of those", "only the top 5", "just the top one"."""
    match = TOP.search(said)
    one = None if DOWN.search(said) or UP.search(said) else ONE.search(said)
    if one is not None and match is None and (plan.group or not plan.measures):
        first = plan.order[0] if plan.order else Order(ROWS)
        is_last = one[1] in ("last", "letzte")
        question.use(said.count(" ", 0, one.start()), len(question.words))
        return replace(
            plan, order=(replace(first, descending=first.descending != is_last),), limit=1
        )
    if match is None:
        return plan
    word = match["word"] or match["word2"]
    count = int(number_in(match["count"] or match["count2"]) or 1)
    question.use(question.at(match.start()), question.at(match.end() - 1) + 1)
    adjective, down = superlative(question, question.words.index(word))
    down = down and word not in ("bottom", "last", "letzten")
    if plan.measures and plan.group:
        if word in ("first", "ersten") and plan.order:
            return replace(plan, limit=count)
        return replace(plan, order=(Order("measure 1", down),), limit=count)
    if plan.measures:
        return _end_of_rows(plan, question, adjective, down, count)
    hinted = measured_by(question, adjective) if adjective else None
    named = named_figures(question)
    figure = named[0] if named else hinted
    by = figure.name if figure else (plan.order[0].by if plan.order else ROWS)
    if word in ("first", "last", "ersten", "letzten"):
        first = plan.order[0] if plan.order else Order(ROWS)
        by, down = first.by, first.descending != (word in ("last", "letzten"))
    columns = plan.columns and tuple(dict.fromkeys((*plan.columns, *([by] if by != ROWS else []))))
    return replace(plan, order=(Order(by, down),), limit=count, columns=columns)


def keep_end(plan: TablePlan, question: Question, said: str) -> TablePlan:
    """ "Which is the cheapest?", "the lowest instead"."""
    word = next((word for word in question.masked.split() if word in SUPERLATIVES), "")
    is_order = DOWN.search(said) or UP.search(said) or SORT.search(said) or TOP.search(said)
    if not word or is_order or _kind_of(said) in (Kind.MAX, Kind.MIN):
        return plan
    at = question.masked.split().index(word)
    question.use(at, at + 1)
    adjective, down = superlative(question, at)
    if plan.measures and plan.group:
        return replace(plan, order=(Order("measure 1", down),), limit=1, outer=None)
    if plan.measures:
        if plan.measures[0].kind in (Kind.MAX, Kind.MIN):
            kind = Kind.MAX if down else Kind.MIN
            return replace(plan, measures=(replace(plan.measures[0], kind=kind),))
        return _end_of_rows(plan, question, adjective, down, 1)
    limit = plan.limit if INSTEAD.search(said) and plan.limit else 1
    return _end_of_rows(plan, question, adjective, down, limit)


def _end_of_rows(
    plan: TablePlan, question: Question, adjective: str, down: bool, count: int
) -> TablePlan:
    """Rows of what the plan speaks of, from one end."""
    hinted = measured_by(question, adjective) if adjective else None
    known = [order.by for order in plan.order] + [each.column for each in plan.measures]
    own = [question.column(name) for name in known if name != ROWS and not name.startswith("meas")]
    named = [*named_figures(question), *([hinted] if hinted else []), *own]
    named = [column for column in named if column.type in FIGURES | {ColumnType.DATE}]
    if not named:
        return plan
    down = directed(adjective, "", named[0], down=down)
    columns = plan.columns or (question.index.subject,)
    return replace(
        plan,
        measures=(),
        outer=None,
        order=(Order(named[0].name, down),),
        limit=count,
        columns=tuple(dict.fromkeys((*columns, named[0].name))),
    )


def add_chart(plan: TablePlan, question: Question, said: str) -> TablePlan:
    """ "As a chart", "as bars"."""
    match = CHART.search(said)
    table = TABLE.search(said)
    if table is not None:
        question.use(said.count(" ", 0, table.start()), said.count(" ", 0, table.end()) + 1)
        return replace(plan, chart="none")
    if match is None:
        return plan
    wanted = match[1] or match[2] or ""
    question.use(0, len(question.words) if len(said.split()) <= 4 else 0)
    return replace(plan, chart=DRAWINGS.get(wanted, wanted or "auto"))

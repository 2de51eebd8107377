"""Follow-ups as changes of the plan before: "What about Q4?", "by region", "the cheapest three".

A follow-up is short, or points back ("those", "that"), and says only what changes. What it does
not change stays; what it says and the table does not know makes it another question.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from rag.records import ColumnType
from rag.tables.asking.choosing import (
    figure_columns,
    grouped_by,
    is_added,
    measured_by,
    named_figures,
)
from rag.tables.asking.index import TableIndex, stem
from rag.tables.asking.question import Question, filters_of, number_in, read_question
from rag.tables.asking.wording import name_words
from rag.tables.asking.words import AVERAGE, COUNT, MEDIAN, NOT, SHARE, SUM, SUPERLATIVES, TOP
from rag.tables.plan import (
    ROWS,
    Filter,
    Kind,
    Measure,
    Op,
    Order,
    Part,
    TablePlan,
    Understood,
)
from rag.tables.wordforms import normalised

OPENING = re.compile(
    r"^(?:(?:ok|okay|now|and|so|but|then|please|can you|could you|und|jetzt|aber)\s+)*"
    r"(?:what about|how about|what if|only|just|show me|show|give me|and|by|per|as|in|for|with|"
    r"without|excluding|except|sort|order|rank|same|but|instead|the|top|split|break|group|now|draw|"
    r"plot|make it|use|filter|limit|restrict|all|reset|undo|back|go back|start over|"
    r"was ist mit|wie ist es|und|nur|ohne|nach|pro|als|sortiere|compare)\b"
)
POINTING = re.compile(
    r"\b(?:those|these|that|them|it|this|the result|the same|instead|of which|davon|diese\w*)\b"
)
CUE = re.compile(r"^(?:and|what about|how about|only|just|but|now|then|also|und|nur|was ist mit)\b")
CHANGES = re.compile(r"\b(?:sort\w*|order\w*|as a|as an|instead|without|excluding|except)\b")
RESET = re.compile(r"\b(?:start over|reset|clear|everything again|from the beginning|von vorn)\b")
UNDO = re.compile(r"\b(?:undo|go back|the previous (?:one|result|table)|step back|zurück)\b")
ALL_OF = re.compile(r"\b(?:back to |for |over |across )?(?:all|any|every)(?: the| of the)? (\w+)\b")
CHART = re.compile(
    r"\b(?:(bar|line|pie|share|column)[ -]?)?(?:chart|graph|diagram|plot|picture|visuali[sz]\w*|"
    r"diagramm)\b"
)
DRAWN = re.compile(rf"\b(?:as|in|with) an? {CHART.pattern}|^(?:plot|draw|chart)\b", re.IGNORECASE)
SORT = re.compile(r"\b(?:sort(?:ed)?|order(?:ed)?|rank(?:ed)?|sortiere?)\b")
DOWN = re.compile(r"\b(?:descending|desc|highest first|largest first|high to low|absteigend)\b")
UP = re.compile(r"\b(?:ascending|asc|lowest first|smallest first|low to high|aufsteigend)\b")
REVERSED = re.compile(r"\b(?:reverse[d]?|other way round|the other way)\b")
HOW_MANY = re.compile(
    r"^(?:and )?(?:how many|wie viele)(?: (?:is|are|was|were|of))?(?: (?:that|those|these|them|it|"
    r"there|rows|entries))*(?: in (?:all|total))?$"
)
SHIFTS = {
    "last year": (Part.YEAR, -1), "previous year": (Part.YEAR, -1), "next year": (Part.YEAR, 1),
    "year before": (Part.YEAR, -1), "year after": (Part.YEAR, 1),
    "last quarter": (Part.QUARTER, -1), "previous quarter": (Part.QUARTER, -1),
    "next quarter": (Part.QUARTER, 1), "quarter before": (Part.QUARTER, -1),
    "last month": (Part.MONTH, -1), "previous month": (Part.MONTH, -1),
    "next month": (Part.MONTH, 1), "month before": (Part.MONTH, -1),
}  # fmt: skip
LONGEST = 12  # words of a follow-up that does not point back
FILLERS = frozenset(
    """
    about what how only just show give now then ok okay please can could split break down grouped
    group same again instead those these that them it this result make draw plot use filter limit
    restrict to compare but so back reset undo go over start again chart graph bar line pie picture
    diagram sort sorted order ordered rank ranked descending ascending first reverse
    reversed figures numbers ones one was ist mit nur als bitte of previous next last year quarter
    month before
    after share percentage percent proportion average mean median sum total count many much highest
    lowest largest smallest high low all any every visualise visualize plotted column rather also
    """.split()  # noqa: SIM905  (a list of quoted words reads worse)
)


def edited(text: str, index: TableIndex, plans: Sequence[TablePlan]) -> Understood | None:
    """The newest plan as a follow-up changes it; `plans` are those before, newest last."""
    said = normalised(text)
    if not plans or not said or not _leans(said):
        return None
    plan = plans[-1]
    question = read_question(text, index)
    whole = _as_a_whole(said, plans)
    if whole is not None:
        return Understood(whole, 1.0)
    if _stands_alone(question, said) or _is_of_a_name(text, question):
        return None
    changed = plan
    for change in (_shifted, _filters, _all_of, _groups, _figures, _share, _order, _top, _chart):
        changed = change(changed, question, said)
    unused = tuple(word for word in question.unused() if word not in FILLERS)
    stays = bool(ALL_OF.search(said)) and OPENING.search(said) is not None
    if unused or (changed == plan and not stays):
        return None
    return Understood(changed, 1.0, (), tuple(question.doubts))


def _is_of_a_name(text: str, question: Question) -> bool:
    """ "And the Pro Max?" asks for no maximum, unless the table knows such a value or column."""
    known = {
        question.words[at]
        for found in (*question.columns, *question.values)
        for at in range(found.start, found.end)
    }
    return bool(name_words(text) - known)


def _leans(said: str) -> bool:
    if POINTING.search(said):
        return True
    return bool(OPENING.search(said) or len(said.split()) <= 3) and len(said.split()) <= LONGEST


def _stands_alone(question: Question, said: str) -> bool:
    """A question with a figure and a way to put it together is a new one."""
    if POINTING.search(said) or CUE.match(said) or CHANGES.search(said):
        return False
    asks = any(each.search(said) for each in (COUNT, SUM, AVERAGE, MEDIAN, TOP))
    return bool(COUNT.search(said)) or (
        bool(named_figures(question)) and (asks or bool(grouped_by(question)))
    )


def _as_a_whole(said: str, plans: Sequence[TablePlan]) -> TablePlan | None:
    plan = plans[-1]
    if UNDO.search(said) and len(plans) > 1:
        return plans[-2]
    if RESET.search(said):
        return plans[0]
    if HOW_MANY.match(said):
        return _counted(plan)
    return None


def _counted(plan: TablePlan) -> TablePlan:
    """How many rows, or groups, the plan speaks of."""
    if plan.group and plan.measures:
        return replace(plan, outer=Kind.COUNT, order=(), chart="")
    return replace(
        plan, measures=(Measure(Kind.COUNT),), columns=(), order=(), limit=None, chart=""
    )


# ── Conditions ───────────────────────────────────────────────────────────────────────────────


def _filters(plan: TablePlan, question: Question, said: str) -> TablePlan:
    """A value takes the place of one of the same column, or is added."""
    fresh = filters_of(question)
    behind = NOT.search(said)
    if behind is not None:
        fresh = tuple(replace(each, op=Op.NOT) if each.op is Op.IS else each for each in fresh)
        question.use(0, len(question.words) if fresh else 0)
    kept = list(plan.filters)
    for each in fresh:
        kept = [old for old in kept if not _gives_way(old, each)]
        kept.append(each)
    group = tuple(
        key for key in plan.group
        if not any(f.column == key.column and f.op is Op.IS and len(f.values) == 1 for f in fresh)
        or len(plan.group) == 1
    )  # fmt: skip
    return replace(plan, filters=tuple(kept), group=group, chart=plan.chart)


def _gives_way(old: Filter, new: Filter) -> bool:
    if old.column != new.column or (new.op is Op.NOT and old.op is not Op.NOT):
        return False
    if old.part == new.part:
        return new.op is not Op.NOT and (old.op is new.op or Op.IS in (old.op, new.op))
    return False


def _shifted(plan: TablePlan, question: Question, said: str) -> TablePlan:
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
    years = [c for c in question.index.table.columns if stem(normalised(c.name)) == "year"]
    if part is Part.YEAR and years and years[0].high.isdecimal():
        latest = int(years[0].high)
        question.doubts.append(f"took {latest} for this year: it is the latest in the table")
        return replace(plan, filters=(*plan.filters, Filter(years[0].name, Op.IS, (latest + by,))))
    return plan


def _moved(each: Filter, part: Part, by: int, question: Question) -> Filter | None:
    column = question.column(each.column)
    is_year = part is Part.YEAR and not each.part and column.type is ColumnType.NUMBER
    if each.op is not Op.IS or not (each.part == part or is_year):
        return None
    values = tuple(value + by for value in each.values if isinstance(value, int))
    most = {Part.QUARTER: 4, Part.MONTH: 12}.get(part, 9999)
    return replace(each, values=values) if values and all(1 <= v <= most for v in values) else None


def _all_of(plan: TablePlan, question: Question, said: str) -> TablePlan:
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


# ── Groups, figures, order ───────────────────────────────────────────────────────────────────


def _groups(plan: TablePlan, question: Question, said: str) -> TablePlan:
    """ "By region" adds a group; a list of rows becomes its main figure by group."""
    if SORT.search(said):
        return plan
    keys = tuple(key for _found, key in grouped_by(question))
    keys = tuple(key for key in keys if key not in plan.group)
    if not keys:
        return plan
    if "instead" in said:
        return replace(plan, group=keys)
    if plan.measures:
        order = plan.order
        return replace(plan, group=(*plan.group, *keys), order=order, outer=None)
    measure = _measure_of(plan, question)
    return replace(plan, group=keys, measures=(measure,), columns=(), order=(), limit=None)


def _measure_of(plan: TablePlan, question: Question) -> Measure:
    by = [order.by for order in plan.order if order.by != ROWS]
    named = [question.column(name) for name in by] or [
        column for column in figure_columns(question) if column.name in plan.columns
    ]
    if named and named[0].type is ColumnType.NUMBER:
        return Measure(Kind.SUM if is_added(named[0]) else Kind.AVERAGE, named[0].name)
    return Measure(Kind.COUNT)


def _figures(plan: TablePlan, question: Question, said: str) -> TablePlan:
    """Another way to put figures together, or another figure."""
    if not plan.measures or SORT.search(said):
        return plan
    kind = Kind.MEDIAN if MEDIAN.search(said) else Kind.AVERAGE if AVERAGE.search(said) else None
    if kind is None and re.search(r"\b(?:sum|total|in total)\b", said) and not TOP.search(said):
        kind = Kind.SUM
    figures = named_figures(question)
    if TOP.search(said) or any(word in SUPERLATIVES for word in said.split()):
        figures = []
    if kind is None and not figures:
        return plan
    old = plan.measures[0]
    column = figures[0].name if figures else old.column
    if column == ROWS:
        return plan
    wanted = kind or (old.kind if old.column != ROWS else Kind.SUM)
    if figures and kind is None and wanted is Kind.SUM and not is_added(figures[0]):
        wanted = Kind.AVERAGE
    return replace(plan, measures=(Measure(wanted, column), *plan.measures[1:]))


def _share(plan: TablePlan, question: Question, said: str) -> TablePlan:
    if not SHARE.search(said) or not plan.group or not plan.measures:
        return plan
    base = plan.measures[0]
    share = Measure(Kind.SHARE, base.column)
    return plan if share in plan.measures else replace(plan, measures=(base, share))


def _order(plan: TablePlan, question: Question, said: str) -> TablePlan:
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
    by = named[0] if named else (plan.order[0].by if plan.order else plan.columns[0])
    return replace(plan, order=(Order(by, down),))


def _sorts_down(plan: TablePlan, question: Question) -> bool:
    """Figures from the highest, names and prices one asks for by "sort by" from the lowest."""
    named = [question.column(found.column) for found in question.columns]
    return bool(plan.measures) and not any(c.type is ColumnType.TEXT for c in named)


def _top(plan: TablePlan, question: Question, said: str) -> TablePlan:
    """ "The cheapest three of those", "only the top 5"."""
    match = TOP.search(said)
    if match is None:
        return plan
    word = match["word"] or match["word2"]
    count = int(number_in(match["count"] or match["count2"]) or 1)
    adjective, down = SUPERLATIVES.get(word, ("", word not in ("bottom", "last")))
    if plan.measures:
        return replace(plan, order=(Order("measure 1", down),), limit=count)
    hinted = measured_by(question, adjective) if adjective else None
    named = named_figures(question)
    figure = named[0] if named else hinted
    by = figure.name if figure else (plan.order[0].by if plan.order else ROWS)
    if word in ("first", "last"):
        by, down = plan.order[0].by if plan.order else ROWS, word == "last"
    columns = plan.columns and tuple(dict.fromkeys((*plan.columns, *([by] if by != ROWS else []))))
    return replace(plan, order=(Order(by, down),), limit=count, columns=columns)


def _chart(plan: TablePlan, question: Question, said: str) -> TablePlan:
    match = CHART.search(said)
    if match is None:
        return plan
    kind = {"pie": "share", "column": "bar"}.get(match[1] or "", match[1] or "auto")
    question.use(0, len(question.words) if len(said.split()) <= 8 else 0)
    return replace(plan, chart=kind)

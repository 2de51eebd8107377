"""Questions to plans without a model: what the words of a question ask of one table.

The words are matched to columns, values, times and figures first (`naming`); what is left says
what is done with them: a share, a difference, a count, one end of an order, a figure, a look-up.
A word is used only where the plan speaks of what it names.
"""

import re
from collections.abc import Sequence

from rag.records import TableColumn
from rag.tables.asking.changes.regroup import add_chart
from rag.tables.asking.choosing import (
    asked_for,
    directed,
    figure_columns,
    grouped_by,
    is_added,
    is_of_price,
    is_rank,
    listed_column,
    measured_by,
    named_figures,
    numbers_rows,
    pair_of,
    repeats,
)
from rag.tables.asking.ends import End, end_of
from rag.tables.asking.index import Found, TableIndex
from rag.tables.asking.leftover import goes_on, names_open, open_words, score
from rag.tables.asking.naming import read_question
from rag.tables.asking.question import FIGURES, Question, filters_of, is_idle, number_in
from rag.tables.asking.words import (
    ADJECTIVES,
    AVERAGE,
    DIFFERENCE,
    DIFFERENT,
    KINDS,
    RANKED_ENDS,
    ROW_NOUNS,
    SHARE,
    SUPERLATIVES,
    TOTAL,
    counted,
)
from rag.tables.plan import (
    ROWS,
    Filter,
    Key,
    Kind,
    Measure,
    Op,
    Order,
    TablePlan,
    Understood,
)
from rag.text.languages import words

BY_FIRST = "measure 1"
PRICED = re.compile(r"\bhow much (?:is|are|was|for)\b|\bwas kosten?t?\b")
OF_EACH = re.compile(r"how much|wie ?viel")
HOW = words("how wie")
JOINING = words("total different of the distinct unique")
SIDES = words("between and zwischen und than als or oder")


def understand(text: str, index: TableIndex) -> Understood | None:
    """The reading of a question over one table; None where it asks nothing of it."""
    question = read_question(text, index)
    for found in [each for each in question.columns if goes_on(question, each)]:
        question.use(found.start, found.end)
        question.columns.remove(found)
    plan = _plan(question)
    if plan is None:
        return None
    plan = add_chart(plan, question, " ".join(question.words))
    unused = (*open_words(question, plan), *names_open(text, question))
    is_partly = not all(each.is_whole for each in question.values)
    doubts = tuple(question.doubts)
    return Understood(plan, score(question, unused), unused, doubts, is_partly)


def _plan(question: Question) -> TablePlan | None:
    if question.takes(SHARE.search(question.masked)):
        return _share(question)
    if DIFFERENCE.search(question.masked):
        return _difference(question)
    end = end_of(question)
    match = counted(question.masked) if end is None else None
    if match is not None:
        return _count(question, question.at(match.start()), question.at(match.end() - 1) + 1)
    if end is not None:
        return _end(question, end)
    return _figure(question) or _look_up(question)


# ── What is done ─────────────────────────────────────────────────────────────────────────────


def _groups(question: Question) -> tuple[Key, ...]:
    return tuple(key for _found, key in grouped_by(question))


def _share(question: Question) -> TablePlan | None:
    """What part of the whole each group is, or the rows that meet a condition."""
    groups, filters = _groups(question), filters_of(question)
    added = [column for column in named_figures(question) if is_added(column)]
    base = Measure(Kind.SUM, added[0].name) if added else Measure(Kind.COUNT)
    share = Measure(Kind.SHARE, base.column)
    if groups:
        return TablePlan("", filters, groups, (base, share), (Order(BY_FIRST, True),))
    return TablePlan("", filters, (), (share, base)) if len(filters) == 1 else None


def _difference(question: Question) -> TablePlan | None:
    """ "The difference in points between A and B", "how many more wins than losses"."""
    pair, filters = pair_of(question), filters_of(question)
    question.takes(DIFFERENCE.search(question.masked))
    question.used |= {at for at, word in enumerate(question.words) if word in SIDES}
    figure = next(iter(named_figures(question)), None)
    if figure is None and pair is None:
        return None
    is_average = question.says(AVERAGE)
    key = (Key(pair[0].column),) if pair else ()
    if figure is None:
        rows = (Measure(Kind.COUNT),)
        is_counted = counted(question.masked) is not None
        return TablePlan("", filters, key, rows, outer=Kind.SPREAD) if is_counted else None
    if pair and (is_average or is_added(figure)) and repeats(question, pair[0].column):
        measure = Measure(Kind.AVERAGE if is_average else Kind.SUM, figure.name)
        return TablePlan("", filters, key, (measure,), outer=Kind.SPREAD)
    return TablePlan("", filters, measures=(Measure(Kind.SPREAD, figure.name),))


def _count(question: Question, start: int, end: int) -> TablePlan | None:
    """ "How many orders …": a figure that the table holds, different values, or rows."""
    question.use(start, end)
    noun = next((e for e in question.columns if start <= e.start <= end + 2 and e.end > end), None)
    groups, filters = _groups(question), filters_of(question)
    order = (Order(BY_FIRST, True),) if groups else ()
    is_different = question.says(DIFFERENT)
    figure = _counted_figure(question, noun)
    kind = _kind_said(question)
    if figure is not None and not is_different:
        if not groups and kind is None and _picks_rows(question, filters):
            return TablePlan("", filters, columns=(figure.name,))
        if kind is None and not is_added(figure):
            return None
        if kind is None and (noun is None or noun.column != figure.name):
            question.doubt(f"added up {figure.name}")
        return TablePlan("", filters, groups, (Measure(kind or Kind.SUM, figure.name),), order)
    _take_noun(question, end)
    if noun is not None and not any(each.column == noun.column for each in filters):
        column = question.column(noun.column)
        differ = column.distinct < 0.8 * question.index.table.row_count
        if is_different or (differ and column.type not in FIGURES):
            return TablePlan("", filters, groups, (Measure(Kind.DISTINCT, column.name),), order)
    return TablePlan("", filters, groups, (Measure(Kind.COUNT),), order)


def _counted_figure(question: Question, noun: Found | None) -> TableColumn | None:
    """The figure that is counted already: "how many goals", "how many dishes were *sold*"."""
    compared = {each.column for _s, _e, each in question.conditions}
    own = question.column(noun.column) if noun else None
    others = [column for column in named_figures(question) if is_added(column)]
    is_of_rows = own is None or own.name == question.index.subject
    found: list[TableColumn] = [own] if own is not None else []
    for column in [*found, *(others if is_of_rows else [])]:
        is_figure = column.type in FIGURES and not column.is_identifier and not is_rank(column)
        if is_figure and column.name not in compared and not numbers_rows(question, column):
            return column
    return None


def _take_noun(question: Question, at: int) -> None:
    """The noun behind "how many" stands for the rows where it names them."""
    while at < len(question.words) and question.words[at] in JOINING:
        question.use(at, at + 1)
        at += 1
    if at < len(question.words) and question.words[at] in ROW_NOUNS:
        question.use(at, at + 1)


def _picks_rows(question: Question, filters: Sequence[Filter]) -> bool:
    """Whether single rows are named, whose cells are asked for and not a sum of them."""
    columns = {each.column for each in filters if each.op is Op.IS and not each.part}
    return bool(columns & {question.index.subject, *_keys(question)})


def _keys(question: Question) -> set[str]:
    """Columns that name a row."""
    table = question.index.table
    return {each.name for each in table.columns if each.distinct == table.row_count}


def _kind_said(question: Question) -> Kind | None:
    return next((kind for kind, says in KINDS if question.says(says)), None)


def _end(question: Question, end: End) -> TablePlan | None:
    """One end of an order: "top 10 products", "which driver has the most points"."""
    filters, limit = filters_of(question), end.count or _how_many(question)
    if end.is_in_file and not _measured_end(question, end):
        target, _is_named = asked_for(question)
        columns = () if end.count else (target,)
        return TablePlan("", filters, order=(Order(ROWS, end.down),), limit=limit, columns=columns)
    figure = _measured_end(question, end)
    if figure is None and end.adjective:
        return None  # of what no column measures
    if figure is None and (end.count or end.word in RANKED_ENDS):
        figure = next(iter(figure_columns(question)), None)
        if figure is not None:
            question.doubt(f"ranked by {figure.name}: the question names no figure")
    keys = [key for key in _groups(question) if figure is None or key.column != figure.name]
    listed = listed_column(question, figure, end.after) if end.count else None
    asked = asked_for(question, without={figure.name} if figure else ())
    target, is_named = (listed, True) if listed else asked
    if figure is None:
        behind = question.words[end.after : end.after + 1]
        own = {e.start for e in question.columns if e.column == question.index.subject}
        is_of_rows = end.after in own or all(
            is_idle(each) or question.calls_rows(each) or each in ROW_NOUNS for each in behind
        )
        if not is_named or not is_of_rows or not repeats(question, target):
            return None
        order = (Order(BY_FIRST, end.down),)
        return TablePlan("", filters, (Key(target),), (Measure(Kind.COUNT),), order, limit)
    down = directed(end.adjective, end.word, figure, down=end.down)
    if not keys and not end.count and _asks_figure(question, figure, end):
        return TablePlan(
            "", filters, measures=(Measure(Kind.MAX if down else Kind.MIN, figure.name),)
        )
    return _ranked(question, figure, (target, is_named), keys, Order(figure.name, down), limit)


def _ranked(
    question: Question,
    figure: TableColumn,
    asked: tuple[str, bool],
    keys: Sequence[Key],
    order: Order,
    limit: int,
) -> TablePlan:
    """Rows, or groups where several rows share what is asked for, in the order of a figure."""
    (target, is_named), filters = asked, filters_of(question)
    each = tuple(keys)
    is_of_groups = bool(each) or is_added(figure) or limit > 1
    if is_named and is_of_groups and repeats(question, target) and Key(target) not in each:
        by = (Order(BY_FIRST, order.descending),)
        kind = Kind.SUM if is_added(figure) else Kind.MAX if order.descending else Kind.MIN
        if kind is not Kind.SUM:
            question.doubt(f"took the {kind} of {figure.name} of each: it is not added up")
        measures = (Measure(kind, figure.name),)
        return TablePlan("", filters, (*each, Key(target)), measures, by, limit, each=each)
    if each and (not is_named or Key(target) in each):
        target = question.index.subject
    # What the rows are of is always shown: a value beside a figure names no row.
    among = [each.column for each in filters if each.op is Op.IS and len(each.values) > 1]
    shown = [*(key.column for key in each), *among]
    named = [*shown, question.index.subject or target, target]
    columns = tuple(dict.fromkeys([*named, figure.name]))
    return TablePlan("", filters, order=(order,), limit=limit, columns=columns, each=each)


def _measured_end(question: Question, end: End) -> TableColumn | None:
    """The figure that an end is of: named behind it, measured by its adjective, or named at all."""
    hinted = measured_by(question, end.adjective) if end.adjective else None
    behind = named_figures(question, end.at)
    if hinted is not None and (not behind or hinted in behind):
        return hinted
    if end.adjective and is_of_price(end.adjective):
        return None
    named = [*behind, *named_figures(question)]
    compared = {each.column for _s, _e, each in question.conditions}
    return next((each for each in named if each.name not in compared), None)


def _asks_figure(question: Question, figure: TableColumn, end: End) -> bool:
    """ "What was the highest attendance", "how heavy is the heaviest": the figure alone."""
    said = question.words
    if said[0] in HOW and len(said) > 1 and said[1] in ADJECTIVES:
        question.use(0, 2)
        return True
    starts = said[:1] == ["what"] and said[1:2] and said[1] in ("is", "was", "are", "were")
    columns = [e for e in question.columns if said[e.start] not in SUPERLATIVES]
    first = columns[0].column if columns else figure.name
    if not starts or first != figure.name:
        return False
    named = (e for e in question.columns if e.column == figure.name and e.start >= end.at)
    return any(all(map(is_idle, said[end.after : each.start])) for each in named)


def _how_many(question: Question) -> int:
    """ "Which *five* products cost the most": one, where no number stands before the rows."""
    for found in question.columns:
        at = found.start - 1
        if at >= 0 and at not in question.used and (number_in(question.words[at]) or 0) >= 1:
            question.use(at, at + 1)
            return int(number_in(question.words[at]) or 1)
    return 1


def _figure(question: Question) -> TablePlan | None:
    """A sum, an average or a median; figures by groups."""
    kind, groups, filters = _kind_said(question), _groups(question), filters_of(question)
    if kind is None and not groups:
        return None
    figures = named_figures(question) or [*filter(None, [_of_an_adjective(question)])]
    if not figures and groups and kind is None:
        return TablePlan("", filters, groups, (Measure(Kind.COUNT),))
    if not figures:
        return _priced(question) if question.says(PRICED) else None
    wanted = kind or (Kind.SUM if is_added(figures[0]) else Kind.AVERAGE)
    said = " ".join(question.words)
    is_of_each = bool(kind is Kind.SUM and not groups and OF_EACH.match(said))
    is_of_each = is_of_each and not TOTAL.search(question.masked)
    if is_of_each and (_picks_rows(question, filters) or not is_added(figures[0])):
        return _cells(question, *figures[:4])
    having = _having(question, groups, figures[0])
    if having is not None:
        return having
    return TablePlan("", filters, groups, tuple(Measure(wanted, e.name) for e in figures[:4]))


def _having(question: Question, groups: Sequence[Key], column: TableColumn) -> TablePlan | None:
    """ "Which districts have an average rent above 2,000": the bound is one of the groups."""
    bounds = [e for _s, _e, e in question.conditions if e.column == column.name and not e.other]
    bounds = [each for each in bounds if each.op not in (Op.IS, Op.NOT)]
    target, is_named = asked_for(question, without={column.name})
    if groups or not bounds or not is_named or not repeats(question, target):
        return None
    kept = [each for each in filters_of(question) if each not in bounds]
    of_groups = [Filter(BY_FIRST, each.op, each.values) for each in bounds]
    measure = Measure(_kind_said(question) or Kind.SUM, column.name)
    return TablePlan("", (*kept, *of_groups), (Key(target),), (measure,))


def _of_an_adjective(question: Question) -> TableColumn | None:
    """ "How heavy …": what the adjective measures."""
    if question.words[0] not in HOW or len(question.words) < 2:
        return None
    adjective = ADJECTIVES.get(question.words[1], ("", True))[0]
    column = measured_by(question, adjective) if adjective else None
    if column is not None:
        question.use(0, 2)
    return column


def _priced(question: Question) -> TablePlan | None:
    price = measured_by(question, "expensive")
    return _cells(question, price) if price is not None else None


def _cells(question: Question, *figures: TableColumn) -> TablePlan:
    """Figures of the rows that are named, with what they are where there are several."""
    filters = filters_of(question)
    named = [each for each in filters if each.column == question.index.subject]
    is_one = len(named) == 1 and len(named[0].values) == 1 and named[0].op is Op.IS
    if is_one and not repeats(question, question.index.subject):
        return TablePlan("", filters, measures=tuple(Measure(Kind.SUM, e.name) for e in figures))
    names = tuple(each.name for each in figures)
    columns = names if is_one else (question.index.subject, *names)
    order = () if is_one else (Order(names[0]),)
    return TablePlan("", filters, order=order, columns=columns)


def _look_up(question: Question) -> TablePlan | None:
    """Cells of the rows that meet conditions."""
    filters = filters_of(question)
    measured = _of_an_adjective(question)
    if measured is None and question.says(PRICED):
        measured = measured_by(question, "expensive")
        if measured is None:
            return None
    if measured is not None:
        return _cells(question, measured) if filters else None
    target, is_named = asked_for(question)
    if not filters:
        return None
    compared = {each.column for each in filters}
    named = [each.column for each in question.columns if each.column not in compared]
    chosen = tuple(dict.fromkeys([target, *named] if is_named else named))
    if is_named and target in compared:
        chosen = (question.index.subject, target)
    said = {each.column for each in filters if each.op is Op.IS and len(each.values) == 1}
    if not chosen:
        subject = question.index.subject
        is_of_rows = question.index.has_subject and subject not in said
        chosen = (subject,) if is_of_rows else ()
    return TablePlan("", filters, columns=() if said.issuperset(chosen) else chosen)

"""Questions for rows: one end of an order, the row beside another, one of two, a look-up."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag.records import TableColumn
from rag.tables.asking.choosing import (
    IN_FILE,
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
    pair_of,
    repeats,
    superlative,
)
from rag.tables.asking.question import Question, filters_of, number_in
from rag.tables.asking.words import (
    ADJECTIVES,
    IDLE,
    MEASURES,
    OPERATORS,
    RANKED_ENDS,
    SUPERLATIVES,
    TOP,
)
from rag.tables.plan import ROWS, Filter, Key, Kind, Measure, Op, Order, Step, TablePlan

BESIDE = re.compile(
    r"\b(?P<after>(?:next|after|following|follows|succeeded|below)\b)|\b(?P<before>(?:previous|"
    r"before|prior to|preceding|preceded|above)\b)"
)


@dataclass(frozen=True, slots=True)
class End:
    """One end of an order: "the three cheapest", "last 5", "the most expensive"."""

    word: str
    at: int
    adjective: str
    down: bool
    count: int = 0  # 0: the one at the end
    after: int = 0  # the word behind it

    @property
    def is_in_file(self) -> bool:
        """In the order of the file, where no other is said."""
        return self.word in IN_FILE


def end_of(question: Question) -> End | None:
    """The first that the question speaks of; its words are used then."""
    match = TOP.search(question.masked)
    if match is not None:
        start, end = question.at(match.start()), question.at(match.end() - 1) + 1
        question.conditions = [each for each in question.conditions if not start <= each[0] < end]
        word = match["word"] or match["word2"]
        at = question.words.index(word, start)
        goes_on = end < len(question.words) and question.words[end] in ("most", "least")
        question.use(start, end + goes_on)
        adjective, down = superlative(question, end if goes_on else at)
        count = int(number_in(match["count"] or match["count2"]) or 1)
        return End(word, at, adjective, down, count, end)
    is_of_two = "or" in question.words and pair_of(question) is not None
    for at, word in enumerate(question.masked.split()):
        if word in SUPERLATIVES or word in IN_FILE:
            question.use(at, at + 1)
            return End(word, at, *superlative(question, at), after=at + 1)
        if is_of_two and word in ADJECTIVES:  # "which is cheaper, A or B?"
            question.use(at, at + 1)
            return End(word, at, *ADJECTIVES[word], after=at + 1)
    return None


def ask_top(question: Question) -> TablePlan | None:
    """ "Top 10 products in Q3", "the three cheapest"."""
    if TOP.search(question.masked) is None:
        return None
    end = end_of(question)
    assert end is not None
    if end.is_in_file:
        order = Order(ROWS, end.down)
        return TablePlan("", filters_of(question), order=(order,), limit=end.count)
    return _ranked(question, end.adjective, end.down, end.count, after=end.after)


def _ranked(
    question: Question, adjective: str, descending: bool, limit: int, *, after: int = 0
) -> TablePlan | None:
    """Rows or groups in the order of a figure, cut off."""
    figure = _ordering_figure(question, adjective, after)
    if figure is None and is_of_price(adjective):
        return None
    groups = [key for _found, key in grouped_by(question)]
    if figure is not None:
        groups = [key for key in groups if key.column != figure.name]
    target = listed_column(question, figure, after)
    if not groups and target is not None and repeats(question, target):
        groups = [Key(target)]
    filters = filters_of(question)
    if figure is None:
        column = target or question.index.subject
        return TablePlan(
            "",
            filters,
            (*groups,) or (Key(column),),
            (Measure(Kind.COUNT),),
            (Order("measure 1", descending),),
            limit,
        )
    descending = directed(adjective, "", figure, down=descending)
    each = _in_each(question, groups)
    subject = target if target and Key(target) not in each else question.index.subject
    if not groups or (each and (subject != target or not repeats(question, subject))):
        columns = tuple(dict.fromkeys([*(k.column for k in each), subject, figure.name]))
        order = (Order(figure.name, descending),)
        return TablePlan("", filters, order=order, limit=limit, columns=columns, each=each)
    if each and target and Key(target) not in groups:
        groups = [*each, Key(target)]
    kind = Kind.SUM if is_added(figure) else (Kind.MAX if descending else Kind.MIN)
    if kind is not Kind.SUM and any(repeats(question, key.column) for key in groups):
        question.doubt(f"took the {kind} of {figure.name} of each: it is not added up")
    order = (Order("measure 1", descending),)
    measures = (Measure(kind, figure.name),)
    return TablePlan("", filters, tuple(groups), measures, order, limit, each=each)


EACH = re.compile(r"\b(?:in|for|of|per|pro|je|fur|aus)(?: (?:each|every|jede[mnrs]?))?\b")


def _in_each(question: Question, groups: Sequence[Key]) -> tuple[Key, ...]:
    """ "The top two in each office": the keys behind "in each" or "per"."""
    for match in EACH.finditer(question.masked):
        at = question.at(match.end() - 1) + 1
        named = next((each for each in question.columns if each.start == at), None)
        is_plain = match[0] in ("in", "for", "of", "fur", "aus")
        if named is not None and not is_plain and Key(named.column) in groups:
            question.takes(match)
            return (Key(named.column),)
    return ()


def _ordering_figure(question: Question, adjective: str, after: int) -> TableColumn | None:
    hinted = measured_by(question, adjective) if adjective else None
    named = named_figures(question, after) or named_figures(question)
    if hinted is not None and (not named or hinted in named):
        return hinted
    if named:
        return named[0]
    columns = figure_columns(question)
    if not columns or is_of_price(adjective):
        return None
    if len(columns) > 1:
        question.doubt(f"ranked by {columns[0].name}: the question names no figure")
    return columns[0]


def ask_beside(question: Question) -> TablePlan | None:
    """The row after or before another, in the order of the file."""
    masked = question.masked
    match = BESIDE.search(masked)
    if match is None or not question.values:
        return None
    at = question.at(match.start())
    behind = [found for found in question.values if 0 < found.start - at <= 6]
    if not behind or not (at + 1 in question.used or question.words[at + 1] in IDLE):
        return None  # nothing to be beside, or "after-school clubs that are free"
    target, is_named = asked_for(question)
    if not is_named or question.words[0] in ("who", "whom"):
        target = behind[0].column
    anchor = Filter(behind[0].column, Op.IS, behind[0].values)
    others = filters_of(question, without=[behind[0]])
    question.use(at, at + 1)
    rows = 1 if match["after"] else -1
    return TablePlan("", others, columns=(target,), step=Step((anchor,), rows))


def ask_end(question: Question) -> TablePlan | None:
    """One end of an order: "which driver has the most points", "the last city listed"."""
    end = end_of(question)
    if end is None:
        return None
    if not end.is_in_file and grouped_by(question):  # "the heaviest crate in each depot"
        return _ranked(question, end.adjective, end.down, 1, after=end.after)
    if not end.is_in_file:
        return _one_end(question, end.adjective, end.down, end.at)
    target, is_named = asked_for(question)
    behind = [found for found in question.columns if 0 < found.start - end.at <= 2]
    target = behind[0].column if behind and not is_named else target
    order = (Order(ROWS, end.down),)
    return TablePlan("", filters_of(question), order=order, limit=1, columns=(target,))


def _one_end(question: Question, adjective: str, descending: bool, at: int) -> TablePlan | None:
    figures = named_figures(question, at) or named_figures(question)
    hinted = measured_by(question, adjective) if adjective else None
    figure = hinted if hinted is not None and hinted not in figures and not figures else None
    figure = figure or (figures[0] if figures else None)
    target, _ = asked_for(question, without={figure.name} if figure else ())
    if figure is None and question.words[at] in RANKED_ENDS and repeats(question, target):
        return _ranked(question, adjective, descending, 1, after=at)
    if figure is None:
        return _most_rows(question, target, adjective, descending)
    descending = directed(adjective, question.words[at], figure, down=descending)
    asks_value = _asks_value(question, figure, at)
    filters = filters_of(question)
    if asks_value:
        kind = Kind.MAX if descending else Kind.MIN
        return TablePlan("", filters, measures=(Measure(kind, figure.name),))
    if repeats(question, target) and is_added(figure):
        measure = (Measure(Kind.SUM, figure.name),)
        by = (Order("measure 1", descending),)
        return TablePlan("", filters, (Key(target),), measure, by, _how_many(question, target))
    return TablePlan(
        "",
        filters,
        order=(Order(figure.name, descending),),
        limit=_how_many(question, target),
        columns=tuple(dict.fromkeys((target, figure.name))),
    )


def _how_many(question: Question, target: str) -> int:
    """ "Which *five* products cost the most": one, where no number stands before the rows."""
    before = [found.start - 1 for found in question.columns if found.column == target]
    free = [at for at in before if at >= 0 and at not in question.used]
    count = next(filter(None, (number_in(question.words[at]) for at in free)), 1)
    question.used.update(at for at in free if number_in(question.words[at]) == count)
    return max(1, int(count))


def _asks_value(question: Question, figure: TableColumn, at: int) -> bool:
    """ "What was the highest attendance" asks for the figure, "the cheapest car a day" for a row.

    `at` is where the end is said.
    """
    words = question.words
    columns = (found for found in question.columns if words[found.start] not in SUPERLATIVES)
    first = next(columns, None)
    starts = words[:1] == ["what"] and words[1:2] and words[1] in ("is", "was", "are", "were", "s")
    if not starts or first is None or first.column != figure.name:
        return False
    behind = [i for i in range(at + 1, len(words)) if words[i] not in MEASURES]  # "most expensive"
    return not behind or behind[0] in question.used or words[behind[0]] in IDLE | OPERATORS


def _most_rows(
    question: Question, target: str, adjective: str, descending: bool
) -> TablePlan | None:
    """ "Which team appears most": the value that most rows have; nothing of "the heaviest"."""
    if adjective:  # of what no column measures
        return None
    figures = figure_columns(question)
    if figures and not repeats(question, target):
        question.doubt(f"ordered by {figures[0].name}: the question names no figure")
        order = (Order(figures[0].name, descending != is_rank(figures[0])),)
        return TablePlan("", filters_of(question), order=order, limit=1, columns=(target,))
    order = (Order("measure 1", descending),)
    return TablePlan(
        "", filters_of(question), (Key(target),), (Measure(Kind.COUNT),), order, limit=1
    )


def ask_picked(question: Question) -> TablePlan | None:
    """Values of rows that meet conditions."""
    filters = filters_of(question)
    target, is_named = asked_for(question)
    if not filters and not is_named:
        return None
    filtered = {each.column for each in filters}
    columns = [found.column for found in question.columns if found.column not in filtered]
    if is_named and any(target == each.column for _s, _e, each in question.conditions):
        columns, is_named = [question.index.subject, target], False  # "which cost less than 200"
    chosen = tuple(dict.fromkeys([target] if is_named else columns or [target]))
    said = {each.column for each in filters if each.op is Op.IS and len(each.values) == 1}
    names_none = not is_named and not columns and not question.index.has_subject
    if names_none or said.issuperset(chosen):  # "the ferries to Vest": what they have else
        return TablePlan("", filters)
    return TablePlan("", filters, columns=chosen)

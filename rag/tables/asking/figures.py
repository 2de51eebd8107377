"""Questions that count, add up or compare figures."""

import re
from dataclasses import replace

from rag.records import TableColumn
from rag.tables.asking.choosing import (
    figure_columns,
    figure_kind,
    grouped_by,
    is_added,
    is_rank,
    measured_by,
    named_figures,
    numbers_rows,
    pair_of,
    repeats,
)
from rag.tables.asking.index import Found, stem
from rag.tables.asking.question import FIGURES, Question, filters_of
from rag.tables.asking.words import (
    AVERAGE,
    COUNT,
    DIFFERENCE,
    DIFFERENT,
    IDLE,
    MEDIAN,
    ROW_NOUNS,
    SHARE,
    SUM,
    SUPERLATIVES,
    TOTAL,
    counted,
)
from rag.tables.plan import ROWS, Filter, Key, Kind, Measure, Op, Order, TablePlan
from rag.tables.wordforms import normalised
from rag.text.languages import words


def ask_share(question: Question) -> TablePlan | None:
    """What part of the whole each group is, or the rows that meet a condition."""
    if not question.takes(SHARE.search(question.masked)):
        return None
    groups = [key for _found, key in grouped_by(question)]
    filters = filters_of(question)
    figures = [column for column in named_figures(question) if is_added(column)]
    measured = figures[0].name if figures else ROWS
    base = Measure(Kind.SUM, measured) if figures else Measure(Kind.COUNT)
    share = Measure(Kind.SHARE, measured)
    if not groups and len(filters) == 1:
        return TablePlan("", filters, (), (share, base))
    if not groups:
        return None
    order = (Order("measure 1", True),)
    return TablePlan("", filters, tuple(groups), (base, share), order)


OF_A_NOUN = re.compile(r"\b(?:how much|wie ?viel) (?!in\b|total\b|¤|altogether\b|all\b)\w+")
PRICED = re.compile(r"\bhow much (?:is|are|was|for)\b|\bwas kostet\b")  # else a verb says what


def ask_difference(question: Question) -> TablePlan | None:
    """ "The difference in points between A and B", "how many more wins than losses"."""
    pair = pair_of(question)
    if not question.takes(DIFFERENCE.search(question.masked)):
        return None
    question.used |= {at for at, word in enumerate(question.words) if word in SIDES}
    figures = named_figures(question)
    filters = filters_of(question)
    key = Key(pair[0].column) if pair else None
    if figures and key and (is_added(figures[0]) or AVERAGE.search(question.masked)):
        kind = Kind.AVERAGE if question.takes(AVERAGE.search(question.masked)) else Kind.SUM
        measures = (Measure(kind, figures[0].name),)
        if question.column(key.column).distinct < question.index.table.row_count:
            return TablePlan("", filters, (key,), measures, outer=Kind.SPREAD)
    if figures and (pair or not question.values):
        return TablePlan("", filters, measures=(Measure(Kind.SPREAD, figures[0].name),))
    if pair and COUNT.search(question.masked):  # else texts tell two things apart
        column = pair[0].column
        rows = (Measure(Kind.COUNT),)
        return TablePlan("", filters, (Key(column),), rows, outer=Kind.SPREAD)
    return None


SIDES = words("between and zwischen und than als")


def ask_count(question: Question) -> TablePlan | None:
    """ "How many orders …": rows, different values, or a figure that the table holds."""
    masked = question.masked
    match = counted(masked)
    if match is None:
        return None
    start, end = question.at(match.start()), question.at(match.end() - 1) + 1
    if start and question.words[start - 1] in SUPERLATIVES:  # "the smallest number of"
        return None
    if any(start <= found.start < end and found.score > 1 for found in question.columns):
        return None  # "the total amount of" where a column is called so
    question.use(start, end)
    is_different = question.takes(DIFFERENT.search(masked))
    groups = tuple(key for _found, key in grouped_by(question))
    noun = _noun(question, start, end)
    filters = filters_of(question)
    order = (Order("measure 1", True),) if groups else ()
    if noun is not None:
        column = question.column(noun.column)
        compared = {each.column for _s, _e, each in question.conditions}
        if column.type in FIGURES and not column.is_identifier and column.name not in compared:
            kind = Kind.AVERAGE if question.takes(AVERAGE.search(masked)) else Kind.SUM
            question.says(SUM)
            return TablePlan("", filters, groups, (Measure(kind, column.name),), order)
        is_filtered = any(each.column == column.name for each in filters)
        if is_different:
            return TablePlan("", filters, groups, (Measure(Kind.DISTINCT, column.name),), order)
        differ = column.distinct < 0.8 * question.index.table.row_count
        if differ and not is_filtered:
            return TablePlan("", filters, groups, (Measure(Kind.DISTINCT, column.name),), order)
    return TablePlan("", filters, groups, (_counted(question, noun, end),), order)


def _noun(question: Question, start: int, end: int) -> Found | None:
    """The column that is counted, not one that only counts the rows itself."""
    for found in question.columns:
        if start <= found.start <= end + 2 and found.end > end:
            return None if _only_counts(question, found) else found
    return None


def _counted(question: Question, noun: Found | None, at: int) -> Measure:
    compared = {each.column for _s, _e, each in question.conditions}
    if noun is not None and noun.column not in {question.index.subject, *compared}:
        question.doubt(f"counted rows for {noun.column}")
    _take_noun(question, at)
    done = question.columns[-1] if question.columns else None
    is_of_rows = noun is None or noun.column == question.index.subject
    if is_of_rows and done and done.end == len(question.words) and done.column not in compared:
        column = question.column(done.column)
        if done.score >= 1 and is_added(column):  # "how many dishes were *sold*"
            question.doubt(f"added up {column.name}")
            return Measure(Kind.SUM, column.name)
    return Measure(Kind.COUNT)


def _only_counts(question: Question, found: Found) -> bool:
    """ "How many games" of games numbered 1, 2, 3, or of ranks: rows, not the sum of these."""
    column = question.column(found.column)
    return is_rank(column) or numbers_rows(question, column)


def _take_noun(question: Question, at: int) -> None:
    """The noun that is counted stands for the rows: "how many *games* …"."""
    while at < len(question.words) and question.words[at] in ("total", "different", "of", "the"):
        at += 1
    if at >= len(question.words) or at in question.used or question.words[at] in IDLE:
        return
    table = question.index.table
    known = {stem(w) for w in normalised(f"{table.name} {table.document_title}").split()}
    if question.words[at] in ROW_NOUNS or stem(question.words[at]) in known:
        question.use(at, at + 1)


KINDS = ((Kind.MEDIAN, MEDIAN), (Kind.AVERAGE, AVERAGE), (Kind.SUM, SUM))


def ask_figure(question: Question) -> TablePlan | None:
    """A sum, an average or a median; figures by groups."""
    masked = question.masked
    groups = tuple(key for _found, key in grouped_by(question))
    kind = next((kind for kind, says in KINDS if question.says(says)), None)
    figures = named_figures(question)
    is_end = any(word in SUPERLATIVES for word in masked.split())
    if (kind is None and not groups) or (is_end and kind in (None, Kind.SUM)):
        return None
    if not figures and kind in (Kind.SUM, None):
        return _counted_groups(question, groups, kind)
    column = figures[0] if figures else next(iter(figure_columns(question)), None)
    if column is None:
        return None
    if not figures:
        question.doubt(f"took {column.name} for the figure: none is named")
    wanted = kind or figure_kind(question, column)
    measures = tuple(Measure(wanted, each.name) for each in figures or [column])
    if not groups and wanted is Kind.SUM and _is_of_each(question, column):
        return _of_each(question, column)
    keys, having = _of_groups(question, groups, column)
    filters = tuple(each for each in filters_of(question) if each not in having)
    bounds = tuple(replace(each, column="measure 1") for each in having)
    return TablePlan("", (*filters, *bounds), keys, measures[:4])


def _is_of_each(question: Question, column: TableColumn) -> bool:
    """ "How much are the speakers?" asks for each one's price, unless it says "together"."""
    if TOTAL.search(question.masked):
        return False
    subject = question.index.subject
    named = [e.values for e in filters_of(question) if e.column == subject and e.op is Op.IS]
    return any(len(values) > 1 for values in named) or not (named or is_added(column))


def _of_each(question: Question, column: TableColumn) -> TablePlan:
    subject, filters = question.index.subject, filters_of(question)
    if repeats(question, subject):
        return TablePlan("", filters, (Key(subject),), (Measure(Kind.SUM, column.name),))
    return TablePlan("", filters, order=(Order(column.name),), columns=(subject, column.name))


def _of_groups(
    question: Question, groups: tuple[Key, ...], column: TableColumn
) -> tuple[tuple[Key, ...], list[Filter]]:
    """ "Which districts have an average rent above 2,000": the bound is one of the groups."""
    asks = [found for found in question.columns if found.column != column.name]
    opens = question.words[0] in ("which", "welche", "welcher", "welches", "list")
    bounds = [
        each
        for _s, _e, each in question.conditions
        if each.column == column.name and each.op not in (Op.IS, Op.NOT) and not each.other
    ]
    if not opens or not asks or not bounds or not repeats(question, asks[0].column):
        return groups, []
    return groups or (Key(asks[0].column),), bounds


def _counted_groups(
    question: Question, groups: tuple[Key, ...], kind: Kind | None
) -> TablePlan | None:
    """No figure is named: the main one of the table, where it has one; else rows are counted."""
    if question.takes(PRICED.search(question.masked)):  # "how much is the Kontor 8?"
        price = measured_by(question, "expensive")
        if price is None:
            return None
        if not groups and _is_of_each(question, price):
            return _of_each(question, price)
        return TablePlan("", filters_of(question), groups, (Measure(Kind.SUM, price.name),))
    if question.takes(OF_A_NOUN.search(question.masked)):  # of something that it does not have
        return None
    columns = [column for column in figure_columns(question) if is_added(column)]
    if not columns:
        return (
            None
            if not groups
            else TablePlan("", filters_of(question), groups, (Measure(Kind.COUNT),))
        )
    question.doubt(f"took {columns[0].name} for the figure: none is named")
    if kind is None and not groups:
        return None
    return TablePlan("", filters_of(question), groups, (Measure(Kind.SUM, columns[0].name),))

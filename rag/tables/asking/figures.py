"""Questions that count, add up or compare figures."""

import re

from rag.records import TableColumn
from rag.tables.asking.choosing import (
    figure_columns,
    figure_kind,
    grouped_by,
    is_added,
    is_rank,
    listed_column,
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
    CHANGE,
    COUNT,
    DIFFERENCE,
    DIFFERENT,
    IDLE,
    MEDIAN,
    ROW_NOUNS,
    SHARE,
    SUM,
    SUPERLATIVES,
)
from rag.tables.plan import (
    ROWS,
    Key,
    Kind,
    Measure,
    Order,
    TablePlan,
)
from rag.tables.wordforms import normalised


def ask_change(question: Question) -> TablePlan | None:
    """How a figure changed from one time to the next."""
    groups = [key for _found, key in grouped_by(question)]
    figures = named_figures(question)
    if not CHANGE.search(question.masked) or not groups or not figures:
        return None
    measures = (Measure(Kind.SUM, figures[0].name), Measure(Kind.CHANGE, figures[0].name))
    return TablePlan("", filters_of(question), tuple(groups), measures)


def ask_share(question: Question) -> TablePlan | None:
    """What part of the whole each group is."""
    groups = [key for _found, key in grouped_by(question)]
    if not SHARE.search(question.masked):
        return None
    listed = listed_column(question, None, 0)
    if not groups and listed and repeats(question, listed):
        groups = [Key(listed)]
    figures = [column for column in named_figures(question) if is_added(column)]
    if not groups:
        return None
    measured = figures[0].name if figures else ROWS
    base = Measure(Kind.SUM, measured) if figures else Measure(Kind.COUNT)
    return TablePlan(
        "",
        filters_of(question),
        tuple(groups),
        (base, Measure(Kind.SHARE, measured)),
        (Order("measure 1", True),),
    )


PRICED = re.compile(r"\bhow much (?:is|are|was|does|do|for)\b|\bwas kostet\b")
MORE_THAN = re.compile(r"\bhow (?:many|much) .*\b(?:more|fewer|less)\b.* than ¤")


def ask_difference(question: Question) -> TablePlan | None:
    """ "The difference in points between A and B", "how many more wins than losses"."""
    pair = pair_of(question)
    is_asked = DIFFERENCE.search(question.masked) or (pair and MORE_THAN.search(question.masked))
    if not is_asked:
        return None
    figures = named_figures(question)
    filters = filters_of(question)
    if figures and (pair or not question.values):
        return TablePlan("", filters, measures=(Measure(Kind.SPREAD, figures[0].name),))
    if pair:
        column = pair[0].column
        counted = (Measure(Kind.COUNT),)
        return TablePlan("", filters, (Key(column),), counted, outer=Kind.SPREAD)
    return None


def ask_count(question: Question) -> TablePlan | None:
    """ "How many orders …": rows, different values, or a figure that the table holds."""
    masked = question.masked
    match = COUNT.search(masked)
    if match is None:
        return None
    start, end = question.at(match.start()), question.at(match.end() - 1) + 1
    question.use(start, end)
    if start and question.words[start - 1] in SUPERLATIVES:  # "the smallest number of"
        return None
    groups = tuple(key for _found, key in grouped_by(question))
    noun = _noun(question, start, end)
    filters = filters_of(question)
    order = (Order("measure 1", True),) if groups else ()
    if noun is not None:
        column = question.column(noun.column)
        compared = {each.column for _s, _e, each in question.conditions}
        if column.type in FIGURES and not column.is_identifier and column.name not in compared:
            kind = Kind.AVERAGE if AVERAGE.search(masked) else Kind.SUM
            return TablePlan("", filters, groups, (Measure(kind, column.name),), order)
        is_filtered = any(each.column == column.name for each in filters)
        if DIFFERENT.search(masked):
            return TablePlan("", filters, groups, (Measure(Kind.DISTINCT, column.name),), order)
        differ = column.distinct < 0.8 * question.index.table.row_count
        if differ and not is_filtered and not _means_rows(question, column):
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
        question.doubts.append(f"counted rows for {noun.column}")
    total = _total_of(question, at) if noun is None else None
    if total is not None:
        return Measure(Kind.SUM, total)
    _take_noun(question, at)
    return Measure(Kind.COUNT)


def _only_counts(question: Question, found: Found) -> bool:
    """ "How many games" of games numbered 1, 2, 3, or of ranks: rows, not the sum of these."""
    column = question.column(found.column)
    return is_rank(column) or numbers_rows(question, column)


def _total_of(question: Question, at: int) -> str | None:
    """ "How many medals" of one row: its total, where the table has one and no such column."""
    pins = any(found.column == question.index.subject for found in question.values)
    word = question.words[at] if at < len(question.words) else ""
    if not pins or word in ROW_NOUNS or word in IDLE or at in question.used:
        return None
    for column in question.index.table.columns:
        if normalised(column.name) == "total" and column.type in FIGURES:
            question.doubts.append(f"took {column.name} for “{word}”")
            question.use(at, at + 1)
            return column.name
    return None


def _means_rows(question: Question, column: TableColumn) -> bool:
    return column.name == question.index.subject and column.distinct >= 0.9 * max(
        1, question.index.table.row_count - column.blanks
    )


def _take_noun(question: Question, at: int) -> None:
    """The noun that is counted stands for the rows: "how many *games* …"."""
    while at < len(question.words) and question.words[at] in ("total", "different", "of", "the"):
        at += 1
    if at >= len(question.words) or at in question.used or question.words[at] in IDLE:
        return
    table = question.index.table
    known = {stem(w) for w in normalised(f"{table.name} {table.document_title}").split()}
    if question.words[at] not in ROW_NOUNS and stem(question.words[at]) not in known:
        question.doubts.append(f"counted rows for “{question.words[at]}”")
    question.use(at, at + 1)


def ask_figure(question: Question) -> TablePlan | None:
    """A sum, an average or a median; figures by groups."""
    masked = question.masked
    groups = tuple(key for _found, key in grouped_by(question))
    kind = (
        Kind.MEDIAN if MEDIAN.search(masked)
        else Kind.AVERAGE if AVERAGE.search(masked)
        else Kind.SUM if question.says(SUM)
        else None
    )  # fmt: skip
    figures = named_figures(question)
    is_end = any(word in SUPERLATIVES for word in masked.split())
    if (kind is None and not groups) or (is_end and kind in (None, Kind.SUM) and not groups):
        return None
    if not figures and kind in (Kind.SUM, None):
        return _counted_groups(question, groups, kind)
    column = figures[0] if figures else next(iter(figure_columns(question)), None)
    if column is None:
        return None
    if is_end and kind in (None, Kind.SUM):
        return None
    wanted = kind or figure_kind(question, column)
    measures = tuple(Measure(wanted, each.name) for each in figures or [column])
    return TablePlan("", filters_of(question), groups, measures[:4])


def _counted_groups(
    question: Question, groups: tuple[Key, ...], kind: Kind | None
) -> TablePlan | None:
    """No figure is named: the main one of the table, where it has one; else rows are counted."""
    if PRICED.search(question.masked):  # "how much is the Kontor 8?"
        price = measured_by(question, "expensive")
        if price is None:
            return None
        return TablePlan("", filters_of(question), groups, (Measure(Kind.SUM, price.name),))
    columns = [column for column in figure_columns(question) if is_added(column)]
    if not columns:
        return (
            None
            if not groups
            else TablePlan("", filters_of(question), groups, (Measure(Kind.COUNT),))
        )
    question.doubts.append(f"took {columns[0].name} for the figure: none is named")
    if kind is None and not groups:
        return None
    return TablePlan("", filters_of(question), groups, (Measure(Kind.SUM, columns[0].name),))

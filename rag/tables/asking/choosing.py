"""Which column a question asks for, measures, or groups by."""

import re
from collections.abc import Iterable, Sequence

from rag.records import ColumnType, TableColumn
from rag.tables.asking.index import Found, stems
from rag.tables.asking.question import FIGURES, Question
from rag.tables.asking.words import (
    ADJECTIVES,
    GROUP,
    MEASURES,
    PERSON,
    RANKS,
    SUPERLATIVES,
    WHEN,
    WHERE,
    is_of_money,
)
from rag.tables.plan import Key, Part
from rag.tables.wordforms import CAMEL, normalised, spoken

MAIN = (
    "revenue", "sales", "turnover", "umsatz", "amount", "total", "value", "points", "score",
    "profit", "net", "quantity", "qty", "units", "count", "price", "cost", "votes", "medals",
)  # fmt: skip
TEXT = ColumnType.TEXT
NOT_ADDED = re.compile(
    r"price|preis|percent|%|height|temperature|average|weight|elevation|altitude|density|duration|"
    r"capacity|(?<![^\W\d_])(?:cost per|(?:rat(?:e|ing|io)|age|score|avg|speed|margin|time|size|"
    r"area|length|year)s?(?![^\W\d_]))"
)
PARTS = {"year": Part.YEAR, "annual": Part.YEAR, "quarter": Part.QUARTER, "month": Part.MONTH,
    "jahr": Part.YEAR, "monat": Part.MONTH, "quartal": Part.QUARTER, "years": Part.YEAR,
    "months": Part.MONTH, "quarters": Part.QUARTER}  # fmt: skip


def is_added(column: TableColumn) -> bool:
    """Whether figures of this column mean something as a sum."""
    is_figure = column.type is ColumnType.NUMBER and not column.is_identifier
    is_figure = is_figure and not is_rank(column)
    return (
        is_figure
        and column.unit != "%"
        and not has_years(column)
        and not NOT_ADDED.search(CAMEL.sub(" ", column.name).casefold())
    )


def figure_columns(question: Question) -> list[TableColumn]:
    """Columns that can be measured, the main one first."""
    columns = [
        column
        for column in question.index.table.columns
        if column.type in FIGURES and not column.is_identifier
    ]
    return sorted(columns, key=_how_main)


def _how_main(column: TableColumn) -> int:
    name = normalised(column.name)
    places = (at for at, word in enumerate(MAIN) if word in name.split() or name.startswith(word))
    return min(places, default=len(MAIN))


def named_figures(question: Question, start: int = 0) -> list[TableColumn]:
    """Measurable columns that the question names from a word on, in its order."""
    found = []
    compared = {each.column for _s, _e, each in question.conditions}
    for each in question.columns:
        column = question.column(each.column)
        if each.start >= start and column.type in FIGURES and column not in found:
            found.append(column)
    free = [column for column in found if column.name not in compared]
    return free or found


OF_TIME = ("year", "-year", "date", "-date")
ORDERED = FIGURES | {ColumnType.DATE, ColumnType.QUARTER}  # texts have an order that says nothing


def measured_by(question: Question, adjective: str) -> TableColumn | None:
    """The column that an adjective speaks of: "tall" of a height, "cheap" of money."""
    columns = [each for each in question.index.table.columns if each.type in ORDERED]
    named = [question.column(found.column) for found in question.columns]
    named = [each for each in named if each in columns]
    for hint in MEASURES.get(adjective, ()):
        for column in (*named, *columns):
            if hint == "$" and is_of_money(column):
                if column not in named:
                    took(question, "price", [each for each in columns if is_of_money(each)])
                return column
            if _is_hinted(column, hint):
                return column
    if set(MEASURES.get(adjective, ())).isdisjoint(OF_TIME):
        return None
    times = [column for column in columns if column.type is ColumnType.DATE or has_years(column)]
    return times[0] if len(times) == 1 else None


def took(question: Question, what: str, columns: Sequence[TableColumn]) -> None:
    """Say that the first of several columns was taken, where there are several."""
    if len(columns) > 1:
        question.doubt(f"took {columns[0].name} for the {what}, not {columns[1].name}")


def has_years(column: TableColumn) -> bool:
    """Whether its figures are years, whatever it is called."""
    if column.type is not ColumnType.NUMBER or column.decimals or not column.low:
        return False
    return float(column.low) >= 1000 and 1500 <= float(column.high) <= 2200


def is_of_price(adjective: str) -> bool:
    """Whether nothing but an amount of money can be so: cheap, expensive."""
    return "$" in MEASURES.get(adjective, ())


def _is_hinted(column: TableColumn, hint: str) -> bool:
    said = set(stems(hint.removeprefix("-")))
    return any(said & set(stems(word)) for word in spoken(column.name).split())


def directed(adjective: str, word: str, column: TableColumn, *, down: bool) -> bool:
    """Whether the highest figures come first: the oldest have the lowest year, the best rank 1."""
    hints = MEASURES.get(adjective, ())
    is_turned = any(hint[0] == "-" and _is_hinted(column, hint) for hint in hints)
    dated = column.type in (ColumnType.DATE, ColumnType.QUARTER) or has_years(column)
    is_turned |= dated and adjective in ("old", "young")
    by_rank = is_rank(column) and (not adjective or word == "highest")
    return down != (is_turned or by_rank)


IN_FILE = dict.fromkeys(("last", "letzten", "letzte"), True) | dict.fromkeys(
    ("first", "ersten", "erste"), False
)  # words for an end of the file, and whether it is the lower one


def superlative(question: Question, at: int) -> tuple[str, bool]:
    """What "cheapest" or "most expensive" measures, and whether the highest comes first."""
    word = question.words[at]
    adjective, descending = SUPERLATIVES.get(word) or ("", IN_FILE.get(word, True))
    follows = question.words[at + 1] if at + 1 < len(question.words) else ""
    if adjective or word not in ("most", "least") or follows not in MEASURES:
        return adjective, descending
    question.use(at + 1, at + 2)
    return follows, ADJECTIVES[follows][1] == descending


def grouped_by(question: Question) -> list[tuple[Found | None, Key]]:
    """What follows "by", "per" or "for each"."""
    found: list[tuple[Found | None, Key]] = []
    for match in GROUP.finditer(question.masked):
        at = question.at(match.end() - 1) + 1
        while at < len(question.words) and question.words[at] in {"the", "their", "each", "der"}:
            at += 1
        keys = _keys_at(question, at)
        if keys:
            question.takes(match)
        found += [key for key in keys if all(key[1] != other[1] for other in found)]
    return found


def _keys_at(question: Question, at: int) -> list[tuple[Found | None, Key]]:
    if at >= len(question.words):
        return []
    named = next((each for each in question.columns if each.start == at), None)
    if named is not None and question.column(named.column).type not in FIGURES:
        part = PARTS.get(question.words[at], Part.WHOLE)
        is_date = question.column(named.column).type is ColumnType.DATE and bool(part)
        own = part_keys(question, part) if is_date else [Key(named.column)]
        keys: list[tuple[Found | None, Key]] = [(named, key) for key in own]
        return [*keys, *_and_more(question, named.end)]
    if question.words[at] in PARTS:
        parts = part_keys(question, PARTS[question.words[at]])
        if parts:
            question.use(at, at + 1)
            return [*((None, key) for key in parts), *_and_more(question, at + 1)]
    return []


def _and_more(question: Question, at: int) -> list[tuple[Found | None, Key]]:
    """ "by region and quarter"."""
    if at + 1 < len(question.words) and question.words[at] in {"and", "und"}:
        return _keys_at(question, at + 1)
    return []


def part_keys(question: Question, part: Part) -> list[Key]:
    """By what to put rows together "per month": a month of which year, where there are several."""
    columns = question.index.table.columns
    named = (column for column in columns if column.type is not ColumnType.DATE)
    own = [column for column in named if PARTS.get(normalised(column.name)) is part]
    if own:
        return [Key(own[0].name)]
    dates = [column for column in columns if column.type is ColumnType.DATE]
    if not dates:
        return []
    name = dates[0].name
    spans_years = dates[0].low[:4] != dates[0].high[:4]
    is_of_one = any(each.part is Part.YEAR for _s, _e, each in question.conditions)
    years = (
        [Key(name, Part.YEAR)] if spans_years and part is not Part.YEAR and not is_of_one else []
    )
    return [*years, Key(name, part)]


# ── What is asked for ────────────────────────────────────────────────────────────────────────


def asked_for(question: Question, without: Iterable[str] = ()) -> tuple[str, bool]:
    """The column whose values are the answer, and whether the question names it."""
    left_out = set(without)
    words = question.words
    filtered = {found.column for found in question.values}
    free = [
        found
        for found in question.columns
        if found.column not in left_out and words[found.start : found.end + 1] != ["name", "of"]
    ]
    for at, word in enumerate(words):
        if word in ("which", "what", "whose", "name", "list", "tell", "welche", "welcher", "find"):
            near = [found for found in free if at < found.start <= at + 5]
            if near:
                return near[0].column, True
        if word in ("who", "when", "where", "wer", "wann", "wo", "whom"):
            near = [found for found in free if at < found.start <= at + 4]
            near = [found for found in near if question.column(found.column).type is TEXT]
            if near and word in ("who", "whom", "wer"):
                return near[0].column, True
            kind = {"when": WHEN, "wann": WHEN, "where": WHERE, "wo": WHERE}.get(word, PERSON)
            column = _of_kind(question, kind, left_out)
            if column:
                return column, True
    others = [found for found in free if found.column not in filtered]
    if others:
        return others[0].column, True
    subject = question.index.subject
    return subject, False


def _of_kind(question: Question, kind: Sequence[str], without: set[str]) -> str | None:
    columns = [column for column in question.index.table.columns if column.name not in without]
    for wanted in kind:
        for column in columns:
            if wanted in normalised(column.name).split() or normalised(column.name) == wanted:
                is_fit = column.type is not ColumnType.NUMBER or kind is WHEN
                if is_fit:
                    return column.name
    return None


def listed_column(question: Question, figure: TableColumn | None, after: int) -> str | None:
    """The column whose values are listed: "top 10 *products*"."""
    conditioned = {each.column for _s, _e, each in question.conditions}
    for found in question.columns:
        column = question.column(found.column)
        is_figure = column.type in FIGURES and not column.is_identifier
        is_free = column.name not in conditioned or found.start >= after
        if is_free and not is_figure and (figure is None or column.name != figure.name):
            return column.name
    return None


def repeats(question: Question, name: str) -> bool:
    """Whether several rows share a value of this column."""
    column = question.column(name)
    return column.distinct < question.index.table.row_count - column.blanks


def numbers_rows(question: Question, column: TableColumn) -> bool:
    """Whether it only counts the rows of its table: 1, 2, 3 …"""
    count = question.index.table.row_count
    if column.type is not ColumnType.NUMBER or column.distinct != count or count < 3:
        return False
    return column.decimals == 0 and column.low in ("0", "1") and column.high in (
        str(count), str(count - 1)
    )  # fmt: skip


def is_rank(column: TableColumn) -> bool:
    """Whether the lowest figure is the best one."""
    return column.name.casefold().strip(". ") in RANKS


def pair_of(question: Question) -> tuple[Found, Found] | None:
    """Two values of one column."""
    for at, first in enumerate(question.values):
        for second in question.values[at + 1 :]:
            if first.column == second.column and first.values != second.values:
                return first, second
    return None

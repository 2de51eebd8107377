"""What a question names of one table: its columns and values."""

import re
from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import replace

from rag.records import ColumnType
from rag.tables.asking.conditions import read_conditions
from rag.tables.asking.index import Found, TableIndex, stems
from rag.tables.asking.question import COMPOUND, FIGURES, Question, number_in, words_of
from rag.tables.asking.words import (
    AVERAGE,
    COUNT,
    DIFFERENCE,
    DIFFERENT,
    GROUP,
    IDLE,
    MEDIAN,
    MONTHS,
    OPERATORS,
    SHARE,
    SUM,
    TOP,
    UNITS,
    is_of_money,
)
from rag.tables.wordforms import unaccented


def read_question(text: str, index: TableIndex, *, by_meaning: bool = True) -> Question:
    """Find everything that the table knows of a question; also what it only means like."""
    question = Question([part for word in words_of(text) for part in _parts(word, index)], index)
    _counts(question)
    _choose(question, unaccented(text))
    if by_meaning:
        _by_meaning(question)
    _prices(question)
    read_conditions(question)
    for found in question.values:
        question.use(found.start, found.end)
    return question


def _parts(word: str, index: TableIndex) -> list[str]:
    """ "Durchschnittspreis" is an average of a price, "unpaid" not paid, where nothing is so."""
    if index.knows(word):
        return [word]
    if word.startswith("un") and index.is_yes_or_no(word[2:]):
        return ["not", word[2:]]
    return COMPOUND.sub(r"\1 ", word).split() if COMPOUND.match(word) else [word]


def _counts(question: Question) -> None:
    """ "Top 10", "the three cheapest": a figure that limits, and compares with nothing."""
    match = TOP.search(" ".join(question.words))
    if match is not None:
        question.top = question.at(match.start()), question.at(match.end() - 1) + 1
        question.use(*question.top)


def _choose(question: Question, written: str) -> None:
    """Of what overlaps, the longest and surest; of twins, the one whose column is named."""
    words, index = question.words, question.index
    columns = [found for found in index.columns_named(words) if not _is_operator(found, words)]
    has_dates = any(column.type is ColumnType.DATE for column in index.table.columns)
    idle = MONTHS if has_dates else ()  # where there are dates, months are read as times
    values = [
        _as_written(found, written)
        for found in index.values_named(words)
        if not _says_nothing(found, words, idle) and not _is_of_rows(found, question)
    ]
    named = {found.column for found in columns if found.score >= 1}
    ranked = sorted(
        [*columns, *values],
        key=lambda found: (
            -(found.score + (0.15 if found.is_value and found.column in named else 0)),
            -found.length,
            found.start,
        ),
    )
    taken, alike = set(range(*question.top)), _alike(ranked)
    for found in ranked:
        span = set(range(found.start, found.end))
        if span & taken:
            continue
        same = alike[_sign(found)]
        twins = [other.column for other in same if other is not found and found.is_value]
        if _is_one_of_figures(found, same, question):
            continue
        if twins and found.column not in named:
            said = " ".join(words[found.start : found.end])
            question.doubt(f"took “{said}” for {found.column}, not {twins[0]}")
        if found.is_near:
            question.doubt(f"read “{words[found.start]}” as “{found.values[0]}”")
        taken |= span
        (question.values if found.is_value else question.columns).append(found)
    question.columns.sort(key=lambda found: found.start)
    question.values.sort(key=lambda found: found.start)


def _alike(named: Sequence[Found]) -> dict[tuple[int, int, float, bool], list[Found]]:
    """Those that the same words name as surely."""
    found: dict[tuple[int, int, float, bool], list[Found]] = defaultdict(list)
    for each in named:
        found[_sign(each)].append(each)
    return found


def _sign(found: Found) -> tuple[int, int, float, bool]:
    return found.start, found.end, found.score, found.is_value


SHORTEST_MEANT = 3  # letters of a word that is taken for what it means
SAID = (AVERAGE, COUNT, DIFFERENCE, DIFFERENT, GROUP, MEDIAN, SHARE, SUM)
PASSED_OVER = IDLE | OPERATORS | MONTHS.keys() | UNITS.keys()


def _by_meaning(question: Question) -> None:
    """Words that name nothing of the table, but mean what something of it does; that is said."""
    named = [*question.columns, *question.values]
    taken = {at for each in named for at in range(each.start, each.end)}
    for at, word in enumerate(question.words):
        is_known = at in taken or word in PASSED_OVER or question.names_rows(word)
        is_known = is_known or any(pattern.fullmatch(word) for pattern in SAID)
        if is_known or not word.isalpha() or len(word) < SHORTEST_MEANT:
            continue
        found = question.index.by_meaning(at, word)
        if found is not None:
            name = found.values[0] if found.is_value else found.column
            question.doubt(f"took “{word}” for {name}")
            (question.values if found.is_value else question.columns).append(found)
    question.columns.sort(key=lambda found: found.start)
    question.values.sort(key=lambda found: found.start)


def _is_one_of_figures(found: Found, same: Sequence[Found], question: Question) -> bool:
    """ "Income" of "Income Q1" and "Income Q2": which of these figures is meant nobody knows."""
    columns = {each.column for each in same}
    is_shared = not found.is_value and len(columns) > 1
    return is_shared and all(question.column(each).type in FIGURES for each in columns)


def _prices(question: Question) -> None:
    """ "The price of a bottle" where "Bottle" is in euros; "the cost" where one column is."""
    money = [each.name for each in question.index.table.columns if is_of_money(each)]
    named = [each for each in question.columns if each.column in money]
    known = {at for e in (*question.columns, *question.values) for at in range(e.start, e.end)}
    for at, word in enumerate(question.words):
        if at in known or not PRICES & set(stems(word)):
            continue
        if named:
            question.use(at, at + 1)
        elif len(money) == 1:
            question.columns.append(Found(at, at + 1, money[0], 1.0))
            question.columns.sort(key=lambda found: found.start)


PRICES = {form for word in ("price", "cost", "preis", "kostet", "kosten") for form in stems(word)}


def _as_written(found: Found, written: str) -> Found:
    """Of values that differ by signs alone, "One" and "One+", those that stand in the question."""
    if not found.is_whole:
        return found
    kept = tuple(each for each in found.values if _stands(unaccented(each), written))
    return replace(found, values=kept, is_written=True) if kept else found


def _stands(value: str, written: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(value)}(?=[\s.,;:?!)'\"’”]|$)", written) is not None


def _is_operator(found: Found, words: Sequence[str]) -> bool:
    """A word of asking that is part of a name, or opens: "number", "total", "What is …"."""
    is_idle = all(word in OPERATORS | IDLE for word in words[found.start : found.end])
    return is_idle and (found.score < 1 or (found.start == 0 and words[0] in IDLE))


def _is_of_rows(found: Found, question: Question) -> bool:
    """ "Boys" of a table that is called so is no part of "The Boys"."""
    said = question.words[found.start : found.end]
    return not found.is_whole and all(map(question.names_rows, said))


def _says_nothing(found: Found, words: Sequence[str], idle: Container[str]) -> bool:
    gram = words[found.start : found.end]
    return all(word in IDLE or word in OPERATORS or word in idle for word in gram) or (
        found.length == 1 and number_in(gram[0]) is not None
    )

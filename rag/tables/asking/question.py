"""A question over one table, taken apart: what of it is known, and the words left over."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from rag.records import ColumnType, TableColumn
from rag.tables.asking.index import Found, TableIndex, stem
from rag.tables.asking.words import (
    IDLE,
    NUMBER_WORDS,
    OPERATORS,
)
from rag.tables.plan import Filter, Op, Part
from rag.tables.wordforms import normalised

THOUSANDS = re.compile(r"(?<=\d)[,'](?=\d{3}\b)")
GLUED = re.compile(r"(?<=\d)(?=[a-z]{1,3}\b)(?!(?:st|nd|rd|th)\b)")
ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)$")
FIGURES = frozenset({ColumnType.NUMBER, ColumnType.DURATION})


def words_of(question: str) -> list[str]:
    """The words of a question as values are compared, figures without their commas."""
    text = THOUSANDS.sub("", question.casefold())
    return normalised(GLUED.sub(" ", text).replace("#", " # ")).split()


@dataclass
class Question:
    """A question over one table, taken apart."""

    words: list[str]
    index: TableIndex
    columns: list[Found] = field(default_factory=list)
    values: list[Found] = field(default_factory=list)
    conditions: list[tuple[int, int, Filter]] = field(default_factory=list)
    used: set[int] = field(default_factory=set)
    doubts: list[str] = field(default_factory=list)
    negated: set[int] = field(default_factory=set)  # words behind "without" and its like
    top: tuple[int, int] = (0, 0)  # where "top 10" stands

    @property
    def masked(self) -> str:
        """The words, those of values and conditions out of sight."""
        hidden = {at for each in self.values for at in range(each.start, each.end)}
        hidden |= {at for start, end, _ in self.conditions for at in range(start, end)}
        return " ".join("¤" if at in hidden else word for at, word in enumerate(self.words))

    def says(self, pattern: re.Pattern[str]) -> bool:
        """Whether words say this that do not name a column."""
        named = {at for each in self.columns for at in range(each.start, each.end)}
        return any(self.at(found.start()) not in named for found in pattern.finditer(self.masked))

    def at(self, offset: int) -> int:
        """Which word of `masked` stands at a character."""
        return self.masked.count(" ", 0, offset)

    def column(self, name: str) -> TableColumn:
        return next(column for column in self.index.table.columns if column.name == name)

    def use(self, start: int, end: int) -> None:
        self.used.update(range(start, end))

    def unused(self) -> tuple[str, ...]:
        """Words that neither the plan nor its table's name accounts for."""
        table = self.index.table
        known = set(map(stem, normalised(f"{table.name} {table.document_title}").split()))
        return tuple(
            word
            for at, word in enumerate(self.words)
            if at not in self.used
            and word not in IDLE
            and (word not in OPERATORS or (word in NUMBER_WORDS and word != "one"))
            and stem(word) not in known
        )


def number_in(word: str) -> float | int | None:
    """A figure in digits or in words."""
    ordinal = ORDINAL.match(word)
    if ordinal:
        return int(ordinal[1])
    if word in NUMBER_WORDS:
        return NUMBER_WORDS[word]
    if re.fullmatch(r"\d{1,15}(?:\.\d+)?", word):
        return float(word) if "." in word else int(word)
    return None


# ── Conditions together ──────────────────────────────────────────────────────────────────────


def filters_of(question: Question, without: Iterable[Found] = ()) -> tuple[Filter, ...]:
    """All conditions; several values of one column are alternatives."""
    left_out = set(map(id, without))
    named = [
        (each.start, Filter(each.column, each.op or Op.IS, each.values))
        for each in question.values
        if id(each) not in left_out
    ]
    merged: dict[tuple[str, Op, Part], Filter] = {}
    others: list[Filter] = []
    for start, each in (*named, *((at, found) for at, _end, found in question.conditions)):
        is_yes = each.values in ((True,), (False,))
        if start in question.negated and each.op is Op.IS and not is_yes:
            each = replace(each, op=Op.NOT)
        if each.op not in (Op.IS, Op.NOT):
            others.append(each)
            continue
        key = (each.column, each.op, each.part)
        known = merged[key].values if key in merged else ()
        merged[key] = replace(each, values=tuple(dict.fromkeys((*known, *each.values))))
    return (*merged.values(), *others)

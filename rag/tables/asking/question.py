"""A question over one table, taken apart: what of it is known, and the words left over."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

from rag.records import ColumnType, TableColumn
from rag.tables.asking.index import Found, TableIndex, stems
from rag.tables.asking.words import IDLE, NUMBER_WORDS, SCALES, UNITS
from rag.tables.plan import Filter, Op, Part
from rag.tables.reading.types import read_date
from rag.tables.wordforms import normalised
from rag.text.words import language_of

THOUSANDS = re.compile(r"(?<=\d)[,'](?=\d{3}\b)")
GERMAN = re.compile(r"\b\d{1,3}(?:\.\d{3})+(?:,\d+)\b|\b\d{1,3}(?:\.\d{3}){2,}\b|\b\d+,\d{1,2}\b")
GERMAN_THOUSANDS = re.compile(r"\b\d{1,3}\.\d{3}\b(?!\.)")
DAYS = re.compile(r"\b(?:\d{4}-\d\d?-\d\d?|\d\d?\.\d\d?\.\d{4}|\d\d?/\d\d?/\d{4})\b")
DAY_OF = re.compile(r"\b(\d\d?)\. (?=[^\W\d])")
GLUED = re.compile(r"\b(\d+(?:\.\d+)?)([a-z€$£%²]{1,4}\d?)\b")
IS = re.compile(r"\b(what|who|where|when|how|which|that|there|it)['’]s\b")
ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)$")
COMPOUND = re.compile(r"^(durchschnitts?|gesamt|hochst|mindest)(?!lich)(?=\w{4})")
FIGURES = frozenset({ColumnType.NUMBER, ColumnType.DURATION})


def words_of(question: str) -> list[str]:
    """The words of a question as values are compared; figures and days in one way of writing."""
    text = IS.sub(r"\1 is", question.casefold())
    text = DAYS.sub(lambda found: _day(found[0]), text)
    text = GERMAN.sub(lambda found: found[0].replace(".", "").replace(",", "."), text)
    if language_of(question).code == "de":
        text = GERMAN_THOUSANDS.sub(lambda found: found[0].replace(".", ""), text)
    text = THOUSANDS.sub("", DAY_OF.sub(r"\1 ", text))
    text = GLUED.sub(lambda found: _apart(found[0], found[1], found[2]), text)
    return normalised(text.replace("#", " # ").replace("%", " percent ")).split()


def _day(text: str) -> str:
    found = read_date(text)
    return found.strftime("%Y.%m.%d") if found else text


def _apart(whole: str, figure: str, unit: str) -> str:
    """ "32GB" is two words, a code such as "24X" is one."""
    return f"{figure} {unit}" if normalised(unit) in UNITS.keys() | SCALES.keys() else whole


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
        """Whether words say this that do not name a column; they are used then."""
        named = {at for each in self.columns for at in range(each.start, each.end)}
        said = [e for e in pattern.finditer(self.masked) if self.at(e.start()) not in named]
        for found in said:
            self.takes(found)
        return bool(said)

    def takes(self, found: re.Match[str] | None) -> bool:
        """The words that a pattern found in `masked` are used."""
        if found is not None:
            self.use(self.at(found.start()), self.at(found.end() - 1) + 1)
        return found is not None

    def at(self, offset: int) -> int:
        """Which word of `masked` stands at a character."""
        return self.masked.count(" ", 0, offset)

    def column(self, name: str) -> TableColumn:
        return next(column for column in self.index.table.columns if column.name == name)

    def use(self, start: int, end: int) -> None:
        self.used.update(range(start, end))

    def doubt(self, text: str) -> None:
        """Something that had to be assumed, once."""
        if text not in self.doubts:
            self.doubts.append(text)

    def names_rows(self, word: str) -> bool:
        """Whether it is what the table, its folder or its dictionary call the rows."""
        folder = self.index.table.document_name.rpartition("/")[0]
        return self.calls_rows(word) or bool(_forms(folder) & set(stems(word)))

    def calls_rows(self, word: str) -> bool:
        """The same without its folder, whose name may be of anything that is in it."""
        if self._row_words & set(stems(word)):
            return True
        return self.index.told.tells_rows(word) and not self.index.knows(word)

    @cached_property
    def _row_words(self) -> set[str]:
        return _forms(f"{self.index.table.name} {self.index.table.document_title}")

    def unused(self) -> tuple[str, ...]:
        """Words that neither the plan nor what the rows are called accounts for."""
        return tuple(
            word
            for at, word in enumerate(self.words)
            if at not in self.used and not is_idle(word) and not self.names_rows(word)
        )


def _forms(text: str) -> set[str]:
    return {form for word in normalised(text).split() for form in stems(word)}


def is_idle(word: str) -> bool:
    """Whether it says nothing, in any of its forms."""
    return word in IDLE or word.removesuffix("s") in IDLE


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

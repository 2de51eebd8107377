"""A question over one table: what each of its words may be taken for, nearest first."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise, product

from rag.records import ColumnType, TableColumn
from rag.tables.asking.index import TableIndex, Use
from rag.tables.asking.times import time_at
from rag.tables.asking.words import (
    ADJECTIVES,
    COMPARED,
    CUES,
    CURRENCIES,
    FIGURES,
    JUDGING,
    MONTHS,
    PEOPLE,
    SCALES,
    THAN,
    UNITS,
    has_unit,
    is_idle,
    name_words,
    number_in,
    parted,
    said_at,
    words_of,
)
from rag.tables.plan import Filter
from rag.tables.wordforms import unaccented

MOST_READINGS = 6
NAMED = 1  # of the weight of a column whose whole name is said
OF_AN_END = 0.25  # more weight where an end or a measure is said: "the cheapest car"
OF_SUBJECT = 0.15  # more weight of a value that names what a row is about
UNWRITTEN = 0.15  # less weight of a value that does not stand in the question sign by sign
DIGITS = re.compile(r"\d")
OWNER = re.compile(r"(\w+)['’]s\b")
SHORTEST_MEANT = 3  # letters of a word that is taken for what it means


@dataclass
class Matched:
    """One way to take the words of a question, and which of them a plan has used."""

    words: Sequence[str]
    uses: Sequence[Use]  # in order, none over another
    index: TableIndex
    used: list[Use] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    filters: list[tuple[int, Filter]] = field(default_factory=list)
    way: int = 0  # which of several columns that fit alike is taken
    ways: int = 1

    def use(self, *uses: Use | None) -> None:
        """They say something of the plan."""
        for each in uses:
            if each is not None and each not in self.used:
                self.used.append(each)
                self.doubts += [each.doubt] if each.doubt else []

    def leave(self, name: str) -> None:
        """A column of whose name only a part is said may be another thing."""
        said = [each for each in self.used if each.kind == "column" and each.name == name]
        if all(each.weight < NAMED for each in said):
            self.used = [each for each in self.used if each not in said]

    def of(self, *kinds: str) -> list[Use]:
        return [each for each in self.uses if each.kind in kinds]

    def takes(self, *kinds: str) -> bool:
        """Whether something of these kinds is said; it is used then."""
        found = self.of(*kinds)
        self.use(*found)
        return bool(found)

    def column(self, use: Use) -> TableColumn:
        return self.index.column(use.name)

    def free(self, *, figures: bool | None = None) -> list[Use]:
        """Columns that are named and not yet used; those that can be measured, or the others."""
        named = [each for each in self.of("column") if each not in self.used]
        if figures is None:
            return named
        return [e for e in named if (self.column(e).type in FIGURES) is figures]

    def after(self, at: int) -> Use | None:
        """What comes next, idle words apart."""
        found = next((each for each in self.uses if each.start >= at), None)
        return found if found is not None and self._joins(at, found.start) else None

    def before(self, at: int) -> Use | None:
        """What came last, idle words apart."""
        found = next((each for each in reversed(self.uses) if each.end <= at), None)
        return found if found is not None and self._joins(found.end, at) else None

    def _joins(self, start: int, end: int) -> bool:
        return all(is_idle(word) or word in THAN for word in self.words[start:end])

    def choose(self, columns: Sequence[TableColumn]) -> TableColumn | None:
        """One of those that fit alike: another one in each way to take the question."""
        self.ways = max(self.ways, len(columns))
        return columns[self.way % len(columns)] if columns else None

    def unused(self) -> tuple[str, ...]:
        """Words that the plan does not account for."""
        sure = [e for e in self.used if e.kind != "adjective" or e.name not in JUDGING]
        taken = {at for each in sure for at in range(each.start, each.end)}
        if any(each.kind in ("compared", "adjective", "after") for each in self.used):
            taken |= {at for at, word in enumerate(self.words) if word in THAN}
        left = (at for at in range(len(self.words)) if at not in taken)
        return tuple(self.words[at] for at in left if not is_idle(self.words[at]))

    def score(self) -> float:
        """How much of the question the table knows: to choose among tables."""
        said = ("column", "value", "rows", "time", "number")
        weight = sum(min(each.weight, 2.5) for each in self.used if each.kind in said)
        weight += OF_AN_END * any(each.kind == "adjective" for each in self.used)
        own = (e for e in self.used if e.kind == "value" and e.name == self.index.subject)
        weight += OF_SUBJECT * len(list(own))
        return weight - 0.5 * len(self.unused())


def readings(text: str, index: TableIndex, *, by_meaning: bool = True) -> list[Matched]:
    """The ways to take a question, the likeliest first."""
    words = _words(text, index)
    written = unaccented(text)
    found = (_as_written(use, written) for use in _candidates(words, index, name_words(text)))
    chosen = _cover(list(found))
    if by_meaning:
        taken = {at for ways in chosen for at in range(ways[0].start, ways[0].end)}
        chosen += [[use] for use in _meant(words, taken, index)]
    chosen.sort(key=lambda ways: ways[0].start)
    covers = islice(product(*chosen), MOST_READINGS)
    return [Matched(words, _joined(cover, index), index) for cover in covers]


def _words(text: str, index: TableIndex) -> list[str]:
    """ "Unpaid" is not paid, where a column says who paid; "Apple's" is of Apple."""
    found: list[str] = []
    owners = {f"{each.casefold()}s" for each in OWNER.findall(text)}
    for word in words_of(text):
        if index.knows(word):
            found.append(word)
        elif word.startswith("un") and index.is_yes_or_no(word[2:]):
            found += ["not", word[2:]]
        elif word in owners and index.knows(word[:-1]):
            found.append(word[:-1])
        else:
            found += parted(word)
    return found


def _candidates(words: Sequence[str], index: TableIndex, names: set[str]) -> list[Use]:
    values = [use for use in index.values_named(words) if not _says_nothing(use, words)]
    values = [
        use
        for use in values
        if use.is_whole or not all(map(index.is_called, words[use.start : use.end]))
    ]
    said = [use for use in _said(words) if not names & set(words[use.start : use.end])]
    return [
        *index.columns_named(words),
        *_units(words, index),
        *values,
        *said,
        *_figures(words),
        *_of_rows(words, index),
    ]


def _as_written(use: Use, written: str) -> Use:
    """Of values that differ by signs alone, "One" and "One+", those that stand in the question."""
    kept = tuple(each for each in use.values if _stands(each, written))
    if not use.values or not use.is_whole:
        return use
    return replace(use, values=kept) if kept else replace(use, weight=use.weight - UNWRITTEN)


def _stands(value: str, written: str) -> bool:
    said = rf"(?<!\w){re.escape(unaccented(value))}(?=[\s.,;:?!)'\"’”]|$)"
    return re.search(said, written) is not None


def _says_nothing(use: Use, words: Sequence[str]) -> bool:
    """A value that is a word of asking as well, or a bare figure."""
    said = words[use.start : use.end]
    if all(map(is_idle, said)):
        return True
    if use.length == 1 and number_in(said[0]) is not None:
        return True
    if said[0] in ADJECTIVES and ADJECTIVES[said[0]].degree == "plain":
        return not use.is_whole
    return all(w in ADJECTIVES or w in MONTHS or is_idle(w) or (w,) in CUES or (w,) in COMPARED
        for w in said)  # fmt: skip


def _said(words: Sequence[str]) -> Iterator[Use]:
    """Words of asking, comparing and ends."""
    for at, word in enumerate(words):
        for said, weight in ((CUES, 0.9), (COMPARED, 0.92)):
            length, name = said_at(words, at, said)
            is_time = at + length < len(words) and (
                time_at(words, at + length)
                or DIGITS.search("".join(words[at + length : at + length + 3]))
            )
            if length and (said is CUES or (word,) not in CUES or is_time):
                kind, called = (name, word) if said is CUES else ("compared", name)
                yield Use(at, at + length, kind, called, weight + 0.2 * (length - 1))
        if word in ADJECTIVES:
            yield Use(at, at + 1, "adjective", word, 0.95, told=ADJECTIVES[word])


def _units(words: Sequence[str], index: TableIndex) -> Iterator[Use]:
    """ "In yen": the columns of that unit."""
    for at, word in enumerate(words):
        if word in CURRENCIES:
            for column in index.table.columns:
                if has_unit(column, UNITS[word]):
                    yield Use(at, at + 1, "column", column.name, 0.9)


def _figures(words: Sequence[str]) -> Iterator[Use]:
    for at, word in enumerate(words):
        time = time_at(words, at)
        if time is not None:
            is_year = time.end == at + 1 and not (time.quarter or time.month)
            yield Use(at, time.end, "time", "", 0.85 if is_year else 1.3, told=time)
        number = number_in(word)
        if number is None:
            continue
        end = at + 1
        if words[end : end + 1] and words[end] in SCALES:
            number, end = number * SCALES[words[end]], end + 1
        unit = UNITS.get(words[end], "") if end < len(words) else ""
        if unit:
            yield Use(at, end + 1, "number", "", 1.0, told=(number, unit))
        yield Use(at, end, "number", "", 0.8 + 0.1 * (end - at - 1), told=(number, ""))


def _of_rows(words: Sequence[str], index: TableIndex) -> Iterator[Use]:
    for at, (word, follows) in enumerate(pairwise(words)):  # "on the price list"
        is_cue = (word,) in CUES or word in ADJECTIVES  # "average ticket price"
        if index.is_named(word) and index.is_named(follows) and not is_cue:
            yield Use(at, at + 2, "rows", "", 0.9)
    for at, word in enumerate(words):
        weight = index.names_rows(word) or 0.3 * (word in PEOPLE)
        if weight and not is_idle(word):
            is_named = weight > 0.3
            yield Use(at, at + 1, "rows" if is_named else "people", "", weight)


def _cover(candidates: Sequence[Use]) -> list[list[Use]]:
    """Of what overlaps, the surest and longest; beside each, what the same words mean as well."""
    ranked = sorted(candidates, key=lambda use: (-use.weight, -use.length, use.start))
    taken: set[int] = set()
    chosen: list[list[Use]] = []
    for use in ranked:
        span = set(range(use.start, use.end))
        if span & taken:
            continue
        taken |= span
        alike = [each for each in ranked if _is_alike(each, use)]
        chosen.append([use, *alike])
    return chosen


def _is_alike(other: Use, use: Use) -> bool:
    is_value = use.kind == other.kind == "value" and use.is_whole and other.is_whole
    return (
        (other.start, other.end) == (use.start, use.end)
        and {use.kind, other.kind} <= {"column", "value"}
        and (other.kind, other.name) != (use.kind, use.name)
        and (is_value or use.weight == other.weight)
    )


def _meant(words: Sequence[str], taken: set[int], index: TableIndex) -> Iterator[Use]:
    """Words that name nothing of the table, but mean what something of it does; that is said."""
    for at, word in enumerate(words):
        is_free = at not in taken and not is_idle(word) and word.isalpha() and word not in UNITS
        if is_free and len(word) >= SHORTEST_MEANT:
            found = index.by_meaning(at, word)
            if found is not None:
                yield found


def _joined(cover: Sequence[Use], index: TableIndex) -> list[Use]:
    """ "Band *members*": the column's name is the beginning of what the rows are called."""
    found = list(cover)
    for at, (use, follows) in enumerate(pairwise(list(found))):
        is_text = use.kind == "column" and index.column(use.name).type is ColumnType.TEXT
        if is_text and follows.kind == "rows" and follows.start == use.end:
            found[at] = replace(use, kind="rows", weight=0.4)
    return found

"""The names and values of one table, looked up by the words of a question."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from rapidfuzz import fuzz, process

from rag.records import ColumnType, Table, TableColumn
from rag.runtime.budget import paced
from rag.tables.asking.meaning import Told
from rag.tables.asking.words import (
    BRACKETS,
    FIGURES,
    IDLE,
    PERSONAL,
    SYNONYMS,
    is_idle,
    is_of_money,
    is_unit,
    parts_of,
    stems,
)
from rag.tables.reading.types import read_number
from rag.tables.wordforms import is_identifier, normalised, spoken

LONGEST = 9  # words of a value that a question may quote
MOST_VALUES = 5_000  # of one column held in memory
NEAR = 92  # of 100: a word with a slip
SHORTEST_NEAR = 5
LONGEST_STEMMED = 3  # words of a value that is found in another form: "refunds", "suites"
LONGEST_NAME = 6  # words of a column's name
MOST_MEANT = 30  # values of a column that are found by what they mean
SHORTEST_BEGUN = 5  # letters of a word that stands for a longer one of the table's name
MOST_ALIKE = 3  # values that a word of them may stand for together


@dataclass(frozen=True, slots=True)
class Use:
    """What words `[start, end)` of a question are taken for."""

    start: int
    end: int
    kind: str  # column, value, rows, time, number, adjective, one of the cues, idle
    name: str = ""  # of a column, of what is compared
    weight: float = 0.0
    values: tuple[str, ...] = ()
    is_whole: bool = True  # not a part of a longer value, nor with a slip
    doubt: str = ""  # what had to be assumed
    told: object = None  # a time, an adjective, a figure

    @property
    def length(self) -> int:
        return self.end - self.start


Probe = Callable[[Sequence[str]], list[tuple[str, str]]]


def _ways(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Words without their endings: all as English, all as German."""
    both = ((each[0], each[-1]) for each in map(stems, words))
    return list(dict.fromkeys(zip(*both, strict=True)))


@dataclass
class TableIndex:
    """Built from a table and the distinct values of its columns, by name."""

    table: Table
    values: dict[str, Sequence[str]]  # distinct texts of a column; those with few enough
    probe: Probe | None = None  # finds values of the other columns
    told: Told = field(default_factory=Told)
    _exact: dict[str, dict[str, list[str]]] = field(default_factory=dict)  # by form, by column
    _by_word: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        times = (ColumnType.QUARTER, ColumnType.DATE, ColumnType.BOOLEAN)  # read as what they are
        read = {column.name for column in self.table.columns if column.type not in times}
        for column in (each for each in self.values if each in read):
            is_figure = self.column(column).type in FIGURES
            for value in self.values[column]:
                if is_figure and read_number(value) is not None:
                    continue  # compared as a figure
                plain = normalised(value).split()
                forms = {" ".join(plain), normalised(BRACKETS.sub("", value))}
                forms.add(normalised(value.partition(", ")[0]))  # "Houston, Texas"
                if 0 < len(plain) <= LONGEST_STEMMED:
                    forms |= {" ".join(way) for way in _ways(plain)}
                for form in forms - {""}:
                    self._exact.setdefault(form, defaultdict(list))[column].append(value)
                is_spoken = len(plain) <= LONGEST and "://" not in value
                for word in set(plain) if is_spoken else ():
                    self._by_word.setdefault(word, defaultdict(list))[column].append(value)

    # ── Columns ──────────────────────────────────────────────────────────────────────────────

    @cached_property
    def by_name(self) -> dict[str, TableColumn]:
        return {column.name: column for column in self.table.columns}

    def column(self, name: str) -> TableColumn:
        return self.by_name[name]

    @cached_property
    def names(self) -> dict[tuple[str, ...], list[str]]:
        """Columns by their own names as people say them, as stems."""
        found: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for column in self.table.columns:
            halves = (column.name, BRACKETS.sub("", column.name))
            for form in {form for half in halves for form in (spoken(half), normalised(half))}:
                for way in _ways(form.split()) if form else ():
                    found[way].append(column.name) if column.name not in found[way] else None
        return found

    @cached_property
    def others(self) -> dict[str, list[str]]:
        """Columns by a word of their name, as a stem; by other words for it."""
        found: dict[str, list[str]] = defaultdict(list)
        for column in self.table.columns:
            words = [word for word in parts_of(column.name) if len(word) > 1 and word not in IDLE]
            words += ["price"] if is_of_money(column) else []
            said = [each for word in words for each in (word, *_also(word))]
            for form in dict.fromkeys(form for word in said for form in stems(word)):
                found[form].append(column.name)
        return found

    def knows(self, word: str) -> bool:
        """Whether a column or a value has this word."""
        return word in self._by_word or any(form in self.others for form in stems(word))

    def is_yes_or_no(self, word: str) -> bool:
        """Whether a column of yes and no is called so."""
        named = (name for form in stems(word) for name in self.names.get((form,), ()))
        return any(self.column(name).type is ColumnType.BOOLEAN for name in named)

    def columns_named(self, words: Sequence[str]) -> Iterator[Use]:
        """Columns whose name, or a word of it, stands in the question."""
        for start in paced(range(len(words)), weight=8):
            for end in range(start + 1, min(start + LONGEST_NAME, len(words)) + 1):
                found = (n for way in _ways(words[start:end]) for n in self.names.get(way, ()))
                called = dict.fromkeys(found)
                for name in called:
                    is_own = normalised(name) == " ".join(words[start:end]).removesuffix("s")
                    weight = 1.1 + 0.1 * (end - start) + 0.05 * is_own
                    yield Use(start, end, "column", name, weight)
            if is_idle(words[start]):
                continue
            held = (n for form in stems(words[start]) for n in self.others.get(form, ()))
            for name in dict.fromkeys(held):
                yield Use(start, start + 1, "column", name, self._part_of(name, start, words))
            for name in self.told.columns(words[start]):
                doubt = f"took “{words[start]}” for {name}, by its description"
                yield Use(start, start + 1, "column", name, 0.4, doubt=doubt)

    def _part_of(self, name: str, at: int, words: Sequence[str]) -> float:
        """More, the more of its name stands there: "q3 income" of "Income Q3", "Income Q4"."""
        said = [{*stems(word), *SYNONYMS.get(word, ())} for word in words]
        parts = [part for part in parts_of(name) if not is_unit(part) and part not in IDLE]
        own = {form for part in parts for form in stems(part)}
        held = min(sum(not own.isdisjoint(each) for each in said), len(parts))
        return 0.5 + 0.12 * min(held, 3) + 0.15 * held / max(1, len(parts))

    # ── Values ───────────────────────────────────────────────────────────────────────────────

    def values_named(self, words: Sequence[str]) -> Iterator[Use]:
        """Values that stand in the question whole, in part, or with a slip."""
        taken: set[int] = set()
        for use in [*self._probed(words), *self._whole(words)]:
            taken.update(range(use.start, use.end))
            yield use
        yield from self._parts(words, taken)
        yield from self._near(words, taken)

    def _probed(self, words: Sequence[str]) -> Iterator[Use]:
        """Values of columns with very many, such as order numbers, by their exact words."""
        if self.probe is None:
            return
        spans = {
            sign.join(words[start : start + length]): (start, start + length)
            for length in range(1, 7)
            for start in range(len(words) - length + 1)
            for sign in (" ", "-", "/", "_")
        }
        for column, value in self.probe(list(spans)):
            start, end = spans[value.lower()]
            yield Use(start, end, "value", column, _whole_weight(end - start), (value,))

    def _whole(self, words: Sequence[str]) -> Iterator[Use]:
        for length in range(min(LONGEST, len(words)), 0, -1):
            for start in paced(range(len(words) - length + 1)):
                gram = words[start : start + length]
                forms = [" ".join(gram)]
                if gram[0] not in IDLE and gram[-1] not in IDLE:
                    forms.append(" ".join(word for word in gram if word not in IDLE))
                if length <= LONGEST_STEMMED:
                    forms += [" ".join(way) for way in _ways(gram)]
                held: dict[str, list[str]] = {}
                for form in forms:
                    held = {**self._exact.get(form, {}), **held}
                for column, values in held.items():
                    named = tuple(dict.fromkeys(values))
                    yield Use(start, start + length, "value", column, _whole_weight(length), named)

    def _parts(self, words: Sequence[str], taken: set[int]) -> Iterator[Use]:
        """Values that hold these words one after the other: few of their column."""
        for length in range(min(LONGEST, len(words)), 0, -1):
            for start in paced(range(len(words) - length + 1)):
                gram = words[start : start + length]
                sets = [self._by_word.get(word, {}) for word in gram]
                if not all(sets) or (length == 1 and (len(gram[0]) < 3 or gram[0].isdigit())):
                    continue
                phrase = f" {' '.join(gram)} "
                for column, values in min(sets, key=len).items():
                    held = [v for v in dict.fromkeys(values) if phrase in f" {normalised(v)} "]
                    if (
                        not 0 < len(held) <= MOST_ALIKE
                        or set(range(start, start + length)) <= taken
                    ):
                        continue
                    weight = 0.45 + 0.25 * length + (0.1 if len(held) == 1 else 0)
                    yield Use(start, start + length, "value", column, weight, tuple(held), False,
                        f"took “{' '.join(gram)}” for {' or '.join(held)}")  # fmt: skip

    def _near(self, words: Sequence[str], taken: Iterable[int]) -> Iterator[Use]:
        known, held = list(self._by_word), set(taken)
        for at, word in paced(enumerate(words), weight=8):
            if at in held or len(word) < SHORTEST_NEAR or not word.isalpha() or self.knows(word):
                continue
            hit = process.extractOne(word, known, scorer=fuzz.ratio, score_cutoff=NEAR)
            if hit is None or abs(len(hit[0]) - len(word)) > 1 or hit[0][0] != word[0]:
                continue
            for column, values in self._by_word[hit[0]].items():
                doubt = f"read “{word}” as “{values[0]}”"
                yield Use(at, at + 1, "value", column, 0.5, tuple(values), False, doubt)

    def by_meaning(self, at: int, word: str) -> Use | None:
        """The column or value whose name means the same as a word that names none."""
        found = self.told.nearest(word, self._spoken)
        if found is None:
            return None
        column, value = found
        kind, doubt = ("value" if value else "column"), f"took “{word}” for {value or column}"
        return Use(at, at + 1, kind, column, 0.6, (value,) if value else (), not value, doubt)

    @cached_property
    def _spoken(self) -> dict[str, tuple[str, str]]:
        """Names and few values as people say them: the column, and the value or nothing."""
        found: dict[str, tuple[str, str]] = {}
        for column, values in self.values.items():
            if len(values) <= MOST_MEANT:
                found |= {normalised(value): (column, value) for value in values}
        found |= {spoken(column.name): (column.name, "") for column in self.table.columns}
        return {name: each for name, each in found.items() if name.replace(" ", "").isalpha()}

    # ── Rows ─────────────────────────────────────────────────────────────────────────────────

    def names_rows(self, word: str) -> float:
        """How surely the table, its folder or its dictionary call the rows so; 0: not."""
        own = set(stems(word))
        if self._row_words & own:
            return 0.35 if any(form in self.others for form in own) else 0.75
        if len(word) >= SHORTEST_BEGUN and any(each.startswith(word) for each in self._row_words):
            return 0.5
        if self.told.tells_rows(word) and not self.knows(word):
            return 0.5
        folder = self.table.document_name.rpartition("/")[0]
        return 0.4 if _forms(folder) & own else 0

    def is_called(self, word: str) -> bool:
        """Whether a word of a value means the rows or a column: the "sector" of "Multi-Sector"."""
        return bool(self.names_rows(word)) or any(form in self.others for form in stems(word))

    def is_named(self, word: str) -> bool:
        """Whether the table's own name has this word."""
        return bool(_forms(self.table.name) & set(stems(word)))

    @cached_property
    def _row_words(self) -> set[str]:
        own = _forms(f"{self.table.name} {self.table.document_title}")
        return own | {form for word in own for each in _also(word) for form in stems(each)}

    @cached_property
    def is_of_people(self) -> bool:
        """Whether each row is a person."""
        names = (column.name for column in self.table.columns)
        return any(word in PERSONAL for name in names for word in parts_of(name))

    @cached_property
    def subject(self) -> str:
        """The column that names what a row is about, or comes nearest to that."""
        named = next(filter(self._names_rows, self._texts), None)
        nearest = max(self._texts, key=lambda column: column.distinct, default=None)
        return (named or nearest or self.table.columns[0]).name

    @cached_property
    def _texts(self) -> list[TableColumn]:
        texts = [c for c in self.table.columns if c.type is ColumnType.TEXT]
        return [c for c in texts if not is_identifier(c)] or texts

    def _names_rows(self, column: TableColumn) -> bool:
        rows = max(1, self.table.row_count)
        return column.distinct >= 0.8 * (rows - column.blanks) and column.blanks < 0.3 * rows

    def repeats(self, name: str) -> bool:
        """Whether several rows share a value of this column."""
        column = self.column(name)
        return column.distinct < self.table.row_count - column.blanks


def _whole_weight(length: int) -> float:
    """More than any part of a value weighs, the more the longer it is."""
    return 1.2 + 0.2 * length


def _forms(text: str) -> set[str]:
    return {form for word in normalised(text).split() for form in stems(word)}


def _also(word: str) -> Iterator[str]:
    """Other words for a word of a column's name."""
    for form in {word, *stems(word)}:
        yield from SYNONYMS.get(form, ())

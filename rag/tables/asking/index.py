"""The names and values of one table, looked up by the words of a question."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from rapidfuzz import fuzz, process

from rag.limits.budget import paced
from rag.records import ColumnType, Table, TableColumn
from rag.tables.asking.meaning import Told
from rag.tables.asking.words import IDLE, SYNONYMS
from rag.tables.plan import Op, Part
from rag.tables.wordforms import normalised, spoken
from rag.text.words import stem as text_stem

LONGEST = 9  # words of a value that a question may quote
MOST_VALUES = 5_000  # of one column held in memory
NEAR = 92  # of 100: a word with a slip
SHORTEST_NEAR = 5
LONGEST_STEMMED = 3  # words of a value that is found in another form: "refunds", "suites"
MOST_MEANT = 30  # values of a column that are found by what they mean
COMMONEST = 0.6  # a word in more than this share of a column's values says nothing
BRACKETS = re.compile(r"\s*[\[(][^\])]*[\])]")


def stem(word: str) -> str:
    """A word without its English ending."""
    return text_stem(word) if word.isalpha() else word


def stems(word: str) -> tuple[str, ...]:
    """A word without its ending, as an English and as a German one."""
    if not word.isalpha():
        return (word,)
    return tuple(dict.fromkeys((text_stem(word), _german_stem(word))))


def _german_stem(word: str) -> str:
    """Of "Kurse" and "Kurs" alike, which takes two steps."""
    stemmed = text_stem(word, "de")
    return word if stemmed == word else _german_stem(stemmed)


def _ways(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Words without their endings: all as English, all as German."""
    return list(
        dict.fromkeys(zip(*((each[0], each[-1]) for each in map(stems, words)), strict=True))
    )


@dataclass(frozen=True, slots=True)
class Found:
    """Words `[start, end)` of a question and what of the table they name."""

    start: int
    end: int
    column: str
    score: float
    op: Op | None = None  # None: the column itself is named
    values: tuple[str, ...] = ()
    part: Part = Part.WHOLE
    is_near: bool = False  # found in spite of a slip of the pen
    is_written: bool = False  # a value that stands in the question sign by sign

    @property
    def is_whole(self) -> bool:
        """Whether the words are the whole value, not a part of a longer one."""
        return self.is_value and self.score >= _whole_score(self.length) - 0.01

    @property
    def is_value(self) -> bool:
        return self.op is not None

    @property
    def length(self) -> int:
        return self.end - self.start


def _whole_score(length: int) -> float:
    """More than any part of a value scores, the more the longer it is."""
    return 1.2 + 0.2 * length


Probe = Callable[[Sequence[str]], list[tuple[str, str]]]


@dataclass
class TableIndex:
    """Built from a table and the distinct values of its columns, by name."""

    table: Table
    values: dict[str, Sequence[str]]  # distinct texts of a column; those with few enough
    probe: Probe | None = None  # finds values of the other columns
    told: Told = field(default_factory=Told)
    _exact: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    _by_word: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    _by_stems: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        exact, by_word, by_stems = defaultdict(list), defaultdict(list), defaultdict(list)
        types = {column.name: column.type for column in self.table.columns}
        for column, values in self.values.items():
            if types[column] in (ColumnType.QUARTER, ColumnType.DATE):  # read as times
                continue
            for value in values:
                plain = normalised(value)
                bare = normalised(BRACKETS.sub("", value))
                for form in {plain, bare} - {""}:
                    exact[form].append((column, value))
                for word in set(plain.split()) if len(plain.split()) <= LONGEST else ():
                    by_word[word].append((column, value))
                if len(plain.split()) <= LONGEST_STEMMED and plain:
                    for way in _ways(plain.split()):
                        by_stems[" ".join(way)].append((column, value))
        self._exact, self._by_word = dict(exact), dict(by_word)
        self._by_stems = dict(by_stems)

    @cached_property
    def names(self) -> dict[str, list[tuple[str, ...]]]:
        """The columns' own names as people say them, as stems."""
        forms: dict[str, list[tuple[str, ...]]] = {}
        for column in self.table.columns:
            halves = (column.name, BRACKETS.sub("", column.name), *re.split(r"[/|]", column.name))
            said = [form for half in halves for form in (spoken(half), normalised(half))]  # "PoE"
            ways = (way for each in said for way in _ways(each.split()))
            forms[column.name] = list(dict.fromkeys(way for way in ways if way))
        return forms

    @cached_property
    def others(self) -> dict[str, list[tuple[str, ...]]]:
        """Other words for them, except where these name another column."""
        own = {form for forms in self.names.values() for form in forms}
        found: dict[str, list[tuple[str, ...]]] = {}
        for column in self.table.columns:
            said = (each for word in spoken(column.name).split() for each in _said(word))
            ways = {way for each in said for way in _ways(each.split())}
            found[column.name] = [way for way in ways if way not in own]
        return found

    def knows(self, word: str) -> bool:
        """Whether a column or a value has this word."""
        return word in self._by_word or not self._name_words.isdisjoint(stems(word))

    @cached_property
    def _name_words(self) -> set[str]:
        return {word for forms in self.names.values() for form in forms for word in form}

    def is_yes_or_no(self, word: str) -> bool:
        """Whether a column of yes and no is called so."""
        booleans = {c.name for c in self.table.columns if c.type is ColumnType.BOOLEAN}
        return any(way in self.names[name] for name in booleans for way in _ways([word]))

    def columns_named(self, words: Sequence[str]) -> Iterator[Found]:
        """Columns whose name, or a word of it that no other column has, stands in the question."""
        said = {form for each in words for form in stems(each)}
        for start in paced(range(len(words)), weight=8):
            for end in range(start + 1, min(start + 6, len(words)) + 1):
                grams, written = _ways(words[start:end]), " ".join(words[start:end])
                for column, is_name in self._called(grams):
                    if is_name:
                        is_own = normalised(column) == written
                        yield Found(start, end, column, 1.1 + 0.1 * (end - start) + 0.05 * is_own)
                    else:
                        yield Found(start, end, column, 1.0 + 0.1 * (end - start))
            yield from self._by_a_word(start, words, said)

    def _by_a_word(self, at: int, words: Sequence[str], said: set[str]) -> Iterator[Found]:
        """Columns that have this word in their name, or in what is told of them."""
        for word in stems(words[at]):
            meant = self._meant(word, said)
            for column in meant:
                yield Found(at, at + 1, column, 0.4 + 0.3 / len(meant))
        for column in self._described(words[at]):
            yield Found(at, at + 1, column, 0.4)

    def _called(self, grams: Sequence[tuple[str, ...]]) -> list[tuple[str, bool]]:
        """Columns that are called so, in the table's order; whether by their own name."""
        own = {column for gram in grams for column in self._by_name[0].get(gram, ())}
        said = {column for gram in grams for column in self._by_name[1].get(gram, ())}
        places = self._places
        return [(column, column in own) for column in sorted(own | said, key=places.__getitem__)]

    @cached_property
    def _by_name(self) -> tuple[dict[tuple[str, ...], list[str]], dict[tuple[str, ...], list[str]]]:
        """Columns by their own names, and by other words for them."""
        return _turned(self.names), _turned(self.others)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {column: at for at, column in enumerate(self.names)}

    def _meant(self, word: str, said: set[str]) -> list[str]:
        """The columns that have this word in their names, and most of the others."""
        held = {
            column: sum(column in self._partial.get(each, ()) for each in said)
            for column in self._partial.get(word, ())
        }
        return [column for column in held if held[column] == max(held.values())]

    @cached_property
    def _partial(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for column in self.names:
            forms = (*self.names[column], *self.others[column])
            for word in {word for form in forms for word in form if _tells(word)}:
                found[word].append(column)
        return dict(found)

    def _described(self, word: str) -> Sequence[str]:
        is_plain = word.isalpha() and len(word) > 2 and word not in IDLE
        return self.told.columns(word) if is_plain else ()

    @cached_property
    def _spoken(self) -> dict[str, tuple[str, str]]:
        """Names and few values as people say them: the column, and the value or nothing."""
        found: dict[str, tuple[str, str]] = {}
        for column, values in self.values.items():
            if len(values) <= MOST_MEANT:
                found |= {normalised(value): (column, value) for value in values}
        found |= {spoken(name): (name, "") for name in self.names}
        return {name: each for name, each in found.items() if name.replace(" ", "").isalpha()}

    def by_meaning(self, at: int, word: str) -> Found | None:
        """The column or value whose name means the same as a word that names none."""
        found = self.told.nearest(word, self._spoken)
        if found is None:
            return None
        column, value = found
        return Found(at, at + 1, column, 0.6, Op.IS if value else None, (value,) if value else ())

    def values_named(self, words: Sequence[str]) -> Iterator[Found]:
        """Values that stand in the question whole, in part, or with a slip."""
        taken: set[int] = set()
        yield from self._probed(words, taken)
        for length in range(min(LONGEST, len(words)), 0, -1):
            for start in paced(range(len(words) - length + 1)):
                gram = " ".join(words[start : start + length])
                whole = list(self._whole(start, start + length, gram))
                yield from whole
                if whole:
                    taken.update(range(start, start + length))
                yield from self._parts(start, start + length, words[start : start + length])
        yield from self._near(words, taken)

    def _probed(self, words: Sequence[str], taken: set[int]) -> Iterator[Found]:
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
            taken.update(range(start, end))
            yield Found(start, end, column, _whole_score(end - start), Op.IS, (value,))

    def _whole(self, start: int, end: int, gram: str) -> Iterator[Found]:
        by_column: dict[str, list[str]] = defaultdict(list)
        ways = _ways(gram.split()) if end - start <= LONGEST_STEMMED else []
        for column, value in self._exact_of(gram) or dict.fromkeys(
            each for way in ways for each in self._by_stems.get(" ".join(way), ())
        ):
            by_column[column].append(value)
        for column, values in by_column.items():
            yield Found(start, end, column, _whole_score(end - start), Op.IS, tuple(values))

    def _exact_of(self, gram: str) -> Sequence[tuple[str, str]]:
        """Values of these words; "from Vest to Orrey" is "Vest – Orrey"."""
        first, *inner, last = gram.split() if " " in gram else (gram, "")
        said = [first, *(word for word in inner if word not in IDLE), last]
        is_said_so = bool(inner) and first not in IDLE and last not in IDLE
        return self._exact.get(gram, ()) or (
            self._exact.get(" ".join(said), ()) if is_said_so else ()
        )

    def _parts(self, start: int, end: int, gram: Sequence[str]) -> Iterator[Found]:
        """Values that hold these words one after the other."""
        sets = [self._by_word.get(word, ()) for word in gram]
        if not all(sets) or (len(gram) == 1 and (len(gram[0]) < 3 and not gram[0].isdigit())):
            return
        smallest = min(sets, key=len)
        by_column: dict[str, list[str]] = defaultdict(list)
        phrase = f" {' '.join(gram)} "
        for column, value in smallest:
            if phrase in f" {normalised(value)} ":
                by_column[column].append(value)
        for column, values in by_column.items():
            count = len(self.values[column])
            if len(values) > max(3, COMMONEST * count) or len(values) > 200:
                continue
            score = 0.45 + 0.25 * (end - start) + (0.1 if len(values) == 1 else 0)
            yield Found(start, end, column, score, Op.IS, tuple(values))

    def _near(self, words: Sequence[str], taken: Iterable[int]) -> Iterator[Found]:
        known, held = list(self._by_word), set(taken)
        for at, word in paced(enumerate(words), weight=8):
            if at in held or len(word) < SHORTEST_NEAR or not word.isalpha():
                continue
            if word in self._by_word or any(each in self._partial for each in stems(word)):
                continue
            hit = process.extractOne(word, known, scorer=fuzz.ratio, score_cutoff=NEAR)
            if hit is None or abs(len(hit[0]) - len(word)) > 1 or hit[0][0] != word[0]:
                continue
            by_column: dict[str, list[str]] = defaultdict(list)
            for column, value in self._by_word[hit[0]]:
                by_column[column].append(value)
            for column, values in by_column.items():
                yield Found(at, at + 1, column, 0.5, Op.IS, tuple(values), is_near=True)

    @cached_property
    def subject(self) -> str:
        """The column that names what a row is about, or comes nearest to that."""
        named = next(filter(self._names_rows, self._texts), None)
        nearest = max(self._texts, key=lambda column: column.distinct, default=None)
        return (named or nearest or self.table.columns[0]).name

    @property
    def has_subject(self) -> bool:
        """Whether a column surely does."""
        return any(map(self._names_rows, self._texts))

    @cached_property
    def _texts(self) -> list[TableColumn]:
        texts = [c for c in self.table.columns if c.type is ColumnType.TEXT]
        return [c for c in texts if not c.is_identifier] or texts

    def _names_rows(self, column: TableColumn) -> bool:
        rows = max(1, self.table.row_count)
        return column.distinct >= 0.8 * (rows - column.blanks) and column.blanks < 0.3 * rows


def _turned(forms: dict[str, list[tuple[str, ...]]]) -> dict[tuple[str, ...], list[str]]:
    """Columns by form."""
    found: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for column, held in forms.items():
        for form in held:
            found[form].append(column)
    return dict(found)


def _tells(word: str) -> bool:
    """Whether a word of a column's name can stand for it: `q3`, but no `of` and no bare figure."""
    return len(word) > 2 or (not word.isalpha() and not word.isdigit())


def _said(word: str) -> Iterator[str]:
    """Other words for a word of a column's name."""
    for form in {word, *stems(word)}:
        yield from SYNONYMS.get(form, ())

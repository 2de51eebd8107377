"""Match the words of a question with one table: columns, values and operations.

A word matches only where it, or a form of it, is in the table. A reading that `is_sure` may be
answered without asking back: it has one of four shapes (a cell, a count, an extreme, a named sum or
average), its operation is named, and it uses every word that carries meaning.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice, product
from typing import Any

from rag.language.words import is_function_word
from rag.records import ColumnType, Table, TableColumn
from rag.runtime.budget import paced
from rag.tables.plan import (
    Choice,
    Filter,
    Key,
    Kind,
    Measure,
    Op,
    Order,
    Part,
    TablePlan,
    read_number,
)
from rag.tables.vocabulary import (
    ADJECTIVES,
    BRACKETS,
    COMPARED,
    CUES,
    FIGURES,
    PARTS,
    SCALES,
    THAN,
    UNITS,
    columns_of,
    conditions_of,
    drawing_in,
    expression_at,
    goes_down,
    has_unit,
    has_years,
    is_added,
    is_identifier,
    is_idle,
    is_mixed,
    is_of_money,
    is_priced,
    measured_by,
    name_words,
    normalised,
    number_in,
    numbers_rows,
    spelled_words,
    stems,
    time_at,
    words_of,
)

LONGEST = 8  # words in a value or a name
MOST_VALUES = 5_000  # values of one column held in memory
MOST_READINGS = 3
KINDS = {"sum": Kind.SUM, "average": Kind.AVERAGE, "median": Kind.MEDIAN}
FIRST = "measure 1"
Probe = Callable[[Sequence[str]], list[tuple[str, str]]]
_OPS = {
    "=": Op.IS, ">=": Op.AT_LEAST, "<=": Op.AT_MOST, ">": Op.MORE, "<": Op.LESS,
    "or >=": Op.AT_LEAST, "or <=": Op.AT_MOST,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Piece:
    """What the words `[start, end)` of a question stand for."""

    start: int
    end: int
    kind: str  # column, value, rows, time, number, adjective, compared, or a cue
    name: str = ""  # the column's name, or the comparison
    values: tuple[str, ...] = ()
    detail: Any = None  # the time, the adjective, or the figure with its unit
    is_part: bool = False  # only one word of the column's name matches


@dataclass
class TableWords:
    """The words of one table: its column names, and the values of its text columns."""

    table: Table
    values: Mapping[str, Sequence[str]] = field(default_factory=dict)  # by column
    probe: Probe | None = None  # finds values of columns with too many to hold

    @cached_property
    def by_name(self) -> dict[str, TableColumn]:
        return {column.name: column for column in self.table.columns}

    @cached_property
    def names(self) -> dict[tuple[str, ...], list[str]]:
        """The columns by the words of their whole names, as spoken, stemmed."""
        columns: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for column in self.table.columns:
            for half in (column.name, BRACKETS.sub("", column.name)):
                words = [word for word in spelled_words(half).split() if word not in UNITS]
                turned = words[::-1] if len(words) == 2 else words  # "dry torque": Torque, dry
                for form in (spelled_words(half).split(), words, turned):
                    for stemmed in _stemmed_forms(form):
                        if column.name not in columns[stemmed]:
                            columns[stemmed].append(column.name)
        return columns

    @cached_property
    def parts(self) -> dict[str, list[str]]:
        """The columns by each single word of their names, stemmed."""
        columns: dict[str, list[str]] = defaultdict(list)
        for column in self.table.columns:
            for word in spelled_words(column.name).split():
                if len(word) > 1 and not is_idle(word):
                    for form in stems(word):
                        columns[form].append(column.name)
        return columns

    def with_part(self, word: str) -> list[str]:
        """Return columns with the word in their names, or else a shortened form of it."""
        names = dict.fromkeys(name for form in stems(word) for name in self.parts.get(form, ()))
        is_other = (word,) in self.values_by_words or not self.rows.isdisjoint(stems(word))
        if not (names or is_idle(word) or is_other):
            short = (columns for part, columns in self.parts.items() if shortens(part, word))
            names = dict.fromkeys(chain.from_iterable(short))
        return list(names)

    @cached_property
    def values_by_words(self) -> dict[tuple[str, ...], dict[str, list[str]]]:
        """The values by their words, as they are and stemmed, with the columns that have them."""
        results: dict[tuple[str, ...], dict[str, list[str]]] = {}
        times = (ColumnType.QUARTER, ColumnType.DATE, ColumnType.BOOLEAN)
        for name, values in self.values.items():
            column = self.by_name[name]
            if column.type in times:
                continue
            for value in paced(values):
                if column.type in FIGURES and read_number(value) is not None:
                    continue
                for text in {value, BRACKETS.sub("", value)}:
                    plain = normalised(text).split()
                    for stemmed in _stemmed_forms(plain) if 0 < len(plain) <= LONGEST else ():
                        values_here = results.setdefault(stemmed, defaultdict(list))[name]
                        if value not in values_here:
                            values_here.append(value)
        return results

    @cached_property
    def rows(self) -> frozenset[str]:
        """The words for a row: those of the table's name and of the column that names the rows.

        `cars04` holds cars.
        """
        texts = (self.table.name, self.table.document_title, self.subject)
        words = (word for text in texts for word in spelled_words(text).split())
        forms = {f for w in words for f in (*stems(w), *stems(w.rstrip("0123456789")))}
        return frozenset(forms - {""})

    @cached_property
    def subject(self) -> str:
        """The column that names what a row is about; "" if there is none."""
        count = self.table.row_count
        for column in self.table.columns:
            is_text = column.type is ColumnType.TEXT and not is_identifier(column)
            if is_text and column.distinct >= 0.8 * (count - column.blanks) > 0.5 * count:
                return column.name
        return ""

    def repeats(self, name: str) -> bool:
        """Return whether a column has few distinct values, each in several rows."""
        column = self.by_name[name]
        return 2 * column.distinct <= self.table.row_count - column.blanks

    @property
    def keys(self) -> set[str]:
        """The columns with a different value in each row."""
        return {c.name for c in self.table.columns if c.distinct == self.table.row_count}

    def money(self) -> list[TableColumn]:
        """Return the columns that "cost" asks for: figures in a currency, or prices."""
        figures = [column for column in self.table.columns if column.type in FIGURES]
        return [
            c
            for c in figures
            if is_of_money(c) or any(map(is_priced, spelled_words(c.name).split()))
        ]


def readings(question: str, table: TableWords) -> list[Choice]:
    """Return at most three readings of a question, those that use most of its words first."""
    words = words_of(question)
    results: dict[str, Choice] = {}
    for pieces in islice(product(*cover(list(pieces_of(words, table, name_words(question))))), 6):
        for reading in Matched(words, sorted(pieces, key=lambda p: p.start), table).readings():
            results.setdefault(str(reading.plan), reading)
    ordered = sorted(results.values(), key=lambda r: (len(r.unused), -r.used, not r.is_sure))
    fewest = len(ordered[0].unused) if ordered else 0
    best = [candidate for candidate in ordered if len(candidate.unused) == fewest]
    is_one = sum(candidate.is_sure for candidate in best) == 1
    return [r if is_one else replace(r, is_sure=False) for r in best[:MOST_READINGS]]


# ── The pieces of a question ─────────────────────────────────────────────────────────────────


def _stemmed_forms(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the words as they are, stemmed as English, and stemmed as German."""
    both = ((forms[0], forms[-1]) for forms in map(stems, words))
    return list(dict.fromkeys([tuple(words), *zip(*both, strict=True)])) if words else []


def pieces_of(words: Sequence[str], table: TableWords, names: set[str]) -> Iterator[Piece]:
    """Yield all that the words may stand for; `names` are words that are part of names.

    A song may be called `Often`, but "most often" does not mean that row; a lamp may be `Off`, a
    value that repeats.
    """
    grammar = {word for word in words if word not in names and is_function_word(word)}
    of_tables = (_of_table(words, start, table) for start in paced(range(len(words)), weight=8))
    for piece in chain(_probed(words, table), chain.from_iterable(of_tables)):
        is_grammar = piece.kind == "value" and grammar.issuperset(words[piece.start : piece.end])
        if not is_grammar or table.repeats(piece.name):
            yield piece
    for start in range(len(words)):
        if words[start] not in names:
            yield from _of_asking(words, start)
        yield from _figures(words, start)


def _probed(words: Sequence[str], table: TableWords) -> Iterator[Piece]:
    """Yield values of columns with very many, such as order numbers, by their exact words."""
    if table.probe is None:
        return
    spans = {
        sign.join(words[start : start + length]): (start, start + length)
        for length in range(1, 7)
        for start in range(len(words) - length + 1)
        for sign in (" ", "-", "/", "_")
    }
    for column, value in table.probe(list(spans)):
        yield Piece(*spans[value.lower()], "value", column, (value,))


def _of_table(words: Sequence[str], start: int, table: TableWords) -> Iterator[Piece]:
    for end in range(min(len(words), start + LONGEST), start, -1):
        if not all(map(is_idle, words[start:end])):
            yield from _whole(start, words[start:end], table)
    if not is_idle(words[start]):
        yield from _single(start, words[start], table)
    for end in range(start + 2, min(len(words), start + LONGEST) + 1):
        names = set.intersection(*(set(table.with_part(word)) for word in words[start:end]))
        if not names:
            break
        for name in sorted(names, key=list(table.by_name).index):
            yield Piece(start, end, "column", name, is_part=True)
    pair = words[start : start + 2]
    if len(pair) == 2 and not table.rows.isdisjoint(stems("".join(pair))):
        yield Piece(start, start + 2, "rows")  # "star wars" of `starwars`


def _single(start: int, word: str, table: TableWords) -> Iterator[Piece]:
    """Yield columns that one word names or asks for, and words for the rows."""
    for name in table.with_part(word):
        yield Piece(start, start + 1, "column", name, is_part=True)
    for column in table.money() if word in UNITS else ():
        if has_unit(column, UNITS[word]):
            yield Piece(start, start + 1, "column", column.name)
    if is_priced(word) and len(table.money()) == 1:
        yield Piece(start, start + 1, "column", table.money()[0].name)
    if set(stems(word)) & table.rows:
        yield Piece(start, start + 1, "rows")


def _whole(start: int, gram: Sequence[str], table: TableWords) -> Iterator[Piece]:
    """Yield columns and values that consist of exactly these words."""
    end = start + len(gram)
    ways = _stemmed_forms(gram)
    for name in dict.fromkeys(n for stemmed in ways for n in table.names.get(stemmed, ())):
        yield Piece(start, end, "column", name)
    word = gram[0]
    says_nothing = number_in(word) is not None or word in ADJECTIVES or (word,) in CUES
    if len(gram) == 1 and says_nothing:
        return
    columns: dict[str, list[str]] = {}
    for stemmed in ways:
        columns = {**table.values_by_words.get(stemmed, {}), **columns}
    for name, values in columns.items():
        yield Piece(start, end, "value", name, tuple(values))


def shortens(part: str, word: str) -> bool:
    """Return whether a column's word abbreviates a long one: `temp`, or consonants as in `mfr`.

    An abbreviation by consonants has the word's first and last, and others in their order.
    """
    if len(part) < 2 or len(word) - len(part) < 2 or not part.isalpha():
        return False
    bare = word.rstrip("e")
    letters = iter(bare)
    is_contracted = bool(bare) and (part[0], part[-1]) == (word[0], bare[-1])
    return (len(part) > 2 and word.startswith(part)) or (
        is_contracted and all(letter in letters for letter in part)
    )


def _of_asking(words: Sequence[str], start: int) -> Iterator[Piece]:
    for expressions, kind in ((CUES, ""), (COMPARED, "compared")):
        length, name = expression_at(words, start, expressions)
        if length:
            yield Piece(start, start + length, kind or name, name)
    if words[start] in ADJECTIVES:
        yield Piece(start, start + 1, "adjective", words[start], detail=ADJECTIVES[words[start]])
    if words[start].removesuffix("s") in PARTS:
        yield Piece(start, start + 1, "part", words[start].removesuffix("s"))


def _figures(words: Sequence[str], start: int) -> Iterator[Piece]:
    time = time_at(words, start)
    if time is not None:
        yield Piece(start, time.end, "time", detail=time)
    number = number_in(words[start])
    if number is None:
        return
    end = start + 1
    if words[end : end + 1] and words[end] in SCALES:
        number, end = number * SCALES[words[end]], end + 1
    unit = UNITS.get(words[end], "") if end < len(words) else ""
    yield Piece(start, end + bool(unit), "number", detail=(number, unit))


_PLACES = ["value", "column", "rows", "time", "adjective", "part", "compared", "number"]


def may_be_added(column: TableColumn, kind: Kind, rows: int) -> bool:
    """Return whether an aggregate of a column has a meaning: not of years, row numbers, mixed
    units.
    """
    names = is_identifier(column) or has_years(column) or numbers_rows(column, rows)
    return not (names or is_mixed(column) or (kind is Kind.SUM and column.unit == "%"))


def names_others(text: str, question: str, table: TableWords, free: Collection[str]) -> bool:
    """Return whether a text names values or times of a table that the question does not.

    The `free` columns are those that are asked for.
    """
    words, in_question = words_of(text), set(words_of(question))
    pieces = (
        piece
        for start in range(len(words))
        for piece in (*_of_table(words, start, table), *_figures(words, start))
        if piece.kind == "time" or (piece.kind == "value" and piece.name not in free)
    )
    return any(not in_question.issuperset(words[piece.start : piece.end]) for piece in pieces)


def unmatched(question: str, table: TableWords) -> tuple[list[str], list[int]]:
    """Return the words of a question, and the positions of meaningful words without a match."""
    words = words_of(question)
    chosen = cover(list(pieces_of(words, table, name_words(question))))
    taken = {place for piece, *_ in chosen for place in range(piece.start, piece.end)}
    return words, [
        place for place, word in enumerate(words) if place not in taken and not is_idle(word)
    ]


def cover(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Choose the longest of overlapping pieces.

    Alternatives for the same words are kept together.
    """

    def rank(piece: Piece) -> tuple[int, bool, int, int]:
        place = _PLACES.index(piece.kind) if piece.kind in _PLACES else 4
        return (piece.start - piece.end, piece.is_part, place, piece.start)

    chosen: list[list[Piece]] = []
    taken: set[int] = set()
    ranked = sorted(pieces, key=rank)
    for piece in ranked:
        span = set(range(piece.start, piece.end))
        if span & taken:
            continue
        taken |= span
        alike = [
            other
            for other in ranked
            if (other.start, other.end, other.is_part) == (piece.start, piece.end, piece.is_part)
            and {other.kind, piece.kind} <= {"value", "column", "rows"}
            and other != piece
        ]
        chosen.append([piece, *alike])
    return chosen


# ── Plans ────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Matched:
    """The words of a question, each matched with one thing."""

    words: Sequence[str]
    pieces: Sequence[Piece]
    table: TableWords
    used: list[Piece] = field(default_factory=list)

    def of(self, *kinds: str) -> list[Piece]:
        return [piece for piece in self.pieces if piece.kind in kinds]

    def superlatives(self) -> list[Piece]:
        return [piece for piece in self.of("adjective") if piece.detail.degree == "most"]

    def use(self, *pieces: Piece) -> None:
        self.used += [piece for piece in pieces if piece not in self.used]

    def column(self, piece: Piece) -> TableColumn:
        return self.table.by_name[piece.name]

    def free(self, *, figures: bool | None = None) -> list[Piece]:
        """Return pieces of named columns that are not used yet."""
        return [
            piece
            for piece in self.of("column")
            if piece not in self.used
            and (figures is None or (self.column(piece).type in FIGURES) is figures)
        ]

    def readings(self) -> Iterator[Choice]:
        """Yield the plans that the pieces form, one for each column that fits equally well."""
        filters = self.filters()
        base = list(self.used)
        for make in (self._extremes, self._counts, self._figures_of, self._cells):
            self.used = list(base)
            results = [(plan, is_shape, list(self.used)) for plan, is_shape in make(filters)]
            if results:
                yield from (self._reading(*result) for result in results)
                return

    def _reading(self, plan: TablePlan, is_shape: bool, used: list[Piece]) -> Choice:
        taken = {
            index
            for piece in used
            for index in range(piece.start, piece.end)
            # A word that a column only may abbreviate can be another word: it stays unused.
            if not piece.is_part
            or any(form in self.table.parts for form in stems(self.words[index]))
        }
        drawn, drawing_places = drawing_in(self.words)
        if drawn and drawing_places.isdisjoint(taken):  # no column of this name
            taken |= drawing_places
            plan = replace(plan, chart=drawn)
            is_shape |= bool(plan.group) and bool(self.of("count", *KINDS))
        if any(piece.kind in ("compared", "adjective") for piece in used):
            taken |= {index for index, word in enumerate(self.words) if word in THAN}
        left = [w for index, w in enumerate(self.words) if index not in taken and not is_idle(w)]
        kinds = ("column", "value", "rows", "time", "number")
        word_count = sum(piece.end - piece.start for piece in used if piece.kind in kinds)
        may_be_values = any(  # the "us" of "from US"
            is_idle(word) and (word,) in self.table.values_by_words
            for index, word in enumerate(self.words)
            if index not in taken
        )
        compared = plan.compared
        is_missing = any(c.missing for c in self.table.table.columns if c.name in compared)
        is_part = any(piece.is_part for piece in used)
        is_sure = is_shape and not (left or is_part or may_be_values or is_missing)
        table = self.table.table
        return Choice(table, replace(plan, table=table.id), tuple(left), is_sure, word_count)

    # ── Conditions ───────────────────────────────────────────────────────────────────────────

    def filters(self) -> tuple[Filter, ...]:
        results = [*self._values(), *self._times(), *self._bounds(), *self._truths()]
        self.use(*self._rows())
        return tuple(dict.fromkeys(results))

    def _rows(self) -> list[Piece]:
        """Return the pieces for the rows: "the tickets"."""
        pieces = [p for p in self.of("column") if p.name == self.table.subject and not p.is_part]
        return [*self.of("rows"), *pieces]

    def _values(self) -> Iterator[Filter]:
        by_column: dict[tuple[str, Op], list[str]] = defaultdict(list)
        for piece in self.of("value"):
            denied = self._before(piece, "not")
            self.use(piece, *denied)
            by_column[piece.name, Op.NOT if denied else Op.IS] += piece.values
        for (name, op), values in by_column.items():
            yield Filter(name, op, tuple(dict.fromkeys(values)))
            beside = [p for p in self.of("column") if p.name == name]
            self.use(*(p for p in beside if not p.is_part or self._is_beside_value(p)))
            self.use(*self.of("or", "and") if len(values) > 1 else ())

    def _is_beside_value(self, piece: Piece) -> bool:
        """Return whether a column stands next to its value: "blue eyes" of a column `eye_color`."""
        return any(
            piece.name == value.name and piece.start - value.end in (0, value.start - piece.end)
            for value in self.of("value")
        )

    def _times(self) -> Iterator[Filter]:
        columns = self.table.table.columns
        for piece in self.of("time"):
            fitting = columns_of(columns, piece.detail)
            if len(fitting) != 1:
                continue
            compared = self._before(piece, "compared")
            op = _OPS[compared[0].name] if compared else Op.IS
            filters = conditions_of(fitting[0], piece.detail, op, columns)
            if filters:
                pieces = [p for p in self.of("column") if p.name == fitting[0].name]
                self.use(piece, *compared, *pieces)
                yield from filters

    def _bounds(self) -> Iterator[Filter]:
        """Yield bounds such as "more than 500", on the column named before or the one with the
        unit.
        """
        for piece in self.of("number"):
            if piece in self.used:
                continue
            number, unit = piece.detail
            around = self._before(piece, "compared") or [
                p for p in self._after(piece, "compared") if p.name.startswith("or ")
            ]
            if around:
                column, op = self._bounded(piece, unit), _OPS[around[0].name]
            else:  # "a warranty of 36 months"
                around, op = self._before(piece, "column"), Op.IS
                is_figure = bool(around) and self.column(around[0]).type in FIGURES
                column = self.column(around[0]) if is_figure else None
            if column is not None:
                self.use(piece, *around)
                yield Filter(column.name, op, (number,))

    def _bounded(self, piece: Piece, unit: str) -> TableColumn | None:
        pieces = [p for p in self.of("column") if self.column(p).type in FIGURES]
        before = [p for p in pieces if p.end <= piece.start] or pieces
        if before:
            self.use(before[-1])
            return self.column(before[-1])
        fitting = [c for c in self.table.table.columns if unit and has_unit(c, unit)]
        return fitting[0] if len(fitting) == 1 else None

    def _truths(self) -> Iterator[Filter]:
        """Yield conditions on a yes/no column: "how many are refundable"."""
        for piece in self.of("column"):
            if self.column(piece).type is ColumnType.BOOLEAN and piece not in self.used:
                denied = self._before(piece, "not")
                self.use(piece, *denied)
                yield Filter(piece.name, Op.IS, (not denied,))

    def _before(self, piece: Piece, kind: str) -> list[Piece]:
        results = [p for p in self.of(kind) if p.end <= piece.start]
        return results[-1:] if results and self._joins(results[-1].end, piece.start) else []

    def _after(self, piece: Piece, kind: str) -> list[Piece]:
        results = [p for p in self.of(kind) if p.start >= piece.end]
        return results[:1] if results and self._joins(piece.end, results[0].start) else []

    def _joins(self, start: int, end: int) -> bool:
        return all(is_idle(word) or word in THAN for word in self.words[start:end])

    # ── Shapes ───────────────────────────────────────────────────────────────────────────────

    def _extremes(self, filters: tuple[Filter, ...]) -> Iterator[tuple[TablePlan, bool]]:
        """Yield extremes: "which ticket is the most expensive?", "top 10 products by revenue"."""
        ends = self.superlatives()
        if not ends:
            return
        limit = self._limit(ends[0])
        counted = self._most_rows(ends[0], filters, limit)
        if counted is not None:
            yield counted, False
            return
        adjective = next((p for p in self.of("adjective") if p not in ends), None)
        adjective_sense = ends[0].detail
        columns = self.measured(adjective or ends[0])
        keys = self._keys()
        self.use(*ends, *([adjective] if adjective else []), *self.of("group"))
        # Where two values are compared, the question asks for one of them, not for a row's name.
        is_named = len(columns) == 1 and not any(len(filter_.values) > 1 for filter_ in filters)
        is_measured = any(
            self.column(piece).type is not ColumnType.TEXT
            for piece in self.used
            if piece.kind == "column"
        )
        if keys and not (self._names_rows(keys) or adjective_sense.measures or is_measured):
            order = (Order(FIRST, bool(adjective_sense.up)),)  # "the most usual genre"
            yield TablePlan("", filters, keys, (Measure(Kind.COUNT),), order, limit), False
        for column in columns[:MOST_READINGS]:
            falls = goes_down(adjective_sense, column)
            is_plain = not is_identifier(column) and not is_mixed(column)
            if keys and not self._names_rows(keys):
                kind = Kind.SUM if is_added(column) else Kind.AVERAGE
                measures, order = (Measure(kind, column.name),), (Order(FIRST, falls),)
                yield TablePlan("", filters, keys, measures, order, limit), False
            else:
                names = (*(key.column for key in keys), self.table.subject, column.name)
                names = tuple(dict.fromkeys(filter(None, names)))
                order = (Order(column.name, falls),)
                plan = TablePlan("", filters, order=order, limit=limit, columns=names)
                yield plan, is_named and is_plain and bool(names[1:])

    def _most_rows(self, end: Piece, filters: tuple[Filter, ...], limit: int) -> TablePlan | None:
        """Return a plan that counts rows: "which group has the most products?"; or None."""
        behind = [p for p in self._rows() if p.start >= end.end and self._joins(end.end, p.start)]
        keys = self._keys()
        if not behind or not keys or end.detail.measures or self._names_rows(keys):
            self.used = [p for p in self.used if p.name not in {key.column for key in keys}]
            return None
        self.use(end, *behind)
        order = (Order(FIRST, bool(end.detail.up)),)
        return TablePlan("", filters, keys, (Measure(Kind.COUNT),), order, limit)

    def _limit(self, end: Piece) -> int:
        for piece in self.of("number"):
            is_near = abs(piece.start - end.end) * abs(piece.end - end.start) <= 2
            if is_near and piece not in self.used:
                self.use(piece)
                return int(piece.detail[0])
        return 1

    def measured(self, piece: Piece) -> list[TableColumn]:
        """Return the column of an extreme: the named figure, else what its adjective measures."""
        pieces = [p for p in self.free() if self.column(p).type is not ColumnType.TEXT]
        if pieces:
            whole = [p for p in pieces if not p.is_part] or pieces
            self.use(whole[0])
            return [self.column(whole[0])]
        columns = self.table.table.columns
        if piece.detail.measures:
            return measured_by(piece.detail, columns)
        return [column for column in columns if is_added(column)]

    def _keys(self) -> tuple[Key, ...]:
        """Return named text columns that are not compared: what is ranked."""
        pieces = [p for p in self.free(figures=False) if self.column(p).type is ColumnType.TEXT]
        self.use(*pieces[:1])
        return tuple(Key(p.name) for p in pieces[:1])

    def _names_rows(self, keys: Sequence[Key]) -> bool:
        return all(
            key.column == self.table.subject or key.column in self.table.keys for key in keys
        )

    def _counts(self, filters: tuple[Filter, ...]) -> Iterator[tuple[TablePlan, bool]]:
        """Yield counts of rows, "how many tickets …"; a column of counts is not counted again."""
        cues = self.of("count")
        if not cues:
            return
        figures = self.free(figures=True)
        counted = [p for p in figures if self._joins(cues[0].end, p.start)]
        if counted and any(self._before(cues[0], kind) for kind in KINDS):
            return  # "the average number of pages"
        self.use(cues[0], *self.of("much"))
        keys = self.groups()
        if not counted:
            yield self._count_of(cues[0], filters, keys)
            return
        self.use(*counted)
        column = self.column(counted[0])
        if self._is_of_row(filters):
            yield self._looked_up(filters, [column.name]), True
            return
        if is_added(column) and not has_years(column):
            yield TablePlan("", filters, keys, (Measure(Kind.SUM, column.name),)), False
        if filters:
            yield self._looked_up(filters, [column.name]), False

    def _count_of(
        self, cue: Piece, filters: tuple[Filter, ...], keys: tuple[Key, ...]
    ) -> tuple[TablePlan, bool]:
        """Return a count of the things that a column names, or of rows."""
        start = max(piece.end for piece in (cue, *self.of("distinct")))
        noun = [p for p in self.free(figures=False) if self._joins(start, p.start)]
        self.use(*noun)
        name, distinct = self._subject_behind(start), self.of("distinct")
        if noun and not self._names_rows([Key(noun[0].name)]):
            name = noun[0].name
        elif not distinct or not name:
            if name and self.table.by_name[name].blanks:  # a row without a team does not count
                filters = (*filters, Filter(name, Op.FILLED))
            is_of_rows = bool(noun or self._rows())
            return TablePlan("", filters, keys, (Measure(Kind.COUNT),)), is_of_rows and not keys
        self.use(*distinct)
        measure = Measure(Kind.DISTINCT, name)
        return TablePlan("", filters, keys, (measure,)), bool(distinct) and not keys

    def _subject_behind(self, start: int) -> str:
        """Return the column that names the rows, if that is counted; else ""."""
        subject = self.table.subject
        things = (p for p in self.of("column", "rows") if self._joins(start, p.start))
        is_named = any(subject in self.table.with_part(self.words[p.start]) for p in things)
        return subject if is_named else ""

    def _figures_of(self, filters: tuple[Filter, ...]) -> Iterator[tuple[TablePlan, bool]]:
        """Yield aggregates: "the total price of …", "revenue by region"."""
        pieces = self.of(*KINDS)
        keys = self.groups()
        if not pieces and not keys:
            return
        self.use(*pieces, *self.of("much", "count"))
        kind = KINDS[pieces[0].kind] if pieces else None
        figures = self.free(figures=True)
        columns = [self.column(p) for p in figures[:1]]
        self.use(*figures[:1])
        if not columns and keys and kind is None:
            yield TablePlan("", filters, keys, (Measure(Kind.COUNT),)), False
        for column in columns:
            usual = Kind.SUM if is_added(column) else Kind.AVERAGE
            is_sound = may_be_added(column, kind or usual, self.table.table.row_count)
            plan = TablePlan("", filters, keys, (Measure(kind or usual, column.name),))
            yield plan, bool(kind) and not keys and is_sound

    def groups(self) -> tuple[Key, ...]:
        """Return the keys after "by" or "per"."""
        keys_named: list[Key] = []
        for cue in self.of("group"):
            for piece in self.of("column", "part"):
                is_behind = piece.start >= cue.end and self._lists(cue.end, piece.start)
                if piece in self.used or not is_behind:
                    continue
                keys = self._part(piece) if piece.kind == "part" else [Key(piece.name)]
                if keys:
                    self.use(cue, piece, *self.of("and"))
                    keys_named += keys
        return tuple(dict.fromkeys(keys_named))

    def _lists(self, start: int, end: int) -> bool:
        taken = {place for piece in self.used for place in range(piece.start, piece.end)}
        return all(
            is_idle(word) or index in taken or (word,) in CUES
            for index, word in enumerate(self.words[start:end], start)
        )

    def _part(self, piece: Piece) -> list[Key]:
        """Return "per month" for the only date column, with the year where there are several."""
        dates = [c for c in self.table.table.columns if c.type is ColumnType.DATE]
        if len(dates) != 1:
            return []
        part, column = PARTS[piece.name], dates[0]
        is_more = column.low[:4] != column.high[:4] and part is not Part.YEAR
        return [*([Key(column.name, Part.YEAR)] if is_more else []), Key(column.name, part)]

    def _cells(self, filters: tuple[Filter, ...]) -> Iterator[tuple[TablePlan, bool]]:
        """Yield the cells of the named rows."""
        if not filters:
            return
        compared = {filter_.column for filter_ in filters}
        pieces = [p for p in self.free() if p.name not in compared]
        whole = [p for p in pieces if not p.is_part] or pieces
        self.use(*pieces, *self.of("much"))
        columns = tuple(dict.fromkeys(p.name for p in whole))
        if not columns and self.of("much") and len(self.table.money()) == 1:
            columns = (self.table.money()[0].name,)
        if not columns:
            return
        yield self._looked_up(filters, columns), self._is_of_row(filters)

    def _is_of_row(self, filters: Sequence[Filter]) -> bool:
        """Return whether single rows are named, whose cells are asked for and not a sum."""
        keys = self.table.keys | {self.table.subject}
        return any(filter_.column in keys and filter_.op is Op.IS for filter_ in filters)

    def _looked_up(self, filters: tuple[Filter, ...], columns: Sequence[str]) -> TablePlan:
        compared = (filter_.column for filter_ in filters)
        names = dict.fromkeys(filter(None, (self.table.subject, *compared, *columns)))
        return TablePlan("", filters, columns=tuple(names))

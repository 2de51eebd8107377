"""One statement compared with the sources that it cites together.

Cells are certain if a source has their row and column: with the same or with another value.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice

from rag.citations.comparison.parser import (
    Place,
    Reading,
    SourceText,
    WeighedFigure,
    figures_in,
    read,
    read_alone,
    share,
    weigh,
)
from rag.citations.markers import without_markers
from rag.errors import RagError
from rag.language.amounts import Figure, agree, comparable
from rag.language.sentences import CELL, Window, cells_of, plain, read_sentences
from rag.language.words import ENGLISH, language_of, phrases
from rag.seams import Embedder, Matrix

_SIGN = re.compile(r"\d+|[^\W_]+|\+")
_WORD = 3  # letters; what is shorter tells a model from another
_SAME = 0.5  # of the words of a label or header and of one of a source, to be about the same


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of a row that one number stands for, with the lead-in of their table."""

    lead: str
    label: str
    cells: tuple[tuple[str, str], ...]  # the column and the value


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A cell of a row for which the source has another value."""

    stated: str
    source_value: str
    place: str  # the label and the header


def row_said(head: str, line: str, start: int, end: int) -> Row | None:
    """Return the cells of `line[start:end]` without the label; None if there is no header.

    `head` ends with the table's header; the lead-in of the table may stand before it.
    """
    lead, _, names = without_markers(head).strip().rpartition("\n")
    columns, matches = cells_of(names), list(CELL.finditer(line))
    if "|" not in names or len(matches) < 2:
        return None
    label, *values = (plain(without_markers(match[0])) for match in matches)
    cells = [
        (column, value)
        for column, value, match in zip(columns[1:], values, matches[1:], strict=False)
        if value and start < match.end() and match.start() < end
    ]
    return Row(lead, label, tuple(cells)) if cells else None


# ── Tables of a source ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _TableRows:
    lead: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def turned(self) -> "_TableRows":
        """Return the table with its columns as rows."""
        lines = [self.columns, *(row for row in self.rows if len(row) == len(self.columns))]
        columns, *rows = zip(*lines, strict=True)
        return _TableRows(self.lead, columns, tuple(rows))


@lru_cache(maxsize=256)
def _read_tables(source: SourceText) -> tuple[_TableRows, ...]:
    results: list[_TableRows] = []
    lead, columns = "", tuple[str, ...]()
    rows: list[tuple[str, ...]] = []
    for sentence in [*read_sentences(source.text), None]:
        line = source.text[sentence.start : sentence.end] if sentence else ""
        kind = sentence.kind if sentence else "sentence"
        if kind in ("row", "head"):
            cells = tuple(cells_of(line))
            if kind == "head":
                columns = cells
            elif columns:
                rows.append(cells)
        elif kind != "rule":
            if rows:
                results.append(_TableRows(lead, columns, tuple(rows)))
            lead, columns, rows = line, (), []
    return tuple(results)


# ── Compared ─────────────────────────────────────────────────────────────────────────────────


def compare(row: Row, source: SourceText) -> RowDifference | bool | None:
    """Return the first differing cell; True if the source has the whole row, None if that is open.

    Of several rows that may be meant, those under the same lead-in with most of the cells count.
    """
    row_lists = [
        table_rows for table in _read_tables(source) for table_rows in (table, table.turned())
    ]
    lead = frozenset(read_alone(row.lead).words)
    compared = [
        ((len(lead.intersection(read_alone(table.lead).words)), -cells.count(None)), cells)
        for table in row_lists
        for cells in _compare_row(row, table)
    ]
    best = max((near for near, _ in compared), default=None)
    nearest = [cells for near, cells in compared if near == best]
    if any(all(cell is True for cell in cells) for cells in nearest):
        return True
    wrong = [next((c for c in cells if isinstance(c, RowDifference)), None) for cells in nearest]
    return wrong[0] if wrong and all(wrong) else None


def _compare_row(row: Row, table: _TableRows) -> Iterator[list[RowDifference | bool | None]]:
    """Yield the comparison of each row with that label, cell by cell; none without the columns."""
    columns = [_called(column, table.columns[1:]) for column, _ in row.cells]
    for position in _called(row.label, [row[0] for row in table.rows]):
        results = [
            _of_cell(value, table, table.rows[position], places[0] + 1) if places else None
            for (_, value), places in zip(row.cells, columns, strict=True)
        ]
        if any(result is not None for result in results):
            yield results


def _of_cell(
    text: str, table: _TableRows, cells: Sequence[str], column: int
) -> RowDifference | bool | None:
    if column >= len(cells):
        return None
    there = cells[column]
    if _says(text, there):
        return True
    others = [*cells[1:], *(row[column] for row in table.rows if column < len(row))]
    stands_elsewhere = any(_says(text, cell) for cell in others if not _says(cell, there))
    if stands_elsewhere or _gives_another(text, there):
        return RowDifference(text, there, f"{cells[0]}, {table.columns[column]}")
    return None


def _called(name: str, names: Sequence[str]) -> list[int]:
    """Return the places of equal names, else of the one name that shares most words."""
    spelled = [index for index, other in enumerate(names) if other.lower() == name.lower()]
    if spelled:
        return spelled
    keys = _identifying_words(name)
    shares = [
        len(keys & there) / max(1, len(keys | there)) for there in map(_identifying_words, names)
    ]
    best = max(shares, default=0.0)
    fits = [index for index, share in enumerate(shares) if share == best]
    return [] if best < _SAME or (best < 1.0 and len(fits) > 1) else fits


@lru_cache(maxsize=8192)
def _identifying_words(name: str) -> frozenset[str]:
    """Return a name's words, with all that tells one model or amount from another."""
    signs = (sign for sign in _SIGN.findall(name.lower()) if len(sign) < _WORD or sign.isdigit())
    return frozenset(read_alone(name).words).union(signs) or frozenset(name.lower().split())


@lru_cache(maxsize=8192)
def _says(cell: str, there: str) -> bool:
    """Whether two cells say the same: each has every figure and every word of the other."""
    one, other = read_alone(cell), read_alone(there)
    figures = all(any(agree(figure, e) for e in other.figures) for figure in one.figures)
    denials = [sum(term.denies for term in reading.terms) for reading in (one, other)]
    words = _telling_words(one) <= _telling_words(other) and denials[0] == denials[1]
    counted = len(one.figures) == len(other.figures)
    bare = one.text.lower() == other.text.lower()
    return bare or (bool(one.figures or one.words) and figures and words and counted)


def _telling_words(reading: Reading) -> set[str]:
    """Return the words of a text, and numbers in names: `Wi-Fi 6` is not `Wi-Fi 5`."""
    keys = (str(term.key) for term in reading.terms if not isinstance(term.key, Figure))
    return {*reading.words, *(key for key in keys if key[0].isdigit())}


def _gives_another(text: str, there: str) -> bool:
    """Whether the other cell has a different figure in the place of one of this cell."""
    figures, others = (
        [figure for figure in read_alone(cell).figures if figure.kind != "ordinal"]
        for cell in (text, there)
    )
    return any(
        any(comparable(figure, e) for e in others) and not any(agree(figure, e) for e in others)
        for figure in figures
    )


_MOST_FIGURES = 40  # of one statement that are looked for
_FEWEST = 2  # words that mean anything
# Who is said to say so: `According to the manual, …`, `The handbook says that …`.
_FRAME = re.compile(rf"\W*(?:{phrases('frames')})\s+", re.IGNORECASE)
_ANYWHERE = 1 / 3  # of a statement's words, for which meaning is asked
UNLIKE = 0.4  # cosine of a statement and the window of its source that is nearest to it


@dataclass(frozen=True, slots=True)
class ComparedStatement:
    """A statement to judge: its own words, and those without which it is not understood."""

    text: str
    around: str = ""  # a list's lead-in, the label and header of a cell
    row: Row | None = None  # of a table


class Case:
    """A statement and its sources, with what several comparisons need, computed once."""

    def __init__(
        self,
        statement: ComparedStatement,
        sources: Sequence[SourceText],
        embedder: Embedder | None = None,
    ) -> None:
        self.statement = statement
        self.sources = sources
        self._embedder = embedder
        self.language = language_of(statement.text)
        lexicon = sources[0].lexicon
        frame = _FRAME.match(statement.text)
        is_bare = frame and not read(frame.group(), lexicon, self.language).names
        text = statement.text[frame.end() :] if frame and is_bare else statement.text
        window = Window(0, len(text), text, statement.around)
        self._place = Place(window, lexicon, self.language)
        self.reading = self._place.reading
        self.names = self._place.names

    @property
    def says_something(self) -> bool:
        """Whether the statement has anything that can be compared."""
        return bool(self.reading.words or self.reading.figures or self.reading.names)

    @cached_property
    def weighed(self) -> list[WeighedFigure]:
        """The statement's figures, each with what the sources say of it."""
        stated = islice(figures_in(self._place, self.names), _MOST_FIGURES)
        return [weigh(figure, self.sources) for figure in stated]

    @cached_property
    def words_there(self) -> frozenset[str]:
        """All words of the sources."""
        return frozenset[str]().union(*(source.words for source in self.sources))

    @cached_property
    def near(self) -> float:
        """The share of the statement's words that one window of the sources holds."""
        places = (words for source in self.sources for words in source.words_of_places)
        return max((share(self.reading.words, words) for words in places), default=0.0)

    @cached_property
    def is_copy(self) -> bool:
        """Whether the statement is in the words of its sources, but for one at most.

        Other words may also say other things, which no rule tells apart: of 41 contradictions found
        beyond that, 19 were none; of 275 within it, 7.
        """
        lacking = [word for word in self.reading.words if word not in self.words_there]
        count = len(self.reading.words) + len(self.reading.figures)
        return len(lacking) <= min(1, count // 3)

    @cached_property
    def is_silent(self) -> bool:
        """Whether the sources do not speak of the subject: no common figure, and another meaning.

        The embedding model knows English; without it, and for other languages, the answer is no.
        """
        words, embedder = self.reading.words, self._embedder
        if embedder is None or self.language is not ENGLISH or len(words) < _FEWEST:
            return False
        if share(words, self.words_there) > _ANYWHERE or any(
            weighed.carried for weighed in self.weighed
        ):
            return False
        signs = (e for e in self.reading.raw if e.isalnum() and not e.isalpha() and not e.isdigit())
        if any(sign in source.text.lower() for sign in signs for source in self.sources):
            return False
        return is_near(self.statement.text, words, self.sources, embedder, least=UNLIKE) is False


_LONGEST = 250  # characters of a window


def is_near(
    text: str,
    words: Sequence[str],
    sources: Sequence[SourceText],
    embedder: Embedder,
    *,
    least: float,
) -> bool | None:
    """Whether a statement's cosine with a window of its sources is at least `least`.

    In each source the window with most common words is compared first, which mostly decides: the
    model takes some milliseconds a window. None if no model answers.
    """
    firsts: list[str] = []
    others: list[str] = []
    for source in sources:
        near = source.nearest(words)
        texts = [f"{place.window.around} {place.reading.text}" for place in near] or [source.text]
        first, *rest = (text[:_LONGEST] for text in texts)
        firsts.append(first)
        others += rest
    try:
        vector, *vectors = embedder.embed([text, *firsts])
        if _highest(vector, vectors) >= least:
            return True
        return bool(others) and _highest(vector, embedder.embed(others)) >= least
    except RagError:  # the model's server is away: words have to do
        return None


def _highest(vector: Matrix, others: Iterable[Matrix]) -> float:
    return max(float(other @ vector) for other in others)

"""Turn a grid of texts into typed tables: the type of each column, and the rows as Parquet."""

import csv
import errno
import io
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, time
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb

from rag.language.amounts import decimal_sign
from rag.language.grids import BLANK, LONGEST_SPLIT, FileRow, grids, is_blank, is_formula, totals
from rag.records import ColumnType, RawTable, TableColumn
from rag.tables.plan import MOST_COLUMNS, ROW, TOTAL, ColumnReading, reading_of
from rag.tables.vocabulary import LONGEST_EXAMPLE

SAMPLED = 200  # rows of each column that decide the decimal sign of a table
DECIDING = 3_000  # distinct texts that decide a column's type
SHORT = 1_000  # rows; a shorter table is read without a database
MEMORY = "512MB"  # for a long table; more is kept on disk meanwhile
ROW_GROUP = 100_000
LONGEST_ROW = 2**26  # bytes; a long table with a longer one is refused
SQL_TYPES = {
    ColumnType.DURATION: "DOUBLE",
    ColumnType.QUARTER: "INTEGER",
    ColumnType.BOOLEAN: "BOOLEAN",
}
NO_TEXT = BLANK - {"none"}  # blanks in a text column
BLANKS = "".join(filter(str.isspace, map(chr, range(sys.maxunicode + 1))))
INTEGERS = "-?(0|[1-9][0-9]{0,14})"  # leading zeros or more digits make it a code
FLOATS = rf"({INTEGERS}|-?)(\.[0-9]*)?"
Counts = Mapping[str, int]  # distinct texts in row order, with their counts except in totals


@dataclass(frozen=True, slots=True)
class TypedTable:
    """A typed table, and how to write it; valid until the next table is read."""

    columns: tuple[TableColumn, ...]
    row_count: int  # without totals
    texts: tuple[tuple[str, ...], ...]  # the first distinct texts of each text column
    write: Callable[[Path], None]
    """As Parquet: columns `c0 …` with values, `t0 …` with their texts where these say more."""


def typed_tables(raw: RawTable) -> Iterator[TypedTable]:
    """Yield every table in a grid; none if the grid is far too wide."""
    if raw.width > MOST_COLUMNS:
        return
    if raw.row_count > LONGEST_SPLIT:
        yield from _long(raw)
        return
    figures = frozenset(raw.typed)
    for grid in grids([(int(row[0]), _marked(row[1:], figures)) for row in _cells(raw.rows)]):
        typed = [isinstance(cell, _FileValue) for cell in grid.rows[0][1]]
        if len(grid.rows) < SHORT:
            yield _typed(grid.names, _ShortTable(grid.rows), typed)
            continue
        written = io.StringIO()
        csv.writer(written, lineterminator="\n").writerows(
            [number, *row] for number, row in grid.rows
        )
        with _long_table(written.getvalue(), len(typed)) as table:
            yield _typed(grid.names, table, typed)


class _FileValue(str):
    """A text in a column whose figures are typed values of the file."""


def _marked(row: Sequence[str], figures: frozenset[int]) -> list[str]:
    return [_FileValue(cell) if index in figures else cell for index, cell in enumerate(row)]


def _cells(rows: str) -> Iterator[list[str]]:
    csv.field_size_limit(2**31 - 1)  # the file's reader set its own limit
    storable = rows.encode("utf-8", "replace").decode()
    return csv.reader(io.StringIO(storable, newline=""))


def _long(raw: RawTable) -> Iterator[TypedTable]:
    """Read a grid that is one table; only its first rows are examined one by one."""
    end = 0
    for _ in range(50):
        end = raw.rows.find("\n", end) + 1
    top = [(int(number), row) for number, *row in _cells(raw.rows[:end])]
    grid = next(grids(top), None)
    if grid is None:
        return
    with _long_table(raw.rows, raw.width, first=grid.rows[0][0]) as table:
        numbered = tuple(f"Column {i}" for i in range(1, len(table.used) + 1))
        names = grid.names if len(grid.names) == len(table.used) else numbered
        yield _typed(names, table, [index in raw.typed for index in table.used])


class _ShortTable:
    """A table in memory: columns of stripped texts, and the values parsed from them."""

    def __init__(self, rows: Sequence[FileRow]) -> None:
        self.count = len(rows)
        columns = zip(*(row for _number, row in rows), strict=True)
        self._texts = [[cell.strip() for cell in column] for column in columns]
        self._columns: dict[str, tuple[str, list[Any]]] = {
            ROW: ("BIGINT", [number for number, _ in rows])
        }

    def rows(self, first: int, end: int) -> list[Sequence[str]]:
        return list(zip(*(texts[first:end] for texts in self._texts), strict=True))

    def mark(self, indices: Sequence[int]) -> None:
        """Mark the rows, from 0, that are totals."""
        self._totals = [index in indices for index in range(self.count)]
        self._columns[TOTAL] = ("BOOLEAN", self._totals)

    def counts(self, column: int, _most: int = 0) -> Counts:
        counted = Counter(dict.fromkeys(self._texts[column], 0))
        rows = zip(self._texts[column], self._totals, strict=True)
        counted.update(text for text, is_total in rows if not is_total)
        return counted

    def keep_texts(self, column: int) -> None:
        texts = [None if text.lower() in NO_TEXT else text for text in self._texts[column]]
        self._columns[f"c{column}"] = ("VARCHAR", texts)

    def keep_values(self, column: int, kind: str, values: Mapping[str, Any]) -> None:
        """Store the value of each text beside the text."""
        self._columns[f"c{column}"] = (kind, [values[text] for text in self._texts[column]])
        self._columns[f"t{column}"] = ("VARCHAR", self._texts[column])

    def write(self, path: Path) -> None:
        columns = [
            f"unnest(?::{kind}[]) AS {name}" for name, (kind, _values) in self._columns.items()
        ]
        with closing(_database().cursor()) as cursor:
            values = [values for _kind, values in self._columns.values()]
            _copy(cursor, f"SELECT {', '.join(columns)}", path, values)


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """Open the database that writes the files of short tables.

    Opening takes longer than writing.
    """
    return _open_duckdb()


def _open_duckdb(**options: str | int | bool) -> duckdb.DuckDBPyConnection:
    no_extensions = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    return duckdb.connect(":memory:", config={"threads": 1, **no_extensions, **options})


def _copy(
    connection: duckdb.DuckDBPyConnection, query: str, path: Path, values: Sequence[Any] = ()
) -> None:
    form = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROW_GROUP}"
    with _faults():
        connection.execute(f"COPY ({query}) TO {_quoted(str(path))} ({form})", values)


@contextmanager
def _faults() -> Iterator[None]:
    """Turn the database's errors into Python's; its messages quote rows, so they are not logged."""
    try:
        yield
    except duckdb.IOException as error:
        is_full = "No space left" in str(error)
        raise OSError(errno.ENOSPC if is_full else errno.EIO, str(error)) from error
    except duckdb.Error as error:
        raise ValueError(f"the database refuses the rows ({type(error).__name__})") from None


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class _LongTable:
    """A table like `_ShortTable`, but in a database of its own."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, source: str, width: int) -> None:
        self._connection = connection
        cells = [f"trim(coalesce(x{i}, ''), {_quoted(BLANKS)}) AS x{i}" for i in range(width)]
        self._run(f"CREATE TABLE texts AS SELECT n, false AS total, {', '.join(cells)} {source}")
        (self.count, *lengths) = self._run(
            f"SELECT count(*), {', '.join(f'max(length(x{i}))' for i in range(width))} FROM texts"
        )[0]
        self.used = [index for index, length in enumerate(lengths) if length]
        self._values: dict[int, str] = {}
        self._joins: dict[int, str] = {}

    def _run(self, query: str, *values: Any) -> list[Any]:
        return self._connection.execute(query, values).fetchall()

    def rows(self, first: int, end: int) -> list[Sequence[str]]:
        columns = ", ".join(f"x{i}" for i in self.used)
        return self._run(f"SELECT {columns} FROM texts LIMIT {end - first} OFFSET {first}")

    def mark(self, indices: Sequence[int]) -> None:
        if indices:
            self._run(f"UPDATE texts SET total = true WHERE rowid IN {(*indices, -1)}")

    def counts(self, column: int, most: int = 0) -> Counts:
        query = f"SELECT x{self.used[column]}, count(*) FILTER (NOT total) FROM texts GROUP BY 1"
        return dict(self._run(f"{query} ORDER BY min(rowid)" + f" LIMIT {most}" * bool(most)))

    def keep_texts(self, column: int) -> None:
        text = f"x{self.used[column]}"
        blank = ", ".join(map(_quoted, NO_TEXT))
        self._values[column] = f"CASE WHEN lower({text}) NOT IN ({blank}) THEN {text} END"

    def keep_values(self, column: int, kind: str, values: Mapping[str, Any]) -> None:
        columns = f"unnest(?::VARCHAR[]) AS x, unnest(?::{kind}[]) AS v"
        self._run(f"CREATE TABLE v{column} AS SELECT {columns}", [*values], [*values.values()])
        self._values[column] = f"v{column}.v"
        self._joins[column] = f"LEFT JOIN v{column} ON v{column}.x = x{self.used[column]}"

    def keep_plain(self, column: int) -> bool:
        """Store a column as numbers if every text is written as computers do.

        Return whether it is.
        """
        text = f"x{self.used[column]}"
        for kind, form in (("BIGINT", INTEGERS), ("DOUBLE", FLOATS)):
            cast = f"CAST(nullif({text}, '') AS {kind})"
            fits = f"regexp_full_match({text}, '{form}') AND TRY_{cast} IS NOT NULL"
            if self._run(f"SELECT bool_and({fits}) FROM texts WHERE {text} <> ''")[0][0]:
                self._values[column] = cast
                return True
        return False

    def profile(self, column: int, name: str, reading: ColumnReading) -> TableColumn:
        """Return the profile of a column that has no parsed values."""
        rows = f"(SELECT {self._values[column]} AS c, rowid AS r FROM texts WHERE NOT total)"
        aggregates = "count(DISTINCT c), count(*) - count(c), min(c), max(c)"
        ((distinct, blanks, low, high),) = self._run(f"SELECT {aggregates} FROM {rows}")
        counts = f"SELECT c FROM {rows} WHERE c IS NOT NULL GROUP BY 1"
        frequent = self._run(f"{counts} ORDER BY count(*) DESC, min(r) LIMIT {EXAMPLES}")
        examples = [value for (value,) in frequent]
        return _profile(name, reading, distinct, blanks, (low, high), examples)

    def pairs(self, column: int) -> list[tuple[Any, str]]:
        """Return (value, text) pairs of the first rows."""
        pair = f"{self._values[column]}, x{self.used[column]}"
        return self._run(f"SELECT {pair} FROM texts LIMIT {LOOKED_AT}")

    def write(self, path: Path) -> None:
        columns = [f"n AS {ROW}", f"total AS {TOTAL}"]
        for column, value in sorted(self._values.items()):
            columns.append(f"{value} AS c{column}")
            columns += [f"x{self.used[column]} AS t{column}"] * (column in self._joins)
        query = f"SELECT {', '.join(columns)} FROM texts {' '.join(self._joins.values())}"
        _copy(self._connection, f"{query} ORDER BY n", path)


@contextmanager
def _long_table(rows: str, width: int, *, first: int = 0) -> Iterator[_LongTable]:
    """Load the rows into a database, starting with the row of this number."""
    longest = min(LONGEST_ROW, max(2**21, 4 * _longest_row(rows)))
    with tempfile.TemporaryDirectory(prefix="groundnote-table-") as folder:
        path = Path(folder) / "rows.csv"
        path.write_text(rows, encoding="utf-8", errors="replace", newline="")
        types = {"n": "BIGINT"} | {f"x{i}": "VARCHAR" for i in range(width)}
        form = f"columns={types}, max_line_size={longest}, parallel=false"
        form += r""", auto_detect=false, delim=',', quote='"', escape='"', new_line='\n'"""
        source = f"FROM read_csv({_quoted(str(path))}, {form}) WHERE n >= {first}"
        opened = _open_duckdb(memory_limit=MEMORY, temp_directory=folder)
        with _faults(), closing(opened) as connection:
            yield _LongTable(connection, source, width)


def _longest_row(rows: str) -> int:
    """Return the longest row in characters; line breaks within quotes do not end a row."""
    longest, first, start, quotes = 0, 0, 0, 0
    while (end := rows.find("\n", start)) >= 0:
        quotes += rows.count('"', start, end)
        start = end + 1
        if quotes % 2 == 0:
            longest, first = max(longest, start - first), start
    return longest


def _typed(
    names: Sequence[str], table: _ShortTable | _LongTable, typed: Sequence[bool]
) -> TypedTable:
    total_rows = _totals(table)
    table.mark(total_rows)
    head = zip(*table.rows(0, SAMPLED), strict=True)
    signs = {decimal_sign(texts) for texts in head} - {""}
    decimal = signs.pop() if len(signs) == 1 else ""  # all columns agree
    columns, texts = [], []
    for index, name in enumerate(names):
        column, some = _column(table, index, name, decimal, is_typed=typed[index])
        columns.append(column)
        texts.append(some)
    return TypedTable(tuple(columns), table.count - len(total_rows), tuple(texts), table.write)


def _totals(table: _ShortTable | _LongTable) -> list[int]:
    """Return which rows are totals; in long tables only the last tenth or the last 200 can be."""
    count = table.count
    first = max(0, min(count - 200, count * 9 // 10)) if count > 500 else 0
    flags = totals(table.rows(first, count), is_whole=count <= 500)
    return [index for index, is_total in enumerate(flags, first) if is_total]


def _column(
    table: _ShortTable | _LongTable, index: int, name: str, decimal: str, *, is_typed: bool
) -> tuple[TableColumn, tuple[str, ...]]:
    """Return the profile of a column, and some of its texts if it is a text column."""
    if isinstance(table, _LongTable) and table.keep_plain(index):
        column = table.profile(index, name, reading_of(["1"], name))
        return replace(column, decimals=_most_places(table.pairs(index))), ()
    counts = table.counts(index, DECIDING)
    reading = reading_of([*counts], name, decimal, is_typed=is_typed)
    is_cut = len(counts) == DECIDING
    if is_cut and reading.type is not ColumnType.TEXT:
        counts, is_cut = table.counts(index), False
        reading = reading_of([*counts], name, decimal, is_typed=is_typed)
    if reading.type is not ColumnType.TEXT:
        return _valued(table, index, name, reading, counts), ()
    table.keep_texts(index)
    texts = {text: count for text, count in counts.items() if text.lower() not in NO_TEXT}
    if is_cut and isinstance(table, _LongTable):
        return table.profile(index, name, reading), (*texts,)
    distinct, blanks = sum(map(bool, texts.values())), sum(counts.values()) - sum(texts.values())
    column = _profile(name, reading, distinct, blanks, ("", ""), _most_frequent(texts))
    return column, (*texts,)


def _valued(
    table: _ShortTable | _LongTable, index: int, name: str, reading: ColumnReading, counts: Counts
) -> TableColumn:
    """Parse each distinct text of a column once."""
    kind, values = _typed_values(
        {text: None if is_blank(text) else reading.read(text) for text in counts}, reading.type
    )
    table.keep_values(index, kind, values)
    counts = {text: count for text, count in counts.items() if count}
    distinct = {values[text] for text in counts} - {None}
    left = {text: count for text, count in counts.items() if values[text] is None}
    is_ordered = bool(distinct) and reading.type is not ColumnType.BOOLEAN
    ends = (min(distinct), max(distinct)) if is_ordered else ("", "")
    blanks, frequent = sum(left.values()), _most_frequent(counts)
    is_fraction = kind == "DOUBLE" and reading.type is ColumnType.NUMBER
    return replace(
        _profile(name, reading, len(distinct), blanks, ends, frequent),
        decimals=_most_places((values[text], text) for text in counts) if is_fraction else 0,
        has_text=True,
        note="; ".join(filter(None, (reading.note, *_unread([*left])))),
        missing=sum(count for text, count in left.items() if is_formula(text)),
    )


def _typed_values(values: dict[str, Any], kind: ColumnType) -> tuple[str, dict[str, Any]]:
    """Return the DuckDB type and the values converted to it."""
    present = [value for value in values.values() if value is not None]
    if kind is ColumnType.DATE:
        if not any(isinstance(value, datetime) for value in present):
            return "DATE", values
        days = {t: v for t, v in values.items() if v is not None and not isinstance(v, datetime)}
        return "TIMESTAMP", values | {t: datetime.combine(v, time()) for t, v in days.items()}
    if kind is ColumnType.NUMBER and all(isinstance(v, int) and abs(v) < 2**63 for v in present):
        return "BIGINT", values
    if kind in (ColumnType.NUMBER, ColumnType.DURATION):
        return "DOUBLE", {text: v if v is None else float(v) for text, v in values.items()}
    return SQL_TYPES[kind], values


EXAMPLES = 12
UNREAD_LISTED = 3
LOOKED_AT = 2_000  # rows, or different texts
DECIMALS = re.compile(r"[.,](\d+)(?!.*[.,]\d)")


def _profile(
    name: str,
    reading: ColumnReading,
    distinct: int,
    blanks: int,
    ends: tuple[Any, Any],
    frequent: Sequence[Any],
) -> TableColumn:
    """Return a column with its statistics, without totals; the most frequent values first."""
    has_ends = reading.type not in (ColumnType.TEXT, ColumnType.BOOLEAN)
    low, high = map(str, ends) if has_ends else ("", "")
    return TableColumn(
        name=name,
        type=reading.type,
        unit=reading.unit,
        distinct=distinct,
        blanks=blanks,
        low=low,
        high=high,
        examples=tuple(str(value)[:LONGEST_EXAMPLE] for value in frequent if str(value).strip()),
        note=reading.note,
    )


def _most_frequent(counts: Counts) -> list[str]:
    texts = [text for text, count in counts.items() if count]
    return sorted(texts, key=counts.__getitem__, reverse=True)[:EXAMPLES]


def _unread(left: Sequence[str]) -> Iterator[str]:
    """Describe cells that could not be parsed: "free" among prices counts nowhere."""
    if formulas := [cell for cell in left if is_formula(cell)]:
        yield f"the file holds no result of {_some(formulas)}, so it is missing here"
    if words := [cell for cell in left if not is_blank(cell) and not is_formula(cell)]:
        yield f"{_some(words)} could not be read as a value and counts nowhere"


def _some(cells: Sequence[str]) -> str:
    quoted = ", ".join(f"“{cell[:LONGEST_EXAMPLE]}”" for cell in cells[:UNREAD_LISTED])
    return quoted + " …" * (len(cells) > UNREAD_LISTED)


def _most_places(pairs: Iterable[tuple[Any, str]]) -> int:
    """Return the largest number of decimals written: sums are shown with as many."""
    some = islice(pairs, LOOKED_AT)
    return min(6, max((_places(value, written) for value, written in some), default=0))


def _places(value: float | None, written: str) -> int:
    """Return the decimals of one figure, in either convention."""
    match = DECIMALS.search(written)
    if value is None or match is None:
        return 0
    digits = re.sub(r"\D", "", written[: match.end()])
    places = len(match[1])
    return places if abs(int(digits) / 10**places - abs(value)) < 1e-9 * max(1, abs(value)) else 0

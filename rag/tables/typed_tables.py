"""A grid of texts to typed tables: Arrow columns, and what is known of each."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from rag.language.grids import BLANK, LONGEST_SPLIT, Grid, grids, is_blank, is_formula, totals
from rag.language.numerals import decimal_sign
from rag.records import ColumnType, RawTable, TableColumn
from rag.tables.plan import MOST_COLUMNS
from rag.tables.types import ROW, TOTAL, ColumnReading, reading_of
from rag.tables.wordforms import LONGEST_EXAMPLE

SAMPLED = 200  # rows of each column that tell the decimal sign of a table
DECIDING = 2_000  # distinct texts that decide what a column is
BLOCK_BYTES = 4 * 1024 * 1024
ARROW = {
    ColumnType.NUMBER: pa.float64(),
    ColumnType.DURATION: pa.float64(),
    ColumnType.QUARTER: pa.int32(),
    ColumnType.BOOLEAN: pa.bool_(),
}
pa.set_memory_pool(pa.system_memory_pool())  # gives back at once what long tables took


@dataclass(frozen=True, slots=True)
class TypedTable:
    """Columns `c0 …` with values, `t0 …` with their texts where these say more, and the rows."""

    data: pa.Table
    columns: tuple[TableColumn, ...]
    row_count: int  # totals apart


def typed_tables(raw: RawTable) -> Iterator[TypedTable]:
    """Every table that stands in a grid; none in one that is far too wide."""
    if raw.width > MOST_COLUMNS:
        return
    if raw.row_count > LONGEST_SPLIT:
        yield from _long(raw)
        return
    cells = _cells(raw, raw.rows)
    rows = list(
        zip(cells[0].to_pylist(), *(column.to_pylist() for column in cells[1:]), strict=True)
    )
    figures = frozenset(raw.typed)
    for grid in grids([(int(row[0]), _marked(row[1:], figures)) for row in rows]):
        columns = list(zip(*(row for _number, row in grid.rows), strict=True))
        arrays = [pa.chunked_array([pa.array(column, pa.string())]) for column in columns]
        numbers = pa.array([number for number, _row in grid.rows], pa.int64())
        typed = [isinstance(column[0], _FileValue) for column in columns]
        yield _typed(grid.names, pa.chunked_array([numbers]), arrays, typed)


class _FileValue(str):
    """A text of a column whose figures are the file's own."""


def _marked(row: Sequence[object], figures: frozenset[int]) -> list[str]:
    cells = map(str, row)
    return [_FileValue(cell) if at in figures else cell for at, cell in enumerate(cells)]


def _long(raw: RawTable) -> Iterator[TypedTable]:
    """A grid that is one table: only its first rows are looked at one by one."""
    end = 0
    for _ in range(50):
        end = raw.rows.find("\n", end) + 1
    head = _cells(raw, raw.rows[:end])
    top = [
        (row[0], list(row[1:]))
        for row in zip(*(column.to_pylist() for column in head), strict=True)
    ]
    grid: Grid | None = next(grids([(int(number), [*map(str, row)]) for number, row in top]), None)
    if grid is None:
        return
    first = grid.rows[0][0]
    cells = _cells(raw, raw.rows)
    numbers = pc.cast(cells[0], pa.int64())
    body = pc.greater_equal(numbers, first)
    places = [at for at, column in enumerate(cells[1:]) if pc.max(pc.binary_length(column)).as_py()]
    used = [cells[at + 1] for at in places]
    typed = [at in raw.typed for at in places]
    del cells
    names = grid.names if len(grid.names) == len(used) else None
    if names is None:
        names = tuple(f"Column {i}" for i in range(1, len(used) + 1))
    yield _typed(names, numbers.filter(body), [used.pop(0).filter(body) for _ in names], typed)


def _cells(raw: RawTable, rows: str) -> list[pa.ChunkedArray]:
    names = [str(i) for i in range(raw.width + 1)]
    table = arrow_csv.read_csv(
        pa.BufferReader(rows.encode("utf-8", "replace")),
        read_options=arrow_csv.ReadOptions(
            column_names=names, block_size=_block_bytes(rows), use_threads=False
        ),
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
        ),
    )
    return list(table.columns)


def _block_bytes(rows: str) -> int:
    """No row may be longer than a block."""
    if len(rows) <= BLOCK_BYTES:
        return max(4 * len(rows), 1024)
    longest, start = 0, 0
    while (end := rows.find("\n", start)) >= 0:
        longest, start = max(longest, end - start), end + 1
    return max(BLOCK_BYTES, 16 * longest)


def _typed(
    names: Sequence[str],
    numbers: pa.ChunkedArray,
    texts: Sequence[pa.ChunkedArray],
    typed: Sequence[bool],
) -> TypedTable:
    totals = _totals(texts)
    decimal = _decimal_sign(texts)
    arrays: dict[str, Any] = {ROW: numbers, TOTAL: totals}
    keep = pc.invert(totals)
    columns = []
    for index, (name, text) in enumerate(zip(names, texts, strict=True)):
        values, reading, has_text = _column(text, name, decimal, is_typed=typed[index])
        arrays[f"c{index}"] = values
        if has_text:
            arrays[f"t{index}"] = text
        columns.append(profile(name, reading, values.filter(keep), text.filter(keep), has_text))
    return TypedTable(pa.table(arrays), tuple(columns), pc.sum(keep).as_py() or 0)


def _decimal_sign(texts: Sequence[pa.ChunkedArray]) -> str:
    """The decimal sign that all columns agree on, for the one that leaves it open."""
    signs = {decimal_sign(text.slice(0, SAMPLED).to_pylist()) for text in texts} - {""}
    return signs.pop() if len(signs) == 1 else ""


def _totals(texts: Sequence[pa.ChunkedArray]) -> pa.Array:
    """Of long tables the last tenth and the last rows can be totals, by a word that says so."""
    count = len(texts[0])
    first = max(0, min(count - 200, count * 9 // 10))
    tail = [text.slice(first).to_pylist() for text in texts]
    flags = totals(list(zip(*tail, strict=True)), is_whole=False)
    if count <= 500:
        whole = [text.to_pylist() for text in texts]
        flags, first = totals(list(zip(*whole, strict=True))), 0
    return pa.array([False] * first + flags, pa.bool_())


def _column(
    text: pa.ChunkedArray, name: str, decimal: str, *, is_typed: bool
) -> tuple[pa.ChunkedArray, ColumnReading, bool]:
    """Values, how they were read, and whether the texts say more than the values do."""
    trimmed = pc.utf8_trim_whitespace(text)
    fast = _plain_numbers(trimmed)
    if fast is not None:
        return fast, reading_of(["1"], name), False
    distinct = pc.unique(trimmed)
    some = distinct.slice(0, DECIDING).to_pylist()
    reading = reading_of(some, name, decimal, is_typed=is_typed)
    if reading.type is ColumnType.TEXT:
        blank = pc.is_in(
            pc.utf8_lower(trimmed), pa.array([each for each in BLANK if each != "none"])
        )
        return pc.if_else(blank, pa.scalar(None, pa.string()), trimmed), reading, False
    if len(distinct) > DECIDING:
        reading = reading_of(distinct.to_pylist(), name, decimal, is_typed=is_typed)
        if reading.type is ColumnType.TEXT:
            return trimmed, reading, False
    return _read_all(trimmed, distinct, reading.read, reading.type), reading, True


def _read_all(
    text: pa.ChunkedArray, distinct: pa.Array, read: Callable[[str], Any], kind: ColumnType
) -> pa.ChunkedArray:
    """Each distinct text is read once."""
    values = [None if is_blank(each) else read(each) for each in distinct.to_pylist()]
    if kind is ColumnType.DATE:
        has_time = any(hasattr(value, "hour") for value in values)
        wanted = pa.timestamp("s") if has_time else pa.date32()
        values = [_midnight(value) for value in values] if has_time else values
    else:
        wanted = ARROW[kind]
        if kind is ColumnType.NUMBER and all(isinstance(v, int | None) for v in values):
            wanted = pa.int64()
    read_values = pa.array(values, wanted)
    return pa.chunked_array(
        [pc.take(read_values, pc.index_in(chunk, distinct)) for chunk in text.chunks]
    )


def _midnight(value: Any) -> Any:
    is_day = value is not None and not hasattr(value, "hour")
    return datetime.combine(value, time()) if is_day else value


def _plain_numbers(text: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """The column as numbers where every text is one as a computer writes it."""
    if (
        len(text) < 1_000
        or pc.any(pc.match_substring_regex(text, "^[-+]?0[0-9]|[a-zA-Z, ]")).as_py()
    ):
        return None
    filled = pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)
    for wanted in (pa.int64(), pa.float64()):
        try:
            return pc.cast(filled, wanted)
        except pa.ArrowInvalid:
            continue
    return None


EXAMPLES = 12
TOLD_UNREAD = 3
LOOKED_AT = 2_000  # rows
DECIMALS = re.compile(r"[.,](\d+)(?!.*[.,]\d)")


def profile(
    name: str,
    reading: ColumnReading,
    values: pa.ChunkedArray,
    text: pa.ChunkedArray,
    has_text: bool,
) -> TableColumn:
    """Of one column, its rows of totals apart."""
    known = values.drop_null()
    counted = pc.value_counts(text if has_text else known)
    frequent = _most_frequent(counted)
    low, high = _range(known, reading.type)
    return TableColumn(
        name=name,
        type=reading.type,
        unit=reading.unit,
        decimals=_decimals(values, text, reading.type),
        has_text=has_text,
        distinct=pc.count_distinct(known).as_py() if len(known) else 0,
        blanks=len(values) - len(known),
        low=low,
        high=high,
        examples=tuple(frequent),
        note="; ".join(filter(None, (reading.note, *_unread(values, text, has_text)))),
        missing=sum(map(is_formula, text.filter(pc.is_null(values)).to_pylist()))
        if has_text
        else 0,
    )


def _unread(values: pa.ChunkedArray, text: pa.ChunkedArray, has_text: bool) -> Iterator[str]:
    """Which cells say something that is no value: "free" among prices counts nowhere."""
    left = pc.unique(text.filter(pc.is_null(values))).to_pylist() if has_text else []
    if formulas := [cell for cell in left if is_formula(cell)]:
        yield f"the file holds no result of {_some(formulas)}, so it is missing here"
    if words := [cell for cell in left if not is_blank(cell) and not is_formula(cell)]:
        yield f"{_some(words)} could not be read as a value and counts nowhere"


def _some(cells: Sequence[str]) -> str:
    told = ", ".join(f"“{cell[:LONGEST_EXAMPLE]}”" for cell in cells[:TOLD_UNREAD])
    return told + " …" * (len(cells) > TOLD_UNREAD)


def _most_frequent(counted: Any) -> list[str]:
    if not len(counted):
        return []
    order = pc.sort_indices(counted.field("counts"), sort_keys=[("", "descending")])[:EXAMPLES]
    values = counted.field("values").take(order).to_pylist()
    return [str(value)[:LONGEST_EXAMPLE] for value in values if str(value or "").strip()]


def _range(known: pa.ChunkedArray, kind: ColumnType) -> tuple[str, str]:
    if not len(known) or kind in (ColumnType.TEXT, ColumnType.BOOLEAN):
        return "", ""
    found = pc.min_max(known).as_py()
    return str(found["min"]), str(found["max"])


def _decimals(values: pa.ChunkedArray, text: pa.ChunkedArray, kind: ColumnType) -> int:
    """How many places after the point are written: sums are shown with as many."""
    if kind is not ColumnType.NUMBER or not pa.types.is_floating(values.type):
        return 0
    some = zip(
        values.slice(0, LOOKED_AT).to_pylist(), text.slice(0, LOOKED_AT).to_pylist(), strict=True
    )
    return min(6, max((_places(value, written) for value, written in some), default=0))


def _places(value: float | None, written: str) -> int:
    """Of one figure, by either convention."""
    match = DECIMALS.search(written)
    if value is None or match is None:
        return 0
    digits = re.sub(r"\D", "", written[: match.end()])
    places = len(match[1])
    return places if abs(int(digits) / 10**places - abs(value)) < 1e-9 * max(1, abs(value)) else 0

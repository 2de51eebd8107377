"""What is known of a column and of a table: for people, for the planner, and to be found by."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rag.records import ColumnType, TableColumn
from rag.tables.types import Reading

EXAMPLES = 12
LOOKED_AT = 2_000  # rows
DECIMALS = re.compile(r"[.,](\d+)(?!.*[.,]\d)")
LONGEST_EXAMPLE = 80
MOST_WORDS = 4_000  # of one table's values
WORD = re.compile(r"[^\W_]+(?:[.'’][^\W_]+)*")


def profile(
    name: str, reading: Reading, values: pa.ChunkedArray, text: pa.ChunkedArray, has_text: bool
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
        note=reading.note,
    )


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
    found = DECIMALS.search(written)
    if value is None or found is None:
        return 0
    digits = re.sub(r"\D", "", written[: found.end()])
    places = len(found[1])
    return places if abs(int(digits) / 10**places - abs(value)) < 1e-9 * max(1, abs(value)) else 0


def normalised(text: str) -> str:
    """Small letters without accents and signs, single blanks: what words are compared by."""
    plain = "".join(
        char
        for char in unicodedata.normalize("NFKD", text.casefold())
        if not unicodedata.combining(char)
    )
    return " ".join(WORD.findall(plain.replace("'", "").replace("’", "")))


def words_of(names: Iterable[str], columns: Sequence[TableColumn], texts: Iterable[str]) -> str:
    """The words that a table can be chosen by."""
    found: dict[str, None] = {}
    for text in (*names, *(column.name for column in columns), *texts):
        found.update(dict.fromkeys(normalised(text).split()))
        if len(found) > MOST_WORDS:
            break
    return " ".join(found)


def described(name: str, row_count: int, columns: Sequence[TableColumn]) -> str:
    """A table in words: what is embedded for a long one."""
    lines = [f"Table {name}: {row_count:,} rows, {len(columns)} columns."]
    for column in columns:
        unit = f" in {column.unit}" if column.unit else ""
        span = f", from {column.low} to {column.high}" if column.low else ""
        shown = ", ".join(column.examples[:6])
        lines.append(
            f"- {column.name}: {column.type}{unit}, {column.distinct:,} different{span}"
            + (f", such as {shown}" if shown else "")
        )
    return "\n".join(lines)

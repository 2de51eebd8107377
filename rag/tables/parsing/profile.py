"""What is known of a column: for people, for the planner, and to be found by."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rag.language.grids import is_blank, is_formula
from rag.records import ColumnType, TableColumn
from rag.tables.parsing.types import ColumnReading
from rag.tables.wordforms import LONGEST_EXAMPLE

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

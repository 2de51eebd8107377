"""Write the rows of a table as text in which every part can be understood alone.

A short table is one Markdown pipe table. A long one becomes several small ones, each of which
begins with the header again, so that no chunk loses the meaning of its columns. A table whose
header and one row would fill a chunk is written as `Column: value; …` lines.
"""

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile, zip_longest

from rag.documents.cleaning import one_line
from rag.language.amounts import parse_figure
from rag.language.grids import joined_name
from rag.records import RawTable

PART_WORDS = 80  # of one small table: about a chunk
PART_TOKENS = 205  # likewise, with its header: a longer part would be cut and lose it
FEWEST_TOKENS = 60  # of its rows, however long the header is
RULE_TOKENS = 4  # of the line below the header, for each column
WIDE_ROW_WORDS = 60  # header and first rows together
PIECE = re.compile(r"\d{1,2}|[^\W\d]{1,7}|[^\w\s]")
REPEATED_CHARS = 200  # of a cell over several rows or columns: a longer one is written once
Cells = Sequence[str]


class TypedCell(str):
    """The text of a cell with the value that its file holds, and its address in the sheet."""

    __slots__ = ("origin", "value")
    value: float | None  # None: text, or a formula without a stored result
    origin: str  # B7

    def __new__(cls, text: str, value: float | None = None, origin: str = "") -> "TypedCell":
        cell = super().__new__(cls, text)
        cell.value, cell.origin = value, origin
        return cell


Spanning = tuple[str, int, int]  # a cell: its text, and how many columns and rows it spans


def typed_cell(text: str, value: object, origin: str) -> str:
    """Make the cell of a value from a file; for any value but a number it is the plain text."""
    is_figure = isinstance(value, int | float) and not isinstance(value, bool)
    return TypedCell(text, float(value), origin) if is_figure else text  # type: ignore[arg-type]


def spread(rows: Sequence[Sequence[Spanning]], *, heads: int = 1) -> list[list[str]]:
    """Turn spanning cells into rows of single cells under one header row.

    The header is made of the first `heads` rows. A cell over several rows is repeated in each; one
    over several columns only in the header. A first row that has both a cell over columns and one
    over rows sets the depth of the header.
    """
    heads = _depth(rows, heads)
    above: dict[int, tuple[str, int]] = {}
    grid: list[list[str]] = []
    for index, row in enumerate(rows):
        cells: list[str] = []
        coming = list(reversed(row))
        repeats = index < heads and len(row) > 1
        while coming or len(cells) in above:
            text, left = above.pop(len(cells), ("", 0))
            if left:
                above |= {len(cells): (text, left - 1)} if left > 1 else {}
                cells.append(text)
                continue
            text, columns, deep = coming.pop()
            again = text if len(text) <= REPEATED_CHARS else ""
            for column in range(columns):
                beside = again if repeats or not column else ""
                above |= {len(cells): (beside, deep - 1)} if deep > 1 else {}
                cells.append(beside if column else text)
        grid.append(cells)
    if heads < 2 or len(grid) <= heads:
        return grid
    columns_above = zip_longest(*grid[:heads], fillvalue="")
    header = list(map(joined_name, columns_above))
    return [header, *grid[heads:]]


def _depth(rows: Sequence[Sequence[Spanning]], heads: int) -> int:
    """Return how many rows the header has; row labels beside it do not count."""
    if rows and any(columns > 1 for _text, columns, _deep in rows[0]):
        heads = max(heads, *(deep for _text, _columns, deep in rows[0]))
    inner = enumerate(rows[1:heads], start=1)
    return next(
        (position for position, row in inner if any(position + cell[2] > heads for cell in row)),
        heads,
    )


def clean_rows(rows: Sequence[Cells]) -> list[list[str]]:
    """Put each cell on one line, make rows equally long, drop empty rows and columns."""
    cleaned = [[one_line(cell) for cell in row] for row in rows]
    width = max((len(row) for row in cleaned), default=0)
    padded = [row + [""] * (width - len(row)) for row in cleaned if any(row)]
    used = [column for column in range(width) if any(row[column] for row in padded)]
    return [[row[column] for column in used] for row in padded]


def raw_table(name: str, locator: str, rows: Sequence[tuple[int, Cells]]) -> RawTable | None:
    """Make a table for queries from numbered rows; None if they are no grid."""
    width = max((len(row) for _number, row in rows), default=0)
    if width < 2 or len(rows) < 2:
        return None
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    padding = [""] * width
    for number, row in rows:  # `csv` does not quote a carriage return, which ends a row
        cells = (cell.replace("\r", "\n") for cell in row)
        writer.writerow([number, *cells, *padding[len(row) :]])
    return RawTable(name, locator, written.getvalue(), width, len(rows), _typed(rows, width))


def _typed(rows: Sequence[tuple[int, Cells]], width: int) -> tuple[int, ...]:
    """Return the columns that hold typed values: there `1.234` needs no interpretation."""
    values = [0] * width
    for _number, row in rows:
        for column, cell in enumerate(row):
            if isinstance(cell, TypedCell) and cell.value is not None:
                values[column] += 1
            elif parse_figure(cell):
                values[column] -= len(rows)  # a figure entered as text
    return tuple(column for column, count in enumerate(values) if count > 0)


def table_parts(rows: Sequence[Cells]) -> Iterator[str]:
    """Yield the text of each part of a cleaned table, in order.

    The first of `rows` is the header.
    """
    if not rows:
        return
    header, body = rows[0], rows[1:]
    if not body or len(header) == 1:
        for part in _groups(rows, PART_WORDS):
            yield "\n".join(" ; ".join(filter(None, row)) for row in part)
        return
    sample = body[:20]
    is_wide = _words(header) + sum(map(_words, sample)) / len(sample) > WIDE_ROW_WORDS
    write = _write_records if is_wide else _write_pipes
    above = 0 if is_wide else _estimated_tokens(header) + RULE_TOKENS * len(header)
    for part in _groups(body, PART_WORDS, max(PART_TOKENS - above, FEWEST_TOKENS)):
        yield write(header, part)


def _groups(rows: Sequence[Cells], limit: int, tokens: float = math.inf) -> Iterator[list[Cells]]:
    part: list[Cells] = []
    for row in rows:
        words = sum(map(_words, part)) + _words(row)
        size = sum(map(_estimated_tokens, part)) + _estimated_tokens(row)
        if part and (words > limit or size > tokens):
            opening = _opening(part)
            yield part[: len(part) - len(opening)]
            part = opening
        part.append(row)
    if part:
        yield part


def _opening(part: Sequence[Cells]) -> list[Cells]:
    """Return the last rows that hold only a label: they belong to the rows that follow."""
    labels = takewhile(lambda row: len(row) > 1 and row[0] and not any(row[1:]), part[:0:-1])
    return list(labels)[::-1]


def _estimated_tokens(row: Cells) -> int:
    """Estimate a row's tokens for an embedding model: digits count in pairs."""
    return sum(1 + len(PIECE.findall(cell)) for cell in row)


def _words(row: Cells) -> int:
    return sum(max(len(cell.split()), len(cell) // 9) for cell in row)


def _write_pipes(header: Cells, body: Sequence[Cells]) -> str:
    rows = (header, ["---"] * len(header), *body)
    cells = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def _write_records(header: Cells, body: Sequence[Cells]) -> str:
    records = (zip(header, row, strict=True) for row in body)
    return "\n".join(
        "- " + "; ".join(f"{name}: {cell}" if name else cell for name, cell in record if cell)
        for record in records
    )

"""Tables of a PDF page, found by where their cells stand.

Plan: a line whose words stand far apart is a row of cells. A run of such lines, with the fragments
of wrapped cells between them, is a table if its columns can be told apart: no cell of any row may
reach over the white stripe between two columns. Lines in one column that are as close as the lines
of a paragraph are one cell; cells that overlap in height are one row.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rag.documents.formats.pdf.lines import PdfCell, PdfLine

LINE_PITCH = 1.32  # of the type size: lines of one cell are not further apart
MAX_LINES = 400
CELL_WORDS = 14  # on average: more is text in columns


@dataclass(slots=True)
class _Block:
    """The lines of one cell."""

    column: int
    texts: list[str]
    top: float
    bottom: float


def table_at(lines: Sequence[PdfLine], start: int) -> tuple[list[list[str]], int] | None:
    """The rows of the table that begins at a line, and the line after it."""
    end = _region_end(lines, start)
    region = lines[start:end]
    wide = [line for line in region if len(line.cells) > 1]
    if len(wide) < 2 or _is_prose(region):
        return None
    columns = _columns(region)
    if len(columns) < 2 or len(wide) * (len(columns) - 1) < 3:
        return None
    rows = _rows(region, columns)
    full = [row for row in rows if sum(map(bool, row)) > 1]
    if len(full) < len(rows) / 2:
        return None
    return rows, end


def _region_end(lines: Sequence[PdfLine], start: int) -> int:
    """After the last line that has cells, and the fragments that belong to it."""
    end = start
    for at in range(start, min(len(lines), start + MAX_LINES)):
        line = lines[at]
        if line.bottom > lines[start].bottom + line.size * 3:
            break  # back to the top of the page: the next column of text
        if len(line.cells) > 1:
            end = at + 1
        elif at - end > 3 or (at > start and not _may_be_fragment(lines[start:at], line)):
            break  # cells wrap over a few lines, not over many
    while start < end < len(lines) and _is_rest(lines[end - 1], lines[end]):
        end += 1
    return end


def _may_be_fragment(region: Sequence[PdfLine], line: PdfLine) -> bool:
    """Whether a line without gaps may be of a wrapped cell: narrow, or below a later column."""
    left = min(each.left for each in region)
    width = max(each.right for each in region) - left
    starts = (cell.left for each in region for cell in each.cells[1:])
    is_below = any(abs(start - line.left) < line.size for start in starts)
    is_narrow = line.right - line.left < width * 0.5
    return (is_narrow or is_below) and left - 5 < line.left < left + width


def _is_rest(above: PdfLine, below: PdfLine) -> bool:
    """Whether a line is the last of a wrapped cell."""
    is_close = 0 <= above.bottom - below.bottom <= LINE_PITCH * below.size
    is_indented = len(above.cells) > 1 and below.left > above.cells[0].right
    return len(below.cells) == 1 and is_close and is_indented


def _columns(region: Sequence[PdfLine]) -> list[tuple[float, float]]:
    """Stripes of the page between which no row has words."""
    columns: list[tuple[float, float]] = []
    for cell in sorted((c for line in region for c in line.cells), key=lambda cell: cell.left):
        if columns and cell.left < columns[-1][1] + 1:
            columns[-1] = (columns[-1][0], max(columns[-1][1], cell.right))
        else:
            columns.append((cell.left, cell.right))
    return columns


def _is_prose(lines: Sequence[PdfLine]) -> bool:
    cells = [cell for line in lines for cell in line.cells]
    words = sum(len(cell.text.split()) for cell in cells) / len(cells)
    most = max(len(line.cells) for line in lines)
    return words > (CELL_WORDS if most > 2 else CELL_WORDS / 2)


def _rows(region: Sequence[PdfLine], columns: Sequence[tuple[float, float]]) -> list[list[str]]:
    blocks = _blocks(region, columns, pitch=LINE_PITCH)
    rows = _overlapping(blocks)
    heights = {round(line.bottom / 3) for line in region}
    if len(rows) < len(heights) / 2.5:  # rows as tight as lines: each height is a row
        rows = _overlapping(_blocks(region, columns, pitch=0))
    return [_row(row, len(columns)) for row in rows]


def _blocks(
    region: Sequence[PdfLine], columns: Sequence[tuple[float, float]], *, pitch: float
) -> list[_Block]:
    blocks: list[_Block] = []
    placed = [
        (_column_of(cell, columns), -line.bottom, line, cell)
        for line in region
        for cell in line.cells
    ]
    for column, _height, line, cell in sorted(placed, key=lambda each: each[:2]):
        last = blocks[-1] if blocks else None
        if last and last.column == column and last.bottom - line.bottom <= pitch * line.size:
            last.texts.append(cell.text)
            last.bottom = line.bottom
        else:
            top = line.bottom + line.size * 0.8
            blocks.append(_Block(column, [cell.text], top, line.bottom))
    return blocks


def _column_of(cell: PdfCell, columns: Sequence[tuple[float, float]]) -> int:
    return next(at for at, (left, right) in enumerate(columns) if left <= cell.left <= right)


def _overlapping(blocks: Sequence[_Block]) -> list[list[_Block]]:
    """Blocks that share some height, from top to bottom."""
    rows: list[list[_Block]] = []
    lowest = 0.0
    for block in sorted(blocks, key=lambda block: -block.top):
        if rows and block.top > lowest + 1:
            rows[-1].append(block)
            lowest = min(lowest, block.bottom)
        else:
            rows.append([block])
            lowest = block.bottom
    return rows


def _row(blocks: Sequence[_Block], width: int) -> list[str]:
    cells = [""] * width
    for block in blocks:
        cells[block.column] = f"{cells[block.column]} {' '.join(block.texts)}".strip()
    return cells

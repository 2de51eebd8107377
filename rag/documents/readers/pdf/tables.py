"""Find the tables of a PDF page by the positions of their cells.

Columns are vertical gaps that no row crosses; the header is above them. Where lines end in figures,
each is a row, the text before the figures is its label, and a label may wrap or be alone. Other
rows are lines with words far apart: lines in one column as close as those of a paragraph are one
cell, and cells that overlap in height are one row.

Headers are stacked, centred, over one column or several, and as narrow as the words allow, so that
gaps do not tell them from other lines. The columns below do: words belong to the header as far up
as lines are above columns.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise, takewhile

from rag.documents.readers.pdf.lines import CLAUSE, PdfCell, PdfLine, join_lines
from rag.language.grids import YEAR, is_amount
from rag.language.words import read_lists

IN_UNITS = read_lists("filings")["in_units"]
UNITS = re.compile(rf"\(?[^().]{{0,40}}\b{IN_UNITS}\b[^().]{{0,90}}\)?", re.I)
LABEL_WORDS = 18
LABELS_IN_A_ROW = 3
HEADER_WORDS = 9
HEADER_LINES = 48
ABOVE = 6  # lines above in which the unit of the figures may be
ALIGNED = 2.0  # points
LABEL_GAP = 0.5  # of the type size, between the label column's header and the next
Columns = list[tuple[float, float]]


def is_figure(cell: PdfCell) -> bool:
    """Return whether a cell is a figure, or a placeholder such as a dash."""
    return is_amount(cell.text)


def columns_of(cells: Sequence[PdfCell], apart: float = 0.0) -> Columns:
    """Return the horizontal ranges of the columns, between which no cell has words."""
    columns: Columns = []
    for cell in sorted(cells, key=lambda cell: cell.left):
        if columns and cell.left < columns[-1][1] + apart:
            columns[-1] = (columns[-1][0], max(columns[-1][1], cell.right))
        else:
            columns.append((cell.left, cell.right))
    return columns


def place_in(cell: PdfCell, columns: Columns) -> int:
    """Return the column in which a cell begins; it is one of those that formed the columns."""
    return next(index for index, (left, right) in enumerate(columns) if left <= cell.left <= right)


def is_label(line: PdfLine, edge: float) -> bool:
    """Return whether a line is entirely left of the figures."""
    return line.right < edge + 2 * line.size and len(line.text.split()) <= LABEL_WORDS


@dataclass(frozen=True, slots=True)
class HeaderPlace:
    """The positions of the columns beside the labels, and the first row."""

    row: PdfLine
    columns: Columns

    @property
    def labels_end(self) -> float:
        first = self.row.cells[0]
        return first.right if not is_figure(first) else self.columns[0][0] - 2 * self.row.size

    def cells(self, line: PdfLine) -> list[PdfCell]:
        """Split a line into header cells, close ones where columns end or begin."""
        cells: list[PdfCell] = []
        for cell in line.cells:
            words = [w for w in line.words if cell.left <= w.left and w.right <= cell.right]
            parts = [
                PdfCell(" ".join(word.text for word in run), run[0].left, run[-1].right)
                for run in (list(group) for _column, group in groupby(words, key=self._nearest))
            ]
            is_labelled = len(parts) > 1 and self._nearest(parts[0]) < 0
            over = parts[1:] if is_labelled else parts
            is_apart = len(parts) > 1 and all(map(self._is_aligned, over))
            if is_labelled and parts[1].left - parts[0].right < LABEL_GAP * line.size:
                is_apart = False
            cells.extend(parts if is_apart else [cell])
        return cells

    def _nearest(self, word: PdfCell) -> int:
        """Return the column above or next to which a word is; -1 for the labels."""
        if word.right < self.columns[0][0] - self.row.size:
            return -1
        apart = [max(word.left - right, left - word.right) for left, right in self.columns]
        return apart.index(min(apart))

    def _is_aligned(self, cell: PdfCell) -> bool:
        left, right = self.columns[self._nearest(cell)]
        ends = (cell.left - left, cell.right - right, _centre(cell) - (left + right) / 2)
        return any(abs(end) < ALIGNED for end in ends)

    def is_before(self, cell: PdfCell) -> bool:
        """Return whether a cell is above the labels."""
        return cell.right < self.columns[0][0]

    def is_caption(self, cell: PdfCell) -> bool:
        """Return whether a cell is centred over the whole table with its labels, not one column."""
        is_inside = any(
            left - 4 <= cell.left and cell.right <= right + 4 for left, right in self.columns
        )
        is_its_own = is_inside or self._is_aligned(cell)
        middle = (self.row.left + self.row.right) / 2
        return not is_its_own and abs(_centre(cell) - middle) < 8 and not YEAR.search(cell.text)

    def is_over(self, cell: PdfCell) -> bool:
        """Return whether a cell is above columns, even if wider than their figures."""
        starts = cell.left > self.labels_end + 4 and cell.right >= self.columns[0][0]
        is_inside = any(left <= _centre(cell) <= right for left, right in self.columns)
        return len(cell.text.split()) <= HEADER_WORDS and (starts or is_inside)


def header_start(lines: Sequence[PdfLine], free: int, start: int, place: HeaderPlace) -> int:
    """Return the first line of the header; labels that open the first group are below it."""
    first = start
    while first > max(free, start - LABELS_IN_A_ROW):
        above = lines[first - 1]
        is_near = 0 < above.bottom - lines[first].bottom < 3 * above.size
        is_before = len(above.cells) == 1 and place.is_before(above.cells[0])
        if not (is_near and is_before and is_label(above, place.columns[0][0])):
            break
        first -= 1
    position = first
    top = lines[position].bottom
    while position > free and first - position < HEADER_LINES:
        line = lines[position - 1]
        is_near = lines[start].bottom < line.bottom <= top + 2.3 * line.size
        if not is_near or not _is_header(line, place):
            break
        top = max(top, line.bottom)
        position -= 1
    return position if position < first else _labels_start(lines, first, start)


def _labels_start(lines: Sequence[PdfLine], first: int, start: int) -> int:
    """Return where the labels before the first row begin, in a table without a header.

    Only a line that ends in a colon opens a group, if it does not end a paragraph.
    """
    labels = takewhile(lambda line: line.text.endswith(":"), reversed(lines[first:start]))
    position = start - sum(1 for _label in labels)
    above = lines[position - 1] if position else None
    is_tail = above and above.right > lines[start].right - 60 and len(above.cells) == 1
    return start if is_tail else position


def _is_header(line: PdfLine, place: HeaderPlace) -> bool:
    """Return whether a line's words are above the columns; the first may be above the labels."""
    cells = place.cells(line)
    if len(cells) > 1 and place.is_before(cells[0]):
        cells = cells[1:]
    if not cells or (len(cells) == 1 and place.is_caption(cells[0])):
        return False
    words = sum(bool(YEAR.fullmatch(cell.text)) or not is_figure(cell) for cell in cells)
    is_named = words * 2 > len(cells) and not line.text.endswith(".")
    return is_named and all(map(place.is_over, cells))


def _centre(cell: PdfCell) -> float:
    return (cell.left + cell.right) / 2


def header_of(lines: Sequence[PdfLine], place: HeaderPlace) -> tuple[list[str], list[PdfLine]]:
    """Return each column's header, the labels' first, and the labels that open the first group."""
    size = max((line.size for line in lines), default=0.0)
    over = [line for line in lines if not all(map(place.is_before, place.cells(line)))]
    lowest = min((line.bottom for line in over), default=float("inf"))
    opening = [line for line in lines if line not in over and line.bottom < lowest - 0.3 * size]
    words: list[list[str]] = [[] for _column in range(len(place.columns) + 1)]
    for level in _levels([line for line in lines if line not in opening], size, place):
        words[0] += [cell.text for cell in level if place.is_before(cell)]
        cells = [cell for cell in level if not place.is_before(cell)]
        for index, text in enumerate(_spread(cells, place.columns), start=1):
            words[index] += [text] if text else []
    return [" ".join(word) for word in words], opening


def _levels(lines: Sequence[PdfLine], size: float, place: HeaderPlace) -> list[list[PdfCell]]:
    """Return cells of about one height from left to right, from the top down."""
    levels: list[list[PdfCell]] = []
    top = float("inf")
    for line in sorted(lines, key=lambda line: -line.bottom):
        if top - line.bottom > 0.32 * size:
            levels.append([])
            top = line.bottom
        levels[-1] += place.cells(line)
    return [sorted(cells, key=lambda cell: cell.left) for cells in levels]


def _spread(cells: Sequence[PdfCell], columns: Columns) -> list[str]:
    """Return for each column the cell of one level above it; one may span several columns."""
    if not cells:
        return [""] * len(columns)
    centres = [(left + right) / 2 for left, right in columns]
    nearest = [min(cells, key=lambda cell: abs(_centre(cell) - centre)) for centre in centres]
    if all(_is_balanced(cell, nearest, centres) for cell in cells):
        return [cell.text for cell in nearest]
    texts = [""] * len(columns)
    for cell in cells:
        places = range(len(columns))
        covered = [place for place in places if cell.left <= centres[place] <= cell.right]
        closest = min(places, key=lambda place: abs(centres[place] - _centre(cell)))
        for place in covered or [closest]:
            texts[place] = f"{texts[place]} {cell.text}".strip()
    return texts


def _is_balanced(cell: PdfCell, nearest: Sequence[PdfCell], centres: Sequence[float]) -> bool:
    """Return whether a cell is above the middle of the columns nearest to it."""
    under = [centre for centre, other in zip(centres, nearest, strict=True) if other is cell]
    pitch = (centres[-1] - centres[0]) / max(1, len(centres) - 1) or 60.0
    return bool(under) and abs(_centre(cell) - (under[0] + under[-1]) / 2) < 0.42 * pitch


AMOUNT = re.compile(r"[$€£¥%]|\d[,.]\d|\(\d+\)")
FARTHEST = 3.4  # of the type size: greatest distance of rows in a table
MOST_FIGURES = 0.6  # of the cells beside a label
LINE_PITCH = 1.32  # of the type size: greatest distance of lines in a cell
MAX_LINES = 400
CELL_WORDS = 14  # on average; with more it is text in columns


@dataclass(frozen=True, slots=True)
class PdfTable:
    """A table: the lines that it takes, and its rows, the header first."""

    start: int
    end: int
    rows: list[list[str]]
    may_go_on: bool = False  # its first row may continue the table before


@dataclass(frozen=True, slots=True)
class _FigureRow:
    """A line with labels and values, either of which may be missing."""

    labels: tuple[PdfCell, ...]
    bottom: float
    values: tuple[PdfCell, ...]

    @property
    def label(self) -> str:
        return " ".join(cell.text for cell in self.labels)

    @property
    def left(self) -> float:
        return self.labels[0].left if self.labels else -1.0


@dataclass(slots=True)
class _Block:
    """The lines of one cell."""

    column: int
    texts: list[str]
    top: float
    bottom: float


def find_tables(lines: Sequence[PdfLine], levels: Sequence[int]) -> Iterator[PdfTable]:
    """Yield the tables of a page in order; they share no line.

    `levels` are the lines' heading levels.
    """
    position = free = 0
    while position < len(lines):
        end = _run_end(lines, position) if _is_row(lines[position]) else position + 1
        table = _figure_table(lines, free, position, end) if end > position + 1 else None
        if table:
            yield from _word_tables(lines, levels, free, table.start)
            yield table
            free = table.end
        position = end
    yield from _word_tables(lines, levels, free, len(lines))


# ── Rows of figures ──────────────────────────────────────────────────────────────────────────


def _is_row(line: PdfLine) -> bool:
    row = _row(line)
    figures = [cell for cell in row.values if is_figure(cell)]
    if not any(character.isdigit() for cell in figures for character in cell.text):
        return False
    is_most = len(figures) >= MOST_FIGURES * len(row.values)
    return not _is_years(row) and is_most and 2 * len(figures) >= len(line.cells) - 1


def _is_years(row: _FigureRow) -> bool:
    """Return whether the figures are only years above columns, such as 2022 and 2023."""
    years = [bool(YEAR.fullmatch(cell.text)) for cell in row.values if is_figure(cell)]
    return all(years) and (not row.label or len(years) > 1)


def _row(line: PdfLine) -> _FigureRow:
    cells = [cell for cell in line.cells if any(map(str.isalnum, cell.text)) or is_figure(cell)]
    first = next((index for index, cell in enumerate(cells) if is_figure(cell)), len(cells))
    return _FigureRow(tuple(cells[:first]), line.bottom, tuple(cells[first:]))


def _run_end(lines: Sequence[PdfLine], start: int) -> int:
    """Return the line after the last row of the run; labels between rows belong to it."""
    end = start + 1
    edge = min(cell.left for cell in _row(lines[start]).values)
    for position in range(start + 1, len(lines)):
        line, drop = lines[position], lines[position - 1].bottom - lines[position].bottom
        if not 0 < drop < FARTHEST * line.size:
            break
        if _is_further_row(line, drop, is_next=end == position):
            edge = min(edge, *(cell.left for cell in _row(line).values))
            end = position + 1
        elif not is_label(line, edge) or position - end >= LABELS_IN_A_ROW:
            break
    return end


def _is_further_row(line: PdfLine, drop: float, *, is_next: bool) -> bool:
    """Return whether a line below rows is a row: with a label also one of dashes or years.

    A single figure far below is the page number.
    """
    row = _row(line)
    if row.label and row.values and all(map(is_figure, row.values)):
        return _is_row(line) or is_next or (len(row.values) > 1 and not _is_years(row))
    return _is_row(line) and (len(row.values) > 1 or drop < 1.5 * line.size)


def _figure_table(lines: Sequence[PdfLine], free: int, start: int, end: int) -> PdfTable | None:
    rows = _labelled([_row(line) for line in lines[start:end]])
    columns = columns_of([cell for row in rows for cell in row.values])
    full = [row for row in rows if row.values]
    places = [[place_in(cell, columns) for cell in row.values] for row in full]
    if len(full) < 2 or any(len(set(row)) < len(row) for row in places):
        return None
    place = HeaderPlace(lines[start], columns)
    first = header_start(lines, free, start, place)
    header, opening = header_of(lines[first:start], place)
    amounts = sum(any(AMOUNT.search(cell.text) for cell in row.values) for row in full)
    if len(columns) < 2 and (amounts < len(full) / 2 or (len(full) < 3 and not any(header))):
        return None
    above = " ".join(line.text for line in lines[max(free, first - ABOVE) : first])
    units = UNITS.findall(above)  # "(in millions)"
    header[0] = header[0] or (units[-1].strip() if units else "")
    body = _written([*map(_row, opening), *rows], columns)
    return PdfTable(first, end, [header, *body])


def _labelled(rows: Sequence[_FigureRow]) -> list[_FigureRow]:
    """Move first cells to the labels: in `2025 | 269` the year, where other rows begin with words.

    In `Notes | Level 2 | 269` only the first words are the label, where the others are set apart.
    """
    edge = min((row.values[0].left for row in rows if row.labels and row.values), default=0.0)
    beside = [cell for row in rows for cell in row.labels[1:] if row.values]
    most = max((row.labels[0].right for row in rows if row.labels and row.values), default=0.0)
    is_apart = bool(beside) and most < min(cell.left for cell in beside)
    firsts = [(*row.labels, *row.values)[0] for row in rows if row.values]
    edge = edge or (firsts[0].right + 1 if all(YEAR.fullmatch(c.text) for c in firsts) else 0.0)
    labelled: list[_FigureRow] = []
    for row in rows:
        cells = (*row.labels, *row.values)
        is_year = not row.labels and len(cells) > 1 and cells[0].right < edge
        if is_year or (row.values and row.labels and is_apart):
            row = _FigureRow(cells[:1], row.bottom, cells[1:])
        labelled.append(row)
    return labelled


def _written(rows: Sequence[_FigureRow], columns: Columns) -> list[list[str]]:
    """Return the rows with wrapped labels joined; repeated labels get that of their group."""
    whole = list(_unwrapped(rows))
    names = [row.label for row in whole]
    above: list[_FigureRow] = []
    written: list[list[str]] = []
    for row in whole:
        above = [other for other in above if other.left < row.left - 2]
        label = row.label
        if row.values and names.count(label) > 1 and above:
            label = f"{above[-1].label.rstrip(':')}: {label}"
        if not row.values:
            above.append(row)
        cells = [label] + [""] * len(columns)
        for cell in row.values:
            cells[place_in(cell, columns) + 1] = cell.text
        written.append(cells)
    return written


def _unwrapped(rows: Sequence[_FigureRow]) -> Iterator[_FigureRow]:
    drops = sorted(a.bottom - b.bottom for a, b in pairwise(rows))
    usual = drops[len(drops) // 2] if drops else 0.0
    figure_row: _FigureRow | None = None
    for row in rows:
        if figure_row is not None:
            is_close = figure_row.bottom - row.bottom < 0.9 * usual
            goes_on = not figure_row.label.endswith(":") and (is_close or row.label[:1].islower())
            if goes_on or not row.label:
                row = _FigureRow((*figure_row.labels, *row.labels), row.bottom, row.values)
            else:
                yield figure_row
        figure_row = None if row.values else row
        if row.values:
            yield row
    if figure_row is not None:
        yield figure_row


# ── Rows of words ────────────────────────────────────────────────────────────────────────────


def _word_tables(
    lines: Sequence[PdfLine], levels: Sequence[int], start: int, end: int
) -> Iterator[PdfTable]:
    position = free = start
    while position < end:
        stop = next((to for to in range(position, end) if levels[to]), end)
        may_begin = position < stop and (
            len(lines[position].cells) > 1 or _is_split(lines[position:stop])
        )
        table = _word_table(lines[:stop], free, position) if may_begin else None
        if table:
            yield table
            free = table.end
        position = table.end if table else position + 1


def _is_split(lines: Sequence[PdfLine]) -> bool:
    """Return whether a line begins a wrapped first cell whose row continues beside it."""
    following = next((line for line in lines[1:4] if len(line.cells) > 1), None)
    if following is None or len(lines[0].cells) != 1:
        return False
    return following.bottom > lines[0].bottom - lines[0].size * 0.9


def _word_table(lines: Sequence[PdfLine], free: int, start: int) -> PdfTable | None:
    end = _region_end(lines, start)
    region = lines[start:end]
    wide = [line for line in region if len(line.cells) > 1]
    if len(wide) < 2 or _has_long_cells(region):
        return None
    if all(len(line.cells) == 2 and CLAUSE.fullmatch(line.cells[0].text) for line in wide):
        return None  # numbered clauses, which have no header
    columns = columns_of([cell for line in region for cell in line.cells], 1.0)
    if len(columns) < 2 or len(wide) * (len(columns) - 1) < 3:
        return None
    rows = _rows(region, columns)
    full = [row for row in rows if sum(map(bool, row)) > 1]
    if len(full) < len(rows) / 2:
        return None
    return PdfTable(start, end, rows, may_go_on=not lines[start].is_bold)


def _region_end(lines: Sequence[PdfLine], start: int) -> int:
    """Return the line after the last one with cells and the fragments that belong to it."""
    end = start
    for position in range(start, min(len(lines), start + MAX_LINES)):
        line = lines[position]
        if line.bottom > lines[start].bottom + line.size * 3:
            break  # back at the top of the page: the next column of text
        if len(line.cells) > 1:
            end = position + 1
        elif position - end > 3 or (
            position > start and not _may_be_fragment(lines[start:position], line)
        ):
            break  # cells wrap over a few lines, not over many
    while start < end < len(lines) and _is_rest(lines[end - 1], lines[end]):
        end += 1
    return end


def _may_be_fragment(region: Sequence[PdfLine], line: PdfLine) -> bool:
    """Return whether a line may be part of a wrapped cell: narrow, or below a later column."""
    left = min(other.left for other in region)
    width = max(other.right for other in region) - left
    starts = (cell.left for other in region for cell in other.cells[1:])
    is_below = any(abs(start - line.left) < line.size for start in starts)
    is_narrow = line.right - line.left < width * 0.5
    return (is_narrow or is_below) and left - 5 < line.left < left + width


def _is_rest(above: PdfLine, below: PdfLine) -> bool:
    """Return whether a line is the last of a wrapped cell."""
    is_close = 0 <= above.bottom - below.bottom <= LINE_PITCH * below.size
    is_indented = len(above.cells) > 1 and below.left > above.cells[0].right
    return len(below.cells) == 1 and is_close and is_indented


def _has_long_cells(lines: Sequence[PdfLine]) -> bool:
    cells = [cell for line in lines for cell in line.cells]
    words = sum(len(cell.text.split()) for cell in cells) / len(cells)
    most = max(len(line.cells) for line in lines)
    return words > (CELL_WORDS if most > 2 else CELL_WORDS / 2)


def _rows(region: Sequence[PdfLine], columns: Columns) -> list[list[str]]:
    rows = _rows_of_blocks(region, columns, pitch=LINE_PITCH)
    heights = {round(line.bottom / 3) for line in region}
    if len(rows) < len(heights) / 2.5:  # rows are as close as lines: each height is a row
        rows = _rows_of_blocks(region, columns, pitch=0)
    written = [[""] * len(columns) for _row in rows]
    for cells, row in zip(written, rows, strict=True):
        for block in row:
            cells[block.column] = f"{cells[block.column]} {join_lines(block.texts)}".strip()
    return written


def _rows_of_blocks(
    region: Sequence[PdfLine], columns: Columns, *, pitch: float
) -> list[list[_Block]]:
    """Join lines of one column to cells, and group cells that overlap in height to rows."""
    blocks: list[_Block] = []
    placed = [(place_in(cell, columns), line, cell) for line in region for cell in line.cells]
    for column, line, cell in sorted(placed, key=lambda place: (place[0], -place[1].bottom)):
        last = blocks[-1] if blocks else None
        if last and last.column == column and last.bottom - line.bottom <= pitch * line.size:
            last.texts.append(cell.text)
            last.bottom = line.bottom
        else:
            blocks.append(_Block(column, [cell.text], line.bottom + line.size * 0.8, line.bottom))
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

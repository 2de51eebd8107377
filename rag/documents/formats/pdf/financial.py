"""Tables of figures on a PDF page: financial statements, with the periods above their columns.

Their headers are stacked, centred and as narrow as the words allow, so that they cannot be told
from other lines by gaps. Their figures can: a run of lines that end in figures is a table; what
stands above a column of figures, as far up as such words go, is its header.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from rag.documents.formats.pdf.filing import SAID
from rag.documents.formats.pdf.lines import PdfCell, PdfLine

FIGURE = re.compile(
    r"[(+−-]*\s?(?:[A-Z]{0,3}[$€£¥])?\s?[(−-]?\d[\d,.]*\s?(?:[%x×]|bps|pts?\.?)?\s?\)?%?(?:\s?\(\w{1,2}\))?"
    r"|[$€£¥]?\s?[—–-]+\s?%?|n\.?/?[am]\.?|\*{1,2}|[—–-]\s?%",
    re.IGNORECASE,
)
AMOUNT = re.compile(r"[$€£¥%]|\d[,.]\d|\(\d+\)")
YEAR = re.compile(r"(?:FY\s?)?(?:19|20)\d\d\*?")
UNITS = re.compile(rf"\(?[^().]{{0,40}}\b{SAID['in_units']}\b[^().]{{0,90}}\)?", re.I)
LABEL_WORDS = 18
HEADER_WORDS = 9
HEADER_LINES = 48
LABELS_IN_A_ROW = 3
FARTHEST = 3.4  # of the type size: rows that belong together are not further apart
ABOVE = 6  # lines among which the unit of the figures is said


@dataclass(frozen=True, slots=True)
class Figures:
    """A table: the lines that it takes, and its rows, the header first."""

    start: int
    end: int
    rows: list[list[str]]


@dataclass(frozen=True, slots=True)
class _FigureRow:
    """A line with a label, perhaps none, and figures, perhaps none."""

    label: str
    left: float
    bottom: float
    figures: tuple[PdfCell, ...]


Columns = list[tuple[float, float]]


def figure_tables(lines: Sequence[PdfLine]) -> Iterator[Figures]:
    """The tables of figures among a page's lines, in order; they share no line."""
    at = free = 0
    while at < len(lines):
        end = _run_end(lines, at) if _is_row(lines[at]) else at
        table = _table(lines, free, at, end) if end > at else None
        if table is not None:
            yield table
            free = table.end
        at = max(end, at + 1)


# ── Rows ─────────────────────────────────────────────────────────────────────────────────────


def _is_row(line: PdfLine) -> bool:
    row = _row(line)
    if not any(character.isdigit() for cell in row.figures for character in cell.text):
        return False
    return not _is_years(row) and len(row.figures) >= len(line.cells) - 1


def _is_years(row: _FigureRow) -> bool:
    """2022 and 2023 above columns are no figures."""
    years = [bool(YEAR.fullmatch(cell.text)) for cell in row.figures]
    return all(years) and (not row.label or len(years) > 1)


def _row(line: PdfLine) -> _FigureRow:
    cells = [cell for cell in line.cells if any(map(str.isalnum, cell.text)) or _is_figure(cell)]
    first = next((at for at, cell in enumerate(cells) if _is_figure(cell)), len(cells))
    label = " ".join(cell.text for cell in cells[:first])
    left = cells[0].left if first else -1.0
    return _FigureRow(label, left, line.bottom, tuple(filter(_is_figure, cells[first:])))


def _is_figure(cell: PdfCell) -> bool:
    return bool(FIGURE.fullmatch(cell.text.strip()))


def _run_end(lines: Sequence[PdfLine], start: int) -> int:
    """The line after the last row of the run; labels between rows belong to it."""
    end = start + 1
    edge = min(cell.left for cell in _row(lines[start]).figures)
    for at in range(start + 1, len(lines)):
        line, drop = lines[at], lines[at - 1].bottom - lines[at].bottom
        if not 0 < drop < FARTHEST * line.size:
            break
        if _goes_on(line, drop, is_next=end == at):
            edge = min(edge, *(cell.left for cell in _row(line).figures))
            end = at + 1
        elif not _is_label(line, edge) or at - end >= LABELS_IN_A_ROW:
            break
    return end


def _goes_on(line: PdfLine, drop: float, *, is_next: bool) -> bool:
    """Whether a line below rows is one more: of dashes or of years, too, if it has a label.

    A lonely figure is the number of the page.
    """
    row = _row(line)
    if row.label and row.figures:
        return _is_row(line) or is_next or (len(row.figures) > 1 and not _is_years(row))
    return _is_row(line) and (len(row.figures) > 1 or drop < 1.5 * line.size)


def _is_label(line: PdfLine, edge: float) -> bool:
    """Whether it stands wholly before the figures."""
    return line.right < edge + 2 * line.size and len(line.text.split()) <= LABEL_WORDS


def _table(lines: Sequence[PdfLine], free: int, start: int, end: int) -> Figures | None:
    rows = _labelled([_row(line) for line in lines[start:end]])
    columns = _columns(rows)
    full = [row for row in rows if row.figures]
    if len(full) < 2 or not all(_fits(row, columns) for row in full):
        return None
    place = _FigureColumns(lines[start], columns)
    first = _header_start(lines, free, start, place)
    header, opening = _header(lines[first:start], place)
    amounts = sum(any(AMOUNT.search(cell.text) for cell in row.figures) for row in full)
    if len(columns) < 2 and (amounts < len(full) / 2 or (len(full) < 3 and not any(header))):
        return None
    header[0] = header[0] or _units(lines[max(free, first - ABOVE) : first])
    body = _written([*map(_row, opening), *rows], columns)
    return Figures(first, end, [header, *body])


def _labelled(rows: Sequence[_FigureRow]) -> list[_FigureRow]:
    """`2025 | 269` in a table whose other rows begin with words: the year is a label."""
    edge = min((row.figures[0].left for row in rows if row.label and row.figures), default=0.0)
    return [
        _FigureRow(row.figures[0].text, row.figures[0].left, row.bottom, row.figures[1:])
        if not row.label and len(row.figures) > 1 and row.figures[0].right < edge
        else row
        for row in rows
    ]


def _columns(rows: Sequence[_FigureRow]) -> Columns:
    columns: Columns = []
    for cell in sorted((c for row in rows for c in row.figures), key=lambda cell: cell.left):
        if columns and cell.left < columns[-1][1]:
            columns[-1] = (columns[-1][0], max(columns[-1][1], cell.right))
        else:
            columns.append((cell.left, cell.right))
    return columns


def _fits(row: _FigureRow, columns: Columns) -> bool:
    places = [_place(cell, columns) for cell in row.figures]
    return len(set(places)) == len(places)


def _place(cell: PdfCell, columns: Columns) -> int:
    return next(at for at, (left, right) in enumerate(columns) if left <= cell.left <= right)


def _written(rows: Sequence[_FigureRow], columns: Columns) -> list[list[str]]:
    """Wrapped labels put together; one that names several rows says under which it stands."""
    whole = list(_unwrapped(rows))
    names = [row.label for row in whole]
    above: list[_FigureRow] = []
    written: list[list[str]] = []
    for row in whole:
        above = [other for other in above if other.left < row.left - 2]
        label = row.label
        if row.figures and names.count(label) > 1 and above:
            label = f"{above[-1].label.rstrip(':')}: {label}"
        if not row.figures:
            above.append(row)
        cells = [label] + [""] * len(columns)
        for cell in row.figures:
            cells[_place(cell, columns) + 1] = cell.text
        written.append(cells)
    return written


def _unwrapped(rows: Sequence[_FigureRow]) -> Iterator[_FigureRow]:
    drops = sorted(a.bottom - b.bottom for a, b in pairwise(rows))
    usual = drops[len(drops) // 2] if drops else 0.0
    held: _FigureRow | None = None
    for row in rows:
        if held is not None:
            is_close = held.bottom - row.bottom < 0.9 * usual
            goes_on = not held.label.endswith(":") and (is_close or row.label[:1].islower())
            if goes_on or not row.label:
                row = _FigureRow(
                    f"{held.label} {row.label}".strip(), held.left, row.bottom, row.figures
                )
            else:
                yield held
        held = None if row.figures else row
        if row.figures:
            yield row
    if held is not None:
        yield held


# ── Headers ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _FigureColumns:
    """Where the columns of figures are, and the first row, which has labels beside them."""

    row: PdfLine
    columns: Columns

    @property
    def labels_end(self) -> float:
        first = self.row.cells[0]
        return first.right if not _is_figure(first) else self.columns[0][0] - 2 * self.row.size

    def is_before(self, cell: PdfCell) -> bool:
        """Whether it stands over the labels."""
        return cell.right < self.columns[0][0]

    def is_caption(self, cell: PdfCell) -> bool:
        """Centred over the whole table, labels included, and over no single column."""
        is_inside = any(
            left - 4 <= cell.left and cell.right <= right + 4 for left, right in self.columns
        )
        middle = (self.row.left + self.row.right) / 2
        return not is_inside and abs(_centre(cell) - middle) < 8 and not YEAR.search(cell.text)

    def is_over(self, cell: PdfCell) -> bool:
        """Whether it stands over columns, be it broader than their figures."""
        starts = cell.left > self.labels_end + 4 and cell.right >= self.columns[0][0]
        is_inside = any(left <= _centre(cell) <= right for left, right in self.columns)
        has_room = len(cell.text.split()) <= HEADER_WORDS
        is_word = bool(YEAR.fullmatch(cell.text)) or not _is_figure(cell)
        return has_room and is_word and (starts or is_inside)


def _header_start(lines: Sequence[PdfLine], free: int, start: int, place: _FigureColumns) -> int:
    """The first line of the header; labels that open the first group stand below it."""
    at = start
    while at > free and start - at < LABELS_IN_A_ROW and _is_opening(lines, at, place):
        at -= 1
    first, top = at, lines[at].bottom
    while at > free and first - at < HEADER_LINES:
        line = lines[at - 1]
        is_near = lines[start].bottom < line.bottom <= top + 2.3 * line.size
        if not is_near or not _is_header(line, place):
            break
        top = max(top, line.bottom)
        at -= 1
    return at if at < first else _labels_start(lines, first, start)


def _is_opening(lines: Sequence[PdfLine], at: int, place: _FigureColumns) -> bool:
    above = lines[at - 1]
    drop = above.bottom - lines[at].bottom
    is_before = len(above.cells) == 1 and place.is_before(above.cells[0])
    return 0 < drop < 3 * above.size and is_before and _is_label(above, place.columns[0][0])


def _labels_start(lines: Sequence[PdfLine], first: int, start: int) -> int:
    """Without a header, only what ends in a colon opens a group, if it ends no paragraph."""
    at = start
    while at > first and lines[at - 1].text.endswith(":"):
        at -= 1
    above = lines[at - 1] if at else None
    is_tail = above and above.right > lines[start].right - 60 and len(above.cells) == 1
    return start if is_tail else at


def _is_header(line: PdfLine, place: _FigureColumns) -> bool:
    """Words that stand over the columns; the first of several may be over the labels."""
    is_labelled = len(line.cells) > 1 and place.is_before(line.cells[0])
    cells = line.cells[1:] if is_labelled else line.cells
    if not cells or (len(cells) == 1 and place.is_caption(cells[0])):
        return False
    return all(map(place.is_over, cells)) and not line.text.endswith(".")


def _centre(cell: PdfCell) -> float:
    return (cell.left + cell.right) / 2


def _header(lines: Sequence[PdfLine], place: _FigureColumns) -> tuple[list[str], list[PdfLine]]:
    """The header of each column, the labels' first; and the labels that open the first group."""
    size = max((line.size for line in lines), default=0.0)
    over = [line for line in lines if not all(map(place.is_before, line.cells))]
    lowest = min((line.bottom for line in over), default=float("inf"))
    opening = [line for line in lines if line not in over and line.bottom < lowest - 0.3 * size]
    words: list[list[str]] = [[] for _column in range(len(place.columns) + 1)]
    for level in _levels([line for line in lines if line not in opening], size):
        words[0] += [cell.text for cell in level if place.is_before(cell)]
        cells = [cell for cell in level if not place.is_before(cell)]
        for at, text in enumerate(_spread(cells, place.columns), start=1):
            words[at] += [text] if text else []
    return [" ".join(found) for found in words], opening


def _levels(lines: Sequence[PdfLine], size: float) -> Iterator[list[PdfCell]]:
    """Cells of about one height, from left to right, from the top down."""
    ordered = sorted(lines, key=lambda line: -line.bottom)
    tops: list[float] = []
    for line in ordered:
        is_new = not tops or tops[-1] - line.bottom > 0.32 * size
        tops.append(line.bottom if is_new else tops[-1])
    pairs = zip(tops, ordered, strict=True)
    for _top, group in groupby(pairs, key=lambda pair: pair[0]):
        cells = [cell for _top, line in group for cell in line.cells]
        yield sorted(cells, key=lambda cell: cell.left)


def _spread(cells: Sequence[PdfCell], columns: Columns) -> list[str]:
    """For each column the cell of one level that stands over it; one may be over several."""
    if not cells:
        return [""] * len(columns)
    centres = [(left + right) / 2 for left, right in columns]
    nearest = [min(cells, key=lambda cell: abs(_centre(cell) - centre)) for centre in centres]
    if all(_is_balanced(cell, nearest, centres) for cell in cells):
        return [cell.text for cell in nearest]
    texts = [""] * len(columns)
    for cell in cells:
        covered = [at for at, centre in enumerate(centres) if cell.left <= centre <= cell.right]
        closest = min(range(len(columns)), key=lambda at: abs(centres[at] - _centre(cell)))
        for at in covered or [closest]:
            texts[at] = cell.text
    return texts


def _is_balanced(cell: PdfCell, nearest: Sequence[PdfCell], centres: Sequence[float]) -> bool:
    """Whether a cell stands over the middle of the columns that are nearest to it."""
    own = [centre for centre, each in zip(centres, nearest, strict=True) if each is cell]
    pitch = (centres[-1] - centres[0]) / max(1, len(centres) - 1) or 60.0
    return bool(own) and abs(_centre(cell) - (own[0] + own[-1]) / 2) < 0.42 * pitch


def _units(lines: Sequence[PdfLine]) -> str:
    """What is said above of the unit: "(in millions)"."""
    said = UNITS.findall(" ".join(line.text for line in lines))
    return said[-1].strip() if said else ""

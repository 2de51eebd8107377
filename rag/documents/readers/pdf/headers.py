"""What stands above the columns of a table on a PDF page.

Headers are stacked, centred, over one column or several, and as narrow as the words allow, so that
they cannot be told from other lines by gaps. The columns below them can: words are a header as far
up as lines go on that stand over columns.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rag.documents.readers.pdf.filing import SAID
from rag.documents.readers.pdf.lines import PdfCell, PdfLine

FIGURE = re.compile(
    r"[(+−<>≤≥±~-]*\s?(?:[A-Z]{0,3}[$€£¥])?\s?[(−-]?\d[\d,.]*\s?(?:[%x×]|bps|pts?\.?)?\s?\)?%?(?:\s?\(\w{1,2}\))?"
    r"|\(?[\d.,]+%?(?:\s?–\s?|\s-\s)[\d.,]+%?\)?"
    r"|[$€£¥]?\s?[—–-]+\s?%?|n\.?/?[am]\.?|\*{1,2}|[—–-]\s?%",
    re.IGNORECASE,
)
YEAR = re.compile(r"(?:FY\s?)?(?:19|20)\d\d(?:[–-]\d\d(?:\d\d)?)?\*?")
UNITS = re.compile(rf"\(?[^().]{{0,40}}\b{SAID['in_units']}\b[^().]{{0,90}}\)?", re.I)
LABEL_WORDS = 18
LABELS_IN_A_ROW = 3
HEADER_WORDS = 9
HEADER_LINES = 48
ABOVE = 6  # lines among which the unit of the figures is said
ALIGNED = 2.0  # points
LABEL_GAP = 0.5  # of the type size: between a label's header and the next one
Columns = list[tuple[float, float]]


def is_figure(cell: PdfCell) -> bool:
    """Or what stands in its place, such as a dash."""
    return bool(FIGURE.fullmatch(cell.text.strip()))


def columns_of(cells: Sequence[PdfCell], apart: float = 0.0) -> Columns:
    """Stripes of the page between which none of the cells has words."""
    columns: Columns = []
    for cell in sorted(cells, key=lambda cell: cell.left):
        if columns and cell.left < columns[-1][1] + apart:
            columns[-1] = (columns[-1][0], max(columns[-1][1], cell.right))
        else:
            columns.append((cell.left, cell.right))
    return columns


def place_in(cell: PdfCell, columns: Columns) -> int:
    """The column that a cell, which is one of those that made them, begins in."""
    return next(index for index, (left, right) in enumerate(columns) if left <= cell.left <= right)


def is_label(line: PdfLine, edge: float) -> bool:
    """Whether it stands wholly before the figures."""
    return line.right < edge + 2 * line.size and len(line.text.split()) <= LABEL_WORDS


@dataclass(frozen=True, slots=True)
class HeaderPlace:
    """Where the columns beside the labels are, and the first row."""

    row: PdfLine
    columns: Columns

    @property
    def labels_end(self) -> float:
        first = self.row.cells[0]
        return first.right if not is_figure(first) else self.columns[0][0] - 2 * self.row.size

    def cells(self, line: PdfLine) -> list[PdfCell]:
        """Headers may stand as close as words: those are parted that end or begin as columns do."""
        cells: list[PdfCell] = []
        for cell in line.cells:
            words = [w for w in line.words if cell.left <= w.left and w.right <= cell.right]
            parts = [
                PdfCell(" ".join(word.text for word in run), run[0].left, run[-1].right)
                for run in (list(group) for _at, group in groupby(words, key=self._nearest))
            ]
            is_labelled = len(parts) > 1 and self._nearest(parts[0]) < 0
            over = parts[1:] if is_labelled else parts
            is_apart = len(parts) > 1 and all(map(self._is_aligned, over))
            if is_labelled and parts[1].left - parts[0].right < LABEL_GAP * line.size:
                is_apart = False
            cells.extend(parts if is_apart else [cell])
        return cells

    def _nearest(self, word: PdfCell) -> int:
        """The column that a word stands over, or next to; -1 for the labels."""
        if word.right < self.columns[0][0] - self.row.size:
            return -1
        apart = [max(word.left - right, left - word.right) for left, right in self.columns]
        return apart.index(min(apart))

    def _is_aligned(self, cell: PdfCell) -> bool:
        left, right = self.columns[self._nearest(cell)]
        ends = (cell.left - left, cell.right - right, _centre(cell) - (left + right) / 2)
        return any(abs(end) < ALIGNED for end in ends)

    def is_before(self, cell: PdfCell) -> bool:
        """Whether it stands over the labels."""
        return cell.right < self.columns[0][0]

    def is_caption(self, cell: PdfCell) -> bool:
        """Centred over the whole table, labels included, and over no single column."""
        is_inside = any(
            left - 4 <= cell.left and cell.right <= right + 4 for left, right in self.columns
        )
        is_its_own = is_inside or self._is_aligned(cell)
        middle = (self.row.left + self.row.right) / 2
        return not is_its_own and abs(_centre(cell) - middle) < 8 and not YEAR.search(cell.text)

    def is_over(self, cell: PdfCell) -> bool:
        """Whether it stands over columns, be it broader than their figures."""
        starts = cell.left > self.labels_end + 4 and cell.right >= self.columns[0][0]
        is_inside = any(left <= _centre(cell) <= right for left, right in self.columns)
        return len(cell.text.split()) <= HEADER_WORDS and (starts or is_inside)


def header_start(lines: Sequence[PdfLine], free: int, start: int, place: HeaderPlace) -> int:
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


def _is_opening(lines: Sequence[PdfLine], position: int, place: HeaderPlace) -> bool:
    above = lines[position - 1]
    drop = above.bottom - lines[position].bottom
    is_before = len(above.cells) == 1 and place.is_before(above.cells[0])
    return 0 < drop < 3 * above.size and is_before and is_label(above, place.columns[0][0])


def _labels_start(lines: Sequence[PdfLine], first: int, start: int) -> int:
    """Without a header, only what ends in a colon opens a group, if it ends no paragraph."""
    at = start
    while at > first and lines[at - 1].text.endswith(":"):
        at -= 1
    above = lines[at - 1] if at else None
    is_tail = above and above.right > lines[start].right - 60 and len(above.cells) == 1
    return start if is_tail else at


def _is_header(line: PdfLine, place: HeaderPlace) -> bool:
    """Words that stand over the columns; the first of several may be over the labels."""
    found = place.cells(line)
    is_labelled = len(found) > 1 and place.is_before(found[0])
    cells = found[1:] if is_labelled else found
    if not cells or (len(cells) == 1 and place.is_caption(cells[0])):
        return False
    words = sum(bool(YEAR.fullmatch(cell.text)) or not is_figure(cell) for cell in cells)
    is_said = words * 2 > len(cells) and not line.text.endswith(".")
    return is_said and all(map(place.is_over, cells))


def _centre(cell: PdfCell) -> float:
    return (cell.left + cell.right) / 2


def header_of(lines: Sequence[PdfLine], place: HeaderPlace) -> tuple[list[str], list[PdfLine]]:
    """The header of each column, the labels' first; and the labels that open the first group."""
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


def _levels(lines: Sequence[PdfLine], size: float, place: HeaderPlace) -> Iterator[list[PdfCell]]:
    """Cells of about one height, from left to right, from the top down."""
    ordered = sorted(lines, key=lambda line: -line.bottom)
    tops: list[float] = []
    for line in ordered:
        is_new = not tops or tops[-1] - line.bottom > 0.32 * size
        tops.append(line.bottom if is_new else tops[-1])
    pairs = zip(tops, ordered, strict=True)
    for _top, group in groupby(pairs, key=lambda pair: pair[0]):
        cells = [cell for _top, line in group for cell in place.cells(line)]
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
        covered = [
            index for index, centre in enumerate(centres) if cell.left <= centre <= cell.right
        ]
        closest = min(range(len(columns)), key=lambda at: abs(centres[at] - _centre(cell)))
        for at in covered or [closest]:
            texts[at] = f"{texts[at]} {cell.text}".strip()
    return texts


def _is_balanced(cell: PdfCell, nearest: Sequence[PdfCell], centres: Sequence[float]) -> bool:
    """Whether a cell stands over the middle of the columns that are nearest to it."""
    own = [centre for centre, each in zip(centres, nearest, strict=True) if each is cell]
    pitch = (centres[-1] - centres[0]) / max(1, len(centres) - 1) or 60.0
    return bool(own) and abs(_centre(cell) - (own[0] + own[-1]) / 2) < 0.42 * pitch


def units_in(lines: Sequence[PdfLine]) -> str:
    """What is said above of the unit: "(in millions)"."""
    said = UNITS.findall(" ".join(line.text for line in lines))
    return said[-1].strip() if said else ""

"""Turn the lines of PDF pages into headings, paragraphs and list entries.

A PDF stores only where characters are. The structure is derived: running headers are lines that
repeat at the edge of most pages; headings are the outline's entries where they are found on their
page, else short lines in larger or bolder type; a paragraph ends at a gap or at a bullet.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, groupby, islice, pairwise, takewhile

from rag.documents.outline import Outline
from rag.documents.readers.pdf.lines import CLAUSE, Lattice, PdfLine, join_lines, ruled_tables
from rag.documents.readers.pdf.tables import FARTHEST, find_tables
from rag.language.amounts import parse_figure
from rag.language.grids import headed

BULLET = re.compile(r"^[•●▪◦‣■□○∙·►➢✓*–—-]\s+(?=\S)|^[•●▪◦‣■►➢]\s*(?=\S)")
NUMBERED = re.compile(r"^\(?\d{1,2}[.)]\s+(?=[^\W\d])")
LIGATURES = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st"}
SECTION = re.compile(r"[A-Z]?\d{0,3}(?:\.\d{1,3})*\.?|[IVX]+\.?")  # a heading's number
DIGITS = re.compile(r"\d+")
PAGE_NUMBER = re.compile(r"\d{1,5}")
HEADING_CHARS = 110
HEADING_WORDS = 14
HEADING_LINES = 3
EDGE_LINES = 2
LAST = -100_000  # stands for the page's last line, in place of a height
Bookmarks = dict[int, list[tuple[int, str]]]
Running = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Page:
    """A page's lines in reading order."""

    number: int  # from 1
    lines: tuple[PdfLine, ...]
    is_broken: bool = False
    form_values: tuple[tuple[str, str], ...] = ()
    place: str = ""  # the locator, if it is not the page number
    lattices: tuple[Lattice, ...] = ()  # tables with drawn borders
    notes: tuple[str, ...] = ()  # texts of its annotations

    @property
    def is_blank(self) -> bool:
        """Whether the page has no text."""
        return not (self.lines or self.form_values or self.is_broken)


def write_pages(pages: Sequence[Page], bookmarks: Bookmarks, outline: Outline) -> None:
    """Fill the outline from the pages."""
    pages = without_running_lines(pages)
    style = _Style(pages)
    if not outline.title:
        outline.fallback_title = style.largest_on(pages[0])
    writing = _PdfWriting(outline)
    for page in pages:
        outline.place(page.place or f"page {page.number}", page=page.number)
        writing.page(page, bookmarks, style)
    writing.finish()


def without_running_lines(pages: Sequence[Page]) -> list[Page]:
    """Remove lines at the edge of most pages, such as page numbers; table rows stay."""
    results = list(pages)
    if len(pages) < 2:
        return results
    often = max(2, len(pages) * 0.4)
    for keys_of in (_running_lines, _page_numbers):
        keys_by_page = [keys_of(page) for page in results]
        counts = Counter(
            key for by_line in keys_by_page for keys in by_line.values() for key in keys
        )
        running = {key for key, count in counts.items() if count >= often + (key[1] == LAST)}
        for place, (page, by_line) in enumerate(zip(results, keys_by_page, strict=True)):
            dropped = {index for index, keys in by_line.items() if keys & running}
            lines = tuple(line for index, line in enumerate(page.lines) if index not in dropped)
            # A page that has nothing else keeps them.
            results[place] = replace(page, lines=lines or page.lines)
    return results


def _edges(page: Page) -> list[int]:
    """Return the positions of the first and last lines, without rows of a table there."""
    count = len(page.lines)
    places = {*range(min(EDGE_LINES, count)), *range(max(0, count - EDGE_LINES), count)}
    return [
        place
        for place in sorted(places)
        if not any(lattice.holds(page.lines[place]) for lattice in page.lattices)
        and not _is_row(page.lines, place)
    ]


def _is_row(lines: Sequence[PdfLine], position: int) -> bool:
    """Return whether the next line towards the page's middle has cells in the same columns."""
    beside = position + 1 if position < len(lines) / 2 else position - 1
    if not 0 <= beside < len(lines) or len(lines[position].cells) < 2:
        return False
    line, other = lines[position], lines[beside]
    pairs = list(zip(line.cells, other.cells, strict=False))
    is_near = abs(line.bottom - other.bottom) < FARTHEST * line.size
    is_below = all(one.left < two.right and two.left < one.right for one, two in pairs)
    return is_near and is_below and len(line.cells) == len(other.cells)


def _running_lines(page: Page) -> dict[int, set[Running]]:
    """Return the words, without figures, and height of each line at the edge.

    The last line counts at any height: in filings, pages end where their text does.
    """
    results: dict[int, set[Running]] = {}
    for edge in _edges(page):
        line, is_last = page.lines[edge], edge == len(page.lines) - 1
        words = DIGITS.sub("0", line.text.lower())
        heights = (round(line.bottom / 4), LAST) if is_last else (round(line.bottom / 4),)
        results[edge] = {(words, height) for height in heights}
    return results


def _page_numbers(page: Page) -> dict[int, set[Running]]:
    """Return each figure at the edge, as its difference from the page's position in the file."""
    texts = {edge: page.lines[edge].text for edge in _edges(page)}
    numbers = {edge: int(text) for edge, text in texts.items() if PAGE_NUMBER.fullmatch(text)}
    return {edge: {("", number - page.number)} for edge, number in numbers.items()}


class _Style:
    """The type sizes of body text and headings in the whole document."""

    def __init__(self, pages: Sequence[Page]) -> None:
        sizes: Counter[float] = Counter()
        bold = 0
        for page in pages:
            for line in page.lines:
                sizes[line.size] += len(line.text)
                bold += len(line.text) if line.is_bold else 0
        total = sum(sizes.values())
        self.body = sizes.most_common(1)[0][0] if sizes else 10.0
        self.uses_bold = bold < total * 0.25
        larger = sorted((size for size in sizes if size >= self.body * 1.15), reverse=True)
        # A type that makes up much of the text is no heading type, whatever its size.
        self.levels = [size for size in larger if sizes[size] < total * 0.15][:8]

    def level(self, line: PdfLine) -> int:
        """Return a heading's level, 1 for the outermost; 0 for other lines."""
        if not _may_be_heading(line.text):
            return 0
        if line.size in self.levels:
            return min(self.levels.index(line.size) + 1, 5)
        return 6 if self.uses_bold and line.is_bold and line.size >= self.body * 0.98 else 0

    def levels_of(self, lines: Sequence[PdfLine]) -> list[int]:
        """Return each line's level; a heading of many lines is a paragraph in larger type."""
        alone = [_is_alone(lines, position) for position in range(len(lines))]
        levels: list[int] = []
        for level, group in groupby(
            self.level(line) * is_alone for line, is_alone in zip(lines, alone, strict=True)
        ):
            count = len(list(group))
            levels.extend([level if count <= HEADING_LINES else 0] * count)
        return levels

    def largest_on(self, page: Page) -> str:
        """Return the first run of lines in the largest heading type."""
        levels = [(line, self.level(line)) for line in page.lines]
        best = min((level for _line, level in levels if level), default=0)
        run = dropwhile(lambda pair: pair[1] != best, levels)
        lines = takewhile(lambda pair: pair[1] == best, run)
        return " ".join(line.text for line, _level in islice(lines, 3)) if best else ""


def _is_alone(lines: Sequence[PdfLine], position: int) -> bool:
    """Return whether nothing is beside a line, as table cells would be."""
    line = lines[position]
    others = [*lines[max(0, position - 1) : position], *lines[position + 1 : position + 2]]
    is_numbered = len(line.cells) == 2 and SECTION.fullmatch(line.cells[0].text)
    return (len(line.cells) < 2 or bool(is_numbered)) and not any(
        abs(other.bottom - line.bottom) < line.size * 0.5 for other in others
    )


def _may_be_heading(text: str) -> bool:
    if not 2 < len(text) <= HEADING_CHARS or len(text.split()) > HEADING_WORDS:
        return False
    letters = sum(map(str.isalpha, text))
    starts_well = text[0].isdigit() or (text[0].isalpha() and not text[0].islower())
    return starts_well and letters >= 2 and letters > len(text) * 0.4 and text[-1] not in ".,;:"


def _plain(text: str) -> str:
    return "".join(filter(str.isalnum, text)).lower()


class _PdfWriting:
    """Writes page after page; a table that continues on the next page is one table."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        self.header: list[str] = []  # header of the table written last, if nothing follows it
        self.header_page = 0
        self.edges: tuple[float, ...] = ()  # edges of its columns, where they are drawn
        self.rows: list[list[str]] = []  # rows of that table, on all its pages
        self.place = ("", 0)  # its name and first page
        self.number = 0

    def page(self, page: Page, bookmarks: Bookmarks, style: _Style) -> None:
        self.number = page.number
        lines, drawn = ruled_tables(page.lines, page.lattices)
        if bookmarks:
            marked = {_plain(title): level for level, title in bookmarks.get(page.number, [])}
            levels = [marked.pop(_plain(line.text), 0) for line in lines]
        else:
            levels = style.levels_of(lines)
        position = 0
        whole = [one for one in drawn if len(one.rows) > 1 or self._goes_on(one.rows, one.edges)]
        for table in whole:
            self._between(lines[position : table.start], levels[position : table.start])
            self._table(table.rows, may_go_on=True, edges=table.edges)
            position = table.end
        self._between(lines[position:], levels[position:])
        self.outline.form_values(page.form_values)
        for note in page.notes:
            self.outline.paragraph(f"Note on this page: {note}")

    def finish(self) -> None:
        """Write the last table, which is now complete."""
        if self.rows:
            name, first = self.place
            last = self.header_page
            place = f"pages {first}–{last}" if last > first else f"page {first}"
            self.outline.rows(list(enumerate(self.rows, start=1)), name=name, place=place)
        self.rows = []

    def _between(self, lines: Sequence[PdfLine], levels: Sequence[int]) -> None:
        position = 0
        for table in find_tables(lines, levels):
            self._lines(lines[position : table.start], levels[position : table.start])
            self._table(table.rows, may_go_on=table.may_go_on)
            position = table.end
        self._lines(lines[position:], levels[position:])

    def _lines(self, lines: Sequence[PdfLine], levels: Sequence[int]) -> None:
        pairs = zip(lines, levels, strict=True)
        for level, group in groupby(pairs, key=lambda pair: pair[1]):
            self.header = []
            some = [line for line, _level in group]
            if level:
                self.outline.heading(level, join_lines([line.text for line in some]))
                continue
            for block in _blocks(some):
                text = join_lines([line.text for line in block]).translate(LIGATURES)
                bullet = BULLET.match(text)
                if bullet or NUMBERED.match(text):
                    self.outline.entry(text[bullet.end() if bullet else 0 :])
                else:
                    self.outline.paragraph(text)

    def _table(
        self, rows: Sequence[Sequence[str]], *, may_go_on: bool, edges: tuple[float, ...] = ()
    ) -> None:
        cells = [[cell.translate(LIGATURES) for cell in row] for row in rows]
        if self._goes_on(cells, edges, may_go_on=may_go_on):
            body = cells[1:] if cells[0] == self.header else [row for row in cells if any(row)]
        else:
            self.finish()
            self.header, *body = _headed(cells, is_drawn=bool(edges))
            self.rows, self.place = [self.header], (self.outline.under, self.number)
        self.rows += body
        self.header_page, self.edges = self.number, edges
        self.outline.part_of_table([self.header, *body], has_header=any(self.header))

    def _goes_on(
        self, cells: Sequence[Sequence[str]], edges: tuple[float, ...], *, may_go_on: bool = True
    ) -> bool:
        """Return whether a table continues the one at the end of the page before."""
        if self.number != self.header_page + 1 or len(self.header) != len(cells[0]):
            return False
        pairs = list(zip(edges, self.edges, strict=False))
        is_same = bool(pairs) and all(abs(edge - other) < 3 for edge, other in pairs)
        is_open = is_same and not _opens(cells) if edges else may_go_on or not any(cells[0])
        return list(cells[0]) == self.header or is_open


def _headed(cells: list[list[str]], *, is_drawn: bool) -> list[list[str]]:
    """Return the rows under the header above the columns; without one, the words decide."""
    is_over = not is_drawn and any(cells[0])
    rows, has_header = headed(cells if is_over or is_drawn else cells[1:])
    return rows if has_header or is_over else [[""] * len(cells[0]), *rows]


def _opens(cells: Sequence[Sequence[str]]) -> bool:
    """Return whether a table begins with its own header: words above figures."""
    return any(
        words and not parse_figure(words) and any(map(parse_figure, below))
        for words, *below in zip(*cells, strict=False)
    )


def _blocks(lines: Sequence[PdfLine]) -> Iterator[list[PdfLine]]:
    """Yield paragraphs: they end at a wide gap, a bullet or number, or the top of a column."""
    gaps = [above.bottom - below.bottom for above, below in pairwise(lines)]
    downward = sorted(gap for gap in gaps if gap > 0)
    usual_gap = max(downward[len(downward) // 2], 4.0) if downward else 12.0
    block = list(lines[:1])
    for line, gap in zip(lines[1:], gaps, strict=True):
        is_clause = len(line.cells) == 2 and CLAUSE.fullmatch(line.cells[0].text)
        is_marked = is_clause or BULLET.match(line.text) or NUMBERED.match(line.text)
        if is_marked or gap > usual_gap * 1.35 or gap < -usual_gap:
            yield block
            block = []
        block.append(line)
    if block:
        yield block

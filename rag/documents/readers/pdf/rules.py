"""Tables whose cells are drawn: the lines of a PDF page, and the words between them.

Where every cell has its border, nothing has to be guessed from gaps: a word is of the cell that it
stands in, a border that is missing joins two cells.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple
from unicodedata import bidirectional

from rag.documents.readers.pdf.lines import PdfCell, PdfLine, Rule, join_lines, struck
from rag.documents.tables import Spanning, spread

THIN = 3.0  # points: a box that is thinner is a line
NEAR = 2.5  # points: lines so close are one, ends so close touch
MOST_OBJECTS = 20_000  # of a page; what is drawn of more is a picture
MOST_RULES = 1_500
FILLED = 0.3  # of the cells hold words, or it is a chart


class Rules(NamedTuple):
    """Of a page; the edges of boxes are lines as well, `thin` ones are none."""

    flat: list[Rule]
    upright: list[Rule]
    thin: list[Rule]  # horizontal ones


@dataclass(frozen=True, slots=True)
class RuledTable:
    """The lines of text that it takes, and its rows."""

    start: int
    end: int
    rows: list[list[str]]
    edges: tuple[float, ...]  # of its columns


def lattices_of(rules: Rules, lines: Sequence[PdfLine]) -> tuple["Lattice", ...]:
    """What the lines that are drawn on a page enclose; what strikes words out borders no cell."""
    flat = [rule for rule in rules.flat if not _is_strike(rule, lines)]
    return tuple(_lattices(flat, rules.upright))


def _is_strike(rule: Rule, lines: Sequence[PdfLine]) -> bool:
    return any(
        struck(rule, [(word.left, word.right) for word in line.words], line.bottom, line.size)
        for line in lines
        if 0 < rule.place - line.bottom < line.size
    )


def page_rules(page: Any) -> Rules:
    """The horizontal and the vertical lines that are drawn on a page."""
    from pypdfium2 import raw

    rules = Rules([], [], [])
    for count, part in enumerate(page.get_objects(filter=[raw.FPDF_PAGEOBJ_PATH], max_depth=3)):
        if count > MOST_OBJECTS:
            return Rules([], [], [])
        for left, bottom, right, top in _boxes(part):
            if right - left > THIN:
                rules.flat.extend(Rule(y, left, right) for y in _edges(bottom, top))
                if top - bottom <= THIN and not _is_shape(part):
                    rules.thin.append(rules.flat[-1])
            if top - bottom > THIN:
                rules.upright.extend(Rule(x, bottom, top) for x in _edges(left, right))
    return Rules(*map(_merged, rules))


def _edges(low: float, high: float) -> tuple[float, ...]:
    return ((low + high) / 2,) if high - low <= THIN else (low, high)


def _is_shape(part: Any) -> bool:
    """Whether a path is more than a line or a box."""
    from pypdfium2 import raw

    return bool(raw.FPDFPath_CountSegments(part) > 6)


def _boxes(part: Any) -> Iterator[tuple[float, float, float, float]]:
    """Of a box its bounds, of a path of several strokes each of them."""
    import ctypes

    from pypdfium2 import raw

    if not _is_shape(part):
        yield part.get_bounds()
        return
    matrix = part.get_matrix()
    last: tuple[float, float] | None = None
    x, y = ctypes.c_float(), ctypes.c_float()
    for position in range(min(raw.FPDFPath_CountSegments(part), MOST_OBJECTS)):
        segment = raw.FPDFPath_GetPathSegment(part, position)
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        point = matrix.on_point(x.value, y.value)
        kind = raw.FPDFPathSegment_GetType(segment)
        if last is not None and kind == raw.FPDF_SEGMENT_LINETO:
            yield (
                min(last[0], point[0]), min(last[1], point[1]),
                max(last[0], point[0]), max(last[1], point[1]),
            )  # fmt: skip
        last = point


def _merged(rules: Sequence[Rule]) -> list[Rule]:
    """Those that lie on each other or go on as one."""
    merged: list[Rule] = []
    for rule in sorted(rules, key=lambda rule: (round(rule.place / NEAR), rule.start)):
        last = merged[-1] if merged else None
        if last and abs(last.place - rule.place) <= NEAR and rule.start <= last.end + NEAR:
            merged[-1] = Rule(last.place, last.start, max(last.end, rule.end))
        else:
            merged.append(rule)
    return merged if len(merged) <= MOST_RULES else []


def ruled_tables(
    lines: Sequence[PdfLine], lattices: Sequence["Lattice"]
) -> tuple[list[PdfLine], list[RuledTable]]:
    """The lines, those of a table in a row, and the tables from the top down."""
    ordered = list(lines)
    results: list[tuple[list[PdfLine], Lattice]] = []
    for lattice in lattices:
        inside = [line for line in ordered if lattice.holds(line)]
        if inside and lattice.is_filled(inside):
            first, taken = ordered.index(inside[0]), set(map(id, inside))
            rest = [line for line in ordered if id(line) not in taken]
            ordered = [*rest[:first], *inside, *rest[first:]]
            results.append((inside, lattice))
    places = {id(line): place for place, line in enumerate(ordered)}
    tables = [
        RuledTable(start, start + len(inside), lattice.rows(inside), lattice.columns)
        for inside, lattice in results
        for start in [places[id(inside[0])]]
    ]
    return ordered, sorted(tables, key=lambda table: table.start)


class Lattice:
    """Lines that cross each other, and the cells between them."""

    def __init__(self, flat: Sequence[Rule], upright: Sequence[Rule]) -> None:
        self.flat, self.upright = flat, upright
        self.columns = tuple(_places(upright))
        self.heights = tuple(reversed(_places(flat)))  # from the top down

    def holds(self, line: PdfLine) -> bool:
        """Whether a line stands in it; one that reaches out only crosses it."""
        middle = line.bottom + line.size * 0.3
        is_beside = line.left < self.columns[0] - NEAR or line.right > self.columns[-1] + line.size
        return self.heights[-1] < middle < self.heights[0] and not is_beside

    def is_filled(self, lines: Sequence[PdfLine]) -> bool:
        """Whether it is a table and no chart, form or frame."""
        places = {self.place(line, word) for line in lines for word in line.words}
        cells = (len(self.columns) - 1) * (len(self.heights) - 1)
        rows = [row for row, _column in places]
        wide = {row for row in rows if rows.count(row) > 1}
        is_row = len(self.heights) == 2 and len(places) == cells  # the last of a page before
        return is_row or (len(wide) > 1 and len(places) >= FILLED * cells)

    def place(self, line: PdfLine, word: PdfCell) -> tuple[int, int]:
        """The row and the column that a word stands in."""
        middle, height = (word.left + word.right) / 2, line.bottom + line.size * 0.3
        column = sum(edge < middle for edge in self.columns[1:-1])
        return sum(edge > height for edge in self.heights[1:-1]), column

    def rows(self, lines: Sequence[PdfLine]) -> list[list[str]]:
        """One header row, and the others."""
        words = defaultdict[tuple[int, int], list[tuple[float, PdfCell]]](list)
        for line in lines:
            for word in line.words:
                words[self._owner(*self.place(line, word))].append((line.bottom, word))
        rows: list[list[Spanning]] = [
            [
                (_text(words[row, column]), *self._reach(row, column))
                for column in range(len(self.columns) - 1)
                if self._owner(row, column) == (row, column)
            ]
            for row in range(len(self.heights) - 1)
        ]
        return [row for row in spread(rows) if any(row)]

    def _owner(self, row: int, column: int) -> tuple[int, int]:
        """The first cell of those that no border parts."""
        while column and not self._is_parted(row, column):
            column -= 1
        while row and not self._is_below(row, column):
            row -= 1
        return row, column

    def _reach(self, row: int, column: int) -> tuple[int, int]:
        across = down = 1
        while column + across < len(self.columns) - 1 and not self._is_parted(row, column + across):
            across += 1
        while row + down < len(self.heights) - 1 and not self._is_below(row + down, column):
            down += 1
        return across, down

    def _is_parted(self, row: int, column: int) -> bool:
        """Whether a border stands before a cell."""
        middle = (self.heights[row] + self.heights[row + 1]) / 2
        return _is_border(self.upright, self.columns[column], middle)

    def _is_below(self, row: int, column: int) -> bool:
        """Whether a border stands above a cell."""
        middle = (self.columns[column] + self.columns[column + 1]) / 2
        return _is_border(self.flat, self.heights[row], middle)


def _is_border(rules: Sequence[Rule], place: float, middle: float) -> bool:
    return any(abs(rule.place - place) <= NEAR and rule.start < middle < rule.end for rule in rules)


def _text(words: Sequence[tuple[float, PdfCell]]) -> str:
    """The lines of a cell, from the top down."""
    lines = defaultdict[int, list[PdfCell]](list)
    for bottom, word in words:
        lines[round(bottom)].append(word)
    whole = join_lines([_line(lines[bottom]) for bottom in sorted(lines, reverse=True)])
    return whole.replace("\n", " ").replace("~~ ~~", " ")


def _line(words: Sequence[PdfCell]) -> str:
    """In the order in which they are read: of Arabic and Hebrew from the right."""
    ordered = sorted(words, key=lambda word: word.left)
    counts = Counter(map(bidirectional, "".join(word.text for word in words)))
    is_from_right = counts["R"] + counts["AL"] > counts["L"]
    return " ".join(word.text for word in (reversed(ordered) if is_from_right else ordered))


def _places(rules: Sequence[Rule]) -> list[float]:
    places: list[float] = []
    for place in sorted(rule.place for rule in rules):
        if not places or place - places[-1] > NEAR:
            places.append(place)
    return places


def _lattices(flat: Sequence[Rule], upright: Sequence[Rule]) -> Iterator[Lattice]:
    """Rules that touch each other, at least two cells wide."""
    groups: list[tuple[list[Rule], list[Rule]]] = []
    for rule in flat:
        columns = [other for other in upright if _touch(rule, other)]
        if not columns:
            continue
        joined, apart = ([rule], columns), []
        for group in groups:
            if set(columns).isdisjoint(group[1]):
                apart.append(group)
            else:
                joined = (joined[0] + group[0], list(dict.fromkeys(joined[1] + group[1])))
        groups = [*apart, joined]
    for group in groups:
        lattice = Lattice(*group)
        is_wide = len(lattice.columns) > 2 and len(lattice.heights) > 1
        if is_wide and min(b - a for a, b in pairwise(lattice.columns)) > NEAR:
            yield lattice


def _touch(flat: Rule, upright: Rule) -> bool:
    is_across = flat.start - NEAR <= upright.place <= flat.end + NEAR
    return is_across and upright.start - NEAR <= flat.place <= upright.end + NEAR

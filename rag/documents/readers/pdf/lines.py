"""Assemble the lines of a PDF page from the position of each character.

pdfium returns the characters in the order in which they were written and guesses line ends, so one
of its lines may be many rows of a table. Here a line is characters at one height that continue in
one direction, and a cell is a group set apart on it.

Where every cell has borders, no gaps have to be interpreted: a word belongs to the cell around it,
and a missing border joins two cells.
"""

import ctypes
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, pairwise
from typing import Any, NamedTuple
from unicodedata import bidirectional, east_asian_width

from rag.documents.cleaning import BLANKS
from rag.documents.outline import Mark, Run, written
from rag.documents.tables import Spanning, spread

CURRENCY = {"$", "€", "£", "¥", "US$"}
TRAILING = {"%", ")", ")%"}
LIST_MARK = re.compile(r"[•●▪◦‣■□○∙·►➢✓*–—-]|\(?(?:\d{1,3}|[a-z])[.)]")
CLAUSE = re.compile(r"§ ?\d{1,4} ?[a-z]?|\d{1,3}(?:\.\d{1,3})+\.?")  # as contracts number theirs
LETTER_BEFORE = re.compile(r"[^\W\d_]$")
CELL_GAP = 0.9  # of the type size: wider than any blank in a paragraph
FIGURE_GAP = 0.3  # … and than any within a figure
LEADER_GAP = 2.0  # of the type size: between dots that lead to a figure
FIGURES = re.compile(r"[\d\s$€£¥(),.%+—–-]+")
ONE_HEIGHT = 0.5  # of the type size: how far up or down small figures are beside a word
SAME_HEIGHT = 0.25  # of the type size
SMALL = 0.8  # … beside a word
MARK_SIZE, LEAST_RISE = 0.87, 0.1  # of the type size: largest size and least rise of raised text
RAISED, LOWERED, STRUCK = (frozenset({mark}) for mark in (Mark.RAISED, Mark.LOWERED, Mark.STRUCK))
STRIKE = 0.15, 0.5  # of the type size above the base line, least and greatest
STRIKE_ENDS = 0.35  # … beside the words
NO_MARKS: frozenset[Mark] = frozenset()
TABULAR = 3  # cells; prose rarely has more than two columns
PROSE_WORDS = 5
LEADERS = re.compile(r"\s?(?:[.·…_]\s?){5,}")  # dot leaders, or lines to write on
MAX_LETTERS = 5_000  # of a line
BOLD_WEIGHT = 600
BOLD_FONTS = (b"bold", b"black", b"heavy")
FONT_NAME_BYTES = 200
QUARTER = math.pi / 2
NOTHING = (0, 0xFFFD)  # characters whose font does not identify them
CUT = 2  # pdfium's own code of a hyphen at the end of a line
NO_BLANKS = "\x0b\x0c\r\x1c\x1d\x1e\x1f"  # may be letters in a font with its own encoding
Spell = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class PdfCell:
    """Words that are together on a line."""

    text: str
    left: float
    right: float


@dataclass(frozen=True, slots=True)
class PdfLine:
    """A line of text; places in points from the page's lower left corner."""

    text: str
    size: float
    is_bold: bool
    left: float
    bottom: float
    cells: tuple[PdfCell, ...] = ()  # one or more
    words: tuple[PdfCell, ...] = ()

    @property
    def right(self) -> float:
        return self.cells[-1].right if self.cells else self.left


def from_top_down(lines: Sequence[PdfLine]) -> list[PdfLine]:
    """Sort lines by position if most words are in tables; else keep the order of the file.

    Programs write tables column by column, or the header last. Columns of prose stay as they are.
    """
    rows: list[list[PdfLine]] = []
    for line in sorted(lines, key=lambda line: -line.bottom):
        above = rows[-1][0] if rows else line
        is_raised = min(line.size, above.size) < SMALL * max(line.size, above.size)
        share = ONE_HEIGHT if is_raised else SAME_HEIGHT
        if rows and above.bottom - line.bottom < share * max(line.size, above.size):
            rows[-1].append(line)
        else:
            rows.append([line])
    tabular = [row for row in rows if sum(len(line.cells) for line in row) >= TABULAR]
    words = sum(len(line.words) for row in tabular for line in row)
    prose = sum(sum(len(line.words) >= PROSE_WORDS for line in row) > 1 for row in rows)
    if prose > 1 or words * 2 <= sum(len(line.words) for line in lines):
        return list(lines)
    return [
        line
        for row in rows
        for line in _join_on_one_height(sorted(row, key=lambda line: line.left))
    ]


def _join_on_one_height(lines: Sequence[PdfLine]) -> Iterator[PdfLine]:
    """Join lines of one height that do not overlap; a raised figure belongs to its word."""
    joined = lines[0]
    for line in lines[1:]:
        if line.left < joined.right - joined.size:
            yield joined
            joined = line
            continue
        cells = [*joined.cells, *line.cells]
        if line.left < joined.right + FIGURE_GAP * joined.size:
            last, first = joined.cells[-1], line.cells[0]
            whole = PdfCell(f"{last.text} {first.text}", last.left, max(last.right, first.right))
            cells = [*joined.cells[:-1], whole, *line.cells[1:]]
        words, size = (*joined.words, *line.words), max(joined.size, line.size)
        text = f"{joined.text} {line.text}"
        joined = replace(joined, text=text, size=size, cells=join_symbols(cells, size), words=words)
    yield joined


class _Letter(NamedTuple):
    """A character, in its line's own direction."""

    text: str
    left: float
    right: float
    base: float  # height of its base line
    size: float
    angle: float
    position: int  # its index on the page
    is_blank: bool


class Rule(NamedTuple):
    """A drawn line along one axis: its place on the other axis, and its ends."""

    place: float
    start: float
    end: float


def struck(rule: Rule, words: Sequence[tuple[float, float]], base: float, size: float) -> list[int]:
    """Return the words that a rule strikes out: it begins and ends with them."""
    if not STRIKE[0] * size < rule.place - base < STRIKE[1] * size:
        return []
    through = [
        position
        for position, (left, right) in enumerate(words)
        if rule.start < (left + right) / 2 < rule.end
    ]
    if not through:
        return []
    ends = (words[through[0]][0] - rule.start, words[through[-1]][1] - rule.end)
    return through if max(map(abs, ends)) < STRIKE_ENDS * size else []


def page_lines(text_page: Any, spell: Spell, rules: Sequence[Rule] = ()) -> Iterator[PdfLine]:
    """Yield lines in the order of the file; words that a rule crosses are struck out."""
    line: list[_Letter] = []
    last: _Letter | None = None
    for letter in _letters(text_page):
        is_visible = not letter.is_blank
        if last and is_visible and (_begins_line(last, letter) or len(line) >= MAX_LETTERS):
            yield _line(text_page, line, spell, rules)
            line = []
        if is_visible:
            last = letter
        if is_visible or line:
            line.append(letter)
    if last:
        yield _line(text_page, line, spell, rules)


def _begins_line(before: _Letter, letter: _Letter) -> bool:
    size = max(before.size, letter.size)
    drop = before.base - letter.base
    is_below = abs(before.left - letter.left) < ONE_HEIGHT * size and 0 < drop < 1.5 * size
    if is_below and east_asian_width(letter.text) in "WF":
        return False  # vertical writing
    is_elsewhere = abs(drop) > ONE_HEIGHT * size
    return is_elsewhere or before.angle != letter.angle or letter.right < before.left - 2 * size


def _letters(text_page: Any) -> Iterator[_Letter]:
    from pypdfium2 import raw

    x, y, box, matrix = ctypes.c_double(), ctypes.c_double(), raw.FS_RECTF(), raw.FS_MATRIX()
    for position in range(text_page.count_chars()):
        code = raw.FPDFText_GetUnicode(text_page, position)
        is_made = raw.FPDFText_IsGenerated(text_page, position) == 1
        if code in NOTHING or (is_made and code in b"\r\n"):
            continue
        text = "-" if code == CUT and raw.FPDFText_IsHyphen(text_page, position) else chr(code)
        is_blank = is_made or (text.isspace() and text not in NO_BLANKS)
        raw.FPDFText_GetCharOrigin(text_page, position, x, y)
        # The height of the font, not of the character.
        raw.FPDFText_GetLooseCharBox(text_page, position, box)
        # What a font size is in points depends on what scales it: browsers print at 3/4 of 16.
        raw.FPDFText_GetMatrix(text_page, position, matrix)
        size = raw.FPDFText_GetFontSize(text_page, position) * math.hypot(matrix.c, matrix.d)
        turned = raw.FPDFText_GetCharAngle(text_page, position)  # clockwise
        angle = -round(turned / QUARTER, 2) * QUARTER
        left, right, base, height = box.left, box.right, y.value, box.top - box.bottom
        if angle:
            across, up = math.cos(angle), math.sin(angle)
            ends = [
                side * across + height * up
                for side in (box.left, box.right)
                for height in (box.bottom, box.top)
            ]
            left, right, base = min(ends), max(ends), y.value * across - x.value * up
            height = height if abs(across) > abs(up) else box.right - box.left
        yield _Letter(text, left, right, base, size or height * 0.85, angle, position, is_blank)


def _line(
    text_page: Any, letters: Sequence[_Letter], spell: Spell, rules: Sequence[Rule]
) -> PdfLine:
    visible = [letter for letter in letters if not letter.is_blank]
    [((base, size), _count)] = Counter((one.base, one.size) for one in visible).most_common(1)
    pieces = list(_pieces(letters, size))
    gone = set(_struck_places(letters, rules, base, size))
    read = partial(_text, spell=spell, base=base, size=size, gone=gone)
    text = " ".join(map(read, pieces))
    cells = join_symbols(_cells(pieces, read), size)
    words = tuple(_cells(_words(letters), read))
    is_bold = all(_is_bold(text_page, end.position) for end in (visible[0], visible[-1]))
    return PdfLine(text, round(size * 2) / 2, is_bold, visible[0].left, base, cells, words)


def _struck_places(
    letters: Sequence[_Letter], rules: Sequence[Rule], base: float, size: float
) -> Iterator[int]:
    """Yield the struck characters of a line, including blanks between them."""
    near = [rule for rule in rules if 0 < rule.place - base < size]
    if not near or letters[0].angle:
        return
    words = [[letter for letter in word if not letter.is_blank] for word in _words(letters)]
    ends = [(word[0].left, word[-1].right) for word in words]
    for rule in near:
        if places := struck(rule, ends, base, size):
            first, last = words[places[0]][0], words[places[-1]][-1]
            yield from range(first.position, last.position + 1)


def _cells(
    pieces: Iterable[Sequence[_Letter]], read: Callable[[Sequence[_Letter]], str]
) -> list[PdfCell]:
    """Return the cells from left to right."""
    cells = [
        PdfCell(
            read(piece),
            min(letter.left for letter in piece if not letter.is_blank),
            max(letter.right for letter in piece if not letter.is_blank),
        )
        for piece in pieces
    ]
    return sorted((cell for cell in cells if cell.text), key=lambda cell: cell.left)


def _text(
    letters: Sequence[_Letter], spell: Spell, base: float, size: float, gone: Container[int]
) -> str:
    """Return the text; smaller characters above or below the line are raised or lowered."""

    def marks_of(letter: _Letter) -> frozenset[Mark]:
        rise, marks = letter.base - base, STRUCK if letter.position in gone else NO_MARKS
        if letter.is_blank or letter.size > MARK_SIZE * size or abs(rise) < LEAST_RISE * size:
            return marks
        return marks | (RAISED if rise > 0 else LOWERED)

    runs: list[Run] = []
    for marks, group in groupby(letters, key=marks_of):
        # A PDF stores a surrogate pair as two characters.
        units = "".join(letter.text for letter in group).encode("utf-16-le", "surrogatepass")
        runs.append(Run(spell(units.decode("utf-16-le", "ignore")), marks))
    return BLANKS.sub(" ", LEADERS.sub(" ", written(runs))).strip(" ")


def _pieces(letters: Sequence[_Letter], size: float) -> Iterator[list[_Letter]]:
    """Split a line at gaps wider than those between words; figures may be closer."""
    words = list(_words(letters, FIGURE_GAP * size))
    piece = words[0]
    for before, word in pairwise(words):
        gap = _gap(before, word)
        is_led = "." in (before[0].text, word[0].text) and gap < LEADER_GAP * size
        if is_led or (gap < CELL_GAP * size and not _are_figures(before, word)):
            piece = [*piece, *word]
        else:
            yield piece
            piece = word
    yield piece


def _words(letters: Sequence[_Letter], gap: float = 0.0) -> Iterator[list[_Letter]]:
    """Split a line at gaps of a width, or at any blank."""
    word: list[_Letter] = []
    for letter in letters:
        if word and not letter.is_blank:
            is_end = _gap(word, [letter]) >= gap if gap else word[-1].is_blank
            if is_end:
                yield word
                word = []
        word.append(letter)
    yield word


def _gap(before: Sequence[_Letter], after: Sequence[_Letter]) -> float:
    last = next(letter for letter in reversed(before) if not letter.is_blank)
    return max(after[0].left - last.right, last.left - after[0].right)


def _are_figures(first: Sequence[_Letter], second: Sequence[_Letter]) -> bool:
    return all(
        FIGURES.fullmatch("".join(letter.text for letter in word)) for word in (first, second)
    )


def _is_bold(text_page: Any, position: int) -> bool:
    """Return whether type is bold; many programs state no weight, or a wrong one."""
    from pypdfium2 import raw

    if raw.FPDFText_GetFontWeight(text_page, position) >= BOLD_WEIGHT:
        return True
    name, flags = ctypes.create_string_buffer(FONT_NAME_BYTES), ctypes.c_int()
    raw.FPDFText_GetFontInfo(text_page, position, name, FONT_NAME_BYTES, ctypes.byref(flags))
    return any(word in name.value.lower() for word in BOLD_FONTS)


def join_symbols(cells: Sequence[PdfCell], size: float) -> tuple[PdfCell, ...]:
    """Join a currency sign or list mark to what follows, a percent sign to what precedes."""
    joined: list[PdfCell] = []
    for cell in _without_next_sign(cells, size):
        last = joined[-1] if joined else None
        if last and (last.text in CURRENCY or cell.text in TRAILING):
            joined[-1] = PdfCell(last.text + cell.text, last.left, cell.right)
        elif last and len(joined) == 1 and LIST_MARK.fullmatch(last.text):
            joined[-1] = PdfCell(f"{last.text} {cell.text}", last.left, cell.right)
        else:
            joined.append(cell)
    return tuple(joined)


def _without_next_sign(cells: Sequence[PdfCell], size: float) -> Iterator[PdfCell]:
    """Move a currency sign to the next figure: `$ 59,340 $` before `63,171`.

    Where no figure has a sign before it (`59.340 € 63.171 €`), each sign follows its own figure.
    """
    for index, cell in enumerate(cells):
        words, _blank, sign = cell.text.rpartition(" ")
        is_before = any(other.text.startswith(tuple(CURRENCY)) for other in cells[:index])
        is_next = is_before or not FIGURES.fullmatch(words)
        if words and is_next and sign in CURRENCY and index + 1 < len(cells):
            right = max(cell.left, cell.right - size)
            yield PdfCell(words, cell.left, right)
            yield PdfCell(sign, right + 1, cell.right)
        else:
            yield cell


def join_lines(lines: Sequence[str]) -> str:
    """Join a paragraph's lines: hyphenated words are rejoined, short lines keep their break."""
    longest = max(map(len, lines), default=0)
    text = lines[0] if lines else ""
    for before, line in pairwise(lines):
        is_cut = text.endswith(("-", "‐")) and LETTER_BEFORE.search(text[:-1])
        is_full = len(before) > longest * 0.6 and longest > 45
        if text.endswith("\u00ad") or (is_cut and line[:1].islower()):
            text = text[:-1] + line
        elif is_cut or text.endswith("/"):
            text += line
        else:
            text += f" {line}" if is_full else f"\n{line}"
    return text


THIN = 3.0  # points; a thinner box is a line
NEAR = 2.5  # points; closer lines are one, closer ends touch
MOST_OBJECTS = 20_000  # on a page; with more it is a drawing
MOST_RULES = 1_500
FILLED = 0.3  # of the cells have words; with fewer it is a chart


class Rules(NamedTuple):
    """The drawn lines of a page, with the edges of boxes; `thin` ones are not from boxes."""

    flat: list[Rule]
    upright: list[Rule]
    thin: list[Rule]  # horizontal ones


@dataclass(frozen=True, slots=True)
class RuledTable:
    """A table with drawn lines: the text lines that it takes, and its rows."""

    start: int
    end: int
    rows: list[list[str]]
    edges: tuple[float, ...]  # the edges of its columns


def page_rules(page: Any) -> Rules:
    """Return the drawn horizontal and vertical lines of a page."""
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
    return Rules(*map(_merge_rules, rules))


def _edges(low: float, high: float) -> tuple[float, ...]:
    return ((low + high) / 2,) if high - low <= THIN else (low, high)


def _is_shape(part: Any) -> bool:
    """Return whether a path is more than a line or box."""
    from pypdfium2 import raw

    return bool(raw.FPDFPath_CountSegments(part) > 6)


def _boxes(part: Any) -> Iterator[tuple[float, float, float, float]]:
    """Yield the bounds of a box, or of each stroke of a path."""
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


def _merge_rules(rules: Sequence[Rule]) -> list[Rule]:
    """Join rules that overlap or continue each other."""
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
    """Return the lines, with each table's lines together, and the tables from the top down."""
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
    tables = []
    for inside, lattice in results:
        start, rows = places[id(inside[0])], lattice.rows(inside)
        tables.append(RuledTable(start, start + len(inside), rows, lattice.columns))
    return ordered, sorted(tables, key=lambda table: table.start)


class Lattice:
    """A grid of crossing lines, with the cells between them."""

    def __init__(self, flat: Sequence[Rule], upright: Sequence[Rule]) -> None:
        self.flat, self.upright = flat, upright
        self.columns = tuple(_places(upright))
        self.heights = tuple(reversed(_places(flat)))  # from the top down

    def holds(self, line: PdfLine) -> bool:
        """Return whether a text line is inside; one that extends beyond only crosses it."""
        middle = line.bottom + line.size * 0.3
        is_beside = line.left < self.columns[0] - NEAR or line.right > self.columns[-1] + line.size
        return self.heights[-1] < middle < self.heights[0] and not is_beside

    def is_filled(self, lines: Sequence[PdfLine]) -> bool:
        """Return whether the grid is a table, not a chart, form or frame."""
        places = {self.place(line, word) for line in lines for word in line.words}
        cells = (len(self.columns) - 1) * (len(self.heights) - 1)
        rows = [row for row, _column in places]
        wide = {row for row in rows if rows.count(row) > 1}
        # The last row of a table from the page before.
        is_row = len(self.heights) == 2 and len(places) == cells
        return is_row or (len(wide) > 1 and len(places) >= FILLED * cells)

    def place(self, line: PdfLine, word: PdfCell) -> tuple[int, int]:
        """Return the row and column of a word."""
        middle, height = (word.left + word.right) / 2, line.bottom + line.size * 0.3
        column = sum(edge < middle for edge in self.columns[1:-1])
        return sum(edge > height for edge in self.heights[1:-1]), column

    def rows(self, lines: Sequence[PdfLine]) -> list[list[str]]:
        """Return the rows, with one header row."""
        words = defaultdict[tuple[int, int], list[tuple[float, PdfCell]]](list)
        for line in lines:
            for word in line.words:
                words[self._owner(*self.place(line, word))].append((line.bottom, word))
        rows: list[list[Spanning]] = [
            [
                (_cell_text(words[row, column]), *self._reach(row, column))
                for column in range(len(self.columns) - 1)
                if self._owner(row, column) == (row, column)
            ]
            for row in range(len(self.heights) - 1)
        ]
        return [row for row in spread(rows) if any(row)]

    def _owner(self, row: int, column: int) -> tuple[int, int]:
        """Return the first of the cells that no border separates."""
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
        """Return whether a border is left of a cell."""
        middle = (self.heights[row] + self.heights[row + 1]) / 2
        return _is_border(self.upright, self.columns[column], middle)

    def _is_below(self, row: int, column: int) -> bool:
        """Return whether a border is above a cell."""
        middle = (self.columns[column] + self.columns[column + 1]) / 2
        return _is_border(self.flat, self.heights[row], middle)


def _is_border(rules: Sequence[Rule], place: float, middle: float) -> bool:
    return any(abs(rule.place - place) <= NEAR and rule.start < middle < rule.end for rule in rules)


def _cell_text(words: Sequence[tuple[float, PdfCell]]) -> str:
    """Join the lines of a cell from the top down; Arabic and Hebrew are read from the right."""
    lines = defaultdict[int, list[PdfCell]](list)
    for bottom, word in sorted(words, key=lambda place: place[1].left):
        lines[round(bottom)].append(word)
    texts = []
    for bottom in sorted(lines, reverse=True):
        line = [word.text for word in lines[bottom]]
        counts = Counter(map(bidirectional, "".join(line)))
        is_from_right = counts["R"] + counts["AL"] > counts["L"]
        texts.append(" ".join(reversed(line) if is_from_right else line))
    return join_lines(texts).replace("\n", " ").replace("~~ ~~", " ")


def _places(rules: Sequence[Rule]) -> list[float]:
    places: list[float] = []
    for place in sorted(rule.place for rule in rules):
        if not places or place - places[-1] > NEAR:
            places.append(place)
    return places


def lattices_of(rules: Rules, lines: Sequence[PdfLine]) -> Iterator[Lattice]:
    """Yield the grids of touching drawn lines, at least two cells wide.

    Lines that strike out words are not borders.
    """
    groups: list[tuple[list[Rule], list[Rule]]] = []
    for rule in rules.flat:
        columns = [other for other in rules.upright if _touch(rule, other)]
        if not columns or _is_strike(rule, lines):
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


def _is_strike(rule: Rule, lines: Sequence[PdfLine]) -> bool:
    return any(
        struck(rule, [(word.left, word.right) for word in line.words], line.bottom, line.size)
        for line in lines
        if 0 < rule.place - line.bottom < line.size
    )


def _touch(flat: Rule, upright: Rule) -> bool:
    is_across = flat.start - NEAR <= upright.place <= flat.end + NEAR
    return is_across and upright.start - NEAR <= flat.place <= upright.end + NEAR

"""Lines of a PDF page, put together from where each of its letters stands.

pdfium gives the letters in the order in which the program wrote them, and guesses where lines end;
what it takes for one line may be many rows of a table. Here a line is letters on one height that
go on in one direction, and a cell is what stands apart on it.
"""

import ctypes
import math
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, pairwise
from typing import Any, NamedTuple
from unicodedata import east_asian_width

from rag.documents.cleaning import BLANKS
from rag.documents.runs import Mark, Run, written

CURRENCY = {"$", "€", "£", "¥", "US$"}
TRAILING = {"%", ")", ")%"}
LIST_MARK = re.compile(r"[•●▪◦‣■□○∙·►➢✓*–—-]|\(?(?:\d{1,3}|[a-z])[.)]")
LETTER_BEFORE = re.compile(r"[^\W\d_]$")
CELL_GAP = 0.9  # of the type size: wider than any blank of a paragraph
FIGURE_GAP = 0.3  # … and than any within a figure
FIGURES = re.compile(r"[\d\s$€£¥(),.%+—–-]+")
ONE_HEIGHT = 0.5  # of the type size: so far up or down stand small figures beside a word
SAME_HEIGHT = 0.25  # of the type size
SMALL = 0.8  # … beside a word
MARK_SIZE, LEAST_RISE = 0.87, 0.1  # of the type size: at most, and at least
RAISED, LOWERED, STRUCK = (frozenset({mark}) for mark in (Mark.RAISED, Mark.LOWERED, Mark.STRUCK))
STRIKE = 0.15, 0.5  # of the type size above the line, at least and at most
STRIKE_ENDS = 0.35  # … beside the words
NO_MARKS: frozenset[Mark] = frozenset()
TABULAR = 3  # cells: columns of prose are rarely more than two
PROSE_WORDS = 5
MIN_FONT_SIZE = 4.0
LEADERS = re.compile(r"\s?(?:[.·…_]\s?){5,}")  # lead the eye to a figure or show where to write
MAX_LETTERS = 5_000  # of a line
BOLD_WEIGHT = 600
BOLD_FONTS = (b"bold", b"black", b"heavy")
FONT_NAME_BYTES = 200
QUARTER = math.pi / 2
NOTHING = (0, 0xFFFD)  # a letter whose font does not say which it is
CUT = 2  # pdfium's own code of a hyphen at the end of a line
NO_BLANKS = "\x0b\x0c\r\x1c\x1d\x1e\x1f"  # may be letters in a font of its own
Spell = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class PdfCell:
    """Words that stand together on a line."""

    text: str
    left: float
    right: float


@dataclass(frozen=True, slots=True)
class PdfLine:
    """A line of text; places in points, counted from the page's lower left corner."""

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
    """In the order of their places where most words stand in tables, else as they were written.

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
    return [line for row in rows for line in _beside(sorted(row, key=lambda line: line.left))]


def _beside(lines: Sequence[PdfLine]) -> Iterator[PdfLine]:
    """Lines of one height as one, where they do not overlap; a raised figure belongs to a word."""
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
    """As it stands in its own line's direction."""

    text: str
    left: float
    right: float
    base: float  # height of the line that it stands on
    size: float
    angle: float
    position: int  # in the page
    is_blank: bool


class Rule(NamedTuple):
    """A line along one axis that is drawn: its place on the other, and its ends."""

    place: float
    start: float
    end: float


def struck(rule: Rule, words: Sequence[tuple[float, float]], base: float, size: float) -> list[int]:
    """Which words of a line, by their ends, a rule goes through that begins and ends with them."""
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
    """In the order in which they were written; the rules strike out what they go through."""
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
        return False  # it is written from the top down
    is_elsewhere = abs(drop) > ONE_HEIGHT * size
    return is_elsewhere or before.angle != letter.angle or letter.right < before.left - 2 * size


def _letters(text_page: Any) -> Iterator[_Letter]:
    from pypdfium2 import raw

    x, y, box = ctypes.c_double(), ctypes.c_double(), raw.FS_RECTF()
    for position in range(text_page.count_chars()):
        code = raw.FPDFText_GetUnicode(text_page, position)
        is_made = raw.FPDFText_IsGenerated(text_page, position) == 1
        if code in NOTHING or (is_made and code in b"\r\n"):
            continue
        text = "-" if code == CUT and raw.FPDFText_IsHyphen(text_page, position) else chr(code)
        is_blank = is_made or (text.isspace() and text not in NO_BLANKS)
        raw.FPDFText_GetCharOrigin(text_page, position, x, y)
        # As high as the font, not as the letter.
        raw.FPDFText_GetLooseCharBox(text_page, position, box)
        size = raw.FPDFText_GetFontSize(text_page, position)
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
        if size < MIN_FONT_SIZE or size > 2 * height > 0:  # some producers scale the page
            size = height * 0.85
        yield _Letter(text, left, right, base, size, angle, position, is_blank)


def _line(
    text_page: Any, letters: Sequence[_Letter], spell: Spell, rules: Sequence[Rule]
) -> PdfLine:
    visible = [letter for letter in letters if not letter.is_blank]
    (base, size), _count = Counter((letter.base, letter.size) for letter in visible).most_common(1)[
        0
    ]
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
    """Which letters of a line are struck out, the blanks between them among them."""
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
    """From left to right."""
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
    """What is smaller and higher or lower than its line is raised or lowered."""
    runs = (
        Run(
            letter.text,
            _marks(letter, base, size) | (STRUCK if letter.position in gone else NO_MARKS),
        )
        for letter in letters
    )
    whole = written(
        Run(spell(_paired("".join(run.text for run in group))), marks)
        for marks, group in groupby(runs, key=lambda run: run.marks)
    )
    return BLANKS.sub(" ", LEADERS.sub(" ", whole)).strip(" ")


def _paired(text: str) -> str:
    """Halves of one character stand in a PDF as two."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")


def _marks(letter: _Letter, base: float, size: float) -> frozenset[Mark]:
    rise = letter.base - base
    if letter.is_blank or letter.size > MARK_SIZE * size or abs(rise) < LEAST_RISE * size:
        return NO_MARKS
    return RAISED if rise > 0 else LOWERED


def _pieces(letters: Sequence[_Letter], size: float) -> Iterator[list[_Letter]]:
    """Letters that stand further apart than words do; figures may stand closer."""
    words = list(_words(letters, FIGURE_GAP * size))
    piece = words[0]
    for before, word in pairwise(words):
        if _gap(before, word) < CELL_GAP * size and not _are_figures(before, word):
            piece = [*piece, *word]
        else:
            yield piece
            piece = word
    yield piece


def _words(letters: Sequence[_Letter], gap: float = 0.0) -> Iterator[list[_Letter]]:
    """Parted by gaps of a width, or by blanks of any."""
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
    """By weight, or by the font's name: many producers state no weight, or a wrong one."""
    from pypdfium2 import raw

    if raw.FPDFText_GetFontWeight(text_page, position) >= BOLD_WEIGHT:
        return True
    name, flags = ctypes.create_string_buffer(FONT_NAME_BYTES), ctypes.c_int()
    raw.FPDFText_GetFontInfo(text_page, position, name, FONT_NAME_BYTES, ctypes.byref(flags))
    return any(word in name.value.lower() for word in BOLD_FONTS)


def join_symbols(cells: Sequence[PdfCell], size: float) -> tuple[PdfCell, ...]:
    """A currency sign or a list mark belongs to what follows, a percent sign to what precedes."""
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
    """`$ 59,340 $` before `63,171`: the sign stood nearer to the figure before it.

    Where no sign stands before a figure (`59.340 € 63.171 €`), each is behind its own.
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
    """One paragraph: words cut at a line's end are put together, short lines keep their break."""
    longest = max(map(len, lines), default=0)
    text = lines[0] if lines else ""
    for before, line in pairwise(lines):
        text = _joined(text, line, is_full=len(before) > longest * 0.6 and longest > 45)
    return text


def _joined(text: str, line: str, *, is_full: bool) -> str:
    if text.endswith("\u00ad"):
        return text[:-1] + line
    cut = text.endswith(("-", "‐")) and LETTER_BEFORE.search(text[:-1])
    if cut and line[:1].islower():
        return text[:-1] + line
    if cut or text.endswith("/"):
        return text + line
    return f"{text} {line}" if is_full else f"{text}\n{line}"

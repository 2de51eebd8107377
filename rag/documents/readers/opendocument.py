"""Read OpenDocument texts, slides and sheets (OASIS OpenDocument 1.3)."""

import io
import re
import zipfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from rag.documents.cleaning import one_line
from rag.documents.limits import LoadLimits
from rag.documents.outline import NO_MARKS, Mark, Outline, Run, marks_of, written
from rag.documents.readers.packages import (
    NEEDS_PASSWORD,
    ZIP_START,
    check_package,
    damage_message,
    in_reading_order,
    numeral,
    report_unread,
)
from rag.documents.readers.sheets import (
    WIDEST,
    NumberedRow,
    Sheet,
    letters_of,
    number_text,
    text_of,
    write_sheets,
)
from rag.documents.tables import TypedCell, spread, typed_cell
from rag.errors import Unreadable

NAMES = "urn:oasis:names:tc:opendocument:xmlns"
TEXT, TABLE, DRAW = (f"{{{NAMES}:{part}:1.0}}" for part in ("text", "table", "drawing"))
OFFICE, PRESENTATION = (f"{{{NAMES}:{part}:1.0}}" for part in ("office", "presentation"))
TITLE = "{http://purl.org/dc/elements/1.1/}title"
STYLE = f"{{{NAMES}:style:1.0}}"
FORMULA = "{http://www.w3.org/1998/Math/MathML}annotation"  # the formula as it was typed
CONTENT = "content.xml"
READ_PARTS = re.compile(r"content\.xml|styles\.xml|meta\.xml|Object [^/]*/content\.xml")
BREAKS = {f"{TEXT}tab": "\t", f"{TEXT}line-break": "\n"}
CITED = f"{TEXT}note-citation"
COVERED = f"{TABLE}covered-table-cell"
SIDES = ("columns", "rows")
SVG = f"{{{NAMES}:svg-compatible:1.0}}"
PLACES = ("x", "y", "width", "height")
EMU = {"cm": 360_000, "mm": 36_000, "in": 914_400, "pt": 12_700}
LENGTH = re.compile(r"(-?\d{1,6}(?:\.\d{1,9})?)(cm|mm|in|pt)")
NUMERALS = {"a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
SKIPPED = {f"{TEXT}tracked-changes", f"{OFFICE}annotation", f"{TEXT}note-citation"}
HIDDEN, DELETED = marks_of(Mark.HIDDEN), marks_of(Mark.DELETED)
DEEPEST = 40  # frames, lists and tables inside each other
MOST_REPEATED = 100_000  # rows that one row element may stand for


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline; deleted text is omitted, comments follow the text."""
    with damage_message(outline.name):
        parts = _parts(data, outline, limits)
    content = parts[CONTENT]
    walk = _OdfWalk(outline, parts.values())
    for name, part in parts.items():
        body = part.find(f"{OFFICE}body")
        if body is not None:
            if name != CONTENT:
                outline.leave_headings()
            walk.children(body, 0)
            walk.comments(body)
        for formula in part.iter(FORMULA):
            outline.paragraph(formula.text or "")
    for part in parts.values():
        walk.running(part)
        _take_properties(outline, part)
    outline.pictures = sum(1 for _image in content.iter(f"{DRAW}image"))
    titles = (one_line(title.text or "") for part in parts.values() for title in part.iter(TITLE))
    outline.fallback_title = next(filter(None, titles), outline.fallback_title)


def _take_properties(outline: Outline, part: Any) -> None:
    for entry in part.iterfind(f".//{OFFICE}meta/*"):
        name, text = entry.tag.rpartition("}")[2], entry.text or ""
        if name == "creator" or (name == "initial-creator" and not outline.author):
            outline.author = text
        elif name == "date":
            outline.date = text
        elif name == "keyword":
            outline.tags.append(text)


def _parts(data: bytes, outline: Outline, limits: LoadLimits) -> dict[str, Any]:
    """Return the content and other parts that are read: charts, styles, metadata."""
    from defusedxml.ElementTree import fromstring

    if not data.startswith(ZIP_START):
        return {CONTENT: fromstring(data)}
    check_package(outline.name, data, limits)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if b"encryption-data" in archive.read("META-INF/manifest.xml"):
            raise Unreadable(outline.name, NEEDS_PASSWORD)
        names = list(filter(READ_PARTS.fullmatch, archive.namelist()))
        report_unread(archive, outline, names)
        return {name: fromstring(archive.read(name)) for name in dict.fromkeys([CONTENT, *names])}


class _Placed(NamedTuple):
    """An element of a slide with its position and size in EMU."""

    element: Any
    left: int
    top: int
    width: int
    height: int


class _OdfWalk:
    """Recursive descent, in reading order."""

    def __init__(self, outline: Outline, parts: Collection[Any]) -> None:
        self.outline = outline
        self.styles = {name: marks for part in parts for name, marks in _styles(part)}
        self.levels = {
            (style.get(f"{STYLE}name", ""), level.get(f"{TEXT}level", "")): level
            for part in parts
            for style in part.iter(f"{TEXT}list-style")
            for level in style
        }
        # Entries so far, for each list style and level.
        self.counts: Counter[tuple[str, int]] = Counter()
        self.slides = 0

    def children(self, parent: Any, depth: int) -> None:
        if depth > DEEPEST:
            self.outline.paragraph(self.words(parent))
            return
        for element in parent:
            self.element(element, depth)

    def element(self, element: Any, depth: int) -> None:
        if element.tag in SKIPPED:
            return
        if element.tag == f"{DRAW}page":
            self.slide(element, depth)
        elif element.tag == f"{TEXT}h":
            level = _count(element.get(f"{TEXT}outline-level", "1"))
            self.outline.heading(level, self.words(element))
        elif element.tag == f"{TEXT}p":
            self.outline.paragraph(self.words(element))
            self.notes(element)
        elif element.tag == f"{TEXT}list":
            self.entries(element, 0, element.get(f"{TEXT}style-name", ""))
        elif element.tag == f"{TABLE}table":
            self.table(element, depth)
        elif element.get(f"{TEXT}display") == "none":  # a hidden section
            self.outline.count_unseen([Run(" ".join(element.itertext()), HIDDEN)])
        else:
            self.children(element, depth + 1)

    def slide(self, page: Any, depth: int) -> None:
        self.slides += 1
        self.outline.pages = self.slides
        self.outline.leave_headings()
        self.outline.place(f"slide {self.slides}", page=self.slides)
        titles = [frame for frame in page if frame.get(f"{PRESENTATION}class") == "title"]
        notes = page.findall(f"{PRESENTATION}notes")
        for title in titles:
            self.outline.heading(1, self.words(title))
        others: list[_Placed] = []
        for frame in (frame for frame in page if frame not in [*titles, *notes]):
            lengths = (LENGTH.fullmatch(frame.get(f"{SVG}{side}", "")) for side in PLACES)
            emus = (round(float(one[1]) * EMU[one[2]]) if one else 0 for one in lengths)
            others.append(_Placed(frame, *emus))
        for placed in in_reading_order(others):
            self.children(placed.element, depth + 1)
        for words in filter(None, map(self.words, notes)):
            self.outline.paragraph(f"Notes: {words}")

    def entries(self, listed: Any, depth: int, style: str) -> None:
        level = self.levels.get((style, str(depth + 1)))
        if listed.get(f"{TEXT}continue-numbering") != "true":
            start = level.get(f"{TEXT}start-value", "1") if level is not None else "1"
            self.counts[style, depth] = _count(start) - 1
        for item in listed:
            if again := item.get(f"{TEXT}start-value"):
                self.counts[style, depth] = _count(again) - 1
            if item.tag == f"{TEXT}list-item":
                self.counts[style, depth] += 1
            mark = f"- {self.label(level, style, depth)}".strip()
            for element in item:
                if element.tag == f"{TEXT}list" and depth < DEEPEST:
                    self.entries(element, depth + 1, element.get(f"{TEXT}style-name", style))
                elif element.tag in (f"{TEXT}p", f"{TEXT}h"):
                    self.outline.entry(self.words(element), depth=depth, mark=mark)
                    mark = "-"

    def label(self, level: Any, style: str, depth: int) -> str:
        """Return an entry's number, `2.`, `b)`, `1.2`; "" where entries are not numbered."""
        form = level.get(f"{STYLE}num-format", "") if level is not None else ""
        if not form:
            return ""
        levels = min(_count(level.get(f"{TEXT}display-levels", "1")), depth + 1)
        counts = (
            max(self.counts[style, position], 1)
            for position in range(depth + 1 - levels, depth + 1)
        )
        figures = ".".join(numeral(count, NUMERALS.get(form, "")) for count in counts)
        before, after = (level.get(f"{STYLE}num-{side}", "") for side in ("prefix", "suffix"))
        return f"{before}{figures}{after}"

    def table(self, element: Any, depth: int) -> None:
        """Write a table, then the tables inside its cells, each under its row's name."""
        rows = list(_direct_children(element, f"{TABLE}table-row"))
        self.outline.table(spread([self.cells(row) for row in rows]))
        for row in rows:
            inner = list(_direct_children(row, f"{TABLE}table"))
            name = next((text for text, _across, _down in self.cells(row) if text), "")
            self.outline.paragraph(f"{name}:" if inner and name else "")
            for table in inner if depth < DEEPEST else ():
                self.table(table, depth + 1)

    def words(self, element: Any) -> str:
        """Return the text of an element without footnotes."""
        return written(self.runs(element, NO_MARKS)).strip("\n")

    def runs(self, element: Any, marks: frozenset[Mark]) -> Iterator[Run]:
        marks |= self.styles.get(element.get(f"{TEXT}style-name", ""), NO_MARKS)
        yield Run(element.text or "", marks)
        for child in element:
            if child.tag == f"{TEXT}s":
                yield Run(" " * min(_count(child.get(f"{TEXT}c", "1")), 100), marks)
            elif child.tag in BREAKS:
                yield Run(BREAKS[child.tag], marks)
            elif child.tag == f"{TEXT}note":
                yield Run(f" [note {''.join(child.findtext(CITED) or '')}]", marks)
            elif child.tag not in SKIPPED:
                yield from self.runs(child, marks)
                yield Run("\n" * (child.tag == f"{TEXT}p"), marks)
            yield Run(child.tail or "", marks)

    def cells(self, row: Any) -> list[tuple[str, int, int]]:
        """Return for each cell its text and how many columns and rows it spans."""
        cells: list[tuple[str, int, int]] = []
        for cell in row.iterfind(f"{TABLE}table-cell"):
            text = " ".join(map(self.words, _direct_children(cell, f"{TEXT}p")))
            across, down = (_repetitions(cell, f"number-{side}-spanned") for side in SIDES)
            again = _repetitions(cell, "number-columns-repeated") if text else 1
            cells += [(text, across, down)] * again
        return cells

    def comments(self, body: Any) -> None:
        """Write the comments; deleted text is only counted."""
        for note in body.iter(f"{OFFICE}annotation"):
            words = " ".join(map(self.words, note.iter(f"{TEXT}p")))
            self.outline.paragraph(f"Comment: {words}" if words else "")
        for changes in body.iter(f"{TEXT}tracked-changes"):
            self.outline.count_unseen([Run(" ".join(changes.itertext()), DELETED)])

    def running(self, part: Any) -> None:
        """Write headers and footers, each once."""
        lines = (
            (place.capitalize(), one_line(self.words(line)))
            for place in ("header", "footer")
            for area in part.iter(f"{STYLE}{place}")
            for line in area.iter(f"{TEXT}p")
        )
        self.outline.leave_headings()
        for place, line in dict.fromkeys(lines):
            if line and not line.isdecimal():
                self.outline.paragraph(f"{place}: {line}")

    def notes(self, paragraph: Any) -> None:
        for note in paragraph.iter(f"{TEXT}note-body"):
            self.outline.paragraph(self.words(note))


# ── Sheets ───────────────────────────────────────────────────────────────────────────────────

FIGURES = {"float", "percentage", "currency"}
AFFIXES = re.compile(r"([^\d(+−.-]*)[(+−-]?[ \xa0]?[\d.,'’ \xa0\u202f]*\d[)−-]?([^\d/:]*)")
SCALED = f"{{{NAMES}:datastyle:1.0}}display-factor"
HIDDEN_SHEET = f"{STYLE}table-properties[@{TABLE}display='false']"


def read_sheets(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline with the values of all visible sheets, and the cells' comments."""
    with damage_message(outline.name):
        parts = _parts(data, outline, limits)
        for part in parts.values():
            _take_properties(outline, part)
        write_sheets(list(_SheetReader(outline, parts).sheets()), outline, limits)


class _SheetReader:
    """Reads cells as they are displayed, in full precision."""

    def __init__(self, outline: Outline, parts: Mapping[str, Any]) -> None:
        self._content = parts[CONTENT]
        self._walk = _OdfWalk(outline, parts.values())
        self._is_scaled = any(  # the format shows thousands
            style.get(SCALED) for part in parts.values() for style in part.iter()
        )
        self._unseen = {
            style.get(f"{STYLE}name")
            for style in self._content.iter(f"{STYLE}style")
            if style.find(HIDDEN_SHEET) is not None
        }

    def sheets(self) -> Iterator[Sheet]:
        for table in self._content.iterfind(f"{OFFICE}body/{OFFICE}spreadsheet/{TABLE}table"):
            title = table.get(f"{TABLE}name", "")
            if table.get(f"{TABLE}style-name") in self._unseen:
                yield Sheet(title, is_hidden=True)
                continue
            cells = [
                (column, number, cell)
                for number, row in _numbered(table, "row")
                for column, cell in _numbered(row, "cell", COVERED)
                if len(cell)
            ]
            formulas: list[str] = []
            yield Sheet(
                title,
                self._rows(table, formulas),
                formulas=formulas,
                hidden_rows=_unseen(table, "row"),
                hidden_columns=_unseen(table, "column"),
                notes=[
                    (column, number, self._words(note))
                    for column, number, cell in cells
                    for note in cell.iter(f"{OFFICE}annotation")
                ],
                merged=[
                    (column, number, number + deep - 1)
                    for column, number, cell in cells
                    if (deep := _repetitions(cell, "number-rows-spanned")) > 1
                ],
            )

    def _rows(self, table: Any, formulas: list[str]) -> Iterator[NumberedRow]:
        for first, row in _numbered(table, "row"):
            count = min(_count(row.get(f"{TABLE}number-rows-repeated", "1")), MOST_REPEATED)
            for number in range(first, first + count):
                if not any(cells := list(self._cells(row, number, formulas))):
                    break
                yield number, cells

    def _cells(self, row: Any, number: int, formulas: list[str]) -> Iterator[str]:
        for first, cell in _numbered(row, "cell", COVERED):
            count = _count(cell.get(f"{TABLE}number-columns-repeated", "1"))
            formula = cell.get(f"{TABLE}formula", "").partition("=")[2]
            for column in range(first, min(first + count, WIDEST)):
                place = f"{letters_of(column)}{number}"
                text = self._cell(cell, place) if len(cell) else ""
                if formula and not text:  # the formula's result is not stored
                    formulas.append(place)
                    text = TypedCell(f"={formula}", None, place)
                yield text

    def _cell(self, cell: Any, place: str) -> str:
        text, kind = self._words(cell), cell.get(f"{OFFICE}value-type", "")
        with suppress(ValueError):
            if kind in FIGURES:
                value = float(cell.get(f"{OFFICE}value", ""))
                return typed_cell(self._figure(text, value, kind), value, place)
            if day := cell.get(f"{OFFICE}date-value", ""):
                return text_of(datetime.fromisoformat(day))
        stored = cell.get(f"{OFFICE}boolean-value", "")
        return text_of(stored == "true") if stored else text

    def _figure(self, text: str, value: float, kind: str) -> str:
        """Write all digits of a value, with the currency, unit or leading zeros of its format."""
        match = AFFIXES.fullmatch(text)
        if match is None or (self._is_scaled and kind == "float"):
            return number_text(value)
        if text.isdigit() and text.startswith("0") and len(text) > 1:
            return text  # a code of a fixed length
        before, after = (affix.strip() for affix in match.groups())
        figure = number_text(round(value * 100, 10) if after == "%" else value)
        lead = " " * before[-1:].isalpha()
        return f"{before}{lead}{figure}{' ' * (after not in ('', '%'))}{after}"

    def _words(self, element: Any) -> str:
        marks = self._walk.styles.get(element.get(f"{TABLE}style-name", ""), NO_MARKS)
        lines = (written(self._walk.runs(line, marks)) for line in element.iterfind(f"{TEXT}p"))
        return " ".join(map(one_line, lines))


def _numbered(parent: Any, kind: str, *others: str) -> Iterator[tuple[int, Any]]:
    """Yield rows, columns or cells with their numbers from 1; one may stand for several."""
    number = 1
    names = {f"{TABLE}table-{kind}", *others}
    repeated = f"{TABLE}number-{'rows' if kind == 'row' else 'columns'}-repeated"
    for element in parent.iter():
        if element.tag in names:
            yield number, element
            number += _count(element.get(repeated, "1"))


def _unseen(table: Any, kind: str) -> set[int]:
    repeated = f"{TABLE}number-{kind}s-repeated"
    return {
        place
        for first, line in _numbered(table, kind)
        if line.get(f"{TABLE}visibility", "visible") != "visible"
        for place in range(first, first + min(_count(line.get(repeated, "1")), MOST_REPEATED))
    }


# ── Styles ───────────────────────────────────────────────────────────────────────────────────


def _styles(content: Any) -> Iterator[tuple[str, frozenset[Mark]]]:
    """Yield what character styles say of raised, lowered, struck and hidden text."""
    for style in content.iter(f"{STYLE}style"):
        properties = style.find(f"{STYLE}text-properties")
        if properties is None:
            continue
        place = properties.get(f"{STYLE}text-position", "")
        side = Mark.LOWERED if place.startswith(("sub", "-")) else Mark.RAISED
        is_moved = place.split(" ")[0].rstrip("%").lstrip("-").strip("0") != ""
        is_struck = properties.get(f"{STYLE}text-line-through-style", "none") != "none"
        is_hidden = properties.get(f"{TEXT}display") == "none"
        marks = marks_of(
            side if is_moved else None,
            Mark.STRUCK if is_struck else None,
            Mark.HIDDEN if is_hidden else None,
        )
        yield style.get(f"{STYLE}name", ""), marks


def _direct_children(element: Any, tag: str) -> Iterator[Any]:
    """Yield the element's own descendants with a tag, without those of tables inside it."""
    for child in element:
        if child.tag == tag:
            yield child
        elif child.tag != f"{TABLE}table":
            yield from _direct_children(child, tag)


def _count(value: str) -> int:
    return int(value[:6]) if value.isdecimal() else 1


def _repetitions(cell: Any, name: str) -> int:
    return min(max(1, _count(cell.get(f"{TABLE}{name}", "1"))), WIDEST)

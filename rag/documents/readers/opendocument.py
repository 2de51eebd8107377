"""OpenDocument texts and slides to sections (OASIS OpenDocument 1.3)."""

import io
import re
import zipfile
from collections.abc import Iterator
from typing import Any

from rag.documents.cleaning import one_line
from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.documents.readers.packages import (
    ZIP_START,
    check_package,
    damage_message,
    report_unread,
)
from rag.documents.runs import Mark, Run, written
from rag.documents.tables import spread
from rag.errors import Unreadable

NAMES = "urn:oasis:names:tc:opendocument:xmlns"
TEXT, TABLE, DRAW = (f"{{{NAMES}:{part}:1.0}}" for part in ("text", "table", "drawing"))
OFFICE, PRESENTATION = (f"{{{NAMES}:{part}:1.0}}" for part in ("office", "presentation"))
TITLE = "{http://purl.org/dc/elements/1.1/}title"
STYLE = f"{{{NAMES}:style:1.0}}"
FORMULA = "{http://www.w3.org/1998/Math/MathML}annotation"  # as it was typed
CONTENT = "content.xml"
READ_PARTS = re.compile(r"content\.xml|styles\.xml|meta\.xml|Object [^/]*/content\.xml")
BREAKS = {f"{TEXT}tab": "\t", f"{TEXT}line-break": "\n"}
CITED = f"{TEXT}note-citation"
SIDES = ("columns", "rows")
SKIPPED = {f"{TEXT}tracked-changes", f"{OFFICE}annotation", f"{TEXT}note-citation"}
DEEPEST = 40  # frames, lists and tables inside each other
MOST_HIDDEN = 100_000  # rows that one stands for
WIDEST = 1_000  # cells that one stands for: sheets fill whole rows with a repeated empty cell


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline; deleted text is left out, comments stand behind."""
    with damage_message(outline.name):
        parts = _parts(data, outline, limits)
    content = parts[CONTENT]
    marks = [pair for part in parts.values() for pair in _styles(part)]
    walk = _OdfWalk(outline, dict(marks))
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
    outline.pictures = sum(1 for _image in content.iter(f"{DRAW}image"))
    for part in parts.values():
        _take_properties(outline, part)
    titles = (one_line(each.text or "") for part in parts.values() for each in part.iter(TITLE))
    outline.fallback_title = next(filter(None, titles), outline.fallback_title)


def _take_properties(outline: Outline, part: Any) -> None:
    """Who wrote it, when, and its keywords."""
    for each in (each for meta in part.iter(f"{OFFICE}meta") for each in meta):
        word = each.tag.rpartition("}")[2] if isinstance(each.tag, str) else ""
        if word == "creator" or (word == "initial-creator" and not outline.author):
            outline.author = each.text or ""
        elif word == "date":
            outline.date = each.text or ""
        elif word == "keyword":
            outline.tags.append(each.text or "")


def _parts(data: bytes, outline: Outline, limits: LoadLimits) -> dict[str, Any]:
    """The content, and what is beside it that is read: charts, running lines, the title."""
    from defusedxml.ElementTree import fromstring

    if not data.startswith(ZIP_START):
        return {CONTENT: fromstring(data)}
    check_package(outline.name, data, limits)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if b"encryption-data" in archive.read("META-INF/manifest.xml"):
            raise Unreadable(
                outline.name, "the file is encrypted and needs a password. Save it without one."
            )
        names = [each for each in archive.namelist() if READ_PARTS.fullmatch(each)]
        report_unread(archive, outline, names)
        return {name: fromstring(archive.read(name)) for name in dict.fromkeys([CONTENT, *names])}


class _OdfWalk:
    """Recursive descent, in reading order."""

    def __init__(self, outline: Outline, styles: dict[str, frozenset[Mark]]) -> None:
        self.outline = outline
        self.styles = styles
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
            level = element.get(f"{TEXT}outline-level", "1")
            self.outline.heading(int(level) if level.isdecimal() else 1, self.words(element))
        elif element.tag == f"{TEXT}p":
            self.outline.paragraph(self.words(element))
            self.notes(element)
        elif element.tag == f"{TEXT}list":
            self.entries(element, 0)
        elif element.tag == f"{TABLE}table":
            self.outline.table(spread(self.rows(element)))
        else:
            self.children(element, depth + 1)

    def slide(self, page: Any, depth: int) -> None:
        self.slides += 1
        self.outline.pages = self.slides
        self.outline.leave_headings()
        self.outline.place(f"slide {self.slides}", page=self.slides)
        for frame in page:
            if frame.get(f"{PRESENTATION}class") == "title":
                self.outline.heading(1, self.words(frame))
            elif frame.tag == f"{PRESENTATION}notes":
                words = self.words(frame)
                self.outline.paragraph(f"Notes: {words}" if words else "")
            else:
                self.children(frame, depth + 1)

    def entries(self, listed: Any, depth: int) -> None:
        for item in listed:
            for element in item:
                if element.tag == f"{TEXT}list" and depth < DEEPEST:
                    self.entries(element, depth + 1)
                elif element.tag in (f"{TEXT}p", f"{TEXT}h"):
                    self.outline.entry(self.words(element), depth=depth)

    def words(self, element: Any) -> str:
        """The text of an element, its footnotes apart."""
        return written(self.runs(element, frozenset())).strip("\n")

    def runs(self, element: Any, marks: frozenset[Mark]) -> Iterator[Run]:
        marks |= self.styles.get(element.get(f"{TEXT}style-name", ""), frozenset())
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

    def rows(self, table: Any) -> list[list[tuple[str, int, int]]]:
        """Of each cell the text, and over how many columns and rows it reaches."""
        rows: list[list[tuple[str, int, int]]] = []
        for row in table.iter(f"{TABLE}table-row"):
            cells: list[tuple[str, int, int]] = []
            for cell in row:
                if cell.tag != f"{TABLE}table-cell":
                    continue
                text = " ".join(self.words(each) for each in cell.iter(f"{TEXT}p"))
                across, down = (_number(cell, f"number-{side}-spanned") for side in SIDES)
                again = _number(cell, "number-columns-repeated") if text else 1
                cells += [(text, across, down)] * again
            rows.append(cells)
        return rows

    def remarks(self, table: Any) -> tuple[set[int], dict[str, str]]:
        """The numbers of rows that nobody sees, and the notes on cells by their places."""
        from openpyxl.utils import get_column_letter

        hidden: set[int] = set()
        notes: dict[str, str] = {}
        number = 1
        for row in table.iter(f"{TABLE}table-row"):
            count = _count(row.get(f"{TABLE}number-rows-repeated", "1"))
            if row.get(f"{TABLE}visibility", "visible") != "visible":
                hidden |= set(range(number, number + min(count, MOST_HIDDEN)))
            column = 1
            for cell in row:
                for note in cell.iter(f"{OFFICE}annotation"):
                    text = " ".join(self.words(each) for each in note.iter(f"{TEXT}p"))
                    notes[f"{get_column_letter(column)}{number}"] = one_line(text)
                column += _count(cell.get(f"{TABLE}number-columns-repeated", "1"))
            number += count
        return hidden, notes

    def comments(self, body: Any) -> None:
        """What people noted; deleted text is only counted."""
        for note in body.iter(f"{OFFICE}annotation"):
            words = " ".join(self.words(each) for each in note.iter(f"{TEXT}p"))
            self.outline.paragraph(f"Comment: {words}" if words else "")
        gone = " ".join(" ".join(each.itertext()) for each in body.iter(f"{TEXT}tracked-changes"))
        self.outline.count_unseen([Run(gone, frozenset({Mark.DELETED}))])

    def running(self, part: Any) -> None:
        """What stands above and below every page, once."""
        lines = (
            (place.capitalize(), one_line(self.words(line)))
            for place in ("header", "footer")
            for each in part.iter(f"{STYLE}{place}")
            for line in each.iter(f"{TEXT}p")
        )
        self.outline.leave_headings()
        for place, line in dict.fromkeys(lines):
            if line and not line.isdecimal():
                self.outline.paragraph(f"{place}: {line}")

    def notes(self, paragraph: Any) -> None:
        for note in paragraph.iter(f"{TEXT}note-body"):
            self.outline.paragraph(self.words(note))


def sheet_remarks(data: bytes, outline: Outline) -> dict[str, tuple[set[int], dict[str, str]]]:
    """Of each sheet the rows that nobody sees, and what was noted on cells."""
    from defusedxml.ElementTree import fromstring

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = [each for each in archive.namelist() if READ_PARTS.fullmatch(each)]
        report_unread(archive, outline, names)
        markup = archive.read(CONTENT)
    if b":annotation" not in markup and b":visibility" not in markup:
        return {}
    walk = _OdfWalk(outline, {})
    return {
        table.get(f"{TABLE}name", ""): walk.remarks(table)
        for table in fromstring(markup).iter(f"{TABLE}table")
    }


def _styles(content: Any) -> Iterator[tuple[str, frozenset[Mark]]]:
    """What styles of characters say of raised, lowered, struck and hidden text."""
    for style in content.iter(f"{STYLE}style"):
        said = style.find(f"{STYLE}text-properties")
        if said is None:
            continue
        place = said.get(f"{STYLE}text-position", "")
        height = place.split(" ")[0].rstrip("%")
        is_low = place.startswith(("sub", "-"))
        is_moved = place.startswith(("sup", "sub")) or height.lstrip("-").strip("0") != ""
        marks = {Mark.LOWERED if is_low else Mark.RAISED} if place and is_moved else set()
        if said.get(f"{STYLE}text-line-through-style", "none") != "none":
            marks.add(Mark.STRUCK)
        if said.get(f"{TEXT}display") == "none":
            marks.add(Mark.HIDDEN)
        yield style.get(f"{STYLE}name", ""), frozenset(marks)


def _count(value: str) -> int:
    return int(value[:6]) if value.isdecimal() else 1


def _number(cell: Any, name: str) -> int:
    value = cell.get(f"{TABLE}{name}", "1")
    return min(max(1, int(value[:6])), WIDEST) if value.isdecimal() else 1

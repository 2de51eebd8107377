"""DOCX to sections: paragraphs, lists and tables in the order of the document."""

import io
import re
from collections.abc import Iterator
from typing import Any

from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.documents.readers.packages import check_package, damage_told
from rag.documents.readers.word.math import MATH, latex
from rag.documents.readers.word.numbers import WORD, Numbers
from rag.documents.tables import spread

HEADING_STYLE = re.compile(r"(?:heading|überschrift|titre|título|titolo)\s*([1-9])", re.IGNORECASE)
LIST_STYLE = re.compile(r"list|aufzählung", re.IGNORECASE)
TEXT_BOX_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
PICTURE = "{http://schemas.openxmlformats.org/drawingml/2006/main}blip"
UNSEEN = {f"{WORD}{name}" for name in ("pPr", "rPr", "del", "moveFrom")}
NOTES = re.compile(r"(?:foot|end)notes\d*\.xml")
RUNNING = re.compile(r"(header|footer)\d*\.xml")
COMMENTS = re.compile(r"comments\d*\.xml")
OTHER_KINDS = (
    "application/vnd.ms-word.document.macroEnabled.main+xml",
    "application/vnd.ms-word.template.macroEnabledTemplate.main+xml",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.template.main+xml",
)
DEEPEST = 12  # tables and content controls inside each other


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline; notes, headers, footers and comments stand behind the text."""
    from docx.opc.exceptions import OpcError

    check_package(outline.name, data, limits)
    with damage_told(outline.name, OpcError):
        document = _opened(data)
        outline.fallback_title = document.core_properties.title or ""
        styles = {style.style_id: style.name or "" for style in document.styles}
        body = document.element.body
        behind = [*_notes(document), *_running(document), *_comments(document)]
        numbers = Numbers(document)
    if body is not None:
        _DocxWalk(outline, styles, numbers).blocks(body, 0)
        for text in behind:
            outline.paragraph(text)
        outline.pictures = sum(1 for _picture in body.iter(PICTURE))


def _opened(data: bytes) -> Any:
    """As `docx.Document` does, which refuses templates and documents with macros."""
    from docx.opc.part import PartFactory
    from docx.package import Package
    from docx.parts.document import DocumentPart

    PartFactory.part_type_for.update(dict.fromkeys(OTHER_KINDS, DocumentPart))
    return Package.open(io.BytesIO(data)).main_document_part.document


def _notes(document: Any) -> Iterator[str]:
    """Footnotes and endnotes, behind the text."""
    for _kind, part in _parts(document, NOTES):
        for note in part.iterchildren(f"{WORD}footnote", f"{WORD}endnote"):
            text = " ".join("".join(_visible(note)).split())
            if text:
                yield text


def _running(document: Any) -> Iterator[str]:
    """What stands above and below every page, each once."""
    told: set[str] = set()
    for kind, part in _parts(document, RUNNING):
        text = " ".join("".join(_visible(part)).split())
        if text and text not in told and not text.isdecimal():
            told.add(text)
            yield f"{kind[1].capitalize()}: {text}"


def _comments(document: Any) -> Iterator[str]:
    for _kind, part in _parts(document, COMMENTS):
        for comment in part.iterchildren(f"{WORD}comment"):
            text = " ".join("".join(_visible(comment)).split())
            if text:
                yield f"Comment by {comment.get(f'{WORD}author') or 'somebody'}: {text}"


def _parts(document: Any, shape: re.Pattern[str]) -> Iterator[tuple[re.Match[str], Any]]:
    """The parts of the package with such names, parsed."""
    from docx.oxml import parse_xml

    for part in document.part.package.iter_parts():
        if kind := shape.fullmatch(part.partname.rsplit("/", 1)[-1]):
            yield kind, parse_xml(part.blob)


class _DocxWalk:
    """Walks the body's XML itself: python-docx leaves out content controls and text boxes."""

    def __init__(self, outline: Outline, styles: dict[str, str], numbers: Numbers) -> None:
        self.outline = outline
        self.styles = styles
        self.numbers = numbers

    def blocks(self, parent: Any, depth: int) -> None:
        for element in parent.iterchildren(tag=f"{WORD}*"):
            if element.tag == f"{WORD}p":
                self.paragraph(element)
            elif element.tag == f"{WORD}tbl":
                self.table(element, depth)
            elif depth < DEEPEST and element.tag in {
                f"{WORD}sdt",
                f"{WORD}sdtContent",
                f"{WORD}ins",
            }:
                self.blocks(element, depth + 1)

    def paragraph(self, element: Any) -> None:
        text = "".join(_visible(element)).strip()
        if not text:
            return
        style_id = _style_id(element)
        style = self.styles.get(style_id, style_id)
        level = _heading_level(element, style)
        label = self.numbers.label(element, style_id)
        if style.lower() == "title" and not self.outline.title:
            self.outline.title = text
        elif level and len(text) < 250:
            self.outline.heading(level, f"{label or ''} {text}")
        elif label is not None or LIST_STYLE.match(style):
            self.outline.entry(text, depth=_list_depth(element), mark=f"- {label or ''}".strip())
        else:
            self.outline.paragraph(text)

    def table(self, element: Any, depth: int) -> None:
        rows = _rows(element)
        if len(rows) == 1 or all(len(row) == 1 for row in rows):
            for row in element.iterchildren(f"{WORD}tr"):  # a frame around text
                for cell in row.iterchildren(f"{WORD}tc"):
                    if depth < DEEPEST:
                        self.blocks(cell, depth + 1)
            return
        self.outline.table(spread([list(map(tuple, row)) for row in rows]))


def _style_id(element: Any) -> str:
    found = element.find(f"{WORD}pPr/{WORD}pStyle")
    return found.get(f"{WORD}val", "") if found is not None else ""


def _visible(element: Any) -> Iterator[str]:
    """Text of runs, with tabs and breaks; deleted text and fall-back copies left out."""
    for child in element.iterchildren():
        if child.tag == f"{WORD}t":
            yield child.text or ""
        elif child.tag == f"{WORD}tab":
            yield "\t"
        elif child.tag in {f"{WORD}br", f"{WORD}cr"}:
            yield "\n"
        elif child.tag == f"{WORD}noBreakHyphen":
            yield "-"
        elif child.tag == f"{MATH}oMath":
            yield f" ${latex(child)}$ "
        elif child.tag not in {*UNSEEN, TEXT_BOX_FALLBACK}:
            edge = "\n" * (child.tag == f"{WORD}p")  # a paragraph of a text box
            yield from (edge, *_visible(child), edge)


def _heading_level(element: Any, style: str) -> int:
    match = HEADING_STYLE.match(style)
    if match:
        return int(match.group(1))
    outline_level = element.find(f"{WORD}pPr/{WORD}outlineLvl")
    value = outline_level.get(f"{WORD}val", "9") if outline_level is not None else "9"
    return int(value) + 1 if len(value) == 1 and value in "012345678" else 0


def _list_depth(element: Any) -> int:
    level = element.find(f"{WORD}pPr/{WORD}numPr/{WORD}ilvl")
    value = level.get(f"{WORD}val", "0") if level is not None else "0"
    return int(value[:2]) if value.isdecimal() else 0


def _rows(table: Any) -> list[list[list[Any]]]:
    """Of each cell the text, and over how many columns and rows it reaches."""
    rows: list[list[list[Any]]] = []
    last: dict[int, list[Any]] = {}  # cell of each column
    for row in table.iterchildren(f"{WORD}tr"):
        rows.append([])
        at = 0
        for cell in row.iterchildren(f"{WORD}tc"):
            width = _span(cell)
            merged = cell.find(f"{WORD}tcPr/{WORD}vMerge")
            if merged is not None and merged.get(f"{WORD}val") != "restart" and at in last:
                last[at][2] += 1
            else:
                last[at] = [_cell_text(cell), width, 1]
                rows[-1].append(last[at])
            at += width
    return rows


def _cell_text(cell: Any) -> str:
    paragraphs = ("".join(_visible(paragraph)) for paragraph in cell.iter(f"{WORD}p"))
    return " ".join(filter(None, map(str.strip, paragraphs)))


def _span(cell: Any) -> int:
    span = cell.find(f"{WORD}tcPr/{WORD}gridSpan")
    value = span.get(f"{WORD}val", "1") if span is not None else "1"
    return min(max(1, int(value[:4])), 200) if value.isdecimal() else 1

"""Write DOCX, PPTX and XLSX files whose bytes do not depend on the day they are made."""

import json
import re
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

from docx import Document
from docx.document import Document as WordDocument
from markup import Block
from openpyxl import Workbook
from openpyxl.styles import Font
from pptx import Presentation
from pptx.slide import Slide
from pptx.util import Inches, Pt

MADE = datetime(2026, 1, 5, 9, 0, 0)
STAMP = b"2026-01-05T09:00:00Z"
WORD_STYLES = {"bullet": "List Bullet", "number": "List Number", "paragraph": "Normal"}


def write_docx(path: Path, title: str, blocks: list[Block]) -> None:
    """A Word document with real headings, lists and tables."""
    document = Document()
    _describe(document.core_properties, title)
    for block in blocks:
        _add_to_word(document, block)
    document.save(str(path))
    freeze(path)


def _add_to_word(document: WordDocument, block: Block) -> None:
    if block.kind == "break":
        document.add_page_break()
    elif block.kind == "heading":
        document.add_heading(block.text, level=block.level - 1)
    elif block.kind == "table":
        table = document.add_table(rows=0, cols=len(block.rows[0]), style="Light Grid Accent 1")
        for row in block.rows:
            for cell, text in zip(table.add_row().cells, row, strict=True):
                cell.text = text
    else:
        document.add_paragraph(block.text, style=WORD_STYLES[block.kind])


def write_pptx(path: Path, title: str, blocks: list[Block]) -> None:
    """One slide per heading: bullets, at most one table, and the `> ` lines as speaker notes."""
    deck = Presentation()
    _describe(deck.core_properties, title)
    for position, slide_blocks in enumerate(_by_slide(blocks)):
        layout = deck.slide_layouts[0 if position == 0 else 5 if _has_table(slide_blocks) else 1]
        _fill_slide(deck.slides.add_slide(layout), slide_blocks)
    deck.save(str(path))
    freeze(path)


def _by_slide(blocks: list[Block]) -> list[list[Block]]:
    slides: list[list[Block]] = []
    for block in blocks:
        if block.kind == "heading":
            slides.append([])
        slides[-1].append(block)
    return slides


def _has_table(blocks: list[Block]) -> bool:
    return any(block.kind == "table" for block in blocks)


def _fill_slide(slide: Slide, blocks: list[Block]) -> None:
    slide.shapes.title.text = blocks[0].text
    lines = [block.text for block in blocks[1:] if block.kind in {"bullet", "paragraph"}]
    for block in blocks:
        if block.kind == "table":
            _add_table(slide, block.rows)
        elif block.kind == "note":
            slide.notes_slide.notes_text_frame.text = block.text
    if lines:
        _text_frame(slide).text = "\n".join(lines)


def _text_frame(slide: Slide) -> Any:
    """The body placeholder, or a box below the table on slides that have none."""
    if len(slide.placeholders) > 1:
        return slide.placeholders[1].text_frame
    box = slide.shapes.add_textbox(Inches(0.7), Inches(5.9), Inches(8.6), Inches(1.2))
    box.text_frame.word_wrap = True
    return box.text_frame


def _add_table(slide: Slide, rows: tuple[tuple[str, ...], ...]) -> None:
    frame = slide.shapes.add_table(
        len(rows), len(rows[0]), Inches(0.7), Inches(1.6), Inches(8.6), Inches(0.4 * len(rows))
    )
    for row, texts in zip(frame.table.rows, rows, strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text
            cell.text_frame.paragraphs[0].font.size = Pt(14)


def write_xlsx(path: Path, title: str, source: Path) -> None:
    """A workbook from JSON: {"sheets": [{"name", "head": […], "rows": [[…], …]}, …]}."""
    book = Workbook()
    book.remove(book.active)
    _describe(book.properties, title)
    for sheet in json.loads(source.read_text(encoding="utf-8"))["sheets"]:
        page = book.create_sheet(sheet["name"])
        for row in (sheet["head"], *sheet["rows"]):
            page.append(row)
        for cell in page[1]:
            cell.font = Font(bold=True)
        page.freeze_panes = "A2"
    book.save(path)
    freeze(path)


def _describe(properties: Any, title: str) -> None:
    properties.title = title
    for name in ("author", "creator"):  # Word and PowerPoint say author, Excel says creator
        if hasattr(properties, name):
            setattr(properties, name, "Nornwick Instruments")
    properties.created = properties.modified = MADE


def freeze(path: Path) -> None:
    """Rewrite the archive with fixed dates and order, and openpyxl's time of saving undone."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    core = parts["docProps/core.xml"]
    parts["docProps/core.xml"] = re.sub(
        rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*", rb"\g<1>" + STAMP, core
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            entry = zipfile.ZipInfo(name, date_time=(2026, 1, 5, 9, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)

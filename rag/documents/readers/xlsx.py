"""XLSX to sections: some rows of a sheet each, the header repeated."""

import html
import io
import posixpath
import re
import zipfile
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.documents.readers.packages import (
    check_package,
    damage_message,
    read_drawings,
    texts_within,
)
from rag.documents.readers.sheets import (
    WIDEST,
    NumberedRow,
    Sheet,
    display_text,
    letters_of,
    write_sheets,
)
from rag.documents.runs import ALIGNED, Mark, Run, marks_of, written
from rag.documents.tables import TypedCell, typed_cell
from rag.errors import Unreadable

MERGED = re.compile(rb'<mergeCell ref="([A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7})"')
HIDDEN_ROW = re.compile(rb'<row\b(?=[^>]*\bhidden="(?:1|true)")[^>]*\br="(\d+)"')
HIDDEN_COLUMN = re.compile(rb'<col\b(?=[^>]*\bhidden="(?:1|true)")[^>]*>')
ENDS = (b"min", b"max")
BARE = re.compile(  # a formula without a result
    rb'<c\b[^>]*\br="([A-Z]+\d+)"[^>]*>\s*<f[^>]*>([^<]{1,500})</f>\s*(?:<v\s*/>|<v>\s*</v>)?\s*</c>'
)
PARTS = re.compile(  # of which text is read here, or is none
    r"xl/(?:workbook|sharedStrings|styles|metadata|connections|calcChain|(?:work|chart)sheets/[^/]*"
    r"|comments[^/]*|comments/[^/]*|threadedComments/[^/]*|tables/[^/]*"
    r"|externalLinks/.*|pivot.*|queryTables/[^/]*|printerSettings/.*)(?:\.xml|\.bin)?"
)


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline with the stored values of all visible sheets, and the notes of cells."""
    import openpyxl
    from openpyxl.utils.exceptions import InvalidFileException
    from openpyxl.worksheet import _read_only
    from openpyxl.worksheet._reader import WorkSheetParser

    # It hands on that runs are wanted for shared texts alone, not for those within cells.
    vars(_read_only)["WorkSheetParser"] = partial(WorkSheetParser, rich_text=True)
    check_package(outline.name, data, limits)
    with damage_message(outline.name, InvalidFileException):
        options = {"read_only": True, "rich_text": True}
        book = openpyxl.load_workbook(io.BytesIO(data), data_only=True, **options)
        outline.take_properties(book.properties)
        outline.fallback_title = ""
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            sheets = [_sheet(sheet, archive) for sheet in book.worksheets]
            has_values = write_sheets(sheets, outline, limits)
    read_drawings(data, outline, PARTS)
    if not has_values and b"<f" in _sheet_xml(data):
        raise Unreadable(
            outline.name,
            "its cells hold formulas without stored results. Open it in a spreadsheet program, "
            "save it there once, then ingest it.",
        )


def _sheet(sheet: Any, archive: zipfile.ZipFile) -> Sheet:
    if sheet.sheet_state != "visible":
        return Sheet(sheet.title, is_hidden=True)
    sheet.reset_dimensions()  # the stored ones may claim a million empty rows, or too few
    markup = archive.read(sheet._worksheet_path)
    formulas = _uncounted(markup)
    return Sheet(
        sheet.title,
        _filled_rows(sheet, formulas),
        hidden_rows=frozenset(int(row[1]) for row in HIDDEN_ROW.finditer(markup)),
        hidden_columns=frozenset(_hidden_columns(markup)),
        notes=_notes(archive, sheet._worksheet_path),
        merged=list(_merged(markup)),
        formulas=list(formulas),
    )


def _hidden_columns(markup: bytes) -> Iterator[int]:
    for column in HIDDEN_COLUMN.finditer(markup):
        first, last = (int(re.search(rb'\b%s="(\d+)"' % end, column[0])[1]) for end in ENDS)  # type: ignore[index]
        yield from range(first, min(last, WIDEST) + 1)


def _merged(markup: bytes) -> Iterator[tuple[int, int, int]]:
    from openpyxl.utils import range_boundaries

    for area in MERGED.findall(markup):
        column, first, _right, last = (number or 1 for number in range_boundaries(area.decode()))
        yield column, first, last


def _uncounted(markup: bytes) -> dict[str, str]:
    """The formulas whose result is not stored, by their cells."""
    if b"<f" not in markup:
        return {}
    return {
        match[1].decode(): f"={html.unescape(match[2].decode())}" for match in BARE.finditer(markup)
    }


def _notes(archive: zipfile.ZipFile, sheet: str) -> Iterator[tuple[int, int, str]]:
    """What was noted on cells, and the talk about them."""
    from defusedxml.ElementTree import fromstring
    from openpyxl.utils.cell import coordinate_to_tuple

    folder, _, name = sheet.rpartition("/")
    relations = f"{folder}/_rels/{name}.rels"
    if relations not in archive.namelist():
        return
    for relation in fromstring(archive.read(relations)):
        place = posixpath.join("/", folder, relation.get("Target", ""))  # may begin at the top
        target = posixpath.normpath(place).lstrip("/")
        if "omment" not in relation.get("Type", "") or target not in archive.namelist():
            continue
        for note in fromstring(archive.read(target)).iter():
            if note.tag.endswith(("}comment", "}threadedComment")) and note.get("ref"):
                texts = ("".join(texts_within(note, name)) for name in ("t", "text"))
                text = next(filter(None, texts), "")
                if not text.startswith("[Threaded comment]"):
                    row, column = coordinate_to_tuple(str(note.get("ref")))
                    yield column, row, text


def _filled_rows(sheet: Any, formulas: Mapping[str, str]) -> Iterator[NumberedRow]:
    marks: dict[int, frozenset[Mark]] = {}
    for number, row in enumerate(sheet.iter_rows(), start=1):
        values = []
        for column, cell in enumerate(row[:WIDEST], start=1):
            place = f"{letters_of(column)}{number}"
            text = _text(cell, marks)
            formula = "" if text else formulas.get(place, "")
            values.append(
                TypedCell(formula, None, place) if formula else typed_cell(text, cell.value, place)
            )
        if any(values):
            yield number, values


def _text(cell: Any, marks: dict[int, frozenset[Mark]]) -> str:
    value, style = cell.value, cell._style_id if cell.value is not None else None
    if style is None:
        return ""
    if style not in marks:
        marks[style] = _marks(cell.font)
    if isinstance(value, list):  # a text of which parts are raised, lowered or struck
        value = written(
            Run(piece) if isinstance(piece, str) else Run(piece.text, _marks(piece.font))
            for piece in value
        )
    return display_text(value, cell.number_format, marks[style])


def _marks(font: Any) -> frozenset[Mark]:
    struck = Mark.STRUCK if getattr(font, "strike", False) else None
    return marks_of(ALIGNED.get(getattr(font, "vertAlign", None) or ""), struck)


def _sheet_xml(data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = filter(re.compile(r"xl/worksheets/.*\.xml").fullmatch, archive.namelist())
        return b"".join(archive.open(name).read(200_000) for name in names)

"""Sheets in Microsoft's binary forms to sections: XLS (MS-XLS, and older ones), and XLSB."""

import io
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.documents.readers.packages import NEEDS_PASSWORD, ZIP_START, check_package, damage_message
from rag.documents.readers.sheets import (
    WIDEST,
    NumberedRow,
    Sheet,
    cell_of,
    display_text,
    letters_of,
    write_sheets,
)
from rag.documents.reports import counted
from rag.documents.runs import Mark, Run, marks_of, written
from rag.documents.tables import typed_cell
from rag.errors import Unreadable

BEGINS, END = (0x809, 0x409, 0x209, 0x009), 0x0A
OBJECT, TEXT, FORMULA, GOES_ON = 0x5D, 0x1B6, 0x06, 0x3C  # records
CHART, NOTE = 5, 25  # objects
CHART_SHEET = b"\x20\x00"
ON_LOAD = 2  # it is to be computed when the book is opened
ZERO, NO_RESULT = bytes(8), b"\x03" + bytes(5) + b"\xff\xff"
HEIGHTS = {1: Mark.RAISED, 2: Mark.LOWERED}  # of fonts


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline with the stored values of all visible sheets, and the notes of cells."""
    if data.startswith(ZIP_START):
        _read_xlsb(data, outline, limits)
        return
    import xlrd
    from xlrd.compdoc import CompDocError

    refusals = (xlrd.XLRDError, CompDocError, struct.error, AssertionError)
    records = _Records()
    with suppress(*refusals):  # what cannot be counted is no reason to lose the cells
        records.read(data)
    with damage_message(outline.name, *refusals):
        book = _opened(data, outline.name)
        sheets = [
            _sheet(book, sheet, records.uncounted(position))
            for position, sheet in enumerate(book.sheets())
        ]
        write_sheets(sheets, outline, limits)
    for text in records.texts:
        outline.paragraph(text)
    outline.left_out += [counted(records.charts, "chart")] if records.charts else []


@dataclass(slots=True)
class _Records:
    """What xlrd does not hand on, as [MS-XLS] 2.4 writes it."""

    charts: int = 0  # on sheets, and sheets that are one
    texts: list[str] = field(default_factory=list)  # of shapes
    formulas: int = 0
    empty: list[tuple[int, str]] = field(default_factory=list)  # of them, by their sheets

    def uncounted(self, sheet: int) -> list[str]:
        """Formulas without a result; one that says nothing beside others has said it."""
        is_sure = len(self.empty) == self.formulas
        return [cell for place, cell in self.empty if is_sure and place == sheet]

    def read(self, data: bytes) -> "_Records":
        stream, end = _workbook(data)
        position = depth = shape = 0
        sheet = -2  # what is said of all of them comes first
        while position + 4 <= end:
            kind, size = struct.unpack_from("<HH", stream, position)
            body = stream[position + 4 : position + 4 + size]
            position += 4 + size
            size = len(body)  # less than it says where the file was cut off
            if kind in BEGINS:
                sheet += depth == 0
                self.charts += depth == 0 and body[2:4] == CHART_SHEET
                depth += 1
            elif kind == END:
                depth -= 1
            elif kind == OBJECT and size > 6:
                (shape,) = struct.unpack_from("<H", body, 4)
                self.charts += shape == CHART
            elif kind == TEXT and shape != NOTE and size >= 12:
                (count,) = struct.unpack_from("<H", body, 10)
                self.texts.append(_text_of_shape(stream, position, count))
            elif kind == FORMULA and size >= 16:
                row, column = struct.unpack_from("<HH", body)
                self.formulas += 1
                if body[6:14] == NO_RESULT or (body[14] & ON_LOAD and body[6:14] == ZERO):
                    self.empty.append((max(sheet, 0), f"{letters_of(column + 1)}{row + 1}"))
        return self


def _workbook(data: bytes) -> tuple[bytes, int]:
    from xlrd.compdoc import SIGNATURE, CompDoc

    if not data.startswith(SIGNATURE):
        return data, len(data)
    document = CompDoc(data, logfile=io.StringIO(), ignore_workbook_corruption=True)
    streams = (document.locate_named_stream(name) for name in ("Workbook", "Book"))
    memory, start, size = next((stream for stream in streams if stream[0]), (b"", 0, 0))
    return memory[start : start + size], size


def _text_of_shape(stream: bytes, position: int, count: int) -> str:
    """It stands in the record behind, in bytes or in pairs of them."""
    kind, size = struct.unpack_from("<HH", stream, position)
    body = stream[position + 4 : position + 4 + size]
    if kind != GOES_ON or not body:
        return ""
    width, encoding = (2, "utf-16-le") if body[0] & 1 else (1, "latin-1")
    return body[1 : 1 + count * width].decode(encoding, "ignore")


def _opened(data: bytes, name: str) -> Any:
    import xlrd

    try:
        return xlrd.open_workbook(
            file_contents=data,
            formatting_info=True,
            ignore_workbook_corruption=True,
            logfile=io.StringIO(),
        )
    except xlrd.XLRDError as error:
        if "encrypted" in str(error):
            raise Unreadable(name, NEEDS_PASSWORD) from error
        raise


def _sheet(book: Any, sheet: Any, formulas: Sequence[str]) -> Sheet:
    return Sheet(
        sheet.name,
        _rows(book, sheet),
        is_hidden=bool(sheet.visibility),
        hidden_rows={position + 1 for position, row in sheet.rowinfo_map.items() if row.hidden},
        hidden_columns={
            position + 1 for position, column in sheet.colinfo_map.items() if column.hidden
        },
        notes=[(c + 1, r + 1, note.text) for (r, c), note in sheet.cell_note_map.items()],
        merged=[(left + 1, top + 1, end) for top, end, left, _right in sheet.merged_cells],
        formulas=formulas,
    )


def _rows(book: Any, sheet: Any) -> Iterator[NumberedRow]:
    for position in range(sheet.nrows):
        cells = sheet.row(position)[:WIDEST]
        row = [_cell(book, sheet, position, column, cell) for column, cell in enumerate(cells)]
        if any(row):
            yield position + 1, row


def _cell(book: Any, sheet: Any, row: int, column: int, cell: Any) -> str:
    import xlrd

    if cell.ctype in (xlrd.XL_CELL_EMPTY, xlrd.XL_CELL_BLANK):
        return ""
    style = book.xf_list[cell.xf_index]
    if cell.ctype == xlrd.XL_CELL_TEXT:
        return _rich(book, cell.value, style, sheet.rich_text_runlist_map.get((row, column), []))
    value = cell.value
    if cell.ctype == xlrd.XL_CELL_BOOLEAN:
        value = bool(value)
    elif cell.ctype == xlrd.XL_CELL_ERROR:
        value = xlrd.error_text_from_code.get(value, "")
    elif cell.ctype == xlrd.XL_CELL_DATE:
        value = _day(book, value)
    code = book.format_map[style.format_key].format_str
    text = display_text(value, code, _marks(book.font_list[style.font_index]))
    return typed_cell(text, value, f"{letters_of(column + 1)}{row + 1}")


def _day(book: Any, value: float) -> Any:
    """A figure where it is no day that there is."""
    import xlrd

    try:
        moment = xlrd.xldate_as_datetime(value, book.datemode)
    except (xlrd.XLDateError, OverflowError, ValueError):
        return value
    return moment if value >= 1 else moment.time()


def _rich(book: Any, text: str, style: Any, runs: Iterable[tuple[int, int]]) -> str:
    """A text of which parts are raised, lowered or struck."""
    starts = [(0, style.font_index), *runs]
    ends = [start for start, _font in starts[1:]] + [len(text)]
    return written(
        Run(text[start:end], _marks(book.font_list[font]))
        for (start, font), end in zip(starts, ends, strict=True)
    )


def _marks(font: Any) -> frozenset[Mark]:
    return marks_of(HEIGHTS.get(font.escapement), Mark.STRUCK if font.struck_out else None)


def _read_xlsb(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    from python_calamine import CalamineError, CalamineWorkbook

    check_package(outline.name, data, limits)
    with damage_message(outline.name, CalamineError), _refused_panics(outline.name):
        book = CalamineWorkbook.from_filelike(io.BytesIO(data))
        write_sheets(list(_binary_sheets(book)), outline, limits)
    outline.left_out.append(
        "notes on cells; and rows and columns may be hidden: XLSB was read without knowing which. "
        "Save it as XLSX"
    )


def _binary_sheets(book: Any) -> Iterator[Sheet]:
    from python_calamine import SheetTypeEnum, SheetVisibleEnum

    for sheet in book.sheets_metadata:
        if sheet.typ == SheetTypeEnum.WorkSheet:
            is_hidden = sheet.visible != SheetVisibleEnum.Visible
            rows = () if is_hidden else _stored_rows(book.get_sheet_by_name(sheet.name))
            yield Sheet(sheet.name, rows, is_hidden=is_hidden)


def _stored_rows(sheet: Any) -> Iterator[NumberedRow]:
    first, left = sheet.start or (0, 0)
    for number, row in enumerate(sheet.iter_rows(), start=1 if first == 0 else first + 1):
        values = [
            cell_of(value, number, position)
            for position, value in enumerate(row[:WIDEST], left + 1)
        ]
        if any(values):
            yield number, values


@contextmanager
def _refused_panics(name: str) -> Iterator[None]:
    """Of sheets that others open and calamine gives up: its panics are no Exception."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise Unreadable(
            name, "its sheets are written in a way that is not read. Save it as XLSX."
        ) from error

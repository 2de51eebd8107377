"""Sheets of other programs (XLS, XLSB, ODS) to sections, by calamine."""

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

from rag.documents.cleaning import one_line
from rag.documents.kinds import FileKind
from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.documents.readers.grids.grid import CellCount, write_notes, write_rows
from rag.documents.readers.opendocument import sheet_remarks
from rag.documents.readers.packages import ZIP_START, check_package, damage_message
from rag.documents.reports import counted
from rag.documents.tables import typed_cell
from rag.errors import Unreadable

WIDEST = 2_000  # columns: a sheet that claims more has them empty


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline with the stored values of all visible sheets."""
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError

    if data.startswith(ZIP_START):
        check_package(outline.name, data, limits)
    with damage_message(outline.name, CalamineError), _panics_told(outline.name):
        try:
            book = CalamineWorkbook.from_filelike(io.BytesIO(data))
        except PasswordError as error:
            raise Unreadable(
                outline.name, "the file is encrypted and needs a password. Save it without one."
            ) from error
        remarks = sheet_remarks(data, outline) if outline.media_type == FileKind.ODS else {}
        _write_sheets(book, outline, CellCount(outline.name, limits), remarks)


@contextmanager
def _panics_told(name: str) -> Iterator[None]:
    """Of sheets that others open and calamine gives up: its panics are no Exception."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise Unreadable(
            name, "its sheets are written in a way that is not read. Save it as XLSX."
        ) from error


def _write_sheets(
    book: Any,
    outline: Outline,
    cells: CellCount,
    remarks: Mapping[str, tuple[set[int], dict[str, str]]],
) -> None:
    from python_calamine import SheetTypeEnum, SheetVisibleEnum

    sheets = [each for each in book.sheets_metadata if each.typ == SheetTypeEnum.WorkSheet]
    for sheet in sheets:
        title = one_line(sheet.name)
        if sheet.visible != SheetVisibleEnum.Visible:
            outline.left_out.append(f"sheet {title}: hidden")
            continue
        hidden, notes = remarks.get(sheet.name, (set(), {}))
        rows = list(cells.counted(_filled_rows(book.get_sheet_by_name(sheet.name))))
        if unseen := [row for row in rows if row[0] in hidden]:
            outline.left_out.append(f"sheet {title}: {counted(len(unseen), 'hidden row')}")
            rows = [row for row in rows if row[0] not in hidden]
        outline.leave_headings()
        if rows and len(sheets) > 1:
            outline.heading(1, title)
        write_rows(rows, outline, place=f"sheet {title}, rows", name=title)
        write_notes(notes.items(), rows, outline)


def _filled_rows(sheet: Any) -> Iterator[tuple[int, list[str]]]:
    first, left = sheet.start or (0, 0)
    for number, row in enumerate(sheet.iter_rows(), start=1 if first == 0 else first + 1):
        values = [cell_of(value, number, at) for at, value in enumerate(row[:WIDEST], left + 1)]
        if any(values):
            yield number, values


def number_text(value: float) -> str:
    """All digits that are stored, none in powers of ten: identifiers are figures in sheets."""
    if value != value or abs(value) >= 1e15 or 0 < abs(value) < 1e-9:
        return repr(value)
    plain = f"{Decimal(f'{value:.15g}'):f}"
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def cell_of(value: Any, row: int, column: int) -> str:
    """A stored value with its text; `column` counts from 1."""
    return typed_cell(text_of(value), value, f"{letters_of(column)}{row}")


@cache
def letters_of(column: int) -> str:
    """B for 2, as spreadsheets count."""
    from openpyxl.utils import get_column_letter

    return get_column_letter(column)


def text_of(value: Any) -> str:
    """A stored value as people read it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, datetime):
        is_day = value.time() == time(0)
        return value.date().isoformat() if is_day else value.isoformat(" ", "minutes")
    if isinstance(value, date | time | timedelta):
        return str(value)
    return "" if value is None else str(value)

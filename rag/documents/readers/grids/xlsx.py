"""XLSX to sections: some rows of a sheet each, the header repeated."""

import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from datetime import datetime, time
from typing import Any

from rag.documents.cleaning import one_line
from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.documents.readers.grids.grid import CellCount, write_rows
from rag.documents.readers.packages import check_package, damage_told
from rag.errors import Unreadable

MERGED = re.compile(rb'<mergeCell ref="([A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7})"')
FORMAT_TOKEN = re.compile(
    r"""\[\$([^\]-]*)[^\]]*\]|"([^"]*)"|\\(.)|([€$£¥%])|\[[^\]]*\]|[_*]."""
    r"|(?P<digits>[#0?][#0?.,/E+ ]*)"
)
WIDEST = 2_000  # columns: a sheet that claims more has them empty


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline with the stored values of all visible sheets."""
    import openpyxl
    from openpyxl.utils.exceptions import InvalidFileException

    check_package(outline.name, data, limits)
    with damage_told(outline.name, InvalidFileException):
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        outline.fallback_title = ""
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            found = _write_sheets(book, archive, outline, limits)
    if not found and b"<f" in _sheet_xml(data):
        raise Unreadable(
            outline.name,
            "its cells hold formulas without stored results. Open it in a spreadsheet program, "
            "save it there once, then ingest it.",
        )


def _write_sheets(
    book: Any, archive: zipfile.ZipFile, outline: Outline, limits: LoadLimits
) -> bool:
    found, cells = False, CellCount(outline.name, limits)
    for sheet in book.worksheets:
        if sheet.sheet_state != "visible":
            outline.left_out.append(f"sheet {one_line(sheet.title)}: hidden")
            continue
        sheet.reset_dimensions()  # the stored ones may claim a million empty rows, or too few
        rows = list(cells.counted(_filled_rows(sheet)))
        found = found or bool(rows)
        _fill_merged(rows, archive.read(sheet._worksheet_path))
        outline.leave_headings()
        if rows and len(book.worksheets) > 1:
            outline.heading(1, sheet.title)
        title = one_line(sheet.title)
        write_rows(rows, outline, place=f"sheet {title}, rows", name=title)
    return found


def _filled_rows(sheet: Any) -> Iterator[tuple[int, list[str]]]:
    affixes: dict[str, tuple[str, str]] = {}
    for number, row in enumerate(sheet.iter_rows(), start=1):
        values = [_shown(cell, affixes) for cell in row[:WIDEST]]
        if any(values):
            yield number, values


def _fill_merged(rows: Sequence[tuple[int, list[str]]], sheet_xml: bytes) -> None:
    """What reaches over several rows stands in each of them."""
    from openpyxl.utils import range_boundaries

    by_number = dict(rows)
    for each in MERGED.findall(sheet_xml):
        column, first, _right, last = (number or 1 for number in range_boundaries(each.decode()))
        if first not in by_number:
            continue
        for number in range(first + 1, min(last, rows[-1][0]) + 1):
            row = by_number.get(number, [])
            row += [""] * (column - len(row))
            row[column - 1] = row[column - 1] or by_number[first][column - 1]


def _shown(cell: Any, affixes: dict[str, tuple[str, str]]) -> str:
    """The value, a figure with the currency, unit or percent sign of its format."""
    value = cell.value
    if value is None or not isinstance(value, int | float) or isinstance(value, bool):
        return _text(value)
    code = cell.number_format
    if code not in affixes:
        affixes[code] = _affixes(code)
    before, after = affixes[code]
    return before + _text(round(value * 100, 10) if after == "%" else value) + after


def _affixes(code: str) -> tuple[str, str]:
    """What the format of a positive figure writes before and behind its digits."""
    before = after = digits = ""
    for token in FORMAT_TOKEN.finditer(code.split(";")[0]):
        literal = next(filter(None, token.groups()[:-1]), "")
        digits = digits or token["digits"] or ""
        before, after = (before, after + literal) if digits else (before + literal, after)
    if digits.endswith(","):  # it shows thousands
        return "", ""
    before, after = before.strip(), after.strip()
    return before + " " * before[-1:].isalpha(), " " * (after not in ("", "%")) + after


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.10g}" if abs(value) < 1e15 else repr(value)
    if isinstance(value, datetime):
        is_day = value.time() == time(0)
        return value.date().isoformat() if is_day else value.isoformat(" ", "minutes")
    return str(value)


def _sheet_xml(data: bytes) -> bytes:
    """The beginning of every sheet."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = [each for each in archive.namelist() if each.startswith("xl/worksheets/")]
        return b"".join(archive.open(each).read(200_000) for each in names if each.endswith(".xml"))

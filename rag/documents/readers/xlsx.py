"""XLSX to sections: some rows of a sheet each, the header repeated."""

import html
import io
import posixpath
import re
import zipfile
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from rag.documents.cleaning import one_line
from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.documents.readers import packages
from rag.documents.readers.packages import check_package, damage_message
from rag.documents.readers.sheets import (
    CellCount,
    letters_of,
    text_of,
    write_notes,
    write_rows,
)
from rag.documents.reports import counted
from rag.documents.runs import Mark, Run, written
from rag.documents.tables import TypedCell, typed_cell
from rag.errors import Unreadable

MERGED = re.compile(rb'<mergeCell ref="([A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7})"')
HIDDEN_ROW = re.compile(rb'<row\b(?=[^>]*\bhidden="(?:1|true)")[^>]*\br="(\d+)"')
BARE = re.compile(  # a formula without a result
    rb'<c\b[^>]*\br="([A-Z]+\d+)"[^>]*>\s*<f[^>]*>([^<]{1,500})</f>\s*(?:<v\s*/>|<v>\s*</v>)?\s*</c>'
)
ZEROS = re.compile(r"0{2,}")
PARTS = re.compile(  # of which text is read here, or is none
    r"xl/(?:workbook|sharedStrings|styles|metadata|connections|calcChain|(?:work|chart)sheets/[^/]*"
    r"|comments[^/]*|comments/[^/]*|threadedComments/[^/]*|tables/[^/]*|charts/[^/]*"
    r"|externalLinks/.*|pivot.*|queryTables/[^/]*|printerSettings/.*)(?:\.xml|\.bin)?"
)
FORMAT_TOKEN = re.compile(
    r"""\[\$([^\]-]*)[^\]]*\]|"([^"]*)"|\\(.)|([€$£¥%])|\[[^\]]*\]|[_*]."""
    r"|(?P<digits>[#0?][#0?.,/E+ ]*)"
)
NAMED_CELLS = 8
WIDEST = 2_000  # columns: a sheet that claims more has them empty


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
            found = _write_sheets(book, archive, outline, limits)
    packages.read_drawings(data, outline, PARTS)
    if not found and b"<f" in _sheet_xml(data):
        raise Unreadable(
            outline.name,
            "its cells hold formulas without stored results. Open it in a spreadsheet program, "
            "save it there once, then ingest it.",
        )


def _write_sheets(
    book: Any, archive: zipfile.ZipFile, outline: Outline, limits: LoadLimits
) -> bool:
    """Whether any cell holds a value."""
    found = False
    cells = CellCount(outline.name, limits)
    for sheet in book.worksheets:
        if sheet.sheet_state != "visible":
            outline.left_out.append(f"sheet {one_line(sheet.title)}: hidden")
            continue
        sheet.reset_dimensions()  # the stored ones may claim a million empty rows, or too few
        markup = archive.read(sheet._worksheet_path)
        formulas = _uncounted(markup)
        rows = list(cells.counted(_filled_rows(sheet, formulas, _hidden_rows(markup))))
        found = found or any(cell and cell[0] != "=" for _number, row in rows for cell in row)
        _fill_merged(rows, markup)
        title = one_line(sheet.title)
        hidden = sum(1 for _number in _hidden_rows(markup))
        if hidden:
            outline.left_out.append(f"sheet {title}: {counted(hidden, 'hidden row')}")
        if formulas:
            told = f"{counted(len(formulas), 'formula')} without a stored result"
            some = ", ".join(list(formulas)[:NAMED_CELLS]) + " …" * (len(formulas) > NAMED_CELLS)
            outline.left_out.append(f"sheet {title}: {told} ({some})")
        outline.leave_headings()
        if rows and len(book.worksheets) > 1:
            outline.heading(1, sheet.title)
        write_rows(rows, outline, place=f"sheet {title}, rows", name=title)
        write_notes(_notes(archive, sheet._worksheet_path), rows, outline)
    return found


def _hidden_rows(markup: bytes) -> frozenset[int]:
    """Rows that nobody sees; an outline that is folded hides its rows as well."""
    return frozenset(int(found[1]) for found in HIDDEN_ROW.finditer(markup))


def _uncounted(markup: bytes) -> dict[str, str]:
    """The formulas whose result is not stored, by their cells."""
    if b"<f" not in markup:
        return {}
    results = (
        (each[1].decode(), html.unescape(each[2].decode())) for each in BARE.finditer(markup)
    )
    return {cell: f"={formula}" for cell, formula in results}


def _notes(archive: zipfile.ZipFile, sheet: str) -> Iterator[tuple[str, str]]:
    """What was noted on cells, and the talk about them."""
    from defusedxml.ElementTree import fromstring

    folder, _, name = sheet.rpartition("/")
    relations = f"{folder}/_rels/{name}.rels"
    if relations not in archive.namelist():
        return
    for each in fromstring(archive.read(relations)):
        target = posixpath.normpath(posixpath.join(folder, each.get("Target", "")))
        target = each.get("Target", "").lstrip("/") if each.get("Target", "")[:1] == "/" else target
        if "omment" not in each.get("Type", "") or target not in archive.namelist():
            continue
        for note in fromstring(archive.read(target)).iter():
            if note.tag.endswith(("}comment", "}threadedComment")) and note.get("ref"):
                texts = (part.text or "" for part in note.iter() if part.tag[-2:] == "}t")
                own = "".join(texts) or "".join(
                    part.text or "" for part in note.iter() if part.tag.endswith("}text")
                )
                if not own.startswith("[Threaded comment]"):
                    yield str(note.get("ref")), one_line(own)


def _filled_rows(
    sheet: Any, formulas: Mapping[str, str], hidden: Container[int]
) -> Iterator[tuple[int, list[str]]]:
    affixes: dict[str, tuple[str, str]] = {}
    marks: dict[int, frozenset[Mark]] = {}
    for number, row in enumerate(sheet.iter_rows(), start=1):
        if number in hidden:
            continue
        values = []
        for column, cell in enumerate(row[:WIDEST], start=1):
            place = f"{letters_of(column)}{number}"
            text = _shown(cell, affixes, marks)
            formula = "" if text else formulas.get(place, "")
            values.append(
                TypedCell(formula, None, place) if formula else typed_cell(text, cell.value, place)
            )
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


def _shown(
    cell: Any, affixes: dict[str, tuple[str, str]], marks: dict[int, frozenset[Mark]]
) -> str:
    """The value, a figure with the currency, unit or percent sign of its format."""
    value = cell.value
    if value is None:
        return ""
    style = cell._style_id
    if style not in marks:
        marks[style] = _marks(cell.font)
    if not isinstance(value, int | float) or isinstance(value, bool):
        text = _rich(value) if isinstance(value, list) else text_of(value)
        return written([Run(text, marks[style])]) if marks[style] else text
    code = cell.number_format
    if ZEROS.fullmatch(code):
        return str(value).zfill(len(code))  # a code of a fixed length
    if code not in affixes:
        affixes[code] = _affixes(code)
    before, after = affixes[code]
    figure = text_of(round(value * 100, 10) if after == "%" else value)
    return written([Run(before + figure + after, marks[style])])


def _rich(pieces: Iterable[Any]) -> str:
    """A text of which parts are raised, lowered or struck."""
    return written(
        Run(piece) if isinstance(piece, str) else Run(piece.text, _marks(piece.font))
        for piece in pieces
    )


def _marks(font: Any) -> frozenset[Mark]:
    align = {"superscript": Mark.RAISED, "subscript": Mark.LOWERED}
    struck = Mark.STRUCK if getattr(font, "strike", False) else None
    return frozenset(filter(None, (align.get(getattr(font, "vertAlign", None) or ""), struck)))


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


def _sheet_xml(data: bytes) -> bytes:
    """The beginning of every sheet."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = [each for each in archive.namelist() if each.startswith("xl/worksheets/")]
        return b"".join(archive.open(name).read(200_000) for name in names if name.endswith(".xml"))

"""Read tables with their row numbers: CSV, Parquet, and the sheets of workbooks."""

import csv
import html
import io
import posixpath
import re
import struct
import zipfile
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rag.documents.cleaning import clean, decode, one_line
from rag.documents.limits import LoadLimits
from rag.documents.outline import ALIGNED, Mark, Outline, Run, marks_of, written
from rag.documents.readers.packages import (
    NEEDS_PASSWORD,
    ZIP_START,
    check_package,
    damage_message,
    read_drawings,
    texts_within,
)
from rag.documents.reports import counted, first_of
from rag.documents.tables import TypedCell, typed_cell
from rag.errors import TooLarge, Unreadable
from rag.language.grids import grids

SECTION_ROWS = 40
# Rows, about a minute of embedding; of longer tables only a sample becomes text.
LONGEST_IN_TEXT = 10_000
NESTED = re.compile(r"\]$|^(STRUCT|MAP|UNION|VARIANT)")  # DuckDB's names of types
NumberedRow = tuple[int, list[str]]


def write_rows(
    rows: Sequence[NumberedRow], outline: Outline, *, place: str, name: str = ""
) -> None:
    """Write a section for every 40 rows, each with the header; `place` begins their locators.

    Of a very long table only a sample becomes text: its rows are found by table queries.
    """
    filled = [(number, row) for number, row in rows if any(map(str.strip, row))]
    width = max((len(row) for _number, row in filled), default=0)
    filled = [(number, [*row, *[""] * (width - len(row))]) for number, row in filled]
    outline.rows(filled, name=name)
    single = place.removesuffix("s")
    last = 0  # last row written
    for grid in grids(filled):
        first = min(grid.rows[0][0], grid.first)
        _write_lines([row for row in filled if last < row[0] < first], outline, single)
        body = grid.rows
        if len(body) > LONGEST_IN_TEXT:  # the first rows, and some spread over the whole length
            spread = body[SECTION_ROWS :: len(body) // SECTION_ROWS]
            body = [*body[:SECTION_ROWS], *spread][: 2 * SECTION_ROWS]
        for position in range(0, len(body), SECTION_ROWS):
            part = body[position : position + SECTION_ROWS]
            start, end = part[0][0], part[-1][0]
            outline.place(f"{place} {start}–{end}" if end > start else f"{single} {start}")
            outline.part_of_table([grid.names, *(row for _number, row in part)])
        last = max(last, grid.rows[-1][0])
    _write_lines([row for row in filled if row[0] > last], outline, single)


def _write_lines(rows: Sequence[NumberedRow], outline: Outline, place: str) -> None:
    for number, row in rows:
        outline.place(f"{place} {number}")
        outline.paragraph(" ; ".join(filter(None, map(str.strip, row))))


class CellCount:
    """Counts the filled cells of one file, over all its sheets."""

    def __init__(self, name: str, limits: LoadLimits) -> None:
        self._name, self._most = name, limits.max_cells
        self._cells = 0

    def counted(self, rows: Iterable[NumberedRow]) -> Iterator[NumberedRow]:
        """Yield the rows and count their cells; raises TooLarge."""
        for number, row in rows:
            self._cells += len(row) - row.count("")
            if self._cells > self._most:
                raise TooLarge(
                    f"{self._name}: has more than {self._most:,} cells, the limit. Split it."
                )
            yield number, row


DELIMITERS = ",;\t|^~"
STATED = re.compile(r"sep=([,;\t|^~])\n", re.IGNORECASE)  # as Excel writes and reads it
SAMPLE_LINES = 30


def read_csv(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline from CSV or TSV; malformed rows are read as far as possible."""
    csv.field_size_limit(max(limits.max_characters, 131_072))
    cells = CellCount(outline.name, limits)
    rows = cells.counted(_parse_delimited(clean(decode(data)), outline.name))
    write_rows(list(rows), outline, place="rows")


def _parse_delimited(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows with the number of the line on which each begins, from 1."""
    match = STATED.match(text)
    text = text[match.end() :] if match else text
    delimiter = match[1] if match else sniff_delimiter(text)
    reader = csv.reader(
        io.StringIO(text),
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if _quotes_close(text, delimiter) else csv.QUOTE_NONE,
    )
    above = 1 if match else 0  # lines
    first = 1 + above
    try:
        for row in reader:
            yield first, row
            first = reader.line_num + 1 + above
    except csv.Error as error:
        raise Unreadable(name, f"row {reader.line_num} cannot be read: {error}.") from error


def sniff_delimiter(text: str) -> str:
    """Return the separator that splits the first lines most evenly.

    csv.Sniffer can take minutes.
    """
    lines = [line for line in text[:100_000].split("\n")[: SAMPLE_LINES * 2] if line.strip()]
    return max(DELIMITERS, key=lambda delimiter: _evenness(lines[:SAMPLE_LINES], delimiter))


def _evenness(lines: Sequence[str], delimiter: str) -> float:
    counts = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
    if not counts or max(counts) < 2:
        return 0.0
    usual = max(set(counts), key=lambda count: (counts.count(count), count))
    if usual < 2:
        return 0.1
    return counts.count(usual) / len(counts) + min(usual, 20) / 100


def _quotes_close(text: str, delimiter: str) -> bool:
    """Return whether quotes can be used: one left open would take in the rest of the file."""
    if text.count('"') % 2 == 0:
        return True
    rows = csv.reader(io.StringIO(text), delimiter=delimiter)
    return max((sum(map(len, row)) for row in rows), default=0) < len(text) / 3


WIDEST = 2_000  # columns; in a sheet that states more they are empty
ZEROS = re.compile(r"0{2,}")
FORMAT_TOKEN = re.compile(
    r"""\[\$([^\]-]*)[^\]]*\]|"([^"]*)"|\\(.)|([€$£¥%])|\[[^\]]*\]|[_*]."""
    r"|(?P<digits>[#0?][#0?.,/E+ ]*)"
)


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sheet of a workbook, of any format; columns and rows count from 1."""

    title: str
    rows: Iterable[NumberedRow] = ()
    is_hidden: bool = False
    hidden_rows: Container[int] = frozenset()
    hidden_columns: Container[int] = frozenset()
    notes: Iterable[tuple[int, int, str]] = ()  # column, row, text
    merged: Sequence[tuple[int, int, int]] = ()  # first column, first row, last row
    formulas: Sequence[str] = ()  # the cells of formulas without a stored result


def write_sheets(sheets: Sequence[Sheet], outline: Outline, limits: LoadLimits) -> bool:
    """Write all visible sheets; return whether any of their cells has a value.

    Hidden content is counted in the report and not read.
    """
    count, has_values = CellCount(outline.name, limits), False
    for sheet in sheets:
        title = one_line(sheet.title)
        if sheet.is_hidden:
            outline.left_out.append(f"sheet {title}: hidden")
            continue
        rows = list(count.counted(sheet.rows))
        has_values |= any(cell and cell[0] != "=" for _number, row in rows for cell in row)
        _fill_merged(rows, sheet.merged)
        rows = _visible(rows, sheet, title, outline)
        if cells := list(sheet.formulas):
            formulas = f"{counted(len(cells), 'formula')} without a stored result"
            outline.left_out.append(f"sheet {title}: {formulas} ({first_of(cells)})")
        outline.leave_headings()
        if rows and len(sheets) > 1:
            outline.heading(1, title)
        write_rows(rows, outline, place=f"sheet {title}, rows", name=title)
        _write_notes(sheet, rows, outline)
    return has_values


def _visible(
    rows: Sequence[NumberedRow], sheet: Sheet, title: str, outline: Outline
) -> list[NumberedRow]:
    """Return the visible rows and columns; those of collapsed groups are hidden too."""
    visible = [row for row in rows if row[0] not in sheet.hidden_rows]
    if hidden := len(rows) - len(visible):
        outline.left_out.append(f"sheet {title}: {counted(hidden, 'hidden row')}")
    width = max((len(row) for _number, row in visible), default=0)
    columns = {column for column in range(width) if column + 1 in sheet.hidden_columns}
    filled = [c for c in columns if any(row[c : c + 1] not in ([], [""]) for _, row in visible)]
    if not filled:
        return visible
    outline.left_out.append(f"sheet {title}: {counted(len(filled), 'hidden column')}")
    return [
        (number, [cell for column, cell in enumerate(row) if column not in columns])
        for number, row in visible
    ]


def _write_notes(sheet: Sheet, rows: Sequence[NumberedRow], outline: Outline) -> None:
    """Write the comments on visible cells, each with the first cell of its row."""
    numbered = dict(rows)
    for column, number, note in sheet.notes:
        if column in sheet.hidden_columns or number in sheet.hidden_rows:
            continue
        name = next(filter(None, numbered.get(number, [])), "")
        place = f"{letters_of(column)}{number}{f' ({name})' if name else ''}"
        outline.entry(f"Note on {place}: {one_line(note)}")


def _fill_merged(rows: Sequence[NumberedRow], merged: Iterable[tuple[int, int, int]]) -> None:
    """Repeat a cell that spans several rows in each of them."""
    by_number = dict(rows)
    for column, first, last in merged:
        if first not in by_number:
            continue
        for number in range(first + 1, min(last, rows[-1][0]) + 1):
            row = by_number.get(number, [])
            row += [""] * (column - len(row))
            row[column - 1] = row[column - 1] or by_number[first][column - 1]


def display_text(value: Any, code: str = "", marks: frozenset[Mark] = frozenset()) -> str:
    """Write a stored value; a figure with its format's currency, unit or percent sign."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        text = text_of(value)
    elif ZEROS.fullmatch(code):
        text = text_of(value).zfill(len(code))  # a code of a fixed length
    else:
        before, after = affixes(code)
        text = before + text_of(round(value * 100, 10) if after == "%" else value) + after
    return written([Run(text, marks)]) if marks else text


@cache
def affixes(code: str) -> tuple[str, str]:
    """Return what a format writes before and after a positive figure's digits."""
    before = after = digits = ""
    for token in FORMAT_TOKEN.finditer(code.split(";")[0]):
        literal = next(filter(None, token.groups()[:-1]), "")
        digits = digits or token["digits"] or ""
        before, after = (before, after + literal) if digits else (before + literal, after)
    if digits.endswith(","):  # the format shows thousands
        return "", ""
    before, after = before.strip(), after.strip()
    return before + " " * before[-1:].isalpha(), " " * (after not in ("", "%")) + after


def number_text(value: float) -> str:
    """Write all stored digits, without powers of ten: identifiers may be figures."""
    if value != value or abs(value) >= 1e15 or 0 < abs(value) < 1e-9:
        return repr(value)
    plain = f"{Decimal(f'{value:.15g}'):f}"
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def cell_of(value: Any, row: int, column: int) -> str:
    """Return the cell of a stored value; `column` counts from 1."""
    return typed_cell(text_of(value), value, f"{letters_of(column)}{row}")


@cache
def letters_of(column: int) -> str:
    """Return a column's letters: B for 2."""
    from openpyxl.utils import get_column_letter

    return get_column_letter(column)


def text_of(value: Any) -> str:
    """Write a stored value for people."""
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


def read_parquet(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline; nested values are written as DuckDB does."""
    import duckdb

    config: dict[str, Any] = {
        "threads": 1, "memory_limit": "512MB", "autoload_known_extensions": False,
    }  # fmt: skip
    with TemporaryDirectory(prefix="groundnote-parquet-") as folder:
        path = Path(folder) / "rows.parquet"
        path.write_bytes(data)
        try:
            with closing(duckdb.connect(":memory:", config=config)) as connection:
                stored = _parquet_rows(connection, f"read_parquet('{path}')")
                rows = list(CellCount(outline.name, limits).counted(stored))
        except duckdb.Error as error:
            raise Unreadable(outline.name, "the table is damaged or was cut off.") from error
    write_rows(rows, outline, place="rows")


def _parquet_rows(connection: Any, table: str) -> Iterator[tuple[int, list[str]]]:
    columns = connection.execute(f"DESCRIBE FROM {table}").fetchall()
    yield 1, [name for name, *_kind in columns]
    texts = []
    for name, kind, *_rest in columns:
        column = '"' + name.replace('"', '""') + '"'
        # In Python, nested values and times with a zone need additional packages.
        is_plain = "ZONE" not in kind and not NESTED.search(kind)
        texts.append(column if is_plain else f"CAST({column} AS VARCHAR)")
    selected = connection.execute(f"SELECT {', '.join(texts)} FROM {table}")
    number = 1
    while batch := selected.fetchmany(1_000):
        for row in batch:
            number += 1
            yield number, [cell_of(value, number, column) for column, value in enumerate(row, 1)]


MERGED = re.compile(rb'<mergeCell ref="([A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7})"')
HIDDEN_ROW = re.compile(rb'<row\b(?=[^>]*\bhidden="(?:1|true)")[^>]*\br="(\d+)"')
HIDDEN_COLUMN = re.compile(rb'<col\b(?=[^>]*\bhidden="(?:1|true)")[^>]*>')
ENDS = (b"min", b"max")
BARE = re.compile(  # formulas without a stored result
    rb'<c\b[^>]*\br="([A-Z]+\d+)"[^>]*>\s*<f[^>]*>([^<]{1,500})</f>\s*(?:<v\s*/>|<v>\s*</v>)?\s*</c>'
)
PARTS = re.compile(  # of which text is read here, or is none
    r"xl/(?:workbook|sharedStrings|styles|metadata|connections|calcChain|(?:work|chart)sheets/[^/]*"
    r"|comments[^/]*|comments/[^/]*|threadedComments/[^/]*|tables/[^/]*"
    r"|externalLinks/.*|pivot.*|queryTables/[^/]*|printerSettings/.*)(?:\.xml|\.bin)?"
)


def read_xlsx(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline with the stored values of all visible sheets, and the cells' comments."""
    import openpyxl
    from openpyxl.utils.exceptions import InvalidFileException
    from openpyxl.worksheet import _read_only
    from openpyxl.worksheet._reader import WorkSheetParser

    # It passes on the request for runs only for shared texts, not for texts within cells.
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
    from openpyxl.utils import range_boundaries

    if sheet.sheet_state != "visible":
        return Sheet(sheet.title, is_hidden=True)
    sheet.reset_dimensions()  # the stored dimensions may be wrong in either direction
    markup = archive.read(sheet._worksheet_path)
    bare = BARE.finditer(markup) if b"<f" in markup else ()
    formulas = {match[1].decode(): f"={html.unescape(match[2].decode())}" for match in bare}
    areas = (range_boundaries(area.decode()) for area in MERGED.findall(markup))
    return Sheet(
        sheet.title,
        _filled_rows(sheet, formulas),
        hidden_rows=frozenset(int(row[1]) for row in HIDDEN_ROW.finditer(markup)),
        hidden_columns=frozenset(_hidden_columns(markup)),
        notes=_cell_comments(archive, sheet._worksheet_path),
        merged=[(left or 1, top or 1, bottom or 1) for left, top, _right, bottom in areas],
        formulas=list(formulas),
    )


def _hidden_columns(markup: bytes) -> Iterator[int]:
    for column in HIDDEN_COLUMN.finditer(markup):
        first, last = (int(re.search(rb'\b%s="(\d+)"' % end, column[0])[1]) for end in ENDS)  # type: ignore[index]
        yield from range(first, min(last, WIDEST) + 1)


def _cell_comments(archive: zipfile.ZipFile, sheet: str) -> Iterator[tuple[int, int, str]]:
    """Yield the comments and threaded comments of cells."""
    from defusedxml.ElementTree import fromstring
    from openpyxl.utils.cell import coordinate_to_tuple

    folder, _, name = sheet.rpartition("/")
    relations = f"{folder}/_rels/{name}.rels"
    if relations not in archive.namelist():
        return
    for relation in fromstring(archive.read(relations)):
        place = posixpath.join("/", folder, relation.get("Target", ""))  # may be an absolute path
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
        values: list[str] = []
        for column, cell in enumerate(row[:WIDEST], start=1):
            place = f"{letters_of(column)}{number}"
            text = _text(cell, marks)
            if not text and place in formulas:
                values.append(TypedCell(formulas[place], None, place))
            else:
                values.append(typed_cell(text, cell.value, place))
        if any(values):
            yield number, values


def _text(cell: Any, marks: dict[int, frozenset[Mark]]) -> str:
    """`marks` are those of the styles so far, by the style's number."""
    value = cell.value
    if value is None:
        return ""
    style = cell._style_id
    if style not in marks:
        marks[style] = _marks(cell.font)
    if isinstance(value, list):  # a text with raised, lowered or struck parts
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


BEGINS, END = (0x809, 0x409, 0x209, 0x009), 0x0A
OBJECT, TEXT, FORMULA, GOES_ON = 0x5D, 0x1B6, 0x06, 0x3C  # records
CHART, NOTE = 5, 25  # objects
CHART_SHEET = b"\x20\x00"
ON_LOAD = 2  # to be computed when the workbook is opened
ZERO, NO_RESULT = bytes(8), b"\x03" + bytes(5) + b"\xff\xff"
HEIGHTS = {1: Mark.RAISED, 2: Mark.LOWERED}  # marks by a font's escapement


def read_xls(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline with the stored values of all visible sheets, and the cells' comments."""
    if data.startswith(ZIP_START):
        _read_xlsb(data, outline, limits)
        return
    import xlrd
    from xlrd.compdoc import CompDocError

    refusals = (xlrd.XLRDError, CompDocError, struct.error, AssertionError)
    records = _Records()
    with suppress(*refusals):  # the cells are read even if these cannot be counted
        records.read(data)
    with damage_message(outline.name, *refusals):
        try:
            book = xlrd.open_workbook(
                file_contents=data,
                formatting_info=True,
                ignore_workbook_corruption=True,
                logfile=io.StringIO(),
            )
        except xlrd.XLRDError as error:
            if "encrypted" in str(error):
                raise Unreadable(outline.name, NEEDS_PASSWORD) from error
            raise
        sheets = [
            _binary_sheet(book, sheet, records.uncounted(position))
            for position, sheet in enumerate(book.sheets())
        ]
        write_sheets(sheets, outline, limits)
    for text in records.texts:
        outline.paragraph(text)
    outline.left_out += [counted(records.charts, "chart")] if records.charts else []


@dataclass(slots=True)
class _Records:
    """Records that xlrd does not return, as in [MS-XLS] 2.4."""

    charts: int = 0  # charts on sheets, and chart sheets
    texts: list[str] = field(default_factory=list)  # texts of shapes
    formulas: int = 0
    # Formulas without a result: (sheet, cell).
    empty: list[tuple[int, str]] = field(default_factory=list)

    def uncounted(self, sheet: int) -> list[str]:
        """Return a sheet's formulas without a result.

        The list is empty if the number of formulas in the file does not match.
        """
        is_sure = len(self.empty) == self.formulas
        return [cell for place, cell in self.empty if is_sure and place == sheet]

    def read(self, data: bytes) -> "_Records":
        stream, end = _workbook(data)
        position = depth = shape = 0
        sheet = -2  # the records of the whole workbook come first
        while position + 4 <= end:
            kind, size = struct.unpack_from("<HH", stream, position)
            body = stream[position + 4 : position + 4 + size]
            position += 4 + size
            size = len(body)  # shorter than stated in a truncated file
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
    """Return a shape's text from the following record, in one or two bytes per character."""
    kind, size = struct.unpack_from("<HH", stream, position)
    body = stream[position + 4 : position + 4 + size]
    if kind != GOES_ON or not body:
        return ""
    width, encoding = (2, "utf-16-le") if body[0] & 1 else (1, "latin-1")
    return body[1 : 1 + count * width].decode(encoding, "ignore")


def _binary_sheet(book: Any, sheet: Any, formulas: Sequence[str]) -> Sheet:
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
    text = display_text(value, code, _cell_marks(book.font_list[style.font_index]))
    return typed_cell(text, value, f"{letters_of(column + 1)}{row + 1}")


def _day(book: Any, value: float) -> Any:
    """Return a date; the plain figure if it is no valid date."""
    import xlrd

    try:
        moment = xlrd.xldate_as_datetime(value, book.datemode)
    except (xlrd.XLDateError, OverflowError, ValueError):
        return value
    return moment if value >= 1 else moment.time()


def _rich(book: Any, text: str, style: Any, runs: Iterable[tuple[int, int]]) -> str:
    """Write a text with raised, lowered or struck parts."""
    starts = [(0, style.font_index), *runs]
    ends = [start for start, _font in starts[1:]] + [len(text)]
    return written(
        Run(text[start:end], _cell_marks(book.font_list[font]))
        for (start, font), end in zip(starts, ends, strict=True)
    )


def _cell_marks(font: Any) -> frozenset[Mark]:
    return marks_of(HEIGHTS.get(font.escapement), Mark.STRUCK if font.struck_out else None)


def _read_xlsb(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    from python_calamine import CalamineError, CalamineWorkbook

    check_package(outline.name, data, limits)
    try:
        with damage_message(outline.name, CalamineError):
            book = CalamineWorkbook.from_filelike(io.BytesIO(data))
            write_sheets(list(_binary_sheets(book)), outline, limits)
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of calamine; no subclass of Exception
            raise
        raise Unreadable(
            outline.name, "its sheets are written in a way that is not read. Save it as XLSX."
        ) from error
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
    for number, row in enumerate(sheet.iter_rows(), first + 1):
        cells = enumerate(row[:WIDEST], left + 1)
        values = [cell_of(value, number, column) for column, value in cells]
        if any(values):
            yield number, values

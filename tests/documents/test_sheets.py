"""Workbooks say the same in every format: codes, currencies, marks, and what nobody sees."""

import io
import re
import struct

import pytest

from rag.documents.readers.sheets import _Records
from tests.documents import office_files
from tests.documents.office_files import with_part
from tests.documents.test_structures import ODF_NAMES, package, read, text_of

ROWS = (
    ("Site", "Zip", "Rent", "Share", "Floor", "Margin"),
    ("Nord", 501, 1234.5, 0.125, 23, 17),
    ("Secret", 99999, 1, 0.5, 55, 66),
    ("Sued", 1234, 980.25, 0.375, 24, 9),
)
FORMATS = ("00000", '#,##0.00 "EUR"', "0.0%", "0", "0")
HIDDEN_ROW, HIDDEN_COLUMNS = 3, (5, 6)  # from 1


def xlsx():
    from openpyxl import Workbook
    from openpyxl.comments import Comment

    book = Workbook()
    sheet = book.active
    sheet.title = "Sites"
    for row in ROWS:
        sheet.append(row)
    for row in sheet.iter_rows(min_row=2, min_col=2):
        for cell, code in zip(row, FORMATS, strict=True):
            cell.number_format = code
    sheet.row_dimensions[HIDDEN_ROW].hidden = True
    sheet.column_dimensions.group("E", "F", hidden=True)
    sheet["E2"].comment = Comment("Confidential", "Ann")
    book.create_sheet("Costs").sheet_state = "hidden"
    return office_files.saved(book)


def xls():
    import xlwt

    book = xlwt.Workbook()
    sheet = book.add_sheet("Sites")
    for at, row in enumerate(ROWS):
        for column, value in enumerate(row):
            code = FORMATS[column - 1] if at and column else "General"
            sheet.write(at, column, value, xlwt.easyxf(num_format_str=code))
    sheet.row(HIDDEN_ROW - 1).hidden = True
    for column in HIDDEN_COLUMNS:
        sheet.col(column - 1).hidden = True
    book.add_sheet("Costs").visibility = 1
    return office_files.saved(book)


def ods():
    def cell(value, written="", kind="float"):
        if isinstance(value, str):
            return f"<table:table-cell><text:p>{value}</text:p></table:table-cell>"
        return (
            f'<table:table-cell office:value-type="{kind}" office:value="{value}">'
            f"<text:p>{written}</text:p></table:table-cell>"
        )

    def line(site, zip_code, rent, share, *unseen):
        return [
            cell(site),
            cell(zip_code, f"{zip_code:05}"),
            cell(rent, f"{rent:,.2f} EUR", "currency"),
            cell(share, f"{share:.1%}", "percentage"),
            *(cell(value, value) for value in unseen),
        ]

    lines = ["".join(map(cell, ROWS[0])), *("".join(line(*row)) for row in ROWS[1:])]
    hidden = ' table:visibility="collapse"'
    rows = "".join(
        f"<table:table-row{hidden * (number == HIDDEN_ROW)}>{cells}</table:table-row>"
        for number, cells in enumerate(lines, start=1)
    )
    columns = (
        f'<table:table-column table:number-columns-repeated="{HIDDEN_COLUMNS[0] - 1}"/>'
        f'<table:table-column table:number-columns-repeated="2"{hidden}/>'
    )
    style = (
        '<office:automatic-styles><style:style style:name="ta2" style:family="table">'
        '<style:table-properties table:display="false"/></style:style></office:automatic-styles>'
    )
    sheets = (
        f'<table:table table:name="Sites">{columns}{rows}</table:table>'
        '<table:table table:name="Costs" table:style-name="ta2"/>'
    )
    return sheet_file(sheets, style)


def sheet_file(sheets, styles=""):
    body = f"<office:body><office:spreadsheet>{sheets}</office:spreadsheet></office:body>"
    manifest = "<manifest:manifest xmlns:manifest='urn:m'/>"
    return package(
        "application/vnd.oasis.opendocument.spreadsheet",
        **{
            "META-INF/manifest.xml": manifest,
            "content.xml": f"<office:d {ODF_NAMES}>{styles}{body}</office:d>",
        },
    )


@pytest.mark.parametrize("make", [xlsx, xls, ods])
class TestEveryFormat:
    def test_keeps_zeros_currencies_and_percents(self, make):
        text = text_of(f"a.{make.__name__}", make())

        assert "| Site | Zip | Rent | Share |\n" in text
        assert "| Nord | 00501 | 1234.5 EUR | 12.5% |\n" in text
        assert "| Sued | 01234 | 980.25 EUR | 37.5% |" in text

    def test_counts_what_nobody_sees_and_does_not_read_it(self, make):
        document = read(f"a.{make.__name__}", make())
        text = "\n".join(section.text for section in document.sections)

        for unseen in ("Secret", "99999", "Margin", "Floor", "55", "Confidential"):
            assert unseen not in text + document.tables[0].rows
        assert sorted(document.report.left_out) == [
            "sheet Costs: hidden",
            "sheet Sites: 1 hidden row",
            "sheet Sites: 2 hidden columns",
        ]


def test_old_sheets_keep_their_marks_days_and_merged_cells():
    import datetime

    import xlwt

    book = xlwt.Workbook()
    sheet = book.add_sheet("List")
    for column, name in enumerate(("Hall", "Price", "Count", "Since")):
        sheet.write(0, column, name)
    sheet.write_merge(1, 2, 0, 0, "North")
    raised = xlwt.easyfont("escapement superscript")
    for row, price in ((1, "90 EUR"), (2, "75 EUR")):
        sheet.write(row, 1, price, xlwt.easyxf(f"font: struck_out {row == 1}"))
        sheet.write_rich_text(row, 2, [("10", xlwt.easyfont("")), ("6", raised)])
        day = datetime.date(2026, 3, row)
        sheet.write(row, 3, day, xlwt.easyxf(num_format_str="YYYY-MM-DD"))
    file = office_files.saved(book)

    text = text_of("a.xls", file)

    assert "| North | ~~90 EUR~~ | 10^6 | 2026-03-01 |" in text
    assert "| North | 75 EUR | 10^6 | 2026-03-02 |" in text


PICTURE = b"BM" + struct.pack("<IIIIIIHHIIIIII", 58, 0, 54, 40, 1, 1, 1, 24, 0, 4, 0, 0, 0, 0)
OBJECT = re.compile(rb"\x5d\x00..\x01\x00\x00\x00\x08\x00.*?(?=\x7f\x00)", re.DOTALL)


def drawn(kind, words):
    """An XLS with two pictures, as which the objects of another kind are written."""
    import xlwt

    book = xlwt.Workbook()
    sheet = book.add_sheet("Plan")
    sheet.write(0, 0, "Pump 7 stands in the cellar")
    for row in (1, 2):
        sheet.insert_bitmap_data(PICTURE + bytes(4), row, 0)
    coded = words.encode("utf-16-le")
    said = struct.pack("<HHHHIHHHI", 0x1B6, 18, 0, 0, 0, 0, len(words), 16, 0)
    said += struct.pack("<HHB", 0x3C, len(coded) + 1, 1) + coded
    said += struct.pack("<HH16x", 0x3C, 16)  # of its letters all are alike
    stream, patched = OBJECT.subn(
        lambda found: found[0][:8] + bytes([kind]) + found[0][9:] + said, book.get_biff_data()
    )
    assert patched == 2
    file = io.BytesIO()
    xlwt.CompoundDoc.XlsDoc().save(file, stream)
    return read("a.xls", file.getvalue())


@pytest.mark.parametrize(
    ("kind", "counts", "is_read"),
    [(6, [], True), (2, [], True), (5, ["2 charts"], True), (25, [], False)],
    ids=["text box", "rectangle", "chart", "note"],
)
def test_what_is_drawn_on_an_old_sheet_and_holds_words_is_read_or_counted(kind, counts, is_read):
    document = drawn(kind, "Größe: ask 555-0177")

    text = "\n".join(section.text for section in document.sections)
    assert "Pump 7" in text
    assert ("Größe: ask 555-0177" in text) is is_read
    assert list(document.report.left_out) == counts


def test_formulas_of_an_old_sheet_that_were_never_computed_are_reported():
    import xlwt

    book = xlwt.Workbook()
    for name in ("Cost", "Sale"):
        sheet = book.add_sheet(name)
        sheet.write(0, 0, "Net")
        sheet.write(1, 0, 100)
    sheet.write(1, 1, xlwt.Formula("A2*1.19"))
    file = office_files.saved(book)

    report = read("a.xls", file).report

    assert list(report.left_out) == ["sheet Sale: 1 formula without a stored result (B2)"]


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(struct.pack("<HH8x", 0x06, 22), id="a formula before its result"),
        pytest.param(struct.pack("<HH6x8x", 0x06, 22), id="a formula behind its result"),
        pytest.param(struct.pack("<HH4x", 0x5D, 20), id="an object"),
        pytest.param(
            struct.pack("<HH10xH6x", 0x1B6, 18, 3) + struct.pack("<HH", 0x3C, 4), id="a text"
        ),
    ],
)
def test_a_record_that_is_cut_off_is_no_reason_to_lose_the_counts(record):
    chart = struct.pack("<HH4xH2x", 0x5D, 8, 5)

    assert _Records().read(chart + record).charts == 1


def test_an_open_document_sheet_repeats_cells_and_keeps_every_digit():
    def figure(value, text, more=""):
        return (
            f'<table:table-cell office:value-type="float" office:value="{value}"{more}>'
            f"<text:p>{text}</text:p></table:table-cell>"
        )

    names = "".join(f"<table:table-cell><text:p>{n}</text:p></table:table-cell>" for n in "ABC")
    twice = ' table:number-columns-repeated="2"'
    rows = (
        f"<table:table-row>{names}</table:table-row>"
        f'<table:table-row table:number-rows-repeated="2">{figure(4006381333931, "4.01E+12")}'
        f"{figure(0.123456, '0,12 m', twice)}</table:table-row>"
    )
    sheet = f'<table:table table:name="S">{rows}</table:table>'
    data = sheet_file(sheet)

    text = text_of("a.ods", data)

    assert text.count("| 4006381333931 | 0.123456 m | 0.123456 m |") == 2


def test_text_boxes_on_a_sheet_are_read():
    names = "http://schemas.openxmlformats.org/drawingml/2006"
    box = (
        f'<xdr:wsDr xmlns:xdr="{names}/spreadsheetDrawing" xmlns:a="{names}/main">'
        "<xdr:sp><xdr:txBody><a:p><a:r><a:t>Call the roofer</a:t></a:r></a:p></xdr:txBody></xdr:sp>"
        "</xdr:wsDr>"
    )

    text = text_of("a.xlsx", with_part(xlsx(), "xl/drawings/drawing9.xml", box.encode()))

    assert text.endswith("Call the roofer")


def test_formulas_of_an_open_document_sheet_without_results_are_told():
    cells = [f"<table:table-cell><text:p>{name}</text:p></table:table-cell>" for name in "ABCD"]
    formula = '<table:table-cell table:formula="of:=[.A2]*1.19"/>'
    rows = "".join(
        f"<table:table-row>{''.join(row)}</table:table-row>"
        for row in (cells[:2], [cells[2], formula], [cells[3], formula])
    )

    document = read("a.ods", sheet_file(f'<table:table table:name="S">{rows}</table:table>'))

    assert "| C | =[.A2]*1.19 |" in document.sections[0].text
    told = "sheet S: 2 formulas without a stored result (B2, B3)"
    assert document.report.left_out == (told,)

"""Parts, tables and lists of files as people make them: nothing is dropped, doubled or moved."""

import io

import pytest

from rag.documents.cleaning import clean, decode
from rag.documents.limits import LoadLimits
from rag.documents.load import load
from tests.documents.test_runs import docx, run


def read(name, data):
    return load(name, data, limits=LoadLimits())


def text_of(name, data):
    return "\n".join(section.text for section in read(name, data).sections)


def paragraph(text, properties=""):
    return f"<w:p><w:pPr>{properties}</w:pPr>{run(text)}</w:p>"


def cell(content, properties=""):
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{content}</w:tc>"


def row(*texts, properties=""):
    cells = "".join(cell(paragraph(text)) for text in texts)
    return f"<w:tr><w:trPr>{properties}</w:trPr>{cells}</w:tr>"


def control(content):
    return f"<w:sdt><w:sdtPr/><w:sdtContent>{content}</w:sdtContent></w:sdt>"


class TestWord:
    def test_cells_and_rows_in_content_controls_stand_where_they_stand(self):
        first = f"<w:tr>{cell(paragraph('G4'))}{control(cell(paragraph('12')))}</w:tr>"
        body = f"<w:tbl>{row('Item', 'Quantity')}{first}{control(row('V9', '7'))}</w:tbl>"

        assert "| G4 | 12 |\n| V9 | 7 |" in text_of("a.docx", docx(body))

    def test_a_row_that_begins_later_and_one_that_was_deleted(self):
        late = row("Ito", properties='<w:gridBefore w:val="1"/>')
        gone = row("B", "Old", properties="<w:del/>")
        text = text_of("a.docx", docx(f"<w:tbl>{row('Line', 'Early')}{late}{gone}</w:tbl>"))

        assert "|  | Ito |" in text
        assert "Old" not in text

    def test_a_table_in_a_cell_is_a_table_of_its_own(self):
        inner = f"<w:tbl>{row('Weight', 'Rate')}{row('10 kg', '11.60')}</w:tbl>"
        outer = f"<w:tr>{cell(paragraph('North'))}{cell(inner + '<w:p/>')}</w:tr>"
        body = f"<w:tbl>{row('Region', 'Rates')}{outer}</w:tbl>"

        assert "North:\n\n| Weight | Rate |\n| --- | --- |\n| 10 kg | 11.60 |" in text_of(
            "a.docx", docx(body)
        )

    def test_symbols_and_check_boxes_are_read(self):
        signs = (
            '<w:p><w:r><w:sym w:font="Wingdings" w:char="F0FE"/></w:r>'
            f'{run(" crane, limit ")}<w:r><w:sym w:font="Symbol" w:char="F0A3"/></w:r>'
            f"{run(' 45')}</w:p>"
        )

        assert "☑ crane, limit ≤ 45" in text_of("a.docx", docx(signs))

    def test_what_holds_text_and_is_not_read_is_told_by_name(self):
        unknown = '<x xmlns:a="urn:a"><a:t>Nobody reads this</a:t></x>'

        part = {"word/ink/ink1.xml": unknown}
        report = read("a.docx", docx(paragraph("Read."), **part)).report
        assert report.left_out == ("word/ink/ink1.xml: 3 words in a part that is not read",)


def drawn_table(rows, padding):
    from reportlab.platypus import SimpleDocTemplate, Table, TableStyle

    file = io.BytesIO()
    style = [
        ("GRID", (0, 0), (-1, -1), 1, "black"),
        ("LEFTPADDING", (0, 0), (-1, -1), padding),
        ("RIGHTPADDING", (0, 0), (-1, -1), padding),
    ]
    SimpleDocTemplate(file).build([Table(rows, style=TableStyle(style), repeatRows=1)])
    return file.getvalue()


@pytest.mark.parametrize("padding", [2, 3, 6])
def test_drawn_cells_of_a_pdf_are_cells_however_narrow_and_one_table_over_pages(padding):
    rows = [["Type", "Width (mm)", "Lift (mm)"]]
    rows += [[f"A-{at}", f"{at}.5", f"{at * 3}.25"] for at in range(100, 180)]

    (table,) = read("a.pdf", drawn_table(rows, padding)).tables

    assert table.row_count == len(rows)
    assert table.locator == "pages 1–3"
    assert "A-179,179.5,537.25" in table.rows


def test_columns_of_a_slide_are_read_one_after_the_other():
    from pptx import Presentation

    presentation = Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    for at, line in enumerate((("Basic", "Premium"), ("9 EUR", "29 EUR"))):
        for column, text in enumerate(line):
            box = slide.shapes.add_textbox(
                column * 4_000_000, at * 900_000 - column * 20_000, 3_000_000, 400_000
            )
            box.text_frame.text = text
    file = io.BytesIO()
    presentation.save(file)

    text = text_of("a.pptx", file.getvalue())

    assert text.split("\n\n") == ["Basic", "9 EUR", "Premium", "29 EUR"]


class TestExcel:
    def test_digits_codes_notes_and_formulas_are_kept(self):
        from openpyxl import Workbook
        from openpyxl.comments import Comment

        book = Workbook()
        book.active.append(["Site", "Zip", "Amount", "EAN", "Gross"])
        book.active.append(["Nord", 501, 123456789.55, 4006381333931, "=C2*1.19"])
        book.active["B2"].number_format = "00000"
        book.active["A2"].comment = Comment("Roof leaks", "K")
        file = io.BytesIO()
        book.save(file)

        parsed = read("a.xlsx", file.getvalue())
        text = "\n".join(section.text for section in parsed.sections)

        assert "| Nord | 00501 | 123456789.55 | 4006381333931 | =C2*1.19 |" in text
        assert "Note on A2 (Nord): Roof leaks" in text
        assert "1 formula without a stored result" in parsed.report.left_out[0]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("型号,单价,库存\nAB-1,1200,5\n", "gb18030"),
        ("型號,單價,庫存\nAB-1,1200,5\n", "big5"),
        ("이름,가격,수량\nAB-1,1200,5\n", "cp949"),
        ("かなの品,ねだん\nAB-1,1200\n", "cp932"),
        ("Größe,Überlänge\n12,5\n", "cp850"),
        ("Größe,Überlänge\n12,5\n", "cp1252"),
        ("Café à la crème\n", "cp1252"),
    ],
)
def test_short_texts_in_old_encodings_are_read(text, encoding):
    assert decode(text.encode(encoding)) == text


def test_full_width_letters_and_digits_are_those_that_people_type():
    assert clean("ＡＢ－１２０　（型番）") == "AB-120　（型番）"


def test_a_table_of_facts_within_one_that_arranges_the_page_is_a_table():
    page = b"""<title>T</title><table><tr><td><table><tr><th>Zone<th>Rate<tr><td>B<td>6.20</table>
        <td>Call us.</table>"""

    assert "| B | 6.20 |" in text_of("a.html", page)


def test_the_html_of_a_mail_is_read_where_its_plain_text_is_a_stub():
    mail = (
        "From: a@example.com\nSubject: Prices\nMIME-Version: 1.0\n"
        "Content-Type: multipart/alternative; boundary=x\n\n--x\nContent-Type: text/plain\n\n"
        "Please view this in a browser.\n--x\nContent-Type: text/html\n\n"
        "<table><tr><th>Part<th>Price<tr><td>V9<td>18.90</table>\n--x--\n"
    )

    assert "| V9 | 18.90 |" in text_of("a.eml", mail.encode())


def test_programs_keep_their_indentation():
    program = b"class Limiter:\n    def refill(self):\n        return 90\n"

    assert "\n    def refill(self):\n        return 90" in text_of("a.txt", program)

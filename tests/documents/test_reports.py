"""What was read of a file is told, and what was left out of it."""

import base64
import io
import zipfile

import openpyxl
import pytest
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from reportlab.pdfgen import canvas

from rag.documents.limits import LoadLimits
from rag.documents.readers.registry import load
from rag.documents.reports import in_words, left_out, report_from, stored_report
from rag.errors import Unreadable
from rag.records import ReadingReport
from tests.documents import office_files

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def read(name, data):
    return load(name, data, limits=LoadLimits())


def form():
    buffer = io.BytesIO()
    page = canvas.Canvas(buffer)
    page.drawString(72, 720, "Loan of a device")
    fields = page.acroForm
    fields.textfield(name="who", tooltip="Borrower", value="Ada Lindqvist", x=72, y=600)
    fields.textfield(name="note", tooltip="Remark", value="", x=72, y=580)
    fields.textfield(name="größe", value="12 µm", x=72, y=570)
    fields.checkbox(name="insured", tooltip="Insured", checked=True, x=72, y=560)
    fields.checkbox(name="returned", tooltip="Returned", checked=False, x=72, y=530)
    fields.choice(
        name="device", tooltip="Device", value="Aero 5", options=["Aero 5", "Tarn 2"], x=72, y=500
    )
    fields.radio(name="site", value="north", selected=True, x=72, y=460)
    fields.radio(name="site", value="south", selected=False, x=100, y=460)
    page.showPage()
    page.rect(1, 1, 50, 50, fill=1)
    page.showPage()
    page.save()
    return buffer.getvalue()


class TestAPdfForm:
    @pytest.mark.slow
    def test_is_read_with_what_was_filled_in(self):
        (section,) = read("form.pdf", form()).sections

        assert section.text.splitlines()[2:] == [
            "- Borrower: Ada Lindqvist", "- größe: 12 µm", "- Insured: yes", "- Device: Aero 5",
            "- site: north",
        ]  # fmt: skip

    @pytest.mark.slow
    def test_tells_of_pages_without_text(self):
        report = read("form.pdf", form()).report

        assert (report.pages, report.form_values) == (2, 5)
        assert report.left_out == ("page 2: no text, so drawn or blank",)


def test_pictures_of_a_letter_are_told_of():
    def build(document):
        document.add_paragraph("Two words")
        document.add_picture(io.BytesIO(PNG))
        document.sections[0].footer.paragraphs[0].text = "Confidential"

    report = read("letter.docx", office_files.docx(build)).report

    assert (report.words, report.pictures) == (4, 1)  # "Footer: Confidential" besides
    assert report.left_out == ()


def test_footnotes_are_read_behind_the_text():
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    note = (
        f'<w:footnotes xmlns:w="{word}">'
        '<w:footnote w:type="separator" w:id="-1"><w:p/></w:footnote>'
        '<w:footnote w:id="1"><w:p><w:r><w:t>Not in winter.</w:t></w:r></w:p></w:footnote>'
        "</w:footnotes>"
    )

    def build(document):
        document.add_paragraph("It is open all year.")
        kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes"
        media = "application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml"
        part = Part(PackURI("/word/footnotes.xml"), media, note.encode(), document.part.package)
        document.part.relate_to(part, kind)

    found = read("letter.docx", office_files.docx(build))

    assert "It is open all year.\n\nNot in winter." in found.sections[0].text
    assert found.report.left_out == ()


def test_broken_footnotes_are_damage():
    data = office_files.docx(lambda document: document.add_paragraph("Two words"))
    types = zipfile.ZipFile(io.BytesIO(data)).read("word/_rels/document.xml.rels").decode()
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes"
    added = f'<Relationship Id="rIdX" Type="{kind}" Target="footnotes.xml"/></Relationships>'
    data = office_files.with_part(data, "word/footnotes.xml", b"<w:footnotes")
    rels = types.replace("</Relationships>", added).encode()
    data = office_files.with_part(data, "word/_rels/document.xml.rels", rels)

    with pytest.raises(Unreadable, match=r"letter\.docx"):
        read("letter.docx", data)


def test_a_footer_without_text_is_not_missed():
    def build(document):
        document.add_paragraph("Two words")
        document.sections[0].footer.is_linked_to_previous = False

    assert read("letter.docx", office_files.docx(build)).report.left_out == ()


def test_files_within_a_file_are_named_and_those_of_charts_are_not():
    data = office_files.docx(lambda document: document.add_paragraph("Two words"))
    data = office_files.with_part(data, "word/afchunk1.htm", b"<p>Discount: 12 percent</p>")
    data = office_files.with_part(data, "word/embeddings/sheet1.xlsx", b"PK")
    data = office_files.with_part(data, "word/embeddings/sheet2.xlsx", b"PK")
    rels = b'<Relationships><Relationship Target="../embeddings/sheet2.xlsx"/></Relationships>'
    data = office_files.with_part(data, "word/charts/_rels/chart1.xml.rels", rels)

    report = read("letter.docx", data).report

    assert report.left_out == ("2 embedded files (afchunk1.htm, sheet1.xlsx): not read",)


def test_the_title_of_a_chart_of_a_workbook_is_read_and_its_cells_are_not_read_twice():
    from openpyxl import Workbook
    from openpyxl.chart import BarChart, Reference

    book = Workbook()
    for row in (("Item", "Price"), ("Pump", 120), ("Hose", 35)):
        book.active.append(row)
    chart = BarChart()
    chart.add_data(Reference(book.active, min_col=2, min_row=1, max_row=3), titles_from_data=True)
    chart.title = "Prices in spring"
    book.create_chartsheet("Diagram").add_chart(chart)
    file = office_files.saved(book)

    found = read("prices.xlsx", file)

    text = "\n".join(section.text for section in found.sections)
    assert text.endswith("Chart: Prices in spring")
    assert text.count("120") == 1


def test_slides_and_their_pictures_are_counted():
    def build(presentation):
        slide = presentation.slides.add_slide(presentation.slide_layouts[5])
        slide.shapes.title.text = "Sales"
        slide.shapes.add_picture(io.BytesIO(PNG), 0, 0)

    report = read("talk.pptx", office_files.pptx(build)).report

    assert (report.pages, report.pictures) == (1, 1)


def test_a_hidden_sheet_is_told_of():
    book = openpyxl.Workbook()
    book.active.append(["Name", "EUR"])
    book.active.append(["Aero", 3])
    book.create_sheet("Costs").sheet_state = "hidden"
    data = office_files.saved(book)

    assert read("prices.xlsx", data).report.left_out == ("sheet Costs: hidden",)


def test_tables_and_words_are_counted():
    report = read("a.md", b"# Prices\n\n| Name | EUR |\n|---|---|\n| Aero | 3 |\n").report

    assert report.tables == 1
    assert report.words > 3


class TestInWords:
    def test_counts_what_there_is(self):
        assert in_words(ReadingReport(pages=1, words=1204, tables=2)) == (
            "1 page, 1,204 words, 2 tables"
        )

    def test_nothing_is_said_of_what_is_not_known(self):
        assert in_words(ReadingReport()) == ""

    def test_pictures_come_with_the_reason(self):
        assert left_out(ReadingReport(pictures=2, left_out=("page 3: damaged",))) == [
            "2 pictures: text in pictures is not read", "page 3: damaged",
        ]  # fmt: skip


@pytest.mark.parametrize("report", [ReadingReport(), ReadingReport(1, 2, 3, 4, 5, ("a", "b"))])
def test_a_report_comes_back_as_it_was_stored(report):
    assert report_from(stored_report(report)) == report

"""What is raised, struck, hidden or deleted: one place writes it, in every format."""

import io
import time
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.documents.limits import LoadLimits
from rag.documents.outline import Mark, Run, written
from rag.documents.readers.pdf import reader
from rag.documents.readers.pdf.lines import MOST_RULES, Lattice, PdfCell, PdfLine, Rule
from rag.documents.readers.registry import load
from rag.errors import TooLarge, Unreadable
from rag.language.amounts import parse_figure
from tests.documents import office_files

RAISED, LOWERED, STRUCK, HIDDEN, DELETED = (frozenset({mark}) for mark in Mark)


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        ([Run("10"), Run("6", RAISED), Run(" events")], "10^6 events"),
        ([Run("2.5·10"), Run("−9", RAISED), Run(" mbar")], "2.5·10^-9 mbar"),
        ([Run("450"), Run("1", RAISED)], "450 [note 1]"),
        ([Run("is vented"), Run("3", RAISED), Run(".")], "is vented [note 3]."),
        ([Run("30 m"), Run("2", RAISED)], "30 m²"),
        ([Run("a + x"), Run("2", RAISED)], "a + x²"),
        ([Run("x"), Run("2", RAISED)], "x²"),
        ([Run("y = 3 x"), Run("2", RAISED)], "y = 3 x²"),
        ([Run("(a − b"), Run("2", RAISED)], "(a − b²"),
        ([Run("the area:\nx"), Run("2", RAISED)], "the area:\nx²"),
        ([Run("see option b"), Run("2", RAISED)], "see option b [note 2]"),
        ([Run("the area in m"), Run("2", RAISED)], "the area in m²"),
        ([Run("CO"), Run("2", LOWERED)], "CO2"),
        ([Run("10"), Run("2", LOWERED)], "10_2"),
        ([Run("450"), Run("1", RAISED), Run("kg")], "450 [note 1] kg"),
        ([Run("the 1"), Run("st", RAISED), Run(" day")], "the 1st day"),
        ([Run("1", RAISED), Run("restated")], "1 restated"),
        ([Run("90 EUR", STRUCK), Run(" 120 EUR")], "~~90 EUR~~ 120 EUR"),
        ([Run("seen"), Run(" secret", HIDDEN), Run(" old", DELETED)], "seen"),
    ],
)
def test_are_written_so_that_no_figure_becomes_another(runs, text):
    assert written(runs) == text


def test_many_raised_figures_are_read_in_time_that_grows_with_them_alone():
    began = time.monotonic()

    text = written([Run("word " * 20), Run("2", RAISED)] * 4_000)

    assert text.count("[note 2]") == 4_000
    assert time.monotonic() - began < 1


@given(st.integers(0, 10**9), st.integers(1, 99))
def test_the_number_of_a_note_never_becomes_a_digit(figure, note):
    text = written([Run(str(figure)), Run(str(note), RAISED)])

    read = parse_figure(text)

    assert read is not None
    assert read.value == (10**note if figure == 10 else figure)


def sections(name, data):
    return load(name, data, limits=LoadLimits())


def text_of(name, data):
    return "\n".join(section.text for section in sections(name, data).sections)


def docx(body, **parts):
    from docx import Document

    file = io.BytesIO()
    Document().save(file)
    with zipfile.ZipFile(file) as archive:
        content = {each: archive.read(each) for each in archive.namelist()}
    head, _, rest = content["word/document.xml"].decode().partition("<w:body>")
    tail = rest[rest.index("<w:sectPr") :] if "<w:sectPr" in rest else "</w:body></w:document>"
    content["word/document.xml"] = f"{head}<w:body>{body}{tail}".encode()
    content |= {name.replace("__", "/"): data.encode() for name, data in parts.items()}
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return made.getvalue()


def run(text, properties=""):
    space = 'xml:space="preserve"'
    return f"<w:r><w:rPr>{properties}</w:rPr><w:t {space}>{text}</w:t></w:r>"


WORD_RUNS = (
    run("Up to 10")
    + run("6", '<w:vertAlign w:val="superscript"/>')
    + run(" events. ")
    + run("90 EUR", "<w:strike/>")
    + run(" 120 EUR")
    + run(" secret", "<w:vanish/>")
    + f"<w:del>{run('old').replace('w:t', 'w:delText')}</w:del>"
)
SAID = "Up to 10^6 events. ~~90 EUR~~ 120 EUR"
HTML = "<p>Up to 10<sup>6</sup> events. <s>90 EUR</s> 120 EUR <del>old</del></p>"


def pptx():
    from pptx import Presentation

    presentation = Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    frame = slide.shapes.add_textbox(0, 0, 9_000_000, 900_000).text_frame
    paragraph = frame.paragraphs[0]
    for text, name, value in (
        ("Up to 10", "", ""),
        ("6", "baseline", "30000"),
        (" events. ", "", ""),
        ("90 EUR", "strike", "sngStrike"),
        (" 120 EUR", "", ""),
    ):
        added = paragraph.add_run()
        added.text = text
        if name:
            added._r.get_or_add_rPr().set(name, value)
    return office_files.saved(presentation)


def xlsx():
    from openpyxl import Workbook
    from openpyxl.cell.rich_text import CellRichText, TextBlock
    from openpyxl.cell.text import InlineFont

    book = Workbook()
    book.active.append(["Said"])
    raised, struck = InlineFont(vertAlign="superscript"), InlineFont(strike=True)
    book.active.append(
        [
            CellRichText(
                "Up to 10", TextBlock(raised, "6"), " events. ", TextBlock(struck, "90 EUR"),
                " 120 EUR",
            )
        ]
    )  # fmt: skip
    return office_files.saved(book)


def odt():
    names = "urn:oasis:names:tc:opendocument:xmlns"
    spaces = " ".join(f'xmlns:{each}="{names}:{each}:1.0"' for each in ("office", "style", "text"))
    styles = "".join(
        f'<style:style style:name="{name}"><style:text-properties style:{said}/></style:style>'
        for name, said in (
            ("T1", 'text-position="super 58%"'),
            ("T2", 'text-line-through-style="solid"'),
        )
    )
    text = (
        'Up to 10<text:span text:style-name="T1">6</text:span> events. '
        '<text:span text:style-name="T2">90 EUR</text:span> 120 EUR'
    )
    body = f"<office:body><office:text><text:p>{text}</text:p></office:text></office:body>"
    automatic = f"<office:automatic-styles>{styles}</office:automatic-styles>"
    markup = f"<office:document {spaces}>{automatic}{body}</office:document>"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
        archive.writestr("content.xml", markup)
    return file.getvalue()


def pdf():
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph, SimpleDocTemplate

    file = io.BytesIO()
    text = "Up to 10<super>6</super> events. Revenue was 450<super>1</super> then."
    SimpleDocTemplate(file).build([Paragraph(text, getSampleStyleSheet()["Normal"])])
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.docx", lambda: docx(f"<w:p>{WORD_RUNS}</w:p>")),
        ("a.pptx", pptx),
        ("a.xlsx", xlsx),
        ("a.html", lambda: f"<title>T</title>{HTML}".encode()),
        ("a.md", lambda: b"# T\n\nUp to 10<sup>6</sup> events. ~~90 EUR~~ 120 EUR"),
        ("a.odt", odt),
    ],
)
def test_are_read_alike_in_every_format(name, data):
    assert SAID in text_of(name, data())


def test_are_told_apart_in_a_pdf_by_size_and_height():
    assert "Up to 10^6 events. Revenue was 450 [note 1] then." in text_of("a.pdf", pdf())


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.docx", lambda: docx(f"<w:p>{WORD_RUNS}</w:p>")),
        ("a.html", lambda: f"<title>T</title>{HTML}".encode()),
    ],
)
def test_what_nobody_sees_is_told_and_not_searchable(name, data):
    read = sections(name, data())

    assert "old" not in read.sections[0].text
    assert "1 deleted word" in read.report.left_out


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ('<p>Revenue: 450<a href="#n1">1</a> EUR</p>', "Revenue: 450 [note 1] EUR"),
        ("<table><tr><th>A</th><th>B</th></tr><tr><td>R</td><td>450<a href='n.html#f'>2</a></td>"
         "</tr><tr><td>S</td><td>7</td></tr></table>", "| R | 450 [note 2] |"),
        ('<p>See page <a href="#p9">9</a>.</p>', "See page 9."),
        ('<p>Model V<a href="/nine">9</a></p>', "Model V9"),
        ("<p><input type='checkbox' checked> Crane <input type='checkbox'> Lift</p>",
         "☑ Crane ☐ Lift"),
        ("<table><tr><td>Crane</td><td><input type='radio' checked></td></tr><tr><td>Lift</td>"
         "<td><input type='radio'></td></tr></table>", "| Crane | ☑ |"),
        ('<ol start="4"><li>Seal.</li><li value="9">Pour.</li></ol>', "- 4. Seal.\n- 9. Pour."),
    ],
)  # fmt: skip
def test_a_page_keeps_its_notes_boxes_and_numbers(markup, text):
    assert text in text_of("a.html", markup.encode())


@pytest.mark.parametrize(
    "attribute", ["hidden", "style='display: none'", "style='visibility:collapse'"]
)
def test_hidden_rows_and_paragraphs_of_a_page_are_reported_and_not_read(attribute):
    rows = f"<tr><td>Pump</td></tr><tr {attribute}><td>Ghost</td></tr><tr><td>Hose</td></tr>"
    page = f"<p {attribute}>Two words</p><table>{rows}</table><script {attribute}>a b</script>"

    document = sections("a.html", page.encode())

    assert "Ghost" not in document.sections[0].text
    assert document.report.left_out == ("3 hidden words",)


def struck_pdf():
    from reportlab.platypus import Paragraph, Table

    def build(styles):
        style = styles["Normal"]
        cell = Paragraph("<strike>120</strike> 95", style)
        rows = [["Item", "Price"], ["Pump", cell], ["Hose", "35"]]
        said = "The beam costs <strike>90 EUR</strike> 75 EUR, <u>not more</u>."
        return [
            Paragraph(said, style),
            Table(rows, style=[("GRID", (0, 0), (-1, -1), 0.5, "black")]),
        ]

    return office_files.pdf_of_flowables(build)


def test_a_line_through_words_of_a_pdf_strikes_them_out_and_borders_no_cell():
    text = text_of("a.pdf", struck_pdf())

    assert "The beam costs ~~90 EUR~~ 75 EUR, not more." in text
    assert "| Pump | ~~120~~ 95 |\n| Hose | 35 |" in text


def test_words_that_a_reviewer_struck_out_of_a_pdf_are_marked():
    import pypdfium2
    from pypdfium2 import raw

    document = pypdfium2.PdfDocument(office_files.pdf([["The fee is 90 EUR each."]]))
    page = document[0]
    words = page.get_textpage()
    boxes = [words.get_charbox(at) for at in range(11, 17)]  # 90 EUR
    left, right = boxes[0][0], boxes[-1][2]
    low, high = boxes[0][1] - 2, boxes[0][3] + 2
    note = raw.FPDFPage_CreateAnnot(page, raw.FPDF_ANNOT_STRIKEOUT)
    corners = raw.FS_QUADPOINTSF(left, high, right, high, left, low, right, low)
    raw.FPDFAnnot_AppendAttachmentPoints(note, corners)
    raw.FPDFPage_CloseAnnot(note)
    file = office_files.saved(document)

    assert "The fee is ~~90 EUR~~ each." in text_of("a.pdf", file)


def marked_a_hundred_times(mark):
    """A PDF whose page names one mark a hundred times."""
    objects = (
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Annots[{'4 0 R ' * 100}]>>",
        f"<</Type/Annot{mark}/Rect[0 0 9 9]>>",
    )
    body = "".join(f"{number} 0 obj{part}endobj\n" for number, part in enumerate(objects, 1))
    return f"%PDF-1.7\n{body}trailer<</Root 1 0 R>>\n%%EOF".encode()


def test_notes_on_a_page_count_as_text_of_the_file(monkeypatch):
    monkeypatch.setattr(reader.pictures, "is_installed", lambda: False)
    file = marked_a_hundred_times(f"/Subtype/Text/Contents({'x' * 1000})")

    with pytest.raises(TooLarge, match="has more than 20,000 characters"):
        load("a.pdf", file, limits=LoadLimits(max_characters=20_000))


def test_a_long_note_is_read_whole(monkeypatch):
    monkeypatch.setattr(reader.pictures, "is_installed", lambda: False)
    document = office_files.pdf([["The fee is 90 EUR."]])
    note = f"<</Type/Annot/Subtype/Text/Contents({'word ' * 20_000})/Rect[0 0 9 9]>>".encode()
    file = document.replace(b"/Contents", b"/Annots [" + note + b"] /Contents", 1)

    assert len(text_of("a.pdf", file)) > 5 * 20_000


def test_of_a_mark_that_a_page_names_thousands_of_times_only_some_places_are_read(monkeypatch):
    quads, crossed = "0 9 9 9 0 0 9 0 " * 100, []
    file = marked_a_hundred_times(f"/Subtype/StrikeOut/Contents(Late)/QuadPoints[{quads}]")
    monkeypatch.setattr(reader.pictures, "is_installed", lambda: False)
    monkeypatch.setattr(reader, "page_lines", lambda _p, _s, rules: crossed.extend(rules) or [])

    with pytest.raises(Unreadable):  # it holds no text
        sections("a.pdf", file)

    assert len(crossed) == MOST_RULES


def test_words_in_drawn_cells_are_in_the_order_of_their_writing():
    def line(bottom, *words):
        cells = tuple(PdfCell(word, 10 + 30 * at, 35 + 30 * at) for at, word in enumerate(words))
        return PdfLine(" ".join(words), 10, is_bold=False, left=10, bottom=bottom, words=cells)

    flat = [Rule(y, 0, 200) for y in (0, 20, 40)]
    upright = [Rule(x, 0, 40) for x in (0, 100, 200)]
    lines = [line(25, "one", "two"), line(5, "תאריך", "קבלה")]

    rows = Lattice(flat, upright).rows(lines)

    assert rows == [["one two", ""], ["קבלה תאריך", ""]]

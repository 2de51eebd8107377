"""What is raised, struck, hidden or deleted: one place writes it, in every format."""

import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.documents.limits import LoadLimits
from rag.documents.load import load
from rag.documents.runs import Mark, Run, written
from rag.language.numerals import parse_figure

RAISED, LOWERED, STRUCK, HIDDEN, DELETED = (frozenset({mark}) for mark in Mark)


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        ([Run("10"), Run("6", RAISED), Run(" events")], "10^6 events"),
        ([Run("2.5·10"), Run("−9", RAISED), Run(" mbar")], "2.5·10^-9 mbar"),
        ([Run("450"), Run("1", RAISED)], "450 [note 1]"),
        ([Run("is vented"), Run("3", RAISED), Run(".")], "is vented [note 3]."),
        ([Run("30 m"), Run("2", RAISED)], "30 m²"),
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
    file = io.BytesIO()
    presentation.save(file)
    return file.getvalue()


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
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


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

"""Parts, tables and lists of files as people make them: nothing is dropped, doubled or moved."""

import io
import re
import zipfile

import pytest

from rag.documents.cleaning import clean, decode
from rag.documents.limits import LoadLimits
from rag.documents.readers.registry import load
from tests.documents import office_files
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
    file = office_files.saved(presentation)

    text = text_of("a.pptx", file)

    assert text.split("\n\n") == ["Basic", "9 EUR", "Premium", "29 EUR"]


@pytest.mark.parametrize(
    ("table", "encoding"),
    [
        ("Größe^Preis^Stück\nM6^0,12^40\nÖse^0,30^7\n", "cp850"),
        ("品名~単価~在庫\nポンプ~1200~5\nホース~350~12\n", "shift_jis"),
        ("型号~单价~库存\nA-1~120~5\nB-2~35~12\n", "gb18030"),
    ],
)
def test_short_tables_of_old_programs_keep_their_letters_and_columns(table, encoding):
    rows = ["| " + " | ".join(re.split(r"[\^~]", line)) + " |" for line in table.splitlines()]

    text = text_of("a.csv", table.encode(encoding))

    assert text.split("\n") == [rows[0], "| --- | --- | --- |", *rows[1:]]


def test_lists_of_word_that_begin_anew_are_counted_anew():
    names = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    level = (
        '<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/>'
        '<w:lvlText w:val="%1."/></w:lvl>'
    )
    again = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride>'
    lists = "".join(
        f'<w:num w:numId="{number}"><w:abstractNumId w:val="7"/>{more}</w:num>'
        for number, more in ((1, ""), (2, again))
    )
    numbering = (
        f'<w:numbering {names}><w:abstractNum w:abstractNumId="7">{level}</w:abstractNum>'
        f"{lists}</w:numbering>"
    )
    place = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="{}"/></w:numPr>'
    entries = ((1, "Stop"), (1, "Drain"), (2, "Seal"), (2, "Fill"))
    body = "".join(paragraph(text, place.format(number)) for number, text in entries)

    text = text_of("a.docx", docx(body, **{"word/numbering.xml": numbering}))

    assert text.split("\n") == ["- 1. Stop", "- 2. Drain", "- 1. Seal", "- 2. Fill"]


def test_rows_that_nobody_sees_are_not_read():
    rows = row("Item", "Price") + row("Pump", "120") + row("Secret", "77", properties="<w:hidden/>")
    word = read("a.docx", docx(f"<w:tbl>{rows}{row('Hose', '35')}</w:tbl>"))
    markup = "".join(
        f"<tr{more}><td>{name}<td>{price}"
        for name, price, more in (
            *(("Item", "Price", ""), ("Pump", 120, ""), ("Secret", 77, " style='display:none'")),
            *(("Secret", 78, " hidden"), ("Hose", 35, "")),
        )
    )
    page = read("a.html", f"<p>Prices</p><table>{markup}</table>".encode())

    for document in (word, page):
        assert "| Pump | 120 |\n| Hose | 35 |" in document.sections[-1].text
        assert "Secret" not in document.tables[0].rows
    assert word.report.left_out == ("2 hidden words",)


class TestExcel:
    def test_hidden_rows_are_told_and_not_searchable(self):
        from openpyxl import Workbook

        book = Workbook()
        for row_of_sheet in (["Site", "Beds"], ["Nord", 41], ["Secret", 99], ["Sued", 12]):
            book.active.append(row_of_sheet)
        book.active.row_dimensions[3].hidden = True
        file = office_files.saved(book)

        parsed = read("a.xlsx", file)

        assert "Secret" not in parsed.sections[-1].text + parsed.tables[0].rows
        assert parsed.report.left_out == ("sheet Sheet: 1 hidden row",)

    def test_digits_codes_notes_and_formulas_are_kept(self):
        from openpyxl import Workbook
        from openpyxl.comments import Comment

        book = Workbook()
        book.active.append(["Site", "Zip", "Amount", "EAN", "Gross"])
        book.active.append(["Nord", 501, 123456789.55, 4006381333931, "=C2*1.19"])
        book.active["B2"].number_format = "00000"
        book.active["A2"].comment = Comment("Roof leaks", "K")
        file = office_files.saved(book)

        parsed = read("a.xlsx", file)
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
    facts = "| Zone | Rate |\n| --- | --- |\n| B | 6.20 |"

    assert text_of("a.html", page) == f"{facts}\n\nCall us."


def mail(plain, markup=""):
    head = "From: a@example.com\nSubject: Prices\nMIME-Version: 1.0\n"
    if not markup:
        return f"{head}Content-Type: text/plain\n\n{plain}".encode()
    bodies = (
        f"--x\nContent-Type: text/plain\n\n{plain}\n--x\nContent-Type: text/html\n\n{markup}\n--x--"
    )
    return f"{head}Content-Type: multipart/alternative; boundary=x\n\n{bodies}\n".encode()


class TestMail:
    def test_its_html_is_read_where_its_plain_text_is_a_stub(self):
        markup = "<table><tr><th>Part<th>Price<tr><td>V9<td>18.90</table>"

        assert "| V9 | 18.90 |" in text_of("a.eml", mail("View this in a browser.", markup))

    @pytest.mark.parametrize(
        "older",
        [
            "<blockquote type=cite><p>It is 17.10.<blockquote>It was 9.</blockquote></blockquote>",
            "<div class=gmail_quote>Kim wrote:<blockquote>It is 17.10.</blockquote></div>",
            "<div id=appendonsend></div><hr><div id=divRplyFwdMsg>From: Kim</div><p>It is 17.10.",
            "<div><div style='border:none;border-top:solid #E1E1E1 1.0pt'>From: Kim</div></div>"
            "<p>It is 17.10.<blockquote>It was 9.</blockquote>",
        ],
    )
    def test_what_it_answers_to_stands_apart_whoever_wrote_the_html(self, older):
        data = mail(
            "Hi", f"<html><body><div><p>It is 18.90 from May.</p>{older}</div></body></html>"
        )
        own, quoted = read("a.eml", data).sections[-2:]

        assert "18.90" in own.text
        assert "17.10" not in own.text
        assert quoted.locator == "quoted"
        assert quoted.text.count("17.10") == 1
        assert quoted.text.count("It was 9") <= 1

    @pytest.mark.parametrize(
        "older",
        [
            "> It is 17.10.",
            "On Monday, Kim wrote:\n\n> It is 17.10.",
            "-----Original Message-----\nFrom: Kim\nSent: Monday\n\nIt is 17.10.",
            "________________________________\nVon: Kim\nGesendet: Montag\n\nIt is 17.10.",
        ],
    )
    def test_what_it_answers_to_stands_apart_in_plain_text_too(self, older):
        own, quoted = read("a.eml", mail(f"It is 18.90.\n\n{older}\n")).sections[-2:]

        assert (own.text.count("17.10"), quoted.text.count("17.10")) == (0, 1)
        assert "Kim" not in own.text
        assert quoted.locator == "quoted"

    @pytest.mark.parametrize(
        "data",
        [
            mail("Hi", "<blockquote><p>It is 17.10 from now on, says Kim of sales.</blockquote>"),
            mail("-----Forwarded-----\nFrom: Kim\nTo: Ada\n\nIt is 17.10."),
        ],
    )
    def test_one_that_only_hands_on_says_what_it_hands_on(self, data):
        (section,) = (each for each in read("a.eml", data).sections if "17.10" in each.text)

        assert section.locator != "quoted"


def package(mimetype, **parts):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("mimetype", mimetype)
        for name, text in parts.items():
            archive.writestr(name, text)
    return file.getvalue()


ODF_NAMES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{space}:1.0"'
    for name, space in (
        ("office", "office"), ("text", "text"), ("table", "table"), ("style", "style"),
        ("chart", "chart"), ("draw", "drawing"), ("presentation", "presentation"),
        ("svg", "svg-compatible"),
    )
)  # fmt: skip


class TestOpenDocument:
    def of(self, text="<text:p>Read.</text:p>", styles="", **parts):
        body = f"<office:text>{text}</office:text>"
        content = f"<office:d {ODF_NAMES}>{styles}<office:body>{body}</office:body></office:d>"
        parts = {"META-INF/manifest.xml": "<m/>", "content.xml": content, **parts}
        return read("a.odt", package("application/vnd.oasis.opendocument.text", **parts))

    def test_what_holds_text_and_is_not_read_is_told_by_name(self):
        macro = "<module>Sub Main\nEnd Sub</module>"
        document = self.of(**{"Basic/Standard/M.xml": macro, "settings.xml": "<s>not text</s>"})

        told = "Basic/Standard/M.xml: 4 words in a part that is not read"
        assert document.report.left_out == (told,)

    def test_running_lines_and_charts_are_read(self):
        footer = "<style:footer><text:p>Issue 7 of May</text:p></style:footer>"
        rows = "".join(
            "<table:table-row>"
            + "".join(
                f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in row
            )
            + "</table:table-row>"
            for row in (("", "Takings"), ("May", "41"))
        )
        table = f"<table:table>{rows}</table:table>"
        chart = f"<office:body><office:chart>{table}</office:chart></office:body>"
        document = self.of(
            **{
                "styles.xml": f"<office:s {ODF_NAMES}>{footer}</office:s>",
                "Object 1/content.xml": f"<office:d {ODF_NAMES}>{chart}</office:d>",
            }
        )
        text = "\n".join(section.text for section in document.sections)

        assert "| May | 41 |" in text
        assert text.endswith("Footer: Issue 7 of May")
        assert document.report.left_out == ()

    def test_a_table_in_a_cell_is_a_table_of_its_own(self):
        def line(*cells):
            filled = "".join(f"<table:table-cell>{each}</table:table-cell>" for each in cells)
            return f"<table:table-row>{filled}</table:table-row>"

        def words(text):
            return f"<text:p>{text}</text:p>"

        inner = line(words("Weight"), words("Rate")) + line(words("10 kg"), words("11.60"))
        inner = f"{words('By weight')}<table:table>{inner}</table:table>"
        rows = line(words("Region"), words("Rates")) + line(words("North"), inner)
        document = self.of(f"<table:table>{rows}</table:table>")

        text = "\n\n".join(section.text for section in document.sections)
        assert "| North | By weight |\n\nNorth:\n\n| Weight | Rate |\n| --- | --- |" in text

    def test_lists_are_counted_and_begin_anew(self):
        style = (
            '<text:list-style style:name="L"><text:list-level-style-number text:level="1" '
            'style:num-format="1" style:num-suffix="."/><text:list-level-style-number '
            'text:level="2" style:num-format="a" style:num-suffix=")"/></text:list-style>'
        )
        entry = "<text:list-item><text:p>{}</text:p>{}</text:list-item>"
        inner = f"<text:list>{entry.format('Left', '')}{entry.format('Right', '')}</text:list>"
        first = entry.format("Stop", "") + entry.format("Drain", inner)
        listed = '<text:list text:style-name="L"{}>{}</text:list>'
        goes_on = listed.format(' text:continue-numbering="true"', entry.format("Close", ""))
        anew = listed.format("", entry.format("Seal", ""))
        document = self.of(listed.format("", first) + goes_on + anew, style)

        text = "\n".join(section.text for section in document.sections)
        entries = [line.strip() for line in text.split("\n") if line.strip()]
        assert entries == [
            *("- 1. Stop", "- 2. Drain", "- a) Left", "- b) Right", "- 3. Close", "- 1. Seal"),
        ]

    def test_a_section_that_nobody_sees_is_counted_and_not_read(self):
        unseen = '<text:section text:display="none"><text:p>Internal rate</text:p></text:section>'
        document = self.of(f"<text:p>Seen</text:p>{unseen}")

        assert [section.text for section in document.sections] == ["Seen"]
        assert document.report.left_out == ("2 hidden words",)

    def test_columns_of_a_slide_are_read_one_after_the_other(self):
        def frame(text, x, y):
            place = f'svg:x="{x}cm" svg:y="{y}cm" svg:width="10cm" svg:height="2cm"'
            words = f"<draw:text-box><text:p>{text}</text:p></draw:text-box>"
            return f"<draw:frame {place}>{words}</draw:frame>"

        frames = frame("Basic", 2, 4) + frame("Premium", 14, 4) + frame("9 EUR", 2, 7)
        page = f"<draw:page>{frames}{frame('29 EUR', 14, 7)}</draw:page>"
        content = f"<office:body><office:presentation>{page}</office:presentation></office:body>"
        content = f"<office:d {ODF_NAMES}>{content}</office:d>"
        parts = {"META-INF/manifest.xml": "<m/>", "content.xml": content}

        text = text_of("a.odp", package("application/vnd.oasis.opendocument.presentation", **parts))
        assert text.split("\n\n") == ["Basic", "9 EUR", "Premium", "29 EUR"]


def test_notes_of_an_open_document_sheet_are_read_and_its_hidden_rows_are_not():
    def row(*texts, more="", note=""):
        cells = "".join(
            f'<table:table-cell office:value-type="string">{note * (not at)}'
            f"<text:p>{text}</text:p></table:table-cell>"
            for at, text in enumerate(texts)
        )
        return f"<table:table-row {more}>{cells}</table:table-row>"

    note = "<office:annotation><text:p>The roof leaks</text:p></office:annotation>"
    empty = '<table:table-row table:number-rows-repeated="2"><table:table-cell/></table:table-row>'
    rows = [
        row("Hall", "Beds"),
        empty,
        row("North", "41", note=note),
        row("Secret", "99", more='table:visibility="filter"'),
        row("South", "12"),
    ]
    sheet = f'<table:table table:name="Halls">{"".join(rows)}</table:table>'
    body = f"<office:body><office:spreadsheet>{sheet}</office:spreadsheet></office:body>"
    content = f"<office:document-content {ODF_NAMES}>{body}</office:document-content>"
    manifest = "<manifest:manifest xmlns:manifest='urn:m'/>"
    data = package(
        "application/vnd.oasis.opendocument.spreadsheet",
        **{"META-INF/manifest.xml": manifest, "content.xml": content},
    )
    document = read("a.ods", data)
    text = "\n".join(section.text for section in document.sections)

    assert "Note on A4 (North): The roof leaks" in text
    assert "Secret" not in text + document.tables[0].rows
    assert "| South | 12 |" in text
    assert document.report.left_out == ("sheet Halls: 1 hidden row",)


@pytest.mark.parametrize("name", ["a.html", "a.md", "a.docx", "a.pdf"])
def test_one_finder_of_headers_is_asked_in_every_format(name):
    units = [["Model", "Weight", "Length"], ["", "kg", "mm"], ["X1", "12", "300"], ["X2", "9", "8"]]
    bare = [["X1", "12", "300"], ["X2", "9", "250"], ["X3", "7", "200"]]

    def table(rows):
        if name == "a.pdf":
            return drawn_table(rows, 4)
        if name == "a.docx":
            return docx(f"<w:tbl>{''.join(row(*cells) for cells in rows)}</w:tbl>")
        if name == "a.md":
            lines = [f"| {' | '.join(cells)} |" for cells in rows]
            return "\n".join([lines[0], "|---" * 3 + "|", *lines[1:]]).encode()
        cells = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) for row in rows)
        return f"<p>Models</p><table>{cells}</table>".encode()

    assert "| Model | Weight (kg) | Length (mm) |\n" in text_of(name, table(units))
    assert "|  |  |  |\n| --- | --- | --- |\n| X1 | 12 | 300 |" in text_of(name, table(bare))


def test_pages_of_a_book_that_stand_in_no_chapter_are_told_by_name():
    def page(text):
        return f"<html><head><title>Not text</title></head><body><p>{text}</p></body></html>"

    items = "".join(
        f'<item id="{name}" href="{name}.xhtml" media-type="application/xhtml+xml"{more}/>'
        for name, more in (("one", ""), ("notes", ""), ("toc", ' properties="nav"'))
    )
    book = package(
        "application/epub+zip",
        **{
            "META-INF/container.xml": '<c xmlns="urn:c"><rootfile full-path="o/b.opf"/></c>',
            "o/b.opf": f'<p xmlns="urn:p">{items}<spine><itemref idref="one"/></spine></p>',
            "o/one.xhtml": page("The first chapter."),
            "o/notes.xhtml": page("Nobody reads these notes."),
            "o/toc.xhtml": page("The first chapter 1"),
        },
    )

    told = "o/notes.xhtml: 4 words in a part that is not read"
    assert read("a.epub", book).report.left_out == (told,)


def test_programs_keep_their_indentation():
    program = b"class Limiter:\n    def refill(self):\n        return 90\n"

    assert "\n    def refill(self):\n        return 90" in text_of("a.txt", program)

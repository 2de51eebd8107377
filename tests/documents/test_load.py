"""Files of every format to sections."""

import io
import time
import zipfile
from pathlib import Path

import pytest

from rag.documents.kinds import FileKind
from rag.documents.limits import LoadLimits
from rag.documents.readers.packages import check_package
from rag.documents.readers.registry import load
from rag.errors import TooLarge, Unreadable
from tests.documents import office_files

LIMITS = LoadLimits()


def read(name: str, content: bytes | str, limits: LoadLimits = LIMITS):
    data = content.encode() if isinstance(content, str) else content
    return load(name, data, limits=limits)


def texts(document) -> list[str]:
    return [section.text for section in document.sections]


class TestMarkdown:
    def test_has_a_section_for_each_heading(self):
        document = read(
            "a.md", "# Aero 5\n\nIntro.\n\n## Setup\n\n### Wi-Fi\n\nPress *the* `button`."
        )

        assert document.title == "Aero 5"
        assert [(each.heading_path, each.locator, each.text) for each in document.sections] == [
            ((), "§ Aero 5", "Intro."),
            (("Setup", "Wi-Fi"), "§ Setup › Wi-Fi", "Press the button."),
        ]

    def test_keeps_lists_and_tables_readable(self):
        document = read(
            "a.md",
            "1. one\n2. two\n   - inner\n\n|A|B|\n|-|-|\n|1 \\| 2|3|\n\n```\nx = 1\n  y\n```",
        )

        assert texts(document) == [
            "- 1. one\n- 2. two\n  - inner\n\n"
            "| A | B |\n| --- | --- |\n| 1 \\| 2 | 3 |\n\n    x = 1\n      y"
        ]

    def test_reads_html_inside(self):
        document = read(
            "a.md", "Text<br>more\n\n<table><tr><td>A<td>B</tr><tr><td>1<td>2</tr></table>\n"
        )

        assert texts(document) == ["Text\nmore\n\n| A | B |\n| --- | --- |\n| 1 | 2 |"]

    def test_drops_link_targets_and_tags_and_keeps_their_text(self):
        document = read("a.md", "See [the manual](http://x.test/a) <b>now</b> ![a lamp](l.png).\n")

        assert texts(document) == ["See the manual now a lamp."]

    def test_reads_the_front_matter(self):
        document = read(
            "a.md",
            "---\ntitle: 'Guide to it all'\nproducts:\n  - Aero 5\n  - sillbar\n---\nText.\n",
        )

        assert (document.title, document.names) == ("Guide to it all", ("Aero 5", "sillbar"))
        assert texts(document) == ["Text."]

    def test_of_front_matter_only_keeps_its_facts(self):
        document = read("a.md", "---\nmodel: ZB-1\ndate: 2020-01-01\nlink: http://x.test\n---\n")

        assert (texts(document), document.names) == (["- model: ZB-1"], ("ZB-1",))

    def test_of_a_title_only_is_no_failure(self):
        assert texts(read("a.md", "---\ntitle: Soon more\nslug: x\n---\n")) == ["Soon more"]
        assert texts(read("next_year.md", "---\nlayout: page\n---\n")) == ["next year"]

    def test_reads_front_matter_in_toml_and_values_of_several_lines(self):
        toml = read("a.md", '+++\ntitle = "A page"\ndraft = true\n+++\nText.\n')
        yaml = read("b.md", "---\ntitle: >\n  A long\n  title\nlayout: x\n---\nText.\n")

        assert (toml.title, texts(toml)) == ("A page", ["Text."])
        assert (yaml.title, texts(yaml)) == ("A long title", ["Text."])

    def test_reads_what_its_front_matter_says_in_groups_and_lists(self):
        document = read(
            "M206.md",
            "---\ntitle: Set offsets\nlayout: page\nmenu:\n  main:\n    weight: 3\n"
            "notes:\n- Kept with [`M500`](/m500.html).\n"
            "parameters:\n- tag: X\n  description: Offset along the axis\n"
            "  values:\n  - unit: mm\n---\nUse it to move home.\n",
        )

        assert document.title == "M206: Set offsets"
        assert [(section.heading_path, section.text) for section in document.sections] == [
            ((), "Use it to move home."),
            (("notes",), "- Kept with M500."),
            (
                ("parameters",),
                "- tag: X; description: Offset along the axis; values: (unit: mm)",
            ),
        ]

    @pytest.mark.parametrize(
        "front",
        [
            "a: &a [one two three, x]\nb: [*a, *a]",  # aliases
            "a:\n  - {{ site.words }} of a template\n - b",
            "a:\n" + "".join(f"{'  ' * depth}- \n" for depth in range(2000)),
        ],
    )
    def test_of_a_front_matter_that_no_parser_takes_keeps_the_text(self, front):
        document = read("a.md", f"---\ntitle: T\n{front}\n---\nText.\n")

        assert (document.title, texts(document)) == ("T", ["Text."])

    @pytest.mark.parametrize(
        ("name", "title"),
        [
            ("KH-2319-K.md", "KH-2319-K: Manual"),
            ("M9.md", "Manual"),
            ("chapter2.md", "Manual"),
            ("README.md", "Manual"),
        ],
    )
    def test_is_called_by_the_code_that_its_file_is_called_by(self, name, title):
        assert read(name, "# Manual\n\nText.\n").title == title

    def test_of_a_code_that_its_title_holds_says_it_once(self):
        assert read("KH-2319.md", "# Manual of KH 2319\n\nText.\n").title == "Manual of KH 2319"

    def test_that_begins_with_a_rule_has_no_front_matter(self):
        assert "Text" in texts(read("a.md", "---\n\nText\n\n---\n\nmore"))[0]

    def test_loses_no_heading_without_text(self):
        assert texts(read("a.md", "# Title\n\nText.\n\n## Call 555-1234\n")) == [
            "Text.",
            "Call 555-1234",
        ]

    def test_of_several_top_headings_is_titled_by_its_file(self):
        document = read("quick_start.md", "# One\n\nText.\n\n# Two\n\nText.\n")

        assert document.title == "quick start"
        assert [section.heading_path for section in document.sections] == [("One",), ("Two",)]


class TestHtml:
    def test_is_what_a_person_reads(self):
        document = read(
            "a.html",
            "<!doctype html><title>Site</title><style>p{}</style><body><nav>Menu</nav>"
            "<h1>Aero 5</h1><p>Plug <b>it</b><br>in.<script>steal()</script></p>"
            "<div hidden>secret</div><p>A&nbsp;lamp &amp; more</p></body>",
        )

        assert document.title == "Aero 5"
        assert texts(document) == ["Plug it\nin.\n\nA lamp & more"]

    def test_keeps_lists_tables_and_preformatted_text(self):
        document = read(
            "a.html",
            "<ul><li>one<ol><li>in</li></ol></li><li><p>two</p><p>more</p></li></ul>"
            "<table><tr><th>Model<th>Price</tr><tr><td>XR-5<td>3</tr></table><pre>a\n  b</pre>tail",
        )

        assert texts(document) == [
            "- one\n  - 1. in\n- two\n  more\n\n| Model | Price |\n| --- | --- |\n| XR-5 | 3 |\n\n"
            "    a\n      b\n\ntail"
        ]

    def test_says_in_each_row_what_reaches_over_rows_and_in_each_column_what_heads_several(self):
        document = read(
            "a.html",
            "<table><caption>Sales</caption><tr><th rowspan=2>Branch<th colspan=2>2025"
            "<tr><th>Net<th>Gross<tr><td rowspan=2>Oslo<td>1<td>2<tr><td>3<td>4"
            "<tr><td colspan=3>Abroad</table>",
        )

        assert texts(document) == [
            "Sales\n\n| Branch | 2025 Net | 2025 Gross |\n| --- | --- | --- |\n| Oslo | 1 | 2 |\n"
            "| Oslo | 3 | 4 |\n| Abroad |  |  |"
        ]

    def test_cells_that_reach_beyond_the_table_are_read(self):
        spans = f"rowspan=900 colspan={'9' * 5_000}"
        page = f"<table><tr><th {spans}>A<th rowspan=3>B<tr><td>1<td colspan=²>2</table>"

        assert "1" in texts(read("a.html", page))[0]

    def test_labels_in_head_cells_beside_rows_are_no_header(self):
        page = "<table><tr><th>Year<th>Sum<tr><th rowspan=2>2025<th>1<tr><td>2</table>"

        assert texts(read("a.html", page))[0].split("\n")[0] == "| Year | Sum |"

    def test_reads_tables_that_only_arrange_the_page(self):
        document = read("a.html", "<table><tr><td><h2>Setup</h2><p>Plug in.</p></td></tr></table>")

        assert document.sections[0].text == "Plug in."

    def test_reads_ordered_lists_with_tables_and_code_inside(self):
        document = read(
            "a.html",
            "<ol><li>one<table><tr><th>A<th>B</tr><tr><td>1<td>2</tr></table><pre>x</pre>"
            "<h4>two</h4></li><div>between</div></ol><img alt='a lamp'>",
        )

        assert texts(document) == [
            "- 1. one\n\n| A | B |\n| --- | --- |\n| 1 | 2 |\n\n    x\n\n  two\n\nbetween\n\na lamp"
        ]

    def test_keeps_a_term_with_its_definition(self):
        document = read(
            "a.html",
            "<p>See:</p><dl><dt>--dry-run</dt> <dd>Change nothing.</dd><dt>-q<dt>--quiet"
            "<dd><p>Say nothing.</p><p>But fail loudly.</p></dl><p>That is all.</p>",
        )

        assert texts(document) == [
            "See:\n\n--dry-run\nChange nothing.\n\n-q\n--quiet\nSay nothing.\n\nBut fail loudly."
            "\n\nThat is all."
        ]

    def test_obeys_the_encoding_it_declares(self):
        page = '<html><meta charset="windows-1251"><p>Привет, мир</p></html>'

        assert texts(read("a.html", page.encode("cp1251"))) == ["Привет, мир"]

    @pytest.mark.parametrize("tag", ["<div>", "<ul><li>", "<b><I>", "<x-y>"])
    def test_nested_a_hundred_thousand_times_is_refused_at_once(self, tag):
        begun = time.process_time()

        with pytest.raises(TooLarge, match=r"a\.html: its elements are nested 100,000 deep"):
            read("a.html", tag * (100_000 // max(1, tag.count("<") - tag.count("<li>"))) + "text")

        assert time.process_time() - begun < 3

    def test_with_paragraphs_and_cells_that_nothing_closes_is_read(self):
        document = read("a.html", "<p>said\n" * 5_000 + "<table>" + "<tr><td>cell" * 5_000)

        assert "said" in texts(document)[0]

    def test_nested_thousands_of_times_is_read(self):
        document = read("a.html", "<div>" * 3_000 + "deep text" + "</div>" * 3_000)

        assert "deep text" in texts(document)[0]


class TestText:
    def test_without_headings_is_found_by_its_lines(self):
        document = read("a.txt", "\n".join(f"Line {n}.\n" for n in range(1, 61)))

        assert [section.locator for section in document.sections] == ["lines 1–59", "lines 61–119"]
        assert document.sections[0].text.startswith("Line 1.\n\nLine 2.")

    def test_has_sections_for_underlined_headings(self):
        document = read("a.txt", "Guide\n=====\n\nIntro.\n\nSetup\n-----\nPlug in.\n")

        assert document.title == "Guide"
        assert [(each.heading_path, each.text) for each in document.sections] == [
            ((), "Intro."),
            (("Setup",), "Plug in."),
        ]

    def test_has_sections_for_few_words_above_clauses(self):
        rent = "Clause 2. Rent\n2.1 It is due monthly.\n2.2 It is paid in advance."
        use = "Clause 3. Use\n3.1 One cat is allowed."

        document = read("a.txt", f"Lease\n\n{rent}\n\n{use}\n")

        assert [each.heading_path for each in document.sections] == [
            ("Clause 2. Rent",),
            ("Clause 3. Use",),
        ]

    def test_has_sections_for_headings_in_capitals(self):
        document = read("a.txt", "AERO 4: END OF LIFE\nNotice.\n\n1. WHAT ENDS\n\nAll of it.\n")

        assert document.title == "AERO 4: END OF LIFE"
        assert [(each.locator, each.text) for each in document.sections] == [
            ("§ AERO 4: END OF LIFE", "Notice."),
            ("§ 1. WHAT ENDS", "All of it."),
        ]

    @pytest.mark.parametrize(
        "numbered", ["{}. {}", "§ {} {}", "Section {}: {}", "SECTION {}: {}", "{}) {}"]
    )
    def test_has_sections_for_short_lines_that_count(self, numbered):
        heads = [numbered.format(at, word) for at, word in enumerate(("Dose", "Risks", "Care"), 1)]
        blocks = [f"{head}\nOne at night.\nNever two." for head in heads[:2]]
        document = read("a.txt", "\n\n".join(["LEAFLET\nFor you.", *blocks, heads[2], "Keep dry."]))

        assert document.title == "LEAFLET"
        assert [each.heading_path for each in document.sections[1:]] == [(head,) for head in heads]

    @pytest.mark.parametrize(
        "steps",
        [
            "1. Open the lid\n\n2. Take out the bag\n\n3. Close the lid",
            "1. Open the lid.\n\n2. Wait.\n\n3. Close it.\n\nDone.",
            "1. Open the lid and then\nwait\n\n2. Take out\n  the bag\n\n3. Close\nit\n\nDone.",
            "1. Open it\n2. Wait\n3. Close it",
        ],
    )
    def test_takes_no_steps_for_headings(self, steps):
        document = read("a.txt", f"The bag\n\nSo it goes.\n\n{steps}")

        assert [each.heading_path for each in document.sections] == [()]

    def test_has_sections_for_words_above_their_paragraphs(self):
        long = "this sentence is much longer than any heading would ever be. " * 2
        document = read("a.txt", f"Card\n\nSetup\n{long}\n\nThe dot\n- white: good\n- red: bad\n")

        assert [each.heading_path for each in document.sections] == [("Setup",), ("The dot",)]

    @pytest.mark.parametrize("above", ["Run it::", "Run it:"])
    def test_has_code_where_it_is_set_in_below_words_that_introduce_it(self, above):
        document = read(
            "a.txt", f"{above}\n\n  ./serve \\\n    --port=80\n\n  ./stop\n\nThat is all."
        )

        (text,) = texts(document)
        assert text == ("Run it:\n\n    ./serve \\\n      --port=80\n\n    ./stop\n\nThat is all.")

    @pytest.mark.parametrize(
        "below", ["  - press it\n  - wait", "  Whoever presses it first,\n  waits longest."]
    )
    def test_has_no_code_in_lists_and_sentences_below_a_colon(self, below):
        (text,) = texts(read("a.txt", f"The rules are:\n\n{below}\n\nThat is all."))

        assert "    " not in text

    def test_in_asciidoc_has_sections(self):
        document = read("a.adoc", "= Guide\n\nIntro.\n\n== Setup\n\nPlug in.\n")

        assert (document.title, [each.locator for each in document.sections]) == (
            "Guide",
            ["§ Guide", "§ Setup"],
        )

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
    def test_is_read_in_many_encodings(self, encoding):
        text = (
            "Die Lautstärke läßt sich mit dem Drehknopf ändern. Größe: 5 cm. Café für müde Gäste."
        )

        assert texts(read("a.txt", text.encode(encoding))) == [text]

    def test_loses_nulls_and_control_characters(self):
        assert texts(read("a.txt", "a\x00b\x07c\r\nd")) == ["abc\nd"]


class TestCsv:
    def test_years_are_a_header_and_no_values(self):
        assert texts(read("a.csv", "Region,2022,2023\nNorth,5,6\n")) == [
            "| Region | 2022 | 2023 |\n| --- | --- | --- |\n| North | 5 | 6 |"
        ]

    def test_a_header_of_two_rows_is_one(self):
        data = "Sales,,,,\n,First half,,Second half,\nRegion,Net,Gross,Net,Gross\nNorth,1,2,3,4\n"
        assert texts(read("a.csv", data))[-1].split("\n")[0] == (
            "| Region | First half Net | First half Gross | Second half Net | Second half Gross |"
        )

    def test_a_header_that_goes_on_in_the_next_row_is_one(self):
        data = "Branch,2025,,2026,\n,Net,Gross,Net,Gross\nOslo,410,512,430,540\n"
        assert texts(read("a.csv", data))[-1].split("\n")[0] == (
            "| Branch | 2025 Net | 2025 Gross | 2026 Net | 2026 Gross |"
        )

    def test_repeats_the_header_in_each_small_table(self):
        rows = "\n".join(f"Aero {n},{n} W and some more words about it" for n in range(1, 31))
        document = read("prices.csv", f"product,power\n{rows}\n")

        parts = document.sections[0].text.split("\n\n")
        assert len(parts) > 1
        assert all(part.startswith("| product | power |\n| --- | --- |\n| Aero ") for part in parts)

    def test_has_a_section_for_every_forty_rows(self):
        document = read("p.csv", "product;price\n" + "\n".join(f"Aero {n};1" for n in range(100)))

        locators = [section.locator for section in document.sections]
        assert locators == ["rows 2–41", "rows 42–81", "rows 82–101"]

    def test_with_wide_rows_writes_records(self):
        cell = "quite a long description of what this thing is able to do for you at home"
        document = read("p.tsv", f"product\tnotes\nAero 5\t{cell}, {cell}, {cell}, {cell}\n")

        assert document.sections[0].text.startswith("- product: Aero 5; notes: quite a long")

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            pytest.param("a,b\n1,2\n3\n4,5,6\n", "| 4 | 5 | 6 |", id="rows of other lengths"),
            pytest.param('a,b\n"1,2\n3,4\n5,6\n', "| 3 | 4 |", id="a quote left open"),
            pytest.param("a;b\n1,5;2\n", "| 1,5 | 2 |", id="semicolons"),
            pytest.param('a,b\n"x\ny",2\n', "| x y | 2 |", id="a line break in a cell"),
            pytest.param("1,2\n3,4\n", "| Column 1 | Column 2 |", id="no header"),
            pytest.param("Price list\n\na,b,c\n1,2,3\n", "Price list", id="a title above"),
            pytest.param("A,\nAs of,1.2.2026\n\na,b,c\n1,2,3\n", "| a | b | c |", id="facts above"),
            pytest.param("sep=;\na;b\n1;2\n", "| a | b |", id="its separator said above"),
        ],
    )
    def test_survives(self, content, expected):
        assert expected in "\n".join(texts(read("a.csv", content)))

    def test_with_a_huge_field_keeps_it_whole(self):
        field = "word " * 60_000
        document = read("a.csv", f"name,text\nx,{field}\n")

        assert document.sections[0].text.count("word") == 60_000

    def test_in_an_unknown_encoding_is_read(self):
        data = "Produkt;Größe\nLautsprecher für Küche;groß\nVerstärker;hübsch\n".encode("cp1252")

        assert "Lautsprecher für Küche" in read("a.csv", data).sections[0].text

    def test_with_too_many_cells_says_the_limit(self):
        with pytest.raises(TooLarge, match="more than 10 cells"):
            read("a.csv", "a,b\n" * 20, LoadLimits(max_cells=10))


class TestPdf:
    def test_has_pages_and_headings(self):
        data = office_files.pdf(
            [
                [("Aero 5 guide", 22, True), "It is a router.", ("Setup", 16, True), "Plug it in."],
                [("Reset", 16, True), "Hold the button for ten", "seconds, then let go of it."],
            ]
        )

        document = read("a.pdf", data)

        assert document.title == "Aero 5 guide"
        assert [(each.page, each.locator, each.heading_path) for each in document.sections] == [
            (1, "page 1", ()),
            (1, "page 1", ("Setup",)),
            (2, "page 2", ("Reset",)),
        ]
        assert "Plug it in." in document.sections[1].text

    def test_takes_headings_from_its_bookmarks(self):
        data = office_files.pdf(
            [["Setup", "Plug it in."], ["Reset", "Hold it."]],
            bookmarks=[(0, 0, "Setup"), (1, 0, "Reset")],
        )

        paths = [section.heading_path for section in read("a.pdf", data).sections]
        assert paths == [("Setup",), ("Reset",)]

    def test_puts_words_together_that_a_line_end_cut(self):
        line = "This sentence is long enough to fill the line and ends in a hyphen-"
        data = office_files.pdf(
            [[line, "ated word, as manuals like to do in their narrow columns."]]
        )

        assert "a hyphenated word" in texts(read("a.pdf", data))[0]

    def test_measures_type_in_points_whatever_scales_it(self):
        def draw(canvas):
            canvas.setFont("Helvetica", 14)
            canvas.drawString(72, 700, "Conference funding")
            canvas.scale(0.5, 0.5)  # as printers of web pages do: 22 here are 11 points
            canvas.setFont("Helvetica", 22)
            for row in range(8):
                canvas.drawString(
                    144, 1340 - row * 28, f"Sentence {row} of the rules of that fund."
                )

        (section,) = read("a.pdf", office_files.pdf_of_drawing(draw)).sections

        assert (section.heading_path, section.text[:10]) == ((), "Sentence 0")

    def test_loses_a_page_number_behind_a_header_of_many_lines(self):
        header = ["Policy on finances", "Last revision: 28 March"]
        bodies = [[f"{word} is {part}." for part in "abcd"] for word in ("One", "Two", "Three")]
        pages = [[*header, str(n), *body] for n, body in enumerate(bodies, start=4)]

        read_pages = texts(read("a.pdf", office_files.pdf(pages)))

        assert [text.split("\n") for text in read_pages] == bodies

    def test_keeps_a_figure_behind_a_header_that_counts_no_pages(self):
        header = ["Price sheet", "Valid until May"]
        bodies = [
            [price, *(f"{word} is {part}." for part in "abcd")]
            for price, word in (("120", "One"), ("85", "Two"), ("340", "Three"))
        ]

        read_pages = texts(read("a.pdf", office_files.pdf([[*header, *body] for body in bodies])))

        assert [text.split("\n") for text in read_pages] == bodies

    def test_reads_clauses_behind_their_numbers_as_text(self):
        clauses = [
            ("4.1.", ["The fund pays at most 750 dollars for each person", "and each year."]),
            ("4.2.", ["A club that was accepted on trial gets 200 dollars", "in all."]),
            ("4.3.", ["Taxis are not paid."]),
        ]

        def draw(canvas):
            height = 700
            for number, lines in clauses:
                canvas.drawString(72, height, number)
                for line in lines:
                    canvas.drawString(130, height, line)
                    height -= 14

        document = read("a.pdf", office_files.pdf_of_drawing(draw))

        assert texts(document)[0].split("\n\n") == [
            " ".join([number, *lines]) for number, lines in clauses
        ]
        assert document.tables == ()

    def test_reads_dots_that_lead_to_a_page_as_no_cells(self):
        def draw(canvas):
            for row, title in enumerate(("Purpose", "Duty to pay", "End")):
                height = 700 - row * 14
                canvas.drawString(72, height, title)
                for place in range(int(canvas.stringWidth(title)) + 76, 285, 10):
                    canvas.drawString(place, height, ".")
                canvas.drawString(290, height, str(row + 2))

        document = read("a.pdf", office_files.pdf_of_drawing(draw))

        assert " ".join(texts(document)[0].split()) == "Purpose 2 Duty to pay 3 End 4"

    def test_loses_running_headers_and_page_numbers(self):
        pages = [["Aero manual", f"Text of page {n} here.", f"Page {n}"] for n in "abcdef"]
        for number, page in enumerate(pages, start=1):
            page[2] = f"- {number} -"

        found = texts(read("a.pdf", office_files.pdf(pages)))

        assert found[3] == "Text of page d here."

    def test_loses_what_ends_each_page_wherever_its_text_ends(self):
        pages = [[*["A line."] * n, f"Text {n}.", f"Acme | Report | {n}"] for n in range(1, 6)]

        found = texts(read("a.pdf", office_files.pdf(pages)))

        assert [text.split("\n")[-1][-7:] for text in found] == [f"Text {n}." for n in range(1, 6)]

    def test_keeps_tables_whose_cells_wrap(self):
        from reportlab.platypus import Paragraph, Table

        def build(styles):
            rows = [
                ["Product", "Notes", "Price"],
                ["Aero 5", Paragraph("Wi-Fi 6 for a whole flat of rooms " * 4), "$ 99"],
                ["Aero 5 Pro", "Wi-Fi 6E", "$ 149"],
            ]
            table = Table(rows, colWidths=[90, 220, 60])
            return [Paragraph("Prices in dollars.", styles["Normal"]), table]

        document = read("a.pdf", office_files.pdf_of_flowables(build))

        assert texts(document)[0].split("\n")[-4:] == [
            "| Product | Notes | Price |",
            "| --- | --- | --- |",
            "| Aero 5 | " + "Wi-Fi 6 for a whole flat of rooms " * 4 + "| $ 99 |",
            "| Aero 5 Pro | Wi-Fi 6E | $ 149 |",
        ]
        assert document.names == ("Aero 5", "Aero 5 Pro")

    @pytest.mark.parametrize("repeated", [0, 1])
    def test_keeps_every_row_of_a_table_over_several_pages_and_its_header(self, repeated):
        from reportlab.platypus import Table

        parts = [[f"P-{1000 + n}", f"B-{n}", f"{n} g"] for n in range(120)]
        data = office_files.pdf_of_flowables(
            lambda _styles: [Table([["Part", "Bin", "Weight"], *parts], repeatRows=repeated)]
        )

        tables = "\n\n".join(texts(read("a.pdf", data))).split("\n\n")

        lines = [line for table in tables for line in table.split("\n")[2:]]
        assert lines == [f"| {' | '.join(part)} |" for part in parts]
        assert {table.split("\n")[0] for table in tables} == {"| Part | Bin | Weight |"}

    def test_keeps_lists(self):
        from reportlab.platypus import ListFlowable, Paragraph

        def build(styles):
            entries = [
                Paragraph("Take the plug out of the wall and wait. " * 4, styles["Normal"]),
                Paragraph("Put it back.", styles["Normal"]),
            ]
            numbered = ListFlowable(entries, bulletType="1", bulletFormat="%s.")
            return [ListFlowable(entries, bulletType="bullet"), numbered]

        (text,) = texts(read("a.pdf", office_files.pdf_of_flowables(build)))

        lines = text.split("\n")
        assert [line[:12] for line in lines] == [
            "- Take the p",
            "- Put it bac",
            "- 1. Take th",
            "- 2. Put it ",
        ]

    def test_does_not_take_two_columns_of_prose_for_a_table(self):
        left = "This is a column of prose on the left side of it"
        right = "and this is the other column of prose on the right"
        data = office_files.pdf([[f"{left}                              {right}"] * 12])

        assert "|" not in texts(read("a.pdf", data))[0]

    def test_of_which_nothing_else_is_left_keeps_them(self):
        found = texts(read("a.pdf", office_files.pdf([[f"Page {n}"] for n in range(1, 7)])))

        assert found[0] == "Page 1"

    def test_of_500_pages_is_read_whole(self):
        pages = [[f"Text number {n} of this document."] * 3 for n in range(500)]

        document = read("a.pdf", office_files.pdf(pages))

        assert document.sections[-1].locator == "page 500"
        assert len({section.page for section in document.sections}) == 500

    def test_that_is_encrypted_needs_a_password(self):
        with pytest.raises(Unreadable, match="needs a password"):
            read("a.pdf", office_files.pdf([["secret"]], encrypt="open sesame"))

    def test_that_was_cut_off_is_named_with_the_reason(self):
        data = office_files.pdf([["Text."] * 40] * 30)

        for share in (0.1, 0.5, 0.9):
            with pytest.raises(Unreadable, match=r"^a\.pdf: the PDF was cut off"):
                read("a.pdf", data[: int(len(data) * share)])

    def test_whose_inside_is_broken_is_named_with_the_reason(self):
        with pytest.raises(Unreadable, match=r"^a\.pdf: the PDF is damaged"):
            read("a.pdf", b"%PDF-1.7\nnothing of use\n%%EOF")

    @pytest.mark.slow
    def test_without_a_text_layer_asks_for_recognition(self):
        with pytest.raises(Unreadable, match="no text layer on its 2 page"):
            read("a.pdf", office_files.pdf([[], []]))

    def test_with_a_wrong_name_is_read_all_the_same(self):
        data = office_files.pdf([["Text."]])

        assert read("a.docx", data).media_type == "application/pdf"

    def test_with_too_many_pages_says_both_numbers(self):
        with pytest.raises(TooLarge, match="3 pages, the limit is 2"):
            read("a.pdf", office_files.pdf([["a"]] * 3), LoadLimits(max_pages=2))


def write_manual(document):
    document.add_paragraph("Aero 5 manual", style="Title")
    document.add_paragraph("Intro.")
    document.add_heading("Setup", 1)
    document.add_paragraph("Plug in", style="List Bullet")
    document.add_paragraph("Wait", style="List Bullet")
    table = document.add_table(rows=2, cols=2)
    for at, text in enumerate(["Model", "Power", "Aero 5", "9 W"]):
        table.cell(at // 2, at % 2).text = text
    document.add_paragraph("After the table.")


class TestDocx:
    def test_keeps_headings_lists_and_tables_in_order(self):
        document = read("a.docx", office_files.docx(write_manual))

        assert (document.title, document.names) == ("Aero 5 manual", ("Aero 5",))
        assert [(each.heading_path, each.text) for each in document.sections] == [
            ((), "Intro."),
            (
                ("Setup",),
                "- Plug in\n- Wait\n\n| Model | Power |\n| --- | --- |\n| Aero 5 | 9 W |"
                "\n\nAfter the table.",
            ),
        ]

    def test_reads_merged_cells_frames_and_line_breaks(self):
        def write(document):
            document.add_paragraph("one\ntwo\tthree")
            table = document.add_table(rows=2, cols=3)
            table.cell(0, 0).merge(table.cell(0, 1)).text = "wide"
            for at, text in enumerate(["a", "b", "c"]):
                table.cell(1, at).text = text
            table.cell(0, 2).text = "last"
            frame = document.add_table(rows=1, cols=1)
            frame.cell(0, 0).text = "framed text"

        assert texts(read("a.docx", office_files.docx(write))) == [
            "one\ntwo three\n\n| wide | wide | last |\n| --- | --- | --- |\n| a | b | c |"
            "\n\nframed text"
        ]

    def test_leaves_out_deleted_text_and_takes_outline_levels_as_headings(self):
        part = (
            '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
            '<w:body><w:p><w:pPr><w:outlineLvl w:val="0"/></w:pPr><w:r><w:t>Head</w:t></w:r></w:p>'
            "<w:sdt><w:sdtContent><w:p><w:r><w:t>kept</w:t></w:r><w:del><w:r>"
            "<w:delText>x</w:delText><w:t>gone</w:t></w:r></w:del><w:r><w:noBreakHyphen/>"
            "<w:t>on</w:t></w:r></w:p></w:sdtContent></w:sdt></w:body></w:document>"
        )
        data = office_files.with_part(
            office_files.docx(write_manual), "word/document.xml", part.encode()
        )

        document = read("a.docx", data)

        assert (document.title, texts(document)) == ("Head", ["kept-on"])

    def test_says_in_each_row_what_reaches_over_rows(self):
        def write(document):
            table = document.add_table(rows=3, cols=2)
            for at, text in enumerate(["Region", "Goods", "North", "Bread", "", "Milk"]):
                table.cell(at // 2, at % 2).text = text
            table.cell(1, 0).merge(table.cell(2, 0))

        (text,) = texts(read("a.docx", office_files.docx(write)))
        assert text.endswith("| North | Bread |\n| North | Milk |")

    def test_counts_its_numbered_lists_and_headings_as_word_does(self):
        from docx.oxml import parse_xml
        from docx.oxml.ns import nsdecls

        def level(at, kind, text):
            shown = f'<w:numFmt w:val="{kind}"/><w:lvlText w:val="{text}"/>'
            return f'<w:lvl w:ilvl="{at}">{shown}</w:lvl>'

        def write(document):
            levels = level(0, "decimal", "%1.") + level(1, "lowerLetter", "%1.%2)")
            levels += level(2, "upperRoman", "(%3)") + level(3, "bullet", "•")
            lists = document.part.numbering_part.element
            lists.insert(
                0,
                parse_xml(
                    f'<w:abstractNum {nsdecls("w")} w:abstractNumId="77">{levels}</w:abstractNum>'
                ),
            )
            lists.append(
                parse_xml(
                    f'<w:num {nsdecls("w")} w:numId="78"><w:abstractNumId w:val="77"/></w:num>'
                )
            )
            for depth, text, style in (
                (0, "Terms", "Heading 1"),
                (1, "one", None),
                (1, "two", None),
                (2, "deep", None),
                (2, "deeper", None),
                (3, "dot", None),
                (0, "Costs", "Heading 1"),
                (1, "three", None),
            ):
                properties = (
                    document.add_paragraph(text, style)._p.get_or_add_pPr().get_or_add_numPr()
                )
                properties.get_or_add_numId().val = 78
                properties.get_or_add_ilvl().val = depth

        document = read("a.docx", office_files.docx(write))

        assert [(each.heading_path, each.text) for each in document.sections] == [
            (
                ("1. Terms",),
                "  - 1.a) one\n  - 1.b) two\n    - (I) deep\n    - (II) deeper\n      - dot",
            ),
            (("2. Costs",), "  - 2.a) three"),
        ]

    @pytest.mark.parametrize("start", ["x", "²", "9" * 5_000, "-1", ""])
    def test_whose_lists_count_from_nonsense_is_read(self, start):
        from docx.oxml.ns import qn

        def write(document):
            for level in document.part.numbering_part.element.iter(qn("w:start")):
                level.set(qn("w:val"), start)
            document.add_paragraph("an entry", style="List Number")

        assert "an entry" in texts(read("a.docx", office_files.docx(write)))[0]

    def test_named_as_a_pdf_is_read_all_the_same(self):
        assert read("a.pdf", office_files.docx(write_manual)).title == "Aero 5 manual"

    def test_with_an_external_entity_is_refused_unopened(self, tmp_path):
        (tmp_path / "secret.txt").write_text("the secret")
        part = (
            f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file://{tmp_path}/secret.txt">]>'
            '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
            "<w:body><w:p><w:r><w:t>&e;</w:t></w:r></w:p></w:body></w:document>"
        )
        data = office_files.with_part(
            office_files.docx(write_manual), "word/document.xml", part.encode()
        )

        with pytest.raises(Unreadable, match="declares a document type"):
            read("a.docx", data)

    def test_that_is_a_zip_bomb_is_refused_by_its_directory(self):
        data = office_files.with_part(
            office_files.docx(write_manual), "word/bomb.xml", b" " * 30_000_000
        )

        with pytest.raises(TooLarge, match="zip bomb"):
            read("a.docx", data)

    def test_that_has_too_many_parts_is_refused_though_all_are_empty(self, monkeypatch):
        monkeypatch.setattr("rag.documents.readers.packages.MAX_PARTS", 2)
        with zipfile.ZipFile(empty := io.BytesIO(), "w") as archive:
            for number in range(3):
                archive.writestr(f"word/{number}.xml", b"")

        with pytest.raises(TooLarge, match="has 3 parts, the limit is 2"):
            check_package("a.docx", empty.getvalue(), LoadLimits())

    def test_whose_directory_lies_about_sizes_is_refused_while_unpacking(self):
        data = bytearray(
            office_files.with_part(
                office_files.docx(write_manual), "word/bomb.xml", b" " * 30_000_000
            )
        )
        entry = data.index(b"PK\x01\x02", data.rindex(b"word/bomb.xml") - 60)
        data[entry + 24 : entry + 28] = (1000).to_bytes(4, "little")

        with pytest.raises((TooLarge, Unreadable), match=r"zip bomb|damaged"):
            read("a.docx", bytes(data))

    def test_that_was_cut_off_is_named_with_the_reason(self):
        with pytest.raises(Unreadable, match="cut off"):
            read("a.docx", office_files.docx(write_manual)[:5000])

    def test_whose_xml_is_broken_is_named_with_the_reason(self):
        data = office_files.with_part(
            office_files.docx(write_manual), "word/document.xml", b"<w:document><w:body>"
        )

        with pytest.raises(Unreadable, match="damaged"):
            read("a.docx", data)


class TestPptx:
    def test_has_a_section_for_each_slide_with_its_notes(self):
        def write(presentation):
            slide = presentation.slides.add_slide(presentation.slide_layouts[1])
            slide.shapes.title.text = "Aero family"
            slide.placeholders[1].text = "fast\nquiet"
            slide.notes_slide.notes_text_frame.text = "Mention the price."
            second = presentation.slides.add_slide(presentation.slide_layouts[5])
            second.shapes.title.text = "Prices"
            table = second.shapes.add_table(2, 2, 0, 0, 900, 900).table
            for at, text in enumerate(["Product", "Price", "Aero 5", "99"]):
                table.cell(at // 2, at % 2).text = text

        document = read("a.pptx", office_files.pptx(write))

        assert document.title == "Aero family"
        assert [(each.locator, each.page, each.text) for each in document.sections] == [
            ("slide 1", 1, "- fast\n- quiet\n\nNotes: Mention the price."),
            ("slide 2", 2, "| Product | Price |\n| --- | --- |\n| Aero 5 | 99 |"),
        ]
        assert document.names == ("Aero 5",)

    def test_leaves_out_hidden_slides_and_says_so(self):
        def write(presentation):
            for text in ("Agenda", "Secret"):
                slide = presentation.slides.add_slide(presentation.slide_layouts[5])
                slide.shapes.title.text = text
            slide.element.set("show", "0")

        document = read("a.pptx", office_files.pptx(write))

        assert (texts(document), document.report.left_out) == (["Agenda"], ("slide 2: hidden",))

    def test_reads_groups_charts_and_single_texts(self):
        from pptx.chart.data import CategoryChartData
        from pptx.enum.chart import XL_CHART_TYPE

        def write(presentation):
            slide = presentation.slides.add_slide(presentation.slide_layouts[6])
            box = slide.shapes.add_textbox(0, 0, 900, 900)
            box.text_frame.text = "Just a remark"
            group = slide.shapes.add_group_shape()
            group.shapes.add_textbox(0, 5000, 900, 900).text_frame.text = "Inside a group"
            chart = CategoryChartData()
            chart.categories = ["2025", "2026"]
            chart.add_series("Units", (10, None))
            slide.shapes.add_chart(XL_CHART_TYPE.PIE, 0, 9000, 900, 900, chart)

        (text,) = texts(read("a.pptx", office_files.pptx(write)))

        assert text.startswith("Just a remark\n\nInside a group\n\n")
        assert "Units" in text
        assert "2025" in text

    def test_with_too_many_slides_says_both_numbers(self):
        def write(presentation):
            for _number in range(3):
                presentation.slides.add_slide(presentation.slide_layouts[6])

        with pytest.raises(TooLarge, match="3 slides, the limit is 2"):
            read("a.pptx", office_files.pptx(write), LoadLimits(max_pages=2))

    def test_whose_slide_is_broken_is_named_with_the_reason(self):
        def write(presentation):
            presentation.slides.add_slide(presentation.slide_layouts[6])

        data = office_files.with_part(
            office_files.pptx(write), "ppt/slides/slide1.xml", b"<p:sld><oops>"
        )

        with pytest.raises(Unreadable, match="damaged"):
            read("a.pptx", data)


class TestXlsx:
    def test_has_sheets_and_row_numbers(self):
        rows = [["Product", "Price"], ["Aero 5", 99.5], ["Aero 5 Pro", None], [None, None]]
        data = office_files.xlsx({"Prices": rows, "Notes": [["Only a remark"]]})

        document = read("a.xlsx", data)

        assert [(each.locator, each.text) for each in document.sections] == [
            (
                "sheet Prices, rows 2–3",
                "| Product | Price |\n| --- | --- |\n| Aero 5 | 99.5 |\n| Aero 5 Pro |  |",
            ),
            ("sheet Notes, row 1", "Only a remark"),
        ]
        assert document.names == ("Aero 5", "Aero 5 Pro")

    def test_writes_values_as_people_read_them(self):
        from datetime import datetime

        rows = [
            ["a", "b", "c", "d"],
            [True, 0.1 + 0.2, datetime(2026, 1, 2), datetime(2026, 1, 2, 3, 4)],
        ]

        (text,) = texts(read("a.xlsx", office_files.xlsx({"S": rows})))

        assert text.endswith("| yes | 0.3 | 2026-01-02 | 2026-01-02 03:04 |")

    @pytest.mark.parametrize("state", ["hidden", "veryHidden"])
    def test_leaves_out_hidden_sheets(self, state):
        import openpyxl

        book = openpyxl.Workbook()
        book.active["A1"] = "seen"
        hidden = book.create_sheet("secret")
        hidden["A1"] = "hidden"
        hidden.sheet_state = state
        out = office_files.saved(book)

        assert "hidden" not in "".join(texts(read("a.xlsx", out)))

    def test_whose_parts_are_missing_is_named_with_the_reason(self):
        data = office_files.with_part(
            office_files.xlsx({"S": [["a"]]}), "xl/workbook.xml", b"<workbook>"
        )

        with pytest.raises(Unreadable, match="damaged"):
            read("a.xlsx", data)

    def test_writes_the_currency_unit_and_percent_sign_of_a_format(self):
        import xlsxwriter

        out = io.BytesIO()
        book = xlsxwriter.Workbook(out)
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["Rent", "Fee", "Share", "Weight", "Sold"])
        formats = ['#,##0.00 "€"', "$#,##0;[Red]-$#,##0", "0.0%", '0" kg"', '#,##0,"k"']
        for column, shown in enumerate(formats):
            value = 0.125 if "%" in shown else 1250
            sheet.write(1, column, value, book.add_format({"num_format": shown}))
        book.close()

        (text,) = texts(read("a.xlsx", out.getvalue()))
        assert text.endswith("| 1250 € | $1250 | 12.5% | 1250 kg | 1250 |")

    def test_says_in_each_row_what_reaches_over_rows(self):
        import openpyxl

        book = openpyxl.Workbook()
        for row in [["Region", "Goods"], ["North", "Bread"], [None, "Milk"], [None, "Tea"]]:
            book.active.append(row)
        book.active.merge_cells("A2:A3")
        out = office_files.saved(book)

        (text,) = texts(read("a.xlsx", out))
        assert text.endswith("| North | Bread |\n| North | Milk |\n|  | Tea |")

    def test_a_last_column_named_over_two_header_rows_keeps_its_name(self):
        import openpyxl

        book = openpyxl.Workbook()
        for row in [
            ["Pier", "Income", None, "Master"],
            [None, "Q1", "Q2"],
            ["North", 1, 2, "Lund"],
        ]:
            book.active.append(row)
        for merged in ("A1:A2", "B1:C1", "D1:D2"):
            book.active.merge_cells(merged)
        out = office_files.saved(book)

        (text,) = texts(read("a.xlsx", out))
        assert text.startswith("| Pier | Income Q1 | Income Q2 | Master |")

    def test_with_formulas_only_says_what_to_do(self):
        with pytest.raises(Unreadable, match="formulas without stored results"):
            read("a.xlsx", office_files.xlsx({"Sum": [["=1+1", "=A1*2"]]}))

    def test_with_too_many_cells_says_the_limit(self):
        with pytest.raises(TooLarge, match="more than 10 cells"):
            read("a.xlsx", office_files.xlsx({"a": [[1, 2, 3]] * 9}), LoadLimits(max_cells=10))

    def test_its_cells_are_counted_over_all_sheets(self):
        sheets = {name: [[1, 2, 3]] * 2 for name in "abc"}
        with pytest.raises(TooLarge, match="more than 10 cells"):
            read("a.xlsx", office_files.xlsx(sheets), LoadLimits(max_cells=10))


def test_the_page_of_documents_names_every_format_that_is_read():
    page = (Path(__file__).parents[2] / "templates" / "documents.html").read_text("utf-8").lower()

    assert [kind.word for kind in FileKind if kind.word.lower() not in page] == []


class TestRefusals:
    @pytest.mark.parametrize(
        ("name", "data", "reason"),
        [
            pytest.param("a.md", b"", r"empty \(0 bytes\)", id="zero bytes"),
            pytest.param("a.txt", b" \n\t\x00 ", "no text in it", id="only spaces"),
            pytest.param("a.pem", b"-----BEGIN KEY-----", "a key .* Supported", id="kind"),
            pytest.param(
                "a.txt", b"\x89PNG\r\n\x1a\n...", "the picture", id="a picture named text"
            ),
            pytest.param(
                "a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "before 2007", id="old"
            ),
            pytest.param("a.pdf", b"just some words", "not really a PDF", id="text named pdf"),
            pytest.param("a.bin", bytes(range(256)) * 40, "binary file", id="binary"),
            pytest.param(
                "a.docx", b"PK\x03\x04 nothing", "damaged or was cut off", id="half a zip"
            ),
        ],
    )
    def test_name_the_file_and_the_reason(self, name, data, reason):
        with pytest.raises(Unreadable, match=rf"^{name}: .*{reason}"):
            read(name, data)

    def test_of_an_encrypted_office_file_ask_for_the_password(self):
        data = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le")

        with pytest.raises(Unreadable, match="needs a password"):
            read("a.docx", data)

    def test_of_a_bomb_call_it_one(self):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a", bytes(5_000_000))

        for name in ("a.zip", "a.docx", "a.odt", "a"):
            with pytest.raises(TooLarge, match="as zip bombs do"):
                read(name, out.getvalue())

    def test_of_a_zip_that_is_no_document_name_it_an_archive(self):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("a.txt", "x")

        with pytest.raises(Unreadable, match="a zip archive within another"):
            read("a.zip", out.getvalue())

    def test_of_a_file_over_the_limit_say_both_sizes(self):
        with pytest.raises(TooLarge, match=r"2\.0 MiB, the limit is 1\.0 MiB"):
            read("a.txt", b"x" * 2**21, LoadLimits(max_bytes=2**20))

    def test_of_more_text_than_allowed_say_the_limit(self):
        with pytest.raises(TooLarge, match="more than 100 characters"):
            read("a.md", "word " * 50, LoadLimits(max_characters=100))

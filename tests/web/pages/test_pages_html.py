"""Answers and passages as HTML: nothing of a text becomes a tag, every marker becomes a link."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from rag.citations.markers import find_markers
from rag.language.sentences import Span
from rag.records import Citation, Unsourced, Verdict
from rag.render.answers import MAX_RENDERED_CHARS, Register, answer_html, plain_html
from rag.render.evidence import Marks, text_html
from rag.render.statements import StatementWarning
from tests.made import made_source

REGISTER = Register("/s", {n: made_source(n, locator="§ A") for n in range(1, 10)})


def tree(html):
    return LexborHTMLParser(f"<body>{html}</body>")


def shown(html):
    return tree(html).body.text()


def chips(html):
    return [link.text() for link in tree(html).css("a.cite")]


class TestMarkers:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            pytest.param("One [1].", ["[1]"], id="one"),
            pytest.param("Two [1, 2][3].", ["[1]", "[2]", "[3]"], id="several"),
            pytest.param("*It*[1] **is**[2]", ["[1]", "[2]"], id="beside emphasis"),
            pytest.param("| a | b |\n| --- | --- |\n| c [1] | d [2] |", ["[1]", "[2]"], id="table"),
            pytest.param("- one [1]\n- two [2]", ["[1]", "[2]"], id="list"),
            pytest.param("`a[1]` and my_rows[2] and [3](http://x)", [], id="code, index, link"),
            pytest.param("Not registered [77].", [], id="an unknown number"),
            pytest.param("Wide 【1】 ［2］", ["[1]", "[2]"], id="full width"),
        ],
    )
    def test_become_links(self, text, expected):
        assert chips(answer_html(text, REGISTER)) == expected

    def test_emphasis_beside_a_marker_stays_emphasis(self):
        html = answer_html("*It*[1] is **so**[2].", REGISTER)

        assert (tree(html).css_first("em").text(), tree(html).css_first("strong").text()) == (
            "It",
            "so",
        )

    def test_do_not_begin_a_line_of_their_own(self):
        assert shown(answer_html("It is so [1]. And [2]", REGISTER)).split(" ") == [
            "It", "is", "so\u00a0[1].", "And\u00a0[2]\n",
        ]  # fmt: skip

    def test_lead_to_the_evidence_and_say_what_it_is(self):
        link = tree(answer_html("One [1].", REGISTER)).css_first("a.cite").attributes

        assert link["href"] == "/s/sources/1#passage"
        assert link["aria-label"] == "Source 1: Manual, § A"

    def test_of_a_question_become_links_and_its_html_text(self):
        html = plain_html("<b>See [1]</b> and [77]", REGISTER)

        assert chips(html) == ["[1]"]
        assert shown(html) == "<b>See [1]</b> and [77]"

    def test_a_title_cannot_break_out_of_its_attribute(self):
        register = Register("/s", {1: made_source(1, document_title='"><script>x</script>')})

        html = answer_html("One [1].", register)

        assert not tree(html).css("script")
        assert len(chips(html)) == 1


class TestMarkdown:
    @pytest.mark.parametrize(
        "text",
        [
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "[a](javascript:alert(1))",
            "![a](http://elsewhere/x.png)",
            '<a href="x" onclick="y">z</a>',
            "```\n</code><script>x</script>\n```",
            '[a](http://x "><script>")',
        ],
    )
    def test_no_text_becomes_a_dangerous_tag(self, text):
        found = tree(answer_html(text, REGISTER))

        assert not found.css("script, img, iframe, style, [onclick], [onerror]")
        assert not [a for a in found.css("a") if "javascript" in (a.attributes.get("href") or "")]

    def test_headings_stay_below_those_of_the_page(self):
        assert tree(answer_html("# A\n\n### B", REGISTER)).css_first("h3, h4, h5").text() == "A"
        assert not tree(answer_html("# A", REGISTER)).css("h1, h2")

    @pytest.mark.parametrize("text", ["⸢0⸣ [1]", "⸢⸢1⸣⸣", "⸣⸢ [1]", "`⸢0⸣` [2]"])
    def test_what_looks_like_a_placeholder_stays_what_it_is(self, text):
        assert shown(answer_html(text, REGISTER)).split() == text.replace("`", "").split()

    def test_a_text_of_a_million_characters_is_cut(self):
        html = answer_html("<b>x</b> " * 120_000, REGISTER)

        assert len(shown(html)) == MAX_RENDERED_CHARS + 2

    @pytest.mark.parametrize(
        ("text", "tags"),
        [
            ("$E=mc^2$ [1]", ["msup"]),
            (r"\(\frac{a}{b}\)", ["mfrac"]),
            ("\\[\na\n- b \\le c\n\\]", ["math[display=block] mo"]),
            ("$$\n\\sqrt{x}\n$$", ["math[display=block] msqrt"]),
            (r"$\text{<script>x</script>}$", ["mtext"]),
        ],
    )
    def test_mathematics_is_shown_as_such(self, text, tags):
        found = tree(answer_html(text, REGISTER))

        assert all(found.css(tag) for tag in tags)
        assert not found.css("script, ul")
        assert "\\" not in found.body.text()

    @pytest.mark.parametrize(
        ("said", "shown_as"),
        [
            (r"if a<b then", "if a<b then"),
            (r"R\&D < 5 \% & up", "R&D < 5 % & up"),
            ("<script>x</script>", "<script>x</script>"),
            ("&lt;b", "<b"),
        ],
    )
    def test_words_in_a_formula_are_all_there(self, said, shown_as):
        html = answer_html(rf"So $x = \text{{{said}}}$ [1].", REGISTER)

        assert tree(html).css_first("mtext").text().replace("\xa0", " ") == shown_as
        assert not tree(html).css("script")

    @pytest.mark.parametrize("text", ["`$x^2$`", "$5 and $10", r"\(\frac{\)", "```\n$x^2$\n```"])
    def test_what_is_no_formula_or_cannot_be_read_stays_as_it_is(self, text):
        html = answer_html(text, REGISTER)

        assert not tree(html).css("math")
        assert text.strip("`\n") in shown(html)

    def test_boxes_of_tasks_and_columns_are_as_they_were_meant(self):
        html = answer_html("- [ ] open\n- [x] done\n\n|a|b|\n|:-:|--:|\n|1|2|", REGISTER)

        assert [li.text() for li in tree(html).css("li")] == ["☐ open", "☑ done"]
        assert [td.attributes["align"] for td in tree(html).css("td")] == ["center", "right"]

    def test_a_picture_is_a_link_that_nobody_follows_unasked(self):
        found = tree(answer_html("![A cat](http://elsewhere/x.png)", REGISTER))

        assert not found.css("img")
        link = found.css_first("a")
        assert (link.text(), link.attributes["href"]) == ("A cat", "http://elsewhere/x.png")

    def test_each_block_has_a_direction_of_its_own(self):
        found = tree(answer_html("- مرحبا\n\n你好\n\n> a", REGISTER))

        assert found.css("li[dir=auto]")
        assert found.css("blockquote[dir=auto] > p:not([dir])")
        assert len(found.css("p[dir=auto]")) == 1


class TestStatements:
    @pytest.mark.parametrize(
        ("text", "stated"),
        [
            pytest.param("It is so [1]. It can fly.", "It can fly.", id="a sentence"),
            pytest.param("- It can fly.\n- It is so [1].", "- It can fly.", id="an entry"),
            pytest.param("It **can fly** high.", "It **can fly** high.", id="with emphasis"),
            pytest.param("_It can fly._ So.", "_It can fly._", id="all emphasis"),
            pytest.param("1. It can fly.", "1. It can fly.", id="a number"),
            pytest.param("> It can fly.", "> It can fly.", id="a quotation"),
        ],
    )
    def test_are_underlined_whatever_they_stand_in(self, text, stated):
        start = text.index(stated)
        statement = Unsourced(start, start + len(stated))

        found = tree(answer_html(text, REGISTER, unsourced=[statement]))

        assert ">" not in found.body.text()
        underlined = "".join(each.text() for each in found.css(".unsourced"))
        assert underlined == stated.lstrip("->1. ").replace("*", "").replace("_", "")

    def test_a_row_of_a_table_stays_a_row(self):
        text = "| a | b |\n| --- | --- |\n| it | flies |"
        start = text.index("| it")

        found = tree(answer_html(text, REGISTER, unsourced=[Unsourced(start, len(text))]))

        assert [cell.text() for cell in found.css("td")] == ["it", "flies no source"]
        assert [each.text() for each in found.css(".unsourced")] == ["it", "flies"]

    def test_in_a_fence_are_left_alone(self):
        text = "```\nit flies\n```"

        html = answer_html(text, REGISTER, unsourced=[Unsourced(0, len(text))])

        assert tree(html).css_first("pre").text().strip() == "it flies"

    def test_of_which_the_end_is_lost_underline_nothing_else(self):
        text = "[It](http://x/flies) away. More."
        statement = Unsourced(0, text.index("/flies") + 3)

        assert not tree(answer_html(text, REGISTER, unsourced=[statement])).css(".unsourced")


def wrong(text, *markers):
    """Citations that say something else than their sources."""
    starts = [(text.index(marker), marker) for marker in markers]
    return [
        Citation(
            int(marker.strip("[]")), at, at + len(marker), Verdict.CONTRADICTED, f"No {marker}"
        )
        for at, marker in starts
    ]


class TestWarnings:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            pytest.param("It is so [1]. Yes.", "It is so [1]. Warning: No [1] Yes.", id="sentence"),
            pytest.param("- It is so [1]\n- Yes.", "It is so [1] Warning: No [1] Yes.", id="entry"),
            pytest.param("**It is so [1].**", "It is so [1]. Warning: No [1]", id="in bold"),
            pytest.param(
                "| a | b |\n|---|---|\n| it | so [1] |",
                "a b it so [1] Warning: No [1]",
                id="row",
            ),
        ],
    )
    def test_stand_behind_their_statement(self, text, expected):
        html = answer_html(text, REGISTER, citations=wrong(text, "[1]"))

        assert " ".join(shown(html).split()).replace("\xa0", " ") == expected

    def test_of_several_numbers_say_which_one_is_meant(self):
        text = "It is so [1][2]."

        html = answer_html(text, REGISTER, citations=wrong(text, "[1]", "[2]"))

        assert tree(html).css_first(".warning").text() == "Warning: [1] No [1] [2] No [2]"
        assert (
            str(StatementWarning(9, ((1, "No."), (2, "Yes."), (3, "No.")))) == "[1][3] No. [2] Yes."
        )

    @pytest.mark.parametrize(
        "text",
        [
            pytest.param("| a |\n|---|\n| it | is so [1] |", id="in a cell beyond its table"),
            pytest.param("It is so [1]. " + "x " * MAX_RENDERED_CHARS, id="in a very long text"),
        ],
    )
    def test_are_never_lost(self, text):
        at = text.rindex("[1]")
        citation = Citation(1, at, at + 3, Verdict.OFF_SUBJECT)

        html = answer_html(text, REGISTER, citations=[citation])

        assert "does not speak" in tree(html).css_first(".warning").text()


WORDS = st.sampled_from(
    ["It weighs", " 120 g", "[1]", " [2, 3]", "[99]", ".", "\n\n", "- ", "**", "_", "`", "| ",
     "<b>", "# ", "⸢", "0", "⸣", "&amp;", "```\n", "(x)", "\n", "【4】", "arr[1]"]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    words=st.lists(WORDS, max_size=25), cuts=st.lists(st.integers(0, 120), min_size=2, max_size=4)
)
def test_every_marker_of_a_registered_number_is_a_link_and_nothing_is_left_behind(words, cuts):
    text = "".join(words)
    cuts = sorted(min(cut, len(text)) for cut in cuts)
    statements = [Unsourced(a, b) for a, b in pairwise(cuts) if a < b]
    markers = [
        Citation(number, marker.start, marker.end, Verdict.OFF_SUBJECT)
        for marker in find_markers(text)
        for number in marker.numbers
    ]

    html = answer_html(text, REGISTER, citations=markers, unsourced=statements)

    expected = [f"[{each.number}]" for each in markers if each.number in REGISTER.sources]
    assert chips(html) == expected
    assert bool(tree(html).css(".warning")) == bool(markers)
    assert not tree(html).css("script, b")
    assert shown(html).count("⸢") <= text.count("⸢")


class TestPassages:
    def test_are_marked_across_lines(self):
        text = "One two.\nThree four.\n\nFive."

        html = text_html(text, Marks(Span(4, 14)))

        assert tree(html).css_first("mark").text() == "two.\nThree"
        assert [p.text() for p in tree(html).css("p")] == ["One two.\nThree four.", "Five."]

    def test_show_lists_and_tables_as_such(self):
        text = "- one\n- two\n| a | b |\n| --- | --- |\n| c\\|d | <e> |"

        found = tree(text_html(text, Marks(Span(2, 5))))

        assert [li.text() for li in found.css("li")] == ["one", "two"]
        assert found.css_first("li mark").text() == "one"
        assert [cell.text() for cell in found.css("th, td")] == ["a", "b", "c|d", "<e>"]

    def test_show_the_head_of_a_table_once_where_its_pieces_repeat_it(self):
        text = "| a | b |\n| --- | --- |\n| c | d |\n| a | b |\n| --- | --- |\n| e | f |"

        found = tree(text_html(text))

        assert [cell.text() for cell in found.css("th")] == ["a", "b"]
        assert [cell.text() for cell in found.css("td")] == ["c", "d", "e", "f"]

    def test_show_no_bullet_beside_the_number_of_an_entry(self):
        found = tree(text_html("- 1. Open it.\n- (b) Close it.\n- 3 screws"))

        numbered = [entry.text() for entry in found.css("li.is-numbered")]
        assert numbered == ["1. Open it.", "(b) Close it."]

    def test_show_two_tables_in_a_row_as_two(self):
        text = "| a |\n| --- |\n| c |\n\n| b |\n| --- |\n| d |\n\n| b |\n| --- |\n| e |"

        found = tree(text_html(text))

        assert [table.text(separator=" ") for table in found.css("table")] == ["a c", "b d e"]

    def test_show_code_line_by_line(self):
        text = "Set it:\n\n    jobs:\n      - name: <x>\n\n    # end\n\nThen restart."

        found = tree(text_html(text, Marks(Span(13, 18))))

        assert found.css_first("pre code").text() == "jobs:\n  - name: <x>\n\n# end"
        assert found.css_first("pre mark").text() == "jobs:"
        assert [p.text() for p in found.css("p")] == ["Set it:", "Then restart."]

    def test_take_what_is_set_in_below_an_entry_or_a_line_for_no_code(self):
        text = "- one\n  - in\n    - deep\n    goes on\n\nA line\n    that is broken"

        found = tree(text_html(text))

        assert not found.css("pre")
        assert [li.text() for li in found.css("li")] == ["one", "in", "deep"]

    def test_mark_what_was_said_more_than_what_is_around_it(self):
        text = "One. Two. Three. Four."

        found = tree(text_html(text, Marks(Span(5, 16), (Span(10, 16),))))

        assert [each.text() for each in found.css("mark")] == ["Three."]
        assert [each.text() for each in found.css(".is-around")] == ["Two. "]

    def test_mark_the_row_that_was_said_and_have_one_place_to_go_to(self):
        text = "| a | b |\n| --- | --- |\n| c | 1 |\n| d | 2 |\n\nAnd so on."
        rows, row, end = Span(24, 43), Span(34, 43), Span(45, 55)

        found = tree(text_html(text, Marks(rows, (row, end))))

        assert [each.text() for each in found.css("tr.is-marked")] == ["d2"]
        assert [each.text() for each in found.css("tr.is-around")] == ["c1"]
        assert [each.text() for each in found.css("#passage")] == ["d2"]

    @given(
        text=st.text(alphabet="ab |-\n<&", max_size=80),
        start=st.integers(0, 80),
        length=st.integers(0, 40),
    )
    @settings(max_examples=100, deadline=None)
    def test_lose_no_word(self, text, start, length):
        half = start + length // 2
        said = (Span(half, start + length),) if length % 2 else ()

        html = text_html(text, Marks(Span(start, start + length), said))

        letters = [char for char in shown(html) if char in "ab<&"]
        assert letters == [char for char in text if char in "ab<&"]

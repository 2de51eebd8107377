"""Statements beside the sentences of their sources, and the words that decide."""

from datetime import UTC, datetime

import pytest

from rag.records import (
    Answer,
    CheckedFigure,
    Citation,
    FigureStatus,
    Message,
    MessageStatus,
    Role,
    Section,
    Verdict,
)
from rag.render.answers import Register, answer_html
from rag.render.evidence import numbers_of_rows
from rag.render.statements import (
    CitedStatement,
    compare_statement,
    deciding,
    places_of,
    statements_in,
    strong,
)

C, S, O = Verdict.CONTRADICTED, Verdict.SUPPORTED, Verdict.OPEN  # noqa: E741


def stated(said, verdict, **more):
    return CitedStatement(said, Citation(1, 0, 3, verdict, **more))


def words(text, spans):
    return [text[span.start : span.end] for span in spans]


class TestWhatDecides:
    @pytest.mark.parametrize(
        ("said", "verdict", "quote", "ours", "theirs"),
        [
            pytest.param("It has 4 g.", C, "It has 1 g.", ["4 g"], ["1 g"], id="with units"),
            pytest.param(
                "The Aero 5 covers 410 m².", C, "It covers 120 m² and serves 64 devices.",
                ["410 m²"], ["120 m²"], id="of several figures those of one kind",
            ),
            pytest.param("It has 6 ports.", C, "It has 4 ports.", ["6"], ["4"], id="bare numbers"),
            pytest.param("It is grey.", C, "It is black.", ["grey"], ["black"], id="one word"),
            pytest.param(
                "It can be washed by anybody.", C, "No one may ever put this into water or soap.",
                [], [], id="nothing where all differs",
            ),
            pytest.param("It has 4 g.", S, "At 4 g it is light.", ["4 g"], ["4 g"], id="shared"),
            pytest.param("It weighs 410 g.", O, "It weighs 112 g.", [], [], id="not checked"),
            pytest.param("It is red.", Verdict.OFF_SUBJECT, "It is old.", [], [], id="silent"),
        ],
    )  # fmt: skip
    def test_is_what_differs_or_what_both_have(self, said, verdict, quote, ours, theirs):
        found = deciding(stated(said, verdict), quote)

        assert (words(said, found[0]), words(quote, found[1])) == (ours, theirs)

    def test_is_what_the_comparison_found_where_it_says_so(self):
        said, quote = "It weighs 410 g and has 6 ports.", "It weighs 112 g and has 4 ports."

        found = deciding(stated(said, C, stated="6 ports", given="4 ports"), quote)

        assert (words(said, found[0]), words(quote, found[1])) == (["6 ports"], ["4 ports"])

    def test_is_looked_for_where_the_source_says_it_otherwise(self):
        rows = "| Reed | Wi-Fi 5 | black |\n| Reed s | Wi-Fi 6 | black |"
        wrong = stated("Reed · Wi-Fi 6 · black", C, stated="Wi-Fi 6", given="Wi-Fi 5")

        assert [rows[span.start : span.end] for span in places_of(rows, [wrong.sought])] == [
            "| Reed | Wi-Fi 5 | black |"
        ]

    def test_is_strong_in_the_statement_and_nothing_becomes_a_tag(self):
        shown = compare_statement(stated("<b> weighs 410 g", S), ["It weighs 410 g"])

        assert shown.words == "&lt;b&gt; weighs <strong>410 g</strong>"
        assert strong("a<b", []) == "a&lt;b"

    def test_says_both_figures_where_one_stands_against_one(self):
        one = compare_statement(stated("It weighs 410 g.", C), ["It is grey.", "It weighs 112 g."])
        two = compare_statement(stated("It weighs 410 g.", C), ["Its parts weigh 112 g and 5 g."])

        assert (one.differs, two.differs) == (("410 g", "112 g"), ("", ""))


class TestStatements:
    TEXT = "It weighs **410 g** [1]. It is grey [1][2].\n\n| a | b |\n|---|---|\n| Aero | 5 [2] |"

    def message(self):
        starts = [at for at in range(len(self.TEXT)) if self.TEXT.startswith("[1]", at)]
        citations = tuple(
            Citation(1, at, at + 3, verdict) for at, verdict in zip(starts, (C, S), strict=True)
        )
        answer = Answer(self.TEXT, citations)
        now = datetime.now(UTC)
        return Message(1, 0, Role.ASSISTANT, self.TEXT, MessageStatus.COMPLETE, now, answer=answer)

    def test_at_a_marker_are_those_that_it_stands_for(self):
        (found,) = statements_in(self.message(), 1, self.TEXT.rindex("[1]"))

        assert (found.text, found.verdict, found.name) == ("It is grey", S, "Supported")

    def test_of_a_source_are_all_that_cite_it_each_with_its_verdict(self):
        assert [(each.text, each.verdict) for each in statements_in(self.message(), 1)] == [
            ("It weighs 410 g", C),
            ("It is grey", S),
        ]

    def test_in_a_row_bring_its_label_and_the_head_of_their_column(self):
        assert [each.text for each in statements_in(self.message(), 2)][-1] == "Aero · b · 5"


class TestRows:
    def section(self, locator, *rows, more=""):
        text = "\n".join(["| Thing | Price |", "| --- | --- |", *rows]) + more
        return Section(0, (), locator, text)

    def test_of_a_section_have_the_numbers_that_its_locator_tells(self):
        section = self.section("sheet Prices, rows 42–43", "| Lamp | 9 |", "| Bulb | 3 |")

        numbers = numbers_of_rows(section)

        assert {section.text[a:b]: n for (a, b), n in numbers.items()} == {
            "| Lamp | 9 |": 42,
            "| Bulb | 3 |": 43,
        }

    @pytest.mark.parametrize(
        ("locator", "more"),
        [("rows 42–44", ""), ("page 3", ""), ("rows 42–43", "\n\nA remark."), ("rows", "")],
    )
    def test_have_none_where_it_does_not_tell_of_each(self, locator, more):
        section = self.section(locator, "| Lamp | 9 |", "| Bulb | 3 |", more=more)

        assert numbers_of_rows(section) == {}


def test_a_figure_that_stands_nowhere_is_shown_at_the_figure():
    text = "It takes **99 days** [1]."
    figure = CheckedFigure(11, 18, FigureStatus.UNFOUND, None, (1, 2))

    html = answer_html(text, Register("/sessions/s", {}), figures=(figure,))

    assert '99 days <span class="unfound">not in sources 1 and 2</span>' in html

"""Every number of an answer is tied to the statement it stands for."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.citations.claims import claims, needs_topic, statements, without_markers
from rag.citations.markers import cited_numbers


def tied(text):
    return [(claim.text, claim.numbers) for claim in claims(text)]


class TestClaims:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            pytest.param("It weighs 5 g [1].", [("It weighs 5 g", (1,))], id="before the stop"),
            pytest.param(
                "It weighs 5 g. [1] It costs 9 euros. [2]",
                [("It weighs 5 g", (1,)), ("It costs 9 euros", (2,))],
                id="after the stop",
            ),
            pytest.param(
                "It weighs 5 g [1], lasts 3 h [2] and costs $9 [3].",
                [("It weighs 5 g", (1,)), ("lasts 3 h", (2,)), ("and costs $9", (3,))],
                id="several in a sentence",
            ),
            pytest.param("It is red [1][2], [3].", [("It is red", (1, 2, 3))], id="a group"),
            pytest.param("It is red [1-3].", [("It is red", (1, 2, 3))], id="a range"),
            pytest.param("It is red【1】.", [("It is red", (1,))], id="full width"),
            pytest.param(
                "According to [4], it weighs 5 g.", [("it weighs 5 g", (4,))], id="in front"
            ),
            pytest.param(
                "Both [1] and [2] say it is red.", [("say it is red", (1, 2))], id="as the subject"
            ),
            pytest.param(
                "It is light. It lasts 3 h [2].", [("It lasts 3 h", (2,))], id="not the one before"
            ),
            pytest.param("It is red.\n\n[7]", [("It is red.", (7,))], id="on a line of its own"),
            pytest.param("[7]", [], id="nothing to stand for"),
            pytest.param("`x[1]` and arr[2]", [], id="no markers"),
            pytest.param("", [], id="nothing"),
        ],
    )
    def test_are_clauses_with_their_numbers(self, text, found):
        assert tied(text) == found

    def test_of_a_list_know_what_leads_it_in(self):
        found = claims("The Vega 5 offers:\n- 240 g of weight [1]\n- **30 h** of battery [2]\n")

        assert [claim.topic for claim in found] == ["The Vega 5 offers"] * 2
        assert [claim.text for claim in found] == ["240 g of weight", "30 h of battery"]

    def test_of_a_table_name_row_and_column(self):
        table = (
            "| Model | Weight | Battery | Source |\n|---|---|---|---|\n"
            "| Vega 5 | 240 g [3] | 30 h [4] | |\n| Nova 2 | 1 g | 2 h | [5] |\n"
        )

        assert tied(table) == [
            ("Vega 5 – Weight: 240 g", (3,)),
            ("Vega 5 – Battery: 30 h", (4,)),
            ("Nova 2 – Weight: 1 g; Battery: 2 h", (5,)),
        ]

    def test_of_a_table_without_a_header_name_the_row(self):
        assert tied("| Vega 5 | 240 g | [3] |") == [("Vega 5 – 240 g", (3,))]

    def test_of_a_sentence_without_end_stay_short(self):
        found = claims("word " * 50_000 + "and so it is [3]. Done.")

        assert found[0].text.endswith("and so it is")
        assert len(found[0].sentence) < 700


class TestStatements:
    def test_are_quoted_on_one_line_with_plain_markers(self):
        (statement,) = statements("> The **Vega 5**  weighs 240 g.【3】")

        assert statement.text == "The Vega 5 weighs 240 g [3]."
        assert statement.numbers == (3,)

    def test_leave_out_headings_and_keep_plain_sentences(self):
        found = statements("# Title\n\nIt is red. It is light [1].")

        assert [statement.text for statement in found] == ["It is red.", "It is light [1]."]

    @settings(max_examples=150, deadline=None)
    @given(st.text(st.sampled_from("ab 5.,[]【】()|-\n`#:*1234\ud800"), max_size=120))
    def test_cite_exactly_what_the_text_cites(self, text):
        quoted = [statement.text for statement in statements(text)]
        stated = {n for statement in statements(text) for n in statement.numbers}

        assert stated == set(cited_numbers(text))
        assert {n for each in quoted for n in cited_numbers(each)} <= stated

    def test_can_be_read_without_markers(self):
        assert without_markers("It is red [1][2], and light [3].") == "It is red, and light."


@pytest.mark.parametrize(
    ("text", "needed"),
    [("240 g", True), ("It has a very good battery", True), ("The Vega 5 weighs 240 g", False)],
)
def test_a_statement_that_names_nothing_needs_a_topic(text, needed):
    assert needs_topic(text) is needed

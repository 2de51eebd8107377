import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.answers.extractive import ExtractiveWriter
from rag.answers.prompts import DECLINE
from rag.citations.markers import cited_numbers, find_markers
from tests.answers.test_extractive import request, source
from tests.fakes import HashEmbedder

LEXICON = ("Brevo 1", "Brevo 1 Plus", "Brevo 2", "Molino")
PRICES = """\
| Article | Model | Price EUR | Weight kg | Tank |
| --- | --- | --- | --- | --- |
| 10-201 | Brevo 1 | 249 | 5.4 | steel |
| 10-202 | Brevo 1 Plus | 319 | 5.9 | steel |
| 10-305 | Brevo 2 | 489 | 9.8 | steel |
"""
PLANS = """\
| Feature | Starter | Team | Enterprise |
| --- | --- | --- | --- |
| Seats | 5 | 50 | unlimited |
| Language | English | English | English |
| Audit log | no | 30 days | 1 year |
"""
ONE = source(2, "The machine needs 90 seconds to heat up. It has no grinder.", title="Brevo 1")
TWO = source(
    3,
    "The machine needs 6 minutes to heat up. Unlike the Brevo 1 it can be joined to the mains.",
    title="Brevo 2",
)
LEAVE = """\
Maternity leave begins six weeks before the birth. \
Parental leave may last up to three years for each child."""


@pytest.fixture(params=["words", "words and vectors"])
def embedder(request):
    return HashEmbedder() if request.param == "words and vectors" else None


def write(question, *sources, embedder=None):
    writer = ExtractiveWriter(embedder, lexicon=lambda: LEXICON)
    return "".join(delta.text for delta in writer.write(request(question, *sources)))


def entries(text):
    return [line for line in text.splitlines() if line.startswith("- ")]


class TestAComparison:
    def test_sets_the_same_columns_of_one_table_side_by_side(self, embedder):
        text = write("Brevo 1 vs Brevo 2", source(1, PRICES), embedder=embedder)

        assert entries(text) == [
            "- Brevo 1 — Price EUR: 249; Weight kg: 5.4 [1].",
            "- Brevo 2 — Price EUR: 489; Weight kg: 9.8 [1].",
        ]

    def test_tells_only_the_column_that_is_asked_for(self, embedder):
        asked = "Which is heavier, the Brevo 1 or the Brevo 1 Plus?"

        text = write(asked, source(1, PRICES), embedder=embedder)

        assert text == "- Brevo 1 — Weight kg: 5.4 [1].\n- Brevo 1 Plus — Weight kg: 5.9 [1]."

    def test_knows_a_column_by_the_unit_in_its_header(self, embedder):
        table = PRICES.replace("Weight kg", "Gewicht kg")
        asked = "Brevo 1 oder Brevo 1 Plus: welcher ist leichter?"

        text = write(asked, source(1, table), embedder=embedder)

        assert text == "- Brevo 1 — Gewicht kg: 5.4 [1].\n- Brevo 1 Plus — Gewicht kg: 5.9 [1]."

    def test_of_three_things_tells_all_three(self, embedder):
        asked = "Which is cheapest, Brevo 1, Brevo 1 Plus or Brevo 2?"

        text = write(asked, source(1, PRICES), embedder=embedder)

        assert re.findall(r"Price EUR: (\d+) \[1\]", text) == ["249", "319", "489"]

    def test_leaves_out_the_columns_of_others_and_what_is_the_same(self, embedder):
        text = write("What is the difference between Starter and Team?", source(1, PLANS))

        assert text == (
            "- Seats — Starter: 5; Team: 50 [1].\n- Audit log — Starter: no; Team: 30 days [1]."
        )

    def test_joins_the_tables_of_two_manuals_by_what_they_call_alike(self, embedder):
        tables = [
            source(n, f"| Property | Value |\n| --- | --- |\n| Weight | {kg} kg |", title=title)
            for n, kg, title in ((1, 5, "Brevo 1"), (2, 9, "Brevo 2"))
        ]

        text = write("Compare the Brevo 1 with the Brevo 2", *tables, embedder=embedder)

        assert entries(text) == ["- Brevo 1 — Weight: 5 kg [1].", "- Brevo 2 — Weight: 9 kg [2]."]

    def test_begins_with_the_sentence_that_compares_both(self, embedder):
        text = write("How do the Brevo 1 and the Brevo 2 differ?", ONE, TWO, embedder=embedder)

        assert text.startswith("Unlike the Brevo 1 it can be joined to the mains [3].\n\n- ")

    def test_tells_of_each_what_its_own_manual_says_under_its_name(self, embedder):
        asked = "Which machine heats up faster, Brevo 1 or Brevo 2?"

        text = write(asked, ONE, TWO, embedder=embedder)

        assert entries(text) == [
            "- Brevo 1: The machine needs 90 seconds to heat up [2].",
            "- Brevo 2: The machine needs 6 minutes to heat up [3].",
        ]

    def test_needs_no_products(self, embedder):
        asked = "What is the difference between maternity leave and parental leave?"

        text = write(asked, source(1, LEAVE), embedder=embedder)

        assert entries(text) == [
            "- Maternity leave begins six weeks before the birth [1].",
            "- Parental leave may last up to three years for each child [1].",
        ]

    def test_says_of_which_side_the_documents_know_nothing(self, embedder):
        text = write("Brevo 2 vs Zeppelin 9", source(1, PRICES), TWO, embedder=embedder)

        assert "[1]" in text or "[3]" in text
        assert text.endswith("\n\nThe documents say nothing about Zeppelin 9.")
        assert not ExtractiveWriter(None).declined(text)

    def test_says_of_which_side_they_do_not_say_what_is_asked(self):
        other = source(3, "It is red.", title="Brevo 2")

        text = write("How do the Brevo 1 and the Brevo 2 differ in heating up?", ONE, other)

        assert text == (
            "- Brevo 1: The machine needs 90 seconds to heat up [2].\n\n"
            "The documents do not say this of Brevo 2."
        )

    def test_declines_where_nothing_is_known_of_any_side(self, embedder):
        text = write("Zeppelin 8 vs Zeppelin 9", source(1, PRICES), embedder=embedder)

        assert text.startswith(DECLINE)

    def test_declines_where_nothing_of_what_is_asked_is_known(self, embedder):
        text = write("Which is louder, the Brevo 1 or the Brevo 2?", source(1, PRICES), ONE, TWO)

        assert text.startswith(DECLINE)

    def test_does_not_say_that_nothing_is_known_of_what_may_have_another_name(self, embedder):
        asked = "What is the difference between leave for parents and parental leave?"

        text = write(asked, source(1, LEAVE), embedder=embedder)

        assert "say nothing" not in text

    def test_tells_the_steps_of_each_below_its_name(self, embedder):
        steps = "# Cleaning\n\n1. Empty the tank.\n2. Rinse the tank with water."
        sources = [source(1, steps, title="Brevo 1"), source(2, steps, title="Brevo 2")]

        text = write("How does cleaning differ between Brevo 1 and Brevo 2?", *sources)

        assert "Brevo 1:\n1. Empty the tank [1]." in text
        assert "Brevo 2:\n1. Empty the tank [2]." in text

    def test_goes_on_behind_code_on_a_line_of_its_own(self):
        restarting = (
            "To restart the Brevo {0} machine, type this command:\n\n    brevo restart\n\n"
            "Restarting the Brevo {0} machine takes {0}0 seconds of your time."
        )
        sources = [source(number, restarting.format(number)) for number in (1, 2)]

        text = write("Compare restarting the Brevo 1 machine and the Brevo 2 machine", *sources)

        assert text.count("```\nbrevo restart\n```\n") == 2
        assert len(find_markers(text)) == 4


TEXTS = st.lists(
    st.sampled_from(
        ["Brevo 1", "Brevo 2", "[7]", "is", "heavier than", ".", "\n", "| a | Brevo 1 |", "5 kg",
         "\n| --- | --- |\n", "| Brevo 2 | 5 |", "\n- ", "Unlike the", "9 EUR", ":"]
    ),
    max_size=30,
).map(" ".join)  # fmt: skip
QUESTIONS = st.sampled_from(
    [
        "Brevo 1 vs Brevo 2",
        "Which is heavier, Brevo 1 or Brevo 2 [7]?",
        "Compare [7] A with Brevo 1",
    ]
)


@settings(max_examples=150, deadline=None)
@given(QUESTIONS, st.lists(TEXTS, min_size=1, max_size=3))
def test_a_comparison_cites_only_its_sources_and_each_of_its_entries(question, texts):
    sources = [source(number, text) for number, text in enumerate(texts, 1)]

    text = write(question, *sources)

    assert set(cited_numbers(text)) <= {each.number for each in sources}
    assert all(cited_numbers(entry) for entry in entries(text))

"""A summary is as full as its budget allows, and never silently less than it must be."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.citations.markers import cited_numbers
from rag.summaries.facts import Said, facts_of, from_json, to_json
from rag.summaries.ladder import NOTHING, Ladder
from rag.summaries.lines import Limits, Line
from rag.summaries.lower_rungs import archive_line, runs
from rag.summaries.pool import Pool
from rag.text.names import contains_name
from rag.tokens import count_tokens


def facts_for(numbers):
    said = [
        Said(
            "assistant",
            f"According to the data sheet, the Vega {n} also weighs {n + 100} g, "
            f"which makes it easy to carry around all day [{n}].",
        )
        for n in numbers
    ]
    return facts_of(said)


def compose(facts, soft, hard=None, *, prose=(), **options):
    lines = [Line(fact, count_tokens) for fact in facts.facts]
    limits = Limits(soft, hard or soft)
    pool = Pool()
    pool.add(replace(facts, asked=()), lines)
    pool.tell(prose)
    return Ladder(pool, limits, count_tokens, **options).compose()


class TestTheRungs:
    def test_at_first_quote_all_of_a_claim_and_add_prose(self):
        composed = compose(facts_for([1, 2]), 400, prose=["The user asked for light ones"])

        assert composed.rung == 0
        assert "which makes it easy to carry around all day [1]." in composed.text
        assert composed.text.endswith("The user asked for light ones.")

    def test_then_leave_out_asides(self):
        composed = compose(facts_for([1, 2, 3, 4, 5]), 140, prose=["The user asked."])

        assert composed.rung == 1
        assert "- The Vega 1 also weighs 101 g [1]." in composed.text
        assert "The user asked" not in composed.text

    def test_then_shorten_and_keep_figures_and_names(self):
        composed = compose(facts_for(range(1, 7)), 60, 200)

        assert composed.rung == 2
        assert "- Vega 6 weighs 106 g [6]." in composed.text
        assert composed.tokens <= 200

    def test_then_leave_name_and_number_where_no_claim_fits(self):
        composed = compose(facts_for(range(1, 21)), 60, 260)

        assert composed.rung == 3
        assert "Vega 1 weighs 101 g [1]." in composed.text
        assert "\n- Vega 20 [20]." in composed.text
        assert composed.tokens <= 260

    def test_then_group_the_numbers_by_document(self):
        titles = dict.fromkeys(range(1, 11), "Router manual [9]")

        composed = compose(facts_for(range(1, 21)), 60, 130, documents=titles)

        assert composed.rung == 4
        assert "Router manual (9): [1-10]; [11-20]" in composed.text
        assert set(cited_numbers(composed.text)) == set(range(1, 21))

    def test_at_last_say_what_moved_to_the_archive(self):
        composed = compose(facts_for(range(1, 90, 2)), 60, 120)

        assert composed.rung == 5
        assert composed.archived_numbers[0] == 1
        assert f"{len(composed.archived_numbers)} citations between 1 and" in composed.text
        kept = set(cited_numbers(composed.text))
        assert kept | set(composed.archived_numbers) == set(range(1, 90, 2))
        for name in composed.archived_names:
            assert not contains_name(composed.text, name)

    def test_of_nothing_say_so(self):
        assert compose(facts_of([]), 100).text == NOTHING

    def test_put_names_that_no_claim_holds_in_a_list(self):
        facts = facts_of([Said("user", "Compare the Vega 3 and the Nova 2.")])

        assert "Also named: Vega 3; Nova 2." in compose(facts, 100).text

    def test_list_numbers_that_no_sentence_states_anything_for(self):
        facts = facts_of([Said("assistant", "[3]\n\nIt is red [4].")])

        composed = compose(facts, 100)

        assert set(cited_numbers(composed.text)) == {3, 4}

    @settings(max_examples=40, deadline=None)
    @given(st.sets(st.integers(1, 400), min_size=1, max_size=60), st.integers(60, 900))
    def test_lose_nothing_without_saying_so(self, numbers, hard):
        composed = compose(facts_for(sorted(numbers)), hard // 2, hard)

        kept = set(cited_numbers(composed.text))
        assert composed.tokens <= hard
        assert kept | set(composed.archived_numbers) == numbers
        for n in numbers:
            name = f"Vega {n}"
            assert contains_name(composed.text, name) or name in composed.archived_names


class TestFacts:
    def test_name_what_an_answer_is_about(self):
        facts = facts_of(
            [
                Said("user", "How much does the Vega 5 weigh?"),
                Said("assistant", "240 g [3]. It lasts 30 hours [4]."),
                Said("user", "Is the Vega 5 waterproof?"),
                Said("assistant", "No [5]."),
            ]
        )

        assert [fact.text for fact in facts.facts] == [
            "How much does the Vega 5 weigh: 240 g [3].",
            "Vega 5: It lasts 30 hours [4].",
            "Is the Vega 5 waterproof: No [5].",
        ]

    def test_of_a_question_come_after_those_of_answers(self):
        facts = facts_of(
            [Said("assistant", "The Vega 5 is red [3]."), Said("user", "Does [3] say why?")]
        )

        composed = compose(facts, 100)

        assert "Does" not in composed.text
        assert "The Vega 5 is red [3]." in composed.text

    def test_survive_the_store(self):
        facts = facts_for([1, 2])

        stored = from_json(to_json(facts))

        assert [fact.text for fact in stored.facts] == [fact.text for fact in facts.facts]
        assert (stored.numbers, stored.names) == (facts.numbers, facts.names)


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([], ""),
        ([3], "[3]"),
        ([1, 2, 3], "[1][2][3]"),
        ([4, 1, 2, 3, 9], "[1-4][9]"),
        (range(1, 151), "[1-100][101-150]"),
    ],
)
def test_runs_are_ranges(numbers, text):
    assert runs(numbers) == text


def test_an_archive_of_nothing_has_no_line():
    assert archive_line((), ()) == ""
    assert "2 names" in archive_line((), ("Vega 1", "Vega 2"))

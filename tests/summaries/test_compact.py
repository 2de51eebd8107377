"""Summaries of a stored session keep what the turns require, and replace nothing by accident."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag.citations.markers import cited_numbers
from rag.errors import ModelUnavailable, UserError
from rag.records import ImportedMessage, MessageStatus
from rag.sessions.store import SqlConversationStore
from rag.summaries.compact import Compactor, SummaryOptions
from rag.summaries.plan import plan_compaction
from rag.text.names import contains_name
from rag.tokens import count_tokens
from tests.fakes import HashEmbedder, ScriptedModel


@dataclass(frozen=True)
class Room:
    budget_tokens: int = 600
    high_tokens: int = 500
    low_tokens: int = 250
    max_pairs: int = 20
    keep_pairs: int = 2


@pytest.fixture
def session(engine):
    return SqlConversationStore(engine).create("ada")


def talk(session, turns, *, start=1):
    messages = []
    for number in range(start, start + turns):
        messages += [
            ImportedMessage("user", f"What does the Vega {number} weigh?"),
            ImportedMessage("assistant", f"The Vega {number} weighs {100 + number} g [{number}]."),
        ]
    session.append(messages, [])


def compactor(*replies, **options):
    model = ScriptedModel(*replies) if replies else None
    return Compactor(model, count_tokens, **options)


def holds(text, numbers):
    return all(f"Vega {n} weighs {100 + n} g [{n}]" in text for n in numbers)


class TestACompaction:
    def test_is_not_due_below_high_water(self, session):
        talk(session, 4)

        made = compactor().compact(session, Room(), at_once=False, force=False)

        assert made is None
        assert session.summaries() == []

    def test_summarises_the_oldest_pairs_and_stores_the_summary(self, session):
        talk(session, 20)

        made = compactor().compact(session, Room(), at_once=False, force=False)

        assert made.start == 0
        assert 0 < made.end <= 36
        assert holds(made.text, range(1, made.end // 2 + 1))
        assert [s.text for s in session.summaries()] == [made.text]
        assert len(session.messages()) == 40

    def test_by_force_leaves_the_pairs_that_are_always_kept(self, session):
        talk(session, 5)

        made = compactor().compact(session, Room(), at_once=False, force=True)

        assert (made.start, made.end) == (0, 6)
        assert compactor().compact(session, Room(), at_once=False, force=True) is None

    @pytest.mark.parametrize("replies", [(), ("Vega 1 weighs 101 g [1]. See [99].", "Sorry.")])
    def test_repeats_no_number_that_somebody_only_typed(self, session, replies):
        asked = ImportedMessage("user", "Is the Vega 9 heavier [99] than in [2]?")
        session.append([asked, ImportedMessage("assistant", "I cannot say.")], [])
        talk(session, 4)

        made = compactor(*replies).compact(session, Room(), at_once=False, force=True)

        assert made.start == 0
        assert "Vega 9" in made.text
        assert set(cited_numbers(made.text)) == {1, 2}
        assert session.messages()[0].content == asked.content

    def test_repeats_no_number_that_was_typed_before_it_was_given(self, session):
        turn = session.begin("Is that the sample [2] of last week?")
        ended = replace(turn.answer, content="I cannot say.", status=MessageStatus.COMPLETE)
        session.finish(ended)
        talk(session, 4)

        made = compactor().compact(session, Room(), at_once=False, force=True)

        assert "the sample of last week" in made.text
        assert made.text.count("[2]") == 1
        assert holds(made.text, [1, 2])

    def test_checks_the_model_and_repairs_what_it_lost(self, session):
        talk(session, 5)
        model = "Vega 1 weighs 101 g [1]. Vega 2 weighs 103 g [3]."

        made = compactor(model, "Sorry.").compact(session, Room(), at_once=False, force=True)

        assert holds(made.text, [1, 2, 3])
        assert made.report.kept_by_model == 1
        assert made.report.repaired == 2
        assert made.report.attempts == 2
        assert made.report.model == "scripted"
        assert "lost citations: [2]" in made.report.problems

    @pytest.mark.parametrize(
        "reply",
        [
            ModelUnavailable("The server is away."),
            "",
            "x" * 70_000,
            ["half", ModelUnavailable("!")],
        ],
        ids=["away", "nothing", "a book", "broken off"],
    )
    def test_stands_without_the_model(self, session, reply):
        talk(session, 5)

        made = compactor(reply).compact(session, Room(), at_once=False, force=True)

        assert holds(made.text, [1, 2, 3])
        assert made.report.model == "extractive"
        assert "the model failed" in made.report.problems[0]

    def test_shows_each_turn_to_the_model_once(self, session):
        model = ScriptedModel(lambda request: "Nothing.")
        compact = Compactor(model, count_tokens)

        for start in range(1, 61, 6):
            talk(session, 6, start=start)
            compact.compact(session, Room(), at_once=False, force=False)

        shown = [request.messages[1].content for request in model.requests]
        for number in range(1, 61):
            assert sum(f"user: What does the Vega {number} weigh" in text for text in shown) <= 1
        assert shown

    def test_folds_the_summaries_when_they_outgrow_their_room(self, session):
        compact = compactor()

        for start in range(1, 61, 6):
            talk(session, 6, start=start)
            compact.compact(session, Room(), at_once=False, force=False)

        summaries = session.summaries()
        covered = max(summary.end for summary in summaries) // 2
        text = "\n".join(summary.text for summary in summaries)
        assert any(summary.is_fold for summary in summaries)
        assert sum(summary.tokens for summary in summaries) <= 300
        assert set(cited_numbers(text)) == set(range(1, covered + 1))
        assert all(contains_name(text, f"Vega {n}") for n in range(1, covered + 1))

    def test_keeps_words_of_the_model_in_a_fold(self, session):
        reply = "Vega 1 weighs 101 g [1]. Vega 2 weighs 102 g [2]. Vega 3 weighs 103 g [3]."
        compact = compactor(reply, lambda request: "")
        talk(session, 5)
        compact.compact(session, Room(), at_once=False, force=True)
        talk(session, 12, start=6)

        made = compact.compact(session, Room(), at_once=False, force=True)

        assert made.is_fold
        assert made.start == 0
        assert made.required_numbers == tuple(range(1, 16))

    def test_uses_the_names_of_the_documents(self, session):
        session.append(
            [
                ImportedMessage("user", "Is the eero mini fast?"),
                ImportedMessage("assistant", "Yes."),
            ],
            [],
        )
        talk(session, 3)
        compact = compactor(names=lambda: ("eero mini",))

        made = compact.compact(session, Room(), at_once=False, force=True)

        assert "eero mini" in made.required_names
        assert contains_name(made.text, "eero mini")

    def test_takes_another_wording_where_an_embedder_finds_the_same_meaning(self, session):
        talk(session, 3)
        reply = "Mass of Vega 1: 101 g, weighed [1]."

        with_vectors = compactor(reply, "", embed=HashEmbedder().embed)
        made = with_vectors.compact(session, Room(), at_once=False, force=True)

        assert made.report.citations_kept == 1


class TestAStandIn:
    def test_asks_no_model(self, session):
        talk(session, 20)

        made = compactor("unused").compact(session, Room(), at_once=True, force=False)

        assert made.report.attempts == 0
        assert holds(made.text, [1, 2, 3])

    def test_is_replaced_by_the_models_summary_of_the_same_turns(self, session):
        talk(session, 20)
        compact = compactor("Vega 1 weighs 101 g [1].", "Nothing.")
        stand_in = compact.compact(session, Room(), at_once=True, force=False)

        made = compact.compact(session, Room(), at_once=False, force=False)

        assert made.start == stand_in.start
        assert made.end >= stand_in.end
        assert made.report.attempts == 2
        assert [summary.text for summary in session.summaries()] == [made.text]


class TestTwoCompactionsAtOnce:
    def test_one_wins(self, session):
        talk(session, 20)

        with ThreadPoolExecutor(4) as pool:
            runs = [
                pool.submit(compactor().compact, session, Room(), at_once=False, force=True)
                for _ in range(4)
            ]
            made = [run.result() for run in runs]

        assert sum(summary is not None for summary in made) == 1
        assert len(session.summaries()) == 1

    def test_one_that_ends_after_forgetting_is_dropped(self, session):
        talk(session, 20)

        def forget(request):
            session.forget_summaries()
            return "Vega 1 weighs 101 g [1]."

        made = compactor(forget, "").compact(session, Room(), at_once=False, force=True)

        assert made is None
        assert session.summaries() == []


class TestOnRequest:
    def test_summarises_any_range_beside_the_context(self, session):
        talk(session, 6)

        made = compactor().summarize(session, 2, 6)

        assert set(made.required_numbers) == {2, 3}
        assert session.summaries() == []
        assert [s.text for s in session.requested_summaries()] == [made.text]

    def test_may_be_asked_for_twice(self, session):
        talk(session, 6)

        compactor().summarize(session, 2, 6)
        compactor().summarize(session, 2, 6)

        assert len(session.requested_summaries()) == 1

    @pytest.mark.parametrize(("start", "end"), [(-1, 2), (3, 3), (0, 99)])
    def test_refuses_messages_that_are_not_there(self, session, start, end):
        talk(session, 2)

        with pytest.raises(UserError, match="has 4"):
            compactor().summarize(session, start, end)


class TestPlan:
    @pytest.mark.parametrize(
        ("pairs", "summaries", "force", "dropped"),
        [
            pytest.param([50] * 9, 0, False, 0, id="below high water"),
            pytest.param([50] * 12, 0, False, 10, id="down to low water"),
            pytest.param([1] * 21, 0, False, 11, id="more pairs than allowed"),
            pytest.param([50] * 4, 0, True, 2, id="by force, down to what is always kept"),
            pytest.param([50] * 2, 0, True, 0, id="nothing to force"),
            pytest.param([700], 0, False, 1, id="a pair larger than the budget"),
            pytest.param([], 0, True, 0, id="no pairs"),
        ],
    )
    def test_drops_whole_pairs(self, pairs, summaries, force, dropped):
        planned = plan_compaction(pairs, summaries, Room(), added_tokens=200, force=force)

        assert planned == dropped

    @given(st.lists(st.integers(1, 900), max_size=40), st.integers(0, 300), st.booleans())
    def test_always_leaves_what_fits(self, pairs, summaries, force):
        room = Room()

        dropped = plan_compaction(pairs, summaries, room, added_tokens=200, force=force)

        if dropped:
            expected = min(summaries + 200, 300)
            assert sum(pairs[dropped:]) + expected <= room.budget_tokens or dropped == len(pairs)
        elif not force:
            few = len(pairs) <= room.keep_pairs
            most = room.budget_tokens if few else room.high_tokens
            assert sum(pairs) + min(summaries, 300) <= most or not pairs


class TestAnyConversation:
    @settings(
        max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(st.lists(st.tuples(st.integers(1, 30), st.integers(2, 900)), min_size=4, max_size=40))
    def test_keeps_numbers_and_names_through_any_number_of_folds(self, engine, said):
        session = SqlConversationStore(engine).create("ada")
        compact = Compactor(
            ScriptedModel(lambda request: request.messages[1].content.replace("g [", "kg [")),
            count_tokens,
            options=SummaryOptions(max_tokens=120),
        )

        for number, value in said:
            answer = f"The Vega {number} weighs {value} g [{number}][{number + 1}]."
            question = ImportedMessage("user", "Well?")
            session.append([question, ImportedMessage("assistant", answer)], [])
            compact.compact(session, Room(300, 200, 100), at_once=False, force=False)

        text = "\n".join(summary.text for summary in session.summaries())
        end = max((summary.end for summary in session.summaries()), default=0)
        covered = said[: end // 2]
        numbers = {n for number, _ in covered for n in (number, number + 1)}
        moved = {n for s in session.summaries() for n in s.report.archived_citations}
        names = {name for s in session.summaries() for name in s.report.archived_names}
        assert set(cited_numbers(text)) | moved == numbers
        for number, _ in covered:
            assert contains_name(text, f"Vega {number}") or f"Vega {number}" in names
        assert "kg" not in text
        assert sum(summary.tokens for summary in session.summaries()) <= 150

"""Summaries of a stored session keep what the turns require, and replace nothing by accident."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag.citations.markers import cited_numbers
from rag.errors import ModelUnavailable, UserError
from rag.records import Chunk, Hit, ImportedMessage
from rag.sessions.store import SqlConversationStore
from rag.summaries.compact import Compactor
from rag.summaries.past import Past
from rag.summaries.required import Reading
from rag.summaries.summarise import Room, planned_ends
from rag.text.names import contains_name
from rag.tokens import count_tokens
from tests.fakes import ScriptedModel


def room_of(budget=600, high=500, low=250):
    half, most = budget // 2, int(0.8 * budget)
    return Room(budget, high, low, half, most, keep_turns=2, max_turns=20, fewer_turns=10)


ROOM = room_of()


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


def hit(number):
    chunk = Chunk(
        id=f"c{number}", document_id="d", document_name="manual.md", document_title="Manual",
        section_index=0, position=number,
        locator="", heading_path=(), text=f"Text {number}.", start=0, end=7,
    )  # fmt: skip
    return Hit(chunk, 1.0, passage=chunk.text, passage_start=0, passage_end=7)


def compactor(*replies, **options):
    model = ScriptedModel(*replies) if replies else None
    return Compactor(model, count_tokens, **options)


def holds(text, numbers):
    return all(f"Vega {n} weighs {100 + n} g [{n}]" in text for n in numbers)


class TestACompaction:
    def test_is_not_due_below_high_water(self, session):
        talk(session, 4)

        made = compactor().compact(session, ROOM, at_once=False, force=False)

        assert made is None
        assert session.summaries() == []

    def test_summarises_the_oldest_pairs_and_stores_the_summary(self, session):
        talk(session, 20)

        made = compactor().compact(session, ROOM, at_once=False, force=False)

        covered = range(1, made.end // 2 + 1)
        assert made.start == 0
        assert 0 < made.end <= 36
        assert set(cited_numbers(made.text)) == set(covered)
        assert holds(made.text, made.report.stated_citations)
        assert len(made.report.stated_citations) > 3
        assert [s.text for s in session.summaries()] == [made.text]
        assert len(session.messages()) == 40

    def test_by_force_leaves_the_pairs_that_are_always_kept(self, session):
        talk(session, 5)

        made = compactor().compact(session, ROOM, at_once=False, force=True)

        assert (made.start, made.end) == (0, 6)
        assert compactor().compact(session, ROOM, at_once=False, force=True) is None

    def test_repeats_no_number_that_somebody_only_typed(self, session):
        asked = ImportedMessage("user", "Is the Vega 9 heavier [99] than in [2]?")
        session.append([asked, ImportedMessage("assistant", "I cannot say.")], [])
        talk(session, 4)

        made = compactor().compact(session, ROOM, at_once=False, force=True)

        assert made.start == 0
        assert "Vega 9" in made.text
        assert set(cited_numbers(made.text)) == {1, 2}
        assert session.messages()[0].content == asked.content

    def test_says_where_each_quotation_stands(self, session):
        talk(session, 5)

        made = compactor().compact(session, ROOM, at_once=False, force=True)

        for quotation in made.quotations:
            line = made.text[quotation.start : quotation.end]
            assert line in session.messages()[quotation.message].content
        assert [each.message for each in made.quotations] == [1, 3, 5]
        assert [s.quotations for s in session.summaries()] == [made.quotations]

    @pytest.mark.parametrize(
        "reply",
        [
            ModelUnavailable("The server is away."),
            "",
            "x" * 70_000,
            ["half", ModelUnavailable("!")],
            "Vega 1 weighs 102 g [1]. Vega 2 weighs 103 g [3].",
        ],
        ids=["away", "nothing", "a book", "broken off", "a summary of its own"],
    )
    def test_stands_without_the_model(self, session, reply):
        talk(session, 5)

        made = compactor(reply).compact(session, ROOM, at_once=False, force=True)

        assert holds(made.text, [1, 2, 3])
        assert (made.report.model, made.report.attempts) == ("extractive", 1)
        assert made.report.problems

    def test_shows_each_statement_to_the_model_once(self, session):
        model = ScriptedModel(lambda request: '{"keep": [1]}')
        compact = Compactor(model, count_tokens)

        for start in range(1, 61, 6):
            talk(session, 6, start=start)
            compact.compact(session, ROOM, at_once=False, force=False)

        shown = [request.messages[1].content for request in model.requests]
        for number in range(1, 61):
            assert sum(f"Vega {number} weighs" in text for text in shown) <= 1
        assert 1 < len(shown) <= 60 // 8

    def test_remembers_what_a_model_chose_before(self, session):
        first = compactor(json.dumps({"keep": [1], "user": [*range(1, 60)]}))
        talk(session, 12)
        first.compact(session, ROOM, at_once=False, force=True)
        talk(session, 30, start=20)

        made = compactor().compact(session, room_of(1000), at_once=False, force=True)

        assert holds(made.text, [1])
        assert "word for word: What does the Vega 1 weigh?" in made.text
        assert made.report.chosen == 1

    def test_is_one_for_all_turns_and_stays_in_its_room(self, session):
        compact = compactor()

        for start in range(1, 61, 6):
            talk(session, 6, start=start)
            compact.compact(session, ROOM, at_once=False, force=False)

        (summary,) = session.summaries()
        covered = summary.end // 2
        assert summary.start == 0
        assert summary.tokens <= 0.8 * ROOM.budget
        assert set(cited_numbers(summary.text)) == set(range(1, covered + 1))
        assert all(contains_name(summary.text, f"Vega {n}") for n in range(1, covered + 1))

    def test_lists_numbers_by_document_where_statements_have_no_room(self, session):
        session.register([hit(n) for n in range(1, 41)])
        talk(session, 40)

        made = compactor().compact(session, room_of(300, 200, 100), at_once=False, force=True)

        assert "Manual: [1–20]" in made.text
        assert made.report.listed_citations

    def test_states_the_most_used_where_names_alone_fill_its_room(self, session):
        talk(session, 3)
        again = [ImportedMessage("user", "And the [3]?"), ImportedMessage("assistant", "It is in.")]
        session.append(again, [])
        talk(session, 76, start=4)

        made = compactor().compact(session, ROOM, at_once=False, force=True)

        assert made.report.statements >= 3
        assert holds(made.text, [3])
        assert made.tokens <= ROOM.most
        assert not made.report.archived_citations
        assert not made.report.archived_names

    def test_uses_the_names_of_the_documents(self, session):
        session.append(
            [
                ImportedMessage("user", "Is the eero mini fast?"),
                ImportedMessage("assistant", "Yes."),
            ],
            [],
        )
        talk(session, 3)
        compact = compactor(names=lambda within: ("eero mini",))

        made = compact.compact(session, ROOM, at_once=False, force=True)

        assert "eero mini" in made.required_names
        assert contains_name(made.text, "eero mini")


class TestAStandIn:
    def test_asks_no_model(self, session):
        talk(session, 20)

        made = compactor("unused").compact(session, ROOM, at_once=True, force=False)

        assert made.report.attempts == 0
        assert set(cited_numbers(made.text)) == set(made.required_numbers)

    def test_leaves_its_turns_for_the_model_to_be_shown(self, session):
        talk(session, 20)
        model = ScriptedModel('{"keep": [1]}')
        compact = Compactor(model, count_tokens)
        compact.compact(session, ROOM, at_once=True, force=False)
        talk(session, 20, start=30)

        made = compact.compact(session, room_of(1000), at_once=False, force=False)

        assert "1. The Vega 1 weighs 101 g [1]." in model.requests[0].messages[1].content
        assert made.report.chosen == 1
        assert [summary.text for summary in session.summaries()] == [made.text]


class TestTwoCompactionsAtOnce:
    def test_one_wins(self, session):
        talk(session, 20)

        with ThreadPoolExecutor(4) as pool:
            runs = [
                pool.submit(compactor().compact, session, ROOM, at_once=False, force=True)
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

        made = compactor(forget, "").compact(session, ROOM, at_once=False, force=True)

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


def turns_of(sizes):
    past = Past(count_tokens)
    for index, size in enumerate(sizes):
        past.turns.append(index)
        past.append("", Reading(), size)
    return past


class TestPlan:
    @pytest.mark.parametrize(
        ("pairs", "summaries", "force", "dropped"),
        [
            pytest.param([50] * 9, 0, False, 0, id="below high water"),
            pytest.param([50] * 12, 0, False, 11, id="down to low water"),
            pytest.param([1] * 21, 0, False, 11, id="more pairs than allowed"),
            pytest.param([50] * 4, 0, True, 2, id="by force, down to what is always kept"),
            pytest.param([50] * 2, 0, True, 0, id="nothing to force"),
            pytest.param([700], 0, False, 1, id="a pair larger than the budget"),
            pytest.param([], 0, True, 0, id="no pairs"),
        ],
    )
    def test_drops_whole_pairs(self, pairs, summaries, force, dropped):
        ends = planned_ends(turns_of(pairs), summaries, ROOM, force=force)

        assert ends == list(range(dropped, len(pairs) + 1) if dropped else [])

    @given(st.lists(st.integers(1, 900), max_size=40), st.integers(0, 300), st.booleans())
    def test_always_leaves_what_fits(self, pairs, summaries, force):
        ends = planned_ends(turns_of(pairs), summaries, ROOM, force=force)

        if ends and ends[0] < len(pairs):
            assert sum(pairs[ends[0] :]) <= ROOM.budget
        elif not ends and not force:
            assert sum(pairs) + summaries <= ROOM.high or len(pairs) <= ROOM.keep_turns


class TestAnyConversation:
    @settings(
        max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(st.lists(st.tuples(st.integers(1, 30), st.integers(2, 900)), min_size=4, max_size=40))
    def test_keeps_numbers_and_names_and_quotes_nothing_else(self, engine, said):
        session = SqlConversationStore(engine).create("ada")
        compact = Compactor(
            ScriptedModel(lambda request: request.messages[1].content.replace("g [", "kg [")),
            count_tokens,
        )

        for number, value in said:
            answer = f"The Vega {number} weighs {value} g [{number}][{number + 1}]."
            question = ImportedMessage("user", "Well?")
            session.append([question, ImportedMessage("assistant", answer)], [])
            compact.compact(session, room_of(300, 200, 100), at_once=False, force=False)

        text = "\n".join(summary.text for summary in session.summaries())
        end = max((summary.end for summary in session.summaries()), default=0)
        covered = said[: end // 2]
        numbers = {n for number, _ in covered for n in (number, number + 1)}
        moved = {n for s in session.summaries() for n in s.report.archived_citations}
        names = {name for s in session.summaries() for name in s.report.archived_names}
        raw = [message.content for message in session.messages()]
        assert set(cited_numbers(text)) | moved == numbers
        for number, _ in covered:
            assert contains_name(text, f"Vega {number}") or f"Vega {number}" in names
        assert all(line in raw for line in text.split("\n") if "weighs" in line)
        assert sum(summary.tokens for summary in session.summaries()) <= 240

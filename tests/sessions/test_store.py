"""What the conversation store promises, on each database."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from sqlalchemy import select, update

from rag.citations.markers import cited_numbers
from rag.citations.register import content_hash
from rag.db import messages, summaries, writing
from rag.documents.store import SqlDocumentStore
from rag.errors import Conflict, NotFound, UserError
from rag.records import (
    NO_PREFERENCES,
    Answer,
    Card,
    Citation,
    ContextConfig,
    ContextPreferences,
    Document,
    DocumentLink,
    ImportedMessage,
    Mention,
    MessageStatus,
    QuotedPassage,
    Section,
    SourceState,
    Summary,
    SummaryReport,
    Unsourced,
    Usage,
    Verdict,
)
from rag.sessions.store import SqlConversationStore
from tests.made import made_chunk, made_hit, made_source

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def store(any_engine):
    return SqlConversationStore(any_engine)


@pytest.fixture
def session(store):
    return store.create("ada")


def hit(chunk_id, text="Refunds take 5 days."):
    return made_hit(made_chunk(chunk_id, text, document_id="d1", document_name="refunds.md"))


def answered(session, question, text="Five days [1]."):
    turn = session.begin(question)
    return session.finish(
        replace(turn.answer, content=text, status=MessageStatus.COMPLETE, answer=Answer(text=text))
    )


def summary(start, end, **kwargs):
    report = SummaryReport(1, 1, 0, 0, (1,), problems=("late",), recallable_names=("Aero 5",))
    return Summary(start, end, "Five days [1].", (1,), ("Aero 5",), report, tokens=6, **kwargs)


class TestTurns:
    def test_begin_stores_the_question_before_there_is_an_answer(self, session):
        turn = session.begin("How long?")

        assert [(m.index, m.role, m.content) for m in session.messages()] == [
            (0, "user", "How long?"),
            (1, "assistant", ""),
        ]
        assert turn.answer.status is MessageStatus.PENDING

    def test_finish_keeps_every_detail_of_an_answer(self, session):
        turn = session.begin("How long?")
        answer = Answer(
            text="Five days [1]. Surely.",
            citations=(Citation(1, 10, 13, Verdict.SUPPORTED, "Says so.", attributed=True),),
            unsourced=(Unsourced(15, 22),),
            declined=False,
            model="m",
            usage=Usage(10, 5),
            card=Card(
                (QuotedPassage(1, "Refunds › Timing", "Five days.", ((0, 10),)),),
                "These hardly answer:",
                (Mention("Aero 5", 2, (DocumentLink("d1", "refunds.md", "Refunds"),)),),
            ),
        )
        whole = replace(
            turn.answer,
            content=answer.text,
            status=MessageStatus.COMPLETE,
            answer=answer,
            resolved_query="How long do refunds take?",
            is_followup=True,
        )

        session.finish(whole)

        assert session.message(1) == whole

    def test_an_answer_ends_once(self, session):
        ended = answered(session, "How long?")

        with pytest.raises(Conflict, match="ended already"):
            session.finish(replace(ended, content="Something else."))
        assert session.message(1).content == "Five days [1]."

    def test_the_first_question_names_the_session_and_later_ones_do_not(self, session):
        session.begin("  How long\n do refunds take? ")
        session.begin("And abroad?")

        assert session.read().title == "How long do refunds take?"

    def test_concurrent_writers_leave_no_gap_and_tear_no_pair(self, session):
        with ThreadPoolExecutor(8) as pool:
            turns = list(pool.map(lambda n: session.begin(f"q{n}"), range(40)))

        messages = session.messages()
        assert [message.index for message in messages] == list(range(80))
        assert all(turn.answer.index == turn.question.index + 1 for turn in turns)
        assert [m.turn for m in messages] == [n // 2 for n in range(80)]

    def test_a_question_of_strange_characters_is_kept_readable(self, session):
        session.begin("a\x00b \ud800 c 语言 😀")

        assert session.message(0).content == "a\ufffdb \ufffd c 语言 😀"

    def test_ranges_are_half_open_and_recent_ends_with_the_newest(self, session):
        for n in range(3):
            answered(session, f"q{n}")

        assert [m.index for m in session.messages(1, 3)] == [1, 2]
        assert [m.index for m in session.recent(3)] == [3, 4, 5]
        assert session.messages(9, 12) == []
        with pytest.raises(NotFound, match="no message 6"):
            session.message(6)

    def test_a_question_knows_how_many_sources_there_were(self, session):
        session.register([hit("a"), hit("b")])
        answered(session, "one")
        session.register([hit("c")])
        answered(session, "two")

        assert [m.known_sources for m in session.messages()] == [2, None, 3, None]


class TestRegenerate:
    def test_adds_a_revision_and_keeps_the_index(self, session):
        answered(session, "How long?", "Bad [1].")

        turn = session.begin_again(1)
        session.finish(replace(turn.answer, content="Good.", status=MessageStatus.COMPLETE))

        assert [(m.index, m.content, m.revision) for m in session.messages()] == [
            (0, "How long?", 0),
            (1, "Good.", 1),
        ]

    def test_forgets_the_vector_of_what_was_said_before(self, session):
        answered(session, "How long?", "Bad [1].")
        session.save_vectors({0: np.ones(3), 1: np.ones(3)})

        session.begin_again(1)

        assert set(session.vectors([0, 1])) == {0}

    def test_is_refused_for_an_earlier_answer(self, session):
        answered(session, "one")
        answered(session, "two")

        with pytest.raises(Conflict, match="Only the last answer"):
            session.begin_again(1)

    def test_is_refused_while_the_answer_is_being_written(self, session):
        session.begin("one")

        with pytest.raises(Conflict, match="being written"):
            session.begin_again(1)

    @pytest.mark.parametrize("index", [0, 2, -1])
    def test_knows_only_answers(self, session, index):
        answered(session, "one")

        with pytest.raises(NotFound):
            session.begin_again(index)

    def test_is_possible_after_the_process_died_while_writing(self, store, session):
        session.begin("one")

        ended = store.interrupt_lost(is_alone=True)

        assert ended == 1
        assert session.message(1).status is MessageStatus.INTERRUPTED
        assert session.begin_again(1).answer.revision == 1


class TestErase:
    def test_blanks_a_turn_in_every_revision_and_nothing_else(self, session, any_engine):
        answered(session, "How long?", "Five days, really [1].")
        answered(session, "And the second?", "Ten years, secretly [1].")
        turn = session.begin_again(3)
        session.finish(replace(turn.answer, content="Nine", status=MessageStatus.COMPLETE))
        answered(session, "And the third?")
        session.register([hit("a")])
        session.erase(3)

        contents = [message.content for message in session.messages()]
        assert contents == [
            "How long?", "Five days, really [1].", "", "", "And the third?", "Five days [1].",
        ]  # fmt: skip
        assert session.read().source_count == 1
        with any_engine.connect() as connection:
            kept = connection.execute(select(messages.c.content)).scalars().all()
        assert not any("secretly" in each or "second" in each for each in kept)
        assert session.search("secretly").total == 0
        for again in (session.erase, session.begin_again):
            with pytest.raises((NotFound, Conflict)):
                again(3)

    def test_takes_along_what_quotes_it(self, session):
        for _ in range(4):
            answered(session, "How long?")
        session.add_summary(summary(0, 4), epoch=session.epoch())
        session.add_requested_summary(summary(2, 4), epoch=session.epoch())
        session.save_vectors({index: np.ones(2, np.float32) for index in range(8)})
        before = session.epoch()
        session.erase(3)

        assert (session.summaries(), session.requested_summaries()) == ([], [])
        assert sorted(session.vectors(range(8))) == [0, 1, 4, 5, 6, 7]
        assert not session.add_summary(summary(0, 4), epoch=before)
        with pytest.raises(Conflict):
            session.add_requested_summary(summary(2, 4), epoch=before)
        assert session.requested_summaries() == []

    def test_leaves_summaries_of_other_turns(self, session):
        for _ in range(3):
            answered(session, "How long?")
        session.add_summary(summary(0, 2), epoch=session.epoch())
        session.erase(5)

        assert len(session.summaries()) == 1

    def test_is_refused_while_it_is_written_and_to_others(self, session, store):
        session.begin("How long?")
        with pytest.raises(Conflict):
            session.erase(1)
        with pytest.raises(NotFound):
            session.erase(0)


class TestRegister:
    def test_a_chunk_keeps_its_number_for_the_whole_session(self, session):
        first = session.register([hit("a"), hit("b")])
        again = session.register([hit("b"), hit("c"), hit("a"), hit("b")])

        assert [source.number for source in first] == [1, 2]
        assert [source.number for source in again] == [2, 3, 1]
        assert session.read().source_count == 3

    def test_the_first_snapshot_is_the_one_that_stays(self, session):
        session.register([hit("a", "Refunds take 5 days.")])
        (source,) = session.register([hit("a", "Refunds take 9 days.")])

        assert source.passage == "Refunds take 5 days."
        assert source.content_hash == content_hash(source.passage)

    def test_two_writers_never_give_one_number_twice(self, session):
        with ThreadPoolExecutor(8) as pool:
            list(
                pool.map(
                    lambda n: session.register([hit(f"c{n % 10}"), hit(f"c{n % 7}x")]), range(40)
                )
            )

        sources = session.sources()
        assert [source.number for source in sources] == list(range(1, 18))
        assert len({source.chunk_id for source in sources}) == 17

    def test_a_source_says_what_became_of_it(self, any_engine, session):
        library, chunk = SqlDocumentStore(any_engine), hit("a").chunk
        document = Document("d1", "refunds.md", "Refunds", "text/markdown", "x", 1, 1, NOW)
        session.register([hit("a")])
        states = [session.sources([1])[0].state]
        for chunks in ([], [chunk]):
            library.replace(document, [Section(0, (), "", chunk.text)], chunks)
            states.append(session.sources([1])[0].state)

        assert states == [SourceState.DELETED, SourceState.CHANGED, SourceState.CURRENT]

    def test_unknown_and_enormous_numbers_are_left_out(self, session):
        session.register([hit("a")])

        assert [s.number for s in session.sources([0, 1, 2, 10**30])] == [1]


class TestImport:
    def source(self, number, chunk_id="x"):
        return made_source(number, chunk_id=chunk_id, document_name="a.md")

    def test_brings_messages_of_any_role_in_order(self, session):
        answered(session, "before")
        roles = ["system", "user", "assistant", "tool", "oracle"]

        first = session.append([ImportedMessage(role, role) for role in roles], [])

        assert first == 2
        assert [m.role for m in session.messages(2)] == roles
        assert session.read().message_count == 7

    def test_a_number_without_source_stays_taken_and_opens(self, session):
        session.append([ImportedMessage("assistant", "Five days [3].")], [self.source(2)])

        (fresh,) = session.register([hit("new")])

        assert fresh.number == 4
        assert [s.document_name for s in session.sources()][:3] == [
            "imported conversation",
            "a.md",
            "imported conversation",
        ]
        assert "not brought along" in session.sources([3])[0].passage

    @pytest.mark.parametrize("role", ["user", "system", "tool"])
    def test_a_number_that_no_answer_cites_stands_for_nothing(self, session, role):
        said = [ImportedMessage(role, "So [99]? Or [99999]?"), ImportedMessage("assistant", "No.")]

        session.append(said, [])

        assert session.read().source_count == 0
        assert session.messages()[0].content == "So [99]? Or [99999]?"
        assert [source.number for source in session.register([hit("new")])] == [1]

    @pytest.mark.parametrize(
        ("said", "numbers"),
        [
            ('{"ids": [1, 2], "rows": [[4, 5], [6]]}', set()),
            ('{"answer": "It weighs 3 kg [7].", "sources": [1]}', {7}),
            ("See [7].\n\n```json\n[1, 2]\n```", {7}),
        ],
    )
    def test_an_array_in_data_cites_nothing(self, session, said, numbers):
        session.append([ImportedMessage("assistant", said)], [])

        assert set(cited_numbers(session.messages()[0].content)) == numbers
        assert session.read().source_count == max(numbers, default=0)

    def test_never_gives_a_taken_number_to_another_chunk(self, session):
        session.register([hit("a")])

        with pytest.raises(Conflict, match=r"\[1\] already stands for refunds.md"):
            session.append([ImportedMessage("user", "hi")], [self.source(1, "other")])
        assert session.messages() == []

    def test_never_gives_a_chunk_a_second_number(self, session):
        session.register([hit("a")])

        with pytest.raises(Conflict, match=r"already has the number \[1\]"):
            session.append([ImportedMessage("user", "hi")], [self.source(2, "a")])
        assert session.read().source_count == 1

    def test_refuses_absurd_numbers_and_stores_nothing(self, session):
        with pytest.raises(UserError, match=r"\[99999999\]"):
            session.append([ImportedMessage("assistant", "So [99999999].")], [])
        assert session.messages() == []


class TestSearch:
    def test_finds_substrings_in_any_case_newest_first(self, session):
        answered(session, "Is the Aero 5 Pro waterproof?", "Yes, the AERO 5 PRO is.")
        answered(session, "And the Pico?", "No.")

        found = session.search("aero 5 pro")

        assert [f.index for f in found.found] == [1, 0]
        assert found.total == 2
        first = found.found[0]
        assert first.snippet[first.match_start : first.match_end] == "AERO 5 PRO"

    @pytest.mark.parametrize("text", ["5", "耳机", 'a "quoted" word', "100%", "a_b"])
    def test_takes_any_text_literally(self, session, text):
        answered(session, f"before {text} after", "nothing")
        answered(session, "aXb 100 5-", "nothing")

        assert 0 in [f.index for f in session.search(text).found]
        assert session.search(text + "~").total == 0

    def test_counts_more_than_it_shows(self, session):
        for _ in range(5):
            answered(session, "needle", "nothing")

        found = session.search("needle", limit=2)

        assert (len(found.found), found.total) == (2, 5)

    def test_of_blanks_finds_nothing(self, session):
        answered(session, "one")

        assert session.search("  ").total == 0

    def test_shows_only_the_newest_revision(self, session):
        answered(session, "q", "old words")
        turn = session.begin_again(1)
        session.finish(replace(turn.answer, content="new words", status=MessageStatus.COMPLETE))

        assert session.search("old words").total == 0
        assert session.search("new words").total == 1

    def test_over_all_sessions_of_one_owner(self, store, session):
        answered(session, "needle here")
        answered(store.create("ada"), "needle there")
        answered(store.create("eve"), "needle elsewhere")

        assert store.search("ada", "needle").total == 2


class TestSummaries:
    def test_stand_beside_the_messages_with_their_report(self, session):
        answered(session, "one")

        stored = session.add_summary(summary(0, 2), epoch=session.epoch())

        (read,) = session.summaries()
        assert stored
        assert read == replace(summary(0, 2), id=read.id)
        assert len(session.messages()) == 2

    def test_of_two_compactions_of_one_range_the_first_wins(self, session):
        epoch = session.epoch()

        results = [session.add_summary(summary(0, end), epoch=epoch) for end in (4, 2)]

        assert results == [True, False]
        assert [s.end for s in session.summaries()] == [4]

    def test_a_longer_one_takes_the_place_of_those_it_replaces(self, session):
        epoch = session.epoch()
        session.add_summary(summary(0, 2), epoch=epoch)
        session.add_summary(summary(2, 4), epoch=epoch)
        ids = [s.id for s in session.summaries()]

        stored = session.add_summary(summary(0, 4), epoch=epoch, replaces=ids)
        again = session.add_summary(summary(0, 4), epoch=epoch, replaces=ids)

        assert (stored, again) == (True, False)
        assert [(s.start, s.end) for s in session.summaries()] == [(0, 4)]

    def test_one_of_an_earlier_version_can_still_be_read(self, session, any_engine):
        session.add_summary(summary(0, 2), epoch=session.epoch())
        with writing(any_engine) as connection:
            connection.execute(
                update(summaries).values(
                    report={
                        "rung": 2,
                        "citations_required": 1,
                        "citations_kept": 1,
                        "names_required": 0,
                        "names_kept": 0,
                        "repaired": 1,
                    }
                )
            )

        assert session.summaries()[0].report.citations_kept == 1

    def test_one_that_ends_after_they_were_forgotten_is_dropped(self, session):
        epoch = session.epoch()
        session.add_summary(summary(0, 2), epoch=epoch)

        forgotten = session.forget_summaries()
        late = session.add_summary(summary(0, 2), epoch=epoch)

        assert (forgotten, late, session.summaries()) == (1, False, [])
        assert session.add_summary(summary(0, 2), epoch=session.epoch())

    def test_made_on_request_are_no_part_of_the_context(self, session):
        session.add_requested_summary(summary(0, 2), epoch=session.epoch())

        assert session.summaries() == []
        assert [(s.start, s.end) for s in session.requested_summaries()] == [(0, 2)]


class TestIsolation:
    def test_a_stranger_cannot_open_what_exists(self, store, session):
        with pytest.raises(NotFound):
            store.open(session.id, owner="eve")
        assert store.sessions("eve") == []

    def test_every_method_forgets_a_deleted_session(self, store, session):
        answered(session, "one")
        session.delete()

        for call in (
            session.read,
            session.messages,
            session.sources,
            session.summaries,
            session.epoch,
            lambda: session.begin("two"),
            lambda: session.register([hit("a")]),
            lambda: session.search("one"),
            lambda: session.vectors_besides([]),
            lambda: session.bare_messages_at([0]),
            session.words_until,
            lambda: session.words(["one"], last=9, most=1),
            lambda: session.add_words(0, 1, b"", {}, epoch=0),
            lambda: session.add_summary(summary(0, 2), epoch=0),
        ):
            with pytest.raises(NotFound):
                call()

    def test_numbers_of_one_session_mean_nothing_in_another(self, store, session):
        session.register([hit("a"), hit("b")])
        other = store.create("ada")

        assert [s.number for s in other.register([hit("b")])] == [1]

    def test_an_expired_session_is_gone_with_all_it_holds(self, any_engine):
        moment = NOW
        store = SqlConversationStore(any_engine, clock=lambda: moment)
        old = store.create("ada")
        answered(old, "one")
        old.register([hit("a")])
        old.add_summary(summary(0, 2), epoch=0)
        old.save_vectors({0: np.ones(3)})
        moment = NOW + timedelta(days=2)
        new = store.create("ada")

        gone = store.delete_unused_since(NOW + timedelta(days=1))

        assert gone == 1
        assert [s.id for s in store.sessions("ada")] == [new.id]


class TestSessions:
    def test_are_listed_by_last_use(self, any_engine):
        times = iter(NOW + timedelta(minutes=n) for n in range(10))
        store = SqlConversationStore(any_engine, clock=lambda: next(times))
        first, second = store.create("ada"), store.create("ada")
        first.begin("hello")

        assert [s.id for s in store.sessions("ada")] == [first.id, second.id]
        assert [s.id for s in store.sessions("ada", limit=1, offset=1)] == [second.id]

    def test_keep_their_configuration_and_title(self, store):
        config = ContextConfig(enabled=False, max_tokens=4000, compression_strategy="smart")
        session = store.create("ada", title="Prices", config=config)
        session.configure(replace(config, recent_message_count=4))
        session.rename("New prices")

        read = store.open(session.id, owner="ada").read()

        assert (read.title, read.config.recent_message_count) == ("New prices", 4)
        assert read.created_at.tzinfo is not None

    def test_the_newest_messages_without_vectors_are_found(self, session):
        for text in ("one", "two", "three"):
            answered(session, text)
        session.begin("four")
        session.save_vectors({2: np.ones(3), 4: np.ones(3)})

        assert [m.index for m in session.without_vectors(before=7, limit=3)] == [3, 5, 6]
        assert [m.index for m in session.without_vectors(before=3, limit=3)] == [0, 1]
        assert [m.index for m in session.without_vectors(before=8, limit=1)] == [6]

    def test_a_requested_slice_is_seen_by_every_process_until_it_was_shown(self, any_engine):
        session = SqlConversationStore(any_engine).create("ada")
        wanted = ContextPreferences(2, 5, include_search_results=True, max_context_messages=7)
        session.note_matches([1, 3])
        session.prefer(wanted)
        elsewhere = SqlConversationStore(any_engine).open(session.id, owner="ada")

        seen = elsewhere.overview()
        assert (seen.preferences, seen.matches) == (wanted, (1, 3))
        elsewhere.prefer(NO_PREFERENCES)
        assert session.overview().preferences == NO_PREFERENCES

    def test_what_was_said_is_read_without_details(self, session):
        answered(session, "one")

        (question, answer) = session.bare_messages()

        assert question == replace(session.message(0), known_sources=None)
        assert answer == replace(session.message(1), answer=None)

    def test_vectors_are_saved_once_per_message(self, session):
        session.save_vectors({0: np.zeros(3, dtype=np.float32), 1: np.ones(3, dtype=np.float32)})
        session.save_vectors({1: np.full(3, 2.0)})
        session.save_vectors({})

        assert {i: v.tolist() for i, v in session.vectors([1, 2]).items()} == {1: [2, 2, 2]}

    @pytest.mark.parametrize(
        ("saved", "known", "others"),
        [
            pytest.param([0, 1], [], [0, 1], id="none is known"),
            pytest.param([0, 1, 2], [0, 1], [2], id="a newer one"),
            pytest.param([0, 1, 2, 3], [1, 2], [0, 3], id="an older one that was caught up on"),
            pytest.param([0, 1], [0, 1], [], id="all are known"),
        ],
    )
    def test_vectors_are_read_that_are_not_known(self, session, saved, known, others):
        session.save_vectors({index: np.full(3, float(index)) for index in saved})

        found = session.vectors_besides(known)

        assert {index: vector.tolist() for index, vector in found.items()} == {
            index: [index] * 3 for index in others
        }

"""What is remembered of stored sessions: after a restart, a new revision, a deletion."""

import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event

import numpy as np
import pytest

from rag.errors import ModelUnavailable, NotFound, UserError
from rag.memory import conversation
from rag.memory.conversation import ConversationMemory
from rag.memory.embedding import marked, rows_of
from rag.memory.history import History, all_phrases
from rag.memory.summariser import ModelReply, Summariser, SummaryCancelled
from rag.memory.summary import Room, summarise
from rag.records import Answer, Citation, ImportedMessage, LineMark, MessageStatus, Verdict
from rag.sessions.store import SqlConversationStore
from rag.tokens import count_tokens
from tests.fakes import HashEmbedder


@pytest.fixture
def store(engine):
    return SqlConversationStore(engine)


def told(session, count, *, start=0):
    said = []
    for number in range(start, start + count):
        said += [
            ImportedMessage("user", f"Where does locker {number} stand?"),
            ImportedMessage("assistant", f"It stands in corridor K{number * 7} [{number + 1}]."),
        ]
    session.append(said, [])


def recalled(remembered, session, question, before):
    with remembered.recalled(session, question, before=before, room=400) as shown:
        return shown.text()


def covered(remembered, session, end):
    return remembered.compact(session, lambda past, last: (end, Room(800, 800)), at_once=True)


def test_a_restart_forgets_nothing(store):
    session = store.create("ada")
    told(session, 30)
    first = ConversationMemory(count_tokens)
    before = recalled(first, session, "Where is locker 3?", 40)

    again = recalled(ConversationMemory(count_tokens), session, "Where is locker 3?", 40)

    assert "corridor K21 [4]" in before
    assert again == before


def ended(session, turn, text):
    session.finish(replace(turn.answer, content=text, status=MessageStatus.COMPLETE))


def test_of_two_answers_that_are_written_at_once_neither_number_is_lost(store):
    session = store.create("ada")
    remembered = ConversationMemory(count_tokens)
    first, second = session.begin("Where is the pump?"), session.begin("Where is the valve?")
    ended(session, second, "The valve is in the hall [2].")
    recalled(remembered, session, "Where is the valve?", 4)
    ended(session, first, "The pump is in the cellar [1].")

    summary = covered(remembered, session, 4)

    assert summary.required_numbers == (1, 2)


def test_a_range_that_is_being_written_is_summarised_as_far_as_it_is_there(store):
    session = store.create("ada")
    told(session, 1)
    session.begin("Where is the valve?")

    summary = ConversationMemory(count_tokens).summarize(session, 0, 4)

    assert (summary.start, summary.end) == (0, 3)
    with pytest.raises(UserError, match="being written"):
        ConversationMemory(count_tokens).summarize(session, 3, 4)


def test_what_is_new_is_read_and_nothing_twice(store, monkeypatch):
    session = store.create("ada")
    told(session, 20)
    remembered = ConversationMemory(count_tokens)
    recalled(remembered, session, "Where is locker 3?", 40)
    told(session, 1, start=20)
    read = []
    said = type(session).bare_messages
    monkeypatch.setattr(
        type(session),
        "bare_messages",
        lambda own, *range: read.extend(found := said(own, *range)) or found,
    )

    text = recalled(remembered, session, "Where is locker 20?", 42)

    assert "corridor K140 [21]" in text
    assert len(read) == 3


def test_what_was_erased_elsewhere_is_recalled_nowhere(store, engine):
    session = store.create("ada")
    told(session, 20)
    turn = session.begin("Where does locker 99 stand?")
    session.finish(replace(turn.answer, content="In the attic.", status=MessageStatus.COMPLETE))
    told(session, 2, start=20)
    here, there = ConversationMemory(count_tokens), ConversationMemory(count_tokens)
    before = [recalled(each, session, "Where is locker 99?", 46) for each in (here, there)]
    assert all("In the attic" in text for text in before)

    SqlConversationStore(engine).open(session.id, owner="ada").erase(turn.answer.index)

    after = [recalled(each, session, "Where is locker 99?", 46) for each in (here, there)]
    assert not any("attic" in text or "locker 99" in text for text in after)
    assert "corridor K21 [4]" in recalled(there, session, "Where is locker 3?", 46)


def test_an_answer_written_anew_takes_the_place_of_the_old(store):
    session = store.create("ada")
    told(session, 3)
    turn = session.begin("Where does locker 99 stand?")
    session.finish(replace(turn.answer, content="In the attic.", status=MessageStatus.COMPLETE))
    remembered = ConversationMemory(count_tokens)
    assert "In the attic" in recalled(remembered, session, "Where is locker 99?", 8)
    covered(remembered, session, 8)

    again = session.begin_again(turn.answer.index)
    session.finish(replace(again.answer, content="In the cellar.", status=MessageStatus.COMPLETE))

    text = recalled(remembered, session, "Where is locker 99?", 8)
    assert "In the cellar" in text
    assert "attic" not in text


def test_an_answer_that_is_being_written_is_not_read(store):
    session = store.create("ada")
    told(session, 3)
    turn = session.begin("Where does locker 99 stand?")
    remembered = ConversationMemory(count_tokens)
    recalled(remembered, session, "Where is locker 99?", 8)

    session.finish(replace(turn.answer, content="In the attic.", status=MessageStatus.COMPLETE))

    assert "In the attic" in recalled(remembered, session, "Where is locker 99?", 8)


def test_nothing_is_found_in_a_session_that_was_deleted_or_is_not_ones_own(store):
    mine, other = store.create("ada"), store.create("eve")
    told(mine, 3)
    told(other, 1, start=50)
    remembered = ConversationMemory(count_tokens)
    recalled(remembered, mine, "Where is locker 1?", 6)

    assert "K350" not in recalled(remembered, mine, "Where is locker 50?", 6)
    mine.delete()

    with pytest.raises(NotFound):
        recalled(remembered, mine, "Where is locker 1?", 6)


def test_summaries_that_were_forgotten_are_not_made_again_of_the_same_turns(store):
    session = store.create("ada")
    told(session, 20)
    remembered = ConversationMemory(count_tokens)
    covered(remembered, session, 20)

    session.forget_summaries()
    again = covered(remembered, session, 30)

    assert (again.start, again.end) == (20, 30)
    assert set(again.required_numbers) == set(range(11, 16))
    assert "corridor K21" in recalled(remembered, session, "Where is locker 3?", 30)


def test_meaning_finds_what_shares_no_word(store):
    session = store.create("ada")
    told(session, 12)
    remembered = ConversationMemory(count_tokens, HashEmbedder())
    remembered.remember(session)

    assert session.without_vectors(before=24, limit=9) == []
    assert "corridor K21" in recalled(remembered, session, "Where is locker 3?", 24)


def test_numbers_stand_in_one_line_by_document():
    past = History(count_tokens)
    past.read("assistant", "It is so [1][2], and so [3].", 9)
    titles = {1: "Manual", 2: "Manual", 3: "List [9]"}

    text = summarise(past, 1, Room(2000, 2000), documents=lambda numbers: titles).text

    assert "\nSources: Manual: [1][2]; List (9): [3]\n" in text


class TestWhatIsOlderThanTheMessagesThatAreHeld:
    """Its words are found by an index in the database, scored as what is held is."""

    QUESTIONS = (
        "Where is locker 3?",
        "Which lockers stand in corridor K14?",
        "What does [5] say?",
        "Does anybody know about lockers?",
    )

    @pytest.fixture(autouse=True)
    def short(self, monkeypatch):
        monkeypatch.setattr(conversation, "NEWEST_MESSAGES", 12)
        monkeypatch.setattr(conversation, "BLOCK", 8)

    def indexed(self, session):
        remembered = ConversationMemory(count_tokens)
        remembered.remember(session)
        return remembered

    def test_is_recalled_as_if_it_were_held(self, any_engine):
        session = SqlConversationStore(any_engine).create("ada")
        told(session, 40)
        whole = ConversationMemory(count_tokens)
        expected = [recalled(whole, session, question, 80) for question in self.QUESTIONS]

        remembered = self.indexed(session)

        for memory in (remembered, ConversationMemory(count_tokens)):
            texts = [recalled(memory, session, question, 80) for question in self.QUESTIONS]
            assert texts == expected
            assert memory.search(session, "Where is locker 3?", 3)[0] in (
                (6, "user", "Where does locker 3 stand?"),
                (7, "assistant", "It stands in corridor K21 [4]."),
            )
        assert session.words_until()[0] == 64

    def test_is_found_by_its_meaning(self, store):
        session = store.create("ada")
        told(session, 40)
        remembered = ConversationMemory(count_tokens, HashEmbedder())
        remembered.remember(session)

        assert session.words_until()[0] == 64
        assert "corridor K21" in recalled(remembered, session, "Where is locker 3?", 80)

    def test_is_told_in_a_summary_that_goes_on_from_the_last_one(self, store):
        session, other = store.create("ada"), store.create("ada")
        told(session, 40)
        told(other, 40)
        covered(self.indexed(session), session, 70)

        summary = covered(ConversationMemory(count_tokens), session, 78)
        expected = covered(ConversationMemory(count_tokens), other, 78)

        assert summary.required_numbers == expected.required_numbers == tuple(range(1, 40))
        assert summary.report.tokens_before == expected.report.tokens_before
        assert summary.report.listed_citations == ()
        assert summary.text == expected.text

    def test_is_read_anew_where_no_summary_tells_of_it(self, store):
        session = store.create("ada")
        told(session, 40)
        self.indexed(session)

        summary = covered(ConversationMemory(count_tokens), session, 78)

        assert summary.required_numbers == tuple(range(1, 40))

    def test_carries_a_models_line(self, store):
        session = store.create("ada")
        lockers(session, 40)
        self.indexed(session)
        remembered = ConversationMemory(
            count_tokens, summariser=Summariser(Scripted(), "scripted", count_tokens)
        )

        summary = remembered.compact(session, lambda *_: (78, Room(4000, 16000)), at_once=False)

        assert {line.mark for line in summary.lines if line.by_model} == {LineMark.WRITTEN}

    def test_leaves_the_database_with_what_is_erased(self, store, engine):
        session = store.create("ada")
        turn = session.begin("Where does locker 99 stand?")
        session.finish(replace(turn.answer, content="In the attic.", status=MessageStatus.COMPLETE))
        told(session, 40)
        remembered = self.indexed(session)
        assert "attic" in recalled(remembered, session, "Where is locker 99?", 82)

        session.erase(turn.answer.index)

        assert session.words_until() == (0, b"")
        for memory in (remembered, self.indexed(session)):
            assert "attic" not in recalled(memory, session, "Where is locker 99?", 82)
            assert "corridor K21 [4]" in recalled(memory, session, "Where is locker 3?", 82)
        assert session.words(["attic"], last=100, most=9) == {}

    def test_goes_with_a_branch_as_far_as_that_shares_it(self, store):
        session = store.create("ada")
        told(session, 40)
        self.indexed(session)

        branch = session.branch(34)

        assert branch.words_until()[0] == 32
        text = recalled(ConversationMemory(count_tokens), branch, "Where is locker 3?", 34)
        assert "corridor K21 [4]" in text
        assert "locker 30" not in recalled(
            ConversationMemory(count_tokens), branch, "Where is locker 30?", 34
        )

    def test_is_not_shared_where_a_branch_may_write_it_anew(self, store):
        session = store.create("ada")
        told(session, 40)
        self.indexed(session)

        branch = session.branch(32)
        remembered = self.indexed(branch)
        recalled(remembered, branch, "Where is locker 3?", 32)
        ended(branch, branch.begin_again(31), "It stands on the roof [300].")

        assert 300 in covered(remembered, branch, 32).required_numbers

    def test_stays_where_it_is_older_than_what_is_erased(self, store):
        session = store.create("ada")
        told(session, 40)
        self.indexed(session)

        session.erase(33)

        assert session.words_until()[0] == 32

    def test_is_written_down_once(self, store):
        session = store.create("ada")
        told(session, 40)
        first, second = ConversationMemory(count_tokens), ConversationMemory(count_tokens)
        expected = recalled(first, session, "Where is locker 3?", 80)
        recalled(second, session, "Where is locker 3?", 80)
        first.remember(session)
        second.remember(session)  # found it there, and holds as little

        assert session.words_until()[0] == 64
        assert recalled(second, session, "Where is locker 3?", 80) == expected
        assert not session.add_words(0, 8, b"", {}, epoch=session.epoch())

    def test_is_asked_for_more_words_than_a_statement_takes(self, store):
        session = store.create("ada")
        told(session, 40)
        self.indexed(session)

        found = session.words([*map("word{}".format, range(900)), "locker"], last=64, most=9)

        assert [*found] == ["locker"]

    def test_of_anybody_else_is_not_there(self, store, engine):
        session = store.create("ada")
        told(session, 40)
        self.indexed(session)
        other = SqlConversationStore(engine).create("eve")
        forged = type(session)(
            engine, replace(other._key, id=session.id), None, lambda owner: None, clock=None
        )

        assert session.words(["locker"], last=64, most=9)
        with pytest.raises(NotFound):
            forged.words(["locker"], last=64, most=9)


AGAINST = all_phrases()["en"].against


def judged(session, question, said, verdict):
    """One more turn, whose one statement has this verdict."""
    turn = session.begin(question)
    cited = Citation(1, said.index("[1]"), said.index("[1]") + 3, verdict)
    answer = Answer(said, (cited,))
    session.finish(replace(turn.answer, content=said, status=MessageStatus.COMPLETE, answer=answer))


class TestAVerdict:
    """A summary takes what was supported first, and nothing that was warned of without a word."""

    RIGHT = "The lamp in the long northern corridor burns for nine hours a night [1]."
    WRONG = "The lamp in the short southern corridor burns for seventy hours a night [1]."

    @pytest.fixture
    def session(self, store):
        return store.create("ada")

    def summary(self, session, room):
        return ConversationMemory(count_tokens).compact(
            session,
            lambda past, last: (session.read().message_count, Room(room, room)),
            at_once=True,
        )

    @pytest.mark.parametrize("against", [Verdict.CONTRADICTED, Verdict.OFF_SUBJECT])
    def test_decides_what_is_quoted_where_there_is_room_for_one(self, session, against):
        judged(session, "How long does the northern one burn?", self.RIGHT, Verdict.SUPPORTED)
        judged(session, "How long does the southern one burn?", self.WRONG, against)

        text = self.summary(session, 85).text

        assert self.RIGHT in text
        assert self.WRONG not in text
        assert AGAINST not in text

    def test_of_a_judge_counts_though_the_answer_was_read_before(self, session):
        judged(session, "How long does the southern one burn?", self.WRONG, Verdict.OPEN)
        remembered = ConversationMemory(count_tokens)
        recalled(remembered, session, "lamp", 2)
        message = session.message(1)
        cited = replace(message.answer.citations[0], verdict=Verdict.CONTRADICTED)
        session.judge(replace(message, answer=replace(message.answer, citations=(cited,))))

        summary = remembered.compact(session, lambda *_: (2, Room(400, 400)), at_once=True)

        assert f"{self.WRONG} ({AGAINST})" in summary.text
        quoted = summary.quotations[-1]
        assert summary.text[quoted.start : quoted.end].endswith(self.WRONG)

    def test_is_told_of_those_alone_that_were_warned_of(self, session):
        judged(session, "How long does the southern one burn?", self.WRONG, Verdict.CONTRADICTED)
        judged(session, "How long does the northern one burn?", self.RIGHT, Verdict.SUPPORTED)

        text = self.summary(session, 600).text

        assert f"{self.WRONG} ({AGAINST})" in text
        assert text.count(AGAINST) == 1


class Scripted:
    """A model that writes, for each message that it is shown, the line it is told to."""

    def __init__(self, gate=None):
        self.shown, self.started, self.gate = [], Event(), gate

    def __call__(self, instructions, text, hang_up):
        self.shown.append(text)
        self.started.set()
        if self.gate is not None:
            hang_up.cuts(self.gate.set)
            assert self.gate.wait(30)
            if hang_up.is_over:
                raise ModelUnavailable("It was broken off.")
        said = re.findall(r"m(\d+) \(assistant\): (The .*)", text)
        return ModelReply("Answered:\n" + "".join(f"- {line} ‖ m{at}\n" for at, line in said))


def lockers(session, count):
    said = []
    for number in range(1, count + 1):
        said += [
            ImportedMessage("user", f"Where is locker {number}?"),
            ImportedMessage(
                "assistant", f"The locker B{number} stands in hall {number} [{number}]."
            ),
        ]
    session.append(said, [])


class TestAModelsLines:
    def test_are_stored_with_their_marks_and_messages(self, store):
        session = store.create("ada")
        lockers(session, 4)
        remembered = ConversationMemory(
            count_tokens, summariser=Summariser(Scripted(), "scripted", count_tokens)
        )

        remembered.compact(session, lambda past, last: (8, Room(800, 1600)), at_once=False)
        summary = session.summaries()[0]

        assert [line.mark for line in summary.lines] == [LineMark.WRITTEN] * 4
        assert [line.messages for line in summary.lines] == [(1,), (3,), (5,), (7,)]
        assert summary.written_to == 8
        assert not remembered.is_due(session.summaries())

    def test_of_other_turns_stay_when_one_is_erased(self, store):
        session = store.create("ada")
        lockers(session, 3)
        turn = session.begin("Where is locker 99?")
        session.finish(
            replace(turn.answer, content="The locker B99 is lost.", status=MessageStatus.COMPLETE)
        )
        model = Scripted()
        remembered = ConversationMemory(
            count_tokens, summariser=Summariser(model, "scripted", count_tokens)
        )
        remembered.compact(session, lambda past, last: (8, Room(800, 1600)), at_once=False)
        assert any("B99" in line.text for line in session.summaries()[0].lines)

        session.erase(turn.answer.index)
        left = session.overview().summaries
        again = remembered.compact(session, lambda past, last: (6, Room(800, 1600)), at_once=True)

        assert all("B99" not in str(each) for each in left)
        assert len(again.model_lines) == 3
        assert "B99" not in again.text
        assert len(model.shown) == 1

    def test_give_way_to_their_owners_question(self, store):
        session = store.create("ada")
        lockers(session, 4)
        model = Scripted(Event())
        remembered = ConversationMemory(
            count_tokens, summariser=Summariser(model, "scripted", count_tokens)
        )
        with ThreadPoolExecutor(1) as pool:
            plan = lambda past, last: (8, Room(800, 1600))  # noqa: E731
            writing = pool.submit(remembered.compact, session, plan, at_once=False)
            assert model.started.wait(30)
            began = time.monotonic()
            assert "hall 3" in recalled(remembered, session, "Where is locker B3?", 8)
            assert time.monotonic() - began < 10  # nobody waits for a lock
            assert remembered.cancel(session)
            with pytest.raises(SummaryCancelled):
                writing.result(timeout=30)

        assert session.summaries() == []
        assert not remembered.cancel(session)

    def test_of_an_older_summary_are_written_after_the_next_answer(self, store):
        session = store.create("ada")
        lockers(session, 4)
        remembered = ConversationMemory(count_tokens)
        covered(remembered, session, 8)
        old = replace(session.summaries()[0], lines=(), text="Numbers given: [1]–[4].")
        ids = [each.id for each in session.summaries()]
        session.add_summary(old, epoch=session.epoch(), replaces=ids)

        assert remembered.is_due(session.summaries())
        covered(remembered, session, 8)
        assert not remembered.is_due(session.summaries())


def test_vectors_of_another_model_of_the_same_size_are_none():
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    stored = marked(rows, "one")

    assert rows_of(stored, "one", 3).tolist() == rows.tolist()
    assert len(rows_of(stored, "another", 3)) == 0
    assert len(rows_of(stored, "one", 4)) == 0
    assert rows_of(rows.reshape(-1), "one", 3).tolist() == rows.tolist()  # of before the mark

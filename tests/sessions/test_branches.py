"""Branches of a conversation: an earlier question is edited, and nothing of before is lost."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy
import pytest
import sqlalchemy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag.citations.register import brought_source
from rag.db import sessions
from rag.errors import Conflict, NotFound, UserError
from rag.records import Answer, Citation, ImportedMessage, MessageStatus, Verdict
from rag.sessions.store import SqlConversationStore
from rag.sessions.transcript import edited, versions_of
from tests.made import made_chunk, made_hit


@pytest.fixture
def store(any_engine):
    return SqlConversationStore(any_engine)


def ask(session, question, *chunks):
    """A turn that is shown these chunks; returns the numbers that they have."""
    turn = session.begin(question)
    hits = [made_hit(made_chunk(name, f"What {name} says.")) for name in chunks]
    numbers = [source.number for source in session.register(hits)]
    text = f"About {question} " + "".join(f"[{n}]" for n in numbers)
    answer = Answer(text=text, citations=[Citation(n, 0, 5, Verdict.SUPPORTED) for n in numbers])
    session.finish(replace(turn.answer, content=text, status=MessageStatus.COMPLETE, answer=answer))
    return numbers


def contents(session):
    return [message.content for message in session.messages()]


@pytest.fixture
def talk(store):
    """Four questions, of which each is shown a document of its own."""
    session = store.create("anna")
    for number, name in enumerate("abcd"):
        ask(session, f"Question {number}?", name)
    return session


class TestABranch:
    def test_has_the_turns_before_the_question_as_they_are(self, talk):
        branch = edited(talk, 2)

        assert branch.messages() == talk.messages(0, 2)
        assert branch.messages()[1].answer.citations[0].verdict is Verdict.SUPPORTED
        read = branch.read()
        assert (read.parent, read.branch_index, read.title) == (talk.id, 2, "Question 0?")
        assert [source.number for source in branch.sources()] == [1]

    def test_goes_on_at_the_same_places_and_leaves_its_parent_as_it_was(self, talk):
        before = talk.messages()
        branch = edited(talk, 2)
        ask(branch, "Another?", "e")

        assert [message.index for message in branch.messages()] == [0, 1, 2, 3]
        assert branch.messages()[3].turn == 1
        assert talk.messages() == before

    def test_gives_no_number_that_another_branch_has_given(self, talk):
        branch = edited(talk, 2)

        assert ask(branch, "Another?", "e") == [5]
        assert ask(talk, "More?", "f") == [6]
        assert ask(branch, "And?", "g", "e") == [7, 5]

    def test_gives_a_chunk_the_number_that_it_has_elsewhere(self, talk):
        branch = edited(talk, 2)

        assert ask(branch, "Another?", "c", "a") == [3, 1]
        assert [source.number for source in branch.sources()] == [1, 3]

    def test_has_no_source_that_only_another_branch_was_shown(self, talk):
        branch = edited(talk, 2)

        assert branch.sources([2, 3, 4]) == []

    def test_survives_its_parent_with_its_turns_and_sources(self, talk, store):
        branch = edited(talk, 4)
        ask(branch, "Another?", "e")
        said, sources = branch.messages(), branch.sources()
        talk.delete()

        assert branch.messages() == said
        assert branch.sources() == sources
        assert (branch.read().parent, branch.read().branch_index) == (None, None)
        assert ask(branch, "And?", "f") == [6]

    def test_keeps_computed_tables_vectors_and_summaries_of_its_turns(self, talk):
        talk.keep_result(1, "table", {"rows": [[1]]})
        talk.save_vectors({0: _vector(), 6: _vector()})
        branch = edited(talk, 2)

        assert branch.result(1) == {"rows": [[1]]}
        assert set(branch.vectors(range(8))) == {0}

    def test_of_what_is_being_written_is_refused(self, talk):
        talk.begin("Still written?")

        with pytest.raises(Conflict, match="being written"):
            talk.branch(10)

    @pytest.mark.parametrize(("index", "error"), [(1, UserError), (8, NotFound)])
    def test_begins_at_a_question_only(self, talk, index, error):
        with pytest.raises(error, match=str(index)):
            edited(talk, index)

    def test_is_its_owners(self, talk, store):
        branch = edited(talk, 2)

        with pytest.raises(NotFound):
            store.open(branch.id, owner="ben")

    def test_takes_no_imported_number_that_stands_for_something_else_in_another(self, talk):
        branch = edited(talk, 2)

        with pytest.raises(Conflict, match=r"\[3\] stands for another source"):
            branch.append([], [brought_source(3, "Other words.", "other.md")])
        branch.append([ImportedMessage("assistant", "So it is [3].")], [])
        assert branch.sources([3]) == []


def _vector():
    return numpy.ones(3, dtype="float32")


class TestVersions:
    def test_are_told_at_the_question_that_was_edited(self, talk):
        first, second = edited(talk, 2), edited(talk, 2)
        ask(first, "One?")
        ask(second, "Two?")
        ask(edited(second, 2), "Three?")

        (versions,) = versions_of(talk.read(), talk.family())

        assert versions.index == 2
        assert len(versions.sessions) == 4
        assert versions.position == 0
        assert versions_of(first.read(), first.family())[0].position == 1

    def test_of_a_branch_of_a_branch_are_told_in_both_places(self, talk):
        branch = edited(talk, 2)
        ask(branch, "One?")
        ask(branch, "Two?")
        deeper = edited(branch, 4)
        ask(deeper, "Three?")

        told = versions_of(deeper.read(), deeper.family())

        assert [(each.index, [one.id for one in each.sessions]) for each in told] == [
            (2, [talk.id, deeper.id]),
            (4, [branch.id, deeper.id]),
        ]

    def test_leave_out_a_branch_in_which_nothing_was_asked(self, talk):
        edited(talk, 2)

        assert versions_of(talk.read(), talk.family()) == []

    def test_stand_in_the_list_once_and_are_found_once(self, talk, store):
        branch = edited(talk, 2)
        ask(branch, "Another?")

        assert [each.id for each in store.sessions("anna", one_version=True)] == [branch.id]
        assert len(store.sessions("anna")) == 2
        assert store.search("anna", "Question 0").total == 2  # the question, and its answer

    def test_are_all_without_what_was_erased(self, talk):
        branch, early = edited(talk, 4), edited(talk, 2)
        ask(branch, "Another?")
        ask(early, "Early?")
        talk.erase(3)

        assert contents(branch)[2:4] == ["", ""]
        assert contents(branch)[0] == "Question 0?"
        assert contents(early)[2] == "Early?"


TREES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.booleans()), max_size=6)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=8
)
@given(TREES)
def test_a_number_means_one_chunk_in_all_branches_whatever_is_deleted(engine, steps):
    store = SqlConversationStore(engine)
    sessions = [store.create("anna")]
    ask(sessions[0], "First?", "0")
    meaning = {}
    for step, (which, turn, deletes) in enumerate(steps):
        session = sessions[which % len(sessions)]
        sessions.append(session.branch(min(2 * turn, session.read().message_count)))
        ask(sessions[-1], f"Step {step}?", f"{step}", f"{turn}")
        ask(session, "More?", f"more {step}")
        _numbers_hold(sessions, meaning)
        if deletes:
            sessions.remove(session)
            session.delete()
        _versions_begin_alike(store, sessions)
    for session in sessions:
        session.delete()


def _numbers_hold(sessions, meaning):
    """Every number is what it was once and for all; a chunk has one; each citation opens."""
    now = {}
    for session in sessions:
        for source in session.sources():
            assert meaning.setdefault(source.number, source.chunk_id) == source.chunk_id
            assert now.setdefault(source.chunk_id, source.number) == source.number
        answers = [message.answer for message in session.messages() if message.answer]
        cited = {citation.number for answer in answers for citation in answer.citations}
        assert len(session.sources(sorted(cited))) == len(cited)


def _versions_begin_alike(store, sessions):
    for session in sessions:
        for versions in versions_of(session.read(), session.family()):
            handles = [store.open(one.id, owner="anna") for one in versions.sessions]
            begins = [handle.messages(0, versions.index) for handle in handles]
            assert all(begin == begins[0] for begin in begins)


def test_the_database_deletes_old_ones_and_their_branches_stay(store, talk):
    branch = edited(talk, 4)
    ask(branch, "Another?")
    with store._engine.begin() as connection:
        old = datetime.now(UTC) - timedelta(days=9)
        connection.execute(
            sqlalchemy.update(sessions).where(sessions.c.id == talk.id).values(last_used_at=old)
        )

    assert store.delete_unused_since(datetime.now(UTC) - timedelta(days=1)) == 1
    assert branch.read().parent is None
    assert len(branch.messages()) == 6

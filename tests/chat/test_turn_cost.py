"""A turn asks the database as often in a long session as in a short one."""

from unittest.mock import patch

import pytest
from sqlalchemy import event

from rag.chat.answers import Answering
from rag.chat.assistant import Assistant, TurnLimits
from rag.chat.context import ContextBuilder, MemoryRules
from rag.chat.follow_ups import FollowUps
from rag.memory.conversation import ConversationMemory
from rag.records import Chunk, Finished, Hit, ImportedMessage
from rag.seams import ModelDelta
from rag.sessions import vector_rows
from rag.sessions.store import SqlConversationStore
from rag.tokens import count_tokens
from tests.fakes import HashEmbedder

NAMES = [f"Nimbus{number}" for number in range(10)]  # each in few messages
MOST_STATEMENTS = (
    22  # one reads what was asked on from; three look for a figure in what the user said
)


class OneSource:
    """A retriever that always finds the same chunk."""

    text = "The weight of all of them is 90 g."

    def search(self, dense_query, within=None, **_):
        chunk = Chunk("c", "d", "a.md", "A", 0, 0, (), "§", self.text, 0, len(self.text))
        return [Hit(chunk, 1.0, self.text, 0, len(self.text), relevance=1.0)]


class Quoting:
    """A writer that says what the source says."""

    name = "quoting"

    reads_context = True

    def write(self, request):
        yield ModelDelta(f"{request.sources[0].text[:-1]} {request.sources[0].marker}.")

    def declined(self, text):
        return False


@pytest.fixture
def memory():
    return ContextBuilder(
        ConversationMemory(count_tokens, HashEmbedder()),
        rules=MemoryRules(),
        window=lambda: 2000,
        count=count_tokens,
    )


@pytest.fixture
def assistant(memory):
    answering = Answering(Quoting())
    return Assistant(OneSource(), FollowUps(), memory, answering, limits=TurnLimits())


def session_of(store, memory, turns):
    """A session of so many turns, embedded and compacted, whose source is registered."""
    session = store.create("ada")
    session.append(
        [
            message
            for n in range(turns)
            for message in (
                ImportedMessage("user", f"What is the weight of the {NAMES[n % 10]}?"),
                ImportedMessage("assistant", f"The {NAMES[n % 10]} weighs {n} g."),
            )
        ],
        [],
    )
    said = session.said()
    vectors = HashEmbedder().embed([message.content for message in said])
    session.save_vectors({message.index: row for message, row in zip(said, vectors, strict=True)})
    session.register(OneSource().search(""))
    memory.compact(session)
    return session


def statements_of(engine, call):
    asked = []

    def note(_connection, _cursor, statement, *_rest):
        asked.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    call()
    event.remove(engine, "before_cursor_execute", note)
    return asked


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("What about the Nimbus0?", id="a word of few messages"),
        pytest.param("What about zeppelins?", id="a word that nobody said"),
    ],
)
def test_a_turn_takes_as_many_statements_at_400_turns_as_at_20(
    any_engine, memory, assistant, question
):
    counted = {}
    for turns in (20, 400):
        session = session_of(SqlConversationStore(any_engine), memory, turns)
        list(assistant.ask(session, "Good morning"))
        counted[turns] = statements_of(any_engine, answering(assistant, session, question))

    assert len(counted[400]) <= len(counted[20]) <= MOST_STATEMENTS


def test_words_that_every_message_holds_take_few_statements_more(any_engine, memory, assistant):
    session = session_of(SqlConversationStore(any_engine), memory, 400)

    asked = statements_of(any_engine, answering(assistant, session, "Weight of the Nimbus0?"))

    assert len(asked) <= MOST_STATEMENTS


def test_no_turn_lists_what_is_embedded_anew(any_engine, memory, assistant):
    session = session_of(SqlConversationStore(any_engine), memory, 400)
    list(assistant.ask(session, "Good morning"))

    with patch.object(vector_rows, "found", wraps=vector_rows.found) as read:
        list(assistant.ask(session, "What about the Nimbus0?"))

    assert len(read.mock_calls) == 2  # what is newer, and how many are older


def answering(assistant, session, question):
    def ask():
        assert isinstance(list(assistant.ask(session, question))[-1], Finished)

    return ask

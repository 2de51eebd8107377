"""A turn asks the database as often, and reads as much, in a long session as in a short one."""

from functools import partial
from unittest.mock import patch

import pytest
from sqlalchemy import CursorResult, event

from rag.chat.answers import Answering
from rag.chat.assistant import Assistant, TurnLimits
from rag.chat.context import ContextBuilder, MemoryRules
from rag.chat.follow_ups import FollowUps
from rag.memory import conversation
from rag.memory.conversation import ConversationMemory
from rag.records import Chunk, Finished, Hit, ImportedMessage
from rag.seams import ModelDelta
from rag.sessions import rows
from rag.sessions.store import SqlConversationStore
from rag.tokens import count_tokens
from tests.fakes import HashEmbedder

NAMES = [f"Nimbus{number}" for number in range(10)]  # each in few messages
MOST_STATEMENTS = (
    22  # one reads what was asked on from; three look for a figure in what the user said
)
# Of what is older than the messages that are held: its words, vectors, and what they lead to.
MOST_OLDER_STATEMENTS = 6


class OneSource:
    """A retriever that always finds the same chunk."""

    text = "The weight of all of them is 90 g."

    def search(self, query, readable=None, **_):
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
    return memory_of()


def memory_of():
    return ContextBuilder(
        ConversationMemory(count_tokens, HashEmbedder()),
        rules=MemoryRules(),
        window=lambda: 2000,
        count=count_tokens,
    )


@pytest.fixture
def assistant(memory):
    return assistant_of(memory)


def assistant_of(memory):
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
    said = session.bare_messages()
    vectors = HashEmbedder().embed([message.content for message in said])
    session.save_vectors({message.index: row for message, row in zip(said, vectors, strict=True)})
    session.register(OneSource().search(""))
    memory.compact(session)
    return session


def statements_of(engine, call, asked=None):
    asked = [] if asked is None else asked

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

    assert len(counted[20]) <= MOST_STATEMENTS
    assert len(counted[400]) <= len(counted[20]) + MOST_OLDER_STATEMENTS


@pytest.fixture
def rows_read(monkeypatch):
    """How many rows whatever is called reads of the database."""
    read = []
    fetched = CursorResult.all
    monkeypatch.setattr(
        CursorResult, "all", lambda result: read.append(len(rows := fetched(result))) or rows
    )

    def of(call):
        read.clear()
        call()
        return sum(read)

    return of


@pytest.fixture
def holds_little(monkeypatch):
    for name, number in {"NEWEST_MESSAGES": 40, "BLOCK": 20, "MOST_BLOCKS": 2}.items():
        monkeypatch.setattr(conversation, name, number)
    monkeypatch.setattr("rag.memory.summary.MOST_MESSAGES", 16)


@pytest.mark.usefixtures("holds_little")
@pytest.mark.parametrize("is_new_process", [False, True])
def test_a_turn_reads_no_more_of_a_talk_that_is_five_times_as_long(
    any_engine, rows_read, is_new_process
):
    rows, statements = [], []
    for turns in (60, 300):
        session = session_of(SqlConversationStore(any_engine), memory_of(), turns)
        assistant = assistant_of(memory_of())
        if not is_new_process:
            list(assistant.ask(session, "Good morning"))
        ask = answering(assistant, session, "Weight of the Nimbus0?")
        statements.append([])
        rows.append(rows_read(partial(statements_of, any_engine, ask, statements[-1])))

    assert rows[1] <= 1.2 * rows[0]
    assert len(statements[1]) <= len(statements[0]) + 1


@pytest.mark.usefixtures("holds_little")
def test_a_compaction_reads_no_more_of_a_talk_that_is_five_times_as_long(any_engine, rows_read):
    rows = []
    for turns in (100, 500):
        session = session_of(SqlConversationStore(any_engine), memory_of(), turns)
        memory = memory_of()
        for number in range(8):
            list(assistant_of(memory).ask(session, f"And the Nimbus{number}?"))
        rows.append(rows_read(partial(memory.compact, session)))

    assert rows[1] <= 1.2 * rows[0]


def test_words_that_every_message_holds_take_few_statements_more(any_engine, memory, assistant):
    session = session_of(SqlConversationStore(any_engine), memory, 400)

    asked = statements_of(any_engine, answering(assistant, session, "Weight of the Nimbus0?"))

    assert len(asked) <= MOST_STATEMENTS + MOST_OLDER_STATEMENTS


def test_no_turn_lists_what_is_embedded_anew(any_engine, memory, assistant):
    session = session_of(SqlConversationStore(any_engine), memory, 400)
    list(assistant.ask(session, "Good morning"))

    with patch.object(rows, "fetch_rows", wraps=rows.fetch_rows) as read:
        list(assistant.ask(session, "What about the Nimbus0?"))

    statements = [str(call.args[2]) for call in read.mock_calls]
    # What is newer, how many are older, of what words lead to.
    assert sum("message_vectors" in statement for statement in statements) == 3


def answering(assistant, session, question):
    def ask():
        assert isinstance(list(assistant.ask(session, question))[-1], Finished)

    return ask

"""What a model would be sent, without one and without a trace."""

import pytest

from rag.records import ContextConfig, ImportedMessage
from tests.applications import application_over

FILES = {"refunds.md": "# Refunds\n\nRefunds are paid within five working days."}


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    with application_over(tmp_path_factory.mktemp("data"), FILES) as application:
        yield application


@pytest.fixture
def session(application):
    """Twelve turns that no document holds, in a small window."""
    session = application.store.create("ann", config=ContextConfig(max_tokens=4000))
    said = []
    for number in range(12):
        said += [
            ImportedMessage("user", f"Where does locker {number} stand?"),
            ImportedMessage("assistant", f"Locker {number} stands in corridor K{number * 7}."),
        ]
    session.append(said, [])
    return session


def sent(application, session, question):
    return application.assistant.preview(session, question)


def test_a_forced_compaction_keeps_the_newest_turn_alone(application, session):
    report = application.assistant.compact(session, keep_turns=1)

    assert report is not None
    _, *said = application.assistant.context_messages(session)
    assert [message.content for message in said] == [
        "Where does locker 11 stand?",
        "Locker 11 stands in corridor K77.",
    ]


def test_a_preview_holds_what_was_said_long_ago(application, session):
    application.assistant.compact(session, keep_turns=1)

    messages = sent(application, session, "Where does locker 2 stand?")

    assert "corridor K14" in "\n".join(message.content for message in messages)
    assert messages[-1].content.endswith("Where does locker 2 stand?")


def test_a_preview_stores_nothing(application, session):
    before = session.read(), session.summaries(), session.messages()

    sent(application, session, "How long do refunds take?")

    after = session.read(), session.summaries(), session.messages()
    assert after == before

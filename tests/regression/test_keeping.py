"""A session becomes a conversation file that passes, and fails once the answers change."""

import json

import pytest

from rag.records import ImportedMessage
from rag.regression.script import read_script
from rag.render.export import as_conversation, figures_of
from tests.applications import app_of, application_over
from tests.regression.scripts import FILES, documents_in, replaying

QUESTIONS = (
    "How long do refunds take?",
    "And from abroad?",
    "Which product has the highest price_eur?",
    "How long do refunds take?",
)


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    with application_over(tmp_path_factory.mktemp("data"), FILES) as application:
        yield application


@pytest.fixture(scope="module")
def session(application):
    session = application.store.create("local", title="Refunds & prices")
    session.append(
        [ImportedMessage("user", "Who am I?"), ImportedMessage("assistant", "You are Ann.")], []
    )
    for question in QUESTIONS:
        list(application.assistant.ask(session, question))
    return session


@pytest.fixture
def kept(session):
    return as_conversation(session)


def test_what_was_seen_is_what_must_hold_again(kept):
    brought, first, second, third, again, compress = kept["turns"]

    assert brought["import"][1]["content"] == "You are Ann."
    assert first["cites"][0] == "refunds.md"
    assert first["says"]
    assert second["follow_up"] is True
    assert third["computes"] == "€240"
    assert again["same_number_as"] == {"turn": 2, "source": "refunds.md"}
    assert compress["keeps_sources_of"] == [2, 4]


def test_it_passes_over_the_same_documents_and_fails_over_others(kept, tmp_path):
    documents_in(tmp_path / "documents")
    path = tmp_path / "kept.conversation.json"
    path.write_text(json.dumps(kept))
    read_script(path)

    with replaying(tmp_path) as replayer:
        replay = replayer.replay(path)
        assert (replay.error, replay.failures) == ("", ())
        (tmp_path / "documents" / "prices.csv").write_text("product,price_eur\nNimbus 7,120\n")
    with replaying(tmp_path) as replayer:
        assert replayer.replay(path).failures


def test_the_page_leads_to_it(application, session):
    client = app_of(application).test_client()

    page = client.get(f"/sessions/{session.id}/settings").get_data(as_text=True)
    answer = client.get(f"/api/v1/sessions/{session.id}/export?format=test")

    assert "Keep as a test" in page
    assert answer.headers["Content-Disposition"].endswith('refunds-prices.conversation.json"')
    assert answer.get_json()["turns"][1]["ask"] == QUESTIONS[0]


def test_figures_are_taken_with_their_units_from_what_cites():
    text = "It weighs 410 g [1] and costs 12.50 EUR [2].\n\nMore than 99 others."

    assert figures_of(text) == ["410 g", "12.50 EUR"]

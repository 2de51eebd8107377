"""What is deleted through one process of a fleet is recalled by none of the others."""

import pytest

from rag.errors import NotFound
from rag.settings import Settings
from rag.wiring.application import build
from tests.applications import app_of, application_of
from tests.fakes import HashEmbedder

SECRET, KEPT = "The safe opens with 4711.", "The attic key hangs behind the clock."


@pytest.fixture
def fleet(tmp_path):
    """Two whole applications over one database."""
    settings = Settings(data_dir=tmp_path)
    both = application_of(settings), build(settings, embedder=HashEmbedder())
    yield both
    for each in both:
        each.stop()


def told(client, *texts):
    """A conversation over the Responses API: its session, and the responses."""
    said, before = [], {}
    for text in texts:
        body = {"model": "groundnote", "input": text} | before
        said.append(client.post("/v1/responses", json=body).get_json())
        before = {"previous_response_id": said[-1]["id"]}
    return said[0]["session_id"], said


def recalled(application, session, question):
    with application.remembered.recalled(session, question, before=6, room=400) as shown:
        return shown.text()


def test_a_response(fleet):
    here, there = fleet
    client = app_of(here).test_client()
    session_id, said = told(client, KEPT, SECRET, "And what of the cellar?")
    opened = [each.store.open(session_id, owner="local") for each in fleet]
    for application, session in zip(fleet, opened, strict=True):
        assert "4711" in recalled(application, session, "How does the safe open?")

    client.delete(f"/v1/responses/{said[1]['id']}")

    for application, session in zip(fleet, opened, strict=True):
        assert "4711" not in recalled(application, session, "How does the safe open?")
        found = application.remembered.search(session, "4711 safe", 9)
        assert not any("4711" in text for _at, _role, text in found)
    assert KEPT in recalled(there, opened[1], "Where is the attic key?")


def test_a_session(fleet):
    here, there = fleet
    client = app_of(here).test_client()
    session_id, _said = told(client, KEPT, SECRET, "And what of the cellar?")
    session = there.store.open(session_id, owner="local")
    assert "4711" in recalled(there, session, "How does the safe open?")

    client.delete(f"/api/v1/sessions/{session_id}")

    with pytest.raises(NotFound):
        recalled(there, session, "How does the safe open?")


def test_what_a_context_had_summarised(fleet):
    here, there = fleet
    client = app_of(here).test_client()
    session_id, _said = told(client, KEPT, SECRET, "And what of the cellar?")
    session = there.store.open(session_id, owner="local")
    there.assistant.compact(session, keep_turns=0)
    assert "4711" in "".join(each.text for each in session.summaries())

    client.delete(f"/api/v1/sessions/{session_id}/context")

    there.assistant.compact(session, keep_turns=0)
    assert "4711" not in "".join(each.text for each in session.summaries())
    assert "4711" in recalled(there, session, "How does the safe open?")  # it was said, and stays

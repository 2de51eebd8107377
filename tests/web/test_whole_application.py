"""The web edge over the real application: SQLite, Chroma, extractive answers."""

import json
import time
from io import BytesIO

import pytest

from rag.settings import Settings
from tests.applications import application_of
from tests.web.conftest import events_of

MANUAL = b"""# Aero 5 manual

## Weight

The Aero 5 weighs 120 g. The Aero 5 Pro weighs 140 g.

## Battery

The battery of the Aero 5 lasts 30 hours at medium volume.
"""


@pytest.fixture
def application(tmp_path):
    built = application_of(Settings(data_dir=tmp_path))
    yield built
    built.stop()


@pytest.fixture
def library(application, client):
    response = client.post(
        "/api/v1/documents", data={"file": [(BytesIO(MANUAL), "manuals/aero.md")]}
    )
    assert response.status_code == 202
    application.jobs.run_waiting()
    job = client.get(f"/api/v1/jobs/{response.get_json()['jobs'][0]['id']}").get_json()
    assert (job["state"], job["error"]) == ("done", None)
    return client.get("/api/v1/documents").get_json()["documents"]


def ask(client, session_id, question, **headers):
    url = f"/api/v1/sessions/{session_id}/messages"
    return client.post(url, json={"content": question}, headers=headers)


@pytest.mark.parametrize(
    "repeated", [".", "-", *(pytest.param(each, marks=pytest.mark.slow) for each in "…?")]
)
def test_what_says_nothing_many_times_costs_next_to_nothing(
    application, client, session_id, repeated
):
    body = b"# Aero\n\nIt weighs 120 g. " + 19_000 * repeated.encode()
    question = "How heavy is the Aero" + 19_000 * repeated
    ask(client, session_id, "What is first loads what is needed?")
    begun = time.process_time()

    files = [(BytesIO(body), f"dots.{ending}") for ending in ("md", "txt", "html", "csv")]
    client.post("/api/v1/documents", data={"file": files})
    application.jobs.run_waiting()
    answer = ask(client, session_id, question)
    page = client.get(f"/sessions/{session_id}")

    assert (answer.status_code, page.status_code) == (200, 200)
    assert time.process_time() - begun < 3


def test_a_document_is_uploaded_found_cited_and_deleted(client, library, session_id):
    assert [document["name"] for document in library] == ["manuals/aero.md"]
    hits = client.post("/api/v1/search", json={"query": "weight of the Aero 5"}).get_json()["hits"]
    assert hits[0]["document"] == "manuals/aero.md"

    answer = ask(client, session_id, "How much does the Aero 5 weigh?").get_json()

    assert "120 g" in answer["content"]
    assert answer["citations"]
    for citation in answer["citations"]:
        assert f"[{citation['n']}]" == answer["content"][citation["start"] : citation["end"]]
    number = answer["citations"][0]["n"]
    source_url = f"/api/v1/sessions/{session_id}/sources/{number}"
    assert client.get(source_url).get_json()["state"] == "current"

    assert client.delete(f"/api/v1/documents/{library[0]['id']}").status_code == 204
    source = client.get(source_url).get_json()
    assert source["state"] == "deleted"
    assert "Aero 5" in source["text"]
    assert client.post("/api/v1/search", json={"query": "weight"}).get_json()["hits"] == []


def test_a_stream_says_the_same_as_the_stored_answer(client, library, session_id):
    response = ask(
        client, session_id, "How long does the battery last?", Accept="text/event-stream"
    )

    events = events_of(response)
    names = [name for name, _ in events]
    assert names[:2] == ["resolved", "sources"]
    assert names[-1] == "final"
    final = json.loads(events[-1][1])
    stored = client.get(f"/api/v1/sessions/{session_id}/messages/1").get_json()
    assert final["content"] == stored["content"]
    assert "30 hours" in final["content"]


def test_the_context_holds_the_conversation(client, library, session_id):
    ask(client, session_id, "How much does the Aero 5 weigh?")

    context = client.get(f"/api/v1/sessions/{session_id}/context").get_json()

    assert {"messages", "tokens", "budget", "is_compressed", "original_messages", "kept"} <= (
        context["stats"].keys()
    )
    assert context["stats"]["tokens"] <= context["stats"]["budget"]
    assert any("How much" in message["content"] for message in context["messages"])


@pytest.mark.parametrize("question", ["[99]" * 50, "<b>weight</b>", "¿?", "a" * 20_001])
def test_odd_questions_get_an_answer_or_a_clear_refusal(client, library, session_id, question):
    response = ask(client, session_id, question)

    assert response.status_code in (200, 413)
    if response.status_code == 200:
        assert "[99]" not in response.get_json()["content"]
    else:
        assert "20,001" in response.get_json()["detail"]


def test_a_long_conversation_is_compacted_and_keeps_its_citations(client, library, session_id):
    client.put(
        f"/api/v1/sessions/{session_id}", json={"context_config": {"recent_message_count": 2}}
    )
    for _ in range(4):
        assert ask(client, session_id, "How much does the Aero 5 weigh?").status_code == 200

    compacted = client.post(f"/api/v1/sessions/{session_id}/compact").get_json()

    assert compacted["compacted"] is True
    report = compacted["report"]
    assert report["citations_kept"] == report["citations_required"] > 0
    summaries = client.get(f"/api/v1/sessions/{session_id}/summaries").get_json()["summaries"]
    assert "[1]" in summaries[0]["text"]
    forgotten = client.delete(f"/api/v1/sessions/{session_id}/context").get_json()
    assert forgotten["forgotten"] == 1


def test_a_range_is_summarised_on_request(client, library, session_id):
    ask(client, session_id, "How much does the Aero 5 weigh?")
    url = f"/api/v1/sessions/{session_id}/summaries"

    made = client.post(url, json={"start": 0, "end": 2})
    beyond = client.post(url, json={"start": 0, "end": 99})

    assert made.status_code == 201
    assert "[1]" in made.get_json()["text"]
    assert beyond.status_code in (400, 404)


def test_an_openai_client_keeps_its_numbers(client, library):
    messages = [{"role": "user", "content": "How much does the Aero 5 weigh?"}]
    first = client.post("/v1/chat/completions", json={"messages": messages}).get_json()
    messages += [
        first["choices"][0]["message"],
        {"role": "user", "content": "How long does its battery last?"},
    ]

    second = client.post("/v1/chat/completions", json={"messages": messages}).get_json()

    assert second["session_id"] == first["session_id"]
    numbers = {source["chunk_id"]: source["n"] for source in first["sources"]}
    for source in second["sources"]:
        assert numbers.get(source["chunk_id"], source["n"]) == source["n"]


def test_the_server_is_ready(application, client):
    assert client.get("/readyz").status_code == 503
    application.warm_up()
    assert client.get("/readyz").get_json()["status"] == "ready"


def test_a_broken_file_fails_its_job_with_the_reason(application, client):
    response = client.post("/api/v1/documents", data={"file": [(BytesIO(b""), "empty.pdf")]})
    application.jobs.run_waiting()

    job = client.get(f"/api/v1/jobs/{response.get_json()['jobs'][0]['id']}").get_json()

    assert job["state"] == "failed"
    assert "empty.pdf" in job["error"]

import io
import json
import logging
import re

import pytest

from rag.errors import ModelUnavailable
from tests.web.conftest import events_of


class TestAsking:
    def test_gives_the_finished_answer(self, asked, session_id):
        assert asked["content"] == "It weighs 120 g [1]."
        assert (asked["index"], asked["role"], asked["status"]) == (1, "assistant", "complete")
        citation = asked["citations"][0]
        assert asked["content"][citation["start"] : citation["end"]] == "[1]"
        assert (citation["n"], citation["verdict"]) == (1, "supported")
        assert [source["n"] for source in asked["sources"]] == [1]
        assert asked["resolved_query"] == "How heavy is the Aero 5?"
        assert asked["is_followup"] is False
        assert asked["context"]["tokens"] == 40
        assert asked["usage"] == {"prompt_tokens": 12, "completion_tokens": 5}
        assert asked["session_id"] == session_id

    def test_streams_the_events_in_order(self, client, session_id):
        response = client.post(
            f"/api/v1/sessions/{session_id}/messages",
            json={"content": "How heavy?"},
            headers={"Accept": "text/event-stream"},
        )

        events = events_of(response)
        assert response.mimetype == "text/event-stream"
        assert response.headers["X-Accel-Buffering"] == "no"
        assert response.headers["Cache-Control"] == "no-store"
        names = [name for name, _ in events]
        assert names == ["resolved", "sources", "delta", "delta", "delta", "cited", "final"]
        deltas = [json.loads(data)["text"] for name, data in events if name == "delta"]
        assert "".join(deltas) == json.loads(events[-1][1])["content"]

    @pytest.mark.parametrize(
        ("body", "status"),
        [
            pytest.param({"content": ""}, 422, id="empty"),
            pytest.param({"content": " \n\t"}, 422, id="only blanks"),
            pytest.param({}, 422, id="missing"),
            pytest.param({"content": None}, 422, id="null"),
            pytest.param({"content": 5}, 422, id="a number"),
            pytest.param({"content": ["a"]}, 422, id="a list"),
            pytest.param({"content": "a", "model": "b"}, 422, id="unknown field"),
            pytest.param({"content": "a" * 200_001}, 422, id="far too long"),
            pytest.param([], 400, id="a list for a body"),
            pytest.param("text", 400, id="a text for a body"),
        ],
    )
    def test_refuses_a_wrong_body(self, client, session_id, body, status):
        response = client.post(f"/api/v1/sessions/{session_id}/messages", json=body)

        assert response.status_code == status
        assert response.mimetype == "application/problem+json"
        assert client.get(f"/api/v1/sessions/{session_id}").get_json()["message_count"] == 0

    @pytest.mark.parametrize(
        ("data", "content_type", "status", "said"),
        [
            pytest.param(b'{"content": ', "application/json", 400, "valid JSON", id="broken"),
            pytest.param(b"\xff\xfe{}", "application/json", 400, "valid JSON", id="not UTF-8"),
            pytest.param(b"content=x", "text/plain", 415, "text/plain", id="plain text"),
            pytest.param(b"{}", "", 415, "no stated kind", id="no content type"),
            pytest.param(b"[" * 100_000, "application/json", 400, "JSON", id="deeply nested"),
        ],
    )
    def test_says_what_is_wrong_with_a_body(
        self, client, session_id, data, content_type, status, said
    ):
        url = f"/api/v1/sessions/{session_id}/messages"
        response = client.post(url, data=data, content_type=content_type)

        assert response.status_code == status
        assert said in response.get_json()["detail"]

    @pytest.mark.parametrize(
        "question",
        ["[99]" * 1000, "<script>alert(1)</script>", "a\x00b", "\ud800 half", "'; DROP TABLE"],
        ids=["markers", "HTML", "NUL", "surrogate", "SQL"],
    )
    def test_takes_odd_questions_as_words(self, client, session_id, question):
        url = f"/api/v1/sessions/{session_id}/messages"

        response = client.post(url, json={"content": question})

        assert response.status_code == 200
        kept = client.get(url).get_json()["messages"][0]["content"]
        assert kept == question.replace("\x00", "\ufffd").replace("\ud800", "\ufffd")

    def test_names_the_models_fault_and_keeps_the_question(self, application, client, session_id):
        application.assistant.failure = ModelUnavailable("No model server at http://x.")
        url = f"/api/v1/sessions/{session_id}/messages"

        response = client.post(url, json={"content": "How heavy?"})

        assert response.status_code == 503
        problem = response.get_json()
        assert problem["type"] == "urn:groundnote:problem:model-unavailable"
        assert (problem["detail"], problem["index"]) == ("No model server at http://x.", 1)
        assert client.get(url).get_json()["messages"][0]["content"] == "How heavy?"

    def test_a_surprise_is_for_the_log_alone_one_object_in_one_line(
        self, application, client, session_id, monkeypatch
    ):
        application.assistant.surprise = RuntimeError("secret path /srv/keys")
        written = io.StringIO()
        handler = logging.getLogger("rag.web.problems").handlers[-1]
        monkeypatch.setattr(handler, "stream", written)

        url = f"/api/v1/sessions/{session_id}/messages"
        response = client.post(url, json={"content": "How heavy is A?"})

        assert response.status_code == 500
        assert not re.search("secret|Traceback", response.get_data(as_text=True))
        event = json.loads(written.getvalue())
        assert written.getvalue().count("\n") == 1
        assert (event["event"], event["error"], event["level"]) == (
            "request failed",
            "RuntimeError",
            "error",
        )
        assert "Traceback" in event["exception"]
        assert "How heavy is A?" not in written.getvalue()

    @pytest.mark.parametrize(
        ("error", "status"),
        [(ModelUnavailable("It is away."), 503), (RuntimeError("secret"), 500)],
    )
    def test_ends_a_stream_with_an_error(self, application, client, session_id, error, status):
        application.assistant.surprise = error

        response = client.post(
            f"/api/v1/sessions/{session_id}/messages",
            json={"content": "How heavy?"},
            headers={"Accept": "text/event-stream"},
        )

        name, data = events_of(response)[-1]
        assert name == "error"
        assert json.loads(data)["status"] == status
        assert "secret" not in data

    def test_of_an_unknown_session_is_refused_before_the_stream(self, client):
        response = client.post(
            f"/api/v1/sessions/{'0' * 32}/messages",
            json={"content": "a"},
            headers={"Accept": "text/event-stream"},
        )

        assert response.status_code == 404
        assert response.mimetype == "application/problem+json"


class TestRegenerating:
    def test_adds_a_revision(self, client, session_id, asked):
        url = f"/api/v1/sessions/{session_id}/messages/1/regenerate"

        answer = client.post(url).get_json()

        assert (answer["index"], answer["revision"]) == (1, 1)

    @pytest.mark.parametrize(("index", "status"), [("0", 404), ("7", 404), ("-1", 422), ("x", 422)])
    def test_refuses_what_is_no_last_answer(self, client, session_id, asked, index, status):
        url = f"/api/v1/sessions/{session_id}/messages/{index}/regenerate"

        assert client.post(url).status_code == status


class TestTranscript:
    def test_is_read_in_ranges(self, client, session_id, asked):
        url = f"/api/v1/sessions/{session_id}/messages"

        whole = client.get(url).get_json()
        second = client.get(f"{url}?start=1&end=2").get_json()

        assert [message["role"] for message in whole["messages"]] == ["user", "assistant"]
        assert whole["total"] == 2
        assert [message["index"] for message in second["messages"]] == [1]

    @pytest.mark.parametrize("query", ["start=-1", "start=2&end=1", "end=x", f"start={2**40}"])
    def test_refuses_a_wrong_range(self, client, session_id, query):
        response = client.get(f"/api/v1/sessions/{session_id}/messages?{query}")

        assert response.status_code == 422

    def test_gives_one_message(self, client, session_id, asked):
        url = f"/api/v1/sessions/{session_id}/messages"

        assert client.get(f"{url}/1").get_json()["content"] == asked["content"]
        assert client.get(f"{url}/2").status_code == 404


class TestImport:
    def test_keeps_numbers_roles_and_sources(self, client, session_id):
        messages = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "How heavy?"},
            {"role": "assistant", "content": "120 g [2]."},
            {"role": "tool", "content": None},
        ]
        sources = [{"n": 2, "text": "It weighs 120 g.", "document": "old.md"}]

        response = client.post(
            f"/api/v1/sessions/{session_id}/import",
            json={"messages": messages, "sources": sources},
        )

        assert response.get_json() == {"start": 0, "end": 4}
        kept = client.get(f"/api/v1/sessions/{session_id}/sources").get_json()["sources"]
        assert [(source["n"], source["document"]) for source in kept][1] == (2, "old.md")
        answer = client.get(f"/api/v1/sessions/{session_id}/messages/2").get_json()
        assert [(c["n"], c["verdict"]) for c in answer["citations"]] == [(2, "open")]

    def test_takes_an_export_as_it_is(self, client, session_id, asked):
        exported = client.get(f"/api/v1/sessions/{session_id}/export?format=json").get_json()
        other = client.post("/api/v1/sessions", json={}).get_json()["id"]

        response = client.post(f"/api/v1/sessions/{other}/import", json=exported)

        assert response.status_code == 201
        again = client.get(f"/api/v1/sessions/{other}/export?format=json").get_json()
        assert again["sources"] == exported["sources"]
        assert [(m["role"], m["content"]) for m in again["messages"]] == [
            (m["role"], m["content"]) for m in exported["messages"]
        ]

    @pytest.mark.parametrize(
        "body",
        [
            pytest.param({"messages": []}, id="nothing"),
            pytest.param({"messages": [{"role": "user"}]}, id="no content"),
            pytest.param({"messages": [{"role": "", "content": "a"}]}, id="no role"),
            pytest.param({"messages": "a"}, id="a text"),
            pytest.param(
                {
                    "messages": [{"role": "user", "content": "a"}],
                    "sources": [{"n": 1, "text": "a"}, {"n": 1, "text": "b"}],
                },
                id="a number twice",
            ),
            pytest.param(
                {
                    "messages": [{"role": "user", "content": "a"}],
                    "sources": [
                        {"n": 1, "text": "a", "chunk_id": "c"},
                        {"n": 2, "text": "b", "chunk_id": "c"},
                    ],
                },
                id="a chunk twice",
            ),
            pytest.param(
                {
                    "messages": [{"role": "user", "content": "a"}],
                    "sources": [{"n": 0, "text": "a"}],
                },
                id="number zero",
            ),
        ],
    )
    def test_refuses_a_broken_transcript(self, client, session_id, body):
        response = client.post(f"/api/v1/sessions/{session_id}/import", json=body)

        assert response.status_code == 422
        assert client.get(f"/api/v1/sessions/{session_id}").get_json()["message_count"] == 0

    def test_refuses_a_source_that_the_session_has_under_another_number(
        self, client, session_id, asked
    ):
        body = {
            "messages": [{"role": "user", "content": "a"}],
            "sources": [{"n": 3, "text": "a", "chunk_id": "chunk-1"}],
        }

        response = client.post(f"/api/v1/sessions/{session_id}/import", json=body)

        assert response.status_code == 409

    def test_refuses_a_number_that_stands_for_another_text(self, client, session_id):
        answer = {"role": "assistant", "content": "It weighs 3 kg [2]."}

        def bring(text):
            body = {"messages": [answer], "sources": [{"n": 2, "document": "a.md", "text": text}]}
            return client.post(f"/api/v1/sessions/{session_id}/import", json=body).status_code

        assert bring("It weighs 3 kg.") == bring("It weighs 3 kg.") == 201
        assert bring("It weighs 9 kg.") == 409


class TestContext:
    def test_shows_what_would_be_sent(self, client, session_id, asked):
        context = client.get(f"/api/v1/sessions/{session_id}/context").get_json()

        assert [message["role"] for message in context["messages"]] == ["user", "assistant"]
        assert context["stats"]["tokens"] == 7

    def test_is_compacted_on_request(self, client, session_id, asked):
        compacted = client.post(f"/api/v1/sessions/{session_id}/compact").get_json()

        assert compacted["compacted"] is True
        assert compacted["report"]["citations_kept"] == 1

    def test_has_nothing_to_compact_in_the_beginning(self, client, session_id):
        compacted = client.post(f"/api/v1/sessions/{session_id}/compact").get_json()

        assert compacted == {"compacted": False, "report": None}

    def test_keeps_summaries_made_on_request_beside_the_messages(self, client, session_id, asked):
        url = f"/api/v1/sessions/{session_id}/summaries"

        made = client.post(url, json={"start": 0, "end": 2})

        assert made.status_code == 201
        assert made.get_json()["required_numbers"] == [1]
        listed = client.get(url).get_json()
        assert [summary["text"] for summary in listed["requested"]] == [made.get_json()["text"]]

    @pytest.mark.parametrize(
        ("range_", "status"),
        [
            ({"start": 0, "end": 0}, 422),
            ({"start": 2, "end": 1}, 422),
            ({"start": -1, "end": 1}, 422),
            ({"start": 0}, 422),
            ({"start": 0, "end": "2"}, 422),
            ({"start": 0, "end": 9}, 400),
        ],
    )
    def test_refuses_a_summary_of_a_wrong_range(self, client, session_id, asked, range_, status):
        response = client.post(f"/api/v1/sessions/{session_id}/summaries", json=range_)

        assert response.status_code == status

    def test_forgets_summaries_but_no_message(self, client, session_id, asked):
        forgotten = client.delete(f"/api/v1/sessions/{session_id}/context").get_json()

        assert forgotten == {"forgotten": 0}
        assert client.get(f"/api/v1/sessions/{session_id}").get_json()["message_count"] == 2

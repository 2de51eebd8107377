"""Answers wait for each other in fair turn, and pages do not wait for answers."""

import re
import threading
from types import SimpleNamespace

import pytest

from rag.runtime.budget import Lane
from rag.settings import Settings
from rag.web import ANSWERING
from tests.applications import app_of
from tests.web.fake_application import FakeApplication


def test_every_route_that_answers_is_limited(app):
    assert set(app.view_functions) >= ANSWERING


def test_a_refused_question_leaves_no_place_taken(application, settings, session_id):
    web = settings.web.model_copy(update={"threads": 4})
    application.settings = settings.model_copy(update={"web": web})
    client = app_of(application).test_client()
    url = f"/api/v1/sessions/{session_id}/messages"

    for _ in range(10):
        assert client.post(url, json={"content": " "}).status_code == 422
        asked = client.post(f"/api/v1/sessions/{'0' * 32}/messages", json={"content": "a"})
        assert asked.status_code == 404
    assert client.post(url, json={"content": "How heavy is it?"}).status_code == 200


STREAM = {"Accept": "text/event-stream"}


class TestWhileManyAsk:
    """A pool of eight, all of whose places are taken by streams that nobody reads to their end."""

    @pytest.fixture
    def full(self, application, settings):
        web = settings.web.model_copy(update={"threads": 16})
        application.settings = settings.model_copy(update={"web": web})
        app = app_of(application)
        application.assistant.wait = threading.Event()
        streams = [stream_of(app) for _ in range(8)]
        yield SimpleNamespace(app=app, streams=streams, assistant=application.assistant)
        application.assistant.wait.set()
        for each in streams:
            each.close()

    def test_a_stream_tells_its_place_and_then_answers(self, full):
        waiting = [stream_of(full.app) for _ in range(3)]
        frames = [each.iter_encoded() for each in waiting]

        told = [next(each).decode() for each in frames]
        full.assistant.wait.set()
        full.streams.pop().close()
        rest = b"".join(frames[0]).decode()
        waiting[0].close()

        assert told == [f'event: waiting\ndata: {{"before": {count}}}\n\n' for count in range(3)]
        assert "event: final" in rest
        assert next(frames[2]).decode() == 'event: waiting\ndata: {"before": 0}\n\n'
        for each in waiting:
            each.close()

    def test_a_stream_that_waited_in_vain_says_so_and_keeps_no_question(self, full, monkeypatch):
        monkeypatch.setattr(Lane.wait, "__kwdefaults__", {"patience_seconds": 0.01})
        before = len(full.assistant.asked)
        told = stream_of(full.app).get_data(as_text=True)

        assert told.startswith('event: waiting\ndata: {"before": 0}\n\nevent: error\n')
        assert '"status": 503' in told
        assert len(full.assistant.asked) == before

    @pytest.mark.parametrize("where", ["/ask", "/sessions/{}/ask", "/sessions/{}/regenerate"])
    def test_a_form_without_scripts_leads_on_from_a_page_that_tells_its_place(self, full, where):
        session_id = stored(full.streams[0])
        form = {"content": "How heavy is it?", "index": "1"}
        pages = [full.app.test_client().post(where.format(session_id), data=form) for _ in range(2)]
        lines = [each.iter_encoded() for each in pages]
        told = [(next(each), next(each))[1] for each in lines]
        full.assistant.wait.set()
        full.streams.pop().close()
        rest = b"".join(lines[0]).decode()

        assert told == [b"<li>You are next</li>\n", b"<li>1 before you</li>\n"]
        assert re.search(r'content="0; url=/sessions/\w+#m\d"|is being written', rest), rest
        for each in pages:
            each.close()

    @pytest.mark.parametrize("path", ["chat/completions", "responses"])
    def test_a_client_of_openai_reads_its_place_as_comments(self, full, path):
        streams = [asked_as_openai(full.app, path) for _ in range(2)]
        frames = [each.iter_encoded() for each in streams]

        assert next(frames[0]) == b": waiting, 0 before you\n\n"
        assert next(frames[1]) == b": waiting, 1 before you\n\n"
        full.assistant.wait.set()
        full.streams.pop().close()
        rest = b"".join(frames[0])
        assert rest.startswith((b"data: ", b"event: response.created"))
        assert b"[DONE]" in rest or b"response.completed" in rest
        for each in streams:
            each.close()

    @pytest.mark.parametrize("path", ["chat/completions", "responses"])
    def test_a_client_of_openai_that_waited_in_vain_leaves_nothing(self, full, path, monkeypatch):
        monkeypatch.setattr(Lane.wait, "__kwdefaults__", {"patience_seconds": 0.01})
        before = full.app.test_client().get("/api/v1/sessions").get_json()
        told = asked_as_openai(full.app, path).get_data(as_text=True)

        assert told.startswith(": waiting, 0 before you\n\n")
        assert '"code": "busy"' in told
        assert full.app.test_client().get("/api/v1/sessions").get_json() == before

    def test_who_waits_for_a_whole_answer_is_told_in_the_refusal(self, full, monkeypatch):
        monkeypatch.setattr(Lane.wait, "__kwdefaults__", {"patience_seconds": 0.01})
        refused = asked(full.app)

        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
        assert "0 more wait before yours" in refused.get_json()["detail"]

    @pytest.mark.parametrize("body", ["{", "[]"])
    @pytest.mark.parametrize("path", ["sessions/{}/messages", "chat/completions", "responses"])
    def test_a_body_that_cannot_be_read_is_refused_as_where_nobody_waits(self, full, path, body):
        client = full.app.test_client()
        session_id = client.post("/api/v1/sessions", json={}).get_json()["id"]
        prefix = "/api/v1/" if "sessions" in path else "/v1/"

        def refusal():
            url = prefix + path.format(session_id)
            answer = client.post(url, data=body, content_type="application/json")
            problem = answer.get_json()
            said = problem.get("detail") or problem["error"]["message"]
            return answer.status_code, said

        queued = refusal()
        full.assistant.wait.set()
        for stream in full.streams:
            stream.close()
        assert queued == refusal()

    def test_beyond_the_queue_nobody_is_let_wait(self, full):
        waiting = [stream_of(full.app) for _ in range(4)]
        refused = stream_of(full.app)

        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
        for each in waiting:
            each.close()
        assert stream_of(full.app).status_code == 200


def asked(app, **headers):
    client = app.test_client()
    session_id = client.post("/api/v1/sessions", json={}, headers=headers).get_json()["id"]
    url = f"/api/v1/sessions/{session_id}/messages"
    return client.post(url, json={"content": "How heavy is it?"}, headers=headers)


def stored(stream):
    """The session that a stream is of."""
    return stream.request.path.split("/")[4]


def asked_as_openai(app, path):
    said = "How heavy is it?"
    body = {"model": "groundnote", "stream": True, "input": said}
    if path == "chat/completions":
        body |= {"messages": [{"role": "user", "content": said}]}
        del body["input"]
    return app.test_client().post(f"/v1/{path}", json=body)


def stream_of(app):
    return asked(app, **STREAM)


def test_whoever_follows_an_answer_holds_a_place_too():
    assert {"messages.follow", "responses.respond"} <= ANSWERING


def test_one_owner_never_has_all_places(engine, tmp_path):
    """Somebody asks as much as the server lets them; another is answered at once."""
    tokens = {"token-of-anna": "anna", "token-of-ben": "ben"}
    auth = {"mode": "tokens", "tokens": tokens}
    settings = Settings(data_dir=tmp_path, auth=auth, web={"threads": 16})
    application = FakeApplication(settings, engine).with_library()
    app = app_of(application)
    application.assistant.wait = threading.Event()
    anna = {"Authorization": "Bearer token-of-anna"}
    ids = [
        app.test_client().post("/api/v1/sessions", json={}, headers=anna).get_json()["id"]
        for _ in range(200)
    ]

    def ask(session_id):
        url = f"/api/v1/sessions/{session_id}/messages"
        said = {"content": "How heavy is it?"}
        return app.test_client().post(url, json=said, headers={**anna, **STREAM})

    streams = [ask(session_id) for session_id in ids]
    refused = [each for each in streams if each.status_code == 503]
    application.assistant.wait.set()
    answered = asked(app, Authorization="Bearer token-of-ben")

    assert len(streams) - len(refused) == 4 + 2  # inside, and waiting
    assert {each.headers["Retry-After"] for each in refused} == {"5"}
    assert answered.status_code == 200
    for each in streams:
        each.close()

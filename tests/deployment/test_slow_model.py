"""A model that takes its time keeps nobody else waiting, and is told when nobody waits for it."""

import threading

import httpx
import pytest

from tests.deployment.conftest import until
from tests.openai_server import OpenAIServer, hang


@pytest.fixture(params=["", "Refunds take "], ids=["silent", "in the middle"])
def model(request):
    with OpenAIServer(hang(request.param)) as server:
        yield server


@pytest.fixture
def url(groundnote, model):
    server = groundnote(
        "serve",
        "--port",
        "0",
        GROUNDNOTE_LLM__BASE_URL=model.url,
        GROUNDNOTE_LLM__MODEL="fake",
        GROUNDNOTE_LLM__TIMEOUT_SECONDS="600",
    )
    return server.url()


class Asking:
    """A client that waits for an answer, until it has had enough."""

    def __init__(self, url, session_id):
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._ask, args=(url, session_id))
        self._thread.start()

    def _ask(self, url, session_id):
        with (
            httpx.Client(timeout=60) as client,
            client.stream(
                "POST",
                f"{url}/api/v1/sessions/{session_id}/messages",
                json={"content": "How long do refunds take?"},
                headers={"Accept": "text/event-stream"},
            ) as response,
        ):
            assert response.status_code == 200
            self._enough.wait(60)

    def leave(self):
        self._enough.set()
        self._thread.join()


def test_others_are_served_meanwhile_and_the_call_ends_when_it_is_stopped(url, model, web):
    api = f"{url}/api/v1"
    session_id = web.post(f"{api}/sessions", json={}).json()["id"]
    asking = Asking(url, session_id)
    until(lambda: model.requests)

    def status():
        messages = web.get(f"{api}/sessions/{session_id}/messages").json()["messages"]
        return messages[-1]["status"]

    try:
        assert web.get(f"{url}/healthz").json()["status"] == "ok"
        assert web.post(f"{api}/search", json={"query": "refunds"}).status_code == 200
        assert web.post(f"{api}/sessions", json={}).status_code == 201
        assert status() == "pending"
        assert not model.disconnected.is_set()
    finally:
        asking.leave()
    web.post(f"{api}/sessions/{session_id}/messages/1/stop")

    assert model.disconnected.wait(60)
    until(lambda: status() in ("interrupted", "failed"))
    assert len(model.requests) == 1

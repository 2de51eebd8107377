import json
import socket
import threading
import time
from contextlib import closing

import httpx
import pytest

from rag.errors import IndexMismatch, ModelUnavailable
from rag.records import Compacted, Failed, Finished, Resolved, Text, ToolUsed
from rag.web.sse import PING, encode, frames_of, with_pings
from tests.web.fake_application import REPORT


def frames(*texts, wait=None):
    for text in texts:
        if wait is not None:
            wait.wait(10)
        yield text


class TestPings:
    def test_come_while_nothing_else_does(self):
        wait = threading.Event()
        stream = with_pings(frames("a", wait=wait), ping_seconds=0.01)

        first = [next(stream), next(stream)]
        wait.set()

        assert first == [PING, PING]
        assert "a" in list(stream)

    def test_do_not_disturb_a_quick_stream(self):
        assert list(with_pings(frames("a", "b"), ping_seconds=60)) == ["a", "b"]

    def test_a_client_that_leaves_closes_the_frames(self):
        closed = threading.Event()
        wait = threading.Event()

        def endless():
            try:
                while True:
                    yield "a"
                    wait.wait(10)
            finally:
                closed.set()

        stream = with_pings(endless(), ping_seconds=60)
        next(stream)
        stream.close()
        wait.set()

        assert closed.wait(10)


class TestEncoding:
    @pytest.mark.parametrize(
        ("event", "name", "values"),
        [
            (Text("a\nb"), "delta", {"text": "a\nb"}),
            (
                Resolved("q", True, "rules"),
                "resolved",
                {"query": "q", "is_followup": True, "method": "rules"},
            ),
            (
                ToolUsed("search", "{}", "1 hit"),
                "tool",
                {"name": "search", "arguments": "{}", "outcome": "1 hit"},
            ),
        ],
    )
    def test_names_each_event(self, event, name, values):
        assert encode(event, session_id="s") == (name, values)

    def test_reports_a_compaction(self):
        name, values = encode(Compacted(0, 4, REPORT), session_id="s")

        assert name == "compaction"
        assert (values["end"], values["report"]["citations_kept"]) == (4, 1)

    def test_tells_the_users_message_of_a_failure(self):
        failed = Failed(ModelUnavailable("raw"), "The model is away.", 3)

        name, values = encode(failed, session_id="s")

        assert name == "error"
        assert (values["detail"], values["index"], values["status"]) == (
            "The model is away.",
            3,
            503,
        )

    @pytest.mark.parametrize("error", [IndexMismatch("/srv/secret"), RuntimeError("secret")])
    def test_keeps_what_is_for_the_operator_in_the_log(self, error):
        _, values = encode(Failed(error, str(error), 3), session_id="s")

        assert "secret" not in values["detail"]

    def test_never_breaks_a_line(self):
        text = "".join(frames_of(iter([Text("a\r\n\n\u2028data: b")]), session_id="s"))

        assert text.count("\n") == 3
        assert json.loads(text.splitlines()[1].removeprefix("data: "))["text"].startswith("a\r\n")


@pytest.mark.slow
class TestLiveServer:
    def question(self, live):
        with httpx.Client(base_url=live.url) as client:
            session_id = client.post("/api/v1/sessions", json={}).json()["id"]
        return f"/api/v1/sessions/{session_id}/messages"

    def test_a_slow_model_blocks_nobody_else(self, live, application):
        application.assistant.wait = threading.Event()
        url = self.question(live)
        answers = []

        def ask():
            answers.append(httpx.post(live.url + url, json={"content": "a"}, timeout=30))

        slow = threading.Thread(target=ask)
        slow.start()
        quick = httpx.get(f"{live.url}/api/v1/sessions", timeout=10)
        application.assistant.wait.set()
        slow.join(10)

        assert quick.status_code == 200
        assert answers[0].json()["content"] == "It weighs 120 g [1]."

    def test_a_client_that_leaves_stops_the_model(self, live, application):
        application.assistant.deltas = ("word ",) * 100_000
        url = self.question(live)
        host, port = live.url.removeprefix("http://").split(":")
        body = b'{"content": "a"}'

        with closing(socket.create_connection((host, int(port)))) as connection:
            connection.sendall(
                f"POST {url} HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            connection.recv(4096)

        deadline = time.monotonic() + 20
        while application.assistant.hung_up == 0 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert application.assistant.hung_up == 1


def test_the_end_is_sent_only_once():
    end = Failed(ModelUnavailable("away"), "away", 1)

    sent = list(frames_of(iter([Text("a"), end]), session_id="s"))

    assert [frame.split("\n")[0] for frame in sent] == ["event: delta", "event: error"]
    assert not any("final" in frame for frame in sent)
    assert Finished.__name__ not in "".join(sent)

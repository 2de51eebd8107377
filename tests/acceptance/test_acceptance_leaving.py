"""Clients that go away in the middle: the model is let go, and what was written is kept."""

import json
import socket
import time
from contextlib import closing, contextmanager

import pytest

from tests.applications import served
from tests.openai_server import OpenAIServer, endless, hang, reply
from tests.waiting import until

QUESTION = "How much does the Aero 5 weigh?"
DEADLINE = 20.0  # a bound for machines under load, not an expectation


@contextmanager
def listening(app):
    with served(app) as url:
        yield int(url.rpartition(":")[2])


def asking(port, path, accept, **body):
    """A connection of our own over which a question was sent."""
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        f"Accept: {accept}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    connection = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)
    connection.sendall(head.encode() + content)
    return closing(connection)


def leave_after(words, port, session_id):
    """Ask, and hang up when these bytes have come."""
    path = f"/api/v1/sessions/{session_id}/messages"
    with asking(port, path, "text/event-stream", content=QUESTION) as connection:
        came = b""
        while words not in came:
            came += connection.recv(4096)


def ended(library, session_id, index):
    """The message once it is written."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        message = library.get(f"/sessions/{session_id}/messages/{index}")
        if message["status"] != "pending":
            return message
        time.sleep(0.05)
    raise AssertionError(f"message {index} never ended")


@pytest.mark.slow
class TestAClientThatLeaves:
    def test_a_stream_lets_the_model_write_on_until_somebody_stops_it(self, with_model):
        with OpenAIServer(endless("{} ", counting=True)) as server:
            library = with_model(server)
            session_id = library.session()
            with listening(library.app) as port:
                leave_after(b"event: delta", port, session_id)

                assert not server.disconnected.wait(1)
                library.post(f"/sessions/{session_id}/messages/1/stop", json={})
                assert server.disconnected.wait(DEADLINE)
                message = ended(library, session_id, 1)

        assert (message["status"], message["error"]) == ("interrupted", "Stopped.")
        assert message["content"].startswith("0 1")

    @pytest.mark.parametrize("behaviour", [hang("The Aero "), endless("{} ", counting=True)])
    def test_before_the_whole_answer_has_come_ends_the_call_too(self, with_model, behaviour):
        with OpenAIServer(behaviour) as server:
            library = with_model(server, timeout_seconds=600)
            session_id = library.session()
            path = f"/api/v1/sessions/{session_id}/messages"
            with listening(library.app) as port:
                with asking(port, path, "application/json", content=QUESTION):
                    until_asked(server)

                assert server.disconnected.wait(DEADLINE)
                message = ended(library, session_id, 1)

        assert message["status"] == "interrupted"
        assert message["content"]

    def test_as_a_client_of_the_openai_protocol_ends_the_call_too(self, with_model):
        with OpenAIServer(hang("The Aero ")) as server:
            library = with_model(server, timeout_seconds=600)
            messages = [{"role": "user", "content": QUESTION}]
            with listening(library.app) as port:
                path = "/v1/chat/completions"
                with asking(port, path, "application/json", model="any", messages=messages):
                    until_asked(server)

                assert server.disconnected.wait(DEADLINE)

    def test_nobody_who_waits_is_taken_for_gone(self, with_model):
        with OpenAIServer(slow_reply("It weighs 120 g [1].", seconds=2.5)) as server:
            library = with_model(server, timeout_seconds=600)
            with listening(library.app) as port:
                path = f"/api/v1/sessions/{library.session()}/messages"
                with asking(port, path, "application/json", content=QUESTION) as connection:
                    came = connection.recv(4096)

        assert b" 200 " in came


def until_asked(server):
    until(lambda: server.requests)


def slow_reply(text, *, seconds):
    answer = reply(text)

    def behave(exchange):
        time.sleep(seconds)
        answer(exchange)

    return behave

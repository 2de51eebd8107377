"""Clients that send or read a little at a time cost a socket, not the server."""

import socket
import time

import pytest

from tests.deployment.conftest import DEADLINE, running_groundnote, until
from tests.openai_server import OpenAIServer, hang

MANY = 70  # more than the server has threads
HEAD = "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


@pytest.fixture
def connect():
    """Opens connections that send some bytes and then wait; closes them at the end."""
    opened = []

    def open_many(url, count, text):
        host, port = url.removeprefix("http://").split(":")
        for _ in range(count):
            opened.append(socket.create_connection((host, int(port)), timeout=DEADLINE))
            opened[-1].sendall(text.encode())
        return opened[-count:]

    yield open_many
    for each in opened:
        each.close()


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """Where a server is that all of them keep waiting, one after the other."""
    with (
        OpenAIServer() as embeddings,
        running_groundnote(tmp_path_factory.mktemp("slow"), embeddings) as run,
    ):
        yield run("serve", "--port", "0").url()


@pytest.mark.slow
class TestWhileClientsAreSlow:
    @pytest.mark.parametrize(
        "begun",
        [
            pytest.param("", id="nothing"),
            pytest.param("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ", id="half a head"),
            pytest.param(
                HEAD.format(path="/api/v1/sessions") + "Content-Length: 5000\r\n\r\n{",
                id="half a body",
            ),
        ],
    )
    def test_pages_come_as_ever(self, url, web, connect, begun):
        connect(url, MANY, begun)

        began = time.monotonic()
        assert web.get(f"{url}/healthz").status_code == 200
        assert web.get(f"{url}/documents").status_code == 200
        assert time.monotonic() - began < DEADLINE / 2

    def test_whoever_never_ends_a_head_is_let_go(self, url, connect):
        (slow,) = connect(url, 1, "GET / HTTP/1.1\r\n")

        def is_closed():
            try:
                slow.sendall(b"X-More: 1\r\n")
                time.sleep(0.5)
                slow.setblocking(False)
                return slow.recv(1) == b""
            except BlockingIOError:
                return False
            except OSError:
                return True
            finally:
                slow.settimeout(DEADLINE)

        until(is_closed)


@pytest.mark.slow
def test_askers_of_a_model_that_hangs_leave_room_for_pages(groundnote, web, connect):
    with OpenAIServer(hang("")) as model:
        url = groundnote(
            "serve",
            "--port",
            "0",
            GROUNDNOTE_LLM__BASE_URL=model.url,
            GROUNDNOTE_LLM__MODEL="fake",
            GROUNDNOTE_LLM__TIMEOUT_SECONDS="600",
        ).url()
        session_id = web.post(f"{url}/api/v1/sessions", json={}).json()["id"]
        body = '{"content": "How long do refunds take?"}'
        path = f"/api/v1/sessions/{session_id}/messages"
        head = HEAD.format(path=path) + f"Content-Length: {len(body)}\r\n\r\n"
        askers = connect(url, 2 * MANY, head + body)

        def refused():
            told = 0
            for each in askers:
                each.setblocking(False)
                try:
                    told += b" 503 " in each.recv(100, socket.MSG_PEEK)
                except BlockingIOError:
                    continue
            return told

        until(lambda: refused() > MANY)
        assert web.get(f"{url}/healthz").status_code == 200
        assert web.get(f"{url}/").status_code == 200

"""Heads and bodies that servers and proxies read differently, and names that say too much."""

import json
import re
import socket
import threading

import pytest

from rag.settings import Settings
from rag.web.http_server import open_server
from tests.applications import app_of
from tests.web.fake_application import FakeApplication

AUTH = "Authorization: Bearer token-of-anna\r\n"
TOKENS = {"token-of-anna": "anna", "token-of-ben": "ben"}


@pytest.fixture
def serving(engine, tmp_path):
    """Serves an app with the server that serves in earnest; gives a way to send it bytes."""
    opened = []

    def serve(**sections):
        settings = Settings(data_dir=tmp_path, **sections)
        app = app_of(FakeApplication(settings, engine).with_library())
        listener = socket.create_server(("127.0.0.1", 0))
        server = open_server(app, listener, threads=4, max_body_bytes=10_000_000)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        opened.append((server, thread))
        place = listener.getsockname()

        def send(head, body=b""):
            with socket.create_connection(place, timeout=3) as sent:
                sent.sendall(head.encode("latin-1") + b"\r\n" + body)
                told = b""
                try:
                    while piece := sent.recv(65536):
                        told += piece
                except TimeoutError:
                    pass
            return told

        return send, app

    yield serve
    for server, thread in opened:
        server.task_dispatcher.shutdown(timeout=1)
        server._map.clear()
        thread.join(0.1)
        server.socket.close()


def statuses(told):
    return [int(each) for each in re.findall(rb"HTTP/1\.[01] (\d{3}) ", told)]


GET = "GET /api/v1/sessions HTTP/1.1\r\n"
POST = "POST /api/v1/sessions HTTP/1.1\r\nContent-Type: application/json\r\n"
CLOSE = "Connection: close\r\n"

SMUGGLED = b"GET /api/v1/documents HTTP/1.1\r\nHost: localhost\r\n" + AUTH.encode() + b"\r\n"
HEADS = {
    "two hosts": (GET + "Host: localhost\r\nHost: evil.example\r\n", b""),
    "host behind a blank": (GET + "Host: localhost\r\nHost : evil.example\r\n", b""),
    "host folded": (GET + "Host: localhost\r\n evil.example\r\n", b""),
    "host with a name before": (GET + "Host: localhost@evil.example\r\n", b""),
    "no host": (GET, b""),
    "empty host": (GET + "Host:\r\n", b""),
    "host of another site": ("GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n", b""),
    "length and chunks": (
        POST + "Host: localhost\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n",
        b"2\r\n{}\r\n0\r\n\r\n" + SMUGGLED,
    ),
    "two lengths": (
        POST + "Host: localhost\r\nContent-Length: 2\r\nContent-Length: 200\r\n",
        b"{}" + SMUGGLED,
    ),
    "a signed length": (POST + "Host: localhost\r\nContent-Length: +2\r\n", b"{}" + SMUGGLED),
    "a list of lengths": (POST + "Host: localhost\r\nContent-Length: 2, 2\r\n", b"{}" + SMUGGLED),
    "a negative length": (POST + "Host: localhost\r\nContent-Length: -2\r\n", b"{}" + SMUGGLED),
    "a length in other digits": (
        POST + "Host: localhost\r\nContent-Length: \xb2\r\n",
        b"{}" + SMUGGLED,
    ),
    "another encoding": (
        POST + "Host: localhost\r\nTransfer-Encoding: gzip, chunked\r\n",
        b"0\r\n\r\n" + SMUGGLED,
    ),
    "an encoding behind a tab": (
        POST + "Host: localhost\r\nTransfer-Encoding:\x0bchunked\r\n",
        b"0\r\n\r\n" + SMUGGLED,
    ),
    "a chunk of 0x2": (
        POST + "Host: localhost\r\nTransfer-Encoding: chunked\r\n",
        b"0x2\r\n{}\r\n0\r\n\r\n" + SMUGGLED,
    ),
    "a chunk of -1": (
        POST + "Host: localhost\r\nTransfer-Encoding: chunked\r\n",
        b"-1\r\n{}\r\n0\r\n\r\n" + SMUGGLED,
    ),
    "a chunk that ends early": (
        POST + "Host: localhost\r\nTransfer-Encoding: chunked\r\n",
        b"2\r\n{}XX0\r\n\r\n" + SMUGGLED,
    ),
    "a bare line feed in a name": (GET + "Host: localhost\r\nX-A: b\nHost: evil.example\r\n", b""),
    "a zero in a value": (GET + "Host: localhost\r\nX-A: b\x00c\r\n", b""),
    "a line without a name": (GET + "Host: localhost\r\n: b\r\n", b""),
    "an old way of speaking": ("GET /api/v1/sessions HTTP/0.9\r\nHost: localhost\r\n", b""),
    "a method of its own": ("G\tET / HTTP/1.1\r\nHost: localhost\r\n", b""),
}


@pytest.mark.parametrize("which", HEADS)
def test_a_head_of_two_meanings_is_refused_and_hides_no_request(serving, which):
    """Nobody is known here: a second answer, or a 200, would be of a request that was hidden."""
    send, _ = serving(auth={"mode": "tokens", "tokens": TOKENS})
    head, body = HEADS[which]

    told = statuses(send(head + CLOSE, body))

    assert all(status in (400, 401, 411, 413, 421, 501, 505) for status in told), told
    assert len(told) <= 1


def test_a_length_that_is_short_hides_no_request(serving):
    """What follows a whole request on one connection is a request of its own, with its own name."""
    send, _ = serving(auth={"mode": "tokens", "tokens": TOKENS})
    head = POST + "Host: localhost\r\n" + AUTH + "Content-Length: 2\r\n"
    told = send(
        head, b"{}GET /api/v1/sessions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )

    assert statuses(told) == [201, 401]


PROXY = {"mode": "proxy", "trusted_proxies": ["127.0.0.1"]}


class TestBehindAProxy:
    @pytest.mark.parametrize(
        "more",
        [
            "X_Forwarded_User: ben\r\n",
            "x-forwarded_user: ben\r\n",
            "HTTP_X_FORWARDED_USER: ben\r\n",
            "X-Forwarded-User : ben\r\n",
            "X-Forwarded-User\x00: ben\r\n",
        ],
    )
    def test_a_header_that_is_spelled_alike_is_not_the_proxys(self, serving, more):
        send, _ = serving(auth=PROXY)
        told = send(GET + "Host: localhost\r\n" + more + CLOSE)

        assert statuses(told) in ([400], [401], [])

    def test_two_names_are_neither(self, serving):
        """A proxy that adds its header to the caller's own lets nobody be somebody else."""
        send, _ = serving(auth=PROXY)
        annas = GET + "Host: localhost\r\nX-Forwarded-User: anna\r\n"
        made = send(annas.replace("GET", "POST") + CLOSE)
        told = send(annas + "X-Forwarded-User: ben\r\n" + CLOSE)

        assert statuses(made) == [201]
        assert statuses(told) == [200]
        assert b'"sessions":[]' in told


FORWARDED = (
    "X-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6;host=evil.example;proto=https\r\n"
    "X-Forwarded-Host: evil.example\r\nX-Forwarded-Proto: https\r\nX-Real-IP: 6.6.6.6\r\n"
    "X-Original-URL: /metrics\r\nX-Rewrite-URL: /metrics\r\nX-HTTP-Method-Override: DELETE\r\n"
)


def test_what_a_caller_says_of_its_way_changes_nothing(serving):
    send, app = serving(auth={"mode": "tokens", "tokens": TOKENS})
    body = b"token=token-of-anna&next=/documents"
    head = (
        "POST /login HTTP/1.1\r\nHost: localhost\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\n"
        f"Content-Length: {len(body)}\r\n" + FORWARDED + CLOSE
    )
    told = send(head, body).decode("latin-1")

    assert "Location: /documents\r\n" in told
    assert "evil.example" not in told
    entries = app.extensions["groundnote-audit"].entries()
    (entry,) = [each for each in entries if each.action == "login"]
    assert entry.address == "127.0.0.1"


NAMES = [
    "../../etc/passwd",
    "..\\..\\windows\\win.ini",
    "/etc/passwd",
    "C:\\a.md",
    "c:a.md",
    "a/../../b.md",
    "....//b.md",
    "%2e%2e%2fa.md",
    "a\u202egnp.md",
    "..\u2215a.md",
    "\uff0e\uff0e/a.md",
    "a.md\x00.png",
    "~/a.md",
    "$(touch /tmp/x).md",
    "-rf.md",
    "a\nb.md",
    "con.md",
    "\\\\server\\share\\a.md",
    "file:///etc/passwd",
    "." * 300,
    "a/" * 200 + "b.md",
    "<img src=x onerror=alert(1)>.md",
    '";filename="b.md',
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_leads_nowhere(serving, name, tmp_path):
    send, app = serving()
    quoted = name.replace("\\", "\\\\").replace('"', '\\"').encode()
    body = (
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="' + quoted + b'"\r\n'
        b"Content-Type: text/markdown\r\n\r\n# A\n\r\n--b--\r\n"
    )
    head = (
        "POST /api/v1/documents HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {len(body)}\r\n" + CLOSE
    )
    told = send(head, body)

    assert statuses(told)[0] in (202, 400, 422)
    taken = app.extensions["groundnote"].jobs.submitted
    for each in taken:
        assert not each.startswith(("/", "\\"))
        assert ".." not in each.split("/")
        assert "\\" not in each
        assert ":" not in each.split("/")[0]
        assert each.isprintable()
    if statuses(told)[0] == 202:
        json.loads(told.rpartition(b"\r\n\r\n")[2])

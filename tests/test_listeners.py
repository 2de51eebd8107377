"""Whatever listens has one policy: nobody is let in who has not logged in, under any address."""

import threading

import httpx
import pytest

from rag.cli.mcp import serve_mcp
from rag.errors import SetupError
from rag.settings import Settings
from rag.web.access.counters import network_of
from rag.web.server import _listener, serve
from rag.web.serving.http_server import open_server
from rag.wiring.listeners import is_loopback, listener_policy
from tests.applications import app_of
from tests.web.fake_application import FakeApplication

REACHED = [
    "0.0.0.0", "::", "", "0", "[::]", "192.168.1.5", "10.0.0.1", "172.17.0.1", "169.254.1.1",
    "fe80::1", "fd00::7", "2001:db8::1", "::ffff:10.0.0.1", "::ffff:0.0.0.0", "docs.example",
    "127.evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "host.docker.internal",
]  # fmt: skip
LOCAL = ["127.0.0.1", "127.8.9.10", "::1", "[::1]", "localhost", "::ffff:127.0.0.1", "unix:/run/x"]
FOREIGN = [
    "evil.example", "EVIL.example:80", "localhost.evil.example", "127.0.0.1.evil.example:8000",
    "docs.example.evil", "evil@docs.example", "", ":8000", "[::2]", "0.0.0.0", "docs.example.",
    "docs.example:80.evil.example", "xn--docs.example", "127.0.0.1,evil.example",
    "[::1].evil.example",
]  # fmt: skip


def settings(tmp_path, **sections):
    return Settings(data_dir=tmp_path, **sections)


class TestWhereNobodyLogsIn:
    @pytest.mark.parametrize("host", REACHED)
    @pytest.mark.parametrize("named", [(), ("*",), ("docs.example",)])
    def test_nothing_listens_beyond_this_machine(self, tmp_path, host, named):
        with pytest.raises(SetupError, match="is single"):
            listener_policy(settings(tmp_path, web={"allowed_hosts": named}), host)

    @pytest.mark.parametrize("host", LOCAL)
    def test_this_machine_may_ask(self, tmp_path, host):
        policy = listener_policy(settings(tmp_path), host)

        assert policy.answers_as("localhost:8000")
        assert not policy.answers_as("evil.example")

    @pytest.mark.parametrize("host", ["0.0.0.0", "::"])
    def test_neither_server_binds(self, tmp_path, host):
        with pytest.raises(SetupError, match="is single"):
            serve(settings(tmp_path, web={"host": host, "allowed_hosts": ["*"]}))
        with pytest.raises(SetupError, match="is single"):
            serve_mcp(settings(tmp_path), is_http=True, host=host, port=0, url=None)

    def test_an_operator_may_want_it(self, tmp_path):
        chosen = settings(
            tmp_path, auth={"allow_public": True}, web={"allowed_hosts": ["a.example"]}
        )

        assert listener_policy(chosen, "0.0.0.0").answers_as("a.example")


class TestNames:
    @pytest.mark.parametrize("listens", ["::", "127.0.0.1"])
    @pytest.mark.parametrize("host", FOREIGN)
    def test_of_others_are_not_answered_to(self, tmp_path, host, listens):
        auth = {"mode": "tokens", "tokens": {"a-long-token": "anna"}}
        chosen = settings(tmp_path, auth=auth, web={"allowed_hosts": ["docs.example"]})

        assert not listener_policy(chosen, listens).answers_as(host)

    def test_have_to_be_given_where_others_ask(self, tmp_path):
        auth = {"mode": "tokens", "tokens": {"a-long-token": "anna"}}

        with pytest.raises(SetupError, match="allowed_hosts is empty"):
            listener_policy(settings(tmp_path, auth=auth), "::")


class TestWhoAsks:
    @pytest.mark.parametrize(
        ("peer", "forwarded", "client"),
        [
            ("192.0.2.9", "10.0.0.1", "192.0.2.9"),  # a stranger says so
            ("192.0.2.9", "127.0.0.1", "192.0.2.9"),
            ("10.1.1.1", "192.0.2.9", "192.0.2.9"),
            ("10.1.1.1", "127.0.0.1, 192.0.2.9", "192.0.2.9"),  # the client wrote the first
            ("10.1.1.1", "192.0.2.9, 10.2.2.2", "192.0.2.9"),
            ("::ffff:10.1.1.1", "192.0.2.9", "192.0.2.9"),
            ("10.1.1.1", "nonsense", "10.1.1.1"),
            ("10.1.1.1", "", "10.1.1.1"),
            ("10.1.1.1", "[2001:db8::1]:443", "2001:db8::1"),
        ],
    )
    def test_is_told_by_trusted_proxies_alone(self, tmp_path, peer, forwarded, client):
        chosen = settings(tmp_path, auth={"trusted_proxies": ["10.0.0.0/8"]})

        assert listener_policy(chosen, "127.0.0.1").client_of(peer, forwarded) == client

    def test_is_one_of_many_where_both_kinds_of_addresses_are_listened_to(self):
        assert network_of("::ffff:192.0.2.1") != network_of("::ffff:192.0.2.2")
        assert network_of("2001:db8::1") == network_of("2001:db8::2")
        assert is_loopback("::ffff:127.0.0.1")


def test_a_unix_socket_serves_this_machine(tmp_path, engine):
    path = f"unix:{tmp_path}/g.sock"
    application = FakeApplication(settings(tmp_path, web={"host": path}), engine)
    _listener(path, 0).close()  # one that was killed leaves its file
    listener = _listener(path, 0)
    with pytest.raises(SetupError, match="in use"):
        _listener(path, 0)
    server = open_server(app_of(application), listener, threads=2, max_body_bytes=1000)
    threading.Thread(target=server.run, daemon=True).start()
    transport = httpx.HTTPTransport(uds=f"{tmp_path}/g.sock")
    try:
        with httpx.Client(transport=transport) as client:
            own = client.get("http://localhost/api/v1/sessions")
            foreign = client.get("http://evil.example/api/v1/sessions")
    finally:
        server.close()

    assert (own.status_code, foreign.status_code) == (200, 421)
    assert (tmp_path / "g.sock").stat().st_mode & 0o777 == 0o660

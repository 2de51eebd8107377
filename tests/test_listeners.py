"""Whatever listens has one policy: nobody is let in who has not logged in, under any address."""

import threading

import httpx
import pytest

from rag.cli.remote import serve_mcp
from rag.errors import SetupError
from rag.settings import Settings
from rag.web.access.counters import WRONG_PER_MINUTE, network_of
from rag.web.http_server import open_server
from rag.web.server import _listener, serve
from rag.wiring.listeners import is_loopback, listener_policy
from tests.applications import app_of
from tests.web.fake_application import FakeApplication

REACHED = [
    "0.0.0.0", "::", "", "0", "[::]", "192.168.1.5", "10.0.0.1", "172.17.0.1", "169.254.1.1",
    "fe80::1", "fd00::7", "2001:db8::1", "::ffff:10.0.0.1", "::ffff:0.0.0.0", "docs.example",
    "127.evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "host.docker.internal",
]  # fmt: skip
FORGED = [
    "127.0.0.1", "10.0.0.1", "::1", "unknown", "", "localhost", "192.0.2.1", "127.0.0.1, 127.0.0.1",
    '"127.0.0.1"', "for=127.0.0.1", "127.0.0.1\t", "[::1]:80", "::ffff:127.0.0.1", "0",
    "127.0.0.1;", "_hidden", "10.0.0.1 192.0.2.7", "10.0.0.0/8", "%00", "198.51.100.1:99999",
    "[", "]", ",,,",
    "2130706433", "0x7f.1", "127.1", "１２７.0.0.1", "fe80::1%eth0", "unix:", "*", "a" * 5_000,
    ", ".join(["10.0.0.1"] * 500),
]  # fmt: skip
WAYS = {  # from whom, and what stands behind that which the client wrote itself
    "a stranger": ("192.0.2.9", ""),
    "a proxy": ("10.1.1.1", ", 192.0.2.9"),
    "two proxies": ("10.1.1.1", ", 192.0.2.9, 10.2.2.2"),
    "a proxy at ::": ("::ffff:10.1.1.1", ",192.0.2.9:4444"),
}
ONE_GUESSER = [
    "192.0.2.9", "192.0.2.9:4444", " 192.0.2.9 ", "::ffff:192.0.2.9", "[::ffff:192.0.2.9]",
    "[::ffff:c000:209]:80", "0:0:0:0:0:ffff:c000:0209", "::FFFF:C000:209",
]  # fmt: skip
FOREIGN_PAGES = [
    "null", "http://evil.example", "http://localhost:81", "http://localhost.",
    "http://localhost.evil.example", "http://evil.example#localhost", "http://localhost@evil.example",
    "http://evil.example/localhost", "http://127.0.0.1", "http://[::1]", "HTTP://EVIL.example",
    "file://", "chrome-extension://abc", "app://x", "http://", "://localhost", "//localhost", "*",
    "http://localhost%2eevil.example", "http://localhost:80:90", "http://xn--lcalhost-1fa",
    "http://localhost\u3002evil.example", "http://loc\u0430lhost", "data:", "blob:http://localhost",
    "http://localhost http://evil.example", "http://evil.example, http://localhost", "undefined",
    "http://local\thost", "http://0.0.0.0", "http://localhost:0", "ws://evil.example",
]  # fmt: skip
DEEDS = {
    "/api/v1/sessions": {"json": {}},
    "/v1/chat/completions": {"json": {"messages": [{"role": "user", "content": "Hello"}]}},
    "/ask": {"data": {"question": "Hello"}},
}
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

    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("forged", FORGED)
    def test_is_nobody_that_the_client_made_up(self, tmp_path, forged, way):
        chosen = settings(tmp_path, auth={"trusted_proxies": ["10.0.0.0/8"]})
        peer, behind = WAYS[way]

        client = listener_policy(chosen, "127.0.0.1").client_of(peer, forged + behind)

        assert network_of(client) == "192.0.2.9"

    @pytest.mark.parametrize("spelled", ONE_GUESSER)
    def test_is_one_guesser_under_every_spelling(self, spelled):
        assert network_of(spelled) == "192.0.2.9"

    def test_is_one_of_many_where_both_kinds_of_addresses_are_listened_to(self):
        assert network_of("::ffff:192.0.2.1") != network_of("::ffff:192.0.2.2")
        assert network_of("2001:db8::1") == network_of("2001:db8::2")
        assert is_loopback("::ffff:127.0.0.1")


class TestPagesOfOthers:
    @pytest.fixture
    def client(self, tmp_path, engine):
        return app_of(FakeApplication(settings(tmp_path), engine)).test_client()

    @pytest.mark.parametrize("path", DEEDS)
    def test_do_nothing_here(self, client, path):
        sent = [{"Origin": page.encode().decode("latin-1")} for page in FOREIGN_PAGES]

        statuses = [client.post(path, headers=each, **DEEDS[path]).status_code for each in sent]

        assert statuses == [403] * len(FOREIGN_PAGES)

    @pytest.mark.parametrize("path", DEEDS)
    def test_do_nothing_where_a_browser_names_no_page(self, client, path):
        sent = {"Sec-Fetch-Site": "cross-site"}

        assert client.post(path, headers=sent, **DEEDS[path]).status_code == 403


GUESSED = {
    "the API": ("GET", "/api/v1/sessions", 401),
    "the chat protocol": ("POST", "/v1/chat/completions", 401),
    "the login": ("POST", "/login", 401),
    "the figures": ("GET", "/metrics", 401),
}


@pytest.mark.parametrize("where", GUESSED)
def test_guesses_are_counted_wherever_they_are_made(tmp_path, engine, where):
    """Under 30 addresses that the guesser made up."""
    auth = {"mode": "tokens", "tokens": {"a-long-token": "anna"}, "trusted_proxies": ["10.0.0.0/8"]}
    chosen = settings(tmp_path, auth=auth, web={"metrics_token": "a-long-other-token"})
    client = app_of(FakeApplication(chosen, engine)).test_client()
    method, path, refused = GUESSED[where]

    def guess(number):
        token, forged = f"guess-{number}", f"198.51.100.{number}, 192.0.2.9"
        data = {"token": token} if path == "/login" else None
        answer = client.open(
            path,
            method=method,
            data=data,
            headers={"X-Forwarded-For": forged, "Authorization": f"Bearer {token}"},
            environ_overrides={"REMOTE_ADDR": "10.1.1.1"},
        )
        return answer.status_code

    statuses = [guess(number) for number in range(30)]

    assert statuses[:WRONG_PER_MINUTE] == [refused] * WRONG_PER_MINUTE
    assert set(statuses[WRONG_PER_MINUTE:]) == {429}


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

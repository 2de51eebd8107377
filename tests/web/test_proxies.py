"""Behind a proxy: each way to know callers, with and without TLS, under every name."""

import pytest

from rag.errors import SetupError
from rag.settings import Settings
from rag.web.access.counters import WRONG_PER_MINUTE, GuessCounter
from tests.applications import app_of
from tests.web.fake_application import FakeApplication

TOKENS = {"token-of-anna": "anna", "token-of-ben": "ben"}
OIDC = {
    "discovery_url": "https://login.example/.well-known/openid-configuration",
    "client_id": "groundnote",
}
MODES = {
    "single": {"mode": "single", "allow_public": True},
    "tokens": {"mode": "tokens", "tokens": TOKENS},
    "proxy": {"mode": "proxy"},
    "oidc": {"mode": "oidc", "tokens": TOKENS, "oidc": OIDC},
}
ASKED_AS = {
    "single": {},
    "tokens": {"Authorization": "Bearer token-of-anna"},
    "proxy": {"X-Forwarded-User": "anna"},
    "oidc": {"Authorization": "Bearer token-of-anna"},
}
NAMED = "docs.example"
PROXY, STRANGER = {"REMOTE_ADDR": "127.0.0.1"}, {"REMOTE_ADDR": "192.0.2.9"}


@pytest.fixture
def client_of(engine, tmp_path):
    def make(mode, *, trusted=("127.0.0.1",), **web):
        web = {"host": "0.0.0.0", "allowed_hosts": [NAMED], **web}
        settings = Settings(
            data_dir=tmp_path, auth={**MODES[mode], "trusted_proxies": trusted}, web=web
        )
        return app_of(FakeApplication(settings, engine)).test_client()

    return make


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    ("host", "forwarded", "status"),
    [
        (NAMED, None, 200),
        ("127.0.0.1:8000", NAMED, 200),
        ("localhost", None, 200),
        ("evil.example", None, 421),
        ("127.0.0.1:8000", "evil.example", 421),
        ("evil.example", NAMED, 421),  # a page whose name was bound to this machine may say so
    ],
)
def test_names_are_checked_however_they_come(client_of, mode, scheme, host, forwarded, status):
    headers = {"Host": host, "X-Forwarded-Proto": scheme, **ASKED_AS[mode]}
    if forwarded:
        headers["X-Forwarded-Host"] = forwarded

    answered = client_of(mode).get("/api/v1/sessions", headers=headers, environ_overrides=PROXY)

    assert answered.status_code == status


class TestCookies:
    @pytest.mark.parametrize("mode", ["tokens", "oidc"])
    @pytest.mark.parametrize(
        ("scheme", "peer", "is_secure"),
        [("https", PROXY, True), ("http", PROXY, False), ("https", STRANGER, False)],
    )
    def test_stay_on_tls_where_the_proxy_says_so(self, client_of, mode, scheme, peer, is_secure):
        answered = client_of(mode).post(
            "/login",
            data={"token": "token-of-anna"},
            headers={"Host": NAMED, "X-Forwarded-Proto": scheme},
            environ_overrides=peer,
        )

        assert answered.status_code == 303
        assert ("Secure" in answered.headers["Set-Cookie"]) is is_secure


class TestAddresses:
    def wrong(self, client, address, peer=PROXY):
        headers = {"Host": NAMED, "X-Forwarded-For": address, "Authorization": "Bearer wrong"}
        return client.get("/api/v1/sessions", headers=headers, environ_overrides=peer).status_code

    def test_behind_the_proxy_are_counted_each_for_itself(self, client_of):
        client = client_of("tokens")
        for _ in range(WRONG_PER_MINUTE):
            assert self.wrong(client, "198.51.100.1") == 401

        assert self.wrong(client, "198.51.100.1") == 429
        assert self.wrong(client, "198.51.100.2") == 401

    def test_of_strangers_are_not_what_they_say(self, client_of):
        client = client_of("tokens")
        for at in range(WRONG_PER_MINUTE):
            assert self.wrong(client, f"198.51.100.{at}", STRANGER) == 401

        assert self.wrong(client, "198.51.100.99", STRANGER) == 429

    def test_are_the_nearest_that_is_no_proxy(self, client_of):
        client = client_of("tokens")
        for at in range(WRONG_PER_MINUTE):  # what the client wrote itself stands before
            assert self.wrong(client, f"10.9.9.{at}, 198.51.100.1, 127.0.0.1") == 401

        assert self.wrong(client, "198.51.100.1") == 429

    def test_are_not_believed_of_proxies_that_nobody_named(self, engine, tmp_path):
        auth = {"mode": "tokens", "tokens": TOKENS}
        settings = Settings(data_dir=tmp_path, auth=auth, web={"allowed_hosts": [NAMED]})
        client = app_of(FakeApplication(settings, engine)).test_client()
        for at in range(WRONG_PER_MINUTE):
            assert self.wrong(client, f"198.51.100.{at}") == 401

        assert self.wrong(client, "198.51.100.99") == 429


class TestWrongTokens:
    def test_are_counted_by_all_processes_together(self, monkeypatch):
        """`memory://` stands for a store that both have."""
        one = GuessCounter()
        other = GuessCounter()
        other._counters = one._counters
        for _ in range(WRONG_PER_MINUTE):
            one.was_wrong("198.51.100.1")

        assert other.wait_seconds("198.51.100.1", "x") > 0
        assert other.wait_seconds("198.51.100.2", "x") == 0
        assert GuessCounter().wait_seconds("198.51.100.1", "x") == 0

    def test_are_counted_by_each_alone_while_the_store_is_away(self):
        guesses = GuessCounter("redis://127.0.0.1:1/0")
        for _ in range(WRONG_PER_MINUTE):
            guesses.was_wrong("198.51.100.1")

        assert guesses.wait_seconds("198.51.100.1", "x") > 0


def test_names_are_required_where_others_reach_the_server(client_of):
    with pytest.raises(SetupError, match=r"web\.allowed_hosts is empty"):
        client_of("tokens", allowed_hosts=[])

    client = client_of("tokens", allowed_hosts=["*"])
    assert client.get("/login", headers={"Host": "any.example"}).status_code == 200


def test_machines_that_look_whether_it_lives_may_use_any_name(client_of):
    client = client_of("tokens")

    assert client.get("/healthz", headers={"Host": "10.1.2.3:8000"}).status_code == 200
    assert client.get("/login", headers={"Host": "10.1.2.3:8000"}).status_code == 421


class TestFigures:
    @pytest.mark.parametrize("mode", MODES)
    def test_are_told_to_this_machine_alone(self, client_of, mode):
        client, here = client_of(mode), {"Host": NAMED}

        assert client.get("/metrics", headers=here, environ_overrides=PROXY).status_code == 200
        assert client.get("/metrics", headers=here, environ_overrides=STRANGER).status_code == 401
        proxied = {**here, "X-Forwarded-For": "192.0.2.9"}
        assert client.get("/metrics", headers=proxied, environ_overrides=PROXY).status_code == 401

    def test_are_told_to_whoever_has_the_token(self, client_of):
        client = client_of("tokens", metrics_token="of-prometheus")

        def status(token):
            headers = {"Host": NAMED, "Authorization": f"Bearer {token}"}
            return client.get("/metrics", headers=headers, environ_overrides=STRANGER).status_code

        assert (status("of-prometheus"), status("token-of-anna")) == (200, 401)


@pytest.mark.parametrize("state", ["%0d%0a", "a%00b", "a;b=c", "x" * 5000, "%F0%9F%98%80", "a,b"])
def test_a_hostile_state_of_a_login_names_no_cookie(client_of, state):
    answered = client_of("oidc").get(f"/login/callback?state={state}", headers={"Host": NAMED})

    assert answered.status_code == 401
    assert "\n" not in str(answered.headers.get("Set-Cookie", ""))

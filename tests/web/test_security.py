import os
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.db.audit_trail import AuditTrail
from rag.errors import SetupError
from rag.settings import Settings, WebSettings
from rag.web.access.counters import GuessCounter
from rag.web.access.logins import Entrant, LoginTable, digest
from rag.web.access.owner import LoginOwners
from rag.wiring.listeners import host_name, listener_policy
from tests.applications import app_of
from tests.web.fake_application import FakeApplication

REDIS = os.environ.get("GROUNDNOTE_TEST_REDIS_URL")


@pytest.fixture
def make_client(tmp_path, engine):
    def make(**sections):
        settings = Settings(data_dir=tmp_path, **sections)
        return app_of(FakeApplication(settings, engine)).test_client()

    return make


@pytest.fixture
def token_client(token_settings, engine):
    app = app_of(FakeApplication(token_settings, engine))

    @app.get("/form")
    def form():
        return app.jinja_env.globals["csrf_token"]()

    return app.test_client()


def log_in(client):
    return client.post("/login", data={"token": "token-of-anna", "next": "/form"})


class TestHosts:
    @pytest.mark.parametrize(
        ("host", "status"),
        [
            ("localhost:8000", 200),
            ("127.0.0.1", 200),
            ("[::1]:8000", 200),
            ("LOCALHOST", 200),
            ("evil.example", 421),
            ("localhost.evil.example", 421),
            ("127.0.0.1.evil.example:8000", 421),
        ],
    )
    def test_on_loopback_only_loopback_names_are_served(self, client, host, status):
        response = client.get("/api/v1/sessions", headers={"Host": host})

        assert response.status_code == status

    @given(st.text("abc.-", min_size=1), st.integers(1, 65535))
    def test_ports_do_not_count(self, name, port):
        assert host_name(f"{name}:{port}") == host_name(name) == name

    def test_names_are_known_in_small_letters(self):
        settings = Settings(web=WebSettings(allowed_hosts=("Docs.Example",)))
        policy = listener_policy(settings, "127.0.0.2")

        assert policy.answers_as("DOCS.example:8000")
        assert policy.answers_as("127.0.0.2")


class TestOrigins:
    @pytest.mark.parametrize(
        ("headers", "status"),
        [
            pytest.param({}, 201, id="a program"),
            pytest.param({"Sec-Fetch-Site": "same-origin"}, 201, id="our page"),
            pytest.param({"Sec-Fetch-Site": "none"}, 201, id="typed by the user"),
            pytest.param({"Sec-Fetch-Site": "cross-site"}, 403, id="another site"),
            pytest.param({"Sec-Fetch-Site": "same-site"}, 403, id="a neighbour"),
            pytest.param({"Origin": "http://localhost"}, 201, id="our origin"),
            pytest.param({"Origin": "http://evil.example"}, 403, id="another origin"),
            pytest.param({"Origin": "http://localhost:81"}, 403, id="another port"),
            pytest.param({"Origin": "null"}, 403, id="a hidden origin"),
        ],
    )
    def test_pages_of_other_sites_cannot_act(self, client, headers, status):
        assert client.post("/api/v1/sessions", headers=headers).status_code == status

    def test_pages_of_other_sites_may_link_here(self, client):
        response = client.get("/api/v1/sessions", headers={"Sec-Fetch-Site": "cross-site"})

        assert response.status_code == 200


class TestHeaders:
    @pytest.mark.parametrize("path", ["/api/v1/sessions", "/nothing", "/openapi.json"])
    def test_stand_on_every_answer(self, client, path):
        headers = client.get(path).headers

        assert headers["Content-Security-Policy"].startswith("default-src 'self'")
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "same-origin"
        assert headers["Cache-Control"] == "no-store"

    def test_no_cookie_is_set_where_none_is_needed(self, client, asked):
        assert client.get("/api/v1/sessions").headers.getlist("Set-Cookie") == []


class TestLogin:
    def test_remembers_the_browser_with_a_secret_of_its_own(self, token_client):
        response = log_in(token_client)

        assert (response.status_code, response.headers["Location"]) == (303, "/form")
        cookie = response.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Lax" in cookie
        assert "token-of-anna" not in cookie
        assert token_client.get("/api/v1/sessions").status_code == 200

    def test_is_asked_of_a_person_at_a_browser(self, token_client):
        response = token_client.get("/form?a=b", headers={"Accept": "text/html"})

        assert response.status_code == 303
        assert response.headers["Location"] == "/login?next=/form?a%3Db"
        assert 'name="token"' in token_client.get(response.headers["Location"]).text

    def test_a_form_needs_the_token_of_its_page(self, token_client):
        log_in(token_client)
        token = token_client.get("/form").get_data(as_text=True)

        without = token_client.post("/logout")
        wrong = token_client.post("/logout", data={"csrf_token": "guess"})
        in_header = token_client.post("/logout", headers={"X-CSRF-Token": token})

        assert (without.status_code, wrong.status_code, in_header.status_code) == (403, 403, 303)

    def test_json_of_our_own_pages_needs_no_form_token(self, token_client):
        log_in(token_client)

        response = token_client.post(
            "/api/v1/sessions", json={}, headers={"Sec-Fetch-Site": "same-origin"}
        )

        assert response.status_code == 201

    def test_an_everyday_server_has_no_login(self, client):
        assert client.post("/login", data={"token": "a"}).status_code == 401


class TestLogins:
    def test_the_digest_of_a_token_opens_nothing(self, token_client):
        known = digest("token-of-anna")

        for cookie in (known, digest("cookie:" + known), digest(known), "eyJ0b2tlbiI6ImEifQ.aa.bb"):
            token_client.set_cookie("groundnote", cookie)
            assert token_client.get("/api/v1/sessions").status_code == 401

    def test_what_the_database_holds_opens_nothing(self, token_client, engine):
        log_in(token_client)
        stored = LoginTable(engine).of("anna")[0].id

        token_client.set_cookie("groundnote", stored)

        assert token_client.get("/api/v1/sessions").status_code == 401

    def test_a_logout_ends_copies_of_the_cookie_too(self, token_client):
        cookie = log_in(token_client).headers["Set-Cookie"].split(";")[0].partition("=")[2]
        token = token_client.get("/form").get_data(as_text=True)

        token_client.post("/logout", data={"csrf_token": token})
        token_client.set_cookie("groundnote", cookie)

        assert token_client.get("/api/v1/sessions").status_code == 401

    def test_are_listed_and_ended_one_by_one(self, token_client, engine):
        log_in(token_client)
        elsewhere = LoginTable(engine).begin(
            Entrant("anna", digest("token-of-anna")), address="10.1.1.1", agent="Old phone"
        )
        page = token_client.get("/logins").get_data(as_text=True)
        token = token_client.get("/form").get_data(as_text=True)

        ended = token_client.post(f"/logins/{digest(elsewhere)}/end", data={"csrf_token": token})

        assert "Old phone" in page
        assert "this browser" in page
        assert ended.status_code == 303
        assert LoginTable(engine).find(elsewhere) is None
        assert token_client.get("/api/v1/sessions").status_code == 200

    @pytest.mark.parametrize(
        ("agent", "told"),
        [
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/2010 Firefox/140.0",
                "Firefox on Linux",
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 "
                "Safari/537.36 Edg/140.0",
                "Edge on Windows",
            ),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 15_0) AppleWebKit/605.1 Safari/605.1",
                "Safari on macOS",
            ),
            ("curl/8.0", "curl/8.0"),
            ("", "A browser that gave no name"),
        ],
    )
    def test_are_named_in_words(self, token_client, agent, told):
        sent = {"User-Agent": agent}
        token_client.post("/login", data={"token": "token-of-anna"}, headers=sent)

        assert f">{told}</b>" in token_client.get("/logins").text

    def test_of_others_cannot_be_ended(self, token_client, engine):
        bens = LoginTable(engine).begin(Entrant("ben", "x"), address="", agent="")
        log_in(token_client)
        token = token_client.get("/form").get_data(as_text=True)

        refused = token_client.post(f"/logins/{digest(bens)}/end", data={"csrf_token": token})

        assert refused.status_code == 404
        assert LoginTable(engine).find(bens) is not None

    def test_end_with_the_token_that_they_began_with(self, token_settings, engine):
        client = app_of(FakeApplication(token_settings, engine)).test_client()
        log_in(client)
        auth = token_settings.auth.model_copy(update={"tokens": {"token-of-ben": "ben"}})
        without = token_settings.model_copy(update={"auth": auth})

        restarted = app_of(FakeApplication(without, engine)).test_client()
        restarted.set_cookie("groundnote", client.get_cookie("groundnote").value)

        assert restarted.get("/api/v1/sessions").status_code == 401

    def test_are_over_after_a_month(self, engine):
        now = [datetime(2026, 1, 1, tzinfo=UTC)]
        table = LoginTable(engine, now=lambda: now[0])
        secret = table.begin(Entrant("anna", "x"), address="", agent="")

        now[0] += timedelta(days=30)
        assert table.find(secret) is not None

        now[0] += timedelta(days=2)
        assert table.find(secret) is None
        assert table.of("anna") == []


class TestGuessing:
    def test_of_bearer_tokens_is_bounded(self, token_client):
        def status(token):
            headers = {"Authorization": f"Bearer {token}"}
            return token_client.get("/api/v1/sessions", headers=headers).status_code

        assert status("token-of-anna") == 200
        wrong = [status(f"guess {n}") for n in range(12)]

        assert (wrong[0], wrong[-1]) == (401, 429)
        assert status("token-of-anna") == 200, "who was known before is not locked out"

    def test_is_counted_by_address_and_forgotten_after_a_minute(self, monkeypatch):
        now = [100.0]
        monkeypatch.setattr(time, "time", lambda: now[0])
        guesses = GuessCounter()
        for _ in range(10):
            guesses.was_wrong("10.0.0.1")

        assert guesses.wait_seconds("10.0.0.1", "new") > 0
        assert guesses.wait_seconds("10.0.0.2", "new") == 0

        now[0] += 61
        assert guesses.wait_seconds("10.0.0.1", "new") == 0

    def test_counts_all_addresses_that_one_line_has(self):
        guesses = GuessCounter()
        for n in range(10):
            guesses.was_wrong(f"2001:db8::{n}")

        assert guesses.wait_seconds("2001:db8::ffff", "new") > 0


class TestAuditTrail:
    def test_tells_who_did_what_from_where(self, token_client, engine):
        log_in(token_client)
        token = token_client.get("/form").get_data(as_text=True)
        token_client.post("/logout", data={"csrf_token": token})

        entries = list(AuditTrail(engine).entries())

        assert [(entry.owner, entry.action) for entry in entries] == [
            ("anna", "login"),
            ("anna", "logout"),
        ]
        assert entries[0].address == "127.0.0.1"


class TestTokens:
    @pytest.fixture
    def logins(self, engine):
        return LoginTable(engine)

    def test_may_be_given_as_digests(self, logins):
        owners = LoginOwners({"sha256:" + digest("long and random"): "anna"}, logins)

        assert owners.entrant("long and random", address="").owner == "anna"

    def test_must_be_given(self, logins):
        with pytest.raises(SetupError, match=r"auth\.tokens is empty"):
            LoginOwners({}, logins)

    @pytest.mark.parametrize("tokens", [{"": "anna"}, {" ": "anna"}, {"a": "anna", "b": ""}])
    def test_that_anybody_could_guess_are_refused(self, tokens, logins):
        with pytest.raises(SetupError, match=r"auth\.tokens has an empty"):
            LoginOwners(tokens, logins)


class TestOneOwner:
    def test_is_not_served_to_others_by_accident(self, make_client):
        with pytest.raises(SetupError, match=r"auth\.mode is single: anybody could read"):
            make_client(web={"host": "0.0.0.0"})

    def test_is_served_to_others_on_purpose(self, make_client):
        web = {"host": "0.0.0.0", "allowed_hosts": ["*"]}
        client = make_client(web=web, auth={"allow_public": True})

        assert client.get("/healthz").status_code == 200


class TestProxy:
    @pytest.fixture
    def proxied(self, make_client):
        return make_client(auth={"mode": "proxy", "proxy_header": "X-User"})

    def test_names_the_caller(self, proxied):
        proxied.post("/api/v1/sessions", headers={"X-User": "anna"})

        annas = proxied.get("/api/v1/sessions", headers={"X-User": "anna"}).get_json()
        bens = proxied.get("/api/v1/sessions", headers={"X-User": "ben"}).get_json()

        assert (len(annas["sessions"]), len(bens["sessions"])) == (1, 0)

    def test_is_believed_by_its_address_only(self, proxied):
        refused = proxied.get(
            "/api/v1/sessions",
            headers={"X-User": "anna"},
            environ_overrides={"REMOTE_ADDR": "192.0.2.7"},
        )

        assert refused.status_code == 401
        assert "192.0.2.7 is not among auth.trusted_proxies" in refused.get_json()["detail"]

    def test_may_be_named_by_its_network(self, make_client):
        client = make_client(auth={"mode": "proxy", "trusted_proxies": ["192.0.2.0/24"]})

        answered = client.get(
            "/api/v1/sessions",
            headers={"X-Forwarded-User": "anna"},
            environ_overrides={"REMOTE_ADDR": "192.0.2.7"},
        )

        assert answered.status_code == 200

    def test_must_have_an_address(self, make_client):
        with pytest.raises(SetupError, match=r"auth\.trusted_proxies holds what is no address"):
            make_client(auth={"mode": "proxy", "trusted_proxies": ["the proxy"]})

    @pytest.mark.parametrize("name", [None, " ", "a" * 201, "group:it"])
    def test_must_name_the_caller(self, proxied, name):
        headers = {} if name is None else {"X-User": name}

        assert proxied.get("/api/v1/sessions", headers=headers).status_code == 401


@pytest.mark.parametrize("name", ["group:it", "a" * 201])
def test_who_owns_all_where_nobody_logs_in_has_a_name_of_a_caller(make_client, name):
    with pytest.raises(SetupError, match=r"sessions\.default_owner: .* is no name of a caller"):
        make_client(sessions={"default_owner": name})


class TestRateLimits:
    def test_stop_a_caller_who_asks_too_often(self, make_client):
        client = make_client(web={"rate_limit": "2 per minute"})

        statuses = [client.get("/api/v1/sessions").status_code for _ in range(3)]
        refused = client.get("/api/v1/sessions")

        assert statuses == [200, 200, 429]
        assert refused.mimetype == "application/problem+json"
        assert int(refused.headers["Retry-After"]) > 0

    def test_count_callers_apart(self, token_settings, engine):
        web = token_settings.web.model_copy(update={"rate_limit": "1 per minute"})
        settings = token_settings.model_copy(update={"web": web})
        client = app_of(FakeApplication(settings, engine)).test_client()

        statuses = [
            client.get("/api/v1/sessions", headers={"Authorization": f"Bearer {token}"}).status_code
            for token in ("token-of-anna", "token-of-anna", "token-of-ben")
        ]

        assert statuses == [200, 429, 200]

    @pytest.mark.parametrize(
        ("key", "value"),
        [("rate_limit", "many"), ("rate_limit", "60"), ("rate_limit_storage", "redish://x")],
    )
    def test_that_cannot_be_kept_are_refused_by_name(self, make_client, key, value):
        with pytest.raises(SetupError, match=f"web.{key} is .*xpected"):
            make_client(web={key: value})

    def test_hold_while_the_place_of_the_counters_is_away(self, make_client):
        redis = {"url": "redis://127.0.0.1:1/0"}
        client = make_client(web={"rate_limit": "1 per minute"}, jobs=redis)

        assert [client.get("/api/v1/sessions").status_code for _ in range(2)] == [200, 429]

    @pytest.mark.skipif(not REDIS, reason="GROUNDNOTE_TEST_REDIS_URL names no Redis")
    def test_are_counted_by_all_processes_together(self, make_client):
        one, other = (
            make_client(web={"rate_limit": "2 per second"}, jobs={"url": REDIS}) for _ in range(2)
        )

        statuses = [each.get("/api/v1/sessions").status_code for each in (one, other, one, other)]

        assert statuses == [200, 200, 429, 429]

    def test_do_not_stop_health_checks(self, make_client):
        client = make_client(web={"rate_limit": "1 per minute"})

        assert [client.get("/healthz").status_code for _ in range(3)] == [200] * 3


class TestProblems:
    @pytest.mark.parametrize(
        ("method", "path", "status"),
        [
            ("GET", "/api/v1/nothing", 404),
            ("GET", "/nothing", 404),
            ("PATCH", "/api/v1/sessions", 405),
            ("DELETE", "/healthz", 405),
        ],
    )
    def test_are_documents_with_all_members(self, client, method, path, status):
        response = client.open(path, method=method)

        assert response.mimetype == "application/problem+json"
        problem = response.get_json()
        assert (response.status_code, problem["status"]) == (status, status)
        assert {"type", "title", "detail"} <= problem.keys()

    def test_name_the_allowed_methods(self, client):
        response = client.patch("/api/v1/sessions")

        assert set(response.headers["Allow"].split(", ")) >= {"GET", "POST"}
        assert "GET" in response.get_json()["detail"]

    def test_of_the_setup_are_for_the_log(self, application, client, caplog):
        def broken(*_args, **_options):
            raise SetupError("data_dir /srv/secret is not writable.")

        application.retriever = SimpleNamespace(search=broken)

        response = client.post("/api/v1/search", json={"query": "a"})

        assert response.status_code == 500
        assert "secret" not in response.get_data(as_text=True)
        assert "/srv/secret is not writable" in caplog.text
        assert "locals" not in caplog.text


class TestOperations:
    def test_ready_with_every_check(self, application, client):
        assert client.get("/readyz").get_json()["checks"] == application.checks

    def test_not_ready_when_a_check_fails(self, application, client):
        application.checks["database"] = False

        response = client.get("/readyz")

        assert response.status_code == 503
        assert response.get_json()["checks"]["database"] is False

    def test_figures_for_prometheus(self, client):
        response = client.get("/metrics")

        assert response.mimetype == "text/plain"
        assert "groundnote_turn" in response.get_data(as_text=True)

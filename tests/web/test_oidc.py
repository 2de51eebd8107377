"""Logging in at an OpenID Connect provider: a real one on loopback, honest and lying."""

import hmac
from base64 import urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc.jwk import OctKey, RSAKey
from sqlalchemy import select, update

from rag.db import logins, writing
from rag.db.audit_trail import AuditTrail
from rag.errors import SetupError
from rag.settings import Settings
from tests.applications import app_of, application_of
from tests.web.oidc_provider import TOKEN_PATH, running_provider

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the provider's own
DISCOVERY = "/.well-known/openid-configuration"
ADA = {"email": "Ada@Example.org", "email_verified": True, "groups": ["support"]}


@pytest.fixture
def provider():
    with running_provider() as provider:
        provider.set_user("1", **ADA)
        provider.set_user("2", email="ben@example.org", email_verified=True)
        yield provider


@pytest.fixture
def make(tmp_path, provider):
    """An application whose callers log in at the provider."""
    made = []

    def make(name="data", *, auth=(), **oidc):
        known = {"client_id": "groundnote", "client_secret": "secret"}
        oidc = {"discovery_url": provider.url + DISCOVERY} | known | oidc
        settings = Settings(
            data_dir=tmp_path / name, auth={"mode": "oidc", "oidc": oidc, **dict(auth)}
        )
        application = application_of(settings)
        made.append(application)
        return app_of(application)

    yield make
    for application in made:
        application.stop()


@pytest.fixture
def app(make):
    return make()


@pytest.fixture
def client(app):
    return app.test_client()


def path_of(location):
    parts = urlsplit(location)
    return f"{parts.path}?{parts.query}"


def log_in(client, provider, sub="1", *, to="/"):
    """The whole way; returns the last answer."""
    way = client.get("/login/provider", query_string={"next": to}).headers["Location"]
    return client.get(path_of(provider.log_in(way, sub)))


def sessions(client):
    return client.get("/api/v1/sessions").status_code


class TestALogin:
    def test_knows_the_caller_by_their_verified_address(self, client, provider, app):
        back = log_in(client, provider, to="/documents?q=a+b")

        assert back.status_code == 303
        assert back.headers["Location"] == "/documents?q=a+b"
        assert sessions(client) == 200
        assert [each.owner for each in audit(app)] == ["ada@example.org"]

    def test_begins_where_a_page_was_refused(self, client, provider):
        refused = client.get("/documents", headers={"Accept": "text/html"})
        form = client.get(refused.headers["Location"]).get_data(as_text=True)

        assert refused.headers["Location"] == "/login?next=/documents"
        assert 'href="/login/provider?next=/documents"' in form
        assert 'type="password"' not in form

    def test_proves_itself_with_a_code_verifier(self, client):
        way = parse_qs(urlsplit(client.get("/login/provider").headers["Location"]).query)

        assert way["code_challenge_method"] == ["S256"]
        assert len({way[each][0] for each in ("state", "nonce", "code_challenge")}) == 3
        cookie = next(each for each in client._cookies.values() if "login" in each.key)
        assert not any(cookie.value in each[0] for each in way.values())

    def test_is_finished_by_any_process(self, make, provider):
        one, other = make("same").test_client(), make("same").test_client()
        way = one.get("/login/provider").headers["Location"]
        for cookie in one._cookies.values():
            other.set_cookie(cookie.key, cookie.value, path=cookie.path)

        assert other.get(path_of(provider.log_in(way, "1"))).status_code == 303
        assert sessions(other) == 200

    def test_of_two_pages_at_once_does_not_disturb_either(self, client, provider):
        ways = [client.get("/login/provider").headers["Location"] for _ in range(2)]

        ends = [client.get(path_of(provider.log_in(way, "1"))).status_code for way in ways]

        assert ends == [303, 303]

    def test_may_name_another_claim(self, make, provider):
        app = make(owner_claim="sub")
        log_in(app.test_client(), provider)

        assert [each.owner for each in audit(app)] == ["1"]

    def test_finds_in_userinfo_what_the_token_leaves_out(self, make, provider):
        app = make()
        provider.forge(email=None, email_verified=None, groups=None)

        assert log_in(app.test_client(), provider).status_code == 303
        assert [each.owner for each in audit(app)] == ["ada@example.org"]

    def test_ends_after_its_hours(self, make, provider):
        app = make(login_hours=2)
        client = app.test_client()
        log_in(client, provider)
        with writing(app.extensions["groundnote"].engine) as connection:
            row = connection.execute(select(logins)).one()
            assert row.expires_at - row.created_at == timedelta(hours=2)
            over = datetime.now(UTC) - timedelta(seconds=1)
            connection.execute(update(logins).values(expires_at=over))

        assert sessions(client) == 401

    def test_ends_with_a_logout_that_names_the_providers(self, client, provider):
        log_in(client, provider)
        token = csrf(client)
        out = client.post("/logout", data={"csrf_token": token})
        page = client.get(out.headers["Location"]).get_data(as_text=True)

        assert sessions(client) == 401
        assert "You are logged out" in page
        assert f"{provider.url}/oauth2/end_session?" in page

    def test_ends_when_another_provider_is_set(self, make, provider):
        client = make("same").test_client()
        log_in(client, provider)
        other = make("same", client_id="other").test_client()
        other.set_cookie("groundnote", client.get_cookie("groundnote").value)

        assert sessions(other) == 401

    def test_may_stand_beside_tokens_of_programs(self, make, provider):
        client = make(auth={"tokens": {"token-of-a-program": "program"}}).test_client()
        bearer = {"Authorization": "Bearer token-of-a-program"}

        assert client.get("/api/v1/sessions", headers=bearer).status_code == 200
        assert sessions(client) == 401
        assert "Or log in with a token" in client.get("/login").get_data(as_text=True)


class TestGroups:
    def test_open_collections_while_they_last(self, make, provider):
        app = make(auth={"admins": ["root@example.org"]})
        provider.set_user("0", email="root@example.org", email_verified=True)
        root, ada = app.test_client(), app.test_client()
        log_in(root, provider, "0")
        made = root.post("/api/v1/collections", json={"name": "Support"}).get_json()
        members = {"members": {"group:support": "read"}}
        assert root.put(f"/api/v1/collections/{made['id']}", json=members).status_code == 200

        log_in(ada, provider)
        assert "Support" in names(ada)

        provider.set_user("1", **(ADA | {"groups": []}))
        assert "Support" in names(ada), "what the login brought holds as long as the login"
        elsewhere = app.test_client()
        log_in(elsewhere, provider)
        assert "Support" not in names(elsewhere)
        assert "Support" not in names(ada), "and no longer than the next login anywhere"

    def test_make_managers_and_administrators(self, make, provider):
        app = make(
            auth={
                "managers": ["group:leads"],
                "admins": ["group:it"],
                "groups": {"leads": ["group:4f2a"]},
            }
        )
        provider.set_user("1", **(ADA | {"groups": ["4f2a"]}))
        provider.set_user("2", email="b@example.org", email_verified=True, groups=["it"])
        provider.set_user("3", email="c@example.org", email_verified=True, groups=["leads2"])
        made = []
        for sub in "123":
            client = app.test_client()
            log_in(client, provider, sub)
            made.append(client.post("/api/v1/collections", json={"name": sub}).status_code)

        assert made == [201, 201, 403]

    @pytest.mark.parametrize(
        ("allowed", "status"),
        [(["group:support"], 303), (["@example.org"], 303), (["@other.org", "group:it"], 401)],
    )
    def test_and_domains_may_be_required(self, make, provider, allowed, status):
        client = make(allowed=allowed).test_client()

        answer = log_in(client, provider)

        assert answer.status_code == status
        assert (sessions(client) == 200) is (status == 303)

    @pytest.mark.parametrize("groups", [5, {"a": 1}, ["ok", 7], ["x"] * 2000, ["x" * 500]])
    def test_of_another_shape_let_nobody_in(self, client, provider, groups):
        provider.set_user("1", **(ADA | {"groups": groups}))

        assert "groups are no" in text_of(log_in(client, provider))
        assert sessions(client) == 401


class TestAForgery:
    """What a liar between us and the provider, or another client of it, could say."""

    @pytest.mark.parametrize(
        "claims",
        [
            {"aud": "another-client"},
            {"aud": ["another-client"], "azp": "groundnote"},
            {"iss": "https://elsewhere.example"},
            {"nonce": "of another login"},
            {"nonce": None},
            {"exp": 1_000_000_000},
            {"iat": None},
            {"sub": None},
            {"at_hash": "AAAA"},
        ],
        ids=str,
    )
    def test_in_a_claim_is_refused(self, client, provider, claims):
        provider.forge(**claims)

        answer = log_in(client, provider)

        assert answer.status_code == 401
        assert "cannot be believed" in text_of(answer)
        assert sessions(client) == 401

    def test_by_another_key_is_refused(self, client, provider):
        provider.forge(RSAKey.generate_key(2048))

        assert "cannot be believed" in text_of(log_in(client, provider))

    def test_with_the_public_key_as_a_shared_secret_is_refused(self, client, provider):
        secret = provider.public_key().as_pem(private=False)
        provider.forge()
        honest = provider.spoiling(TOKEN_PATH)

        def resigned(answer):
            claims = honest(answer)["id_token"].split(".")[1]
            head = urlsafe_b64encode(b'{"alg":"HS256"}').rstrip(b"=").decode()
            mac = hmac.digest(secret, f"{head}.{claims}".encode(), "sha256")
            signature = urlsafe_b64encode(mac).rstrip(b"=").decode()
            return answer | {"id_token": f"{head}.{claims}.{signature}"}

        provider.spoil(TOKEN_PATH, resigned)

        assert log_in(client, provider).status_code == 401

    @pytest.mark.parametrize("told", [["none"], ["none", "HS256", "RS256"]])
    def test_without_a_signature_is_refused(self, client, provider, told):
        supported = {"id_token_signing_alg_values_supported": told}
        provider.spoil(DISCOVERY, lambda answer: answer | supported)
        provider.forge(OctKey.import_key("x"), algorithm="none")

        assert log_in(client, provider).status_code == 401

    @pytest.mark.parametrize("id_token", [None, "", 5, "a.b.c", "a" * 100_000])
    def test_that_is_no_token_is_refused(self, client, provider, id_token):
        provider.spoil(TOKEN_PATH, lambda answer: answer | {"id_token": id_token})

        assert log_in(client, provider).status_code == 401

    def test_of_userinfo_about_somebody_else_is_refused(self, client, provider):
        provider.forge(groups=None, email=None)
        provider.spoil("/userinfo", lambda answer: answer | {"sub": "2"})

        assert "somebody else" in text_of(log_in(client, provider))

    @pytest.mark.parametrize(
        "claims",
        [{"email_verified": False}, {"email_verified": None}, {"email_verified": "true"}],
        ids=str,
    )
    def test_of_an_address_that_nobody_verified_is_refused(self, client, provider, claims):
        provider.set_user("1", **(ADA | claims))

        assert "has not verified the address" in text_of(log_in(client, provider))

    @pytest.mark.parametrize("name", ["group:support", "a\nb", "x" * 300, "  "])
    def test_of_a_name_that_means_more_is_refused(self, make, provider, name):
        client = make(owner_claim="nickname").test_client()
        provider.set_user("1", nickname=name, groups=[])

        assert log_in(client, provider).status_code == 401
        assert sessions(client) == 401

    def test_of_the_issuer_is_refused_before_anybody_is_sent_there(self, client, provider):
        provider.spoil(DISCOVERY, lambda answer: answer | {"issuer": "https://evil.example"})

        answer = client.get("/login/provider")

        assert answer.status_code == 401
        assert "https://evil.example" in text_of(answer)


class TestAStateOrCode:
    def test_of_another_browser_is_refused_and_the_provider_not_asked(self, app, client, provider):
        way = client.get("/login/provider").headers["Location"]
        back = path_of(provider.log_in(way, "1"))
        victim = app.test_client()
        provider.calls.clear()

        answer = victim.get(back)

        assert answer.status_code == 401
        assert "not begun in this browser" in text_of(answer)
        assert sessions(victim) == 401
        assert provider.calls == []

    def test_is_good_once(self, client, provider):
        way = client.get("/login/provider").headers["Location"]
        back = path_of(provider.log_in(way, "1"))
        cookies = list(client._cookies.values())
        assert client.get(back).status_code == 303
        client.delete_cookie("groundnote")

        assert client.get(back).status_code == 401
        for cookie in cookies:  # even of whoever kept the cookie
            client.set_cookie(cookie.key, cookie.value, path=cookie.path)
        assert client.get(back).status_code == 401
        assert sessions(client) == 401

    @pytest.mark.parametrize("changed", [lambda state: state[:-1], lambda state: state[::-1]])
    def test_is_compared_to_its_last_character(self, client, provider, changed):
        """The cookie is found by the first twelve."""
        way = client.get("/login/provider").headers["Location"]
        state = parse_qs(urlsplit(way).query)["state"][0]
        back = path_of(provider.log_in(way, "1"))
        provider.calls.clear()

        answer = client.get(back.replace(state, state[:12] + changed(state[12:])))

        assert "not begun in this browser" in text_of(answer)
        assert sessions(client) == 401
        assert provider.calls == []

    @pytest.mark.parametrize("state", ["", "x", "x" * 5000, "é", "\x00"])
    def test_that_was_guessed_is_refused(self, client, provider, state):
        client.get("/login/provider")

        answer = client.get("/login/callback", query_string={"code": "x", "state": state})

        assert answer.status_code == 401

    def test_cannot_put_words_of_others_on_our_page(self, client):
        told = {"error": "x", "error_description": "Call 0900-EVIL", "state": "guessed"}

        assert "EVIL" not in text_of(client.get("/login/callback", query_string=told))

    def test_is_refused_in_the_words_of_the_provider(self, client):
        way = parse_qs(urlsplit(client.get("/login/provider").headers["Location"]).query)
        told = {"error": "access_denied", "error_description": "Not <you>", "state": way["state"]}

        page = text_of(client.get("/login/callback", query_string=told))

        assert "refused: access_denied Not &lt;you&gt;." in page

    @pytest.mark.parametrize("code", ["", "x" * 5000, "wrong"])
    def test_that_the_provider_never_gave_lets_nobody_in(self, client, code):
        way = parse_qs(urlsplit(client.get("/login/provider").headers["Location"]).query)
        query = {"code": code, "state": way["state"]}

        assert client.get("/login/callback", query_string=query).status_code == 401
        assert sessions(client) == 401

    @pytest.mark.parametrize("to", ["//evil.example", "//[", "/" + "x" * 5000])
    def test_leads_to_no_other_site(self, client, provider, to):
        assert log_in(client, provider, to=to).headers["Location"] == "/"


class TestAProvider:
    def test_that_is_away_is_named_and_logins_stay(self, make):
        client = make(discovery_url=f"http://127.0.0.1:9{DISCOVERY}").test_client()

        answer = client.get("/login/provider")

        assert answer.status_code == 503
        assert "http://127.0.0.1:9 cannot be reached (ConnectionError)" in text_of(answer)
        assert client.get("/healthz").status_code == 200

    def test_that_went_away_disturbs_nobody_who_is_logged_in(self, make):
        with running_provider() as provider:
            provider.set_user("1", **ADA)
            client = make(discovery_url=provider.url + DISCOVERY).test_client()
            log_in(client, provider)
            way = client.get("/login/provider").headers["Location"]
            back = path_of(provider.log_in(way, "1"))

        assert sessions(client) == 200
        answer = client.get(back)
        assert answer.status_code == 503
        assert "Log in at 127.0.0.1" in text_of(answer)

    def test_that_fails_is_left_alone_for_a_while(self, make, provider):
        client = make().test_client()
        provider.spoil(DISCOVERY, lambda answer: [answer])

        answers = [client.get("/login/provider").status_code for _ in range(5)]

        assert answers == [401, 503, 503, 503, 503]
        assert provider.calls.count(DISCOVERY) == 1

    @pytest.mark.parametrize(
        "url",
        [
            "http://login.example.org" + DISCOVERY,
            "https://login.example.org",
            "ftp://localhost" + DISCOVERY,
            DISCOVERY,
        ],
    )
    def test_that_anybody_on_the_way_could_play_is_refused_at_the_start(self, make, url):
        with pytest.raises(SetupError, match=r"auth\.oidc\.discovery_url is"):
            make(discovery_url=url)

    def test_must_be_named(self, tmp_path):
        application = application_of(Settings(data_dir=tmp_path, auth={"mode": "oidc"}))
        with pytest.raises(SetupError, match=r"auth\.oidc is not set"):
            app_of(application)
        application.stop()

    def test_has_a_secret_that_no_error_shows(self):
        oidc = {"discovery_url": "x", "client_id": "y", "client_secret": "hidden"}

        assert "hidden" not in repr(Settings(auth={"mode": "oidc", "oidc": oidc}))


def audit(app):
    application: SimpleNamespace = app.extensions["groundnote"]
    return [each for each in AuditTrail(application.engine).entries() if each.action == "login"]


def csrf(client):
    page = client.get("/logins", headers={"Accept": "text/html"}).get_data(as_text=True)
    return page.split('name="csrf-token" content="')[1].split('"')[0]


def names(client):
    return [each["name"] for each in client.get("/api/v1/collections").get_json()["collections"]]


def text_of(answer):
    return answer.get_data(as_text=True)

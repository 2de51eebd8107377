"""C7 over every route there is: a new route is met by these tests without being named."""

from io import BytesIO

import pytest

from rag.web.access.security import PUBLIC_ENDPOINTS
from tests.web.two_owners import url_of

SECRET = "zanzibar"
ARGUMENTS = {"document_id": "document-2", "job_id": "job-1"}
BODIES = {
    "sessions.edit_question": {"index": 0},
    "messages.ask": {"content": "a"},
    "messages.import_messages": {"messages": [{"role": "user", "content": "a"}]},
    "context.summarize": {"start": 0, "end": 2},
    "context.correct_summary": {"line": "a", "text": "b"},
    "documents.search": {"query": "zanzi"},
    "openai.complete_chat": {"messages": [{"role": "user", "content": "a"}]},
}
QUERIES = {"q": "zanzi"}  # finds the secret, and does not name it


def rules(app):
    return sorted(
        (
            (rule, method)
            for rule in app.url_map.iter_rules()
            for method in rule.methods - {"HEAD", "OPTIONS"}
        ),
        key=lambda pair: (pair[0].rule, pair[1]),
    )


@pytest.fixture
def app(token_app):
    return token_app


@pytest.fixture
def as_anna(app):
    return Caller(app, "token-of-anna")


@pytest.fixture
def as_ben(app):
    return Caller(app, "token-of-ben")


class Caller:
    def __init__(self, app, token):
        self.client = app.test_client()
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    def call(self, method, url, **options):
        options.setdefault("headers", self.headers)
        return self.client.open(url, method=method, **options)

    def call_rule(self, app, rule, method, session_id):
        url = url_of(app, rule, ARGUMENTS | {"session_id": session_id})
        if method == "GET":
            return self.call(method, url, query_string=_query(rule.endpoint))
        if rule.endpoint == "documents.upload_documents":
            return self.call(method, url, data={"file": (BytesIO(b"# A"), "a.md")})
        return self.call(method, url, json=BODIES.get(rule.endpoint, {}))


def _query(endpoint):
    return QUERIES if "search" in endpoint else {}


@pytest.fixture
def annas_session(as_anna):
    session_id = as_anna.call("POST", "/api/v1/sessions", json={"title": SECRET}).json["id"]
    for _ in range(2):
        url = f"/api/v1/sessions/{session_id}/messages"
        assert as_anna.call("POST", url, json={"content": SECRET}).status_code == 200
    as_anna.call("POST", f"/api/v1/sessions/{session_id}/summaries", json={"start": 0, "end": 2})
    return session_id


def test_no_route_shows_or_changes_anothers_session(app, as_anna, as_ben, annas_session):
    before = as_anna.call("GET", f"/api/v1/sessions/{annas_session}/export?format=json").json
    checked = 0

    for rule, method in rules(app):
        if rule.endpoint == "static":
            continue
        response = as_ben.call_rule(app, rule, method, annas_session)

        said = response.get_data(as_text=True)
        assert response.status_code < 500, (rule.rule, method, said)
        assert SECRET not in said, (rule.rule, method)
        if "session_id" in rule.arguments:
            assert response.status_code == 404, (rule.rule, method, said)
            checked += 1

    assert checked >= 17
    after = as_anna.call("GET", f"/api/v1/sessions/{annas_session}/export?format=json").json
    before["session"].pop("last_used_at")
    after["session"].pop("last_used_at")
    assert after == before


def test_searching_all_sessions_finds_only_ones_own(as_anna, as_ben, annas_session):
    url = f"/api/v1/search/messages?q={SECRET}"

    assert as_anna.call("GET", url).json["total"] > 0
    assert as_ben.call("GET", url).json == {"query": SECRET, "found": [], "total": 0}


def test_a_search_and_a_chat_cannot_name_anothers_session(as_ben, annas_session):
    search = {"query": "a", "session_id": annas_session}
    chat = {
        "messages": [{"role": "user", "content": "a"}],
        "metadata": {"session_id": annas_session},
    }

    assert as_ben.call("POST", "/api/v1/search", json=search).status_code == 404
    assert as_ben.call("POST", "/v1/chat/completions", json=chat).status_code == 404


def test_every_route_but_the_public_ones_wants_to_know_the_caller(app, annas_session):
    nobody = Caller(app, None)

    for rule, method in rules(app):
        if rule.endpoint in PUBLIC_ENDPOINTS:
            continue
        response = nobody.call_rule(app, rule, method, annas_session)
        if rule.endpoint.startswith("pages."):
            assert response.status_code in (302, 303, 401), (rule.rule, method)
        else:
            assert response.status_code == 401, (rule.rule, method)


@pytest.mark.parametrize(
    "header",
    ["Bearer", "Bearer ", "Bearer token-of-nobody", "Basic token-of-anna", "token-of-anna"],
)
def test_no_other_header_opens_anything(app, header):
    response = app.test_client().get("/api/v1/sessions", headers={"Authorization": header})

    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == "Bearer"

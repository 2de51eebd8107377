"""Links lead where people are, apps that the operator names are let in, a link opens one source."""

import json
import re

import pytest

from rag.errors import SetupError
from rag.settings import Settings, WebSettings
from rag.web.access import rights
from rag.web.openai.completion import UNSEEN
from rag.web.request_context import EXTENSION
from tests.applications import app_of
from tests.web.fake_application import FakeApplication

CHAT = "/v1/chat/completions"
ASKED = {"model": "groundnote-links", "messages": [{"role": "user", "content": "How heavy?"}]}
ORIGINS = ("app://obsidian.md", "chrome-extension://abcdef", "http://localhost:3000")
TOKENS = {"mode": "tokens", "tokens": {"token-of-anna": "anna", "token-of-ben": "ben"}}
ANNA = {"Authorization": "Bearer token-of-anna"}


@pytest.fixture
def made(tmp_path, engine):
    def make(**settings):
        settings = Settings(data_dir=tmp_path, **{"auth": TOKENS, **settings})
        return app_of(FakeApplication(settings, engine).with_library()).test_client()

    return make


def link_in(answered):
    text = answered.get_json()["choices"][0]["message"]["content"]
    return re.search(rf"\[\[{UNSEEN}1\]\]\((.*?)\)", text)[1]


class TestPublicUrl:
    @pytest.mark.parametrize("root", ["https://docs.example.com", "https://example.com/docs/"])
    def test_is_where_links_lead_whatever_the_program_called_us(self, made, root):
        client = made(web={"public_url": root, "allowed_hosts": ["*"]})

        link = link_in(client.post(CHAT, json=ASKED, headers={**ANNA, "Host": "groundnote:8000"}))

        assert link.startswith(f"{root.rstrip('/')}/sessions/")

    def test_is_in_responses_too(self, made):
        client = made(web={"public_url": "https://docs.example.com"})
        body = {"model": "groundnote", "input": "How heavy?"}

        told = client.post("/v1/responses", json=body, headers=ANNA).get_json()

        assert "https://docs.example.com/sessions/" in json.dumps(told["output"])

    @pytest.mark.parametrize("wrong", ["docs.example.com", "ftp://x", "https://x/?a=b"])
    def test_is_an_address(self, tmp_path, wrong):
        with pytest.raises(ValueError, match="public_url"):
            Settings(data_dir=tmp_path, web={"public_url": wrong})


class TestOrigins:
    @pytest.mark.parametrize("origin", [*ORIGINS, "null"])
    def test_that_are_named_are_let_in_with_a_token(self, made, origin):
        client = made(web={"allowed_origins": [*ORIGINS, "null"]})

        answered = client.post(CHAT, json=ASKED, headers={**ANNA, "Origin": origin})

        assert answered.status_code == 200
        assert answered.headers["Access-Control-Allow-Origin"] == origin
        assert "Origin" in answered.headers["Vary"]
        assert "Access-Control-Allow-Credentials" not in answered.headers

    def test_ask_before_without_a_token(self, made):
        client = made(web={"allowed_origins": ORIGINS})
        asked = {
            "Origin": ORIGINS[0],
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,x-stainless-os",
        }

        told = client.options(CHAT, headers=asked)

        assert told.status_code == 204
        assert told.headers["Access-Control-Allow-Origin"] == ORIGINS[0]
        assert told.headers["Access-Control-Allow-Headers"] == "authorization,x-stainless-os"
        assert "POST" in told.headers["Access-Control-Allow-Methods"]

    @pytest.mark.parametrize(
        ("path", "headers"),
        [
            pytest.param(CHAT, {"Origin": "https://evil.test", **ANNA}, id="not named"),
            pytest.param(CHAT, {"Origin": "null", **ANNA}, id="null unnamed"),
            pytest.param(CHAT, {"Origin": ORIGINS[0]}, id="no token"),
            pytest.param("/api/v1/sessions", {"Origin": ORIGINS[0], **ANNA}, id="not /v1"),
        ],
    )
    def test_others_are_refused(self, made, path, headers):
        client = made(web={"allowed_origins": ORIGINS})

        refused = client.post(path, json=ASKED if path == CHAT else {}, headers=headers)

        assert refused.status_code in (401, 403)

    @pytest.mark.parametrize(
        ("auth", "origin", "said"),
        [
            ({"mode": "single"}, ORIGINS[0], "auth.mode is single"),
            ({"mode": "proxy"}, ORIGINS[0], "auth.mode is proxy"),
            (TOKENS, "*", "by its name"),
            (TOKENS, "http://localhost:3000/", "no path"),
        ],
    )
    def test_that_would_open_more_are_refused_at_the_start(self, made, auth, origin, said):
        with pytest.raises(SetupError, match=said):
            made(auth=auth, web={"allowed_origins": [origin]})


class TestSignedLinks:
    @pytest.fixture
    def web(self):
        return {"link_keys": ["a long random key", "the key before"], "link_hours": 1}

    def opened(self, client, link):
        return client.get(link.removeprefix("http://localhost"))

    def test_are_off_unless_a_key_is_set(self, made):
        assert "/sessions/" in link_in(made().post(CHAT, json=ASKED, headers=ANNA))

    def test_open_one_source_without_a_login(self, made, web):
        client = made(web=web)
        link = link_in(client.post(CHAT, json=ASKED, headers=ANNA))

        page = self.opened(client, link)

        assert (page.status_code, "120 g" in page.text) == (200, True)
        assert "/sessions/" not in page.text
        assert client.get("/").status_code in (302, 401)

    def test_end_with_their_time(self, made, web, monkeypatch):
        client = made(web=web)
        link = link_in(client.post(CHAT, json=ASKED, headers=ANNA))
        later = rights.URLSafeTimedSerializer.loads
        monkeypatch.setattr(
            rights.URLSafeTimedSerializer,
            "loads",
            lambda self, token, max_age: later(self, token, max_age=-1),
        )

        assert self.opened(client, link).status_code == 404

    def test_of_an_earlier_key_open_while_it_is_listed(self, made, web):
        client = made(web={**web, "link_keys": ["the key before"]})
        link = link_in(client.post(CHAT, json=ASKED, headers=ANNA))
        application = client.application.extensions[EXTENSION]
        opened = []
        for keys in (web["link_keys"], web["link_keys"][:1]):
            own = {**application.settings.web.model_dump(), "link_keys": keys}
            application.settings = application.settings.model_copy(
                update={"web": WebSettings(**own)}
            )
            opened.append(self.opened(client, link).status_code)

        assert opened == [200, 404]

    def test_that_are_changed_open_nothing(self, made, web):
        client = made(web=web)
        link = link_in(client.post(CHAT, json=ASKED, headers=ANNA))

        assert self.opened(client, link[:-2]).status_code == 404
        assert self.opened(made(), link).status_code == 404

    def test_open_nothing_of_a_conversation_that_is_gone(self, made, web):
        client = made(web=web)
        answered = client.post(CHAT, json=ASKED, headers=ANNA)
        session = answered.get_json()["session_id"]

        client.delete(f"/api/v1/sessions/{session}", headers=ANNA)

        assert self.opened(client, link_in(answered)).status_code == 404

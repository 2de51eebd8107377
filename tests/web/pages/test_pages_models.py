"""A language model is connected in the browser, tried, used at once, and its key kept safe."""

import re
import stat
import time

import pytest

from rag.documents.files import IncomingFile
from rag.settings import Settings
from tests.applications import app_of, application_of
from tests.openai_server import KEY, OpenAIServer, deltas, reply

TOOL_CALL = {
    "tool_calls": [
        {
            "index": 0,
            "id": "call-1",
            "type": "function",
            "function": {"name": "look_up_price", "arguments": '{"article": "K-100"}'},
        }
    ]
}
CITED = "The warranty of the P-12 lasts 30 months [2]."


@pytest.fixture
def application(tmp_path, monkeypatch):
    monkeypatch.setattr("rag.wiring.application.CONNECTION_LOOK_SECONDS", 0.0)
    application = application_of(Settings(data_dir=tmp_path))
    yield application
    application.stop()


@pytest.fixture
def browser(application):
    return app_of(application).test_client()


def posted(browser, path, **fields):
    token = re.search(r'name="csrf_token" value="([^"]+)"', browser.get("/settings/models").text)
    fields |= {"csrf_token": token[1]} if token else {}
    return browser.post(f"/settings/models/{path}", data=fields)


def connect(browser, server, key=KEY, model="fake"):
    assert posted(browser, "look", base_url=server.url, api_key=key).status_code == 200
    assert posted(browser, "try", model=model, use="1").status_code == 303


def ask(application, question="How long does the warranty last?"):
    session = application.store.create("local")
    return list(application.assistant.ask(session, question))[-1]


class TestConnecting:
    def test_a_trial_says_what_the_model_can_do(self, browser):
        with OpenAIServer(reply(CITED), deltas(TOOL_CALL, finish="tool_calls")) as server:
            posted(browser, "look", base_url=server.url, api_key=KEY)
            page = posted(browser, "try", model="fake").text

        rows = dict(re.findall(r'<th scope="row">([^<]+)</th><td>([^<]+)', page))
        assert rows["Answers from a source"] == rows["Puts the right number"] == "yes"
        assert rows["Calls tools"] == "yes"
        assert rows["Writes piece by piece"].startswith("yes, the first after")

    def test_a_trial_says_what_it_cannot(self, browser):
        with OpenAIServer(reply("Two years [1].")) as server:
            posted(browser, "look", base_url=server.url, api_key="")
            page = posted(browser, "try", model="fake").text

        assert "it said something else" in page
        assert "statements without a number" in page
        assert "it cannot look into earlier turns" in page

    def test_the_next_question_is_answered_by_it_in_every_process(self, application, browser):
        other = application_of(application.settings)
        other.load()
        with OpenAIServer(reply("Hello from the server.")) as server:
            connect(browser, server)
            ask(application)
            ask(other)
            asked = [each.headers.get("authorization") for each in server.requests]
        other.stop()

        assert asked.count(f"Bearer {KEY}") >= 2

    def test_disconnected_it_answers_without_a_model_again(self, application, browser):
        with OpenAIServer(reply("Hello from the server.")) as server:
            connect(browser, server)
            ask(application)
            posted(browser, "disconnect")
            before = len(server.requests)
            ask(application)

            assert len(server.requests) == before
        assert application.settings.llm.model is None

    def test_what_the_settings_name_comes_first(self, tmp_path):
        settings = Settings(data_dir=tmp_path, llm={"model": "m", "base_url": "http://127.0.0.1:9"})
        application = application_of(settings)
        browser = app_of(application).test_client()

        page = browser.get("/settings/models").text
        refused = posted(browser, "look", base_url="http://127.0.0.1:1/v1", api_key="")
        application.stop()

        assert "It is named in the settings file" in page
        assert refused.status_code == 400
        assert "comes before the browser" in refused.text


class TestTheKey:
    def test_stands_nowhere_in_clear(self, application, browser, tmp_path):
        with OpenAIServer(reply(CITED)) as server:
            connect(browser, server)
            pages = [
                browser.get("/settings/models").text,
                posted(browser, "try", model="fake").text,
            ]

        held = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert [path for path in held if KEY.encode() in path.read_bytes()] == []
        assert all(KEY not in page for page in pages)
        assert KEY not in repr(application.settings)
        assert stat.S_IMODE((tmp_path / "secret.key").stat().st_mode) == 0o600

    def test_is_asked_for_anew_where_the_secret_is_another(self, application, browser, tmp_path):
        with OpenAIServer(reply(CITED)) as server:
            connect(browser, server)
            (tmp_path / "secret.key").write_text("another")
            page = browser.get("/settings/models").text

        assert "Give the key anew" in page


class TestAnAddress:
    @pytest.mark.parametrize(
        ("address", "words"),
        [
            ("http://169.254.169.254/v1", "is not asked"),
            ("http://10.0.0.1/v1", "sources.private_hosts"),
            ("file:///etc/passwd", "no address of a model server"),
            ("http://user:pass@127.0.0.1/v1", "no address of a model server"),
            ("http://127.0.0.1:1/v1", "No model server answers"),
        ],
    )
    def test_is_refused_with_a_reason(self, browser, address, words):
        answer = posted(browser, "look", base_url=address, api_key="")

        assert answer.status_code >= 400
        assert words in answer.text

    def test_without_a_list_of_models_is_told(self, browser):
        with OpenAIServer(models=[]) as server:
            answer = posted(browser, "look", base_url=server.url, api_key="")

        assert "without a list of models" in answer.text


def test_only_operators_connect_models(tmp_path):
    auth = {"mode": "tokens", "tokens": {"token-of-anna": "anna"}, "admins": ["ben"]}
    application = application_of(Settings(data_dir=tmp_path, auth=auth))
    answer = (
        app_of(application)
        .test_client()
        .get("/settings/models", headers={"Authorization": "Bearer token-of-anna"})
    )
    application.stop()

    assert answer.status_code == 403


def test_a_look_at_what_runs_here_takes_no_time_where_nothing_runs(browser):
    began = time.monotonic()
    page = browser.get("/settings/models").text

    assert "No model server was found here" in page or "Look at its models" in page
    assert time.monotonic() - began < 10


class TestPicking:
    """Which models people may pick for a conversation is the operator's."""

    def connected(self, browser, server, choices):
        posted(browser, "look", base_url=server.url, api_key=KEY)
        posted(browser, "try", model="fake", choices=choices, use="1")

    def models_asked(self, server):
        return [each.body["model"] for each in server.requests]

    def test_a_conversation_is_answered_by_the_model_that_was_picked(self, browser, application):
        text = b"# P-12\n\nThe warranty of the P-12 lasts 30 months."
        list(application.ingestion.ingest([IncomingFile("p.md", lambda most: text)]))
        with OpenAIServer(*[reply(CITED)] * 9) as server:
            self.connected(browser, server, "small large")
            page = browser.get("/").text
            session = browser.post("/api/v1/sessions", json={"model": "large"}).get_json()
            url = f"/api/v1/sessions/{session['id']}"
            browser.post(f"{url}/messages", json={"content": "How long does the warranty last?"})
            browser.put(url, json={"model": ""})
            browser.post(f"{url}/messages", json={"content": "And the warranty of the P-12?"})
            asked = self.models_asked(server)

        assert [name for name in ("fake", "small", "large") if f'value="{name}"' in page] == [
            "fake",
            "small",
            "large",
        ]
        assert session["model"] == "large"
        assert asked[0] == "large"
        assert asked[-1] == "fake"

    def test_its_own_window_counts_for_its_conversations(self, browser, application):
        models = [
            {"id": "fake", "object": "model", "max_model_len": 32_000},
            {"id": "small", "object": "model", "max_model_len": 4_000},
        ]
        with OpenAIServer(reply(CITED), models=models) as server:
            self.connected(browser, server, "small")
            _ = application.assistant  # takes up what was connected
            usual, small = application.store.create("local"), application.store.create("local")
            small.pick_model("small")
            budgets = [application.memory.budget(each.read()) for each in (usual, small)]
            list(application.assistant.ask(small, "What is said of the warranty?"))
            sent = [each.body for each in server.requests if each.body["model"] == "small"]

        assert [budget.window for budget in budgets] == [32_000, 4_000]
        assert max(body["max_tokens"] for body in sent) < 2_000

    def test_those_of_a_few_are_ticked(self, browser):
        models = [{"id": name, "object": "model"} for name in ("fake", "small", "large")]
        with OpenAIServer(reply(CITED), models=models) as server:
            page = posted(browser, "look", base_url=server.url, api_key=KEY).text
            names = ["fake", "small", "large"]
            tried = posted(browser, "try", model="small", choices=["large"], names=names).text
            posted(browser, "try", model="small", choices=["large", "fake"], use="1")
            picked = browser.get("/").text

        assert page.count('type="checkbox" name="choices"') == 3
        assert 'value="large" checked' in tried
        assert "<option selected>small" in tried
        assert [name for name in names if f'value="{name}"' in picked] == names

    def test_another_one_is_refused_by_name(self, browser):
        with OpenAIServer(*[reply(CITED)] * 3) as server:
            self.connected(browser, server, "small")
            response = browser.post("/api/v1/sessions", json={"model": "huge"})

        assert response.status_code == 400
        assert "'huge' cannot be picked here. These can: fake, small" in response.text

    def test_one_that_may_not_be_picked_any_more_leaves_the_usual_one(self, browser, application):
        with OpenAIServer(*[reply(CITED)] * 6) as server:
            self.connected(browser, server, "small")
            session = browser.post("/api/v1/sessions", json={"model": "small"}).get_json()
            self.connected(browser, server, "")
            handle = application.store.open(session["id"], owner="local")
            list(application.assistant.ask(handle, "How long does the warranty last?"))
            page = browser.get(f"/sessions/{session['id']}").text

            assert set(self.models_asked(server)) <= {"fake"}
        assert 'name="model"' not in page

    def test_where_the_settings_name_the_model_they_name_the_choices(self, tmp_path):
        llm = {"base_url": "http://127.0.0.1:1/v1", "model": "a", "choices": ["b", "a"]}
        application = application_of(Settings(data_dir=tmp_path, llm=llm))

        assert application.pickable_models == ("a", "b")
        application.stop()

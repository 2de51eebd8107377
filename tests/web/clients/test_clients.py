"""Stock clients of other houses, installed by `make clients`, each against a real server."""

from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from rag.settings import Settings
from tests.applications import app_of, served
from tests.other_environments import told_by
from tests.prepared import migrated
from tests.web.fake_application import FakeApplication

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
ANSWER = "It weighs 120 g [1]."
# Each client by each protocol: whether a citation arrives in a form of its own.
OF_FRAMEWORKS = {
    "openai_chat": True,
    "openai_responses": True,
    "langchain": False,
    "langchain_responses": True,
    "agents": True,
    "agents_responses": True,
    "pydantic_ai": True,
    "pydantic_ai_responses": True,
    "haystack": False,
    "haystack_responses": True,
}
OF_CLIENTS = {
    "litellm_chat": True,
    "litellm_responses": True,
    "llama_index": True,
    "llama_index_responses": True,
    "llm": False,
}


# In three turns; `test_agents.py` has those of the other frameworks, with a tool.
IN_TURNS = {
    "openai_chat",
    "openai_responses",
    "haystack_responses",
    "litellm_responses",
    "llama_index_responses",
}
OF_JAVASCRIPT = dict.fromkeys(("openai", "responses", "ai sdk, chat", "ai sdk, responses"), True)
NAMES = {
    "openai": ("openai (JavaScript)", "chat"),
    "responses": ("openai (JavaScript)", "responses"),
    "ai sdk, chat": ("AI SDK", "chat"),
    "ai sdk, responses": ("AI SDK", "responses"),
    "openai_chat": ("openai (Python)", "chat"),
    "openai_responses": ("openai (Python)", "responses"),
    "langchain": ("LangChain", "chat"),
    "langchain_responses": ("LangChain", "responses"),
    "agents": ("Agents SDK", "chat"),
    "agents_responses": ("Agents SDK", "responses"),
    "pydantic_ai": ("Pydantic AI", "chat"),
    "pydantic_ai_responses": ("Pydantic AI", "responses"),
    "haystack": ("Haystack", "chat"),
    "haystack_responses": ("Haystack", "responses"),
    "litellm_chat": ("LiteLLM", "chat"),
    "litellm_responses": ("LiteLLM", "responses"),
    "llama_index": ("LlamaIndex", "chat"),
    "llama_index_responses": ("LlamaIndex", "responses"),
    "llm": ("`llm`", "chat"),
}


def check(made, live):
    """Text and citations came through, whole and streamed."""
    sessions = set()
    for name, got in made.items():
        assert (got["text"], got["streamed"]) == (ANSWER, ANSWER), name
        for (url,) in (got["urls"], got["streamedUrls"]):
            assert url.startswith(f"{live.url}/sessions/"), name
            assert url.endswith("/sources/1"), name
            sessions.add(url.removesuffix("/sources/1"))
        assert len(got["turns"]) == 3, name
        assert len(set(got["turns"])) == 1, name  # one conversation, one number
    assert len(sessions) == 2 * len(made)  # the same first question never shares one


def test_those_in_javascript_get_cited_answers(live):
    made = told_by("node", HERE / "ask.mjs", f"{live.url}/v1")

    assert made.keys() == {*OF_JAVASCRIPT}
    check(made, live)
    assert made["responses"]["goesOn"]
    assert made["openai"]["refused"].startswith("400")
    assert "response_format" in made["openai"]["refused"]


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """One server for all of them."""
    folder = tmp_path_factory.mktemp("live")
    engine = migrated(folder / "groundnote.db")
    application = FakeApplication(Settings(data_dir=folder), engine).with_library()
    with served(app_of(application)) as url:
        yield SimpleNamespace(url=url)
    engine.dispose()


@pytest.fixture(scope="module")
def told(live):
    """What all of an environment tell: its packages take longer to load than they to answer."""
    names = {"frameworks": OF_FRAMEWORKS, "clients": ["asked", *OF_CLIENTS]}
    script = HERE / "cite.py"
    return cache(
        lambda environment: told_by(environment, script, f"{live.url}/v1", *names[environment])
    )


def test_those_in_python_get_cited_answers(live, told):
    made = told("clients")["asked"]

    assert made.keys() == {"litellm", "llama index"}
    check(made, live)
    assert "response_format" in made["litellm"]["refused"]


@pytest.mark.parametrize(
    ("environment", "expected"), [("frameworks", OF_FRAMEWORKS), ("clients", OF_CLIENTS)]
)
def test_citations_arrive_in_the_clients_own_form_where_it_has_one(
    live, told, environment, expected
):
    made = {name: got for name, got in told(environment).items() if name != "asked"}

    assert {name: bool(got["urls"]) for name, got in made.items()} == expected
    assert {name for name, got in made.items() if "turns" in got} == IN_TURNS & {*expected}
    for name, got in made.items():
        assert got["text"] == ANSWER, name
        assert all(url.endswith("/sources/1") for url in got["urls"]), name
        if "turns" in got:
            assert len(got["turns"]) == 3, name
            assert len(set(got["turns"])) == 1, name  # one conversation, one number
        start, link = got["linked"].split("[[\u20601]](")
        assert start == "It weighs 120 g ", name
        assert link.startswith(f"{live.url}/sessions/"), name


def test_the_page_of_clients_says_what_arrives():
    page = (HERE.parents[2] / "docs" / "clients.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    told = {
        (client, protocol): not form.startswith("links")
        for client, protocol, form in rows
        if protocol in ("chat", "responses")
    }
    tried = OF_FRAMEWORKS | OF_CLIENTS | OF_JAVASCRIPT

    assert told == {NAMES[name]: expected for name, expected in tried.items()}

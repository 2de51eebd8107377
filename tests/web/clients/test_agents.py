"""Agents with tools of their own and forms of answers, by real frameworks (`make clients`).

The model is a script on loopback: it calls the tool, reads what came of it and answers.
"""

import json
from functools import cache
from pathlib import Path

import pytest

from tests.applications import app_of, served
from tests.model_application import World, calling
from tests.openai_server import reply
from tests.other_environments import told_by

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
FRAMEWORKS = (
    "langchain", "langchain, responses", "agents sdk", "agents sdk, chat", "pydantic ai",
    "pydantic ai, streamed", "pydantic ai, responses", "agents sdk, streamed",
    "agents sdk, chat, streamed", "haystack",
)  # fmt: skip
AI_SDK = ("ai sdk", "ai sdk, responses", "ai sdk, streamed", "ai sdk, responses, streamed")
FORM = {"said": "It weighs 120 g [1][47].", "left": 12}


def thinking(exchange):
    """A model that calls the tool first, then answers as it was asked to."""
    body, last = exchange.body, exchange.body["messages"][-1]
    names = [tool["function"]["name"] for tool in body.get("tools", ())]
    others = [name for name in names if name != "stock"]
    if "stock" in names and last["role"] != "tool":
        told = calling(("stock", {"of": "Aero 5"}))
    elif others:
        told = calling((others[0], FORM))
    elif body.get("response_format"):
        told = reply(json.dumps(FORM))
    else:
        told = reply(f"It weighs 120 g [1], and {last['content']} are left [47].")
    told(exchange)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World(tmp_path_factory.mktemp("data")) as world:
        world.server.behaviours[:] = [thinking]
        with served(app_of(world.application)) as url:
            world.url = f"{url}/v1"
            yield world


def check(world, name, got):
    """Each turn called the tool once and was answered with a citation, in one conversation."""
    assert got["calls"] == 3, name
    for text in got["texts"]:
        assert "120 g [1]" in text, name
        assert "47" not in text, name
    assert got["form"] == {"said": "It weighs 120 g [1].", "left": 12}, name
    (session,) = [
        session
        for session in world.client.get("/api/v1/sessions").get_json()["sessions"]
        if f"({name})" in session["title"]
    ]
    told = world.client.get(f"/api/v1/sessions/{session['id']}/messages").get_json()["messages"]
    spoken = [each for each in told if each["role"] != "system"]
    assert [each["role"] for each in spoken] == ["user", "assistant"] * 3, name
    for answer in spoken[1::2]:
        (citation,) = answer["citations"]
        assert citation["n"] == 1, name


@pytest.fixture(scope="module")
def told(world):
    """What all of an environment tell: its packages take longer to load than they to answer."""
    names = {"frameworks": FRAMEWORKS, "clients": ("llama index",)}
    script = HERE / "use_tools.py"
    return cache(lambda environment: told_by(environment, script, world.url, *names[environment]))


@pytest.mark.parametrize(
    ("environment", "name"),
    [*(("frameworks", name) for name in FRAMEWORKS), ("clients", "llama index")],
)
def test_agents_in_python_keep_tools_and_citations(world, told, environment, name):
    check(world, name, told(environment)[name])


def test_agents_of_the_ai_sdk_keep_tools_and_citations(world):
    made = told_by("node", HERE / "use_tools.mjs", world.url)

    assert made.keys() == {*AI_SDK}
    for name, got in made.items():
        check(world, name, got)
        assert len({link.rpartition("/sources/")[2] for link in got["links"]}) == 1

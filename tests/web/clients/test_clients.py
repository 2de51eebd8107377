"""Stock clients of other houses, installed by `make clients`, each against a real server."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
PYTHON = Path(sys.prefix) / "clients" / "bin" / "python"
ANSWER = "It weighs 120 g [1]."


def made_by(command, live):
    """What the clients of a script made of our answers."""
    offline = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    done = subprocess.run(
        [*map(str, command), f"{live.url}/v1"],
        cwd=HERE,
        env=os.environ | offline,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


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
    if not (HERE / "node_modules").is_dir() or shutil.which("node") is None:
        pytest.skip("the clients are not installed: make clients")
    made = made_by(["node", HERE / "ask.mjs"], live)

    assert made.keys() == {"openai", "responses", "ai sdk, chat", "ai sdk, responses"}
    check(made, live)
    assert made["responses"]["goesOn"]
    assert made["openai"]["refused"].startswith("400")
    assert "response_format" in made["openai"]["refused"]


def test_those_in_python_get_cited_answers(live):
    if not PYTHON.exists():
        pytest.skip("the clients are not installed: make clients")
    made = made_by([PYTHON, HERE / "ask.py"], live)

    assert made.keys() == {"litellm", "llama index"}
    check(made, live)
    assert "response_format" in made["litellm"]["refused"]

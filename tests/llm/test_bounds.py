"""A reply ends, whatever a server sends without end."""

import time

import pytest

from rag.llm.dialects import RequestOptions
from rag.llm.openai_compatible import OpenAIChatModel
from rag.seams import models
from tests.openai_server import KEY, OpenAIServer, asked, delta_event, error_of


def without_end(delta):
    def behave(exchange):
        exchange.begin_stream()
        while not exchange.hung_up(0.001):
            exchange.send_event(delta_event(delta))

    return behave


def model_at(server, **asking):
    return OpenAIChatModel(
        server.url,
        "fake",
        api_key=KEY,
        timeout_seconds=5,
        max_retries=0,
        asking=RequestOptions(**asking),
    )


@pytest.mark.parametrize(
    "delta",
    [
        pytest.param({"content": " " * 50}, id="blanks"),
        pytest.param({"reasoning_content": "hm, let me think about that"}, id="thinking"),
        pytest.param({"content": "<think>hm, let me think about that"}, id="thinking in text"),
        pytest.param(
            {"tool_calls": [{"index": 0, "function": {"arguments": "[1, 2, 3, 4, 5], "}}]},
            id="arguments",
        ),
    ],
)
def test_what_is_no_answer_ends_it(delta):
    with OpenAIServer(without_end(delta)) as server:
        error, text = error_of(model_at(server), asked(max_tokens=60))

        assert "no text of an answer; 960 are waited for" in str(error)
        assert not text.strip()
        assert server.disconnected.wait(5)


def test_silence_among_signs_of_life_ends_it(monkeypatch):
    monkeypatch.setattr(models, "SILENT_SECONDS", 0.3)
    with OpenAIServer(without_end({"content": ""})) as server:
        error, _ = error_of(model_at(server))

        assert "no character came for 0.3 seconds" in str(error)


def test_no_answer_takes_longer_than_is_set():
    with OpenAIServer(without_end({"content": "word "})) as server:
        began = time.monotonic()
        error, text = error_of(model_at(server, answer_seconds=0.5))

        assert "llm.answer_seconds (0.5)" in str(error)
        assert text.startswith("word word")
        assert time.monotonic() - began < 5

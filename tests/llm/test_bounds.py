"""A reply ends, whatever a server sends without end."""

import time

import pytest

from rag.seams import models
from tests.openai_server import OpenAIServer, asked, delta_event, error_of, failure, model_at, reply
from tests.waiting import LONG


def without_end(delta):
    def behave(exchange):
        exchange.begin_stream()
        while not exchange.hung_up(0.001):
            exchange.send_event(delta_event(delta))

    return behave


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
        assert server.disconnected.wait(LONG)


def test_silence_among_signs_of_life_ends_it(monkeypatch):
    monkeypatch.setattr(models, "SILENT_SECONDS", 0.3)
    with OpenAIServer(without_end({"content": ""})) as server:
        error, _ = error_of(model_at(server))

        assert "no character came for 0.3 seconds" in str(error)


class TestDeadline:
    """`llm.answer_seconds` is for the whole answer, however many calls it takes."""

    def test_it_ends_a_reply_without_end(self):
        with OpenAIServer(without_end({"content": "word "})) as server:
            began = time.monotonic()
            error, text = error_of(model_at(server), asked(deadline=models.Deadline(0.5)))

            assert "llm.answer_seconds (0.5)" in str(error)
            assert text.startswith("word word")
            assert time.monotonic() - began < LONG / 4

    @pytest.mark.parametrize("begins", [False, True], ids=["at once", "after a word"])
    def test_it_ends_a_reply_that_stops(self, begins):
        def behave(exchange):
            if begins:
                exchange.begin_stream()
                exchange.send_event(delta_event({"content": "Well"}))
            exchange.hung_up(LONG)

        with OpenAIServer(behave) as server:
            began = time.monotonic()
            error, _ = error_of(model_at(server), asked(deadline=models.Deadline(0.4)))

            assert "llm.answer_seconds (0.4)" in str(error)
            assert time.monotonic() - began < LONG / 4

    def test_it_is_shared_by_calls_of_one_answer(self):
        with OpenAIServer(reply("Fine.")) as server:
            over = models.Deadline(-1)
            error, _ = error_of(model_at(server), asked(deadline=over))

            assert "llm.answer_seconds" in str(error)
            assert not server.requests

    def test_it_ends_tries_anew(self):
        with OpenAIServer(failure(503, "busy")) as server:
            error, _ = error_of(
                model_at(server, max_retries=2), asked(deadline=models.Deadline(0.2))
            )

            assert len(server.requests) == 1
            assert error

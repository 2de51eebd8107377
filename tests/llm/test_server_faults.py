import time

import pytest

from rag.errors import ContextTooLong, ModelInterrupted, ModelUnavailable, UnreadableReply
from rag.llm.openai_compatible import OpenAIChatModel, complete
from rag.seams import ToolSpec
from rag.seams.models import SUMMARY, Patience
from tests import openai_server as server_side
from tests.openai_server import (
    KEY,
    OpenAIServer,
    asked,
    deltas,
    error_of,
    failure,
    model_at,
    page,
    reply,
)
from tests.waiting import LONG

JSON = "application/json"
SEARCH = ToolSpec("search", "Search.", {"type": "object", "properties": {}})


class TestAServerThatFails:
    def test_by_being_absent_is_unavailable_and_the_address_is_named(self):
        with OpenAIServer() as server:
            url = server.url
        model = OpenAIChatModel(url, "fake", max_retries=0, timeout_seconds=2)

        error, _ = error_of(model)

        assert isinstance(error, ModelUnavailable)
        assert url in str(error)
        assert "llm.base_url" in str(error)

    @pytest.mark.parametrize(
        ("behaviour", "kind", "words"),
        [
            pytest.param(
                failure(401, f"Incorrect key {KEY}"), ModelUnavailable, "OPENAI_API_KEY", id="401"
            ),
            pytest.param(failure(403, "No."), ModelUnavailable, "llm.api_key_env", id="403"),
            pytest.param(
                failure(404, "model 'x' not found"), ModelUnavailable, "llm.model", id="404"
            ),
            pytest.param(failure(429, "Slow down."), ModelUnavailable, "Slow down.", id="429"),
            pytest.param(
                failure(500, f"CUDA error for Bearer {KEY}"), ModelUnavailable, "CUDA", id="500"
            ),
            pytest.param(
                page("<html>Bad gateway</html>", status=502), ModelUnavailable, "502", id="502"
            ),
            pytest.param(page("<html>Log in</html>"), UnreadableReply, "proxy", id="proxy page"),
            pytest.param(
                page('{"choices": [', content_type=JSON), UnreadableReply, "JSON", id="invalid JSON"
            ),
            pytest.param(page("[1, 2]"), UnreadableReply, "JSON", id="not an object"),
            pytest.param(page(""), UnreadableReply, "empty", id="empty body"),
            pytest.param(
                server_side.events("{not json"), UnreadableReply, "JSON", id="invalid event"
            ),
            pytest.param(
                server_side.events({"error": {"message": f"Overloaded {KEY}"}}),
                ModelUnavailable,
                "Overloaded",
                id="error event",
            ),
            pytest.param(
                page('{"choices": null, "base_resp": {"status_msg": "no balance"}}'),
                ModelUnavailable,
                "no balance",
                id="error beside",
            ),
            pytest.param(
                page('{"success": false, "errors": [{"message": "Upstream"}]}'),
                ModelUnavailable,
                "Upstream",
                id="errors",
            ),
            pytest.param(
                server_side.events({"error parsing tool call": "invalid character"}),
                ModelUnavailable,
                "invalid character",
                id="odd key",
            ),
            pytest.param(
                server_side.events(
                    {"error": {"message": "Tokens to keep: greater than the context length"}}
                ),
                ContextTooLong,
                "too long",
                id="context length in a stream",
            ),
            pytest.param(
                failure(400, "Cannot truncate prompt with n_keep (5028) >= n_ctx (1024)"),
                ContextTooLong,
                "n_ctx",
                id="n_keep",
            ),
            pytest.param(
                page('{"error": {"message": "Overloaded"}}', content_type=JSON),
                ModelUnavailable,
                "Overloaded",
                id="error with status 200",
            ),
        ],
    )
    def test_is_translated_into_what_to_do(self, behaviour, kind, words):
        with OpenAIServer(behaviour) as server:
            error, text = error_of(model_at(server))

        assert type(error) is kind
        assert words in str(error)
        assert text == ""

    @pytest.mark.parametrize(
        "behaviour",
        [
            pytest.param(server_side.cut("Five days "), id="connection lost"),
            pytest.param(server_side.cut("Five days ", politely=True), id="ended within an event"),
            pytest.param(
                deltas({"content": "Five days "}, finish=None, done=False), id="no end mark"
            ),
            pytest.param(
                server_side.events(
                    server_side.delta_event({"content": "Five days "}),
                    {"error": {"message": "boom"}},
                ),
                id="error event",
            ),
            pytest.param(deltas({"content": "Five days "}, finish="content_filter"), id="filtered"),
            pytest.param(server_side.hang(after="Five days "), id="hanging"),
        ],
    )
    def test_in_the_middle_is_interrupted_and_keeps_what_came(self, behaviour):
        with OpenAIServer(behaviour) as server:
            error, text = error_of(model_at(server, timeout_seconds=0.3))

        assert type(error) is ModelInterrupted
        assert text == "Five days"

    @pytest.mark.parametrize(
        "behaviour",
        [
            pytest.param(server_side.hang(), id="silent"),
            pytest.param(server_side.only_pings(), id="only pings"),
        ],
    )
    def test_by_hanging_is_given_up(self, behaviour):
        with OpenAIServer(behaviour) as server:
            error, _ = error_of(model_at(server, timeout_seconds=0.3))

        assert type(error) is ModelUnavailable
        assert "0.3 seconds" in str(error)

    def test_by_talking_on_and_on_meets_the_limit_of_the_request(self):
        with OpenAIServer(server_side.endless()) as server:
            error, text = error_of(model_at(server), asked(patience=Patience(0.3)))

        assert type(error) is ModelInterrupted
        assert text.startswith("word ")

    def test_by_silence_names_the_setting_that_acts(self):
        short = asked(patience=SUMMARY.set_to(0.3))
        with OpenAIServer(server_side.hang(), server_side.hang()) as server:
            of_the_request, _ = error_of(model_at(server, timeout_seconds=600), short)
            of_the_model, _ = error_of(model_at(server, timeout_seconds=0.2), short)

        assert "raise summarization_settings.timeout_seconds." in str(of_the_request)
        assert "raise llm.timeout_seconds." in str(of_the_model)

    def test_does_not_spoil_the_next_request(self):
        with OpenAIServer(server_side.cut("Fi"), failure(500, "x"), reply("Five.")) as server:
            model = model_at(server)
            error_of(model)
            error_of(model)

            assert complete(model, asked()).text == "Five."


class TestAnotherTry:
    @pytest.mark.parametrize("status", [429, 500, 503])
    def test_helps_when_the_server_is_only_busy(self, status):
        busy = failure(status, "busy", headers={"retry-after": "0"})

        with OpenAIServer(busy, busy, reply("Five.")) as server:
            assert complete(model_at(server, max_retries=2), asked()).text == "Five."

    def test_helps_when_the_connection_had_gone_stale(self):
        with OpenAIServer(server_side.drop(), reply("Five.")) as server:
            assert complete(model_at(server, max_retries=1), asked()).text == "Five."

    def test_is_given_up_after_max_retries(self):
        with OpenAIServer(failure(429, "busy", headers={"retry-after": "0"})) as server:
            error_of(model_at(server, max_retries=1))

        assert len(server.requests) == 2

    def test_is_not_made_when_the_server_asks_for_a_long_wait(self):
        with OpenAIServer(failure(429, "busy", headers={"retry-after": "600"})) as server:
            error_of(model_at(server, max_retries=2))

        assert len(server.requests) == 1

    def test_waits_a_moment_when_the_server_does_not_say_how_long(self, monkeypatch):
        waits = []
        monkeypatch.setattr("rag.llm.openai_compatible.pause", waits.append)

        with OpenAIServer(failure(503, "busy")) as server:
            error_of(model_at(server, max_retries=2))

        assert waits == [0.5, 1.0]

    def test_is_not_made_for_a_refused_key(self):
        with OpenAIServer(failure(401, "no")) as server:
            error_of(model_at(server, max_retries=2))

        assert len(server.requests) == 1


class TestContextTooLong:
    @pytest.mark.parametrize(
        ("status", "message", "code"),
        [
            pytest.param(
                400,
                "This model's maximum context length is 8192 tokens. However, your messages "
                "resulted in 9000 tokens. Please reduce the length of the messages.",
                "context_length_exceeded",
                id="OpenAI",
            ),
            pytest.param(
                400, "Your input exceeds the limit.", "context_length_exceeded", id="code only"
            ),
            pytest.param(
                400, "Your input exceeds the context window of this model.", None, id="window"
            ),
            pytest.param(
                400,
                "'max_tokens' or 'max_completion_tokens' is too large: 3000. This model's maximum "
                "context length is 8192 tokens and your request has 7000 input tokens",
                None,
                id="vLLM with max_tokens",
            ),
            pytest.param(
                400,
                "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
                None,
                id="vLLM prompt",
            ),
            pytest.param(
                400,
                "the request exceeds the available context size, try increasing it",
                None,
                id="llama.cpp",
            ),
            pytest.param(500, "the input length exceeds the context length", None, id="Ollama"),
            pytest.param(
                400,
                "This endpoint's maximum context length is 32768 tokens. However, you requested "
                "about 40000 tokens (38000 of text input, 2000 in the output).",
                None,
                id="OpenRouter",
            ),
            pytest.param(
                400, "prompt is too long: 210000 tokens > 200000 maximum", None, id="Claude"
            ),
            pytest.param(
                400,
                "The input token count (40000) exceeds the maximum number of tokens allowed 32768",
                None,
                id="Gemini",
            ),
            pytest.param(
                400,
                "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 "
                "maximum context length",
                None,
                id="Mistral",
            ),
            pytest.param(
                400,
                "Trying to keep the first 5000 tokens when context the overflows. However, the "
                "model is loaded with context length of only 4096 tokens",
                None,
                id="LM Studio",
            ),
        ],
    )
    def test_is_recognised_in_the_words_of_each_server(self, status, message, code):
        with OpenAIServer(failure(status, message, code=code)) as server:
            error, _ = error_of(model_at(server), asked(tools=(SEARCH,)))

        assert type(error) is ContextTooLong
        assert len(server.requests) == 1

    def test_is_recognised_inside_a_stream(self):
        message = {
            "error": {"message": "Context size exceeded", "type": "exceed_context_size_error"}
        }

        with OpenAIServer(server_side.events(message)) as server:
            error, _ = error_of(model_at(server))

        assert type(error) is ContextTooLong

    def test_is_not_read_into_a_rate_limit(self):
        message = "Rate limit reached: limit 30000 tokens per min, requested 31000 tokens."

        with OpenAIServer(failure(429, message)) as server:
            error, _ = error_of(model_at(server))

        assert type(error) is ModelUnavailable


class TestHangingUp:
    def test_closing_the_iterator_stops_the_server(self):
        with OpenAIServer(server_side.endless()) as server:
            stream = model_at(server).stream(asked())
            next(stream)

            stream.close()

            assert server.disconnected.wait(LONG)

    def test_time_that_the_reader_takes_does_not_count(self):
        with OpenAIServer(reply("one two three")) as server:
            texts = []
            for delta in model_at(server, timeout_seconds=0.2).stream(asked()):
                texts.append(delta.text)
                time.sleep(0.15)

        assert "".join(texts) == "one two three"


def test_the_address_is_shown_without_user_and_password():
    model = OpenAIChatModel("http://me:pw-secret@127.0.0.1:9/v1?token=abc", "fake", max_retries=0)

    error, _ = error_of(model)

    assert "pw-secret" not in str(error)
    assert "abc" not in str(error)

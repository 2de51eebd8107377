import json

import pytest

from rag.llm.windows import (
    DEFAULT_WINDOW,
    FLOOR,
    SHRINKING,
    ModelWindow,
    TokenBudget,
    listed_window,
    published_window,
)
from tests.openai_server import OpenAIServer, failure, page

ABSENT = "http://127.0.0.1:9/v1"


class TestBudget:
    def test_shares_the_window_and_keeps_a_reserve(self):
        budget = TokenBudget(8000)

        assert (budget.input_tokens, budget.max_tokens) == (4710, 3140)

    def test_gives_an_answer_no_more_than_its_share_of_a_small_window(self):
        assert TokenBudget(1000).max_tokens == 340

    def test_gives_an_answer_no_more_than_is_set(self):
        assert TokenBudget(128_000, answer_tokens=2000).max_tokens == 2000

    @pytest.mark.parametrize("window", [1, 100, 256, 4096, 8191, 1_000_000])
    def test_never_gives_more_than_the_window(self, window):
        budget = TokenBudget(window)

        assert budget.input_tokens >= 0
        assert budget.max_tokens >= 1
        assert budget.input_tokens <= 0.6 * max(0, window - 150)
        assert budget.input_tokens + budget.max_tokens <= max(1, window)


class TestWindowTold:
    @pytest.mark.parametrize(
        "row",
        [
            pytest.param({"max_model_len": 4096}, id="vLLM"),
            pytest.param({"context_length": 4096}, id="OpenRouter"),
            pytest.param({"max_context_length": 4096}, id="LM Studio, Mistral"),
            pytest.param({"meta": {"n_ctx_train": 131072, "n_ctx": 4096}}, id="as started"),
        ],
    )
    def test_is_found_where_each_server_says_it(self, row):
        listing = {"data": [{"id": "other", "context_length": 9999}, {"id": "mine", **row}]}

        assert listed_window(json.dumps(listing), "mine") == 4096

    def test_of_the_only_model_holds_though_it_has_another_name(self):
        listing = {"data": [{"id": "/models/mine.gguf", "meta": {"n_ctx": 4096}}]}

        assert listed_window(json.dumps(listing), "mine") == 4096

    @pytest.mark.parametrize(
        "listing",
        [
            pytest.param("<html>", id="a page"),
            pytest.param('{"data": null}', id="no list"),
            pytest.param('["x"]', id="no rows"),
            pytest.param('{"data": [{"id": "mine", "context_length": 0}]}', id="zero"),
            pytest.param('{"data": [{"id": "mine", "context_length": "big"}]}', id="words"),
            pytest.param('{"data": [{"id": "a", "n_ctx": 1000}, {"id": "b"}]}', id="others"),
        ],
    )
    def test_is_nothing_where_the_server_does_not_tell(self, listing):
        assert listed_window(listing, "mine") is None


class TestModelWindow:
    def test_is_the_servers_word_before_the_setting_and_asked_once(self):
        with OpenAIServer(models=[{"id": "fake", "max_model_len": 4096}]) as server:
            window = ModelWindow(server.url, "fake", configured=9000)

            assert [window.tokens(), window.tokens()] == [4096, 4096]
            assert len(server.other_requests) == 1

    def test_is_never_more_than_the_setting(self):
        with OpenAIServer(models=[{"id": "fake", "max_model_len": 131_072}]) as server:
            assert ModelWindow(server.url, "fake", configured=9000).tokens() == 9000

    @pytest.mark.parametrize(
        ("fits", "then"),
        [
            pytest.param(3000, 3000, id="what it says"),
            pytest.param(None, int(4096 * SHRINKING), id="less, where it does not say"),
            pytest.param(8192, int(4096 * SHRINKING), id="less, where it says what it refused"),
        ],
    )
    def test_of_a_server_that_refuses_it_is(self, fits, then):
        with OpenAIServer(models=[{"id": "fake", "max_model_len": 4096}]) as server:
            window = ModelWindow(server.url, "fake")

            window.was_too_small(fits)

            assert window.tokens() == then < 4096
            assert window.published_tokens() == (fits if then == fits else 4096)

    @pytest.mark.parametrize(
        "told",
        [{"top_provider": {"max_completion_tokens": 700}}, {"max_output_tokens": 700}],
        ids=["beside the model, as OpenRouter tells", "in its row"],
    )
    def test_what_is_published_of_a_reply_is_known(self, told):
        with OpenAIServer(models=[{"id": "fake", "context_length": 8_000, **told}]) as server:
            window = ModelWindow(server.url, "fake")

            assert (window.answer_limit(), window.tokens()) == (700, 8_000)

    @pytest.mark.parametrize(
        ("path", "told"),
        [
            ("/props", {"default_generation_settings": {"n_ctx": 4096}}),
            ("/api/show", {"parameters": "stop x\nnum_ctx   4096", "model_info": {"a": 1}}),
            ("/api/show", {"model_info": {"llama.context_length": 131_072}}),
        ],
        ids=["llama.cpp", "Ollama, by its parameters", "Ollama, what it loads by itself"],
    )
    def test_is_asked_for_beside_the_protocol(self, path, told):
        trained = {"id": "fake", "meta": {"n_ctx_train": 131_072}}
        with OpenAIServer(models=[trained], beside={path: told}) as server:
            assert ModelWindow(server.url, "fake").tokens() == 4096

    def test_of_ollama_is_what_is_loaded_once_it_is(self):
        """As Ollama answers: its listing and `/api/show` tell what the model was made for."""
        now, shown = (
            [0.0],
            {"model_info": {"gemma3.context_length": 131_072}, "parameters": "top_k 64"},
        )
        listing = [{"id": "gemma3:latest", "object": "model", "owned_by": "library"}]
        beside = {"/api/ps": {"models": []}, "/api/show": shown}
        with OpenAIServer(models=listing, beside=beside) as server:
            window = ModelWindow(server.url, "gemma3", clock=lambda: now[0])
            before = window.tokens()
            loaded = {"name": "gemma3:latest", "model": "gemma3:latest", "context_length": 8192}
            server.beside = {"/api/ps": {"models": [loaded]}, "/api/show": shown}
            now[0] = 61.0

            assert (before, window.tokens()) == (4096, 8192)

    def test_of_lm_studio_is_what_is_loaded(self):
        """As LM Studio answers: what it does not know is an error with status 200."""
        unknown = {"error": "Unexpected endpoint or method."}
        rows = [
            {"id": "other", "state": "not-loaded", "max_context_length": 32_768},
            {"id": "mine", "state": "loaded", "max_context_length": 131_072,
             "loaded_context_length": 4096},
        ]  # fmt: skip
        beside = {"/props": unknown, "/api/v0/models": {"object": "list", "data": rows},
                  "/api/ps": unknown, "/api/show": unknown}  # fmt: skip
        listing = [{"id": row["id"], "object": "model", "owned_by": "x"} for row in rows]
        with OpenAIServer(models=listing, beside=beside) as server:
            assert ModelWindow(server.url, "mine").tokens() == 4096
            assert ModelWindow(server.url, "other").tokens() == DEFAULT_WINDOW

    def test_is_what_the_model_could_take_where_nobody_says_more(self):
        with OpenAIServer(models=[{"id": "fake", "meta": {"n_ctx_train": 4096}}]) as server:
            assert ModelWindow(server.url, "fake").tokens() == 4096

    @pytest.mark.parametrize(
        "behaviour",
        [failure(401, "no"), failure(500, "no"), page("<html>"), page("")],
        ids=["401", "500", "page", "empty"],
    )
    def test_is_the_setting_when_the_server_does_not_tell(self, behaviour):
        with OpenAIServer(models_behaviour=behaviour) as server:
            assert ModelWindow(server.url, "fake", configured=9000).tokens() == 9000

    def test_of_an_absent_server_is_8000_and_asked_again_a_minute_later(self):
        now = [0.0]
        with OpenAIServer(models_behaviour=failure(503, "starting")) as server:
            window = ModelWindow(server.url, "fake", clock=lambda: now[0])
            before = window.tokens()
            server.models_behaviour, server.models = None, [{"id": "fake", "context_length": 4096}]
            soon = window.tokens()
            now[0] = 61.0
            later = window.tokens()

        assert (before, soon, later) == (DEFAULT_WINDOW, DEFAULT_WINDOW, 4096)

    def test_of_a_local_server_is_not_taken_from_the_price_list(self):
        assert published_window("gpt-4o") == 128_000
        assert ModelWindow(ABSENT, "gpt-4o").tokens() == DEFAULT_WINDOW

    def test_of_a_providers_own_model_is_in_the_price_list(self):
        assert published_window("gpt-4o-mini", base_url="https://api.openai.com/v1") == 128_000

    def test_of_an_unknown_model_is_not(self):
        assert published_window("no-such-model") is None

    def test_of_a_server_that_always_refuses_has_a_floor(self):
        """It claims 2048 whatever comes; what is left shall hold the rules and a source."""
        with OpenAIServer(models=[{"id": "fake", "max_model_len": 16_384}]) as server:
            window = ModelWindow(server.url, "fake")
            for _ in range(30):
                window.was_too_small(2048)

            assert window.tokens() == FLOOR

    def test_of_a_small_model_is_never_guessed_larger_than_it_is(self):
        with OpenAIServer(models=[{"id": "fake", "max_model_len": 768}]) as server:
            window = ModelWindow(server.url, "fake")
            window.was_too_small(None)

            assert window.tokens() == 768

    def test_forgets_after_minutes_what_was_refused(self):
        now = [0.0]
        with OpenAIServer(models=[{"id": "fake", "max_model_len": 16_384}]) as server:
            window = ModelWindow(server.url, "fake", clock=lambda: now[0])
            window.was_too_small(2048)
            soon = window.tokens()
            now[0] = 301.0

            assert (soon, window.tokens()) == (2048, 16_384)

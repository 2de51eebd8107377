"""What refusals of the servers in use mean, in their own words."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from rag.llm.dialects import Server, ServerDialect, most_tokens, says_too_long, tokens_that_fit
from rag.records import ChatMessage, Role
from rag.seams import ModelRequest, ToolSpec

REFUSALS = [json.loads(line) for line in (Path(__file__).parent / "refusals.jsonl").open()]
TOO_LONG = [each for each in REFUSALS if each["means"] == "too long"]
OTHERS = [(each["text"], each["means"]) for each in REFUSALS if each["means"] != "too long"]
SEARCH = ToolSpec("search", "Search.", {"type": "object", "properties": {}})


@dataclass(frozen=True)
class Refusal:
    """A refusal, as the client tells it."""

    message: str
    status_code: int = 400
    body: object = None


@pytest.mark.parametrize("refusal", TOO_LONG, ids=lambda each: each["server"])
def test_messages_that_are_too_long_are_known_and_so_is_what_fits(refusal):
    assert says_too_long(refusal["text"])
    if refusal["fits"]:
        assert tokens_that_fit(refusal["text"]) == refusal["fits"]


@pytest.mark.parametrize(
    "text",
    [
        "Rate limit exceeded. Please try again in 20s.",
        "Too many tokens per minute (TPM): limit 6000.",
        "You exceeded your current quota, please check your plan and billing details.",
        "max_tokens is too large: 99999. This model supports at most 16384 completion tokens.",
        "Input validation error: messages must not be empty.",
    ],
)
def test_other_refusals_are_not_taken_for_too_long_messages(text):
    assert not says_too_long(text)


@pytest.mark.parametrize(("text", "option"), OTHERS)
def test_what_a_server_refuses_is_not_sent_again(text, option):
    habits = ServerDialect(Server("http://127.0.0.1:1/v1", "any", None))
    habits.thinks = option in ("reasoning_effort", "chat_template_kwargs")
    if option == "max_completion_tokens":
        habits.refused = frozenset({"max_tokens"})
    messages = [ChatMessage(Role.SYSTEM, "Be brief."), ChatMessage(Role.USER, "How long?")]
    request = ModelRequest(
        messages, 100, temperature=0.3, stop=("\n\n",), tools=(SEARCH,), thinks=not habits.thinks
    )
    body = habits.body(request)
    if option == "reasoning_content":
        body["messages"] = [*body["messages"], {"role": "assistant", option: "So."}]

    assert habits.concede(Refusal(text), body)

    assert option in habits.refused


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("max_tokens must be less than or equal to `8192`, the maximum value", 8192),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192),
        ("max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens", 8192),
        ("The parameter max_tokens is too large, maximum is 4096", 4096),
    ],
)
def test_how_long_a_reply_may_be_is_read(text, most):
    assert most_tokens(text) == most


def test_our_own_key_is_not_repeated_whatever_it_looks_like():
    server = Server("http://127.0.0.1:1/v1", "fake", api_key="open sesame")

    assert server.quote("The key 'open sesame' is not known.") == "The key '…' is not known."


@pytest.mark.parametrize("key", ["x", "EMPTY", "none", "ollama", "1234567"])
def test_a_key_that_is_none_stays_a_word(key):
    """Local servers need none, and are given any: their messages stay readable."""
    server = Server("http://127.0.0.1:1/v1", "fake", api_key=key)

    assert server.quote(f"No {key} at 12345678.") == f"No {key} at 12345678."


def test_a_number_that_no_window_has_is_not_what_fits():
    told = "limit: 500 requests a minute; maximum context length is 4096 tokens"

    assert tokens_that_fit(told) == 4096
    assert tokens_that_fit("limit: 500 requests a minute") is None

"""What is sent to a server, and what is learned from its replies."""

import pytest

from rag.errors import ModelInterrupted
from rag.llm.failures import Server
from rag.llm.habits import Asking, Habits
from rag.llm.openai_compatible import OpenAIChatModel, complete
from rag.seams import ToolSpec
from tests.openai_server import OpenAIServer, asked, deltas, failure, model_at, reply

SEARCH = ToolSpec("search", "Search.", {"type": "object", "properties": {}})


@pytest.mark.parametrize(
    ("base_url", "effort", "told"),
    [
        ("http://127.0.0.1:8080/v1", None, {}),
        ("https://api.openai.com/v1", "low", {"reasoning_effort": "low"}),
        ("https://openrouter.ai/api/v1", "high", {"reasoning": {"effort": "high"}}),
        ("https://openrouter.ai/api/v1", "off", {"reasoning": {"enabled": False}}),
        (
            "http://127.0.0.1:8080/v1",
            "off",
            {"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": False}},
        ),
    ],
)
def test_how_much_to_think_is_told_as_each_server_wants_it(base_url, effort, told):
    habits = Habits(Server(base_url, "m"), Asking(reasoning=effort))

    body = habits.body(asked())

    sent = {**body, **body["extra_body"]}
    keys = ("reasoning_effort", "reasoning", "chat_template_kwargs")
    assert {key: sent[key] for key in keys if key in sent} == told


def test_what_the_operator_adds_is_sent_with_every_request():
    with OpenAIServer(reply("Five days [1].")) as server:
        model = OpenAIChatModel(server.url, "m", asking=Asking(extra_body={"top_k": 20}))
        complete(model, asked())

    assert server.requests[0].body["top_k"] == 20


def test_a_refused_effort_is_left_out_from_then_on():
    refusal = failure(400, "Unrecognized request argument supplied: reasoning_effort")
    with OpenAIServer(refusal, reply("Five days [1].")) as server:
        model = OpenAIChatModel(server.url, "m", asking=Asking(reasoning="low"))
        assert complete(model, asked()).text == "Five days [1]."

    assert "reasoning_effort" not in server.requests[1].body


@pytest.mark.parametrize(
    "thinking",
    [
        deltas({"reasoning_content": "The user asks"}, {"content": "Five days [1]."}),
        deltas({"reasoning": "The user asks"}, {"content": "Five days [1]."}),
        deltas({"content": "<think>The user asks</think>Five days [1]."}),
        deltas({"content": [{"type": "thinking"}, {"type": "text", "text": "Five days [1]."}]}),
    ],
)  # fmt: skip
def test_thoughts_are_no_answer(thinking):
    with OpenAIServer(thinking) as server:
        assert complete(model_at(server), asked()).text == "Five days [1]."


def test_a_model_that_was_seen_thinking_is_told_not_to_where_that_does_not_help():
    thinking = deltas({"reasoning_content": "The user asks"}, {"content": "Five days [1]."})
    with OpenAIServer(thinking, reply("{}")) as server:
        model = model_at(server)
        complete(model, asked())
        complete(model, asked(thinks=False))

    aside = server.requests[1].body
    assert aside["chat_template_kwargs"] == {"enable_thinking": False}
    assert aside["max_tokens"] > server.requests[0].body["max_tokens"]


def test_a_model_whose_thoughts_come_unopened_shows_them_once_at_most():
    unopened = deltas({"content": "Refund, card."}, {"content": "</think>Five days [1]."})
    with OpenAIServer(unopened) as server:
        model = model_at(server)
        first = complete(model, asked()).text
        shown = [delta.text for delta in model.stream(asked())]

    assert first == "Five days [1]."
    assert "".join(shown) == "Five days [1]."


@pytest.mark.parametrize("reason", ["length", "max_tokens"])
def test_a_reply_that_may_not_be_longer_says_so(reason):
    with OpenAIServer(reply("Refunds take", finish=reason)) as server:
        assert complete(model_at(server), asked()).is_cut


def test_a_reply_of_thoughts_alone_is_an_error_that_says_what_to_do():
    thinking = deltas({"reasoning_content": "The user asks"}, finish="length")
    with OpenAIServer(thinking) as server, pytest.raises(ModelInterrupted) as caught:
        complete(model_at(server), asked())

    assert "llm.max_tokens" in str(caught.value)


def test_calls_written_as_text_have_an_id_as_the_protocol_wants():
    call = '<tool_call>{"name": "search", "arguments": {}}</tool_call>'
    with OpenAIServer(deltas({"content": call})) as server:
        completion = complete(model_at(server), asked(tools=(SEARCH,)))

    assert [(call.id, call.name) for call in completion.tool_calls] == [("call00001", "search")]
    assert completion.text == ""

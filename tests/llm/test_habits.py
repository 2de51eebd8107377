"""What is sent to a server, and what is learned from its replies."""

import pytest

from rag.errors import ModelInterrupted
from rag.llm.dialects import RequestOptions, Server, ServerDialect
from rag.llm.openai_compatible import OpenAIChatModel, complete
from rag.records import ChatMessage, Role, ToolCall
from rag.seams import ToolSpec
from tests.openai_server import QUESTION, OpenAIServer, asked, deltas, failure, model_at, reply

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
    habits = ServerDialect(Server(base_url, "m"), RequestOptions(reasoning=effort))

    body = habits.body(asked())

    sent = {**body, **body["extra_body"]}
    keys = ("reasoning_effort", "reasoning", "chat_template_kwargs")
    assert {key: sent[key] for key in keys if key in sent} == told


def test_what_the_operator_adds_is_sent_with_every_request():
    with OpenAIServer(reply("Five days [1].")) as server:
        model = OpenAIChatModel(server.url, "m", asking=RequestOptions(extra_body={"top_k": 20}))
        complete(model, asked())

    assert server.requests[0].body["top_k"] == 20


def test_a_refused_effort_is_left_out_from_then_on():
    refusal = failure(400, "Unrecognized request argument supplied: reasoning_effort")
    with OpenAIServer(refusal, reply("Five days [1].")) as server:
        model = OpenAIChatModel(server.url, "m", asking=RequestOptions(reasoning="low"))
        assert complete(model, asked()).text == "Five days [1]."

    assert "reasoning_effort" not in server.requests[1].body


REFUSALS = {
    "the stream": (
        "Unsupported value: 'stream' does not support true with this model.", "stream",
    ),
    "the stream, with tools": (
        "This model doesn't support tool use in streaming mode.", "stream",
    ),
    "what belongs to it": (
        "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
        "stream_options",
    ),
    "a temperature": ("`temperature` is deprecated for this model.", "temperature"),
}  # fmt: skip


@pytest.mark.parametrize(("told", "option"), REFUSALS.values(), ids=REFUSALS)
def test_an_option_that_is_refused_by_name_is_left_out_alone(told, option):
    with OpenAIServer(failure(400, told), reply("Five days [1].")) as server:
        model = model_at(server)
        answer = complete(model, asked(temperature=0.2, tools=(SEARCH,)))

    first, second = (each.body for each in server.requests)
    assert answer.text == "Five days [1]."
    assert option not in second
    assert first.keys() - second.keys() <= {option, "stream_options"}


def test_a_role_that_is_refused_without_quotation_marks_is_done_without():
    refusal = failure(400, "invalid params, chat content has invalid message role: system (2013)")
    rules = ChatMessage(Role.SYSTEM, "Be brief.")
    with OpenAIServer(refusal, reply("Five days [1].")) as server:
        complete(model_at(server), asked(messages=(rules, QUESTION)))

    assert server.requests[1].body["messages"][0]["role"] == "user"


CALL = {"index": 0, "id": "a", "function": {"name": "search", "arguments": "{}"}}
SIGNED = {"google": {"thought_signature": "CtQB=="}}


def test_what_came_beside_a_call_goes_back_with_it():
    thinking = deltas(
        {"reasoning_content": "I look "},
        {"reasoning_content": "it up."},
        {"tool_calls": [CALL | {"extra_content": SIGNED}]},
        finish="tool_calls",
    )
    with OpenAIServer(thinking, reply("Five days [1].")) as server:
        model = model_at(server)
        calls = complete(model, asked(tools=(SEARCH,))).tool_calls
        made = ChatMessage(Role.ASSISTANT, "", tool_calls=calls)
        found = ChatMessage(Role.TOOL, "Nothing.", tool_call_id="a")
        complete(model, asked(messages=(QUESTION, made, found), tools=(SEARCH,)))

    _, sent, _ = server.requests[1].body["messages"]
    assert sent["reasoning_content"] == "I look it up."
    assert sent["tool_calls"][0]["extra_content"] == SIGNED


def test_thoughts_that_a_server_does_not_take_back_are_left_out():
    told = "'messages.1': property 'reasoning_content' is unsupported"
    calls = (ToolCall("a", "search", "{}", beside_message={"reasoning_content": "I look."}),)
    made = ChatMessage(Role.ASSISTANT, "", tool_calls=calls)
    with OpenAIServer(failure(400, told), reply("Five days [1].")) as server:
        complete(model_at(server), asked(messages=(QUESTION, made), tools=(SEARCH,)))

    sent = server.requests[1].body
    assert "reasoning_content" not in sent["messages"][1]
    assert sent["messages"][1]["tool_calls"]
    assert sent["tools"]


def test_a_call_that_the_server_could_not_read_is_read_here():
    def refuse(exchange):
        told = {"message": "Failed to call a function.", "code": "tool_use_failed"}
        written = '<function=search={"query": "refund"}</function>'
        exchange.send_json(400, {"error": told | {"failed_generation": written}})

    with OpenAIServer(refuse) as server:
        model = model_at(server)
        (call,) = complete(model, asked(tools=(SEARCH,))).tool_calls

    assert (call.name, call.arguments) == ("search", '{"query": "refund"}')
    assert model.takes_tools


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
        assert any(delta.cut for delta in model_at(server).stream(asked()))


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


def test_calls_written_as_text_are_none_where_the_server_reads_them():
    call = '{"name": "search", "arguments": {"query": "five"}}'
    with OpenAIServer(deltas({"content": f"Five days.\n{call}"})) as server:
        model = OpenAIChatModel(server.url, "m", asking=RequestOptions(written_calls=False))
        completion = complete(model, asked(tools=(SEARCH,)))

    assert (completion.text, completion.tool_calls) == (f"Five days.\n{call}", ())

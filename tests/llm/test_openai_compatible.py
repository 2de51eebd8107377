import json

import pytest

from rag.errors import ModelUnavailable, SetupError
from rag.llm.openai_compatible import OpenAIChatModel, complete
from rag.records import ChatMessage, Role, ToolCall, Usage
from rag.seams import ToolSpec
from tests import openai_server as server_side
from tests.openai_server import (
    KEY,
    QUESTION,
    OpenAIServer,
    asked,
    deltas,
    error_of,
    failure,
    model_at,
    reply,
)

SEARCH = ToolSpec("search", "Search.", {"type": "object", "properties": {"q": {"type": "string"}}})


class TestAGoodReply:
    def test_arrives_in_pieces_with_the_usage_last(self):
        with OpenAIServer(reply("Five days [1].")) as server:
            found = list(model_at(server).stream(asked()))

        assert "".join(delta.text for delta in found) == "Five days [1]."
        assert len(found) > 3
        assert found[-1].usage == Usage(11, 7)

    @pytest.mark.parametrize("told", [-7, True, "7", 7.5, None])
    def test_counts_no_tokens_that_are_no_count(self, told):
        usage = {"prompt_tokens": 11, "completion_tokens": told}
        with OpenAIServer(
            reply("Yes.", usage=usage), reply("Yes.", usage=dict.fromkeys(usage, told))
        ) as server:
            found, without = (list(model_at(server).stream(asked()))[-1].usage for _ in range(2))

        assert (found, without) == (Usage(11, 0), None)

    def test_is_asked_for_as_the_request_says(self):
        with OpenAIServer(reply("Yes.")) as server:
            complete(model_at(server), asked(temperature=0.3, tools=(SEARCH,)))

        body = server.requests[0].body
        assert body["messages"] == [{"role": "user", "content": QUESTION.content}]
        assert (body["model"], body["max_tokens"], body["temperature"]) == ("fake", 100, 0.3)
        assert body["tools"][0]["function"]["name"] == "search"
        assert body["stream_options"] == {"include_usage": True}
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"

    @pytest.mark.parametrize(
        "behaviour",
        [
            pytest.param(reply("Yes, five.", finish="length"), id="cut by its own token limit"),
            pytest.param(server_side.whole({"content": "Yes, five."}), id="whole, not a stream"),
            pytest.param(deltas({"content": "Yes, five."}, finish=None), id="[DONE] alone"),
            pytest.param(deltas({"content": "Yes, five."}, done=False), id="finish_reason alone"),
            pytest.param(
                deltas({"reasoning_content": "hm"}, {"content": "Yes, five."}), id="reasoning field"
            ),
            pytest.param(
                deltas(
                    {"content": "<thi"},
                    {"content": "nk>hm\n</th"},
                    {"content": "ink>\n\nYes, five."},
                ),
                id="thoughts in the text",
            ),
            pytest.param(
                deltas({"content": [{"type": "text", "text": "Yes, five."}]}), id="content parts"
            ),
        ],
    )
    def test_is_read_in_every_form_that_servers_send(self, behaviour):
        with OpenAIServer(behaviour) as server:
            assert complete(model_at(server), asked()).text == "Yes, five."

    def test_to_text_with_a_lone_surrogate_is_possible(self):
        message = ChatMessage(Role.USER, "broken \ud83d text")

        with OpenAIServer(reply("Yes.")) as server:
            assert complete(model_at(server), asked(messages=(message,))).text == "Yes."

        assert server.requests[0].body["messages"][0]["content"] == "broken ? text"

    def test_follows_tool_results_in_the_conversation(self):
        call = ToolCall("c1", "search", '{"q": "refund"}')
        messages = (
            QUESTION,
            ChatMessage(Role.ASSISTANT, "", tool_calls=(call,)),
            ChatMessage(Role.TOOL, "five days", tool_call_id="c1"),
        )

        with OpenAIServer(reply("Five.")) as server:
            complete(model_at(server), asked(messages=messages))

        _, assistant, tool = server.requests[0].body["messages"]
        assert assistant["tool_calls"][0]["function"] == {
            "name": "search",
            "arguments": '{"q": "refund"}',
        }
        assert (tool["role"], tool["tool_call_id"]) == ("tool", "c1")


def piece(arguments, **keys):
    name = keys.pop("name", None)
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {"tool_calls": [{**keys, "type": "function", "function": function}]}


class TestToolCalls:
    @pytest.mark.parametrize(
        "pieces",
        [
            pytest.param(
                [
                    piece("", index=0, id="a", name="search"),
                    piece('{"q":', index=0),
                    piece('"x"}', index=0),
                    piece("", index=1, id="b", name="slice"),
                    piece('{"start":1}', index=1),
                ],
                id="split over deltas by index",
            ),
            pytest.param(
                [
                    piece("", index=0, id="a", name="search"),
                    piece("", index=1, id="b", name="slice"),
                    piece('{"q":', index=0),
                    piece('{"start":', index=1),
                    piece('"x"}', index=0),
                    piece("1}", index=1),
                ],
                id="interleaved",
            ),
            pytest.param(
                [
                    piece('{"q":', id="a", name="search"),
                    piece('"x"}', id="a"),
                    piece('{"start":1}', id="b", name="slice"),
                ],
                id="no index, id with every piece",
            ),
            pytest.param(
                [
                    piece('{"q":', id="a", name="search"),
                    piece('"x"}'),
                    piece('{"start":1}', id="b", name="slice"),
                ],
                id="no index, id with the first piece",
            ),
            pytest.param(
                [
                    piece('{"q":"x"}', index=0, id="a", name="search"),
                    piece('{"start":1}', index=0, id="b", name="slice"),
                ],
                id="whole calls with the same index",
            ),
            pytest.param(
                [
                    piece('{"q":', index=0, id="a", name="search"),
                    piece('"x"}', index=0, id="a", name="search"),
                    piece('{"start":1}', index=1, id="b", name="slice"),
                ],
                id="id and name with every piece",
            ),
            pytest.param(
                [piece({"q": "x"}, name="search"), piece({"start": 1}, name="slice")],
                id="no index, no id, arguments as an object",
            ),
        ],
    )
    def test_are_put_together_however_the_server_numbers_them(self, pieces):
        with OpenAIServer(deltas(*pieces, finish="tool_calls")) as server:
            calls = complete(model_at(server), asked(tools=(SEARCH,))).tool_calls

        found = [(call.name, json.loads(call.arguments)) for call in calls]
        assert found == [("search", {"q": "x"}), ("slice", {"start": 1})]
        assert len({call.id for call in calls}) == 2

    def test_with_one_id_for_all_get_ids_of_their_own(self):
        pieces = [piece('{"q":"x"}', id="call", name="a"), piece('{"q":"y"}', id="call", name="b")]

        with OpenAIServer(deltas(*pieces, finish="tool_calls")) as server:
            calls = complete(model_at(server), asked(tools=(SEARCH,))).tool_calls

        assert [call.name for call in calls] == ["a", "b"]
        assert len({call.id for call in calls}) == 2

    def test_without_a_name_or_a_function_are_left_out(self):
        pieces = [{"tool_calls": [{"index": 0, "id": "x"}, "nonsense"]}, piece("{}", index=1)]

        with OpenAIServer(deltas(*pieces, {"content": "No."})) as server:
            completion = complete(model_at(server), asked(tools=(SEARCH,)))

        assert (completion.text, completion.tool_calls) == ("No.", ())

    @pytest.mark.parametrize(
        ("status", "message"),
        [
            pytest.param(
                400, "registry.ollama.ai/library/phi:latest does not support tools", id="Ollama"
            ),
            pytest.param(
                400, '"auto" tool choice requires --enable-auto-tool-choice to be set', id="vLLM"
            ),
            pytest.param(500, "tools param requires --jinja flag", id="llama.cpp"),
            pytest.param(404, "No endpoints found that support tool use.", id="OpenRouter"),
        ],
    )
    def test_that_a_server_does_not_support_are_left_out_and_remembered(self, status, message):
        call = ToolCall("c1", "search", "{}")
        messages = (
            QUESTION,
            ChatMessage(Role.ASSISTANT, "", tool_calls=(call,)),
            ChatMessage(Role.TOOL, "five days", tool_call_id="c1"),
        )
        with OpenAIServer(failure(status, message), reply("Five.")) as server:
            model = model_at(server)
            first = complete(model, asked(tools=(SEARCH,), messages=messages)).text
            second = complete(model, asked(tools=(SEARCH,))).text

        assert (first, second, model.takes_tools) == ("Five.", "Five.", False)
        assert ["tools" in request.body for request in server.requests] == [True, False, False]
        assert [m["role"] for m in server.requests[1].body["messages"]] == [
            "user",
            "assistant",
            "user",
        ]


class TestWhatAServerRefuses:
    @pytest.mark.parametrize(
        ("message", "refused", "instead"),
        [
            pytest.param(
                "Unsupported parameter: 'max_tokens' is not supported with this model. "
                "Use 'max_completion_tokens' instead.",
                "max_tokens",
                "max_completion_tokens",
                id="max_tokens",
            ),
            pytest.param(
                "Unsupported value: 'temperature' does not support 0.3 with this model.",
                "temperature",
                None,
                id="temperature",
            ),
            pytest.param(
                "Unrecognized request argument: stream_options", "stream_options", None, id="usage"
            ),
        ],
    )
    def test_is_left_out_and_remembered(self, message, refused, instead):
        with OpenAIServer(failure(400, message), reply("Five.")) as server:
            model = model_at(server)
            texts = [complete(model, asked(temperature=0.3)).text for _ in range(2)]

        assert texts == ["Five.", "Five."]
        assert [refused in request.body for request in server.requests] == [True, False, False]
        assert instead is None or server.requests[2].body[instead] == 100

    def test_of_max_tokens_in_both_spellings_sends_neither(self):
        refusals = [
            failure(400, "no max_tokens here"),
            failure(400, "no max_completion_tokens here"),
        ]

        with OpenAIServer(*refusals, reply("Five.")) as server:
            assert complete(model_at(server), asked()).text == "Five."

        assert not {"max_tokens", "max_completion_tokens"} & set(server.requests[-1].body)

    def test_of_a_long_reply_asks_for_as_much_as_it_allows(self):
        message = (
            "max_tokens is too large: 5000. This model supports at most 4096 completion tokens."
        )

        with OpenAIServer(failure(400, message), reply("Five.")) as server:
            assert complete(model_at(server), asked(max_tokens=5000)).text == "Five."

        assert server.requests[1].body["max_tokens"] == 4096

    def test_again_without_a_reason_we_know_is_an_error(self):
        with OpenAIServer(failure(400, "I do not like you.")) as server:
            error, _ = error_of(model_at(server))

        assert isinstance(error, ModelUnavailable)
        assert "I do not like you." in str(error)
        assert len(server.requests) == 2  # with options, and without any

    def test_that_names_nothing_is_tried_once_without_any_option_and_remembered(self):
        with OpenAIServer(failure(400, "Bad Request"), reply("Five.")) as server:
            model = model_at(server)
            texts = [complete(model, asked(temperature=0.3)).text for _ in range(2)]

        assert texts == ["Five.", "Five."]
        assert ["temperature" in request.body for request in server.requests] == [
            True, False, False,
        ]  # fmt: skip


def test_an_address_without_a_scheme_is_refused_at_once():
    with pytest.raises(SetupError, match=r"llm\.base_url.*'localhost:8000'"):
        OpenAIChatModel("localhost:8000", "fake")

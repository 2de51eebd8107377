"""Tools and forms of clients pass through to the model, sources and the gate come on top."""

import json

import pytest

from tests.model_application import World, calling, of
from tests.openai_server import deltas, failure, reply
from tests.web.conftest import events_of

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
STOCK = {"name": "stock", "parameters": {"type": "object", "properties": {"of": {}}}}
TOOLS = [{"type": "function", "function": STOCK}]
ITEM_TOOLS = [{"type": "function", **STOCK}]
SCHEMA = {"type": "object", "properties": {"said": {"type": "string"}}, "required": ["said"]}
FORM = {"type": "json_schema", "json_schema": {"name": "said", "schema": SCHEMA, "strict": True}}
ITEM_FORM = {"format": {"type": "json_schema", "name": "said", "schema": SCHEMA, "strict": True}}
CALLS = calling(("stock", {"of": "Aero 5"}))
RESULT = {"role": "tool", "tool_call_id": "call_0", "content": "12 in stock, see [2]"}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World(tmp_path_factory.mktemp("data")) as world:
        yield world


@pytest.fixture
def post(world):
    def post(path, body, *behaviours):
        world._behave(behaviours)
        return world.client.post(path, json={"model": "groundnote", **body})

    return post


@pytest.fixture
def asked(request):
    """A question that no other test asks."""
    return {"role": "user", "content": f"How heavy is the Aero 5 ({request.node.name})?"}


def sent(world, request=-1):
    return world.server.requests[request].body


class TestTools:
    def test_are_passed_on_as_they_came(self, world, asked, post):
        options = {"tool_choice": "auto", "parallel_tool_calls": False}
        post(CHAT, {"messages": [asked], "tools": TOOLS, **options}, reply("120 g [1]."))

        assert {key: sent(world)[key] for key in options} == options
        assert sent(world)["tools"] == TOOLS  # and none of ours

    def test_calls_are_the_clients_to_make(self, world, asked, post):
        message = {"messages": [asked], "tools": TOOLS}
        completion = post(CHAT, message, CALLS).get_json()

        (choice,) = completion["choices"]
        assert choice["finish_reason"] == "tool_calls"
        assert choice["message"]["content"] is None
        (call,) = choice["message"]["tool_calls"]
        assert (call["type"], call["function"]["name"]) == ("function", "stock")
        assert json.loads(call["function"]["arguments"]) == {"of": "Aero 5"}
        assert len(world.server.requests) == 1  # nobody answered them here

    def test_a_turn_goes_on_with_their_results(self, world, post, asked):
        called = post(CHAT, {"messages": [asked], "tools": TOOLS}, CALLS).get_json()
        message = called["choices"][0]["message"]
        result = RESULT | {"tool_call_id": message["tool_calls"][0]["id"]}
        body = {"messages": [asked, message, result], "tools": TOOLS}
        ended = post(CHAT, body, reply("It weighs 120 g [1]; 12 are there [47].")).get_json()

        assert ended["session_id"] == called["session_id"]
        assert ended["index"] == called["index"] == 1
        assert ended["choices"][0]["message"]["content"] == "It weighs 120 g [1]; 12 are there."
        *_, question, calls, told = sent(world)["messages"]
        assert "[1]" in question["content"]
        assert calls["tool_calls"][0]["id"] == told["tool_call_id"]
        assert told["content"] == "12 in stock, see (2)"  # no number of ours
        next_one = post(
            CHAT,
            {"messages": [*body["messages"], ended["choices"][0]["message"], asked]},
            reply("120 g [1]."),
        ).get_json()
        assert (next_one["session_id"], next_one["index"]) == (called["session_id"], 3)

    def test_earlier_rounds_of_a_turn_stay_in_it(self, world, asked, post):
        first = post(CHAT, {"messages": [asked], "tools": TOOLS}, CALLS).get_json()
        messages = [asked]
        for completion in (first, None):
            completion = (
                completion or post(CHAT, {"messages": messages, "tools": TOOLS}, CALLS).get_json()
            )
            message = completion["choices"][0]["message"]
            result = RESULT | {"tool_call_id": message["tool_calls"][0]["id"]}
            messages += [message, result]
        ended = post(CHAT, {"messages": messages, "tools": TOOLS}, reply("120 g [1].")).get_json()

        assert ended["session_id"] == first["session_id"]
        assert [each["role"] for each in sent(world)["messages"]][-5:] == [
            "user", "assistant", "tool", "assistant", "tool",
        ]  # fmt: skip
        ids = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
        assert len({*ids}) == 2  # though the server gave one twice

    def test_what_fits_no_window_is_refused_with_both_numbers(self, world, post, asked):
        message = post(CHAT, {"messages": [asked], "tools": TOOLS}, CALLS).get_json()
        message = message["choices"][0]["message"]
        call_id = message["tool_calls"][0]["id"]
        long = {"role": "tool", "tool_call_id": call_id, "content": "many words " * 20_000}
        response = post(CHAT, {"messages": [asked, message, long], "tools": TOOLS})

        assert response.status_code == 413
        assert world.server.requests == []
        again = RESULT | {"tool_call_id": call_id}
        ended = post(CHAT, {"messages": [asked, message, again]}, reply("120 g [1].")).get_json()
        assert ended["choices"][0]["message"]["content"] == "120 g [1]."

    def test_the_same_question_asked_twice_is_two_conversations(self, post, asked):
        body = {"messages": [asked], "tools": TOOLS}
        called = [post(CHAT, body, CALLS).get_json() for _ in range(2)]
        for completion in called:
            message = completion["choices"][0]["message"]
            result = RESULT | {"tool_call_id": message["tool_calls"][0]["id"]}
            ended = post(CHAT, {"messages": [asked, message, result]}, reply("[1]")).get_json()
            assert ended["session_id"] == completion["session_id"]

    def test_streamed_calls_have_the_protocols_form(self, asked, post):
        body = {"messages": [asked], "tools": TOOLS, "stream": True}
        told = [
            json.loads(text) for _, text in events_of(post(CHAT, body, CALLS)) if text[0] == "{"
        ]

        deltas = [chunk["choices"][0]["delta"] for chunk in told if chunk["choices"]]
        ((call,),) = [delta["tool_calls"] for delta in deltas if "tool_calls" in delta]
        assert (call["index"], call["function"]["name"]) == (0, "stock")
        assert told[-1]["choices"][0]["finish_reason"] == "tool_calls"
        assert not any(delta.get("content") for delta in deltas)

    def test_a_turn_may_end_with_a_call(self, world, asked, post):
        """As where a framework takes the arguments of a tool as the answer."""
        called = post(CHAT, {"messages": [asked], "tools": TOOLS}, CALLS).get_json()
        message = called["choices"][0]["message"]
        message["tool_calls"][0]["function"]["arguments"] = '{ "of":"Aero 5" }'  # spelled anew
        result = RESULT | {"tool_call_id": message["tool_calls"][0]["id"]}
        again = post(CHAT, {"messages": [asked, message, result, asked]}, reply("[1]")).get_json()

        assert (again["session_id"], again["index"]) == (called["session_id"], 3)
        said = "\n".join(each["content"] or "" for each in sent(world)["messages"])
        assert "`stock` is called:\n\n- of: Aero 5" in said

    def test_no_number_that_nobody_gave_leaves_in_arguments(self, asked, post):
        told = calling(("stock", {"of": "both [1][47]", "list": "x = [1, 2]", "ids": [3, 50]}))
        completion = post(CHAT, {"messages": [asked], "tools": TOOLS}, told).get_json()

        (call,) = completion["choices"][0]["message"]["tool_calls"]
        arguments = json.loads(call["function"]["arguments"])
        assert arguments["of"] == "both [1]"
        assert arguments["ids"] == [3, 50]
        assert [each["n"] for each in completion["citations"]][:1] == [1]

    def test_a_server_without_tools_is_told_of(self, asked, post):
        refused = failure(400, "this model does not support tools")
        response = post(CHAT, {"messages": [asked], "tools": TOOLS}, refused)

        assert response.status_code >= 400
        assert "does not support tools" in response.get_json()["error"]["message"]

    @pytest.mark.parametrize("choice", ["auto", "required"])
    def test_that_leave_the_model_no_room_are_told_of(self, world, asked, post, choice):
        many = [TOOLS[0] | {"function": TOOLS[0]["function"] | {"description": "word " * 40_000}}]
        body = {"messages": [asked], "tools": many, "tool_choice": choice}
        response = post(CHAT, body, reply("120 g [1]."))

        assert world.server.requests == []
        if choice == "required":
            assert response.status_code == 413
            assert "Send fewer of them" in response.get_json()["error"]["message"]
        else:  # the passages, and why
            assert "Aero 5" in response.get_json()["choices"][0]["message"]["content"]
            assert "Send fewer of them" in json.dumps(response.get_json())

    @pytest.mark.parametrize(
        ("body", "param"),
        [
            ({"tools": [{"type": "web_search"}]}, "tools"),
            ({"tools": [{"type": "function", "function": {}}]}, "tools"),
            ({"tool_choice": "required"}, "tool_choice"),
            ({"tools": TOOLS, "tool_choice": {"type": "allowed_tools"}}, "tool_choice"),
            ({"response_format": {"type": "xml"}}, "response_format"),
            ({"messages": [{"role": "user", "content": "And?"}, RESULT]}, "messages"),
            ({"messages": [RESULT]}, "messages"),
        ],
    )
    def test_what_cannot_be_read_is_refused_by_name(self, post, body, param, asked):
        response = post(CHAT, {"messages": [asked], **body})

        assert response.status_code == 400
        assert response.get_json()["error"]["param"] == param


class TestForms:
    JSON = '{"said": "It weighs 120 g [1].\\nNot [47].", "list": [1, 47], "n": 1.50}'

    def test_of_answers_are_kept(self, world, asked, post):
        body = {"messages": [asked], "response_format": FORM}
        completion = post(CHAT, body, reply(self.JSON)).get_json()

        text = completion["choices"][0]["message"]["content"]
        assert sent(world)["response_format"] == FORM
        assert text == '{"said": "It weighs 120 g [1].\\nNot.", "list": [1, 47], "n": 1.50}'
        (citation,) = completion["citations"]
        assert text[citation["start"] : citation["end"]] == "[1]"
        (annotation,) = completion["choices"][0]["message"]["annotations"]
        place = annotation["url_citation"]
        assert text[place["start_index"] : place["end_index"]] == "[1]"
        session = f"/api/v1/sessions/{completion['session_id']}/messages"
        said = world.client.get(session).get_json()["messages"][1]["content"]
        assert said.startswith("- said: It weighs 120 g [1].")

    def test_hold_no_links_which_json_does_not_know(self, asked, post):
        body = {"model": "groundnote-links", "messages": [asked], "response_format": FORM}
        completion = post(CHAT, body, reply(self.JSON)).get_json()

        text = completion["choices"][0]["message"]["content"]
        assert json.loads(text)["said"] == "It weighs 120 g [1].\nNot."

    def test_are_streamed_as_valid_json(self, asked, post):
        body = {"messages": [asked], "response_format": FORM, "stream": True}
        told = events_of(post(CHAT, body, reply(f"```json\n{self.JSON}\n```")))
        chunks = [json.loads(text) for _, text in told if text[0] == "{"]
        deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]

        text = "".join(delta.get("content") or "" for delta in deltas)
        assert json.loads(text) == {"said": "It weighs 120 g [1].\nNot.", "list": [1, 47], "n": 1.5}

    def test_a_conversation_goes_on_from_them(self, asked, post):
        body = {"messages": [asked], "response_format": FORM}
        first = post(CHAT, body, reply(self.JSON)).get_json()
        said = first["choices"][0]["message"]["content"]
        again = {"role": "assistant", "content": json.dumps(json.loads(said), indent=1)}
        second = post(CHAT, {"messages": [asked, again, asked]}, reply("[1]")).get_json()

        assert second["session_id"] == first["session_id"]

    def test_what_is_no_json_is_no_answer(self, asked, post):
        response = post(CHAT, {"messages": [asked], "response_format": FORM}, reply("{It is [47]}"))

        assert response.status_code == 502

    def test_of_responses_are_kept(self, world, asked, post):
        response = post(RESPONSES, {"input": asked["content"], "text": ITEM_FORM}, reply(self.JSON))

        assert sent(world)["response_format"] == FORM
        told = response.get_json()
        text = told["output"][0]["content"][0]["text"]
        assert json.loads(text)["list"] == [1, 47]
        kept = world.client.get(f"{RESPONSES}/{told['id']}").get_json()
        assert kept["output"][0]["content"][0]["text"] == text


class TestResponses:
    def test_calls_are_items(self, world, post):
        body = {"input": "How heavy is the Aero 5?", "tools": ITEM_TOOLS}
        first = post(RESPONSES, body, CALLS).get_json()
        (call,) = first["output"]

        assert sent(world)["tools"] == TOOLS
        assert (call["type"], call["name"]) == ("function_call", "stock")
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": "12"}
        second = post(
            RESPONSES,
            {"input": [output], "previous_response_id": first["id"], "tools": ITEM_TOOLS},
            reply("120 g [1]."),
        ).get_json()
        assert second["session_id"] == first["session_id"]
        assert second["id"] != first["id"]
        assert second["output"][0]["content"][0]["text"] == "120 g [1]."
        for told in (first, second):
            kept = world.client.get(f"{RESPONSES}/{told['id']}").get_json()
            assert (kept["id"], kept["output"]) == (told["id"], told["output"])

    def test_items_may_be_references(self, world, post):
        asked = {"role": "user", "content": "How heavy is the Aero 5 Pro?"}
        first = post(RESPONSES, {"input": [asked], "tools": ITEM_TOOLS}, CALLS).get_json()
        (call,) = first["output"]
        reference = {"type": "item_reference", "id": call["id"]}
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": "12"}
        body = {"input": [asked, reference, output], "tools": ITEM_TOOLS}
        second = post(RESPONSES, body, reply("140 g [1].")).get_json()

        assert second["session_id"] == first["session_id"]

    def test_streamed_calls_are_events(self, post):
        spoken = calling(("stock", {"of": "Aero 5"}), ("stock", {"of": "Pro"}), text="I look.")
        body = {"input": "How heavy?", "tools": ITEM_TOOLS, "stream": True}
        told = [(name, json.loads(text)) for name, text in events_of(post(RESPONSES, body, spoken))]

        added = of(told, "response.output_item.added")
        assert [each["item"]["type"] for each in added] == ["message", *["function_call"] * 2]
        assert [each["output_index"] for each in added] == [0, 1, 2]
        done = of(told, "response.function_call_arguments.done")
        assert json.loads(done[1]["arguments"]) == {"of": "Pro"}
        (ended,) = of(told, "response.completed")
        assert [item["type"] for item in ended["response"]["output"]] == [
            "message", "function_call", "function_call",
        ]  # fmt: skip

    def test_results_of_no_call_are_refused(self, post):
        first = post(RESPONSES, {"input": "How heavy?"}, reply("120 g [1].")).get_json()
        output = {"type": "function_call_output", "call_id": "call_9", "output": "12"}
        body = {"input": [output], "previous_response_id": first["id"]}

        assert post(RESPONSES, body).get_json()["error"]["param"] == "input"


def test_nothing_of_it_falls_back_to_passages(asked, post):
    for wanted in ({"tools": TOOLS}, {"response_format": FORM}):
        response = post(CHAT, {"messages": [asked], **wanted}, failure(500, "down"))
        assert response.status_code >= 500


def test_a_cut_form_is_told_as_cut(asked, post):
    cut = deltas({"content": '{"said": "It wei'}, finish="length")
    completion = post(CHAT, {"messages": [asked], "response_format": FORM}, cut).get_json()

    assert completion["choices"][0]["finish_reason"] == "length"


def test_a_check_says_whose_its_numbers_are(client):
    said = {"text": "It weighs 120 g [1]."}
    for more, whose in (({}, "reply"), ({"sources": [{"n": 1, "text": "120 g"}]}, "sent")):
        told = client.post("/api/v1/check", json=said | more).get_json()
        assert told["numbers"] == whose

"""Tools through the whole application: a real server that streams, a real library, the JSON API."""

import json
from io import BytesIO

import pytest

from rag.chat.tool_loop import sent_tokens
from rag.llm.windows import token_counter
from rag.memory.context import MESSAGE_TOKENS, REQUEST_TITLE
from rag.records import ChatMessage, Role, ToolCall
from tests.model_application import World, calling, final, of
from tests.openai_server import failure, reply, whole


@pytest.fixture
def world(tmp_path):
    with World(tmp_path) as world:
        yield world


SEARCH = ("search_documents", {"query": "battery of the Aero 5", "limit": 2})


# ── The four tools ───────────────────────────────────────────────────────────────────────────


def test_found_documents_are_sources_that_the_answer_may_cite(world):
    world.told(("Hello", "Hello."))
    answer = "The battery of the Aero 5 lasts 30 hours [1]. It also flies [77]."

    events = world.stream("Tell me about the battery", calling(SEARCH), reply(answer))

    [used] = of(events, "tool")
    assert used["name"] == "search_documents"
    assert "found [" in used["outcome"]
    assert "[1]" in world.results()[0] or "[2]" in world.results()[0]
    assert final(events)["content"].startswith("The battery of the Aero 5 lasts 30 hours [1].")
    assert "[77]" not in json.dumps(events)
    assert 1 in [citation["n"] for citation in final(events)["citations"]]


def test_a_source_that_only_a_tool_found_gets_the_next_number(world):
    price = b"# Shipping\n\nParcels to Norway take twelve working days.\n"
    world.application.assistant._limits = type(world.application.assistant._limits)(sources=1)
    world.client.post("/api/v1/documents", data={"file": [(BytesIO(price), "shipping.md")]})
    world.application.jobs.run_waiting()
    look = ("search_documents", {"query": "parcels to Norway", "limit": 1})
    answer = "Parcels to Norway take twelve working days [2]."

    events = world.stream("How heavy is the Aero 5?", calling(look), reply(answer))

    assert "[2] Shipping" in world.results()[0]
    assert [citation["n"] for citation in final(events)["citations"]] == [2]
    assert world.client.get(world.at("/sources/2")).get_json()["document"] == "shipping.md"


def test_the_history_is_searched_with_indices(world):
    world.told(("Which database?", "We chose PostgreSQL."), ("And the cache?", "Redis."))
    look = ("search_session_history", {"query": "postgresql"})

    events = world.stream("What did we choose?", calling(look), reply("PostgreSQL."))

    result = json.loads(world.results()[0])
    assert result["total"] == len(result["results"])
    assert (result["results"][0]["index"], result["results"][0]["role"]) == (1, "assistant")
    assert "PostgreSQL" in result["results"][0]["snippet"]
    assert of(events, "tool")[0]["outcome"].startswith("found ")


def test_a_requested_slice_is_in_the_next_context_only(world):
    world.client.put(
        world.at(""),
        json={
            "context_config": {"compression_strategy": "sliding_window", "recent_message_count": 2}
        },
    )
    world.told(("Which database?", "We chose PostgreSQL."), *[("Hi", "Hello.")] * 5)
    look = ("request_context_slice", {"start": 0, "end": 2})
    shown = []

    world.stream("Show me the start", calling(look), reply("I will look."))
    shown.append(_shows_slice(world.server.requests[-1]))
    for _ in range(2):
        world.stream("And now?", reply("Done."))
        shown.append(_shows_slice(world.server.requests[0]))

    assert shown == [False, True, False]


def _shows_slice(request):
    text = json.dumps(request.body["messages"])
    return REQUEST_TITLE in text and "Message 1 (assistant): We chose PostgreSQL." in text


def test_a_summary_on_request_is_verified_and_stored(world):
    first = world.ask(
        "How heavy is the Aero 5?", reply("The Aero 5 weighs 120 g [1]. It is light.")
    )
    number = first["citations"][0]["n"]
    look = ("summarize_message_range", {"start": 0, "end": 2})

    def summarise_or_answer(exchange):
        if "tools" not in exchange.body:
            return reply("They spoke about weights.")(exchange)  # loses the number
        has_result = exchange.body["messages"][-1]["role"] == "tool"
        return (reply("Summarised.") if has_result else calling(look))(exchange)

    events = world.stream("Summarise our talk", summarise_or_answer)

    [result] = world.results()
    assert f"[{number}]" in result
    assert "Aero 5" in result
    stored = world.client.get(world.at("/summaries")).get_json()
    assert result in json.dumps(stored, ensure_ascii=False).replace("\\n", "\n")
    assert of(events, "tool")[0]["name"] == "summarize_message_range"

    again = world.stream("Once more", summarise_or_answer)

    assert world.results() == [result]
    assert of(again, "tool")[0]["outcome"].endswith("as before")
    assert all("tools" in request.body for request in world.server.requests)


# ── Whatever the model does ──────────────────────────────────────────────────────────────────


def test_two_calls_at_once_are_both_answered(world):
    history = ("search_session_history", {"query": "battery"})

    events = world.stream(
        "What about the battery?", calling(SEARCH, history, text="Let me look."), reply("Done [1].")
    )

    assert [used["name"] for used in of(events, "tool")] == [SEARCH[0], history[0]]
    sent = world.server.requests[1].body["messages"]
    calls = next(message["tool_calls"] for message in sent if message.get("tool_calls"))
    assert [json.loads(call["function"]["arguments"]) for call in calls] == [SEARCH[1], history[1]]
    answered = [message["tool_call_id"] for message in sent if message["role"] == "tool"]
    assert answered == [call["id"] for call in calls]
    names = [name for name, _ in events]
    assert names.index("delta") < names.index("discard") < names.index("tool")
    assert final(events)["content"].startswith("Done [1].")


@pytest.mark.parametrize(
    ("call", "told"),
    [
        pytest.param(("search_documents", '{"query": "wei'), "no JSON", id="broken"),
        pytest.param(("search_documents", "[1]"), "JSON object", id="no-object"),
        pytest.param(("search_documents", {"limit": 2}), "'query' is missing", id="missing"),
        pytest.param(("search_documents", {"query": 7}), "expected a JSON string", id="type"),
        pytest.param(("delete_everything", {}), "delete_everything", id="unknown-tool"),
        pytest.param(("request_context_slice", {"start": 5, "end": 99}), "no range", id="range"),
        pytest.param(("summarize_message_range", {"start": -1, "end": 1}), "no range", id="below"),
    ],
)
def test_a_wrong_call_is_told_to_the_model_which_goes_on(world, call, told):
    events = world.stream("What about the battery?", calling(call), reply("It lasts 30 hours [1]."))

    [result] = world.results()
    assert result.startswith("Error: ")
    assert told in result
    assert of(events, "tool")[0]["outcome"].startswith("refused")
    assert final(events)["content"].startswith("It lasts 30 hours [1].")


def test_a_loop_that_never_ends_is_ended(world):
    def always(exchange):
        query = {"query": f"battery {len(exchange.body['messages'])}"}
        calls = calling(("search_documents", query))
        wants = calls if "tools" in exchange.body else reply("Enough: 30 hours [1].")
        wants(exchange)

    events = world.stream("What did you say about the battery?", always)

    assert 1 < len(of(events, "tool")) <= 8
    assert len(world.server.requests) == len(of(events, "tool")) + 1
    assert final(events)["content"].startswith("Enough: 30 hours [1].")


def test_a_server_without_tools_is_served_without(world):
    def without_tools(exchange):
        if "tools" in exchange.body:
            return failure(400, "registry/fake:8b does not support tools")(exchange)
        return reply("It lasts 30 hours [1].")(exchange)

    events = world.stream("What about the battery?", without_tools)
    again = world.stream("What about the weight?", without_tools)

    assert final(events)["content"].startswith("It lasts 30 hours [1].")
    assert "It lasts 30 hours [1]." in final(again)["content"]
    assert len(world.server.requests) == 1  # it is not asked for tools again


def test_without_a_stream_the_tools_work_as_well(world):
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": SEARCH[0], "arguments": json.dumps(SEARCH[1])},
    }

    answer = world.ask(
        "What about the battery?",
        whole({"content": None, "tool_calls": [call]}, finish="tool_calls"),
        reply("The battery of the Aero 5 lasts 30 hours [1]."),
    )

    assert answer["content"] == "The battery of the Aero 5 lasts 30 hours [1]."
    assert world.results() == ["[1], [2]: given above."]


# ── The budget ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("window", "fewest_calls"),
    [pytest.param(1800, 0, id="too-small-for-tools"), (2600, 2), (4000, 2)],
)
def test_no_call_exceeds_the_input_budget(tmp_path, window, fewest_calls):
    """Long turns, and results that are long as well, in a window that is small."""
    long = "The Aero 5 weighs 120 g [1], 【 and ﷽ 漢字 more. " * 30
    looks = [
        ("search_session_history", {"query": "Aero 5", "limit": 20}),
        ("search_documents", {"query": "Aero 5", "limit": 20}),
    ]

    def always(exchange):
        wants = calling(*looks) if "tools" in exchange.body else reply("Enough [1].", usage=None)
        wants(exchange)

    with World(tmp_path, context_window=window) as world:
        world.told(*[("How heavy?", long)] * 8)
        events = world.stream("What did you say about the battery?", always)
        budget = final(events)["context"]["budget"]

        assert len(of(events, "tool")) >= fewest_calls
        assert len(world.server.requests) >= (2 if fewest_calls else 1)
        for request in world.server.requests:
            assert _tokens(request.body["messages"]) <= budget


def _tokens(messages):
    count = token_counter("fake")
    return MESSAGE_TOKENS + sum(sent_tokens(_message(each), count) for each in messages)


def _message(sent):
    calls = tuple(
        ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in sent.get("tool_calls", ())
    )
    return ChatMessage(Role(sent["role"]), sent["content"] or "", calls, sent.get("tool_call_id"))

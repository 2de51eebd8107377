"""What servers in use really send: each gives a cited answer, or the card with the reason."""

import gzip
import json
import shutil
from contextlib import ExitStack
from functools import cache

import pytest

from tests.acceptance.conftest import installed, settings_for
from tests.openai_server import (
    USAGE,
    OpenAIServer,
    delta_event,
    deltas,
    events,
    failure,
    page,
    reply,
    whole,
    whole_completion,
)

QUESTION = "How much does the Aero 5 weigh?"
ANSWER = "The Aero 5 weighs 120 g [1]."
GOOD = reply(ANSWER)
STOP = delta_event({}, "stop")


def raw(*pieces, content_type="text/event-stream"):
    """These very bytes, each in a write of its own."""

    def behave(exchange):
        content = b"".join(pieces)
        exchange.handler.send_response(200)
        exchange.handler.send_header("content-type", content_type)
        exchange.handler.send_header("content-length", str(len(content)))
        exchange.handler.end_headers()
        for piece in pieces:
            exchange.handler.wfile.write(piece)
            exchange.handler.wfile.flush()

    return behave


def event(value, *, end="\n\n"):
    return f"data: {json.dumps(value, ensure_ascii=False)}{end}".encode()


def packed(content, *, status=200, content_type="text/event-stream"):
    """Compressed, as some proxies send it whatever was asked for."""
    how = {"content-encoding": "gzip"}
    return lambda exchange: exchange.send(status, gzip.compress(content), content_type, how)


def thought(text):
    return said(text, extra_content={"google": {"thought": True}})


def said(text, **more):
    return delta_event({"content": text, **more})


def halves(text):
    """A text whose bytes come one by one."""
    return [bytes([byte]) for byte in event(said(text))]


THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "120 or 140 g?"}]}
ANSWERED = {
    "usage alone in the last chunk": events(
        said(ANSWER), STOP, {"choices": [], "usage": USAGE}, "[DONE]"
    ),
    "usage in every chunk": events(
        {**said(ANSWER), "usage": USAGE}, {**STOP, "usage": USAGE}, "[DONE]"
    ),
    "filter results and no choice first, as Azure": events(
        {"choices": [], "prompt_filter_results": [{"prompt_index": 0}]}, said(ANSWER), STOP
    ),
    "choices null": events({"choices": None}, said(ANSWER), STOP, "[DONE]"),
    "an empty choice": events({"choices": [{}]}, said(ANSWER), STOP, "[DONE]"),
    "delta null": events(
        said(ANSWER), {"choices": [{"index": 0, "delta": None, "finish_reason": "stop"}]}
    ),
    "role alone, content null": deltas({"role": "assistant", "content": None}, {"content": ANSWER}),
    "content in parts, thoughts among them, as Mistral": deltas(
        {"content": [THOUGHT]}, {"content": [{"type": "text", "text": ANSWER}]}
    ),
    "content as a list of texts": deltas({"content": [ANSWER[:9], ANSWER[9:]]}),
    "content as one part": deltas({"content": {"type": "text", "text": ANSWER}}),
    "thoughts as `reasoning`, as OpenRouter": deltas(
        {"reasoning": "It weighs 140 g?", "content": ""}, {"content": ANSWER}
    ),
    "thoughts as `reasoning_content`, as DeepSeek": deltas(
        {"reasoning_content": "It weighs 140 g?", "content": None}, {"content": ANSWER}
    ),
    "text in place of a delta, as old completions": events(
        {"choices": [{"index": 0, "text": ANSWER, "finish_reason": None}]},
        {"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]},
    ),
    "a message that repeats the deltas, as Perplexity": events(
        {"choices": [{"delta": {"content": ANSWER[:9]}, "message": {"content": ANSWER[:9]}}]},
        {"choices": [{"delta": {"content": ANSWER[9:]}, "message": {"content": ANSWER}}]},
        {"choices": [{"delta": {}, "message": {"content": ANSWER}, "finish_reason": "stop"}]},
    ),
    "one object on each line": page(
        "\n".join(json.dumps(each) for each in (said(ANSWER), STOP)),
        content_type="application/x-ndjson",
    ),
    "the whole at once": whole({"content": ANSWER}),
    "the whole with a byte order mark": raw(
        b"\xef\xbb\xbf" + json.dumps(whole_completion({"content": ANSWER}, USAGE, "stop")).encode(),
        content_type="application/json",
    ),
    "a byte order mark first": raw(b"\xef\xbb\xbf" + event(said(ANSWER)), event(STOP)),
    "carriage returns": raw(event(said(ANSWER), end="\r\n\r\n"), event(STOP, end="\r\n\r\n")),
    "no blank between data and value": raw(
        event(said(ANSWER)).replace(b"data: ", b"data:"), event(STOP)
    ),
    "an event over several lines": raw(
        b"".join(
            b"data: " + line.encode() + b"\n"
            for line in json.dumps(said(ANSWER), indent=2).splitlines()
        ),
        b"\n",
        event(STOP),
    ),
    "events without an empty line between": raw(
        event(said(ANSWER), end="\n"), event(STOP, end="\n"), b"data: [DONE]\n"
    ),
    "comments that keep the line alive": raw(
        b": OPENROUTER PROCESSING\n\n" * 3, event(said(ANSWER)), b": ping\n\n", event(STOP)
    ),
    "named events with ids": raw(
        b"event: message\nid: 1\nretry: 10\n" + event(said(ANSWER)), b"event: x\n" + event(STOP)
    ),
    "other events between": events({"type": "ping"}, said(ANSWER), {"object": "note"}, STOP),
    "an end without [DONE]": events(said(ANSWER), STOP),
    "an end without finish_reason": events(said(ANSWER), "[DONE]"),
    "an end by usage alone": events(said(ANSWER), {"choices": [], "usage": USAGE}),
    "finish_reason with the last words": events(delta_event({"content": ANSWER}, "stop")),
    "finish_reason in capitals": events(delta_event({"content": ANSWER}, "STOP"), "[DONE]"),
    "finish_reason empty until the end": events(delta_event({"content": ANSWER}, ""), STOP),
    "finish_reason eos": events(delta_event({"content": ANSWER}, "eos_token")),
    "finish_reason tool_calls without any call": deltas({"content": ANSWER}, finish="tool_calls"),
    "tool_calls null and empty": deltas(
        {"content": ANSWER, "tool_calls": None}, {"tool_calls": [], "function_call": None}
    ),
    "other choices between": events(
        said(ANSWER[:9]),
        {"choices": [{"index": 1, "delta": {"content": "Other"}, "finish_reason": "length"}]},
        {"choices": [{"index": 1, "delta": {"content": "x"}}, said(ANSWER[9:])["choices"][0]]},
        STOP,
    ),
    "carriage returns alone": raw(event(said(ANSWER), end="\r\r"), event(STOP, end="\r\r")),
    "events that are null or empty": raw(
        b"data: null\n\ndata: []\n\ndata:\n\ndata: {}\n\n", event(said(ANSWER)), event(STOP)
    ),
    "an end mark without its field": raw(event(said(ANSWER)), b"[DONE]\n\n"),
    "an end mark in quotes": raw(event(said(ANSWER)), b'data: "[DONE]"\n\n'),
    "one choice that is no list": events(
        {"choices": {"index": 0, "delta": {"content": ANSWER}}}, STOP
    ),
    "a delta that is a text": events({"choices": [{"index": 0, "delta": ANSWER}]}, STOP),
    "one list of all events": page(
        json.dumps([said(ANSWER), STOP]), content_type="application/json"
    ),
    "messages on lines, as Ollama's own protocol": page(
        "\n".join(
            json.dumps({"message": {"content": text}, "done": not text, "done_reason": None})
            for text in (ANSWER[:9], ANSWER[9:], "")
        ),
        content_type="application/x-ndjson",
    ),
    "parts whose text is an object": deltas(
        {"content": [{"type": "text", "text": {"value": ANSWER}}]}
    ),
    "fields before data indented": raw(b" " + event(said(ANSWER)), event(STOP)),
    "compressed": packed(event(said(ANSWER)) + event(STOP)),
    "thoughts marked beside their text, as Google": events(
        thought("It weighs 140 g [2]?"), said(ANSWER), STOP
    ),
    "parts with a mark for thoughts": deltas(
        {"content": [{"type": "text", "text": "140 g?", "thought": True},
                     {"type": "text", "text": ANSWER}]}
    ),
    "a number as text": deltas({"content": ANSWER[:18]}, {"content": 120}, {"content": " g [1]."}),
    "a state that is well, as MiniMax": events(
        said(ANSWER), STOP, {"base_resp": {"status_code": 0, "status_msg": "success"}}, "[DONE]"
    ),
    "the whole text again at the end": events(
        said(ANSWER[:9]), said(ANSWER[9:]), delta_event({"content": ANSWER}, "stop")
    ),
    "pings that are no JSON": raw(b"data: ping\n\n", event(said(ANSWER)), event(STOP)),
    "a byte order mark within the text": deltas({"content": "\ufeff" + ANSWER}),
    "chosen tokens beside the text": events(
        {"choices": [{"delta": {"content": ANSWER}, "logprobs": {"content": []}, "index": 0}]}, STOP
    ),
}  # fmt: skip


@pytest.fixture
def ask_anew(with_model):
    """Ask the question of a server with these behaviours: its answer, and what it was asked."""

    def asked(*behaviours, **llm):
        with OpenAIServer(*behaviours) as server:
            library = with_model(server, **llm)
            answer = library.ask(library.session(), QUESTION)
        return answer, server.requests

    return asked


@pytest.fixture(scope="module")
def ask(tmp_path_factory, with_manual):
    """The same of one installation for all: it learns from refusals only."""
    with OpenAIServer() as server, ExitStack() as opened, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-very-secret-1234567890")

        @cache
        def library(tools):
            home = tmp_path_factory.mktemp("shared") / "home"
            shutil.copytree(with_manual, home)
            library = opened.enter_context(installed(home, **settings_for(server, tools=tools)))
            server.behaviours[:] = [GOOD]
            library.ask(library.session(), QUESTION)  # what is loaded at first takes its time
            return library

        def asked(*behaviours, tools=False):
            asking = library(tools)
            server.behaviours[:] = behaviours
            server.requests.clear()
            return asking.ask(asking.session(), QUESTION), server.requests

        yield asked


def some(cases, every=4):
    """By name; three of four are slow, as each takes a whole turn (replies alone: `tests/llm`)."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            id=name,
            marks=() if at % every == 0 else pytest.mark.slow,
        )
        for at, (name, case) in enumerate(cases.items())
    ]


@pytest.mark.parametrize("behaviour", some(ANSWERED))
def test_a_reply_in_this_dialect_is_a_cited_answer(ask, behaviour):
    answer, _ = ask(behaviour)

    assert (answer["content"], answer["notices"]) == (ANSWER, [])
    assert [each["n"] for each in answer["citations"]] == [1]


def test_characters_split_over_writes_and_deltas_stay_whole(ask):
    answer, _ = ask(
        raw(
            *halves("Größe „🙂“: "),
            b'data: {"choices": [{"delta": {"content": "\\ud83d"}}]}\n\n',
            b'data: {"choices": [{"delta": {"content": "\\ude42 "}}]}\n\n',
            event(said(ANSWER)),
            event(STOP),
        )
    )

    assert answer["content"] == f"Größe „🙂“: 🙂 {ANSWER}"


# ── Tools ────────────────────────────────────────────────────────────────────────────────────

SEARCH = {"name": "search_documents", "arguments": '{"query": "weight"}'}
CALLS = {
    "without an index": {"tool_calls": [{"id": "a", "type": "function", "function": SEARCH}]},
    "with an index that is null": {
        "tool_calls": [{"index": None, "id": None, "function": SEARCH}]
    },
    "with an index that is a text": {"tool_calls": [{"index": "0", "id": "a", "function": SEARCH}]},
    "with arguments that are an object": {
        "tool_calls": [
            {"index": 0, "id": "a", "function": {**SEARCH, "arguments": {"query": "weight"}}}
        ]
    },
    "that is no list": {"tool_calls": {"id": "a", "function": SEARCH}},
    "that is flat": {"tool_calls": [{"id": "a", **SEARCH}]},
    "of the older form": {"function_call": SEARCH},
    "without arguments": {"tool_calls": [{"index": 0, "function": {"name": SEARCH["name"]}}]},
    "of a tool that does not exist": {
        "tool_calls": [{"index": 0, "id": "a", "function": {**SEARCH, "name": "web_browser"}}]
    },
}  # fmt: skip


@pytest.mark.parametrize(
    "finish",
    ["tool_calls", *(pytest.param(each, marks=pytest.mark.slow) for each in ("stop", None))],
)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_call_is_answered_and_followed_by_the_answer(ask, call, finish):
    answer, requests = ask(deltas(call, finish=finish), GOOD, tools=True)

    assert (answer["content"], answer["notices"]) == (ANSWER, [])
    assert len(requests) == 2
    (result,) = [each for each in requests[1].body["messages"] if each["role"] == "tool"]
    (made,) = [call for each in requests[1].body["messages"] for call in each.get("tool_calls", ())]
    assert result["tool_call_id"] == made["id"]
    assert json.loads(made["function"]["arguments"]) is not None


def called(arguments, name=SEARCH["name"], index=0):
    function = {"name": name, "arguments": arguments}
    return {"tool_calls": [{"index": index, "id": "a", "function": function}]}


def rest(arguments, **name):
    return {"tool_calls": [{"index": 0, "function": {"arguments": arguments, **name}}]}


WEIGHT = SEARCH["arguments"]
IN_PIECES = {
    "a name in two pieces": [called("", "search_"), rest(WEIGHT, name="documents")],
    "a text of a text": [called(json.dumps(WEIGHT))],
    "an empty object first, as proxies of Anthropic": [called("{}"), rest(WEIGHT)],
    "arguments in a fence": [called(f"```json\n{WEIGHT}\n```")],
    "the last bracket missing": [called(WEIGHT[:-1])],
    "arguments as Python": [called("{'query': 'weight'}")],
    "the call again at the end": [called(WEIGHT), called(WEIGHT)],
    "a name with its space": [called(WEIGHT, "functions.search_documents")],
    "a name with a leftover": [called(WEIGHT, "search_documents<|channel|>commentary")],
    "a name with its number, as Kimi": [called(WEIGHT, "functions.search_documents:0")],
    "cut within an escape": [called('{"query": "w\\u00'), rest('65ight"}')],
    "an index that begins at 1": [called(WEIGHT, index=1)],
}  # fmt: skip


@pytest.mark.parametrize("pieces", IN_PIECES.values(), ids=IN_PIECES)
def test_a_call_is_read_as_it_was_meant(ask, pieces):
    answer, requests = ask(deltas(*pieces, finish="tool_calls"), GOOD, tools=True)

    assert answer["content"] == ANSWER
    (made,) = [call for each in requests[1].body["messages"] for call in each.get("tool_calls", ())]
    assert made["function"]["name"] == SEARCH["name"]
    assert json.loads(made["function"]["arguments"]) == {"query": "weight"}


# ── Refusals that we can do without ──────────────────────────────────────────────────────────


def detail(place):
    """A refusal as validators of requests write it."""
    told = [{"type": "extra_forbidden", "loc": ["body", place], "msg": "Extra inputs", "input": 1}]
    return page(json.dumps({"detail": told}), status=422, content_type="application/json")


REFUSED = {
    "max_tokens, as OpenAI": (
        failure(400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
                "'max_completion_tokens' instead.", code="unsupported_parameter"),
        lambda body: body["max_completion_tokens"] > 0 and "max_tokens" not in body,
    ),
    "temperature": (
        failure(400, "Unsupported value: 'temperature' does not support 0.2 with this model. Only "
                "the default (1) value is supported.", code="unsupported_value"),
        lambda body: "temperature" not in body,
    ),
    "stream_options, by its place": (
        detail("stream_options"), lambda body: "stream_options" not in body
    ),
    "the system role, by value": (
        failure(400, "Unsupported value: 'messages[0].role' does not support 'system' with this "
                "model."),
        lambda body: body["messages"][0]["role"] == "user",
    ),
    "the system role, as Google": (
        failure(400, "Developer instruction is not enabled for models/gemma-3-27b-it"),
        lambda body: body["messages"][0]["role"] == "user",
    ),
    "the system role, as older templates": (
        failure(500, "Only user and assistant roles are supported!"),
        lambda body: body["messages"][0]["role"] == "user",
    ),
    "tools, in an error that is a text": (
        page('{"error": "registry/gemma does not support tools"}', status=400,
             content_type="application/json"),
        lambda body: "tools" not in body,
    ),
    "a long reply, by a range": (
        failure(400, "Invalid max_tokens value, the valid range of max_tokens is [1, 512]"),
        lambda body: body["max_tokens"] == 512,
    ),
    "a long reply, by a bound": (
        failure(400, "`max_tokens` must be less than or equal to `600`, the maximum value for it"),
        lambda body: body["max_tokens"] == 600,
    ),
    "a long reply, for what is left on the account": (
        failure(402, "This request requires more credits, or fewer max_tokens. You requested up to "
                "1500 tokens, but can only afford 312."),
        lambda body: body["max_tokens"] == 312,
    ),
    "something without a name": (
        failure(400, "Bad Request"),
        lambda body: body.keys() == {"model", "messages", "stream", "max_tokens"},
    ),
    "messages of more tokens than a minute may have": (
        failure(413, "Request too large for model `x` on tokens per minute (TPM): Limit 1500, "
                "Requested 9000, please reduce your message size and try again."),
        lambda body: body["max_tokens"] < 1000,
    ),
    "messages longer than its window": (
        failure(400, "request (5000 tokens) exceeds the available context size (1024 tokens), try "
                "increasing it"),
        lambda body: body["max_tokens"] < 500,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("refusal", "is_mended"), REFUSED.values(), ids=REFUSED)
def test_what_a_server_refuses_is_done_without(ask_anew, refusal, is_mended):
    answer, requests = ask_anew(refusal, GOOD, tools=True, temperature=0.2)

    assert (answer["content"], answer["notices"]) == (ANSWER, [])
    assert is_mended(requests[-1].body)
    assert len(requests) == 2


# ── Failures ─────────────────────────────────────────────────────────────────────────────────

FAILED = {
    "an error in a good reply": (
        events({"error": {"message": "Provider returned error", "code": 502}}),
        "Provider returned error",
    ),
    "an error that is a text": (events({"error": "runner has stopped"}), "runner has stopped"),
    "an error that is an object of its own": (
        events({"object": "error", "message": "Engine is dead", "code": 500}), "Engine is dead"
    ),
    "an error by its event's name": (
        raw(b'event: error\ndata: {"message": "Overloaded now"}\n\n'), "Overloaded now"
    ),
    "an error in the choice": (
        events({"choices": [{"delta": {}, "error": {"message": "Upstream idle timeout"}}]}),
        "Upstream idle timeout",
    ),
    "a refusal in words": (deltas({"refusal": "I cannot help with that."}), "cannot help"),
    "no words at all": (deltas({"content": ""}), "empty"),
    "thoughts alone": (deltas({"reasoning": "Hmm."}, finish="length"), "thinking"),
    "no room beside the prompt": (deltas({"content": ""}, finish="model_length"), "max_tokens"),
    "resources that ran out": (
        deltas({"content": "The Aero"}, finish="insufficient_system_resource"), "resource"
    ),
    "a refusal as a part": (
        deltas({"content": [{"type": "refusal", "refusal": "I cannot help."}]}), "I cannot help."
    ),
    "what the provider behind a router said": (
        page(json.dumps({"error": {"message": "Provider returned error",
                                   "metadata": {"raw": "add your own key"}}}),
             status=500, content_type="application/json"),
        "add your own key",
    ),
    "a compressed error": (
        packed(b'{"error": {"message": "No credits left"}}', status=402,
               content_type="application/json"),
        "No credits left",
    ),
    "a filter": (deltas({"content": "The "}, finish="content_filter"), "content_filter"),
    "an aborted request": (deltas({"content": "The "}, finish="abort"), "abort"),
    "an end in the middle": (deltas({"content": "The "}, finish=None, done=False), "closed"),
    "no money": (failure(402, "Insufficient Balance"), "Insufficient Balance"),
    "a moderated question": (failure(403, "Flagged for violence"), "Flagged for violence"),
    "a spent quota": (
        failure(429, "You exceeded your current quota", code="insufficient_quota"), "quota"
    ),
    "a page": (
        page("<html><head><title>x</title><style>a{}</style></head><h1>502 Bad Gateway</h1></html>",
             status=502),
        "502: 502 Bad Gateway)",
    ),
    "a page that says it is well": (page("<!DOCTYPE html><p>Log in"), "web page"),
    "an empty body": (page("", content_type="text/event-stream"), "empty"),
    "no content": (page("", status=204), "empty"),
    "a model that is loading": (failure(503, "Loading model"), "Loading model"),
    "overload": (failure(529, "Overloaded"), "Overloaded"),
    "a validator without a message": (detail("messages"), "messages"),
    "bare text": (page("Internal Server Error", status=500, content_type="text/plain"), "Internal"),
}  # fmt: skip


@pytest.mark.parametrize(("behaviour", "reason"), some(FAILED))
def test_a_failure_is_the_card_with_the_reason(ask, behaviour, reason):
    answer, _ = ask(behaviour)

    (notice,) = answer["notices"]
    assert notice["kind"] == "without_model"
    assert reason in notice["text"]
    assert "<" not in notice["text"]
    assert "120 g" in answer["content"]
    assert answer["citations"]


@pytest.mark.parametrize(
    "headers",
    [
        {"retry-after": "0"},
        {"retry-after-ms": "20"},
        {"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"},
    ],
)
def test_who_asks_for_a_moment_gets_it(ask_anew, headers):
    answer, requests = ask_anew(failure(429, "Slow down", headers=headers), GOOD, max_retries=1)

    assert (answer["content"], len(requests)) == (ANSWER, 2)


def test_an_answer_that_filled_the_window_is_marked_as_cut(ask):
    answer, _ = ask(deltas({"content": ANSWER + " It is"}, finish="model_length"))

    assert [notice["kind"] for notice in answer["notices"]] == ["cut"]

"""Replies as servers really stream them, however the connection cuts them."""

import json
from pathlib import Path

import pytest

from rag.errors import ModelInterrupted, UnreadableReply
from rag.llm.replies import ArrivingReply, ServerComplaint, read_events
from rag.llm.reply_text import ReplyParser

STREAMS = [json.loads(line) for line in (Path(__file__).parent / "streams.jsonl").open()]


def ending(kind):
    """Those that end so, by their form."""
    return [pytest.param(each, id=each["form"]) for each in STREAMS if each["ends"] == kind]


def read(stream, size):
    """The text and the calls of a reply that comes in pieces of a size."""
    content = stream["reply"].encode()
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    text, calls = "", []
    for delta in ArrivingReply(ReplyParser(["search_documents"])).read(read_events(pieces)):
        text = "" if delta.discard else text + delta.text
        calls += delta.tool_calls
    return text, calls


SIZES = pytest.mark.parametrize("size", [1, 5, 1_000_000])


@SIZES
@pytest.mark.parametrize("stream", ending("well"))
def test_an_answer_is_read_from_all_of_them(stream, size):
    assert read(stream, size) == (stream["said"], [])


@SIZES
@pytest.mark.parametrize("stream", ending("call"))
def test_a_call_is_read_from_all_of_them(stream, size):
    (call,) = read(stream, size)[1]

    assert (call.name, json.loads(call.arguments)) == ("search_documents", {"query": "x"})


@SIZES
@pytest.mark.parametrize("stream", ending("broken"))
def test_what_is_no_whole_answer_is_never_taken_for_one(stream, size):
    with pytest.raises((ModelInterrupted, ServerComplaint, UnreadableReply)):
        read(stream, size)

"""OpenAI's newer protocol: a response for an input, going on from an earlier one by its id."""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from flask import Response, request

from rag.errors import ModelInterrupted, NotFound
from rag.hangup import LEFT
from rag.records import Discarded, Failed, Finished, Text
from rag.seams import SessionHandle
from rag.web.access import rights
from rag.web.current import application, open_session
from rag.web.described import DescribedApi
from rag.web.html.transcripts import FoundSession, TranscriptTable, copy_of
from rag.web.openai.chat import (
    REFUSED,
    Completion,
    annotations_of,
    begun,
    choose,
    finish_reason,
    found_for,
    remember,
    settled,
    transcripts,
    usage_of,
)
from rag.web.openai.requests import MODEL, Asked, ResponseBody, wanted_collections
from rag.web.problems import problem_response
from rag.web.sse import PING, PING_SECONDS, event_stream, failure, frame
from rag.web.turns import Turn

api = DescribedApi(
    "responses",
    "For clients of the OpenAI protocols.",
    prefix="/v1",
    tag="openai",
    refusals=REFUSED,
)
_ID = re.compile(r"resp_([A-Za-z0-9-]{1,40})_(\d{1,9})")


@api.post("/responses", responses={"200": None})
def respond(body: ResponseBody) -> Response:
    """Answer the input; with `previous_response_id` as the next turn of that conversation."""
    asked, wishes = body.asked(), body.wishes()
    wanted = wanted_collections(body.model, body.metadata)
    rights.chosen(wanted or ())  # before anything is begun
    found = _after(body.previous_response_id, asked) or found_for(asked)
    choose(found.session, wanted)
    completion = Completion(found.session, asked.past, asked.question, request.host_url)
    answered = Answered(completion, transcripts(), body)
    turn = begun(found, asked.question, wishes)
    if body.stream:
        return event_stream(events_of(turn, answered))
    with turn.stopped_when_left():
        end = turn.end()
    if not isinstance(end, Finished):
        return problem_response(failure(end or Failed(ModelInterrupted(LEFT), LEFT)))
    answered.remember(end, streamed=end.message.content)
    return Response(json.dumps(answered.ended(end)), mimetype="application/json")


def _after(previous: str | None, asked: Asked) -> FoundSession | None:
    """The session of an earlier response; a copy of it up to there where it went on since."""
    if previous is None:
        return None
    named = _ID.fullmatch(previous)
    if named is None:
        raise NotFound(f"previous_response_id: there is no response {previous[:60]!r}.")
    session, count = open_session(named[1]), int(named[2]) + 1
    if session.read().message_count == count:
        return FoundSession(session, is_new=False)
    return FoundSession(copy_of(application().store, session, count), is_new=True)


@dataclass(frozen=True, slots=True)
class Answered:
    """One response in the words of the protocol."""

    completion: Completion
    table: TranscriptTable
    body: ResponseBody
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def session(self) -> SessionHandle:
        return self.completion.session

    def remember(self, end: Finished, *, streamed: str) -> None:
        """Know this conversation again, for clients that send all of it each time."""
        remember(self.table, self.completion, end, streamed=streamed)

    def begun(self, index: int) -> dict[str, Any]:
        """Before anything is written."""
        return {
            "id": f"resp_{self.session.id}_{index}",
            "object": "response",
            "created_at": self.created,
            "status": "in_progress",
            "model": MODEL,
            "output": [],
            "error": None,
            "incomplete_details": None,
            "instructions": self.body.instructions,
            "metadata": self.body.metadata or {},
            "parallel_tool_calls": False,
            "previous_response_id": self.body.previous_response_id,
            "temperature": self.body.temperature,
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
            "usage": None,
            "session_id": self.session.id,
        }

    def ended(self, end: Finished) -> dict[str, Any]:
        is_whole = finish_reason(end) == "stop"
        usage = usage_of(end)
        return self.begun(end.message.index) | {
            "status": "completed" if is_whole else "incomplete",
            "incomplete_details": None if is_whole else {"reason": "max_output_tokens"},
            "output": [self.item(end.message.content, self.annotations(end), "completed")],
            "usage": {
                "input_tokens": usage["prompt_tokens"],
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": usage["completion_tokens"],
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": usage["total_tokens"],
            },
        }

    def annotations(self, end: Finished) -> list[dict[str, Any]]:
        found = annotations_of(end, self.completion.sources_url)
        return [{"type": "url_citation", **each} for each in found]

    def item(self, text: str, annotations: list[dict[str, Any]], status: str) -> dict[str, Any]:
        return {
            "id": f"msg_{self.session.id}_{self.created}",
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": [part_of(text, annotations)] if status == "completed" else [],
        }


def part_of(text: str, annotations: list[dict[str, Any]]) -> dict[str, Any]:
    """The one part of our messages."""
    return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": []}


@dataclass(slots=True)
class _Numbered:
    """Events with their numbers in the stream."""

    number: int = 0

    def event(self, kind: str, **values: Any) -> str:
        told = frame(kind, {"type": kind, "sequence_number": self.number, **values})
        self.number += 1
        return told


def events_of(turn: Turn, answered: Answered) -> Iterator[str]:
    """The answer as the protocol streams it; a client that leaves ends it."""
    numbered = _Numbered()
    place = {"item_id": answered.item("", [], "")["id"], "output_index": 0, "content_index": 0}
    with turn.stopped_unless_ended():
        is_open, streamed = False, ""
        for event in settled(turn.follow(ping_seconds=PING_SECONDS)):
            if event is None or isinstance(event, Discarded):
                yield PING
                continue
            if not is_open and turn.index is not None:
                is_open = True
                yield from _opening(numbered, answered, place, turn.index)
            if isinstance(event, Text):
                streamed += event.text
                delta = {"delta": event.text, "logprobs": []}
                yield numbered.event("response.output_text.delta", **place, **delta)
            elif isinstance(event, Finished):
                answered.remember(event, streamed=streamed)
                yield from _closing(numbered, answered, place, event)
            elif isinstance(event, Failed):
                yield _failed(numbered, answered, event)


def _opening(
    numbered: _Numbered, answered: Answered, place: dict[str, Any], index: int
) -> Iterator[str]:
    begun_now = answered.begun(index)
    yield numbered.event("response.created", response=begun_now)
    yield numbered.event("response.in_progress", response=begun_now)
    item = answered.item("", [], "in_progress")
    yield numbered.event("response.output_item.added", output_index=0, item=item)
    yield numbered.event("response.content_part.added", **place, part=part_of("", []))


def _closing(
    numbered: _Numbered, answered: Answered, place: dict[str, Any], end: Finished
) -> Iterator[str]:
    text, annotations = end.message.content, answered.annotations(end)
    for number, annotation in enumerate(annotations):
        told = {"annotation_index": number, "annotation": annotation}
        yield numbered.event("response.output_text.annotation.added", **place, **told)
    yield numbered.event("response.output_text.done", **place, text=text, logprobs=[])
    yield numbered.event("response.content_part.done", **place, part=part_of(text, annotations))
    item = answered.item(text, annotations, "completed")
    yield numbered.event("response.output_item.done", output_index=0, item=item)
    ended = answered.ended(end)
    yield numbered.event(f"response.{ended['status']}", response=ended)


def _failed(numbered: _Numbered, answered: Answered, failed: Failed) -> str:
    told = failure(failed)
    error = {"code": "server_error", "message": told["detail"]}
    response = answered.begun(failed.index or 0) | {"status": "failed", "error": error}
    return numbered.event("response.failed", response=response)

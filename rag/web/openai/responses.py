"""The OpenAI protocol of responses, which continue from an earlier response by its id."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

from flask import Response
from pydantic import BaseModel

from rag.errors import NotFound
from rag.records import Answer, ChatMessage, Failed, Finished, Message, MessageStatus, Role
from rag.render.gate import outgoing
from rag.seams import SessionHandle
from rag.sessions.recognition import Recognised, SessionMatch, copy_of
from rag.sessions.transcript import ERASED
from rag.web.access.owner import note
from rag.web.access.rights import open_session
from rag.web.api.schemas import DescribedApi
from rag.web.api.sse import Frames, event_stream, frame
from rag.web.openai import completion
from rag.web.openai.completion import (
    AnswerToClient,
    answer_text,
    answered,
    calls_of,
    counted,
    is_whole,
)
from rag.web.openai.requests import MODEL, REFUSED, ClientMessage, ClientRequest, ResponseBody
from rag.web.problems import openai_problem
from rag.web.request_context import application
from rag.web.turns import RunningTurn, failure

api = DescribedApi(
    "responses",
    "For clients of the OpenAI protocols.",
    prefix="/v1",
    tag="openai",
    refusals=REFUSED,
)
# The session, the index of the answer, and how often the client's tools were called before it.
_PLACE = r"_([A-Za-z0-9-]{1,40})_(\d{1,9})(?:_(\d{1,4}))?"
_ID = re.compile(f"resp{_PLACE}")
_ITEM_ID = re.compile(f"msg{_PLACE}")
_CALL_ID = re.compile(rf"fc{_PLACE}_(\d{{1,4}})")


class ResponsePath(BaseModel):
    """Names a response."""

    response_id: str


@api.post("/responses", responses={"200": None})
def respond(body: ResponseBody) -> Response:
    """Answer the input; with `previous_response_id` as the next turn of that conversation.

    An item of the input may be a reference to an earlier one of ours, by its id.
    """
    request = body.understand(_referred)
    if completion.is_task(body, request, is_named=bool(body.previous_response_id)):
        return _task_done(body, request)
    return answered(body, request, Responding)


@api.get("/responses/<response_id>", responses={"200": None})
def read_response(path: ResponsePath) -> dict[str, Any]:
    """A response as it was given, with what is known of its citations now."""
    session, answer = _answer_of(path.response_id)
    question = ResponseBody(input=session.message(answer.index - 1).content)
    cited = {citation.number for citation in answer.answer.citations} if answer.answer else set()
    end = Finished(outgoing(answer), tuple(session.sources(sorted(cited))))
    rounds = answer.answer.rounds if answer.answer else ()
    before = rounds[:-1] if rounds and rounds[-1].tool_calls else rounds
    return Responding(session, replace(question.understand(), rounds=before), question).whole(end)


@api.get("/responses/<response_id>/input_items", responses={"200": None})
def list_input_items(path: ResponsePath) -> dict[str, Any]:
    """The question that a response answers."""
    session, answer = _answer_of(path.response_id)
    message = session.message(answer.index - 1)
    part = {"type": "input_text", "text": message.content}
    item = _message_item(f"msg_{session.id}_{message.index}", Role.USER, "completed", part)
    ids = {"first_id": item["id"], "last_id": item["id"]}
    return {"object": "list", "data": [item], "has_more": False, **ids}


@api.delete("/responses/<response_id>", responses={"200": None})
def delete_response(path: ResponsePath) -> dict[str, Any]:
    """Delete one question with its answer; a conversation that says nothing more goes with it.

    What else was said stays, with its numbers and sources.
    """
    session, answer = _answer_of(path.response_id)
    session.erase(answer.index)
    note("answer.erased", f"{session.id} {answer.index}")
    if not any(
        message.content for message in session.bare_messages() if message.role != Role.SYSTEM
    ):
        session.delete()
    return {"id": path.response_id, "object": "response", "deleted": True}


def _answer_of(response_id: str) -> tuple[SessionHandle, Message]:
    """Return the session and the answer. Raises NotFound, also for another owner's."""
    with suppress(NotFound):
        if match := _ID.fullmatch(response_id):
            session = open_session(match[1])
            message = session.message(int(match[2]))
            if message.role == Role.ASSISTANT and message.index and message.error != ERASED:
                return session, cut_at_round(message, int(match[3] or 0))
    raise NotFound(f"There is no response {response_id[:60]!r}.")


def cut_at_round(message: Message, times: int) -> Message:
    """Return an answer as it was after `times` rounds of calls. Raises NotFound."""
    rounds = message.answer.rounds if message.answer else ()
    calls = [place for place, round_ in enumerate(rounds) if round_.tool_calls]
    is_last = times == len(calls) - bool(rounds and rounds[-1].tool_calls)
    if is_last or message.answer is None:
        return message
    if times > len(calls):
        raise NotFound("Tools were not called so often.")
    then = Answer(rounds[calls[times]].content, rounds=rounds[: calls[times] + 1])
    return replace(message, content=then.text, answer=then)


def _referred(item: ClientMessage) -> ClientMessage:
    """Return the message that a reference to an item of this server names. Raises NotFound."""
    with suppress(NotFound, IndexError):
        if match := _ITEM_ID.fullmatch(item.id):
            message = open_session(match[1]).message(int(match[2]))
            if not message.content:
                raise NotFound("It was deleted.")
            content = answer_text(Finished(cut_at_round(message, int(match[3] or 0)), ()))
            return ClientMessage(role=message.role, content=content)
        if match := _CALL_ID.fullmatch(item.id):
            message = open_session(match[1]).message(int(match[2]))
            call = calls_of(Finished(cut_at_round(message, int(match[3] or 0)), ()))[int(match[4])]
            call_fields = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
            return ClientMessage(type="function_call", **call_fields)
    raise NotFound(f"input: there is no item {item.id[:60]!r}. Send what was said instead.")


def _after(previous: str) -> SessionMatch:
    """Return the session of an earlier response, or a branch of it if it has continued since."""
    with suppress(NotFound):
        match = _ID.fullmatch(previous)
        session_id, index = (match[1], match[2]) if match else ("", 0)
        session, count = open_session(session_id), int(index) + 1
        if session.message(count - 1).error == ERASED:
            raise NotFound("It was deleted.")
        message_count = session.read().message_count
        if message_count == count:
            return SessionMatch(session, Recognised.NAMED)
        if message_count > count:
            fork = copy_of(application().store, session, count)
            return SessionMatch(fork, Recognised.BRANCH)
    raise NotFound(f"previous_response_id: there is no response {previous[:60]!r}.")


@dataclass(slots=True)
class Responding(AnswerToClient):
    """One response, whose events are numbered."""

    body: ResponseBody
    number: int = 0  # of the next event
    index: int | None = None  # of the answer, once it has begun
    has_message: bool = False  # an item of text has begun

    @staticmethod
    def chosen_session(body: ResponseBody) -> SessionMatch | None:
        previous = body.previous_response_id
        return _after(previous) if previous else None

    @staticmethod
    def refused(problem: dict[str, Any]) -> str:
        error = openai_problem(problem)["error"]
        return frame("error", {**error, "type": "error", "sequence_number": 0})

    def whole(self, end: Finished) -> dict[str, Any]:
        has_all, (read, written) = is_whole(end), counted(end)
        self.index = end.message.index
        output, text = self._calls(end), self.rewritten(end).text
        if text or self.has_message or not output:
            part = _part(text, self._annotations(end))
            output = [self._item("completed", part), *output]
        return self._state(end.message.index) | {
            "status": "completed" if has_all else "incomplete",
            "incomplete_details": None if has_all else {"reason": "max_output_tokens"},
            "output": output,
            "usage": {
                "input_tokens": read,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": written,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": read + written,
            },
            **self.extension(end),
        }

    def begun(self, index: int) -> Iterator[str]:
        if self.index is not None:
            return
        self.index = index
        state = self._state(index)
        yield self._event("response.created", response=state)
        yield self._event("response.in_progress", response=state)

    def _message_begun(self) -> str:
        if self.has_message:
            return ""
        self.has_message = True
        item = self._item("in_progress")
        added = self._event("response.output_item.added", output_index=0, item=item)
        return added + self._placed("response.content_part.added", part=_part("", []))

    def delta(self, text: str) -> str:
        begun = self._message_begun()
        return begun + self._placed("response.output_text.delta", delta=text, logprobs=[])

    def failed(self, event: Failed) -> str:
        error = {"code": "server_error", "message": failure(event)["detail"]}
        state = self._state(event.index or 0) | {"status": "failed", "error": error}
        return self._event("response.failed", response=state)

    def ending(self, turn: RunningTurn, end: Finished) -> Frames:
        """Yield the end after the judge's verdicts: nothing may follow `response.completed`."""
        yield from self.closing((yield from self.wait_for_judge(turn, end)))

    def closing(self, end: Finished) -> Iterator[str]:
        calls, text = self._calls(end), self.rewritten(end).text
        if text or self.has_message or not calls:
            yield self._message_begun()
            annotations = self._annotations(end)
            for number, annotation in enumerate(annotations):
                annotated = {"annotation_index": number, "annotation": annotation}
                yield self._placed("response.output_text.annotation.added", **annotated)
            part = _part(text, annotations)
            yield self._placed("response.output_text.done", text=text, logprobs=[])
            yield self._placed("response.content_part.done", part=part)
            item = self._item("completed", part)
            yield self._event("response.output_item.done", output_index=0, item=item)
        for place, item in enumerate(calls, start=int(self.has_message)):
            ids, arguments = {"item_id": item["id"], "output_index": place}, item["arguments"]
            begun = item | {"arguments": "", "status": "in_progress"}
            yield self._event("response.output_item.added", output_index=place, item=begun)
            yield self._event("response.function_call_arguments.delta", **ids, delta=arguments)
            named = {**ids, "name": item["name"], "arguments": arguments}
            yield self._event("response.function_call_arguments.done", **named)
            yield self._event("response.output_item.done", output_index=place, item=item)
        ended = self.whole(end)
        yield self._event(f"response.{ended['status']}", response=ended)

    def _calls(self, end: Finished) -> list[dict[str, Any]]:
        return [
            {
                "id": f"fc_{self._answer_id(end.message.index)}_{number}",
                "type": "function_call",
                "status": "completed",
                "call_id": call.id,
                "name": call.name,
                "arguments": call.arguments,
            }
            for number, call in enumerate(calls_of(end))
        ]

    def _state(self, index: int) -> dict[str, Any]:
        """Return the response before anything is written."""
        return {
            "id": f"resp_{self._answer_id(index)}",
            "object": "response",
            "created_at": self.created,
            "status": "in_progress",
            "model": MODEL,
            "output": [],
            "error": None,
            "incomplete_details": None,
            "instructions": self.body.instructions,
            "metadata": self.body.metadata.model_dump(exclude_unset=True)
            if self.body.metadata
            else {},
            "parallel_tool_calls": bool(self.body.parallel_tool_calls),
            "previous_response_id": self.body.previous_response_id,
            "store": self.body.store is not False,
            "temperature": self.body.temperature,
            "text": self.body.text or {"format": {"type": "text"}},
            "tool_choice": self.body.tool_choice or "auto",
            "tools": self.body.tools or [],
            "top_p": None,
            "usage": None,
            "session_id": self.session.id,
        }

    def _answer_id(self, index: int | None) -> str:
        """Return the id of the answer; the first reply of a turn has no third number."""
        times = sum(bool(round_.tool_calls) for round_ in self.request.rounds)
        return f"{self.session.id}_{index}" + (f"_{times}" if times else "")

    @property
    def _item_id(self) -> str:
        return f"msg_{self._answer_id(self.index)}"

    def _item(self, status: str, *parts: dict[str, Any]) -> dict[str, Any]:
        return _message_item(self._item_id, Role.ASSISTANT, status, *parts)

    def _annotations(self, end: Finished) -> list[dict[str, Any]]:
        return [{"type": "url_citation", **citation} for citation in self.citations(end)]

    def _placed(self, kind: str, **values: Any) -> str:
        place = {"item_id": self._item_id, "output_index": 0, "content_index": 0}
        return self._event(kind, **place, **values)

    def _event(self, kind: str, **values: Any) -> str:
        text = frame(kind, {"type": kind, "sequence_number": self.number, **values})
        self.number += 1
        return text


class TaskResponse(Responding):
    """A reply to a client's task: it cannot be continued, and has no links."""

    def __post_init__(self) -> None:
        self.url_of = str

    def extension(self, end: Finished) -> dict[str, Any]:
        return {}

    def _state(self, index: int) -> dict[str, Any]:
        state = super()._state(index)
        del state["session_id"]
        return state


def _task_done(body: ResponseBody, request: ClientRequest) -> Response:
    """Answer a task with a response, or with a stream of one."""
    text, calls, usage = completion.reply_to(body, request)
    rounds = (ChatMessage(Role.ASSISTANT, text, tool_calls=calls),) if calls else ()
    now = datetime.now(UTC)
    answer = Answer(text, usage=usage, rounds=rounds)
    end = Finished(
        Message(0, 0, Role.ASSISTANT, text, MessageStatus.COMPLETE, now, answer=answer), ()
    )
    nowhere = cast("SessionHandle", SimpleNamespace(id=f"task-{uuid4().hex}"))  # nothing is stored
    response = TaskResponse(nowhere, request, body)
    if not body.stream:
        return Response(json.dumps(response.whole(end)), mimetype="application/json")
    delta = (response.delta(text) for _ in range(bool(text)))
    return event_stream(chain(response.begun(0), delta, response.closing(end)))


def _message_item(item_id: str, role: str, status: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": item_id,
        "type": "message",
        "role": role,
        "status": status,
        "content": [*parts],
    }


def _part(text: str, annotations: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the only part of a message of this server."""
    return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": []}

"""The OpenAI protocol of chat completions, so that stock clients get cited answers."""

import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

from flask import Response
from pydantic import BaseModel

from rag.errors import NotFound
from rag.records import Failed, Finished, ToolCall
from rag.sessions.recognition import Recognised, SessionMatch
from rag.web.access import rights
from rag.web.access.rights import open_session
from rag.web.api.schemas import DescribedApi
from rag.web.api.sse import data_line, event_stream
from rag.web.openai import completion
from rag.web.openai.completion import AnswerToClient, answered, calls_of, counted, is_whole
from rag.web.openai.requests import (
    MODEL,
    MODEL_OF_ONE,
    MODEL_PLAIN,
    MODEL_WITH_LINKS,
    REFUSED,
    ChatBody,
    ClientRequest,
    understood,
)
from rag.web.problems import openai_problem
from rag.web.request_context import application
from rag.web.turns import failure

api = DescribedApi("openai", "For clients of the OpenAI protocols.", prefix="/v1", refusals=REFUSED)


DONE = "data: [DONE]\n\n"  # ends a stream
_OURS = re.compile("[0-9a-f]{32}")  # the id of a session


class ModelPath(BaseModel):
    """Names a model."""

    model_id: str


@api.get("/models", responses={"200": None})
def list_models() -> dict[str, Any]:
    """Our library, read by whatever model the settings name; and each collection of it alone."""
    return {"object": "list", "data": [_model(name) for name in _models()]}


@api.get("/models/<model_id>", responses={"200": None})
def read_model(path: ModelPath) -> dict[str, Any]:
    """The library, or one collection of it."""
    if path.model_id not in _models():
        raise NotFound(f"There is no model {path.model_id[:60]!r}; there is {MODEL!r}.")
    return _model(path.model_id)


def _models() -> list[str]:
    """Return the models' names: with the collections' names, or their ids if names repeat."""
    collections = rights.readable_collections()
    times = Counter(collection.name.casefold() for collection in collections)
    names = [
        collection.name if times[collection.name.casefold()] == 1 else collection.id
        for collection in collections
    ]
    ones = [f"{MODEL_OF_ONE}{name}" for name in names if len(collections) > 1]
    plain = [MODEL_PLAIN] if application().settings.llm.is_configured else []
    return [MODEL, MODEL_WITH_LINKS, *ones, *plain]


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": MODEL}


@api.post("/chat/completions", responses={"200": None})
def complete_chat(body: ChatBody) -> Response:
    """Answer the last question; the session is recognised by the messages before it."""
    request = understood(body.messages, body.messages_field)
    if completion.is_task(body, request):
        return _task_done(body, request)
    return answered(body, request, Completion)


def _call_items(calls: Iterable[ToolCall]) -> list[dict[str, Any]]:
    """Return the calls with what their server wants back."""
    return [
        {
            **call.beside,
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in calls
    ]


def _usage(read: int, written: int) -> dict[str, int]:
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


@dataclass(slots=True)
class Completion(AnswerToClient):
    """A chat completion."""

    body: ChatBody
    done: ClassVar[str] = DONE

    @staticmethod
    def chosen_session(body: ChatBody) -> SessionMatch | None:
        named = body.metadata.session_id if body.metadata else None
        if not named:
            return None
        try:
            return SessionMatch(open_session(named), Recognised.NAMED)
        except NotFound:
            if _OURS.fullmatch(named):
                raise
            return None  # programs that trace their calls put their own ids there

    @staticmethod
    def refused(problem: dict[str, Any]) -> str:
        return data_line(openai_problem(problem))

    def whole(self, end: Finished) -> dict[str, Any]:
        calls, text = calls_of(end), self.rewritten(end).text
        message = {
            "role": "assistant",
            "content": text if text or not calls else None,
            "refusal": None,
            "annotations": self._annotations(end),
            **({"tool_calls": _call_items(calls)} if calls else {}),
        }
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": _finish_reason(end),
        }
        return {
            **_head("chat.completion", self.session.id, self.created),
            "choices": [choice],
            "usage": _usage(*counted(end)),
            **self.extension(end),
        }

    def first(self) -> Iterator[str]:
        yield data_line(self._chunk({"role": "assistant", "content": ""}))

    def delta(self, text: str) -> str:
        return data_line(self._chunk({"content": text}))

    def failed(self, event: Failed) -> str:
        return self.refused(failure(event))

    def closing(self, end: Finished) -> Iterator[str]:
        """Yield the last chunks.

        Citations count characters of `content`, to which attribution may have added markers.
        """
        for place, call in enumerate(_call_items(calls_of(end))):
            yield data_line(self._chunk({"tool_calls": [{"index": place, **call}]}))
        chunk = self._chunk({"annotations": self._annotations(end)}, _finish_reason(end))
        yield data_line({**chunk, "content": self.rewritten(end).text, **self.extension(end)})
        if self.body.stream_options and self.body.stream_options.include_usage:
            began = _head("chat.completion.chunk", self.session.id, self.created)
            yield data_line({**began, "choices": [], "usage": _usage(*counted(end))})

    def judged(self, end: Finished) -> Iterator[str]:
        """Yield one more chunk: the citations again, with the judge's verdicts."""
        yield data_line({**self._chunk({}, _finish_reason(end)), **self.extension(end)})

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        began = _head("chat.completion.chunk", self.session.id, self.created)
        return {**began, "choices": [choice]}

    def _annotations(self, end: Finished) -> list[dict[str, Any]]:
        return [
            {"type": "url_citation", "url_citation": citation} for citation in self.citations(end)
        ]


def _head(kind: str, session_id: str, created: int) -> dict[str, Any]:
    """Return the first fields of a chat completion, and of each of its chunks."""
    completion_id = f"chatcmpl-{session_id}-{created}"
    return {"id": completion_id, "object": kind, "created": created, "model": MODEL}


def _finish_reason(end: Finished) -> str:
    if calls_of(end):
        return "tool_calls"
    return "stop" if is_whole(end) else "length"


def _task_done(body: ChatBody, request: ClientRequest) -> Response:
    """Answer a task with a chat completion, or with a stream of one, in two chunks: it is short."""
    text, calls, usage = completion.reply_to(body, request)
    created = int(time.time())
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if calls:
        message["tool_calls"] = _call_items(calls)
    finish_reason = "tool_calls" if calls else "stop"
    tokens = _usage(usage.prompt_tokens, usage.completion_tokens)
    if not body.stream:
        choice = {"message": message, "logprobs": None, "finish_reason": finish_reason}
        whole = {"choices": [{"index": 0, **choice}], "usage": tokens}
        reply = {**_head("chat.completion", "task", created), **whole}
        return Response(json.dumps(reply), mimetype="application/json")
    for place, call in enumerate(message.get("tool_calls", ())):
        call["index"] = place
    began = _head("chat.completion.chunk", "task", created)
    chunks = [
        {**began, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        for delta, reason in ((message, None), ({}, finish_reason))
    ]
    if body.stream_options and body.stream_options.include_usage:
        chunks.append({**began, "choices": [], "usage": tokens})
    return event_stream(chain(map(data_line, chunks), [DONE]))

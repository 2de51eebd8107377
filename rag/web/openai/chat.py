"""The OpenAI chat protocol, so that stock clients get cited answers."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from flask import Response, current_app, request
from flask_openapi3.types import ResponseDict
from pydantic import BaseModel

from rag.errors import ModelInterrupted, NotFound, UserError
from rag.hangup import LEFT
from rag.records import (
    Cited,
    Discarded,
    Event,
    Failed,
    Finished,
    ImportedMessage,
    NoticeKind,
    Role,
    Text,
)
from rag.seams import SessionHandle, Wishes
from rag.web.access import rights
from rag.web.access.owner import current_owner
from rag.web.api.responses import CitationModel, SourceModel
from rag.web.current import application, default_config, open_session
from rag.web.described import DescribedApi
from rag.web.html.transcripts import FoundSession, SessionFinder, TranscriptTable, chain, link
from rag.web.openai.requests import (
    MODEL,
    MODEL_OF_ONE,
    Asked,
    ChatBody,
    understood,
    wanted_collections,
)
from rag.web.problems import openai_problem, problem_response
from rag.web.sse import PING, PING_SECONDS, Frames, data_line, event_stream, failure
from rag.web.turns import Turn, turns

REFUSED: ResponseDict = {
    status: {
        "description": "Refused, in the shape of OpenAI's errors.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
    for status in ("400", "401", "403", "404", "409", "413", "415", "429", "500", "502", "503")
}

api = DescribedApi(
    "openai", "For clients of the OpenAI chat protocol.", prefix="/v1", refusals=REFUSED
)
EXTENSION = "groundnote-transcripts"
HELD_CHARACTERS = 200  # that a model may say before it calls a tool
DONE = "data: [DONE]\n\n"


class ModelPath(BaseModel):
    """Names a model."""

    model_id: str


# ── Calls ────────────────────────────────────────────────────────────────────────────────────


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
    """By the collections' names, or by their ids where several share a name."""
    held = rights.held_collections()
    times = Counter(each.name.casefold() for each in held)
    names = [each.name if times[each.name.casefold()] == 1 else each.id for each in held]
    return [MODEL, *(f"{MODEL_OF_ONE}{name}" for name in names if len(held) > 1)]


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": MODEL}


def choose(session: SessionHandle, wanted: list[str] | None) -> None:
    """Ask only these collections from now on. Raises NotFound and UserError."""
    if wanted is not None and tuple(ids := rights.chosen(wanted)) != session.read().collections:
        session.choose(ids)


@api.post("/chat/completions", responses={"200": None})
def complete_chat(body: ChatBody) -> Response:
    """Answer the last question; the session is recognised by the messages before it."""
    asked, wishes = understood(body.messages, "messages"), body.wishes()
    named = body.metadata.session_id if body.metadata else None
    told = body.metadata.model_dump() if body.metadata else None
    wanted = wanted_collections(body.model, told)
    rights.chosen(wanted or ())  # before anything is begun
    found = FoundSession(open_session(named), is_new=False) if named else found_for(asked)
    choose(found.session, wanted)
    completion = Completion(found.session, asked.past, asked.question, request.host_url)
    table = None if named else transcripts()
    turn = begun(found, asked.question, wishes)
    if body.stream:
        include_usage = bool(body.stream_options and body.stream_options.include_usage)
        frames = chunks_of(turn, completion, table=table, include_usage=include_usage)
        return event_stream(frames)
    with turn.stopped_when_left():
        end = turn.end()
    if not isinstance(end, Finished):
        return problem_response(failure(end or Failed(ModelInterrupted(LEFT), LEFT)))
    if table is not None:
        remember(table, completion, end, streamed=end.message.content)
    return Response(json.dumps(completion.whole(end)), mimetype="application/json")


def found_for(asked: Asked) -> FoundSession:
    """The session that goes on from what was said before, or a new one."""
    finder = SessionFinder(application().store, transcripts(), config=default_config())
    return finder.session_for(current_owner(), asked.past, instructions=asked.instructions)


def begun(found: FoundSession, question: str, wishes: Wishes) -> Turn:
    """The turn; a refused question leaves everything as it was."""
    try:
        assistant = application().assistant
        return turns().start(found.session, lambda noting: assistant.ask(noting, question, wishes))
    except UserError:
        if found.is_new:
            found.session.delete()
        elif found.state is not None:
            transcripts().give_back(found.session.owner, found.state)
        raise


def transcripts() -> TranscriptTable:
    """The states of conversations that this application sent out."""
    table = current_app.extensions[EXTENSION]
    assert isinstance(table, TranscriptTable)
    return table


def remember(
    table: TranscriptTable, completion: "Completion", end: Finished, *, streamed: str
) -> None:
    """Know this conversation again, whether the client keeps the streamed text or the final one."""
    hashes = chain(completion.past)
    asked = link(hashes[-1] if hashes else "", Role.USER, completion.question)
    answers = {link(asked, Role.ASSISTANT, text) for text in (streamed, end.message.content)}
    table.remember(completion.session, answers, index=end.message.index + 1)


# ── Answers ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer in OpenAI's words."""

    session: SessionHandle
    past: tuple[ImportedMessage, ...]
    question: str
    base_url: str
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def sources_url(self) -> str:
        """Where people find what is behind the numbers."""
        return f"{self.base_url}sessions/{self.session.id}/sources"

    def whole(self, end: Finished) -> dict[str, Any]:
        message = {
            "role": "assistant",
            "content": end.message.content,
            "refusal": None,
            "annotations": self._annotations(end),
        }
        reason = finish_reason(end)
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
        return {
            **self._head("chat.completion"),
            "choices": [choice],
            "usage": usage_of(end),
            **self._extension(end),
        }

    def chunk(self, delta: dict[str, Any], *, finish_reason: str | None = None) -> dict[str, Any]:
        choice = {
            "index": 0,
            "delta": delta,
            "logprobs": None,
            "finish_reason": finish_reason,
        }
        return {**self._head("chat.completion.chunk"), "choices": [choice]}

    def last_chunk(self, end: Finished) -> dict[str, Any]:
        """Citations count characters of `content`: attribution may have added markers to it."""
        chunk = self.chunk(
            {"annotations": self._annotations(end)}, finish_reason=finish_reason(end)
        )
        return {**chunk, "content": end.message.content, **self._extension(end)}

    def _annotations(self, end: Finished) -> list[dict[str, Any]]:
        found = annotations_of(end, self.sources_url)
        return [{"type": "url_citation", "url_citation": each} for each in found]

    def usage_chunk(self, end: Finished) -> dict[str, Any]:
        return {**self._head("chat.completion.chunk"), "choices": [], "usage": usage_of(end)}

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.session.id}-{self.created}",
            "object": kind,
            "created": self.created,
            "model": MODEL,
        }

    def _extension(self, end: Finished) -> dict[str, Any]:
        answer = end.message.answer
        citations = answer.citations if answer else ()
        return {
            "session_id": self.session.id,
            "index": end.message.index,
            "resolved_query": end.message.resolved_query,
            "citations": [CitationModel.of(citation).as_json() for citation in citations],
            "sources": [SourceModel.of(source).as_json() for source in end.sources],
            "notices": [each.text for each in answer.notices] if answer else [],
        }


def finish_reason(end: Finished) -> str:
    """Whether the answer is whole."""
    notices = end.message.answer.notices if end.message.answer else ()
    return "length" if any(each.kind is NoticeKind.CUT for each in notices) else "stop"


def annotations_of(end: Finished, sources_url: str) -> list[dict[str, Any]]:
    """Each citation as the protocol has it, with a link to its source's page."""
    answer = end.message.answer
    titles = {source.number: source.document_title for source in end.sources}
    return [
        {
            "start_index": citation.start,
            "end_index": citation.end,
            "url": f"{sources_url}/{citation.number}",
            "title": titles.get(citation.number, ""),
        }
        for citation in (answer.citations if answer else ())
    ]


def usage_of(end: Finished) -> dict[str, int]:
    """What the model server counted; zeros when no model was called."""
    usage = end.message.answer.usage if end.message.answer else None
    prompt, completion = (usage.prompt_tokens, usage.completion_tokens) if usage else (0, 0)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def chunks_of(
    turn: Turn,
    completion: Completion,
    *,
    table: TranscriptTable | None,
    include_usage: bool,
) -> Frames:
    """The answer as OpenAI's clients read a stream; an error ends it, and so does their leaving."""
    streamed = ""
    yield data_line(completion.chunk({"role": "assistant", "content": ""}))
    with turn.stopped_unless_ended():
        for event in settled(turn.follow(ping_seconds=PING_SECONDS)):
            if event is None:
                yield PING
            elif isinstance(event, Text):
                streamed += event.text
                yield data_line(completion.chunk({"content": event.text}))
            elif isinstance(event, Failed):
                yield data_line(openai_problem(failure(event)))
            elif isinstance(event, Finished):
                if table is not None:
                    remember(table, completion, event, streamed=streamed)
                yield from _end_of(completion, event, include_usage=include_usage)


def settled(events: Iterator[tuple[int, Event | None]]) -> Iterator[Event | None]:
    """The events, text only once it is likely to stay: these clients can take nothing back.

    What is discarded later is followed by a new paragraph; the last chunk holds the whole answer.
    """
    held, is_settled = "", False
    for _, event in events:
        if isinstance(event, Discarded):
            held, is_settled = "\n\n" if is_settled else "", False
            continue
        if isinstance(event, Text):
            held += event.text
        if isinstance(event, Cited | Finished | Failed) or len(held) > HELD_CHARACTERS:
            is_settled = True
        if held and is_settled:
            yield Text(held)
            held = ""
        if not isinstance(event, Text):
            yield event
        if isinstance(event, Finished | Failed):
            return  # what a judge says afterwards, nobody waits for


def _end_of(completion: Completion, end: Finished, *, include_usage: bool) -> Iterator[str]:
    yield data_line(completion.last_chunk(end))
    if include_usage:
        yield data_line(completion.usage_chunk(end))
    yield DONE

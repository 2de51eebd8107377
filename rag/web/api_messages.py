"""The JSON API of one conversation: ask, read the transcript, bring one along."""

from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from typing import Any

from flask import Response, json
from flask_openapi3.blueprint import APIBlueprint
from flask_openapi3.models.tag import Tag

from rag.database import storable
from rag.errors import Conflict, ModelInterrupted
from rag.hangup import HangUp
from rag.records import Event, Failed, Finished, ImportedMessage, Source
from rag.seams import SessionHandle
from rag.web.current import application, open_session
from rag.web.leaving import hanging_up_when_left
from rag.web.problems import REFUSALS, problem_response
from rag.web.request_models import (
    ImportBody,
    ImportedSourceBody,
    MessagePath,
    QuestionBody,
    RangeQuery,
    SessionPath,
)
from rag.web.response_models import (
    AnswerModel,
    ImportedModel,
    MessageModel,
    MessagesModel,
    as_json,
)
from rag.web.sse import closable, event_stream, failure, frames_of, wants_events

api = APIBlueprint(
    "messages",
    __name__,
    url_prefix="/api/v1",
    abp_tags=[Tag(name="messages", description="Questions, and their answers with citations.")],
    abp_responses=REFUSALS,
)
MAX_MESSAGES_AT_ONCE = 1000


@api.post("/sessions/<session_id>/messages", responses={"200": AnswerModel})
def ask(path: SessionPath, body: QuestionBody) -> Response:
    """Ask a question; with `Accept: text/event-stream` the answer comes as it is written."""
    session = open_session(path.session_id)
    return respond(session, application().assistant.ask(session, body.content))


@api.post("/sessions/<session_id>/messages/<index>/regenerate", responses={"200": AnswerModel})
def regenerate(path: MessagePath) -> Response:
    """Write the last answer anew; the earlier one is kept as an older revision."""
    session = open_session(path.session_id)
    return respond(session, application().assistant.regenerate(session, path.index))


def respond(session: SessionHandle, events: Iterator[Event]) -> Response:
    """The events as they happen, or the answer at their end, as the caller prefers."""
    if wants_events():
        return event_stream(frames_of(events, session_id=session.id))
    end = last_of(events)
    if isinstance(end, Failed):
        return problem_response(failure(end))
    answer = AnswerModel.finished(end, session_id=session.id)
    return Response(json.dumps(as_json(answer)), mimetype="application/json")


def last_of(events: Iterator[Event]) -> Finished | Failed:
    """How a turn ended; the iterator is run to its end, where background work is begun.

    A client that leaves meanwhile ends it early, and hangs up on the model.

    Raises:
        ModelInterrupted: it broke off without an end.
    """
    hang_up, end = HangUp(), None
    with hanging_up_when_left(hang_up), hang_up.heard_here(), closing(closable(events)) as turn:
        for event in turn:
            if isinstance(event, Finished | Failed):
                end = event
            elif hang_up.is_over:
                break
    if end is not None:
        return end
    raise ModelInterrupted("The answer broke off without an end. Ask again.")


@api.get("/sessions/<session_id>/messages", responses={"200": MessagesModel})
def list_messages(path: SessionPath, query: RangeQuery) -> dict[str, Any]:
    """A range of the transcript; at most 1000 messages at once."""
    session = open_session(path.session_id)
    end = query.start + MAX_MESSAGES_AT_ONCE
    messages = session.messages(query.start, end if query.end is None else min(end, query.end))
    return as_json(
        MessagesModel(
            messages=[MessageModel.of(message) for message in messages],
            start=query.start,
            end=query.start + len(messages),
            total=session.read().message_count,
        )
    )


@api.get("/sessions/<session_id>/messages/<index>", responses={"200": MessageModel})
def read_message(path: MessagePath) -> dict[str, Any]:
    """One message."""
    return as_json(MessageModel.of(open_session(path.session_id).message(path.index)))


@api.post("/sessions/<session_id>/import", responses={"201": ImportedModel})
def import_messages(path: SessionPath, body: ImportBody) -> tuple[dict[str, Any], int]:
    """Bring a transcript along, with the sources behind its numbers."""
    session = open_session(path.session_id)
    messages = [ImportedMessage(message.role, message.content or "") for message in body.messages]
    sources = [_brought(source) for source in body.sources]
    _refuse_second_numbers(session, sources)
    start = session.append(messages, sources)
    return as_json(ImportedModel(start=start, end=start + len(messages))), 201


def _refuse_second_numbers(session: SessionHandle, brought: list[Source]) -> None:
    """A chunk has one number in a session. Raises Conflict."""
    numbers = {source.chunk_id: source.number for source in session.sources()}
    for source in brought:
        number = numbers.get(source.chunk_id, source.number)
        if number != source.number:
            raise Conflict(
                f"Source {source.number} is [{number}] in this session already. "
                "Import into a new session to keep its numbers."
            )


def _brought(source: ImportedSourceBody) -> Source:
    passage = source.passage or source.text
    return Source(
        number=source.n,
        text=source.text,
        passage=passage,
        document_name=source.document or "imported conversation",
        document_title=source.title or source.document or "Imported conversation",
        locator=source.locator,
        heading_path=tuple(source.heading_path),
        document_id=source.document_id,
        chunk_id=source.chunk_id or f"imported:{source.n}",
        content_hash=sha256(storable(passage).encode()).hexdigest(),
    )

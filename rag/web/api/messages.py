"""The JSON API of one conversation: ask, read the transcript, bring one along."""

import time
from functools import partial

from flask import Response, request, url_for

from rag.citations.register import brought_source
from rag.errors import Conflict, NotFound
from rag.records import ImportedMessage, Judging, MessageStatus, Role, Source
from rag.render.answers import LiveHtml
from rag.render.gate import outgoing
from rag.seams import SessionHandle, SessionTranscript
from rag.web.access.rights import open_or_begin_session, open_session
from rag.web.api.requests import (
    ImportBody,
    ImportedSourceBody,
    LiveQuery,
    MessagePath,
    QuestionBody,
    RangeQuery,
    SessionPath,
)
from rag.web.api.responses import (
    AnswerModel,
    ImportedModel,
    MessageModel,
    MessagesModel,
    StoppedModel,
)
from rag.web.api.sse import event_stream, finished, frames_again, frames_when_due
from rag.web.openapi import DescribedApi
from rag.web.request_context import application
from rag.web.serving.requests import wants_events
from rag.web.turns import RunTurn, turns

api = DescribedApi("messages", "Questions, and their answers with citations.")
MAX_MESSAGES_AT_ONCE = 1000
KNOWN_SECONDS = 3.0  # until all processes know of an answer that is begun


@api.post("/sessions/<session_id>/messages", responses={"200": AnswerModel})
def ask(path: SessionPath, body: QuestionBody, query: LiveQuery) -> Response | AnswerModel:
    """Ask a question; with `Accept: text/event-stream` the answer comes as it is written.

    Where many ask, its first events tell how many wait before (`waiting`). A stream that is left
    changes nothing: the answer is written to its end, and can be followed again. A client that
    waits for the whole answer and leaves ends it. An id of the client's own (letters, figures, `.`,
    `_`, `-`; 64 characters at most; not 32 hexadecimal figures, which are ours) begins a session.
    """
    session = open_or_begin_session(path.session_id)
    assistant = application().assistant
    asking: RunTurn = lambda note: assistant.ask(session, body.content, note=note)  # noqa: E731
    return respond(session, asking, query, wait_for_judge=body.wait_for_judge)


@api.post("/sessions/<session_id>/messages/<index>/regenerate", responses={"200": AnswerModel})
def regenerate(path: MessagePath, query: LiveQuery) -> Response | AnswerModel:
    """Write the last answer anew; the earlier one is kept as an older revision."""
    session = open_session(path.session_id)
    assistant = application().assistant
    return respond(
        session, lambda note: assistant.regenerate(session, path.index, note=note), query
    )


@api.get("/sessions/<session_id>/messages/<index>/events", responses={"200": AnswerModel})
def follow(path: MessagePath, query: LiveQuery) -> Response:
    """The events of an answer that is written now, from its first one or behind `Last-Event-ID`.

    Of an answer that has ended this is its end. Behind an event of an earlier attempt at it, all of
    this one comes.
    """
    session = open_session(path.session_id)
    message = session.message(path.index)
    if message.role != Role.ASSISTANT:
        raise NotFound(f"Message {path.index} is a question; events are those of answers.")
    last_id = request.headers.get("Last-Event-ID", "").strip()
    turn, live = turns().find(session, message), _live(session, query)
    return event_stream(frames_again(session, turn, message, last_id, live=live))


@api.post("/sessions/<session_id>/messages/<index>/stop", responses={"202": StoppedModel})
def stop(path: MessagePath) -> tuple[StoppedModel, int]:
    """End an answer that is being written, wherever it is; what is written of it stays."""
    session = open_session(path.session_id)
    message = session.message(path.index)
    turn = turns().find(session, message)
    if turn is not None:
        turn.stop()
    elif message.status is MessageStatus.PENDING and not _stopped_elsewhere(session, path.index):
        raise Conflict(f"Message {path.index} has only just begun. Ask again in a second.")
    return StoppedModel(index=path.index, status=message.status.value), 202


def _stopped_elsewhere(session: SessionTranscript, index: int) -> bool:
    """Which process writes an answer is written down a moment after it began."""
    until = time.monotonic() + KNOWN_SECONDS
    while not (is_told := session.stop(index)) and time.monotonic() < until:
        time.sleep(KNOWN_SECONDS / 10)
    return is_told


def _live(session: SessionHandle, query: LiveQuery) -> LiveHtml | None:
    url = url_for("pages.conversation", session_id=session.id)
    return LiveHtml(session, url) if query.html else None


def respond(
    session: SessionHandle, ask: RunTurn, query: LiveQuery, *, wait_for_judge: float = 0
) -> Response | AnswerModel:
    """The events as they happen, or the answer at their end, as the caller prefers."""
    if wants_events():
        begin = partial(turns().start, session, ask)
        return event_stream(frames_when_due(begin, _live(session, query)))
    turn = turns().start(session, ask)
    end = finished(turn)
    if end.message.answer and end.message.answer.judging is Judging.PENDING:
        end = turn.judged(end, timeout=wait_for_judge)
    return AnswerModel.finished(end, session_id=session.id)


@api.get("/sessions/<session_id>/messages", responses={"200": MessagesModel})
def list_messages(path: SessionPath, query: RangeQuery) -> MessagesModel:
    """A range of the transcript; at most 1000 messages at once."""
    session = open_session(path.session_id)
    end = query.start + MAX_MESSAGES_AT_ONCE
    messages = session.messages(query.start, end if query.end is None else min(end, query.end))
    end, total = query.start + len(messages), session.read().message_count
    leaving = [outgoing(message) for message in messages]
    return MessagesModel.of(messages=leaving, start=query.start, end=end, total=total)


@api.get("/sessions/<session_id>/messages/<index>", responses={"200": MessageModel})
def read_message(path: MessagePath) -> MessageModel:
    """One message."""
    return MessageModel.of(open_session(path.session_id).message(path.index))


@api.post("/sessions/<session_id>/import", responses={"201": ImportedModel})
def import_messages(path: SessionPath, body: ImportBody) -> tuple[ImportedModel, int]:
    """Bring a transcript along, with the sources behind its numbers."""
    session = open_session(path.session_id)
    messages = [ImportedMessage(message.role, message.content or "") for message in body.messages]
    sources = [_brought(source) for source in body.sources]
    start = session.append(messages, sources)
    return ImportedModel(start=start, end=start + len(messages)), 201


def _brought(source: ImportedSourceBody) -> Source:
    return brought_source(
        source.n,
        source.text,
        source.document or "imported conversation",
        document_title=source.title or source.document or "Imported conversation",
        heading_path=tuple(source.heading_path),
        **source.model_dump(include={"passage", "locator", "document_id", "chunk_id"}),
    )

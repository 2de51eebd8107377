"""The JSON API of sessions: create, list, change, export and search them; their sources."""

import time
from collections import Counter
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal

from flask import Response, json, request, url_for
from pydantic import BaseModel, ConfigDict, Field, model_validator

from rag.citations.register import brought_source
from rag.errors import Conflict, NotFound
from rag.records import (
    ContextConfig,
    ImportedMessage,
    Judging,
    MessageStatus,
    Quotation,
    Role,
    Source,
    SummaryReport,
)
from rag.render.answers import LiveHtml
from rag.render.export import as_conversation, as_markdown, file_name
from rag.render.gate import outgoing
from rag.seams import FoundMessage, SessionHandle
from rag.sessions.transcript import edited, versions_of
from rag.web.access import rights
from rag.web.access.owner import current_owner
from rag.web.access.rights import open_or_begin_session, open_session
from rag.web.api.schemas import (
    MAX_INDEX,
    MAX_QUESTION_CHARS,
    NOT_BLANK,
    STORABLE,
    AnswerModel,
    Body,
    Chosen,
    Described,
    DescribedApi,
    FirstWrong,
    MessageIndex,
    MessageModel,
    PageQuery,
    RequestBody,
    SourceModel,
    SourcesModel,
    Title,
    Words,
)
from rag.web.api.sse import event_stream, frames_again, frames_when_due
from rag.web.request_context import application, default_config
from rag.web.turns import RunTurn, finished, turns, wants_events

MAX_IMPORTED_MESSAGES = 20_000
Question = Annotated[str, Field(min_length=1, max_length=MAX_QUESTION_CHARS), STORABLE, NOT_BLANK]
ShortId = Annotated[str, Field(max_length=40), STORABLE]


class SessionPath(BaseModel):
    """Names a session of the caller."""

    session_id: str


class MessagePath(SessionPath):
    """Names one message of a session, counted from 0."""

    index: MessageIndex


class SourcePath(SessionPath):
    """Names one source of a session, counted from 1."""

    n: Annotated[int, Field(ge=1, le=MAX_INDEX)]


class LiveQuery(BaseModel):
    """How an answer that is being written is told."""

    html: bool = False  # for pages: events `html` (length to keep, text to add) instead of `delta`


class RangeQuery(RequestBody):
    """A half-open range of messages, counted from 0; without `end` at most 1000 of them."""

    start: MessageIndex = 0
    end: MessageIndex | None = None

    @model_validator(mode="after")
    def _ordered(self) -> "RangeQuery":
        if self.end is not None and self.end < self.start:
            raise ValueError(f"end ({self.end}) must not be before start ({self.start}).")
        return self


class MessageSearchQuery(RequestBody):
    """What to look for in messages, ignoring case."""

    q: Annotated[str, Field(min_length=1, max_length=1000), STORABLE, NOT_BLANK]
    limit: Annotated[int, Field(ge=1, le=200)] = 20


class ExportQuery(RequestBody):
    """The form of an export; `test` is a scripted conversation for `groundnote regress`."""

    format: Literal["markdown", "json", "test"] = "markdown"


class ContextConfigBody(Body):
    """How a session keeps its context small; what is left out stays as it is."""

    enabled: bool | None = None
    max_tokens: Annotated[int, Field(ge=500, le=10_000_000)] | None = None
    compression_strategy: Literal["smart", "sliding_window"] | None = None
    recent_message_count: Annotated[int, Field(ge=0, le=10_000)] | None = None
    share: Annotated[
        list[Annotated[str, Field(max_length=64)]] | None,
        Field(max_length=20, description="Other sessions of the caller that are read as well."),
    ] = None


class SessionBody(Body):
    """A session's title and configuration."""

    title: Title | None = None
    context_config: ContextConfigBody | None = None
    collections: Chosen | None = None
    model: Annotated[
        str | None,
        Field(max_length=500, description="One that people may pick; empty: the usual one."),
    ] = None
    knowledge_base_id: Annotated[
        str | None, Field(max_length=200, description="One collection, by its id or name.")
    ] = None

    @property
    def chosen(self) -> tuple[str, ...]:
        """The collections that are asked, whichever way they are named."""
        single = (self.knowledge_base_id,) if self.knowledge_base_id else ()
        return (*(self.collections or ()), *single)


class BranchBody(Body):
    """The question that another one is to take the place of."""

    index: MessageIndex


class QuestionBody(Body):
    """A question; `wait_for_judge` seconds at most are waited for a judge's verdicts."""

    content: Question
    wait_for_judge: Annotated[float, Field(ge=0, le=600)] = 0


class LineBody(Body):
    """A line of the summary as it stands there, and what is to stand in its place."""

    line: Annotated[str, Field(min_length=1, max_length=4000)]
    text: Annotated[str, Field(max_length=1000, description="Empty: the line goes.")] = ""


class RangeBody(Body):
    """A half-open range of messages, counted from 0."""

    start: MessageIndex
    end: MessageIndex

    @model_validator(mode="after")
    def _not_empty(self) -> "RangeBody":
        if self.end <= self.start:
            raise ValueError(f"end ({self.end}) must be after start ({self.start}).")
        return self


class Brought(BaseModel):
    """Part of an export, which may come back as it is: other fields are left aside."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class ImportedMessageBody(Brought):
    """One message of a transcript from elsewhere."""

    role: Annotated[str, Field(min_length=1, max_length=40), STORABLE]
    content: Words | None  # null where an assistant only called tools


class ImportedSourceBody(Brought):
    """One source of a transcript from elsewhere, with the number under which it is cited."""

    n: Annotated[int, Field(ge=1, le=1_000_000)]
    text: Words
    document: Words = ""
    title: Words = ""
    locator: Words = ""
    passage: Words = ""
    heading_path: Annotated[list[Words], Field(max_length=1000), FirstWrong()] = []
    chunk_id: ShortId = ""
    document_id: ShortId = ""


class ImportBody(Body):
    """A transcript from elsewhere, or from our own JSON export."""

    messages: Annotated[
        list[ImportedMessageBody],
        Field(min_length=1, max_length=MAX_IMPORTED_MESSAGES),
        FirstWrong(),
    ]
    sources: Annotated[list[ImportedSourceBody], Field(max_length=10_000), FirstWrong()] = Field([])
    session: Annotated[Any, Field(description="Of an export; left aside.")] = None
    summaries: Annotated[Any, Field(description="Of an export; left aside.")] = None

    @model_validator(mode="after")
    def _numbered_once(self) -> "ImportBody":
        for field in ("n", "chunk_id"):
            counted = Counter(getattr(source, field) for source in self.sources)
            twice = [value for value, count in counted.items() if count > 1 and value]
            if twice:
                raise ValueError(f"two sources have the {field} {twice[0]!r}; it names one source.")
        return self


class SessionModel(Described):
    """A session of the caller."""

    id: str
    client_id: str | None = None  # the client's own id for it
    title: str
    created_at: datetime
    last_used_at: datetime
    message_count: int
    context_config: ContextConfig = Field(validation_alias="config")
    collections: list[str]  # ids of the chosen ones; none: all that the caller may read
    parent: str | None = Field(
        None, description="Of a branch: the session that its messages before `branch_index` are of."
    )
    branch_index: int | None = None
    model: str | None = Field(None, description="That was picked for it; null: the usual one.")


class SessionsModel(Described):
    """A page of the caller's sessions, newest use first."""

    sessions: list[SessionModel]
    limit: int
    offset: int
    next_offset: int | None


class VersionsModel(Described):
    """A question that was edited: the session of each version, oldest first."""

    index: int
    position: int  # index of the requested session in `sessions`
    sessions: list[SessionModel]


class BranchesModel(Described):
    """Where a conversation went on in several versions."""

    versions: list[VersionsModel]


class StoppedModel(Described):
    """An answer that was asked to end, and how it stood at that moment."""

    index: int
    status: str


class MessagesModel(Described):
    """A range of a transcript; `total` messages in all."""

    messages: list[MessageModel]
    start: int
    end: int
    total: int


class FoundMessagesModel(Described):
    """The newest matches, and how many there are in all; `snippet[match_start:match_end]`."""

    query: str
    found: list[FoundMessage]
    total: int


class ImportedModel(Described):
    """Where the imported messages stand: `[start, end)`."""

    start: int
    end: int


class LineModel(Described):
    """One line of a summary: how it came to stand there, and the turns (from 0) behind it."""

    section: str
    text: str
    mark: str  # written, quoted, put_back or unchecked
    turns: list[int]
    numbers: list[int]

    @model_validator(mode="before")
    @classmethod
    def _with_turns(cls, values: Any) -> Any:
        messages = values.get("messages", ())
        return {"turns": sorted({message // 2 for message in messages})} | values


class ContextModel(Described):
    """The messages that would be sent to the model now, and what they cost."""

    messages: list[dict[str, Any]]
    stats: dict[str, Any]
    lines: list[LineModel] = Field(default_factory=list)  # of the summaries in it


class SummaryModel(Described):
    """A verified text standing in for the messages `[start, end)`."""

    id: int | None
    start: int
    end: int
    text: str
    required_numbers: list[int]
    required_names: list[str]
    tokens: int
    quotations: list[Quotation]
    lines: list[LineModel]
    report: SummaryReport


class SummariesModel(Described):
    """Summaries standing in the context, and those made on request."""

    summaries: list[SummaryModel]
    requested: list[SummaryModel]


class CompactedModel(Described):
    """The report of a compaction; null when there was nothing to summarise."""

    compacted: bool
    report: SummaryReport | None


class ForgottenModel(Described):
    """How many summaries were forgotten; the transcript stays."""

    forgotten: int


class ExportModel(Described):
    """A whole conversation; `messages` and `sources` can be imported again."""

    session: SessionModel
    messages: list[MessageModel]
    sources: list[SourceModel]
    summaries: list[SummaryModel]


api = DescribedApi("sessions", "Conversations, each with its register of sources.")


@api.post("/sessions", responses={"201": SessionModel})
def create_session(body: SessionBody) -> tuple[SessionModel, int]:
    """Begin a conversation."""
    config = changed_config(default_config(), body.context_config)
    model = rights.picked_model(body.model or "")
    session = application().store.create(
        current_owner(),
        title=body.title or "",
        config=config,
        collections=rights.chosen(body.chosen),
    )
    if model:
        session.pick_model(model)
    return SessionModel.of(session.read()), 201


def changed_config(config: ContextConfig, wanted: ContextConfigBody | None) -> ContextConfig:
    """Return the config with the fields that were sent; null resets `max_tokens`."""
    if wanted is None:
        return config
    changes = wanted.model_dump(exclude_unset=True)
    if changes.get("share") is not None:
        changes["share"] = tuple(open_session(session_id).id for session_id in changes["share"])
    return replace(
        config,
        **{
            field: value
            for field, value in changes.items()
            if value is not None or field == "max_tokens"
        },
    )


@api.get("/sessions", responses={"200": SessionsModel})
def list_sessions(query: PageQuery) -> SessionsModel:
    """The caller's sessions, newest use first."""
    one_more = application().store.sessions(
        current_owner(), limit=query.limit + 1, offset=query.offset
    )
    return SessionsModel.of(
        sessions=one_more[: query.limit],
        limit=query.limit,
        offset=query.offset,
        next_offset=query.offset + query.limit if len(one_more) > query.limit else None,
    )


@api.get("/sessions/<session_id>", responses={"200": SessionModel})
def read_session(path: SessionPath) -> SessionModel:
    """One session."""
    return SessionModel.of(open_session(path.session_id).read())


@api.put("/sessions/<session_id>", responses={"200": SessionModel})
def change_session(path: SessionPath, body: SessionBody) -> SessionModel:
    """Change the title or the configuration; what is left out stays as it is."""
    session = open_session(path.session_id)
    chosen = rights.chosen(body.collections or ())
    model = rights.picked_model(body.model or "")
    if body.title is not None:
        session.rename(body.title)
    if body.context_config is not None:
        session.configure(changed_config(session.read().config, body.context_config))
    if body.collections is not None:
        session.choose(chosen)
    if body.model is not None:
        session.pick_model(model)
    return SessionModel.of(session.read())


@api.delete("/sessions/<session_id>", responses={"204": None})
def delete_session(path: SessionPath) -> tuple[str, int]:
    """Delete a session with its messages, sources and summaries."""
    open_session(path.session_id).delete()
    return "", 204


@api.post("/sessions/<session_id>/branches", responses={"201": SessionModel})
def edit_question(path: SessionPath, body: BranchBody) -> tuple[SessionModel, int]:
    """A branch in which another question can be asked in place of an earlier one.

    It has the messages before that one at the same places; all branches have one register of
    numbers. The session itself stays as it is.
    """
    return SessionModel.of(edited(open_session(path.session_id), body.index).read()), 201


@api.get("/sessions/<session_id>/branches", responses={"200": BranchesModel})
def list_branches(path: SessionPath) -> BranchesModel:
    """Where questions of the session were edited, and the sessions with the other versions."""
    session = open_session(path.session_id)
    return BranchesModel.of(versions=versions_of(session.read(), session.family()))


@api.get("/sessions/<session_id>/sources", responses={"200": SourcesModel})
def list_sources(path: SessionPath) -> SourcesModel:
    """Every source the session has numbered, with what became of it since."""
    return SourcesModel.of(sources=open_session(path.session_id).sources())


@api.get("/sessions/<session_id>/sources/<n>", responses={"200": SourceModel})
def read_source(path: SourcePath) -> SourceModel:
    """The evidence behind one number, also when its document changed or vanished since."""
    for source in open_session(path.session_id).sources([path.n]):
        return SourceModel.of(source)
    raise NotFound(f"This session has no source [{path.n}].")


@api.get("/sessions/<session_id>/search", responses={"200": FoundMessagesModel})
def search_session(path: SessionPath, query: MessageSearchQuery) -> FoundMessagesModel:
    """Messages of the session that contain some words, newest first."""
    messages = open_session(path.session_id).search(query.q, limit=query.limit)
    return FoundMessagesModel.of(messages, query=query.q)


@api.get("/search/messages", responses={"200": FoundMessagesModel})
def search_messages(query: MessageSearchQuery) -> FoundMessagesModel:
    """Messages of all the caller's sessions that contain some words, newest first."""
    messages = application().store.search(current_owner(), query.q, limit=query.limit)
    return FoundMessagesModel.of(messages, query=query.q)


@api.get(
    "/sessions/<session_id>/export",
    responses={
        "200": {
            "description": "The whole conversation; as JSON it can be imported again.",
            "content": {
                "text/markdown": {"schema": {"type": "string"}},
                "application/json": {"schema": {"type": "object"}},
            },
        }
    },
)
def export_session(path: SessionPath, query: ExportQuery) -> Response:
    """The whole conversation with all its citations."""
    handle = open_session(path.session_id)
    session, messages, sources = handle.read(), handle.messages(), handle.sources()
    extension = {"markdown": "md", "json": "json", "test": "conversation.json"}[query.format]
    if query.format == "markdown":
        text, kind = as_markdown(session, messages, sources), "text/markdown; charset=utf-8"
    elif query.format == "test":
        script = as_conversation(handle)
        text, kind = json.dumps(script, indent=2, ensure_ascii=False), "application/json"
    else:
        exported = ExportModel.of(
            session=session,
            messages=[*map(outgoing, messages)],
            sources=sources,
            summaries=handle.summaries(),
        )
        text, kind = json.dumps(exported.as_json(), indent=2), "application/json"
    name = file_name(session, extension)
    disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, content_type=kind, headers=disposition)


context_api = DescribedApi(
    "context", "What the model sees of a conversation.", prefix="/api/v1/sessions/<session_id>"
)


@context_api.get("/context", responses={"200": ContextModel})
def read_context(path: SessionPath) -> ContextModel:
    """The exact messages that would be sent now, and what they cost."""
    return ContextModel.of(application().assistant.context(open_session(path.session_id)))


@context_api.delete("/context", responses={"200": ForgottenModel})
def forget_context(path: SessionPath) -> ForgottenModel:
    """Forget derived summaries; the transcript stays."""
    return ForgottenModel(forgotten=open_session(path.session_id).forget_summaries())


@context_api.post("/compact", responses={"200": CompactedModel})
def compact(path: SessionPath) -> CompactedModel:
    """Summarise old turns now."""
    report = application().assistant.compact(open_session(path.session_id))
    return CompactedModel.of(compacted=report is not None, report=report)


@context_api.post("/summaries", responses={"201": SummaryModel})
def summarize(path: SessionPath, body: RangeBody) -> tuple[SummaryModel, int]:
    """Summarise a range of messages; the summary is kept beside them."""
    session = open_session(path.session_id)
    summary = application().assistant.summarize(session, body.start, body.end)
    return SummaryModel.of(summary), 201


@context_api.post("/summaries/correct", responses={"200": SummaryModel})
def correct_summary(path: SessionPath, body: LineBody) -> SummaryModel:
    """Put a line of the summary in other words, or take it out; it does not come back."""
    session = open_session(path.session_id)
    return SummaryModel.of(application().assistant.correct_summary(session, body.line, body.text))


@context_api.get("/summaries", responses={"200": SummariesModel})
def list_summaries(path: SessionPath) -> SummariesModel:
    """The summaries in the context, and those that were asked for."""
    session = open_session(path.session_id)
    summaries, requested = session.summaries(), session.requested_summaries()
    return SummariesModel.of(summaries=summaries, requested=requested)


messages_api = DescribedApi("messages", "Questions, and their answers with citations.")
MAX_MESSAGES_AT_ONCE = 1000
START_SECONDS = 3.0  # until all processes know of a new answer


@messages_api.post("/sessions/<session_id>/messages", responses={"200": AnswerModel})
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


@messages_api.post(
    "/sessions/<session_id>/messages/<index>/regenerate", responses={"200": AnswerModel}
)
def regenerate(path: MessagePath, query: LiveQuery) -> Response | AnswerModel:
    """Write the last answer anew; the earlier one is kept as an older revision."""
    session = open_session(path.session_id)
    assistant = application().assistant
    return respond(
        session, lambda note: assistant.regenerate(session, path.index, note=note), query
    )


@messages_api.get("/sessions/<session_id>/messages/<index>/events", responses={"200": AnswerModel})
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


@messages_api.post("/sessions/<session_id>/messages/<index>/stop", responses={"202": StoppedModel})
def stop(path: MessagePath) -> tuple[StoppedModel, int]:
    """End an answer that is being written, wherever it is; what is written of it stays."""
    session = open_session(path.session_id)
    message = session.message(path.index)
    turn = turns().find(session, message)
    if turn is not None:
        turn.stop()
    elif message.status is MessageStatus.PENDING:
        # Another process writes it; which one, is stored a moment after it began.
        until = time.monotonic() + START_SECONDS
        while not session.stop(path.index):
            if time.monotonic() >= until:
                raise Conflict(f"Message {path.index} has only just begun. Ask again in a second.")
            time.sleep(START_SECONDS / 10)
    return StoppedModel(index=path.index, status=message.status.value), 202


def _live(session: SessionHandle, query: LiveQuery) -> LiveHtml | None:
    url = url_for("pages.conversation", session_id=session.id)
    return LiveHtml(session, url) if query.html else None


def respond(
    session: SessionHandle, ask: RunTurn, query: LiveQuery, *, wait_for_judge: float = 0
) -> Response | AnswerModel:
    """Stream the events, or return the answer at its end, as the caller prefers."""
    if wants_events():
        begin = partial(turns().start, session, ask)
        return event_stream(frames_when_due(begin, _live(session, query)))
    turn = turns().start(session, ask)
    end = finished(turn)
    if end.message.answer and end.message.answer.judging is Judging.PENDING:
        end = turn.judged(end, timeout=wait_for_judge)
    return AnswerModel.finished(end, session_id=session.id)


@messages_api.get("/sessions/<session_id>/messages", responses={"200": MessagesModel})
def list_messages(path: SessionPath, query: RangeQuery) -> MessagesModel:
    """A range of the transcript; at most 1000 messages at once."""
    session = open_session(path.session_id)
    end = query.start + MAX_MESSAGES_AT_ONCE
    messages = session.messages(query.start, end if query.end is None else min(end, query.end))
    end, total = query.start + len(messages), session.read().message_count
    leaving = [outgoing(message) for message in messages]
    return MessagesModel.of(messages=leaving, start=query.start, end=end, total=total)


@messages_api.get("/sessions/<session_id>/messages/<index>", responses={"200": MessageModel})
def read_message(path: MessagePath) -> MessageModel:
    """One message."""
    return MessageModel.of(open_session(path.session_id).message(path.index))


@messages_api.post("/sessions/<session_id>/import", responses={"201": ImportedModel})
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

"""The JSON API of sessions: make, list, change, export and search them; their sources."""

from dataclasses import replace

from flask import Response, json

from rag.errors import NotFound
from rag.records import ContextConfig
from rag.render.export import as_conversation, as_markdown, file_name
from rag.render.gate import outgoing
from rag.sessions.branches import edited, versions_of
from rag.web.access import rights
from rag.web.access.owner import current_owner
from rag.web.access.rights import open_session
from rag.web.api.requests import (
    BranchBody,
    ContextConfigBody,
    ExportQuery,
    LineBody,
    MessageSearchQuery,
    PageQuery,
    RangeBody,
    SessionBody,
    SessionPath,
    SourcePath,
)
from rag.web.api.responses import (
    BranchesModel,
    CompactedModel,
    ContextModel,
    ExportModel,
    ForgottenModel,
    FoundMessagesModel,
    SessionModel,
    SessionsModel,
    SourceModel,
    SourcesModel,
    SummariesModel,
    SummaryModel,
)
from rag.web.openapi import DescribedApi
from rag.web.request_context import application, default_config

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
    """What is given replaces what was; a given null takes `max_tokens` back to the model's own."""
    if wanted is None:
        return config
    given = wanted.model_dump(exclude_unset=True)
    if given.get("share") is not None:
        given["share"] = tuple(open_session(session_id).id for session_id in given["share"])
    return replace(
        config,
        **{
            field: value
            for field, value in given.items()
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
        kept = as_conversation(handle)
        text, kind = json.dumps(kept, indent=2, ensure_ascii=False), "application/json"
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

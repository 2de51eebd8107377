"""The JSON API of a conversation's context: what would be sent, summaries, compaction."""

from rag.web.access.rights import open_session
from rag.web.api.requests import LineBody, RangeBody, SessionPath
from rag.web.api.responses import (
    CompactedModel,
    ContextModel,
    ForgottenModel,
    SummariesModel,
    SummaryModel,
)
from rag.web.openapi import DescribedApi
from rag.web.request_context import application

api = DescribedApi(
    "context", "What the model sees of a conversation.", prefix="/api/v1/sessions/<session_id>"
)


@api.get("/context", responses={"200": ContextModel})
def read_context(path: SessionPath) -> ContextModel:
    """The exact messages that would be sent now, and what they cost."""
    return ContextModel.of(application().assistant.context(open_session(path.session_id)))


@api.delete("/context", responses={"200": ForgottenModel})
def forget_context(path: SessionPath) -> ForgottenModel:
    """Forget derived summaries; the transcript stays."""
    return ForgottenModel(forgotten=open_session(path.session_id).forget_summaries())


@api.post("/compact", responses={"200": CompactedModel})
def compact(path: SessionPath) -> CompactedModel:
    """Summarise old turns now."""
    report = application().assistant.compact(open_session(path.session_id))
    return CompactedModel.of(compacted=report is not None, report=report)


@api.post("/summaries", responses={"201": SummaryModel})
def summarize(path: SessionPath, body: RangeBody) -> tuple[SummaryModel, int]:
    """Summarise a range of messages; the summary is kept beside them."""
    session = open_session(path.session_id)
    summary = application().assistant.summarize(session, body.start, body.end)
    return SummaryModel.of(summary), 201


@api.post("/summaries/correct", responses={"200": SummaryModel})
def correct_summary(path: SessionPath, body: LineBody) -> SummaryModel:
    """Put a line of the summary in other words, or take it out; it does not come back."""
    session = open_session(path.session_id)
    return SummaryModel.of(application().assistant.correct_summary(session, body.line, body.text))


@api.get("/summaries", responses={"200": SummariesModel})
def list_summaries(path: SessionPath) -> SummariesModel:
    """The summaries in the context, and those that were asked for."""
    session = open_session(path.session_id)
    summaries, requested = session.summaries(), session.requested_summaries()
    return SummariesModel.of(summaries=summaries, requested=requested)

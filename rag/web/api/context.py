"""The JSON API of a conversation's context: what would be sent, summaries, compaction."""

from typing import Any

from flask_openapi3.models.tag import Tag

from rag.web.api.requests import RangeBody, SessionPath
from rag.web.api.responses import (
    ContextModel,
    as_json,
    plain,
)
from rag.web.api.summaries import (
    CompactedModel,
    ForgottenModel,
    SummariesModel,
    SummaryModel,
    SummaryReportModel,
)
from rag.web.current import application, open_session
from rag.web.described import DescribedApi
from rag.web.problems import REFUSALS

api = DescribedApi(
    "context",
    __name__,
    url_prefix="/api/v1/sessions/<session_id>",
    abp_tags=[Tag(name="context", description="What the model sees of a conversation.")],
    abp_responses=REFUSALS,
)


@api.get("/context", responses={"200": ContextModel})
def read_context(path: SessionPath) -> dict[str, Any]:
    """The exact messages that would be sent now, and what they cost."""
    context = plain(application().assistant.context(open_session(path.session_id)))
    messages = context.pop("messages")
    return as_json(ContextModel(messages=messages, stats=context.pop("stats", context)))


@api.delete("/context", responses={"200": ForgottenModel})
def forget_context(path: SessionPath) -> dict[str, Any]:
    """Forget derived summaries; the transcript stays."""
    return as_json(ForgottenModel(forgotten=open_session(path.session_id).forget_summaries()))


@api.post("/compact", responses={"200": CompactedModel})
def compact(path: SessionPath) -> dict[str, Any]:
    """Summarise old turns now."""
    report = application().assistant.compact(open_session(path.session_id))
    return as_json(
        CompactedModel(
            compacted=report is not None,
            report=None if report is None else SummaryReportModel.of(report),
        )
    )


@api.post("/summaries", responses={"201": SummaryModel})
def summarize(path: SessionPath, body: RangeBody) -> tuple[dict[str, Any], int]:
    """Summarise a range of messages; the summary is kept beside them."""
    session = open_session(path.session_id)
    summary = application().assistant.summarize(session, body.start, body.end)
    return as_json(SummaryModel.of(summary)), 201


@api.get("/summaries", responses={"200": SummariesModel})
def list_summaries(path: SessionPath) -> dict[str, Any]:
    """The summaries in the context, and those that were asked for."""
    session = open_session(path.session_id)
    return as_json(
        SummariesModel(
            summaries=[SummaryModel.of(summary) for summary in session.summaries()],
            requested=[SummaryModel.of(summary) for summary in session.requested_summaries()],
        )
    )

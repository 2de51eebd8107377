"""For those who run the server: is it alive, is it ready, how is it doing."""

from typing import Any

from flask import Response
from flask_openapi3.models.tag import Tag
from prometheus_client import CONTENT_TYPE_LATEST

from rag.web.api.responses import StateModel, as_json, plain
from rag.web.current import application
from rag.web.described import DescribedApi

api = DescribedApi("operations", __name__, abp_tags=[Tag(name="operations")])


@api.get("/healthz", responses={"200": StateModel})
def healthz() -> dict[str, Any]:
    """The process answers."""
    return as_json(StateModel(status="ok"))


@api.get("/readyz", responses={"200": StateModel, "503": StateModel})
def readyz() -> tuple[dict[str, Any], int]:
    """Whether questions are answered, if need be by words alone ("degraded"); 503 if not."""
    checks = plain(application().ready())
    if not application().can_answer(checks):
        return as_json(StateModel(status="not ready", checks=checks)), 503
    status = "ready" if all(checks.values()) else "degraded"
    return as_json(StateModel(status=status, checks=checks)), 200


@api.get(
    "/metrics",
    responses={
        "200": {
            "description": "Counters and timings for Prometheus.",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        }
    },
)
def metrics() -> Response:
    """Counters and timings, of all processes that share the database."""
    return Response(application().figures.render(), content_type=CONTENT_TYPE_LATEST)

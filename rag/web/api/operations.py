"""For those who run the server: is it alive, is it ready, how is it doing."""

from flask import Response
from prometheus_client import CONTENT_TYPE_LATEST

from rag.web.api.responses import StateModel
from rag.web.current import application
from rag.web.described import DescribedApi

api = DescribedApi("operations", prefix="", refusals={})


@api.get("/healthz", responses={"200": StateModel})
def healthz() -> StateModel:
    """The process answers."""
    return StateModel(status="ok")


@api.get("/readyz", responses={"200": StateModel, "503": StateModel})
def readyz() -> tuple[StateModel, int]:
    """Whether questions are answered, if need be by words alone ("degraded"); 503 if not."""
    checks = application().ready()
    if not application().can_answer(checks):
        return StateModel(status="not ready", checks=checks), 503
    status = "ready" if all(checks.values()) else "degraded"
    return StateModel(status=status, checks=checks), 200


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

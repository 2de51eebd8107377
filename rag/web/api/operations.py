"""The API for operators: liveness, readiness and metrics."""

import hmac
from typing import Any

from flask import Response, current_app, request
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import Field

from rag.errors import NotAllowed
from rag.web.access.counters import GuessCounter
from rag.web.access.logins import digest
from rag.web.access.owner import GUESSES, caller_address
from rag.web.api.schemas import Described, DescribedApi
from rag.web.request_context import application
from rag.wiring.listeners import is_loopback


class StateModel(Described):
    """Whether the server can serve, check by check."""

    status: str
    checks: dict[str, Any] = Field(default_factory=dict)


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
    """Counters and timings, of all processes that share the database.

    For whoever has `web.metrics_token`; without one, for this machine alone.
    """
    expected = application().settings.web.metrics_token
    if not expected:
        if not is_loopback(caller_address() or "127.0.0.1"):
            raise NotAllowed(
                "Figures are told to this machine alone. Set web.metrics_token, and send it as "
                "`Authorization: Bearer …`."
            )
    else:
        guesses: GuessCounter = current_app.extensions[GUESSES]
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        token_digest = digest(token.strip())
        guesses.refuse_many(caller_address(), token_digest)
        is_right = hmac.compare_digest(token_digest, digest(expected.get_secret_value()))
        if kind.lower() != "bearer" or not is_right:
            guesses.was_wrong(caller_address())
            raise NotAllowed("Figures are told to who sends web.metrics_token as a bearer token.")
        guesses.was_right(token_digest)
    return Response(application().figures.render(), content_type=CONTENT_TYPE_LATEST)

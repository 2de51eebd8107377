"""Error responses as `application/problem+json` (RFC 9457), with nothing internal in them."""

import logging
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from flask import Flask, Response, json, redirect, render_template, request, url_for
from flask_openapi3.types import ResponseDict
from pydantic import BaseModel, ValidationError
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from werkzeug.exceptions import HTTPException, InternalServerError, RequestEntityTooLarge
from werkzeug.wrappers import Response as BaseResponse

from rag.errors import Busy, IndexAway, NotAllowed, RagError, SetupError
from rag.runtime.error_log import is_due
from rag.web.access.owner import has_login
from rag.web.request_context import came

PROBLEM_TYPE = "application/problem+json"
HIDDEN_DETAIL = "Something went wrong on our side; the server's log says what. Please try again."
NO_INDEX = "The vector index cannot be reached just now; nothing is lost. Try again in a moment."
NO_DATABASE = "The database cannot be reached just now. Nothing is lost; try again in a moment."
DATABASE_AWAY = (OperationalError, InterfaceError, PoolTimeout)
TELLING = ("value_error", "missing", "too_short", "too_long")  # messages that say it all
TYPES = ("str", "constrained-str")  # pydantic's names of types, left out of the path of a field
OPENAI_PATHS = "/v1/"
OF_OPENAI = ("/chat/completions", "/responses", "/models")  # if a base URL lacks /v1
_FIELD_NAME = re.compile(r"^([a-z_]+(?:\.[a-z_]+)*): ")  # a field, at the beginning of a refusal
MACHINE_PATHS = ("/api/", "/v1/", "/openapi", "/healthz", "/readyz", "/metrics")

log = logging.getLogger(__name__)


class FieldProblem(BaseModel):
    """What is wrong with one field of a request."""

    field: str
    detail: str


class Problem(BaseModel):
    """A refused or failed request."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[FieldProblem] | None = None
    index: int | None = None  # of the answer that failed, in its session


def problem(
    status: int, detail: str, *, kind: str = "", errors: Sequence[FieldProblem] = (), **more: Any
) -> dict[str, Any]:
    """Return the members of a problem; `kind` tells programs which one it is."""
    members: dict[str, Any] = {
        "type": f"urn:groundnote:problem:{kind}" if kind else "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
    }
    if errors:
        members["errors"] = [error.model_dump() for error in errors]
    return members | {name: value for name, value in more.items() if value is not None}


def problem_of(error: Exception, *, index: int | None = None) -> dict[str, Any]:
    """Return the problem of an error: our own messages, and nothing of any other."""
    if isinstance(error, RagError) and not isinstance(error, SetupError):
        if error.http_status >= 500 and is_due(type(error).__name__):
            log.warning("model failed", extra={"error": type(error).__name__})
        kind = re.sub(r"(?<!^)(?=[A-Z])", "-", type(error).__name__).lower()
        return problem(error.http_status, str(error), kind=kind, index=index)
    if isinstance(error, HTTPException):
        status = error.code or 500
        name = HTTPStatus(status).phrase.lower().replace(" ", "-")
        kind = "internal" if status == 500 else name
        return problem(status, _detail(error), kind=kind, index=index)
    if isinstance(error, DATABASE_AWAY):
        if is_due("database"):
            log.warning("database away", extra={"error": type(error).__name__})
        return problem(503, NO_DATABASE, kind="database-away", index=index)
    if isinstance(error, IndexAway):
        if is_due("index"):
            log.warning("index away", extra={"error": type(error).__name__})
        return problem(503, NO_INDEX, kind="index-away", index=index)
    log.error("request failed", extra={"error": type(error).__name__}, exc_info=error)
    return problem(500, HIDDEN_DETAIL, kind="internal", index=index)


def problem_response(members: Mapping[str, Any]) -> Response:
    """Return the problem as a document for programs, or as a page for a browser."""
    status = int(members["status"])
    if request.path.startswith(OPENAI_PATHS):
        status = 400 if status == 422 else status  # which OpenAI's clients do not know
        openai = json.dumps(openai_problem(members))
        return Response(openai, status=status, mimetype="application/json")
    if wants_page():
        page = render_template("error.html", problem=members)
        return Response(page, status=status, mimetype="text/html")
    return Response(json.dumps(members), status=status, mimetype=PROBLEM_TYPE)


def openai_problem(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a problem in the shape of OpenAI's errors."""
    fields = [error["field"] for error in members.get("errors", ())]
    fields += _FIELD_NAME.findall(members["detail"])
    return {
        "error": {
            "message": members["detail"],
            "type": "server_error" if members["status"] >= 500 else "invalid_request_error",
            "param": fields[0] if fields else None,
            "code": str(members["type"]).rpartition(":")[2].replace("-", "_"),
        }
    }


def wants_page() -> bool:
    """Return whether a browser asks for a page, outside the paths made for programs."""
    if request.path.startswith(MACHINE_PATHS):
        return False
    return request.accept_mimetypes.best_match(["application/json", "text/html"]) == "text/html"


def refuse_fields(error: ValidationError) -> Response:
    """Return the response to a request with wrong fields; flask-openapi3 calls it."""
    errors = []
    for mistake in error.errors(include_url=False, include_context=False):
        # The path of the field, without the types that pydantic tried there.
        path = [part for part in map(str, mistake["loc"]) if part not in TYPES and "[" not in part]
        detail = str(mistake["msg"])
        if mistake["type"] in TELLING:
            detail = detail.removeprefix("Value error, ")
        elif value := came(mistake["input"]):
            detail = f"{detail}; {value} came"
        errors.append(FieldProblem(field=".".join(path) or "(request)", detail=detail))
    detail = "; ".join(f"{mistake.field}: {mistake.detail}" for mistake in errors[:5])
    return problem_response(problem(422, detail, kind="invalid-request", errors=errors))


def handle_errors(app: Flask) -> None:
    """Register the handlers that turn every error of the application into a problem."""
    app.register_error_handler(RagError, show_error)
    for away in DATABASE_AWAY:
        app.register_error_handler(away, show_error)
    app.register_error_handler(HTTPException, show_http_error)


def show_error(error: Exception) -> BaseResponse:
    """Answer with an error of ours; redirect a browser that is not logged in to the login."""
    if isinstance(error, NotAllowed) and has_login() and request.method == "GET" and wants_page():
        return redirect(url_for("login.form", next=request.full_path.rstrip("?")), 303)
    response = problem_response(problem_of(error))
    if isinstance(error, Busy):
        response.headers["Retry-After"] = str(error.retry_seconds)
    if isinstance(error, NotAllowed):
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def show_http_error(error: HTTPException) -> BaseResponse:
    """Answer with an error of Flask's, such as an unknown path, or 500 for an unforeseen one."""
    response = error.get_response()
    if error.response is not None:
        return response  # a complete response, such as a redirect
    shown = problem_response(problem_of(error))
    for name, value in response.headers.items():
        if name in ("Allow", "Retry-After", "WWW-Authenticate"):
            shown.headers[name] = value
    return shown


def _detail(error: HTTPException) -> str:
    if isinstance(error, InternalServerError):
        return HIDDEN_DETAIL
    if hasattr(error, "limit"):  # a limit of requests; its library is loaded only where one is set
        return f"Too many requests: {error.description} are allowed. Wait a little and try again."
    if isinstance(error, RequestEntityTooLarge):
        allowed, came = request.max_content_length or 0, request.content_length or 0
        if 0 < came <= allowed:
            return (
                f"The form has more than {request.max_form_parts:,} files and fields, or a head or "
                f"field of more than {request.max_form_memory_size:,} bytes. Send less at once."
            )
        size = f"{came:,} bytes" if came else "too many bytes"
        return f"The request has {size}; at most {allowed:,} are allowed."
    if error.code == 405:
        allowed_methods = ", ".join(sorted(getattr(error, "valid_methods", None) or ()))
        return f"{request.method} is not allowed at {request.path}; allowed: {allowed_methods}."
    if error.code == 404 and request.path.endswith(OF_OPENAI):
        return f"There is nothing at {request.path}. The address for clients of OpenAI ends in /v1."
    if error.code == 404:
        return f"There is nothing at {request.path}; /openapi.json lists what there is."
    return error.description or "The request cannot be served as it stands."


def _documented(description: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": description, "content": {PROBLEM_TYPE: {"schema": schema}}}


REFUSALS: ResponseDict = {
    "400": _documented("The request cannot be served as it stands."),
    "401": _documented("The caller is not known."),
    "403": _documented("The request comes from a page of another site."),
    "404": _documented("There is no such thing, or it belongs to somebody else."),
    "409": _documented("Not in this state of things."),
    "413": _documented("More than a limit allows; the detail says both numbers."),
    "415": _documented("The body is of another kind than expected."),
    "421": _documented("This server does not answer under that host name."),
    "422": _documented("Fields are missing, unknown or wrong; `errors` lists each."),
    "429": _documented("Too many requests."),
    "500": _documented("Our fault; the server's log says more."),
    "502": _documented("The language model failed."),
    "503": _documented("The language model cannot be reached."),
}
"""Refusals every call of the API may answer with, for its description."""

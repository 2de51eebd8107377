"""Settings → Models: connect the language model that answers, and see what it can do."""

from typing import Any

from flask import Blueprint, redirect, request, url_for

from rag.errors import Forbidden, RagError
from rag.web.access.rights import is_admin
from rag.web.pages.forms import words
from rag.web.pages.layout import PageResult, show_page
from rag.web.request_context import application

model_pages = Blueprint("model_pages", __name__)


@model_pages.before_request
def refuse_others() -> None:
    """Whoever runs this server connects its model. Raises Forbidden."""
    if not is_admin():
        raise Forbidden("Models are connected by whoever runs this server (auth.admins).")


@model_pages.get("/settings/models")
def models() -> str:
    """What answers now, and the servers that run on this machine."""
    return _page()


@model_pages.post("/settings/models/look")
def look() -> PageResult:
    """List the models of the server at an address."""
    address = words("base_url").strip()
    try:
        names = application().connected.look(address, words("api_key").strip())
    except RagError as error:
        return _page(error=error, address=address), error.http_status
    return _page(address=address, names=names)


@model_pages.post("/settings/models/try")
def try_out() -> PageResult:
    """Say what a model of that server can do; with `use`, have it answer from now on."""
    model = words("model").strip()
    connected = application().connected
    try:
        if "use" in request.form:
            connected.use(model, tuple(words("choices").split()))
            return redirect(url_for("model_pages.models"), 303)
        trial = connected.try_out(model)
    except RagError as error:
        return _page(error=error, model=model), error.http_status
    return _page(trial=trial, model=model)


@model_pages.post("/settings/models/disconnect")
def disconnect() -> PageResult:
    """Answer without a model again."""
    try:
        application().connected.disconnect()
    except RagError as error:
        return _page(error=error), error.http_status
    return redirect(url_for("model_pages.models"), 303)


def _page(**values: Any) -> str:
    connected = application().connected
    looked_at = None if values.get("error") else connected.tried()
    settings = application().settings.llm if connected.origin != "browser" else None
    return show_page(
        "models.html",
        origin=connected.origin,
        current=connected.current,
        configured=settings,
        problem=connected.problem,
        servers=[] if connected.origin in ("file", "variable") else connected.servers(),
        **{
            "address": looked_at.base_url if looked_at else "",
            "names": (),
            "trial": None,
            "model": "",
            "choices": words("choices"),
            "error": None,
        }
        | values,
    )

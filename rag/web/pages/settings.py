"""Settings: the model that answers, the colours; and the places that a few letters lead to."""

from datetime import timedelta
from typing import Any

from flask import Blueprint, redirect, request, url_for
from werkzeug.wrappers import Response

from rag.db import storable
from rag.errors import Forbidden, RagError
from rag.web.access import rights
from rag.web.access.owner import current_owner
from rag.web.access.rights import is_admin
from rag.web.pages.layout import PageResult, show_page, wanted_search, words
from rag.web.pages.login import local_path
from rag.web.request_context import application

model_pages = Blueprint("model_pages", __name__)
MOST_LISTED = 24  # models to tick; of more, names are typed


@model_pages.before_request
def refuse_others() -> None:
    """Whoever runs this server connects its model. Raises Forbidden."""
    if not is_admin():
        raise Forbidden("Models are connected by whoever runs this server (auth.admins).")


@model_pages.get("/settings/models")
def models() -> str:
    """What answers now, and the servers that run on this machine."""
    return _models_page()


@model_pages.post("/settings/models/look")
def look() -> PageResult:
    """List the models of the server at an address."""
    address = words("base_url").strip()
    try:
        names = application().connected.look(address, words("api_key").strip())
    except RagError as error:
        return _models_page(error=error, address=address), error.http_status
    return _models_page(address=address, names=names)


@model_pages.post("/settings/models/try")
def try_out() -> PageResult:
    """Say what a model of that server can do; with `use`, have it answer from now on."""
    model = words("model").strip()
    connected = application().connected
    try:
        if "use" in request.form:
            connected.use(model, tuple(_choices().split()))
            return redirect(url_for("model_pages.models"), 303)
        trial = connected.try_out(model)
    except RagError as error:
        return _models_page(error=error, model=model), error.http_status
    return _models_page(trial=trial, model=model)


@model_pages.post("/settings/models/disconnect")
def disconnect() -> PageResult:
    """Answer without a model again."""
    try:
        application().connected.disconnect()
    except RagError as error:
        return _models_page(error=error), error.http_status
    return redirect(url_for("model_pages.models"), 303)


def _choices() -> str:
    """Names with blanks between: typed, or ticked one by one."""
    return " ".join(map(storable, request.form.getlist("choices")))


def _models_page(**values: Any) -> str:
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
            "names": request.form.getlist("names")[:MOST_LISTED],
            "trial": None,
            "model": "",
            "choices": _choices(),
            "most_listed": MOST_LISTED,
            "error": None,
        }
        | values,
    )


preferences = Blueprint("preferences", __name__)
THEME_COOKIE = "groundnote-theme"
THEMES = ("light", "dark")
LASTS = timedelta(days=400)
SESSIONS_LOOKED_AT = 500
PLACES_OF_A_KIND = 8
LONGEST_NAME = 100


@preferences.app_template_global()
def theme() -> str:
    """The colours that were chosen here: "light", "dark", or "" for those of the system."""
    chosen = request.cookies.get(THEME_COOKIE, "")
    return chosen if chosen in THEMES else ""


@preferences.post("/preferences/theme")
def choose_theme() -> Response:
    """Remember the colours in a cookie, so that no page flashes in others first."""
    response = redirect(local_path(words("next")), 303)
    chosen = words("theme")
    if chosen in THEMES:
        response.set_cookie(THEME_COOKIE, chosen, max_age=LASTS, httponly=True, samesite="Lax")
    else:
        response.delete_cookie(THEME_COOKIE)
    return response


@preferences.get("/places")
def places() -> dict[str, list[dict[str, str]]]:
    """Pages, conversations and documents of the caller whose names hold what was typed."""
    wanted = wanted_search().casefold()
    sessions = application().store.sessions(
        current_owner(), limit=SESSIONS_LOOKED_AT, one_version=True
    )
    talks = ((one.title, url_for("pages.conversation", session_id=one.id)) for one in sessions)
    listed = application().documents.page(
        rights.readable().only([]), limit=PLACES_OF_A_KIND, offset=0, words=wanted, order="name"
    )
    documents = (
        (one.title, url_for("document_pages.document", document_id=one.id))
        for one in listed.documents
    )
    kinds = ("page", _pages(), wanted), ("conversation", talks, wanted), ("document", documents, "")
    return {"places": [place for kind in kinds for place in _places(*kind)]}


def _places(kind: str, named: Any, wanted: str) -> list[dict[str, str]]:
    matching = [
        {"kind": kind, "name": name[:LONGEST_NAME], "url": url}
        for name, url in named
        if name and all(word in name.casefold() for word in wanted.split())
    ]
    return matching[:PLACES_OF_A_KIND]


def _pages() -> list[tuple[str, str]]:
    pages = [
        ("New conversation", url_for("pages.new")),
        ("All conversations", url_for("session_pages.sessions")),
        ("Documents", url_for("document_pages.documents")),
    ]
    return [*pages, ("Models", url_for("model_pages.models"))] if rights.is_admin() else pages

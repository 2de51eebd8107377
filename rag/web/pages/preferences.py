"""What a reader chooses for this browser, and the list of places that a few letters lead to."""

from datetime import timedelta
from typing import Any

from flask import Blueprint, redirect, request, url_for
from werkzeug.wrappers import Response

from rag.web.access import rights
from rag.web.access.owner import current_owner
from rag.web.pages.forms import wanted_search, words
from rag.web.pages.login import own_path
from rag.web.request_context import application

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
    response = redirect(own_path(words("next")), 303)
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
    results = [
        *_places("page", _pages(), wanted),
        *_places(
            "conversation", ((session.title, _url(session.id)) for session in sessions), wanted
        ),
    ]
    listed = application().documents.page(
        rights.readable().only([]), limit=PLACES_OF_A_KIND, offset=0, words=wanted, order="name"
    )
    documents = ((document.title, _document(document.id)) for document in listed.documents)
    return {"places": [*results, *_places("document", documents, "")]}


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


def _url(session_id: str) -> str:
    return url_for("pages.conversation", session_id=session_id)


def _document(document_id: str) -> str:
    return url_for("document_pages.document", document_id=document_id)

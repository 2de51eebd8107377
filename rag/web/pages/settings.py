"""Pages of the login, the model that answers and the colours; the search for pages by name."""

import hmac
import re
import secrets
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from flask import Blueprint, current_app, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from rag.db import storable
from rag.errors import Forbidden, NotAllowed, NotFound, ProviderAway, RagError
from rag.web.access import rights
from rag.web.access.logins import LASTS, SECRET_BYTES, Entrant
from rag.web.access.owner import (
    COOKIE,
    EXTENSION,
    LoginOwners,
    caller_address,
    current_owner,
    has_login,
    note,
)
from rag.web.access.rights import is_admin
from rag.web.pages.layout import PageResult, search_of_request, show_page, words
from rag.web.request_context import application

if TYPE_CHECKING:
    from rag.web.access.oidc import LoginProvider

login = Blueprint("login", __name__)
UNDER_WAY = "groundnote-login-"  # prefix of the cookie of each unfinished login
STATE_CHARS = 12  # of a state in that name, so that several pages can log in at once
UNDER_WAY_LASTS = timedelta(minutes=10)
LONGEST_PATH = 2000
LONGEST_CODE = 4000


@login.get("/login")
def form() -> PageResult:
    """Show the ways to log in."""
    return _form()


@login.post("/login")
def log_in() -> PageResult:
    """Log in the browser that sent a token, and redirect to the page it wanted."""
    next_path = local_path(request.form.get("next"))
    try:
        entrant = _owners().entrant(request.form.get("token", "").strip())
    except NotAllowed as error:
        return _form(error, next_path)
    return _logged_in(entrant, next_path, LASTS)


@login.get("/login/provider")
def go() -> PageResult:
    """Redirect the browser to the login provider."""
    next_path = local_path(request.args.get("next"))
    provider, secret = _provider(), secrets.token_urlsafe(SECRET_BYTES)
    try:
        way = provider.login_url(secret, _callback())
    except (NotAllowed, ProviderAway) as error:
        return _form(error, next_path)
    response = redirect(way, 303)
    _set_cookie(
        response,
        UNDER_WAY + provider.state(secret)[:STATE_CHARS],
        f"{secret}.{quote(next_path, safe='')}",
        UNDER_WAY_LASTS,
        path=url_for("login.form"),
    )
    return response


@login.get("/login/callback")
def come_back() -> PageResult:
    """Log in with the code of the provider, if this browser began the login."""
    provider, state = _provider(), request.args.get("state", "")
    state = state if re.fullmatch(r"[0-9A-Za-z_-]{1,100}", state) else ""  # for a cookie's name
    name = UNDER_WAY + state[:STATE_CHARS]
    secret, _, rest = request.cookies.get(name, "").partition(".")
    next_path = local_path(unquote(rest))
    try:
        if not secret or not hmac.compare_digest(state.encode(), provider.state(secret).encode()):
            raise NotAllowed(
                "This login was not begun in this browser, was used already, or took more than "
                "ten minutes. Log in again."
            )
        if request.args.get("error"):
            parts = [request.args.get(part, "") for part in ("error", "error_description")]
            refusal = " ".join(parts).strip()[:300]
            raise NotAllowed(f"The login provider refused: {refusal}.")
        code = request.args.get("code", "")
        if not 0 < len(code) <= LONGEST_CODE:
            raise NotAllowed(
                f"The login provider sent {len(code)} characters of a code; 1 to {LONGEST_CODE} "
                "are expected. Log in again."
            )
        entrant = provider.identify(code, secret, _callback())
        lasts = timedelta(hours=provider.settings.login_hours)
        response = _logged_in(entrant, next_path, lasts)
    except (NotAllowed, ProviderAway) as error:
        response = current_app.make_response(_form(error, next_path))
    response.delete_cookie(name, path=url_for("login.form"))
    return response


@login.post("/logout")
def log_out() -> Response:
    """End this browser's login, and so every copy of its cookie."""
    if not has_login():
        return redirect("/", 303)
    owners = _owners()
    current_login = owners.login()
    if current_login is not None:
        owners.logins.end(current_login.owner, current_login.id)
        note("logout", owner=current_login.owner)
    response = redirect(url_for("login.form", out=1), 303)
    response.delete_cookie(COOKIE)
    return response


@login.get("/logins")
def logins() -> str:
    """Show the browsers that are logged in as the caller."""
    this = _owners().login()
    return show_page(
        "logins.html",
        logins=_owners().logins.of(current_owner()),
        this_login=this.id if this else None,
    )


@login.post("/logins/<login_id>/end")
def end(login_id: str) -> Response:
    """Log one of the caller's browsers out. Raises NotFound."""
    if not _owners().logins.end(current_owner(), login_id):
        raise NotFound("There is no such login: it is over already, or somebody else's.")
    note("login.ended", login_id[:12])
    return redirect("/logins", 303)


# ── How it is done ───────────────────────────────────────────────────────────────────────────


def _owners() -> LoginOwners:
    """Return the owners by login. Raises NotAllowed where callers are identified otherwise."""
    owners = current_app.extensions[EXTENSION]
    if not isinstance(owners, LoginOwners):
        raise NotAllowed("There is nothing to log in to: this server knows its callers otherwise.")
    return owners


def _provider() -> "LoginProvider":
    """Raises NotFound."""
    provider = _owners().provider
    if provider is None:
        raise NotFound("This server has no login provider: log in with a token.")
    return provider


def _callback() -> str:
    """Return the address of `come_back`, as browsers and the provider know it."""
    oidc = application().settings.auth.oidc
    return (oidc and oidc.callback_url) or url_for("login.come_back", _external=True)


def _form(error: RagError | None = None, next_path: str | None = None) -> tuple[str, int]:
    owners = _owners()
    provider, is_out = owners.provider, "out" in request.args
    page = render_template(
        "login.html",
        next=local_path(request.args.get("next")) if next_path is None else next_path,
        error=None if error is None else str(error),
        has_tokens=owners.has_tokens,
        provider=provider and provider.name,
        logout_url=provider.logout_url(url_for("login.form", _external=True))
        if provider is not None and is_out
        else None,
        is_out=is_out,
    )
    return page, 200 if error is None else error.http_status


def _logged_in(entrant: Entrant, next_path: str, lasts: timedelta) -> Response:
    secret = _owners().logins.begin(
        entrant,
        address=caller_address(),
        agent=request.headers.get("User-Agent", ""),
        lasts=lasts,
    )
    note("login", owner=entrant.owner)
    response = redirect(next_path, 303)
    _set_cookie(response, COOKIE, secret, lasts)
    return response


def _set_cookie(
    response: Response, name: str, value: str, lasts: timedelta, path: str = "/"
) -> None:
    """Set a cookie that no script reads, no other site sends, and TLS keeps to itself."""
    response.set_cookie(
        name,
        value,
        max_age=lasts,
        path=path,
        httponly=True,
        samesite="Lax",
        secure=_callback().startswith("https:"),
    )


def local_path(wanted: str | None) -> str:
    """Return a path of this server; "/" if the wanted one is of another site."""
    path = (wanted or "/").replace("\\", "/")
    is_own = path.startswith("/") and not path.startswith("//")
    return path if is_own and path.isprintable() and len(path) <= LONGEST_PATH else "/"


model_pages = Blueprint("model_pages", __name__)
MOST_LISTED = 24  # models shown to tick; with more, names are typed


@model_pages.before_request
def refuse_others() -> None:
    """Let only administrators connect models. Raises Forbidden."""
    if not is_admin():
        raise Forbidden("Models are connected by whoever runs this server (auth.admins).")


@model_pages.get("/settings/models")
def models() -> str:
    """Show the current model, and the model servers on this machine."""
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
    """Show what a model of that server can do; with `use`, let it answer from now on."""
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
    """Return the names of models, typed or ticked, separated by spaces."""
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
THEME_LASTS = timedelta(days=400)
SESSIONS_LOOKED_AT = 500
PLACES_OF_A_KIND = 8
LONGEST_NAME = 100


@preferences.app_template_global()
def theme() -> str:
    """Return the chosen colours: "light", "dark", or "" for those of the system."""
    chosen = request.cookies.get(THEME_COOKIE, "")
    return chosen if chosen in THEMES else ""


@preferences.post("/preferences/theme")
def choose_theme() -> Response:
    """Store the colours in a cookie, so that no page shows others first."""
    response = redirect(local_path(words("next")), 303)
    chosen = words("theme")
    if chosen in THEMES:
        response.set_cookie(
            THEME_COOKIE, chosen, max_age=THEME_LASTS, httponly=True, samesite="Lax"
        )
    else:
        response.delete_cookie(THEME_COOKIE)
    return response


@preferences.get("/places")
def places() -> dict[str, list[dict[str, str]]]:
    """Return pages, sessions and documents of the caller whose names match the typed text."""
    wanted = search_of_request().casefold()
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
    pages = [
        ("New conversation", url_for("pages.new")),
        ("All conversations", url_for("session_pages.sessions")),
        ("Documents", url_for("document_pages.documents")),
    ]
    if is_admin():
        pages.append(("Models", url_for("model_pages.models")))
    return {
        "places": [
            *_places("page", pages, wanted),
            *_places("conversation", talks, wanted),
            *_places("document", documents, ""),
        ]
    }


def _places(kind: str, named: Iterable[tuple[str, str]], wanted: str) -> list[dict[str, str]]:
    matching = [
        {"kind": kind, "name": name[:LONGEST_NAME], "url": url}
        for name, url in named
        if name and all(word in name.casefold() for word in wanted.split())
    ]
    return matching[:PLACES_OF_A_KIND]

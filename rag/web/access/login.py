"""Logging in with a browser, where callers are known by tokens."""

from urllib.parse import urlsplit

from flask import Blueprint, redirect, render_template, request
from werkzeug.wrappers import Response

from rag.errors import NotAllowed, NotFound
from rag.web.access.owner import (
    current_owner,
    has_login,
    log_in_with,
    log_out_of,
    note,
    this_login,
    token_owners,
)
from rag.web.pages.show import show_page

login = Blueprint("login", __name__)


@login.get("/login")
def form() -> str:
    """The form that asks for a token."""
    return render_template("login.html", next=own_path(request.args.get("next")), error=None)


@login.post("/login")
def log_in() -> Response | tuple[str, int]:
    """Remember the browser, and go where it wanted to go."""
    next_path = own_path(request.form.get("next"))
    response = redirect(next_path, 303)
    try:
        log_in_with(request.form.get("token", "").strip(), response)
    except NotAllowed as error:
        return render_template("login.html", next=next_path, error=str(error)), 401
    return response


@login.post("/logout")
def log_out() -> Response:
    """Forget the browser, where there is anything to forget."""
    if not has_login():
        return redirect("/", 303)
    response = redirect("/login", 303)
    log_out_of(response)
    return response


@login.get("/logins")
def logins() -> str:
    """The browsers that are logged in as the caller."""
    owners = token_owners()
    return show_page(
        "logins.html", logins=owners.logins.of(current_owner()), this_login=this_login()
    )


@login.post("/logins/<login_id>/end")
def end(login_id: str) -> Response:
    """Log one of the caller's browsers out. Raises NotFound."""
    if not token_owners().logins.end(current_owner(), login_id):
        raise NotFound("There is no such login: it is over already, or somebody else's.")
    note("login.ended", login_id[:12])
    return redirect("/logins", 303)


def own_path(wanted: str | None) -> str:
    """A path of this server, never another site."""
    path = (wanted or "/").replace("\\", "/")
    parts = urlsplit(path)
    if parts.scheme or parts.netloc or not path.startswith("/") or path.startswith("//"):
        return "/"
    return path if path.isprintable() else "/"

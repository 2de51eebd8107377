"""Logging in with a browser, where callers are known by tokens."""

from urllib.parse import urlsplit

from flask import Blueprint, redirect, render_template, request
from werkzeug.wrappers import Response

from rag.errors import NotAllowed
from rag.web.owner import forget_token, has_login, remember_token

login = Blueprint("login", __name__)


@login.get("/login")
def form() -> str:
    """The form that asks for a token."""
    return render_template("login.html", next=own_path(request.args.get("next")), error=None)


@login.post("/login")
def log_in() -> Response | tuple[str, int]:
    """Remember the browser, and go where it wanted to go."""
    next_path = own_path(request.form.get("next"))
    try:
        remember_token(request.form.get("token", "").strip())
    except NotAllowed as error:
        return render_template("login.html", next=next_path, error=str(error)), 401
    return redirect(next_path, 303)


@login.post("/logout")
def log_out() -> Response:
    """Forget the browser, where there is anything to forget."""
    if not has_login():
        return redirect("/", 303)
    forget_token()
    return redirect("/login", 303)


def own_path(wanted: str | None) -> str:
    """A path of this server, never another site."""
    path = (wanted or "/").replace("\\", "/")
    parts = urlsplit(path)
    if parts.scheme or parts.netloc or not path.startswith("/") or path.startswith("//"):
        return "/"
    return path if path.isprintable() else "/"

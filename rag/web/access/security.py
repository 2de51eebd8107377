"""What every request is checked for, and every response carries, whatever its route."""

import hmac

from flask import Flask, Response, g, request
from werkzeug.exceptions import Forbidden, MisdirectedRequest

from rag.db.audit_trail import act, act_no_more
from rag.web.access.logins import digest
from rag.web.access.owner import COOKIE, caller_address, current_owner, is_cookie_caller
from rag.web.access.proxies import PEERS_HOST
from rag.wiring.listeners import ListenerPolicy, host_name, is_own_origin

LOOKED_AT_BY_MACHINES = ("operations.healthz", "operations.readyz")  # under any name
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain", "")
PUBLIC_ENDPOINTS = frozenset(
    {
        "static",
        "openapi",
        "operations.healthz",
        "operations.readyz",
        "operations.metrics",
        "login.form",
        "login.log_in",
        "login.go",
        "login.come_back",
        "pages.linked",
    }
)
CSRF_FIELD = "csrf_token"
CSRF_HEADER = "X-CSRF-Token"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def protect(app: Flask, policy: ListenerPolicy) -> None:
    """Check hosts, callers and origins before each request; harden each response."""

    @app.before_request
    def check() -> None:
        act("", caller_address())
        if request.endpoint not in LOOKED_AT_BY_MACHINES:
            refuse_foreign_hosts(policy)
        if request.endpoint is None:
            return
        if not g.get("is_admitted"):
            refuse_foreign_origins()
        if request.endpoint not in PUBLIC_ENDPOINTS:
            current_owner()

    app.teardown_request(lambda _error: act_no_more())
    app.after_request(harden)
    app.jinja_env.globals[CSRF_FIELD] = csrf_token


def refuse_foreign_hosts(policy: ListenerPolicy) -> None:
    """Raises MisdirectedRequest."""
    told = (request.environ.get(PEERS_HOST, request.host), request.host)  # and by a proxy
    host = next((host for host in told if not policy.answers_as(host)), None)
    if host is not None:
        raise MisdirectedRequest(
            f"This server does not answer as {host_name(host)[:100]!r}. If it should, add the name "
            "to web.allowed_hosts in settings.json."
        )


def refuse_foreign_origins() -> None:
    """A page of another origin must not act with the caller's rights. Raises Forbidden.

    Browsers say where a request comes from; programs say nothing and are let through. A caller
    known by a cookie must besides prove, with a form, that it read one of our pages.
    """
    if request.method in SAFE_METHODS:
        return
    if not is_same_origin():
        raise Forbidden(
            "This request comes from a page of another site. Send it from this server's own pages, "
            "or from a program."
        )
    if is_cookie_caller() and request.mimetype in FORM_TYPES:
        _require_csrf_token()


def is_same_origin() -> bool:
    """What the browser says about where the request was made."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("Origin")
    return origin is None or is_own_origin(origin, request.host)


def _require_csrf_token() -> None:
    given = request.headers.get(CSRF_HEADER) or request.form.get(CSRF_FIELD, "")
    if not hmac.compare_digest(given.encode(), csrf_token().encode()):
        raise Forbidden("The form is out of date. Go back, load the page again and send it again.")


def csrf_token() -> str:
    """What a form of ours must send along; empty for callers without a cookie of ours.

    It is derived from the cookie's secret, so nothing has to be stored and no second cookie set.
    """
    if not is_cookie_caller():
        return ""
    return digest(f"form:{request.cookies[COOKIE]}")


def harden(response: Response) -> Response:
    """Add the security headers; answers with anyone's data are not kept by caches."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    if request.endpoint != "static":
        response.headers.setdefault("Cache-Control", "no-store")
    return response

"""What every request is checked for, and every response carries, whatever its route."""

import hmac
from urllib.parse import urlsplit

from flask import Flask, Response, request
from werkzeug.exceptions import Forbidden, MisdirectedRequest

from rag.errors import SetupError
from rag.settings import WebSettings
from rag.web.access.logins import digest
from rag.web.access.owner import COOKIE, current_owner, is_cookie_caller, is_loopback
from rag.web.access.proxies import PEERS_HOST

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
ANY = "*"
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


def protect(app: Flask, settings: WebSettings) -> None:
    """Check hosts, callers and origins before each request; harden each response."""
    hosts = trusted_hosts(settings)

    @app.before_request
    def check() -> None:
        if request.endpoint not in LOOKED_AT_BY_MACHINES:
            refuse_foreign_hosts(hosts)
        if request.endpoint is None:
            return
        refuse_foreign_origins()
        if request.endpoint not in PUBLIC_ENDPOINTS:
            current_owner()

    app.after_request(harden)
    app.jinja_env.globals[CSRF_FIELD] = csrf_token


def trusted_hosts(settings: WebSettings) -> frozenset[str]:
    """Names under which we may be called; empty: any. Raises SetupError where none is named.

    On loopback any other name in the Host header means that a foreign page's name was bound to
    this machine, to read its answers.
    """
    allowed = {host.lower() for host in settings.allowed_hosts}
    if ANY in allowed:
        return frozenset()
    if not is_loopback(settings.host) and not allowed:
        raise SetupError(
            f"web.host is {settings.host}, which others can reach, but web.allowed_hosts is empty: "
            "any name would be answered to, and logins led there. Name the hosts under which this "
            'server is known, such as ["docs.example.com"], or ["*"] if a proxy checks them.'
        )
    return frozenset(allowed | set(LOOPBACK) | {settings.host})


def refuse_foreign_hosts(hosts: frozenset[str]) -> None:
    """Raises MisdirectedRequest."""
    told = (request.environ.get(PEERS_HOST, request.host), request.host)  # and by a proxy
    name = next((name for name in map(host_name, told) if name not in hosts), None)
    if hosts and name is not None:
        raise MisdirectedRequest(
            f"This server does not answer as {name[:100]!r}. If it should, add the name to "
            "web.allowed_hosts in settings.json."
        )


def host_name(host: str) -> str:
    """The host without its port, in small letters: "[::1]:8000" gives "[::1]"."""
    if host.startswith("["):
        return host.partition("]")[0].lower() + "]"
    return host.partition(":")[0].lower()


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
    return origin is None or urlsplit(origin).netloc.lower() == request.host.lower()


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

"""Checks of every request and headers of every response, whatever the route.

Browsers say which origin a request comes from, and let a page read the response only if the server
allows that origin. Origins that the operator names are allowed, with a token, and only for /v1.
"""

import hmac
import re

from flask import Flask, Response, g, request
from werkzeug.exceptions import Forbidden, MisdirectedRequest, TooManyRequests

from rag.db.audit_trail import act, act_no_more
from rag.errors import NotAllowed, SetupError
from rag.settings import Settings
from rag.web.access.counters import NOWHERE, Counters, place_of_counters
from rag.web.access.logins import digest
from rag.web.access.owner import COOKIE, PEERS_HOST, caller_address, current_owner, is_cookie_caller
from rag.wiring.listeners import ListenerPolicy, host_name, is_own_origin

LOOKED_AT_BY_MACHINES = ("operations.healthz", "operations.readyz")  # allowed under any host name
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
            hosts = (request.environ.get(PEERS_HOST, request.host), request.host)  # and the proxy's
            foreign = next((host for host in hosts if not policy.answers_as(host)), None)
            if foreign is not None:
                raise MisdirectedRequest(
                    f"This server does not answer as {host_name(foreign)[:100]!r}. If it should, "
                    "add the name to web.allowed_hosts in settings.json."
                )
        if request.endpoint is None:
            return
        if not g.get("is_admitted"):
            refuse_foreign_origins()
        if request.endpoint not in PUBLIC_ENDPOINTS:
            current_owner()

    app.teardown_request(lambda _error: act_no_more())
    app.after_request(harden)
    app.jinja_env.globals[CSRF_FIELD] = csrf_token


def refuse_foreign_origins() -> None:
    """Refuse requests that a page of another origin makes. Raises Forbidden.

    Browsers say where a request comes from; programs do not, and are let through. A caller known by
    a cookie must also prove, when it sends a form, that it has read a page of this server.
    """
    if request.method in SAFE_METHODS:
        return
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None:
        is_same_origin = site in ("same-origin", "none")
    else:
        is_same_origin = origin is None or is_own_origin(origin, request.host)
    if not is_same_origin:
        raise Forbidden(
            "This request comes from a page of another site. Send it from this server's own pages, "
            "or from a program."
        )
    if is_cookie_caller() and request.mimetype in FORM_TYPES:
        token = request.headers.get(CSRF_HEADER) or request.form.get(CSRF_FIELD, "")
        if not hmac.compare_digest(token.encode(), csrf_token().encode()):
            raise Forbidden(
                "The form is out of date. Go back, load the page again and send it again."
            )


def csrf_token() -> str:
    """Return the token that forms must send; "" for callers without a login cookie.

    It is derived from the cookie's secret, so nothing has to be stored and no second cookie set.
    """
    if not is_cookie_caller():
        return ""
    return digest(f"form:{request.cookies[COOKIE]}")


def harden(response: Response) -> Response:
    """Add the security headers; forbid caches to store anything but static files."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    if request.endpoint != "static":
        response.headers.setdefault("Cache-Control", "no-store")
    return response


_ORIGIN = re.compile(r"null|[a-z][a-z0-9+.-]*://[^/\s*?#]+")
METHODS, ALLOWED_HEADERS = "GET, POST, DELETE", "Authorization, Content-Type"
PREFLIGHT_SECONDS = "600"  # that a browser remembers the answer to a preflight request


def admit_origins(app: Flask, settings: Settings) -> None:
    """Admit pages of `web.allowed_origins` under /v1.

    Raises SetupError where they need no token.
    """
    origins = frozenset(settings.web.allowed_origins)
    _check(settings)
    if not origins:
        return

    @app.before_request
    def admit() -> Response | None:
        if not _comes_from(origins):
            return None
        if request.method == "OPTIONS":  # a preflight request, which has no token
            return Response(status=204)
        if not request.headers.get("Authorization"):
            raise NotAllowed("An app of another origin sends a token: `Authorization: Bearer …`.")
        g.is_admitted = True
        return None

    @app.after_request
    def tell(response: Response) -> Response:
        return _allow_origin(response) if _comes_from(origins) else response


def _check(settings: Settings) -> None:
    origins, mode = settings.web.allowed_origins, settings.auth.mode
    if origins and mode not in ("tokens", "oidc"):
        raise SetupError(
            f"web.allowed_origins names {origins[0]!r}, but auth.mode is {mode}: without tokens "
            "any page of that origin would have all rights. Set auth.mode to tokens, or remove it."
        )
    wrong = [origin for origin in origins if not _ORIGIN.fullmatch(origin)]
    if wrong:
        raise SetupError(
            f"web.allowed_origins holds {wrong[0]!r}. Expected an origin by its name, such as "
            '"app://obsidian.md", "http://localhost:3000" or "null"; no path, and no *.'
        )


def _comes_from(origins: frozenset[str]) -> bool:
    return request.path.startswith("/v1/") and request.headers.get("Origin") in origins


def _allow_origin(response: Response) -> Response:
    """Add the headers with which a browser lets the page of the origin read the response."""
    response.headers["Access-Control-Allow-Origin"] = request.headers["Origin"]
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    response.vary.add("Origin")
    if request.method == "OPTIONS":
        wanted = request.headers.get("Access-Control-Request-Headers", ALLOWED_HEADERS)
        response.headers["Access-Control-Allow-Headers"] = wanted
        response.headers["Access-Control-Allow-Methods"] = METHODS
        response.headers["Access-Control-Max-Age"] = PREFLIGHT_SECONDS
    return response


def limit_rates(app: Flask, settings: Settings) -> None:
    """Limit requests by owner, or by address where the owner is not known.

    Raises:
        SetupError: the limit or the store of the counters is not valid.
    """
    wanted, place = settings.web.rate_limit, place_of_counters(settings)
    if wanted is None and place == NOWHERE:
        return
    from limits import parse_many

    try:
        allowed = parse_many(wanted) if wanted else []
    except ValueError as error:
        raise SetupError(
            f"web.rate_limit is {wanted!r}; expected such as `60 per minute`."
        ) from error
    counters = Counters(place)

    @app.before_request
    def count() -> None:
        endpoint = request.endpoint or "static"
        if endpoint == "static" or endpoint.startswith("operations."):
            return  # health checks, metrics and static files
        who = caller()
        for limit in (limit for limit in allowed if not counters.count(limit, who)):
            seconds = int(counters.wait_seconds(limit, who)) + 1
            raise TooManyRequests(
                f"At most {limit} are answered. Ask again in {seconds} seconds.",
                retry_after=seconds,
            )


def caller() -> str:
    """Return whose requests are counted: the owner, else the address."""
    try:
        return current_owner()
    except NotAllowed:
        return request.remote_addr or "127.0.0.1"

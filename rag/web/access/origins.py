"""Apps that call the OpenAI protocols from a browser: notes, extensions, pages of localhost.

Browsers say of each where it comes from, and let it read no answer unless we say so. Those that the
operator names are let in, with a token, and nowhere but to /v1.
"""

import re

from flask import Flask, Response, g, request

from rag.errors import NotAllowed, SetupError
from rag.settings import Settings

_ORIGIN = re.compile(r"null|[a-z][a-z0-9+.-]*://[^/\s*?#]+")
METHODS, HEADERS = "GET, POST, DELETE", "Authorization, Content-Type"
KEPT_SECONDS = "600"  # that a browser remembers what it was told before it asks


def admit_origins(app: Flask, settings: Settings) -> None:
    """Raises SetupError where pages of other origins would act without a token of their own."""
    origins = frozenset(settings.web.allowed_origins)
    _check(settings)

    @app.before_request
    def admit() -> Response | None:
        if not _comes_from(origins):
            return None
        if request.method == "OPTIONS":  # the browser itself asks, and has no token
            return Response(status=204)
        if not request.headers.get("Authorization"):
            raise NotAllowed("An app of another origin sends a token: `Authorization: Bearer …`.")
        g.is_admitted = True
        return None

    @app.after_request
    def tell(response: Response) -> Response:
        return _readable(response) if _comes_from(origins) else response


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


def _readable(response: Response) -> Response:
    """What lets the browser hand an answer to the app that asked."""
    response.headers["Access-Control-Allow-Origin"] = request.headers["Origin"]
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    response.vary.add("Origin")
    if request.method == "OPTIONS":
        wanted = request.headers.get("Access-Control-Request-Headers", HEADERS)
        response.headers["Access-Control-Allow-Headers"] = wanted
        response.headers["Access-Control-Allow-Methods"] = METHODS
        response.headers["Access-Control-Max-Age"] = KEPT_SECONDS
    return response

"""How many requests a caller may make, where the settings say so."""

from flask import Flask, request

from rag.errors import NotAllowed, SetupError
from rag.settings import WebSettings
from rag.web.access.owner import NOWHERE, current_owner


def limit_rates(app: Flask, settings: WebSettings) -> None:
    """Count by owner; who is nobody yet is counted by address.

    Raises:
        SetupError: the limit or the place of the counters is none.
    """
    if settings.rate_limit is None and settings.rate_limit_storage == NOWHERE:
        return
    from flask_limiter import Limiter
    from limits.errors import ConfigurationError

    _check(settings.rate_limit)
    try:
        limiter = Limiter(
            caller,
            app=app,
            default_limits=[settings.rate_limit] if settings.rate_limit else [],
            storage_uri=settings.rate_limit_storage,
            headers_enabled=True,
            # A store of counters that is down must not stop the answers.
            swallow_errors=True,
        )
    except ConfigurationError as error:
        raise SetupError(
            f"web.rate_limit_storage is no place for counters ({error}). Expected memory:// or a "
            "URL such as redis://127.0.0.1:6379/1."
        ) from error
    limiter.request_filter(is_exempt)


def _check(rate_limit: str | None) -> None:
    """A limit that nobody can read would silently be none. Raises SetupError."""
    from limits import parse_many

    try:
        parse_many(rate_limit or "1 per minute")
    except ValueError as error:
        raise SetupError(
            f"web.rate_limit is {rate_limit!r}; expected such as `60 per minute`."
        ) from error


def caller() -> str:
    """Who is counted."""
    try:
        return current_owner()
    except NotAllowed:
        return request.remote_addr or "127.0.0.1"


def is_exempt() -> bool:
    """Health checks, figures and static files cost nothing worth counting."""
    endpoint = request.endpoint or "static"
    return endpoint == "static" or endpoint.startswith("operations.")

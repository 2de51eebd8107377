"""How many requests a caller may make, where the settings say so."""

from flask import Flask, request
from werkzeug.exceptions import TooManyRequests

from rag.errors import NotAllowed, SetupError
from rag.settings import Settings
from rag.web.access.counters import NOWHERE, Counters, place_of_counters
from rag.web.access.owner import current_owner


def limit_rates(app: Flask, settings: Settings) -> None:
    """Count by owner; who is nobody yet is counted by address.

    Raises:
        SetupError: the limit or the place of the counters is none.
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
        if is_exempt():
            return
        who = caller()
        for each in (each for each in allowed if not counters.count(each, who)):
            seconds = int(counters.wait_seconds(each, who)) + 1
            raise TooManyRequests(
                f"At most {each} are answered. Ask again in {seconds} seconds.",
                retry_after=seconds,
            )


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

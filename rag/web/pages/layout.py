"""What the pages share: the sidebar, reading their forms, and redirects."""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

from flask import copy_current_request_context, get_template_attribute, render_template, request
from pydantic import ValidationError
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response

from rag.db import storable
from rag.errors import RagError, UserError
from rag.records import ContextConfig, Session
from rag.web.access import rights
from rag.web.access.owner import current_owner, has_login
from rag.web.access.rights import is_admin
from rag.web.api.sessions import ContextConfigBody
from rag.web.problems import problem_of
from rag.web.request_context import application
from rag.web.turns import places_before

SESSIONS_LISTED = 30
_NO_MEANING = "Search by meaning is away; words alone answer until it is back."
AWAY = {
    "model": _NO_MEANING,
    "index": _NO_MEANING,
    "queue": "New files wait: what reads them is away. All else goes on.",
    "storage": "The disk is full or can only be read: nothing new is kept until that is mended.",
}
PageResult = Response | str | tuple[str, int]


def show_page(template: str, **values: Any) -> str:
    """Render a page with its sidebar."""
    app = application()
    listed = app.store.sessions(current_owner(), limit=SESSIONS_LISTED + 1, one_version=True)
    checks = app.last_checks if app.tried.is_set() else {}
    away = [notice for name, notice in AWAY.items() if not checks.get(name, True)]
    return render_template(
        template,
        listed_sessions=listed[:SESSIONS_LISTED],
        has_more_sessions=len(listed) > SESSIONS_LISTED,
        open_session_id=(request.view_args or {}).get("session_id"),
        has_login=has_login(),
        is_operator=is_admin(),
        away=list(dict.fromkeys(away)),
        **values,
    )


MAX_TITLE_CHARS = 300
LARGEST_INDEX = 2**31 - 1


def words(name: str) -> str:
    r"""Return a text field of the form, with line breaks as `\n`."""
    return storable(request.form.get(name, "").replace("\r\n", "\n"))


def search_of_request(most: int = 1000) -> str:
    """Return the search words of the query, cut after `most` characters."""
    return storable(request.args.get("q", "")).strip()[:most]


def index_of_request(name: str, values: Mapping[str, str]) -> int | None:
    """Return a number of the query or the form; None if it is missing. Raises UserError."""
    text = values.get(name, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal()) or int(text) > LARGEST_INDEX:
        raise UserError(f"{name} is {text[:20]!r}; a whole number such as 12 is expected.")
    return int(text)


def collections_of_request() -> list[str] | None:
    """Return the chosen collections, [] for all; None if the form has no choice.

    Raises:
        NotFound: the caller may not read one of them.
    """
    if "choose" not in request.form:
        return None
    wanted = rights.chosen(request.form.getlist("collection"))
    return [] if len(wanted) == len(rights.readable_collections()) else wanted


def model_of_form() -> str | None:
    """Return the model that is to answer the session; None if the form has no choice."""
    return rights.picked_model(words("model")) if "model" in request.form else None


def title_of_form() -> str:
    """Return the title. Raises UserError."""
    title = " ".join(words("title").split())
    if not title:
        raise UserError("The conversation needs a name. Type a few words.")
    if len(title) > MAX_TITLE_CHARS:
        raise UserError(
            f"The name has {len(title)} characters; at most {MAX_TITLE_CHARS} are taken."
        )
    return title


def config_of_form() -> ContextConfig:
    """Return the settings of a session, within the API's bounds. Raises UserError."""
    values = {
        "enabled": "enabled" in request.form,
        "compression_strategy": words("compression_strategy"),
        "max_tokens": index_of_request("max_tokens", request.form),
        "recent_message_count": index_of_request("recent_message_count", request.form) or 0,
    }
    try:
        ContextConfigBody.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"{first['loc'][-1]}: {first['msg']}.") from error
    return ContextConfig(**values)  # type: ignore[arg-type]


def turns_of_form(session: Session) -> tuple[int, int]:
    """Return messages `[start, end)` of the turns "from" and "to", counted from 1, inclusive.

    Raises:
        UserError: there are no such turns.
    """
    first, last = index_of_request("from", request.form), index_of_request("to", request.form)
    turns = (session.message_count + 1) // 2
    if first is None or last is None or not 1 <= first <= last <= turns:
        raise UserError(
            f"Choose two turns between 1 and {turns}, the earlier one first; "
            f"{first or 'nothing'} to {last or 'nothing'} came."
        )
    return 2 * (first - 1), min(2 * last, session.message_count)


def led_when_due(begin: Callable[[], Response]) -> Response:
    """Return where a form leads: at once, or after a page that says how many wait before it.

    Raises:
        UserError: it cannot be begun, and no part of the response was sent.
    """
    places = places_before()
    before = next(places, None)
    if before is None:
        return begin()
    begin = copy_current_request_context(begin)
    head, _, foot = render_template("waiting.html").partition("<!-- places -->")
    line, go_on = (get_template_attribute("macros.html", name) for name in ("line", "go_on"))

    def lines() -> Iterator[str]:
        yield head
        try:
            for place in chain([before], places):
                yield line(f"{place} before you" if place else "You are next")
            yield go_on(begin().location)
        except (RagError, HTTPException) as error:
            yield line(problem_of(error)["detail"])
        yield foot

    return Response(lines(), mimetype="text/html")

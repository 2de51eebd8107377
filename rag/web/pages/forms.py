"""What the forms of the pages send, made into what the application takes."""

from collections.abc import Mapping

from flask import request
from pydantic import ValidationError

from rag.db import storable
from rag.errors import UserError
from rag.records import ContextConfig, Session
from rag.web.access import rights
from rag.web.api.requests import ContextConfigBody

MAX_TITLE_CHARS = 300
LARGEST_INDEX = 2**31 - 1


def words(name: str) -> str:
    """A text of the form, with line breaks as everywhere else."""
    return storable(request.form.get(name, "").replace("\r\n", "\n"))


def wanted_search(most: int = 1000) -> str:
    """What the query looks for, cut after so many characters."""
    return storable(request.args.get("q", "")).strip()[:most]


def wanted_index(name: str, given: Mapping[str, str]) -> int | None:
    """A number of the query or the form; None if it is missing. Raises UserError."""
    text = given.get(name, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal()) or int(text) > LARGEST_INDEX:
        raise UserError(f"{name} is {text[:20]!r}; a whole number such as 12 is expected.")
    return int(text)


def wanted_collections() -> list[str] | None:
    """What a conversation is to ask, none of them for all; None if the form does not say.

    Raises:
        NotFound: one of them is not open to the caller.
    """
    if "choose" not in request.form:
        return None
    wanted = rights.chosen(request.form.getlist("collection"))
    return [] if len(wanted) == len(rights.held_collections()) else wanted


def wanted_model() -> str | None:
    """The model that a conversation is to be answered by; None if the form does not say."""
    return rights.picked_model(words("model")) if "model" in request.form else None


def wanted_title() -> str:
    """Raises UserError."""
    title = " ".join(words("title").split())
    if not title:
        raise UserError("The conversation needs a name. Type a few words.")
    if len(title) > MAX_TITLE_CHARS:
        raise UserError(
            f"The name has {len(title)} characters; at most {MAX_TITLE_CHARS} are taken."
        )
    return title


def wanted_config() -> ContextConfig:
    """The settings form; the bounds are those of the API. Raises UserError."""
    values = {
        "enabled": "enabled" in request.form,
        "compression_strategy": words("compression_strategy"),
        "max_tokens": wanted_index("max_tokens", request.form),
        "recent_message_count": wanted_index("recent_message_count", request.form) or 0,
    }
    try:
        ContextConfigBody.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"{first['loc'][-1]}: {first['msg']}.") from error
    return ContextConfig(**values)  # type: ignore[arg-type]


def wanted_range(session: Session) -> tuple[int, int]:
    """Messages `[start, end)` of the turns "from" and "to", both counted from 1 and included.

    Raises:
        UserError: there are no such turns.
    """
    first, last = wanted_index("from", request.form), wanted_index("to", request.form)
    turns = (session.message_count + 1) // 2
    if first is None or last is None or not 1 <= first <= last <= turns:
        raise UserError(
            f"Choose two turns between 1 and {turns}, the earlier one first; "
            f"{first or 'nothing'} to {last or 'nothing'} came."
        )
    return 2 * (first - 1), min(2 * last, session.message_count)

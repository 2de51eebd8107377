"""What one request works with: the application, and what was asked of it."""

import re
from typing import TYPE_CHECKING, cast

from flask import current_app

from rag.errors import NotFound
from rag.records import ContextConfig

if TYPE_CHECKING:
    from rag.wiring.application import Application

EXTENSION = "groundnote"


def application() -> "Application":
    """What `create_app` was given."""
    return cast("Application", current_app.extensions[EXTENSION])


def default_config() -> ContextConfig:
    """How a new session keeps its context small, unless its maker says otherwise."""
    settings = application().settings
    return ContextConfig(
        enabled=settings.summarization_settings.enabled,
        compression_strategy=settings.context.compression_strategy,
        recent_message_count=settings.context.recent_message_count,
    )


def checked_id(text: str, kind: str) -> str:
    """The id, if it can be one; what cannot be an id names nothing. Raises NotFound."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", text):
        raise NotFound(f"There is no {kind} {text[:60]!r}.")
    return text

"""Recognise a transcript that is handed over again and again, message by message."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import islice
from operator import itemgetter
from typing import Any

MessageDict = Mapping[str, Any]
_CONTENT = itemgetter("content")


def snapshot(message: MessageDict) -> dict[str, Any]:
    """A copy that later changes do not reach, of whatever can be copied and compared."""
    return {key: _copied(value) for key, value in message.items()}


def common(messages: Sequence[MessageDict], known: Sequence[MessageDict]) -> int:
    """How many messages at the beginning are equal to the known ones."""
    pairs = enumerate(zip(messages, known, strict=False))
    end = min(len(messages), len(known))
    return next((index for index, (one, other) in pairs if one != other), end)


def begins_with(messages: Sequence[MessageDict], contents: list[Any]) -> bool:
    """Whether the first messages have these contents.

    Each is looked at, because any may have been changed in place; that takes some 50 ns a message.
    """
    first = islice(messages, len(contents))
    try:
        return list(map(_CONTENT, first)) == contents
    except (KeyError, TypeError):  # some have no content, as where a model calls a tool
        return [content_of(message) for message in messages[: len(contents)]] == contents


def content_of(message: Any) -> Any:
    """What a message says; None for one without content, and for what is no message."""
    return message.get("content") if isinstance(message, Mapping) else None


def _copied(value: Any) -> Any:
    if isinstance(value, str):
        return value
    try:
        copied = deepcopy(value)
        return copied if copied == value else value
    except (TypeError, ValueError):  # it holds a lock, a file, an array or the like
        return value

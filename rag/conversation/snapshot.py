"""Recognise a transcript that is handed over again and again, message by message."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

MessageDict = Mapping[str, Any]


def snapshot(message: MessageDict) -> dict[str, Any]:
    """A copy that later changes do not reach, of whatever can be copied and compared."""
    return {key: _copied(value) for key, value in message.items()}


def common(messages: list[MessageDict], known: list[MessageDict]) -> int:
    """How many messages at the beginning are equal to the known ones.

    Each is looked at, because any may have been changed in place; that takes some 50 ns a message.
    """
    later = messages[len(known) :]
    del messages[len(known) :]  # two lists of one length are compared without a copy
    try:
        if messages == known:
            return len(known)
        pairs = enumerate(zip(messages, known, strict=False))
        return next((index for index, (one, other) in pairs if one != other), len(messages))
    finally:
        messages += later


def _copied(value: Any) -> Any:
    if isinstance(value, str):
        return value
    try:
        copied = deepcopy(value)
        return copied if copied == value else value
    except (TypeError, ValueError):  # it holds a lock, a file, an array or the like
        return value

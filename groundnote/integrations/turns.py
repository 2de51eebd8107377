"""The trimming that all frameworks share: convert messages, trim, convert back."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from rag import HistoryTrimmer

Message = TypeVar("Message")


def trimmed_turns(
    trimmer: HistoryTrimmer,
    messages: Sequence[Message],
    *,
    is_question: Callable[[Message], bool],
    plain: Callable[[Message], dict[str, Any]],
    back: Callable[[dict[str, Any]], Message],
) -> list[Message]:
    """Return the messages to send, unchanged if they fit.

    Messages after the newest question (calls of tools for it) stay unchanged.
    """
    asked = [place for place, message in enumerate(messages) if is_question(message)]
    end = asked[-1] + 1 if asked else len(messages)
    past = [plain(message) for message in messages[:end]]
    trimmed = trimmer.trim(past)
    if not trimmed.was_trimmed:
        return list(messages)
    return [*map(back, trimmed.messages), *messages[end:]]

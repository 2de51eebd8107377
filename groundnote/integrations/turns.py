"""What all frameworks share: their messages go through the trimmer and come back as theirs."""

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
    """The messages to send: as they were where they fit.

    What follows the newest question (tools that are being called for it) stays as it is.
    """
    asked = [place for place, message in enumerate(messages) if is_question(message)]
    end = asked[-1] + 1 if asked else len(messages)
    past = [plain(message) for message in messages[:end]]
    trimmed = trimmer.trim(past)
    if not trimmed.was_trimmed:
        return list(messages)
    return [*map(back, trimmed.messages), *messages[end:]]

"""A reply ends: what comes for long without a word of an answer is no answer."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rag.errors import ModelInterrupted
from rag.seams import patience

UNSEEN_SHARE = 16  # characters of thinking, blanks and arguments for each token of an answer


@dataclass(slots=True)
class BoundedReply:
    """Watches the events of one reply."""

    max_tokens: int
    deadline: patience.Deadline = field(default_factory=patience.Deadline)
    _heard: float = field(default_factory=time.monotonic)  # when the last character came
    _characters: int = 0
    _said: int = 0

    def note(self, text: str) -> None:
        """This much of it was of an answer."""
        self._said += len(text.strip())

    def checked(self, events: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        """The same events. Raises ModelInterrupted once no answer can be expected any more."""
        for event in events:
            yield event
            now, came = time.monotonic(), _characters_in(event.get("choices"))
            self._characters += came
            if came or event.get("usage") or event.get("done"):
                self._heard = now
            reason = self._reason(now)
            if reason and not event.get("done"):
                raise ModelInterrupted(reason)

    def _reason(self, now: float) -> str:
        if now - self._heard > patience.SILENT_SECONDS:
            return f"no character came for {patience.SILENT_SECONDS:g} seconds"
        if self.deadline.reason:
            return self.deadline.reason
        unseen = self._characters - self._said
        most = UNSEEN_SHARE * self.max_tokens
        if unseen > most:
            return f"{unseen:,} characters of it were no text of an answer; {most:,} are waited for"
        return ""


def _characters_in(any_: Any) -> int:
    """Characters of all texts but names and ids, in any depth that servers use."""
    if isinstance(any_, str):
        return len(any_)
    if isinstance(any_, Mapping):
        skipped = ("id", "type", "role", "object", "finish_reason", "name", "logprobs")
        return sum(_characters_in(each) for key, each in any_.items() if key not in skipped)
    return sum(map(_characters_in, any_)) if isinstance(any_, list) else 0

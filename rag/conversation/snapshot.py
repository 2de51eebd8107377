"""Recognise a transcript that is handed over again and again, message by message."""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from typing import Any

MessageDict = Mapping[str, Any]
_CONTENT = itemgetter("content")
BLOCK = 512  # messages looked at together, so that they are fetched from memory once


@dataclass(slots=True)
class Snapshot:
    """Messages as they were: later changes to the dicts do not reach it.

    It is kept in columns, because a column is compared in a few nanoseconds a message.
    """

    contents: list[Any] = field(default_factory=list)
    roles: list[Any] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    odd: dict[int, Any] = field(default_factory=dict)  # messages that hold more, by index

    def append(self, message: MessageDict) -> None:
        content, role = message.get("content"), message.get("role")
        if len(message) > 2 or not isinstance(content, str):
            self.odd[len(self.contents)] = {k: _copied(v) for k, v in message.items()}
            content = _copied(content)
        self.contents.append(content)
        self.roles.append(role)
        self.lengths.append(len(message))

    def first(self, count: int) -> "Snapshot":
        """The same of the first messages alone."""
        odd = {index: message for index, message in self.odd.items() if index < count}
        return Snapshot(self.contents[:count], self.roles[:count], self.lengths[:count], odd)

    def common(self, messages: Sequence[MessageDict], *, strict_from: int = 0) -> int:
        """How many messages at the beginning are as they were.

        Of those before `strict_from`, which are the very same dicts, only the content is compared.
        """
        changed = [i for i, before in self.odd.items() if not _is_same(messages, i, before)]
        end = min(len(self.contents), len(messages), *changed[:1])
        if strict_from > 0 and not (end == len(self.contents) and self._has_contents(messages)):
            strict_from = 0
        for start in range(strict_from, end, BLOCK):
            block = messages[start : min(start + BLOCK, end)]
            if not self._holds(block, start):
                return start + self._common(block, start)
        return end

    def _has_contents(self, messages: Sequence[MessageDict]) -> bool:
        first = islice(messages, len(self.contents))
        try:
            return list(map(_CONTENT, first)) == self.contents
        except KeyError:  # some have no content, and are looked at one by one
            return False

    def _holds(self, block: Sequence[MessageDict], start: int) -> bool:
        part = slice(start, start + len(block))
        return (
            _column(block, "content") == self.contents[part]
            and _column(block, "role") == self.roles[part]
            and list(map(len, block)) == self.lengths[part]
        )

    def _common(self, block: Sequence[MessageDict], start: int) -> int:
        for index, message in enumerate(block):
            if not self._holds([message], start + index):
                return index
        return len(block)


def _column(messages: Iterable[MessageDict], key: str) -> list[Any]:
    return [message.get(key) for message in messages]


def _is_same(messages: Sequence[MessageDict], index: int, before: MessageDict) -> bool:
    return index < len(messages) and before == messages[index]


def _copied(value: Any) -> Any:
    """A copy that later changes do not reach, of whatever can be copied and compared."""
    if isinstance(value, str):
        return value
    try:
        copied = deepcopy(value)
    except TypeError:  # it holds a lock, a file or the like
        return value
    return copied if copied == value else value

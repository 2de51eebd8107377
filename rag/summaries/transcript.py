"""What a trimmer knows of one transcript of plain message dicts, recognised by content."""

import json
import threading
from collections.abc import Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from typing import Any

from rag.citations.gate import canonical
from rag.records import Role, SummaryReport
from rag.seams import TokenCounter
from rag.summaries.compose import Composed
from rag.summaries.recall import RecallIndex
from rag.summaries.required import SUMMARY_OPENING, Reading, Required, read_message, read_summary
from rag.text.names import Lexicon

MessageDict = Mapping[str, Any]
MESSAGE_TOKENS = 4  # role and separators, as the OpenAI protocol wraps each message
IMAGE_TOKENS = 800

_NO_MESSAGE = (
    "Message {} is a {}. A message is a dict such as {{'role': 'user', 'content': '…'}}; what the "
    "openai package returns becomes one by its `model_dump(exclude_none=True)`."
)
_SYSTEM_ROLES = frozenset({"system", "developer"})
_ANSWERING = _SYSTEM_ROLES | {"assistant", "tool", "function"}  # all others begin a turn
_CONTENT = itemgetter("content")


@dataclass(slots=True)
class Transcript:
    """One conversation as far as it was seen: sizes, turns, and what is summarised of it."""

    count: TokenCounter
    lexicon: Lexicon
    recall: RecallIndex
    messages: list[MessageDict] = field(default_factory=list)  # snapshots, as they were read
    totals: list[int] = field(default_factory=lambda: [0])  # tokens up to each message
    texts: list[str] = field(default_factory=list)  # in canonical spelling
    readings: list[Reading] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)  # index of each turn's first message
    pinned: int = 0  # system messages at the beginning, never summarised
    systems: list[int] = field(default_factory=list)  # later ones, which stay as well

    covered: int = 0  # messages before this index are in the summary
    told: list[Any] = field(default_factory=list)  # their contents
    asked: int = 0  # messages from this index on were never shown to the model
    calls: int = 0
    required: Required = field(default_factory=Required)
    composed: Composed | None = None
    report: SummaryReport | None = None

    lock: threading.Lock = field(default_factory=threading.Lock)  # held by who works on it
    coming: list[MessageDict] = field(default_factory=list)  # what is worked on, while it is

    # ── Recognise ────────────────────────────────────────────────────────────────────────────

    def common(self, messages: list[MessageDict]) -> int:
        """How many messages at the beginning are those that were seen.

        Of what is summarised only the content counts; of the rest whatever a message holds. Each
        is looked at, because any may have been changed in place: some 50 ns a message.
        """
        covered = self.covered
        self.told += map(content_of, self.messages[len(self.told) : covered])
        if not begins_with(messages, self.told):
            return alike(messages, self.messages)
        return covered + alike(messages[covered:], self.messages[covered:])

    def reaches(self, common: int) -> bool:
        """Whether the part in common holds all that is summarised, so that it can be reused."""
        return common > 0 and self.covered <= common

    def forked(self, common: int) -> "Transcript":
        """The same memory of the part in common, for a transcript that goes on differently."""
        fork = copy(self)
        fork.lock = threading.Lock()
        fork.required, fork.recall = self.required.copy(), self.recall.copy(before=common)
        for name in ("messages", "texts", "readings", "told"):
            setattr(fork, name, getattr(self, name)[:common])
        fork.totals = self.totals[: common + 1]
        fork.turns = [start for start in self.turns if start < common]
        fork.systems = [index for index in self.systems if index < common]
        fork.pinned = min(self.pinned, common)
        return fork

    # ── Read ─────────────────────────────────────────────────────────────────────────────────

    def extend(self, messages: list[MessageDict]) -> None:
        """Read what is new, each message once in its life."""
        for index, message in enumerate(messages[len(self.messages) :], len(self.messages)):
            if not isinstance(message, Mapping):
                raise TypeError(_NO_MESSAGE.format(index, type(message).__name__))
            self._read(index, message)
            self.messages.append(snapshot(message))

    def _read(self, index: int, message: MessageDict) -> None:
        role, text = role_of(message), text_of(message)
        rules, summary = split_summary(role, text)
        if role in _SYSTEM_ROLES and index == self.pinned and not self.turns:
            self.pinned = index + 1
            self.covered = max(self.covered, self.pinned)
        elif role in _SYSTEM_ROLES and not summary:
            self.systems.append(index)
        elif not self.turns or role not in _ANSWERING:
            self.turns.append(index)
        self.texts.append(text if role == Role.USER else canonical(summary or text))
        reading = Reading()
        if summary:  # our own, handed back to us
            reading = read_summary(index, self.texts[index], self.lexicon, self.count)
        elif role not in _SYSTEM_ROLES:
            reading = read_message(
                index,
                role,
                self.texts[index],
                lexicon=self.lexicon,
                count=self.count,
                question=self._question(index),
            )
        self.readings.append(reading)
        if index < self.pinned:
            self.required.add(reading)
        self.recall.add(reading.lines, self._question(index))
        size = message_tokens(message, rules if summary else text, self.count)
        self.totals.append(self.totals[-1] + size)

    def cover(self, end: int) -> None:
        """Have the summary stand for the messages before `end`."""
        for index in range(self.covered, end):
            self.required.add(self.readings[index])
        self.covered = max(self.covered, end)

    def _question(self, index: int) -> str:
        """What an answer replies to."""
        before = self.messages[index - 1] if index > self.pinned else {}
        return text_of(before) if role_of(before) == Role.USER else ""

    # ── Measure ──────────────────────────────────────────────────────────────────────────────

    def tokens(self, start: int, end: int | None = None) -> int:
        """Tokens of a run of messages."""
        return self.totals[len(self.readings) if end is None else end] - self.totals[start]

    @property
    def open_start(self) -> int:
        """Where the part begins that can never be summarised: a question without its answer."""
        if not self.turns:
            return len(self.messages)
        last = self.messages[-1]
        answered = role_of(last) == Role.ASSISTANT and not last.get("tool_calls")
        return len(self.messages) if answered else self.turns[-1]


# ── One message ──────────────────────────────────────────────────────────────────────────────


def role_of(message: MessageDict) -> str:
    """Who says a message; "" where it does not tell."""
    return str(message.get("role", ""))


def content_of(message: Any) -> Any:
    """What a message says; None for one without content, and for what is no message."""
    return message.get("content") if isinstance(message, Mapping) else None


def text_of(message: MessageDict) -> str:
    """The text of a message; parts that are no text are left out."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return ""
    texts = (part if isinstance(part, str) else _part_text(part) for part in content)
    return "\n".join(text for text in texts if text)


def _part_text(part: Any) -> str:
    text = part.get("text") if isinstance(part, Mapping) else None
    return text if isinstance(text, str) else ""


def split_summary(role: str, text: str) -> tuple[str, str]:
    """The rules of a system message, and the summary behind them if it is one of ours."""
    if role not in _SYSTEM_ROLES or SUMMARY_OPENING not in text:
        return text, ""
    rules, _, summary = text.partition(SUMMARY_OPENING)
    return rules.rstrip(), summary.strip()


def message_tokens(message: MessageDict, text: str, count: TokenCounter) -> int:
    """Tokens of a whole message: text, pictures, tool calls, name and what wraps it."""
    extra = [value for key, value in message.items() if key not in {"role", "content"} and value]
    tokens = MESSAGE_TOKENS + count(text)
    tokens += sum(count(json.dumps(value, default=str)) for value in extra)
    content = message.get("content")
    if isinstance(content, list | tuple):
        tokens += sum(map(_part_tokens, content))
    return tokens


def _part_tokens(part: Any) -> int:
    if isinstance(part, str) or _part_text(part):
        return 1
    kind = str(part.get("type", "")) if isinstance(part, Mapping) else ""
    return IMAGE_TOKENS if "image" in kind else len(json.dumps(part, default=str)) // 4


# ── Many messages ────────────────────────────────────────────────────────────────────────────


def alike(messages: Sequence[MessageDict], known: Sequence[MessageDict]) -> int:
    """How many messages at the beginning are equal to the known ones."""
    pairs = enumerate(zip(messages, known, strict=False))
    end = min(len(messages), len(known))
    return next((index for index, (one, other) in pairs if one != other), end)


def begins_with(messages: Sequence[MessageDict], contents: list[Any]) -> bool:
    """Whether the first messages have these contents."""
    first = islice(messages, len(contents))
    try:
        return list(map(_CONTENT, first)) == contents
    except (KeyError, TypeError):  # some have no content, as where a model calls a tool
        return [content_of(message) for message in messages[: len(contents)]] == contents


def snapshot(message: MessageDict) -> dict[str, Any]:
    """A copy that later changes do not reach, of whatever can be copied and compared."""
    return {key: _copied(value) for key, value in message.items()}


def _copied(value: Any) -> Any:
    if isinstance(value, str):
        return value
    try:
        copied = deepcopy(value)
        return copied if copied == value else value
    except (TypeError, ValueError):  # it holds a lock, a file, an array or the like
        return value

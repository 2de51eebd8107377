"""What a trimmer remembers of one transcript of plain message dicts, by content."""

import json
import threading
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from rag.citations.binding import read_ahead
from rag.records import Role, SummaryReport
from rag.seams import TokenCounter
from rag.summaries.facts import Facts, Said, message_facts
from rag.summaries.lines import Composed, Line, measured
from rag.summaries.pool import Pool
from rag.summaries.snapshot import MessageDict, begins_with, common, content_of, snapshot
from rag.text.names import Lexicon

MESSAGE_TOKENS = 4  # role and separators, as the OpenAI protocol wraps each message
REPLY_TOKENS = 3  # every context ends with the beginning of the reply
IMAGE_TOKENS = 800
SUMMARY_OPENING = "Previous conversation summary:"

_NO_MESSAGE = (
    "Message {} is a {}. A message is a dict such as {{'role': 'user', 'content': '…'}}; what the "
    "openai package returns becomes one by its `model_dump(exclude_none=True)`."
)
_RELEASED = Facts()
_SYSTEM_ROLES = frozenset({"system", "developer"})
_ANSWERING = _SYSTEM_ROLES | {"assistant", "tool", "function"}  # all others begin a turn


@dataclass(slots=True)
class Remembered:
    """One transcript as far as it was seen: sizes, turns, facts, and what is summarised."""

    count: TokenCounter
    lexicon: Lexicon
    reads_ahead: bool = False  # for a model, whose summaries have to be checked
    messages: list[MessageDict] = field(default_factory=list)  # snapshots, as they were read
    totals: list[int] = field(default_factory=lambda: [0])  # tokens up to each message
    facts: list[Facts] = field(default_factory=list)
    lines: list[list[Line]] = field(default_factory=list)  # the facts, measured
    turns: list[int] = field(default_factory=list)  # index of each turn's first message
    pinned: int = 0  # system messages at the beginning, never summarised
    systems: list[int] = field(default_factory=list)  # later ones, which stay as well
    question: str = ""

    covered: int = 0  # messages before this index are in the summary
    told: list[Any] = field(default_factory=list)  # their contents, as far as they were needed
    unread: int = 0  # messages from this index on were never shown to the model
    pool: Pool = field(default_factory=Pool)
    composed: Composed | None = None
    report: SummaryReport | None = None
    released: int = 0  # messages before this index are only counted
    calls: int = 0
    prompt_tokens: int = 0
    kept_systems: list[int] = field(default_factory=list)  # of `systems`, those now in the context
    failed: bool = False  # the model, the last time
    removed: int = 0  # markers of the model's that were taken out

    lock: threading.Lock = field(default_factory=threading.Lock)  # held by who works on it
    coming: list[MessageDict] = field(default_factory=list)  # what is worked on, while it is

    def common(self, messages: list[MessageDict]) -> int:
        """How many messages at the beginning are those that were seen.

        Of what is summarised only the content counts; of the rest whatever a message holds.
        """
        covered = self.covered
        self.told += map(content_of, self.messages[len(self.told) : covered])
        if not begins_with(messages, self.told):
            return common(messages, self.messages)
        return covered + common(messages[covered:], self.messages[covered:])

    def reaches(self, common: int) -> bool:
        """Whether the part in common holds all that is summarised, so that it can be reused."""
        return common > 0 and self.covered <= common

    def forked(self, common: int) -> "Remembered":
        """The same memory of the part in common, for a transcript that goes on differently."""
        fork = copy(self)
        fork.lock = threading.Lock()
        fork.pool = self.pool.copy()
        for name in ("messages", "facts", "lines", "told"):
            setattr(fork, name, getattr(self, name)[:common])
        fork.totals = self.totals[: common + 1]
        fork.turns = [start for start in self.turns if start < common]
        fork.systems = [index for index in self.systems if index < common]
        fork.pinned = min(self.pinned, common)
        asked = [said.text for said in fork.said(0, common) if said.role == Role.USER]
        fork.question = asked[-1] if asked else ""
        return fork

    def extend(self, messages: list[MessageDict]) -> None:
        """Read what is new, each message once in its life."""
        for index, message in enumerate(messages[len(self.messages) :], len(self.messages)):
            if not isinstance(message, Mapping):
                raise TypeError(_NO_MESSAGE.format(index, type(message).__name__))
            self._read(message)
            self.messages.append(snapshot(message))

    def _read(self, message: MessageDict) -> None:
        index = len(self.facts)
        said = said_in(message)
        if index == self.pinned and not self.turns and is_pinned(said):
            self.pinned = self.covered = self.unread = index + 1
            self.facts.append(Facts())
        else:
            if is_pinned(said):
                self.systems.append(index)
            if not self.turns or said.role not in _ANSWERING:
                self.turns.append(index)
            self.facts.append(self._facts(said))
        if self.reads_ahead:
            read_ahead(self.facts[-1].claims)
            assert self.facts[-1].seen, "looked up to be known"
        self.lines.append([measured(fact, self.count) for fact in self.facts[-1].facts])
        self.totals.append(self.totals[-1] + message_tokens(message, said.text, self.count))

    def _facts(self, said: Said) -> Facts:
        if said.text.startswith(SUMMARY_OPENING):
            # Our own summary, handed back to us: its statements are as good as an answer's.
            said = Said(Role.ASSISTANT, said.text.removeprefix(SUMMARY_OPENING))
        facts = message_facts(said, self.lexicon, question=self.question)
        if said.role == Role.USER:
            self.question = said.text
        return facts

    def release(self, end: int) -> None:
        """Forget what messages before `end` required: it is in the pool now."""
        for index in range(self.released, end):
            self.facts[index] = _RELEASED
            self.lines[index] = []
        self.released = max(self.released, end)

    def tokens(self, start: int, end: int | None = None) -> int:
        """Tokens of a run of messages."""
        return self.totals[len(self.facts) if end is None else end] - self.totals[start]

    def said(self, start: int, end: int) -> list[Said]:
        return [said_in(message) for message in self.messages[start:end]]

    @property
    def open_start(self) -> int:
        """Where the part begins that can never be summarised: a question without its answer."""
        if not self.turns:
            return len(self.messages)
        last = self.messages[-1]
        answered = last.get("role") == Role.ASSISTANT and not last.get("tool_calls")
        return len(self.messages) if answered else self.turns[-1]


def said_in(message: MessageDict) -> Said:
    """Role and text of a message; parts that are no text are left out."""
    content = message.get("content")
    if isinstance(content, str):
        return Said(str(message.get("role", "")), content)
    if not isinstance(content, list | tuple):
        return Said(str(message.get("role", "")), "")
    texts = (part if isinstance(part, str) else _part_text(part) for part in content)
    return Said(str(message.get("role", "")), "\n".join(text for text in texts if text))


def _part_text(part: Any) -> str:
    text = part.get("text") if isinstance(part, Mapping) else None
    return text if isinstance(text, str) else ""


def is_pinned(said: Said) -> bool:
    """Whether a message at the beginning is the application's own instructions."""
    return said.role in _SYSTEM_ROLES and not said.text.startswith(SUMMARY_OPENING)


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

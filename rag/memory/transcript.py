"""What a trimmer knows of one transcript of plain message dicts, recognised by content."""

import json
import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from rag.language.names import Lexicon
from rag.memory.context import MESSAGE_TOKENS, SUMMARY_TITLE
from rag.memory.past import Past
from rag.memory.recall import Embed
from rag.records import Role, Summary
from rag.seams import TokenCounter

MessageDict = Mapping[str, Any]
IMAGE_TOKENS = 800

_NO_MESSAGE = (
    "Message {} is a {}. A message is a dict such as {{'role': 'user', 'content': '…'}}; what the "
    "openai package returns becomes one by its `model_dump(exclude_none=True)`."
)
_SYSTEM_ROLES = frozenset({"system", "developer"})
_SILENT = _SYSTEM_ROLES | {"tool", "function"}
_ANSWERING = _SILENT | {"assistant"}  # all others begin a turn


@dataclass(slots=True)
class Transcript(Past):
    """One conversation as far as it was seen, and the summary that is sent of it."""

    lexicon: Lexicon = field(kw_only=True)
    embed: Embed | None = None
    messages: list[dict[str, Any]] = field(default_factory=list)  # snapshots, as they were read
    leading: int = 0  # system messages at the beginning, which are never summarised
    systems: list[int] = field(default_factory=list)  # system messages that come later
    summary: Summary | None = None

    # ── Recognise ────────────────────────────────────────────────────────────────────────────

    def common(self, messages: list[MessageDict]) -> int:
        """How many messages at the beginning are those that were seen, nothing changed in them."""
        end = min(len(messages), len(self.messages))
        if messages[:end] == self.messages[:end]:
            return end
        pairs = enumerate(zip(messages, self.messages, strict=False))
        return next((index for index, (one, other) in pairs if one != other), end)

    def go_back(self, common: int) -> None:
        """Forget what comes behind the part in common: the transcript goes on differently."""
        self.cut(common)
        self.messages = self.messages[:common]
        self.systems = [index for index in self.systems if index < common]
        self.leading = min(self.leading, common)

    # ── Read ─────────────────────────────────────────────────────────────────────────────────

    def extend(self, messages: list[MessageDict]) -> None:
        """Read what is new, each message once."""
        for index, message in enumerate(messages[len(self.messages) :], len(self.messages)):
            if not isinstance(message, Mapping):
                raise TypeError(_NO_MESSAGE.format(index, type(message).__name__))
            self._take(index, message)
            self.messages.append(snapshot(message))

    def _take(self, index: int, message: MessageDict) -> None:
        role, text = role_of(message), text_of(message)
        rules, summary = split_summary(role, text)
        if role in _SYSTEM_ROLES and index == self.leading and not self.turns:
            self.leading = self.covered = index + 1
        elif role in _SYSTEM_ROLES and not summary:
            self.systems.append(index)
        elif not self.turns or role not in _ANSWERING:
            self.turns.append(index)
        tokens = message_tokens(message, rules if summary else text, self.count)
        if summary:  # our own, handed back to us: its numbers were given, what it quotes was said
            self.read(Role.ASSISTANT, spelled_out(summary), tokens, self.lexicon)
        else:  # a number that a tool gives counts where an answer cites it
            self.read(role, "" if role in _SILENT else text, tokens, self.lexicon)

    def meanings(self, question: str) -> dict[int, float]:
        """How near paragraphs are to a question; nothing without an embedding model."""
        if self.embed is None:
            return {}
        from rag.memory.meaning import embedded, near, texts_of

        new = [at for at in self.index.of_message if at not in self.vectors]
        self.vectors |= embedded(texts_of(self, new), self.embed)
        return near(self, question, self.embed)

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
    if role not in _SYSTEM_ROLES or SUMMARY_TITLE not in text:
        return text, ""
    rules, _, summary = text.partition(SUMMARY_TITLE)
    return rules.rstrip(), summary.strip()


_RANGE = re.compile(r"\[(\d{1,6})\]–\[(\d{1,6})\]")
MOST_RANGE = 100_000  # numbers


def spelled_out(summary: str) -> str:
    """One of our own summaries with its ranges as single numbers."""

    def every(found: "re.Match[str]") -> str:
        first, last = int(found[1]), int(found[2])
        if not first < last < first + MOST_RANGE:
            return found[0]
        return "".join(f"[{number}]" for number in range(first, last + 1))

    return _RANGE.sub(every, summary)


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


def snapshot(message: MessageDict) -> dict[str, Any]:
    """A copy that later changes do not reach, if it can be copied and compared."""
    try:
        copied = deepcopy(dict(message))
        return copied if copied == message else dict(message)
    except (TypeError, ValueError):  # it holds a lock, a file, an array or the like
        return dict(message)

"""The state that a trimmer keeps of one transcript of message dicts, recognised by content."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from rag.citations.markers import cited_numbers
from rag.language.names import Lexicon
from rag.memory.context import MESSAGE_TOKENS, SUMMARY_TITLE
from rag.memory.history import CLOSES, OPENS, History, all_phrases
from rag.memory.recall import Embed, Meanings
from rag.memory.summary import NO_SUMMARY_DRAFT, Room, SummaryDraft, spelled_out
from rag.records import Role, Summary, SummarySection
from rag.seams import TokenCounter

if TYPE_CHECKING:
    from rag.memory.embedding import SupportedLanguages
    from rag.memory.trimmer import SummaryWriting

MessageDict = Mapping[str, Any]
IMAGE_TOKENS = 800
OUTPUTS = 8  # that are known again
OPENING = 4  # messages among which our summary stands

_NO_MESSAGE = (
    "Message {} is a {}. A message is a dict such as {{'role': 'user', 'content': '…'}}; what the "
    "openai package returns becomes one by its `model_dump(exclude_none=True)`."
)
_SYSTEM_ROLES = frozenset({"system", "developer"})
_SILENT = _SYSTEM_ROLES | {"tool", "function"}
_ANSWERING = _SILENT | {"assistant"}  # all others begin a turn


@dataclass(slots=True)
class Transcript(History):
    """One conversation as far as it was read, and the summary that is sent for it."""

    lexicon: Lexicon = field(kw_only=True)
    embed: Embed | None = None
    languages: "SupportedLanguages | None" = None  # that its model knows
    messages: list[dict[str, Any]] = field(default_factory=list)  # snapshots, as they were read
    leading: int = 0  # system messages at the beginning, which are never summarised
    systems: list[int] = field(default_factory=list)  # system messages that come later
    summary: Summary | None = None
    draft: SummaryDraft = NO_SUMMARY_DRAFT  # what a model wrote of it so far
    writing: "SummaryWriting | None" = None  # what one writes now
    room: Room = field(default_factory=lambda: Room(0, 0))  # of the summary
    outputs: dict[str, int] = field(default_factory=dict)  # system messages sent, and their end
    is_unfolded: bool = False  # it begins with what another trimmer left of it

    # ── Recognise ────────────────────────────────────────────────────────────────────────────

    def common(self, messages: list[MessageDict]) -> int:
        """Return how many messages at the beginning are the same as those read before."""
        end = min(len(messages), len(self.messages))
        if messages[:end] == self.messages[:end]:
            return end
        pairs = enumerate(zip(messages, self.messages, strict=False))
        return next((index for index, (one, other) in pairs if one != other), end)

    def go_back(self, common: int) -> None:
        """Forget the messages from `common` on: the transcript continues differently."""
        self.keep(0, common)
        lines = (
            line for line in self.draft.lines if all(message < common for message in line.messages)
        )
        written_to = min(self.draft.written_to, common)
        self.draft = replace(self.draft, lines=tuple(lines), written_to=written_to)
        self.writing = None
        self.outputs = {text: end for text, end in self.outputs.items() if end <= common}
        self.messages = self.messages[:common]
        self.systems = [index for index in self.systems if index < common]
        self.leading = min(self.leading, common)

    def sent(self, system: str) -> None:
        """Remember a system message that is sent, so that it is recognised later."""
        self.outputs.pop(system, None)
        self.outputs[system] = self.covered
        for oldest in list(self.outputs)[:-OUTPUTS]:
            del self.outputs[oldest]

    def recognise_output(self, messages: Sequence[MessageDict]) -> list[MessageDict] | None:
        """Return the whole transcript if the messages begin with earlier output, else None."""
        first = messages[0] if messages and isinstance(messages[0], Mapping) else {}
        end = self.outputs.get(text_of(first)) if role_of(first) == "system" else None
        if end is None:
            return None
        return [*self.messages[:end], *map(_as_asked, messages[1:])]

    # ── Read ─────────────────────────────────────────────────────────────────────────────────

    def extend(self, messages: list[MessageDict]) -> None:
        """Read the new messages, each once. Raises TypeError if a message is no dict."""
        for index, message in enumerate(messages[len(self.messages) :], len(self.messages)):
            if not isinstance(message, Mapping):
                raise TypeError(_NO_MESSAGE.format(index, type(message).__name__))
            role, text = role_of(message), text_of(message)
            if role in _SYSTEM_ROLES and index == self.leading and not self.turns:
                self.leading = self.covered = index + 1
            elif role in _SYSTEM_ROLES:
                self.systems.append(index)
            elif not self.turns or role not in _ANSWERING:
                self.turns.append(index)
            tokens = message_tokens(message, text, self.count)
            # A number that a tool gives counts where an answer cites it.
            self.read(role, "" if role in _SILENT else text, tokens, self.lexicon)
            self.messages.append(snapshot(message))

    def meanings(self, question: str) -> Meanings | None:
        """Return the similarities of paragraphs to a question; None if words alone decide."""
        if self.embed is None or (self.languages and self.phrases not in self.languages):
            return None  # words do better alone
        from rag.memory.embedding import embed_paragraphs, near, texts_of

        new = [position for position in self.index.sizes if position not in self.vectors]
        self.vectors |= embed_paragraphs(texts_of(self, new), self.embed)
        meanings = near(self.vectors, question, self.embed)
        return lambda older: meanings

    @property
    def open_start(self) -> int:
        """The start of the part that can never be summarised: a question without its answer."""
        if not self.turns:
            return len(self.messages)
        last = self.messages[-1]
        answered = role_of(last) == Role.ASSISTANT and not last.get("tool_calls")
        return len(self.messages) if answered else self.turns[-1]


# ── One message ──────────────────────────────────────────────────────────────────────────────


def role_of(message: MessageDict) -> str:
    """Return the role of a message; "" if it has none."""
    return str(message.get("role", ""))


def text_of(message: MessageDict) -> str:
    """Return the text of a message, without parts that are no text."""
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
    """Return the rules of a system message, and our summary behind them or ""."""
    if role not in _SYSTEM_ROLES or SUMMARY_TITLE not in text:
        return text, ""
    rules, _, summary = text.partition(SUMMARY_TITLE)
    return rules.rstrip(), summary.strip()


# ── Our own output, given back ───────────────────────────────────────────────────────────────

_BACK = re.compile(rf"\A{OPENS}\n(.*?)\n{CLOSES}\n", re.DOTALL)
_SUMMARY = re.compile(rf"{OPENS}\n(.*?)\n?{CLOSES}", re.DOTALL)
_LABELS = {
    label: role.value
    for phrases in all_phrases().values()
    for role, label in ((Role.USER, phrases.user), (Role.ASSISTANT, phrases.assistant))
}
_LABEL = re.compile(rf"^({'|'.join(map(re.escape, _LABELS))}):[ \n]", re.MULTILINE)
_TITLES = {
    f"{getattr(phrases, section.value)}:": section
    for phrases in all_phrases().values()
    for section in SummarySection
}


def unfold(messages: Sequence[MessageDict]) -> tuple[list[MessageDict], bool]:
    """Return a history with our own output turned back into turns, and whether there was any.

    The lines of a summary become turns again, each word for word, and so do the paragraphs that
    were put before a question; the question becomes what it was.
    """
    opening = (message for message in messages[:OPENING] if isinstance(message, Mapping))
    if not any(split_summary(role_of(first), text_of(first))[1] for first in opening):
        return list(messages), False
    before: list[MessageDict] = []
    rest: list[MessageDict] = []
    for message in messages:
        is_message = isinstance(message, Mapping)
        role, text = (role_of(message), text_of(message)) if is_message else ("", "")
        rules, summary = split_summary(role, text)
        match = _BACK.match(text) if role == Role.USER else None
        if summary:
            rest += [{**message, "content": rules}] if rules else []
            before += _turns_of(summary)
        elif match:
            before += _quoted_turns(match[1])
            rest.append(_as_asked(message))
        else:
            rest.append(message)
    leading = sum(1 for _ in takewhile(lambda m: role_of(m) in _SYSTEM_ROLES, rest))
    return [*rest[:leading], *before, *rest[leading:]], True


def _as_asked(message: MessageDict) -> MessageDict:
    """Return a question without the recalled text before it; any other message unchanged."""
    if role_of(message) != Role.USER or not _BACK.match(text_of(message)):
        return message
    content = message.get("content")
    bare = _BACK.sub("", content) if isinstance(content, str) else list(content or ())[1:]
    return {**message, "content": bare}


def _turns_of(summary: str) -> Iterator[MessageDict]:
    """Yield the lines of a summary as messages; its list of numbers becomes an answer."""
    fenced = _SUMMARY.search(summary)
    section: SummarySection | None = None
    for line in (fenced[1] if fenced else summary).splitlines():
        if line in _TITLES:
            section = _TITLES[line]
        elif line.startswith("- ") and section is not None:
            yield from _turns_of_line(section, line.removeprefix("- "))
        elif numbers := cited_numbers(spelled_out(line)):
            listed = "".join(f"[{number}]" for number in numbers)
            yield {"role": Role.ASSISTANT.value, "content": f"{line.partition(':')[0]}: {listed}"}
        elif not fenced and line.strip():  # one of an earlier version
            yield {"role": Role.ASSISTANT.value, "content": line}


def _turns_of_line(section: SummarySection, line: str) -> Iterator[MessageDict]:
    if section is not SummarySection.ANSWERED:
        yield {"role": Role.USER.value, "content": line}
        return
    question, arrow, answer = line.partition(" → ")
    if arrow:
        yield {"role": Role.USER.value, "content": question}
    yield {"role": Role.ASSISTANT.value, "content": answer or line}


def _quoted_turns(block: str) -> list[MessageDict]:
    places = [(match.start(), match.end(), match[1]) for match in _LABEL.finditer(block)]
    ends = [start for start, _, _ in places[1:]] + [len(block)]
    messages = [
        {"role": _LABELS[label], "content": block[end:stop].strip("\n")}
        for (_, end, label), stop in zip(places, ends, strict=True)
    ]
    turns: list[list[MessageDict]] = []
    for message in messages:
        if message["role"] == Role.USER or not turns:
            turns.append([])
        turns[-1].append(message)
    return [message for turn in reversed(turns) for message in turn]


def message_tokens(message: MessageDict, text: str, count: TokenCounter) -> int:
    """Return the tokens of a whole message: text, pictures, tool calls, name and frame."""
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
    """Copy a message so that later changes do not reach the copy, if it can be copied."""
    try:
        copied = deepcopy(dict(message))
        return copied if copied == message else dict(message)
    except (TypeError, ValueError):  # it holds a lock, a file, an array or the like
        return dict(message)

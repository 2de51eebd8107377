"""Choose what the model sees of a conversation, within a token budget."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from rag.errors import TooLarge
from rag.records import ChatMessage, Message, MessageStatus, Role, Summary
from rag.seams import TokenCounter

MESSAGE_TOKENS = 4  # what the chat format adds to each message, and once to the whole
SUMMARY_TITLE = "Previous conversation summary:"
RECALL_TITLE = "Earlier messages of this conversation that bear on the question:"
REQUEST_TITLE = "Earlier messages of this conversation that you asked for:"


@dataclass(frozen=True, slots=True)
class Pair:
    """A question with its answer; the context holds both or none."""

    question: Message
    answer: Message

    @property
    def messages(self) -> tuple[ChatMessage, ChatMessage]:
        return (
            ChatMessage(Role.USER, self.question.content),
            ChatMessage(Role.ASSISTANT, self.answer.content),
        )


@dataclass(frozen=True, slots=True)
class ContextPreferences:
    """What a model asked to see again: messages `[start, end)`, in the next context only."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Parts:
    """What a context can be made of; only `system` and `question` must be in it."""

    system: str
    question: str  # with its sources
    summaries: Sequence[Summary] = ()
    recent: Sequence[Pair] = ()  # oldest first, all that is not summarised
    recalled: Sequence[Pair] = ()  # evicted, best first
    requested: Sequence[Message] = ()  # a slice that the model asked for
    message_count: int = 0  # of the whole transcript before this question


@dataclass(frozen=True, slots=True)
class Selection:
    """How many pairs are kept word for word."""

    at_least: int = 5  # as long as the budget allows
    at_most: int | None = None  # None: as many as the budget allows
    fewer: int = 0  # the server found the last context too long


@dataclass(frozen=True, slots=True)
class Context:
    """The messages that are sent, and what they were made of."""

    messages: tuple[ChatMessage, ...]
    tokens: int
    budget_tokens: int
    pairs: int  # kept word for word
    original_messages: int
    summarized_messages: int = 0
    recalled: tuple[int, ...] = field(default=())  # indices of recalled questions

    @property
    def is_compressed(self) -> bool:
        """Whether something of the transcript is not in it word for word."""
        return 2 * self.pairs < self.original_messages


def pairs_of(messages: Sequence[Message]) -> list[Pair]:
    """Whole pairs whose answer says something; an interrupted answer counts, a failed one not."""
    said = (MessageStatus.COMPLETE, MessageStatus.INTERRUPTED)
    return [
        Pair(first, second)
        for first, second in pairwise(messages)
        if first.role == Role.USER
        and second.role == Role.ASSISTANT
        and second.status in said
        and second.content.strip()
    ]


def message_tokens(message: ChatMessage, count: TokenCounter) -> int:
    """What one message costs, its frame included."""
    return count(message.content) + MESSAGE_TOKENS


def assemble(
    parts: Parts, selection: Selection, *, budget_tokens: int, count: TokenCounter
) -> Context:
    """The context for one question: rules, summaries, what was recalled, newest pairs, question.

    Whole pairs are chosen from the newest back. The first `at_least` come before what was
    recalled, older ones after it.

    Raises:
        TooLarge: the question does not fit even alone; says both numbers.
    """
    fixed = [ChatMessage(Role.SYSTEM, parts.system), ChatMessage(Role.USER, parts.question)]
    purse = _Purse(budget_tokens - MESSAGE_TOKENS, count)
    if not purse.take(fixed):
        needed = sum(message_tokens(message, count) for message in fixed) + MESSAGE_TOKENS
        raise TooLarge(
            f"The question needs {needed:,} tokens, the model can be sent {budget_tokens:,}. "
            "Shorten the question, or use a model with a larger window."
        )
    summaries = _summaries(parts.summaries, purse)
    requested = _requested(parts.requested, purse)
    most = len(parts.recent) if selection.at_most is None else selection.at_most
    most = max(0, min(most, len(parts.recent)) - selection.fewer)
    newest = _newest(parts.recent, min(most, selection.at_least), purse)
    recalled = _recalled(parts.recalled, purse) if not selection.fewer else []
    older = parts.recent[: len(parts.recent) - len(newest)]
    if len(newest) == min(most, selection.at_least):
        newest = _newest(older, most - len(newest), purse) + newest
    messages = [fixed[0], *summaries, *requested, *_as_message(recalled)]
    messages += [message for pair in newest for message in pair.messages]
    return Context(
        messages=(*messages, fixed[1]),
        tokens=budget_tokens - purse.left,
        budget_tokens=budget_tokens,
        pairs=len(newest),
        original_messages=parts.message_count,
        summarized_messages=sum(summary.end - summary.start for summary in parts.summaries),
        recalled=tuple(pair.question.index for pair in recalled),
    )


class _Purse:
    """Tokens that are left to spend."""

    def __init__(self, tokens: int, count: TokenCounter) -> None:
        self.left = tokens
        self._count = count

    def take(self, messages: Sequence[ChatMessage]) -> bool:
        """Pay for all of them, or for none."""
        return self.swap((), messages)

    def swap(self, old: Sequence[ChatMessage], new: Sequence[ChatMessage]) -> bool:
        """Give messages back and pay for others, or do neither."""
        cost = self._cost(new) - self._cost(old)
        if cost > self.left:
            return False
        self.left -= cost
        return True

    def _cost(self, messages: Sequence[ChatMessage]) -> int:
        return sum(message_tokens(message, self._count) for message in messages)


def _summaries(summaries: Sequence[Summary], purse: _Purse) -> list[ChatMessage]:
    """All summaries in one message; if the window was made smaller since, the newest that fit."""
    for first in range(len(summaries)):
        text = "\n\n".join(summary.text for summary in summaries[first:])
        left_out = ""
        if first:
            left_out = (
                f"\n(Messages before {summaries[first].start} are left out; search for them.)"
            )
        message = ChatMessage(Role.SYSTEM, f"{SUMMARY_TITLE}{left_out}\n{text}")
        if purse.take([message]):
            return [message]
    return []


def _requested(messages: Sequence[Message], purse: _Purse) -> list[ChatMessage]:
    """The newest of the requested messages that fit."""
    for first in range(len(messages)):
        message = ChatMessage(Role.SYSTEM, _quoted(REQUEST_TITLE, messages[first:]))
        if purse.take([message]):
            return [message]
    return []


def _newest(pairs: Sequence[Pair], most: int, purse: _Purse) -> list[Pair]:
    """Walk back from the newest and stop at the first that does not fit: no holes."""
    kept: list[Pair] = []
    for pair in reversed(pairs[len(pairs) - most :] if most else []):
        if not purse.take(pair.messages):
            break
        kept.insert(0, pair)
    return kept


def _recalled(pairs: Sequence[Pair], purse: _Purse) -> list[Pair]:
    """All of them if they fit together; else one after the other, as many as do."""
    together = _in_order(pairs)
    if purse.take(_as_message(together)):
        return together
    kept: list[Pair] = []
    for pair in pairs:
        more = _in_order([*kept, pair])
        if purse.swap(_as_message(kept), _as_message(more)):
            kept = more
    return kept


def _in_order(pairs: Sequence[Pair]) -> list[Pair]:
    return sorted(pairs, key=lambda pair: pair.question.index)


def _as_message(pairs: Sequence[Pair]) -> list[ChatMessage]:
    if not pairs:
        return []
    messages = [message for pair in pairs for message in (pair.question, pair.answer)]
    return [ChatMessage(Role.SYSTEM, _quoted(RECALL_TITLE, messages))]


def _quoted(title: str, messages: Sequence[Message]) -> str:
    lines = [f"Message {message.index} ({message.role}): {message.content}" for message in messages]
    return "\n".join([title, *lines])

"""Choose what the model sees of a conversation, within a token budget."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate, pairwise, takewhile

from rag.errors import TooLarge
from rag.records import (
    NO_PREFERENCES,
    ChatMessage,
    ContextPreferences,
    ImportedMessage,
    Message,
    MessageStatus,
    Role,
    Session,
    Summary,
)
from rag.seams import SessionTranscript, TokenCounter

MESSAGE_TOKENS = 4  # what the chat format adds to each message, and once to the whole
SUMMARY_TITLE = "Previous conversation summary:"
RECALL_SHARE = 0.25  # of what is left that stays free for recall, if any turns are left out
UNSAID = "…"
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
class ContextParts:
    """What a context can be made of; only `system` and `question` must be in it."""

    system: str
    question: str  # with its sources
    summaries: Sequence[Summary] = ()
    recent: Sequence[Pair] = ()  # oldest first, all that is not summarised
    requested: Sequence[Message] = ()  # a slice that the model asked for
    message_count: int = 0  # of the whole transcript before this question


@dataclass(frozen=True, slots=True)
class HistoryRoom:
    """How much history fits in a context, in tokens, and how many turns are kept."""

    budget: int
    keep_turns: int  # never summarised as long as they fit


@dataclass(frozen=True, slots=True)
class Context:
    """The messages that are sent, and what they were made of."""

    messages: tuple[ChatMessage, ...]
    tokens: int
    budget_tokens: int
    pairs: int  # kept word for word
    original_messages: int
    summarized_messages: int = 0
    recalled: tuple[int, ...] = ()  # questions of turns that are put back

    @property
    def is_compressed(self) -> bool:
        """Whether the context lacks some of the transcript's messages word for word."""
        return 2 * self.pairs < self.original_messages


def as_messages(past: Sequence[ImportedMessage]) -> list[Message]:
    """Return a client's messages as turns; an answer without a question follows an `UNSAID` one."""
    parts: list[tuple[str, str]] = []
    for message in past:
        if message.role == Role.ASSISTANT and (not parts or parts[-1][0] == Role.ASSISTANT):
            parts.append((Role.USER, UNSAID))
        if message.role in (Role.USER, Role.ASSISTANT):
            parts.append((message.role, message.content))
    turns = accumulate(role == Role.USER for role, _ in parts)
    complete, now = MessageStatus.COMPLETE, datetime.now(UTC)
    return [
        Message(index, turn, role, content, complete, now)
        for index, (turn, (role, content)) in enumerate(zip(turns, parts, strict=True))
    ]


def pairs_of(messages: Sequence[Message]) -> list[Pair]:
    """Return the pairs whose answer has text; interrupted answers count, failed ones do not."""
    answered = (MessageStatus.COMPLETE, MessageStatus.INTERRUPTED)
    return [
        Pair(first, second)
        for first, second in pairwise(messages)
        if first.role == Role.USER
        and second.role == Role.ASSISTANT
        and second.status in answered
        and second.content.strip()
    ]


def message_tokens(message: ChatMessage, count: TokenCounter) -> int:
    """Return the tokens of one message, with those that the chat format adds."""
    return count(message.content) + MESSAGE_TOKENS


def assemble(
    parts: ContextParts, most_pairs: int | None, *, budget_tokens: int, count: TokenCounter
) -> Context:
    """Assemble the context for one question: one system message, then user and assistant in turn.

    The system message holds the rules and the summaries, so that the beginning stays the same from
    turn to turn; what belongs to this question only stands in the last message. Whole pairs are
    chosen from the newest back, at most so many.

    Raises:
        TooLarge: the question does not fit even alone; says both numbers.
    """
    fixed = [ChatMessage(Role.SYSTEM, parts.system), ChatMessage(Role.USER, parts.question)]
    purse = _TokenAllowance(budget_tokens - MESSAGE_TOKENS, count)
    if not purse.swap((), fixed):
        needed = sum(message_tokens(message, count) for message in fixed) + MESSAGE_TOKENS
        raise TooLarge(
            f"The question needs {needed:,} tokens, the model can be sent {budget_tokens:,}. "
            "Shorten the question, or use a model with a larger window."
        )
    system, question = fixed
    if parts.summaries:
        system = _with_summaries(system, parts.summaries, purse)
    if parts.requested:
        question = _with_requested(question, parts.requested, purse)
    most = len(parts.recent) if most_pairs is None else min(most_pairs, len(parts.recent))
    newest = _recent(parts, most, purse)
    messages = [message for pair in newest for message in pair.messages]
    return Context(
        messages=(system, *messages, question),
        tokens=budget_tokens - purse.left,
        budget_tokens=budget_tokens,
        pairs=len(newest),
        original_messages=parts.message_count,
        summarized_messages=sum(summary.end - summary.start for summary in parts.summaries),
    )


def put_back(context: Context, text: str, turns: tuple[int, ...], count: TokenCounter) -> Context:
    """Return the context with recalled text before its question, or unchanged if too long."""
    *others, last = context.messages
    longer = replace(last, content=f"{text}\n{last.content}")
    tokens = context.tokens + count(longer.content) - count(last.content)
    if not text or tokens > context.budget_tokens:  # texts count for more than they did
        return context
    return replace(context, messages=(*others, longer), tokens=tokens, recalled=turns)


class _TokenAllowance:
    def __init__(self, tokens: int, count: TokenCounter) -> None:
        self.left = tokens
        self._count = count

    def swap(self, old: Sequence[ChatMessage], new: Sequence[ChatMessage]) -> bool:
        """Put `new` messages in place of `old` ones; return False if they do not fit."""
        cost = sum(message_tokens(message, self._count) for message in new)
        cost -= sum(message_tokens(message, self._count) for message in old)
        if cost > self.left:
            return False
        self.left -= cost
        return True


def _with_summaries(
    rules: ChatMessage, summaries: Sequence[Summary], purse: _TokenAllowance
) -> ChatMessage:
    """Return the rules with all summaries below them, or with the newest that fit."""
    for first in range(len(summaries)):
        text = "\n\n".join(summary.text for summary in summaries[first:])
        left_out = ""
        if first:
            left_out = (
                f"\n(Messages before {summaries[first].start} are left out; search for them.)"
            )
        content = f"{rules.content}\n\n{SUMMARY_TITLE}{left_out}\n{text}"
        system = ChatMessage(Role.SYSTEM, content)
        if purse.swap([rules], [system]):
            return system
    return rules


def _with_requested(
    question: ChatMessage, messages: Sequence[Message], purse: _TokenAllowance
) -> ChatMessage:
    """Return the question with the newest of the requested messages that fit before it."""
    for first in range(len(messages)):
        lines = [f"Message {m.index} ({m.role}): {m.content}" for m in messages[first:]]
        text = "\n".join([REQUEST_TITLE, *lines])
        longer = ChatMessage(Role.USER, f"{text}\n\n{question.content}".rstrip())
        if purse.swap([question], [longer]):
            return longer
    return question


def _recent(parts: ContextParts, most: int, purse: _TokenAllowance) -> list[Pair]:
    """Return the newest pairs: all, or as many as leave room to recall the turns left out."""
    before = purse.left
    if 2 * most >= parts.message_count:
        pairs = _newest(parts.recent, most, purse)
        if 2 * len(pairs) >= parts.message_count:
            return pairs
    reserve = int(RECALL_SHARE * before)
    purse.left = before - reserve
    pairs = _newest(parts.recent, most, purse)
    purse.left += reserve
    return pairs


def _newest(pairs: Sequence[Pair], most: int, purse: _TokenAllowance) -> list[Pair]:
    """Return the newest pairs that fit, without gaps: stop at the first that does not."""
    newest: list[Pair] = []
    for pair in reversed(pairs[len(pairs) - most :]):
        if not purse.swap((), pair.messages):
            break
        newest.insert(0, pair)
    return newest


SYSTEM_MESSAGES = 4  # of a client that are read at most
REMEMBERED_SESSIONS = 1024  # whose instructions are
MOST_REMEMBERED = 20_000  # characters of instructions; longer ones are read in each turn


@dataclass(frozen=True, slots=True)
class State:
    """What one turn reads of its session; bounded, however long the session is."""

    session: Session
    summaries: tuple[Summary, ...]
    recent: tuple[Pair, ...]  # after the last summary
    summarises: bool
    preferences: ContextPreferences = NO_PREFERENCES  # what a model asked to see once
    matches: tuple[int, ...] = ()  # messages that its last search found
    instructions: str = ""  # the system messages with which an imported transcript begins
    window: int = 0  # of the model when the turn's context was put together first


class Instructions:
    """The system messages with which transcripts begin.

    They are cached once they cannot change: when another message follows them. The caller has read
    the session before, so the cached text of a deleted session is never shown.
    """

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def of(self, session: SessionTranscript) -> str:
        """Return a session's leading system messages in one text, as they were sent."""
        if session.id in self._texts:
            return self._texts[session.id]
        first = session.bare_messages(0, SYSTEM_MESSAGES)
        leading = list(takewhile(lambda message: message.role == Role.SYSTEM, first))
        text = "\n".join(message.content for message in leading)
        is_settled = len(leading) < len(first) or len(leading) == SYSTEM_MESSAGES
        if is_settled and len(text) <= MOST_REMEMBERED:
            self._texts[session.id] = text
            for oldest in list(self._texts)[: max(0, len(self._texts) - REMEMBERED_SESSIONS)]:
                self._texts.pop(oldest, None)
        return text

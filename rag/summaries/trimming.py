"""How a transcript of plain messages is made small: what fits, and what is sent of it."""

from dataclasses import dataclass
from typing import Any

from rag.errors import TooLarge
from rag.records import Role, Summary
from rag.sessions.context import MESSAGE_TOKENS, RECALL_SHARE, SUMMARY_TITLE
from rag.summaries.client import ClientModel
from rag.summaries.recall import in_sight_of, put_back
from rag.summaries.summarise import Room, planned_ends, summarise
from rag.summaries.transcript import (
    MessageDict,
    Transcript,
    role_of,
    split_summary,
    text_of,
)

REPLY_TOKENS = 3  # every context ends with the beginning of the reply
OPENING_TOKENS = MESSAGE_TOKENS + 8  # of a summary
SYSTEM_SHARE = 0.25  # of `max_tokens` at most for system messages in the middle of the transcript
SUMMARY_SHARE = 0.5  # of the room: what a summary may take at least, if it needs it
LOW_WATER = 0.7  # of the room, for the summary and what stays word for word
LEAST_SUMMARY = 60  # tokens
READ_SHARE = 0.9  # of `max_tokens` for what a model is shown


@dataclass(frozen=True, slots=True)
class TrimLimits:
    """How small a transcript has to become."""

    max_tokens: int
    recent_messages: int
    max_turns: int | None


def summarise_if_due(seen: Transcript, limits: TrimLimits, model: ClientModel | None) -> None:
    """Have a summary stand for as many of the oldest turns as it takes.

    Raises:
        TooLarge: what can never be summarised does not fit.
    """
    room = _room(seen, limits)
    ends = planned_ends(seen, seen.summary.tokens if seen.summary else 0, room)
    if not ends:
        return
    _refuse_too_large(seen, limits)
    ask, name = (model.ask, model.name) if model else (None, "")
    seen.summary = summarise(seen, ends, room, ask=ask, model=name)


def _refuse_too_large(seen: Transcript, limits: TrimLimits) -> None:
    start = seen.open_start
    needed = REPLY_TOKENS + _system_tokens(seen, limits) + seen.tokens(start)
    needed += LEAST_SUMMARY if start > seen.first else 0
    if needed > limits.max_tokens:
        raise TooLarge(
            f"The newest question and the system messages take {needed} tokens, but max_tokens is "
            f"{limits.max_tokens}. Shorten them, or raise max_tokens."
        )


def _room(seen: Transcript, limits: TrimLimits) -> Room:
    """For summary and turns together; before the first summary the turns may fill it all."""
    free = limits.max_tokens - REPLY_TOKENS - _system_tokens(seen, limits)
    open_tokens, recalled = seen.tokens(seen.open_start), int(RECALL_SHARE * limits.max_tokens)
    if free - open_tokens <= 4 * recalled:
        recalled = 0  # the question itself leaves nothing
    budget = free - OPENING_TOKENS - recalled
    return Room(
        budget=budget,
        high=budget if seen.summary else limits.max_tokens - REPLY_TOKENS - seen.totals[seen.first],
        low=int(LOW_WATER * budget),
        least=int(SUMMARY_SHARE * budget),
        most=max(0, budget - open_tokens),
        keep_turns=limits.recent_messages // 2,
        max_turns=limits.max_turns,
        fewer_turns=limits.max_turns,
        shown=int(READ_SHARE * limits.max_tokens),
    )


def _system_tokens(seen: Transcript, limits: TrimLimits) -> int:
    """Of the rules, and at most of the system messages that come later."""
    later = sum(seen.tokens(index, index + 1) for index in seen.systems)
    return seen.tokens(0, seen.first) + min(later, int(SYSTEM_SHARE * limits.max_tokens))


# ── What is sent ─────────────────────────────────────────────────────────────────────────────


def sent_messages(
    seen: Transcript, given: list[MessageDict], limits: TrimLimits
) -> list[dict[str, Any]]:
    """One system message with the summary, then the newest turns, user and assistant in turn."""
    assert seen.summary is not None, "only called after summarising"
    systems = _kept_systems(seen, limits)
    rules = [split_summary(role_of(given[i]), text_of(given[i]))[0] for i in systems]
    summary = f"{SUMMARY_TITLE}\n{seen.summary.text}"
    system = {"role": "system", "content": "\n\n".join(filter(None, [*rules, summary]))}
    turns = [i for i in range(seen.covered, len(given)) if i not in seen.systems]
    taken = REPLY_TOKENS + OPENING_TOKENS + seen.summary.tokens
    taken += sum(seen.tokens(index, index + 1) for index in [*systems, *turns])
    said = _in_turn([given[index] for index in turns])
    return [system, *_with_recalled(seen, said, seen.summary, room=limits.max_tokens - taken)]


def _kept_systems(seen: Transcript, limits: TrimLimits) -> list[int]:
    """Those at the beginning, and of those before the first turn the newest that fit."""
    kept: list[int] = []
    left = int(limits.max_tokens * SYSTEM_SHARE)
    for index in reversed([index for index in seen.systems if index < seen.covered]):
        left -= seen.tokens(index, index + 1)
        if left < 0:
            break
        kept.insert(0, index)
    return [*range(seen.first), *kept, *(index for index in seen.systems if index >= seen.covered)]


def _in_turn(messages: list[MessageDict]) -> list[dict[str, Any]]:
    """The messages, those of one side that follow each other joined into one."""
    joined: list[dict[str, Any]] = []
    for message in messages:
        last = joined[-1] if joined else {}
        if _is_plain(last) and _is_plain(message) and last["role"] == message["role"]:
            last["content"] = f"{last['content']}\n\n{message['content']}"
        else:
            joined.append(dict(message))
    return joined


def _is_plain(message: MessageDict) -> bool:
    return message.keys() == {"role", "content"} and isinstance(message["content"], str)


def _with_recalled(
    seen: Transcript, turns: list[dict[str, Any]], summary: Summary, *, room: int
) -> list[dict[str, Any]]:
    """The turns, with the earlier statements that bear on the newest question in the last one."""
    if not turns or turns[-1].get("role") != Role.USER:
        return turns
    text, _ = put_back(
        seen.recall,
        text_of(turns[-1]),
        before=seen.covered,
        room=room,
        count=seen.count,
        in_sight=in_sight_of([summary]),
    )
    if not text:
        return turns
    content = turns[-1]["content"]
    parts = [{"type": "text", "text": text}]
    longer = f"{text}\n\n{content}" if isinstance(content, str) else [*parts, *content]
    return [*turns[:-1], turns[-1] | {"content": longer}]

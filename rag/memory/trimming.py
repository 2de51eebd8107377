"""How a transcript of plain messages is made small: what fits, and what is sent of it."""

from dataclasses import dataclass
from typing import Any

from rag.errors import TooLarge
from rag.memory.summary import Room, summarise
from rag.memory.thread import Ask, written_thread
from rag.memory.transcript import MessageDict, Transcript, role_of, split_summary, text_of
from rag.records import Role, Summary
from rag.sessions.context import MESSAGE_TOKENS, SUMMARY_TITLE

REPLY_TOKENS = 3  # every context ends with the beginning of the reply
OPENING_TOKENS = MESSAGE_TOKENS + 8  # of a summary
SYSTEM_SHARE = 0.25  # of `max_tokens` at most for system messages in the middle of the transcript
HIGH_WATER, LOW_WATER = 0.5, 0.2  # of the room, for what stays word for word
KEPT_SHARE = 0.3  # of it, for the turns that are kept if they fit
SUMMARY_SHARE = 0.45  # of it
RECALL_SHARE = 0.2  # of it, at least, for what is recalled
LEAST_SUMMARY = 60  # tokens


@dataclass(frozen=True, slots=True)
class TrimLimits:
    """How small a transcript has to become."""

    max_tokens: int
    recent_messages: int
    max_turns: int | None


def summarise_if_due(seen: Transcript, limits: TrimLimits, ask: Ask | None, model: str) -> None:
    """Have a summary stand for as many of the oldest turns as it takes.

    Raises:
        TooLarge: what can never be summarised does not fit.
    """
    fixed = REPLY_TOKENS + _system_tokens(seen, limits)
    start = seen.open_start
    needed = fixed + seen.tokens(start)
    room = max(0, limits.max_tokens - needed - OPENING_TOKENS)
    turns = seen.tokens(seen.covered, start)
    counted = seen.turns_from(seen.covered)
    is_many = limits.max_turns is not None and counted > limits.max_turns
    if seen.summary is None:
        everything = REPLY_TOKENS + seen.tokens(0)
        is_due = everything > limits.max_tokens or is_many
    else:
        most = (1 - RECALL_SHARE) * room
        is_due = turns > HIGH_WATER * room or turns + seen.summary.tokens > most or is_many
    if not is_due:
        return
    needed += LEAST_SUMMARY if start > seen.first else 0
    if needed > limits.max_tokens:
        raise TooLarge(
            f"The newest question and the system messages take {needed} tokens, but max_tokens is "
            f"{limits.max_tokens}. Shorten them, or raise max_tokens."
        )
    keep = limits.recent_messages // 2 + (start < len(seen.said))  # and the open question
    low, high = LOW_WATER * room, KEPT_SHARE * room
    end = seen.end(start, low=low, high=high, keep=keep, most=limits.max_turns)
    if end == seen.covered and seen.summary and turns + seen.summary.tokens <= room:
        return
    thread = written_thread(ask, model, [said.text for said in seen.said[seen.covered : end]])
    left = int((1 - RECALL_SHARE) * room) - seen.tokens(end, start)
    share = Room(min(max(LEAST_SUMMARY, left), int(SUMMARY_SHARE * room)), room)
    seen.summary = summarise(seen, end, share, thread=thread)


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
    """The turns, with what was said earlier and bears on the newest question in the last one."""
    if not turns or turns[-1].get("role") != Role.USER:
        return turns
    question = text_of(turns[-1])
    meanings, beside = seen.meanings(question), summary.text
    shown = seen.recalled(
        question, before=seen.covered, room=room, meanings=meanings, beside=beside
    )
    text = shown.text()
    if not text:
        return turns
    content = turns[-1]["content"]
    parts = [{"type": "text", "text": text}]
    longer = f"{text}\n{content}" if isinstance(content, str) else [*parts, *content]
    return [*turns[:-1], turns[-1] | {"content": longer}]

"""The steps of trimming one transcript: is it time, how far, and what is sent instead."""

import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rag.errors import TooLarge
from rag.records import Role
from rag.summaries.check import checked
from rag.summaries.choose import NOTHING_CHOSEN, Said, ask_to_choose
from rag.summaries.client import ClientModel
from rag.summaries.compose import Composed, Limits
from rag.summaries.recall import put_back
from rag.summaries.report import report_of
from rag.summaries.required import SUMMARY_OPENING, Choice
from rag.summaries.transcript import (
    MESSAGE_TOKENS,
    MessageDict,
    Transcript,
    role_of,
    split_summary,
    text_of,
)

REPLY_TOKENS = 3  # every context ends with the beginning of the reply
OPENING_TOKENS = 8  # of a summary
SYSTEM_SHARE = 0.25  # of `max_tokens` at most for system messages in the middle of the transcript
RECALL_SHARE = 0.1  # of `max_tokens` is kept free for statements put back
SUMMARY_SHARE = 0.5  # of the room: what a summary may take at least, if it needs it
HEADROOM = 0.25  # of the room: left to the turns to come, so that a summary stays for a while
LOW_WATER = 0.4  # of the room beside the summary stays word for word
LEAST_SUMMARY = 60  # tokens
ASKED_TURNS = 12  # not yet shown to the model, so that asking is worth a call
READ_SHARE = 0.9  # of `max_tokens` for the prompt


@dataclass(frozen=True, slots=True)
class TrimLimits:
    """How small a transcript has to become."""

    max_tokens: int
    recent_messages: int
    max_turns: int | None

    @property
    def recall_tokens(self) -> int:
        return int(RECALL_SHARE * self.max_tokens)


def is_due(seen: Transcript, limits: TrimLimits) -> bool:
    """Whether more has to be summarised before this can be sent."""
    kept_free = 0 if seen.composed is None else limits.recall_tokens
    if context_tokens(seen, limits) > limits.max_tokens - kept_free:
        return True
    if limits.max_turns is None or len(seen.messages) <= 2 * limits.max_turns + 1:
        return False
    return _turns_from(seen, seen.covered) > limits.max_turns


def context_tokens(seen: Transcript, limits: TrimLimits) -> int:
    """Tokens of the messages as they would be sent now, without what is recalled."""
    summary = 0
    if seen.composed is not None:
        summary = MESSAGE_TOKENS + OPENING_TOKENS + seen.composed.tokens
    return _fixed(seen, seen.covered, limits) + summary + seen.tokens(seen.covered)


def compact(seen: Transcript, limits: TrimLimits, model: ClientModel | None) -> None:
    """Summarise as much of the oldest turns as it takes.

    Raises:
        TooLarge: what can never be summarised does not fit.
    """
    began = time.monotonic()
    _refuse_too_large(seen, limits)
    end = _end(seen, limits)
    choice = NOTHING_CHOSEN if model is None else _ask(seen, limits, model, end)
    seen.cover(end)
    seen.required.choose(choice)
    composed = _compose(seen, limits)
    for further in _ends(seen, end):
        if context_tokens(seen, limits) <= limits.max_tokens - _recall_room(seen, limits):
            break
        seen.cover(further)
        composed = _compose(seen, limits)
    seen.report = report_of(
        seen.required,
        composed,
        choice,
        tokens_before=seen.tokens(seen.pinned, seen.covered),
        seconds=time.monotonic() - began,
        model="extractive" if model is None else model.name,
    )


def _compose(seen: Transcript, limits: TrimLimits) -> Composed:
    text_of_message = seen.texts.__getitem__
    seen.composed = checked(seen.required, _limits(seen, limits), seen.count, text_of_message)
    return seen.composed


# ── How far ──────────────────────────────────────────────────────────────────────────────────


def _refuse_too_large(seen: Transcript, limits: TrimLimits) -> None:
    start = seen.open_start
    needed = _fixed(seen, seen.pinned, limits) + seen.tokens(start)
    needed += LEAST_SUMMARY if start > seen.pinned else 0
    if needed > limits.max_tokens:
        raise TooLarge(
            f"The newest question and the system messages take {needed} tokens, but max_tokens is "
            f"{limits.max_tokens}. Shorten them, or raise max_tokens."
        )


def _kept_systems(seen: Transcript, end: int, limits: TrimLimits) -> list[int]:
    """The newest system messages in the middle of the transcript before `end`, as far as fit."""
    kept: list[int] = []
    left = int(limits.max_tokens * SYSTEM_SHARE)
    for index in reversed([index for index in seen.systems if index < end]):
        left -= seen.tokens(index, index + 1)
        if left < 0:
            break
        kept.insert(0, index)
    return kept


def _fixed(seen: Transcript, end: int, limits: TrimLimits) -> int:
    """Tokens of the system messages before `end`, and of the beginning of the reply."""
    later = sum(seen.tokens(i, i + 1) for i in _kept_systems(seen, end, limits))
    return REPLY_TOKENS + seen.tokens(0, seen.pinned) + later


def _room(seen: Transcript, limits: TrimLimits) -> int:
    """Tokens for summary and turns together."""
    taken = _fixed(seen, seen.open_start, limits) + MESSAGE_TOKENS + OPENING_TOKENS
    return limits.max_tokens - taken - _recall_room(seen, limits)


def _recall_room(seen: Transcript, limits: TrimLimits) -> int:
    """What is kept free for statements put back, where the question itself leaves it."""
    free = limits.max_tokens - _fixed(seen, seen.open_start, limits) - seen.tokens(seen.open_start)
    return limits.recall_tokens if free > 4 * limits.recall_tokens else 0


def _limits(seen: Transcript, limits: TrimLimits) -> Limits:
    """The room that the turns leave, a part of it kept for those to come."""
    room = _room(seen, limits)
    turns = seen.tokens(max(seen.covered, seen.pinned))
    share = int(SUMMARY_SHARE * room)
    left = room - turns - int(HEADROOM * room)
    most = max(0, room - seen.tokens(seen.open_start))
    return Limits(min(max(share, left), most), most)


def _ends(seen: Transcript, start: int) -> Iterator[int]:
    """Where a summary may end after `start`: where a turn begins, or after the last answer."""
    last = seen.open_start
    first, end = bisect_right(seen.turns, start), bisect_left(seen.turns, last)
    yield from seen.turns[first:end]
    if last > start:
        yield last


def _end(seen: Transcript, limits: TrimLimits) -> int:
    """Where the summary shall end, so that it is not due again for a while."""
    room = _room(seen, limits)
    end = seen.covered
    for end in _ends(seen, seen.covered):
        tokens = seen.tokens(end)
        beside = room - min(int(SUMMARY_SHARE * room), seen.tokens(seen.pinned, end))
        few = tokens <= LOW_WATER * beside or len(seen.messages) - end <= limits.recent_messages
        if limits.max_turns is not None:
            few = _turns_from(seen, end) <= limits.max_turns
        if few and tokens <= beside:
            break
    return end


def _turns_from(seen: Transcript, start: int) -> int:
    return len(seen.turns) - bisect_left(seen.turns, start)


def _ask(seen: Transcript, limits: TrimLimits, model: ClientModel, end: int) -> Choice:
    """Show the model the statements of a stretch that it has not seen, once in a while."""
    start = max(seen.asked, seen.pinned)
    unseen = _turns_from(seen, start) - _turns_from(seen, end)
    if not unseen or (seen.calls and unseen < ASKED_TURNS):
        return NOTHING_CHOSEN
    said = [Said(role_of(m), text_of(m)) for m in seen.messages[start:end]]
    lines = [line for reading in seen.readings[start:end] for line in reading.lines]
    room = int(READ_SHARE * limits.max_tokens)
    choice = ask_to_choose(model.ask, said, lines, count=seen.count, room=room)
    seen.asked = end
    seen.calls += choice.calls
    return choice


# ── What is sent ─────────────────────────────────────────────────────────────────────────────


def shown_messages(
    seen: Transcript, given: list[MessageDict], limits: TrimLimits
) -> list[dict[str, Any]]:
    """One system message with the summary, then the newest turns, user and assistant in turn."""
    assert seen.composed is not None, "only called after composing"
    later = [index for index in seen.systems if index >= seen.covered]
    systems = [*range(seen.pinned), *_kept_systems(seen, seen.covered, limits), *later]
    rules = [split_summary(role_of(given[i]), text_of(given[i]))[0] for i in systems]
    summary = f"{SUMMARY_OPENING}\n{seen.composed.text}"
    system = {"role": "system", "content": "\n\n".join(filter(None, [*rules, summary]))}
    turns = [m for i, m in enumerate(given[seen.covered :], seen.covered) if i not in seen.systems]
    return [system, *_with_recalled(seen, _in_turn(turns), limits)]


def _in_turn(messages: list[MessageDict]) -> list[dict[str, Any]]:
    """The messages, those of one side that follow each other joined into one."""
    joined: list[dict[str, Any]] = []
    for message in messages:
        if joined and _is_same_side(joined[-1], message):
            joined[-1]["content"] = f"{joined[-1]['content']}\n\n{message['content']}"
        else:
            joined.append(dict(message))
    return joined


def _is_same_side(before: Mapping[str, Any], after: MessageDict) -> bool:
    plain = all(
        message.keys() == {"role", "content"} and isinstance(message["content"], str)
        for message in (before, after)
    )
    return plain and before["role"] == after["role"]


def _with_recalled(
    seen: Transcript, turns: list[dict[str, Any]], limits: TrimLimits
) -> list[dict[str, Any]]:
    """The turns, with the earlier statements that bear on the newest question in the last one."""
    if not turns or turns[-1].get("role") != Role.USER:
        return turns
    assert seen.composed is not None, "only called after composing"
    room = limits.max_tokens - context_tokens(seen, limits)
    text = put_back(
        seen.recall,
        text_of(turns[-1]),
        before=seen.covered,
        room=room,
        count=seen.count,
        in_sight={line.text for line in seen.composed.quoted},
    ).text
    if not text:
        return turns
    content = turns[-1]["content"]
    if isinstance(content, str):
        return [*turns[:-1], turns[-1] | {"content": f"{text}\n\n{content}"}]
    return [*turns[:-1], turns[-1] | {"content": [{"type": "text", "text": text}, *content]}]

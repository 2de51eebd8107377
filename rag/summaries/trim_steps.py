"""The steps of trimming one transcript: is it time, how far, and what stands in for the rest."""

import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from rag.citations.binding import Evidence
from rag.errors import TooLarge
from rag.records import SummaryReport
from rag.summaries.facts import union
from rag.summaries.ladder import Ladder
from rag.summaries.lines import Limits
from rag.summaries.remembered import (
    MESSAGE_TOKENS,
    REPLY_TOKENS,
    SUMMARY_OPENING,
    Remembered,
)
from rag.summaries.report import report_of
from rag.summaries.snapshot import MessageDict
from rag.summaries.summarize import INSTRUCTIONS, Summariser
from rag.summaries.trim_client import ClientModel

SUMMARY_SHARE = 0.5  # of the room at most for what a summary must keep
ASKED_SHARE = 0.7  # of the room at most where `max_summary_tokens` asks for more
SYSTEM_SHARE = 0.25  # of `max_tokens` at most for system messages in the middle of the transcript
LOW_WATER = 0.4  # of the room beside the summary stays word for word
LEAST_SUMMARY = 60  # tokens: an archive line
OPENING_TOKENS = 6
TURNS_PER_CALL = 8
ASKED_TURNS = 16  # not yet read, so that further calls are worth what they cost
UNREAD_TURNS = 40  # are waited for, so that the model is asked in one turn of many, and then enough
CALLS_PER_TRIM = 4  # of a long transcript seen at once; the rest is summarised without the model
PROMPT_SHARE = 1.12  # tokens of all prompts, to tokens of the turns summarised
FIRST_RETRY_TOKENS = 500
READ_SHARE = 0.75  # of `max_tokens` for one prompt


@dataclass(frozen=True, slots=True)
class TrimLimits:
    """How small a transcript has to become."""

    max_tokens: int
    recent_messages: int
    max_turns: int | None
    max_summary_tokens: int


def is_due(seen: Remembered, limits: TrimLimits) -> bool:
    """Whether more has to be summarised before this can be sent."""
    if context_tokens(seen, limits) > limits.max_tokens:
        return True
    if limits.max_turns is None or len(seen.messages) <= 2 * limits.max_turns + 1:
        return False
    return _turns_from(seen, seen.covered) > limits.max_turns


def context_tokens(seen: Remembered, limits: TrimLimits) -> int:
    """Tokens of the messages as they would be sent now."""
    summary = 0
    if seen.composed is not None:
        summary = MESSAGE_TOKENS + OPENING_TOKENS + seen.composed.tokens
    return _fixed(seen, seen.covered, limits) + summary + seen.tokens(seen.covered)


def kept_messages(seen: Remembered, given: list[MessageDict]) -> list[MessageDict]:
    """Of the given messages the system's, then the summary, and the newest turns word for word."""
    text = seen.composed.text if seen.composed else ""
    summary = {"role": "system", "content": f"{SUMMARY_OPENING}\n{text}"}
    systems = [given[index] for index in seen.kept_systems]
    return [*given[: seen.pinned], *systems, summary, *given[seen.covered :]]


def compact(seen: Remembered, limits: TrimLimits, model: ClientModel | None) -> None:
    """Summarise as much of the oldest turns as it takes.

    Raises:
        TooLarge: what can never be summarised does not fit.
    """
    began = time.monotonic()
    _refuse_too_large(seen, limits)
    room = _room(seen, limits)
    end = _end(seen, limits, room)
    problems = _ask(seen, limits, model, end) if model is not None else ()
    _cover(seen, end)
    _compose(seen, limits, room)
    for further in list(_ends(seen)):
        if context_tokens(seen, limits) <= limits.max_tokens:
            break
        _cover(seen, further)
        _compose(seen, limits, _room(seen, limits))
    seen.release(seen.covered if model is None else min(seen.covered, seen.unread))
    seen.report = _report(seen, problems, time.monotonic() - began, model)


# ── How far ──────────────────────────────────────────────────────────────────────────────────


def _refuse_too_large(seen: Remembered, limits: TrimLimits) -> None:
    start = seen.open_start
    needed = _fixed(seen, seen.pinned, limits) + seen.tokens(start)
    needed += LEAST_SUMMARY if start > seen.pinned else 0
    if needed > limits.max_tokens:
        raise TooLarge(
            f"The newest question and the system messages take {needed} tokens, but max_tokens is "
            f"{limits.max_tokens}. Shorten them, or raise max_tokens."
        )


def _fixed(seen: Remembered, end: int, limits: TrimLimits) -> int:
    """Tokens of the system messages before `end`, and of the beginning of the reply."""
    seen.kept_systems = []
    left = int(limits.max_tokens * SYSTEM_SHARE)
    for index in reversed([index for index in seen.systems if index < end]):
        left -= seen.tokens(index, index + 1)
        if left < 0:
            break
        seen.kept_systems.insert(0, index)
    later = sum(seen.tokens(index, index + 1) for index in seen.kept_systems)
    return REPLY_TOKENS + seen.tokens(0, seen.pinned) + later


def _room(seen: Remembered, limits: TrimLimits) -> "Room":
    taken = _fixed(seen, seen.open_start, limits) + MESSAGE_TOKENS + OPENING_TOKENS
    total = limits.max_tokens - taken
    soft = min(limits.max_summary_tokens, int(ASKED_SHARE * total))
    hard = min(max(int(SUMMARY_SHARE * total), soft), total - seen.tokens(seen.open_start))
    return Room(total, Limits(min(soft, hard), max(hard, 0)))


@dataclass(frozen=True, slots=True)
class Room:
    """Tokens for summary and turns together, and how many of them are the summary's."""

    total: int
    summary: Limits


def _ends(seen: Remembered) -> Iterator[int]:
    """Where the summary may end: at the beginning of a turn, or after the last answer."""
    last = seen.open_start
    first, end = bisect_right(seen.turns, seen.covered), bisect_left(seen.turns, last)
    yield from seen.turns[first:end]
    if last > seen.covered:
        yield last


def _end(seen: Remembered, limits: TrimLimits, room: Room) -> int:
    """Where the summary shall end, so that it is not due again for a while."""
    expected = room.summary.soft
    if seen.composed is not None:
        expected = max(expected, int(seen.composed.tokens * 1.15))
    beside = room.total - min(expected, room.summary.hard)
    end = seen.covered
    for end in _ends(seen):
        tokens = seen.tokens(end)
        few = tokens <= LOW_WATER * beside or len(seen.messages) - end <= limits.recent_messages
        if limits.max_turns is not None:
            few = _turns_from(seen, end) <= limits.max_turns
        if few and tokens <= beside:
            break
    return end


def _turns_from(seen: Remembered, start: int) -> int:
    return len(seen.turns) - bisect_left(seen.turns, start)


# ── What stands in for the rest ──────────────────────────────────────────────────────────────


def _cover(seen: Remembered, end: int) -> None:
    _pool(seen, end)
    seen.covered = max(seen.covered, end)


def _pool(seen: Remembered, end: int) -> None:
    for index in range(seen.covered, end):
        seen.pool.add(seen.facts[index], seen.lines[index])


def _compose(seen: Remembered, limits: TrimLimits, room: Room) -> None:
    seen.composed = Ladder(seen.pool, room.summary, seen.count).compose()


def _ask(seen: Remembered, limits: TrimLimits, model: ClientModel, end: int) -> tuple[str, ...]:
    """Show the model the turns that it has not read, as far as it may be asked."""
    problems: list[str] = []
    if not _is_time_to_ask(seen, end):
        return ()
    for start, stop in islice(_stretches(seen, limits, end), CALLS_PER_TRIM):
        if not _may_ask(seen, start, stop):
            break
        problems += _summarise(seen, limits, model, start, stop)
        if seen.failed:
            break
    return tuple(problems)


def _stretches(seen: Remembered, limits: TrimLimits, end: int) -> Iterator[tuple[int, int]]:
    """Whole turns that together fit into one prompt."""
    room = int(READ_SHARE * limits.max_tokens)
    start = seen.unread
    first, last = bisect_right(seen.turns, start), bisect_left(seen.turns, end)
    stops = [*seen.turns[first:last], end]
    for before, stop in zip([start, *stops], stops, strict=False):
        if before > start and seen.tokens(start, stop) > room:
            yield start, before
            start = before
    if end > start:
        yield start, end


def _is_time_to_ask(seen: Remembered, end: int) -> bool:
    unread = _turns_from(seen, seen.unread) - _turns_from(seen, end)
    return seen.calls == 0 or unread >= UNREAD_TURNS


def _may_ask(seen: Remembered, start: int, stop: int) -> bool:
    if seen.calls + 1 > max(2, len(seen.turns) // TURNS_PER_CALL):
        return False
    turns = _turns_from(seen, start) - _turns_from(seen, stop)
    return seen.calls == 0 or turns >= ASKED_TURNS


def _summarise(
    seen: Remembered, limits: TrimLimits, model: ClientModel, start: int, stop: int
) -> tuple[str, ...]:
    facts = union(seen.facts[start:stop])
    evidence = Evidence(facts.claims, facts.plain)
    summariser = Summariser(
        model.ask, seen.count, limits.max_summary_tokens, _retry_tokens(seen, start, stop)
    )
    room = int(READ_SHARE * limits.max_tokens)
    asked = summariser.summarise(seen.said(start, stop), facts, evidence, room=room)
    _pool(seen, stop)
    seen.pool.take_all(asked.sifted, seen.count)
    seen.unread = stop
    seen.calls += asked.attempts
    seen.prompt_tokens += asked.prompt_tokens
    seen.removed += asked.sifted.removed
    seen.failed = any("failed" in problem for problem in asked.problems)
    return asked.problems


def _retry_tokens(seen: Remembered, start: int, stop: int) -> int:
    """What a correcting prompt may take, so that all prompts stay near the size of the turns."""
    if seen.calls == 0:
        return FIRST_RETRY_TOKENS
    if seen.calls + 2 > len(seen.turns) // TURNS_PER_CALL:
        return 0
    first = int(1.1 * seen.tokens(start, stop)) + seen.count(INSTRUCTIONS)
    return max(0, int(PROMPT_SHARE * seen.tokens(0, stop)) - seen.prompt_tokens - first)


def _report(
    seen: Remembered, problems: tuple[str, ...], seconds: float, model: ClientModel | None
) -> SummaryReport:
    """What the summary in place was required to keep, and how it does."""
    assert seen.composed is not None, "only called after composing"
    return report_of(
        seen.pool,
        seen.composed,
        removed=seen.removed,
        tokens_before=seen.tokens(seen.pinned, seen.covered),
        attempts=seen.calls,
        seconds=seconds,
        model=model.name if model is not None and seen.pool.has_models_lines else "extractive",
        problems=problems,
    )

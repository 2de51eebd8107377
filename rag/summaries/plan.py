"""When old turns are summarised, and how far."""

from collections.abc import Sequence
from typing import Protocol

# What a summary may take whatever the turns take: half of the history's budget, at most this.
LEAST_SHARE, LEAST_TOKENS = 0.5, 1_000
HEADROOM = 0.2  # of the budget: left to the turns to come, so that a summary stays for a while
MOST_SHARE = 0.8  # for numbers and names alone, if they need it


class Room(Protocol):
    """How much history fits; `rag.memory.HistoryRoom` is one."""

    @property
    def budget_tokens(self) -> int: ...
    @property
    def high_tokens(self) -> int: ...
    @property
    def low_tokens(self) -> int: ...
    @property
    def max_pairs(self) -> int: ...
    @property
    def keep_pairs(self) -> int: ...


def plan_compaction(
    pair_tokens: Sequence[int], summary_tokens: int, room: Room, *, force: bool
) -> int:
    """How many of the oldest pairs to summarise now; 0 for none.

    `pair_tokens` are those of the pairs not yet summarised, oldest first. High and low water lie
    apart, so that this is rarely due.
    """
    left = sum(pair_tokens)
    too_many = len(pair_tokens) > room.max_pairs
    if not force and not too_many and summary_tokens + left <= room.high_tokens:
        return 0
    most = room.keep_pairs if force else len(pair_tokens)
    if too_many and not force:
        most = max(room.keep_pairs, room.max_pairs // 2)
    share, full = _least_tokens(room), _full_tokens(room)
    gone = 0
    for dropped, tokens in enumerate(pair_tokens):
        kept = len(pair_tokens) - dropped
        expected = min(summary_tokens + gone, share)
        is_low = left + expected <= room.low_tokens or kept <= room.keep_pairs
        if is_low and kept <= most and left + expected <= full:
            return dropped
        left -= tokens
        gone += tokens
    return len(pair_tokens)


def summary_room(room: Room, turns: int) -> int:
    """What a summary may fill: what the turns beside it leave, and a share at least."""
    return min(max(_least_tokens(room), _full_tokens(room) - turns), most_tokens(room))


def _least_tokens(room: Room) -> int:
    return min(LEAST_TOKENS, int(LEAST_SHARE * room.budget_tokens))


def _full_tokens(room: Room) -> int:
    """What summary and turns may take together when it is made."""
    return room.high_tokens - int(HEADROOM * room.budget_tokens)


def most_tokens(room: Room) -> int:
    """What a summary may take, if its numbers and names need it."""
    return int(MOST_SHARE * room.budget_tokens)

"""When old turns are summarised, and how far."""

from collections.abc import Sequence
from typing import Protocol

SUMMARY_SHARE = 0.5  # of the history's budget at most for what summaries must keep


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
    pair_tokens: Sequence[int], summary_tokens: int, room: Room, *, added_tokens: int, force: bool
) -> int:
    """How many of the oldest pairs to summarise now; 0 for none.

    `pair_tokens` are those of the pairs not yet summarised, oldest first; `added_tokens` is what
    their summary will take at most. High and low water lie apart, so that this is rarely due.
    """
    total = summary_tokens + sum(pair_tokens)
    if not force and total <= room.high_tokens and len(pair_tokens) <= room.max_pairs:
        return 0
    left = sum(pair_tokens)
    for dropped, tokens in enumerate(pair_tokens):
        kept = len(pair_tokens) - dropped
        expected = min(summary_tokens + (added_tokens if dropped else 0), hard_tokens(room))
        is_low = left + expected <= room.low_tokens or kept <= room.keep_pairs
        if is_low and left + expected <= room.budget_tokens and (dropped or not force):
            return dropped
        if force and kept <= room.keep_pairs and left + expected <= room.budget_tokens:
            return dropped
        left -= tokens
    return len(pair_tokens)


def hard_tokens(room: Room) -> int:
    """What all summaries together may take, if what they must keep needs it."""
    return int(SUMMARY_SHARE * room.budget_tokens)

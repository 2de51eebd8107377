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
    left = sum(pair_tokens)
    too_many = len(pair_tokens) > room.max_pairs
    if not force and not too_many and summary_tokens + left <= room.high_tokens:
        return 0
    most = room.keep_pairs if force else len(pair_tokens)
    if too_many and not force:
        most = max(room.keep_pairs, room.max_pairs // 2)
    for dropped, tokens in enumerate(pair_tokens):
        kept = len(pair_tokens) - dropped
        expected = min(summary_tokens + (added_tokens if dropped else 0), hard_tokens(room))
        is_low = left + expected <= room.low_tokens or kept <= room.keep_pairs
        if is_low and kept <= most and left + expected <= room.budget_tokens:
            return dropped
        left -= tokens
    return len(pair_tokens)


def hard_tokens(room: Room) -> int:
    """What all summaries together may take, if what they must keep needs it."""
    return int(SUMMARY_SHARE * room.budget_tokens)

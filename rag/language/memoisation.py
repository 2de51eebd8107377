"""What was read of a text is remembered: a turn asks the same of the same text many times."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

Read = TypeVar("Read")
MOST = 2048  # texts
LONGEST = 8_000  # characters: what is longer is read again


def memoised(read: Callable[[str], Read]) -> Callable[[str], Read]:
    """For functions of a text alone, whose results nobody changes."""
    known = lru_cache(MOST)(read)

    @wraps(read)
    def of(text: str) -> Read:
        return known(text) if len(text) <= LONGEST else read(text)

    return of

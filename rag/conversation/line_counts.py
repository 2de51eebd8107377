"""Count the tokens of texts whose lines are mostly known already."""

import re
from collections.abc import Callable
from functools import lru_cache

# Before a visible ASCII character a line break ends a token, in every encoding of tiktoken, and so
# does a semicolon before a blank: lists of names are counted name by name.
_SEAM = re.compile(r"(?<=\n)(?=[!-.0-~])|(?<=;)(?= [!-~])")
# The counter cuts such runs, and longer texts, at places of its own.
_LONG_RUN = re.compile(r"\S{401}|\s{201}")
LONGEST_TEXT = 50_000
REMEMBERED_LINES = 8192


def by_lines(count: Callable[[str], int]) -> Callable[[str], int]:
    """The same counts, each line counted once as long as it is remembered."""

    @lru_cache(maxsize=REMEMBERED_LINES)
    def count_line(line: str) -> int | None:
        """None if it has to be counted with the lines around it; no run goes over a seam."""
        return None if _LONG_RUN.search(line) else count(line)

    def count_lines(text: str) -> int:
        if len(text) > LONGEST_TEXT:
            return count(text)
        counts = list(map(count_line, _SEAM.split(text)))
        whole = [tokens for tokens in counts if tokens is not None]
        return sum(whole) if len(whole) == len(counts) else count(text)

    return count_lines

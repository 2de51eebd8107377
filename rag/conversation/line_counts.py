"""Count the tokens of texts whose lines are mostly known already."""

import re
from collections.abc import Callable
from functools import lru_cache

# Before a visible ASCII character a line break ends a token, in every encoding of tiktoken.
_LINE_END = re.compile(r"(?<=\n)(?=[!-.0-~])")
# The counter cuts such runs, and longer texts, at places of its own.
_LONG_RUN = re.compile(r"\S{401}|\s{201}")
LONGEST_TEXT = 50_000
REMEMBERED_LINES = 4096


def by_lines(count: Callable[[str], int]) -> Callable[[str], int]:
    """The same counts, each line counted once as long as it is remembered."""

    @lru_cache(maxsize=REMEMBERED_LINES)
    def count_line(line: str) -> int:
        return count(line)

    def count_lines(text: str) -> int:
        if "\n" not in text or len(text) > LONGEST_TEXT or _LONG_RUN.search(text):
            return count(text)
        return sum(map(count_line, _LINE_END.split(text)))

    return count_lines

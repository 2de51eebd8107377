"""Count the tokens of texts whose lines are mostly known already."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

# Before a visible ASCII character a line break ends a token, in every encoding of tiktoken, and so
# does a semicolon before a blank: long lists of names are counted name by name.
_VISIBLE = frozenset(map(chr, range(0x21, 0x7F))) - {"/"}
_LIST_SEAM = re.compile(r"(?<=;)(?= [!-~])")
LONG_LINE = 300
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
        if len(text) <= LONG_LINE and "\n" not in text:
            tokens = count_line(text)
            return count(text) if tokens is None else tokens
        counts = list(map(count_line, _pieces(text)))
        whole = [tokens for tokens in counts if tokens is not None]
        return sum(whole) if len(whole) == len(counts) else count(text)

    return count_lines


def _pieces(text: str) -> Iterator[str]:
    """The text cut where every token ends."""
    first, *lines = text.split("\n")
    held = first
    for line in lines:
        held += "\n"
        if line[:1] in _VISIBLE:
            yield from _LIST_SEAM.split(held) if len(held) > LONG_LINE else (held,)
            held = ""
        held += line
    yield from _LIST_SEAM.split(held) if len(held) > LONG_LINE else (held,)

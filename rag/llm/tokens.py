"""Count tokens as the model will, without network, and learn from what the server reports."""

import hashlib
import math
import os
import tempfile
import threading
from functools import cache, lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rag.errors import UserError
from rag.seams import TokenCounter
from rag.tokens import ENCODING, count_with, encoding_named

if TYPE_CHECKING:
    from tiktoken import Encoding

SMALLEST_FACTOR, LARGEST_FACTOR = 0.5, 2.0
_LEARNING_RATE = 0.3
_SMALLEST_SAMPLE = 50  # tokens; below, the protocol's own words outweigh the text

# The encoding of the newer OpenAI models, as tiktoken would fetch and cache it.
_O200K_URL = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
_O200K_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"

_UNUSABLE = (
    "The token counter {} of the entry points groundnote.token_counters cannot be used: {}. "
    "It takes a text and returns a whole number; mend it, or remove its package."
)
_CACHED_CHARACTERS = 20_000  # longer texts are counted anew, rather than kept in memory


GROUP_OF_COUNTERS = "groundnote.token_counters"
_EVERY_MODEL = "*"


def token_counter(model_name: str) -> TokenCounter:
    """A counter for the model: one that a package brings along, `count(text: str) -> int`.

    It is the entry point of the group `groundnote.token_counters` that is named as the model, or
    `*`. Else with the model's own encoding where that is on this machine, else with the encoding
    that is installed with us, else by characters. The encoding is loaded at the first count;
    nothing is fetched.

    Raises:
        UserError: a package's counter cannot be used.
    """
    brought = _counter_of_a_package(model_name)

    @lru_cache(maxsize=2048)
    def count_cached(text: str) -> int:
        return count_anew(text)

    def count_anew(text: str) -> int:
        return count_with(_encoding_for(model_name), text) if brought is None else brought(text)

    def count(text: str) -> int:
        return count_cached(text) if len(text) <= _CACHED_CHARACTERS else count_anew(text)

    return count


def _counter_of_a_package(model_name: str) -> TokenCounter | None:
    points = {point.name: point for point in entry_points(group=GROUP_OF_COUNTERS)}
    point = points.get(model_name) or points.get(_EVERY_MODEL)
    if point is None:
        return None
    try:
        counter = point.load()
        tokens = counter("How many tokens has this?")
    except Exception as error:  # whatever a package does
        raise UserError(
            _UNUSABLE.format(point.value, f"{type(error).__name__}: {error}")
        ) from error
    if not isinstance(tokens, int) or tokens < 1:
        raise UserError(
            _UNUSABLE.format(point.value, f"it counted {tokens!r} tokens in a sentence")
        )
    return cast(TokenCounter, counter)


@cache
def _encoding_for(model_name: str) -> "Encoding | None":
    try:
        return encoding_named(_own_encoding(model_name))
    except ImportError:
        return None


def _own_encoding(model_name: str) -> str:
    """The model's own encoding if it can be loaded without network, else the one we bring along.

    The one we bring along is `cl100k_base` under another name, so only `o200k` must be looked for.
    """
    from tiktoken.model import encoding_name_for_model

    try:
        name = encoding_name_for_model(model_name.rpartition("/")[2].lower())
    except KeyError:
        return ENCODING
    return name if name.startswith("o200k") and _o200k_is_here() else ENCODING


def _o200k_is_here() -> bool:
    """Whether tiktoken's cache holds the file, whole: otherwise tiktoken would fetch it."""
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder is None:
        folder = str(Path(tempfile.gettempdir()) / "data-gym-cache")
    if not folder:  # set to nothing: tiktoken keeps no cache and would fetch
        return False
    cached = Path(folder) / hashlib.sha1(_O200K_URL.encode()).hexdigest()
    try:
        return hashlib.sha256(cached.read_bytes()).hexdigest() == _O200K_SHA256
    except OSError:
        return False


class CalibratedCounter:
    """A counter that learns, from the usage a server reports, how far its estimates are off."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._factor = 1.0
        self._lock = threading.Lock()

    @property
    def factor(self) -> float:
        """By which estimates are multiplied: 0.5 to 2."""
        return self._factor

    def __call__(self, text: str) -> int:
        return math.ceil(self._counter(text) * self._factor)

    def learn(self, *, estimated_tokens: int, reported_tokens: int) -> None:
        """Take in that a text we estimated (with today's factor) counted so much at the server."""
        if estimated_tokens < _SMALLEST_SAMPLE or reported_tokens <= 0:
            return
        with self._lock:
            wanted = self._factor * reported_tokens / estimated_tokens
            wanted = min(max(wanted, SMALLEST_FACTOR), LARGEST_FACTOR)
            self._factor += _LEARNING_RATE * (wanted - self._factor)

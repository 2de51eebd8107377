"""How many tokens a model takes, and how they are shared between prompt and reply."""

import hashlib
import json
import math
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from rag.errors import UserError
from rag.seams import TokenCounter
from rag.seams.models import WINDOW_SECONDS
from rag.tokens import ENCODING, count_with, encoding_named

if TYPE_CHECKING:
    from openai import OpenAI
    from tiktoken import Encoding

DEFAULT_WINDOW = 8000
OLLAMA_WINDOW = 4096  # of a model without `num_ctx` that is not loaded yet
SHRINKING = 0.75  # factor for a window that was too large, if the server names none
FLOOR = 1_024  # least guessed window: rules, a question and one source
_BELIEVED_SECONDS = 300.0  # the window in a refusal: servers are restarted, or wrong
_SMALLEST_WINDOW, _LARGEST_WINDOW = 256, 100_000_000  # anything else is a server's mistake
_ASK_AGAIN_SECONDS = 60.0  # after a server did not answer

# In this order: the running server's window, before what the model could take.
_WINDOW_KEYS = ("n_ctx", "max_model_len", "context_length", "max_context_length", "context_window")
_TRAINED_KEYS = ("n_ctx_train",)  # what the model could take at most
_ANSWER_KEYS = ("max_completion_tokens", "max_output_tokens")  # published limits of a reply
_LOADED_KEYS = ("loaded_context_length", "context_length")
_BESIDE = (("/props", ("n_ctx",)), ("/api/v0/models", _LOADED_KEYS), ("/api/ps", _LOADED_KEYS))


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """How a window is shared: after a reserve, a share may be read, the rest written.

    An answer may be as long as its share, unless a limit is set.
    """

    window: int
    input_share: float = 0.6
    reserved: int = 150
    answer_tokens: int | None = None  # limit; None: the whole share
    tools: int = 0  # part of the reserve, for the descriptions of tools

    @property
    def input_tokens(self) -> int:
        """The tokens that all messages together may have."""
        return int(self._usable * self.input_share + 1e-6)

    @property
    def max_tokens(self) -> int:
        """The tokens that the reply may have."""
        share = self._usable - self.input_tokens
        return max(1, share if self.answer_tokens is None else min(self.answer_tokens, share))

    @property
    def _usable(self) -> int:
        return max(0, self.window - self.reserved)


class ModelWindow:
    """The window of one model at one server, asked once and remembered.

    The server's own value counts first, then the published one of the provider's model, then 8000;
    the setting limits each, and is used alone if none is known. A server that does not answer is no
    error: it is asked again a minute later, as is one that has not loaded its model yet.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        configured: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._base_url = base_url
        self._model = model
        self._api_key = api_key
        self._configured = configured
        self._clock = clock
        self._server_tokens: int | None = None
        self._is_sure = False  # False: only the model's maximum is known, not the server's window
        self._answer_limit: int | None = None
        self._refused: int | None = None
        self._is_guess = False  # the refusal named no window
        self._refused_at = 0.0
        self._last_request: float | None = None
        self._asking = threading.Lock()

    def tokens(self, *, guesses: bool = True) -> int:
        """Return the window; never raises, at worst 8000.

        With `guesses`, refusals' guesses count.
        """
        with self._asking:
            now = self._clock()
            is_due = self._last_request is None or now - self._last_request >= _ASK_AGAIN_SECONDS
            if not self._is_sure and is_due:
                self._last_request = now
                self._server_tokens = self._ask_server()
        window = self._server_tokens or self._without_server or self._configured or DEFAULT_WINDOW
        if self._clock() - self._refused_at >= _BELIEVED_SECONDS:
            self._refused = None
        refused = self._refused if guesses or not self._is_guess else None
        return min(cap for cap in (window, self._configured, refused) if cap is not None)

    def published_tokens(self) -> int:
        """Return `tokens` without guesses."""
        return self.tokens(guesses=False)

    def answer_limit(self) -> int | None:
        """Return the limit of a reply that the server publishes, or None."""
        self.tokens()
        return self._answer_limit

    def was_too_small(self, fits: int | None) -> None:
        """Note that the server refused messages as too long, perhaps with the window that fits.

        That holds for some minutes, and a guess has a floor: a server that always refuses would
        leave no room at all.
        """
        now = self.tokens()
        guessed = max(int(now * SHRINKING), min(now, FLOOR))
        self._is_guess = fits is None or fits >= now
        self._refused = guessed if self._is_guess else fits
        self._refused_at = self._clock()

    def _ask_server(self) -> int | None:
        """Return the window the server was started with; else what the model could take."""
        import openai

        client = openai.OpenAI(
            base_url=self._base_url,
            api_key=self._api_key or "none",
            timeout=WINDOW_SECONDS,
            max_retries=0,
        )
        with client:
            try:
                listing = client.models.with_raw_response.list().http_response.text
            except openai.OpenAIError:
                return None
            window = listed_window(listing, self._model)
            self._answer_limit = listed_window(listing, self._model, keys=_ANSWER_KEYS)
            self._is_sure = window is not None or self._published is not None
            could = listed_window(listing, self._model, keys=_TRAINED_KEYS)
            return window if self._is_sure else self._ask_beside(client) or could

    def _ask_beside(self, client: "OpenAI") -> int | None:
        """Return the window from llama.cpp's, LM Studio's and Ollama's own endpoints."""
        import openai

        root = client.with_options(base_url=self._base_url.rstrip("/").removesuffix("/v1"))
        for path, keys in _BESIDE:
            with suppress(openai.OpenAIError, ValueError):
                answer = root.get(path, cast_to=object)
                window = listed_window(answer, self._model, keys=keys, is_named=path != "/props")
                self._is_sure = window is not None
                if window is not None:
                    return window
        named = {"model": self._model, "name": self._model}
        with suppress(openai.OpenAIError, ValueError):
            return _window_of_ollama(root.post("/api/show", body=named, cast_to=object))
        return None

    @cached_property
    def _published(self) -> int | None:
        return published_window(self._model, base_url=self._base_url)

    @cached_property
    def _without_server(self) -> int | None:
        """The published window, which holds only for the provider's own address.

        A local server of the same model is often started with a much smaller window, and the error
        "context too long" is worse than summarising a little early.
        """
        published = self._published
        if published is None and self._configured is None and not _is_local(self._base_url):
            published = published_window(self._model)
        return published


def listed_window(
    listing: object, model: str, *, keys: Sequence[str] = _WINDOW_KEYS, is_named: bool = False
) -> int | None:
    """Return the window of a model in a server's listing, as JSON or as its text.

    A server of one model often lists it under its file's name, unless `is_named`.
    """
    if isinstance(listing, str):
        try:
            listing = json.loads(listing)
        except ValueError:
            return None
    rows = (
        listing.get("data", listing.get("models", [listing]))
        if isinstance(listing, dict)
        else listing
    )
    rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    names = (model, f"{model}:latest")
    named = [row for row in rows if any(row.get(k) in names for k in ("id", "name", "model"))]
    for row in named or (rows if len(rows) == 1 and not is_named else ()):
        holders = [holder for holder in (row, *row.values()) if isinstance(holder, dict)]
        for value in (holder.get(key) for key in keys for holder in holders):
            if isinstance(value, int) and _SMALLEST_WINDOW <= value <= _LARGEST_WINDOW:
                return value
    return None


def _window_of_ollama(shown: object) -> int | None:
    """Return `num_ctx` of its parameters; else Ollama's default, which it does not publish.

    Ollama reports no error for longer messages, and drops their beginning: the rules.
    """
    if not isinstance(shown, dict):
        return None
    chosen = re.search(r"^num_ctx\s+(\d+)", str(shown.get("parameters") or ""), re.MULTILINE)
    if chosen:
        return listed_window({"num_ctx": int(chosen[1])}, "", keys=("num_ctx",))
    keys = [key for key in shown.get("model_info") or () if key.endswith(".context_length")]
    made_for = listed_window({"model_info": shown.get("model_info")}, "", keys=keys)
    return made_for and min(made_for, OLLAMA_WINDOW)


def published_window(model: str, *, base_url: str | None = None) -> int | None:
    """Return the window in the installed price list, of the provider at `base_url`."""
    try:
        from genai_prices.data_snapshot import get_snapshot

        window = get_snapshot().find_provider_model(model, None, None, base_url)[1].context_window
    except (ImportError, LookupError):
        return None
    return window if window and window >= _SMALLEST_WINDOW else None


def _is_local(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    return host in ("localhost", "::1") or host.startswith(("127.", "10.", "192.168.", "172."))


SMALLEST_FACTOR, LARGEST_FACTOR = 0.5, 2.0
_LEARNING_RATE = 0.3
_SMALLEST_SAMPLE = 50  # tokens; in fewer, the protocol's own tokens outweigh the text

# The encoding of the newer OpenAI models, as tiktoken would fetch and cache it.
_O200K_URL = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
_O200K_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"

_UNUSABLE = (
    "The token counter {} of the entry points groundnote.token_counters cannot be used: {}. "
    "It takes a text and returns a whole number; mend it, or remove its package."
)
_CACHED_CHARACTERS = 20_000  # longer texts are not cached


GROUP_OF_COUNTERS = "groundnote.token_counters"
_ANY_MODEL = "*"


def token_counter(model_name: str) -> TokenCounter:
    """Return a counter for the model: that of an installed package, `count(text: str) -> int`.

    A package's counter is the entry point of the group `groundnote.token_counters` that is named as
    the model, or `*`. Otherwise the model's own encoding is used if it is on this machine, else the
    packaged encoding, else characters are counted. The encoding is loaded at the first count;
    nothing is downloaded.

    Raises:
        UserError: a package's counter cannot be used.
    """
    brought = _counter_of_a_package(model_name)

    def count_anew(text: str) -> int:
        return count_with(_encoding_for(model_name), text) if brought is None else brought(text)

    count_cached = lru_cache(maxsize=2048)(count_anew)

    def count(text: str) -> int:
        return count_cached(text) if len(text) <= _CACHED_CHARACTERS else count_anew(text)

    return count


def _counter_of_a_package(model_name: str) -> TokenCounter | None:
    points = {point.name: point for point in entry_points(group=GROUP_OF_COUNTERS)}
    point = points.get(model_name) or points.get(_ANY_MODEL)
    if point is None:
        return None
    try:
        counter = point.load()
        tokens = counter("How many tokens has this?")
    except Exception as error:  # a package may raise anything
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
        return encoding_named(_model_encoding(model_name))
    except ImportError:
        return None


def _model_encoding(model_name: str) -> str:
    """Return the model's own encoding if it needs no network, else the packaged one.

    The packaged one is `cl100k_base` under another name, so only `o200k` must be looked for.
    """
    from tiktoken.model import encoding_name_for_model

    try:
        name = encoding_name_for_model(model_name.rpartition("/")[2].lower())
    except KeyError:
        return ENCODING
    return name if name.startswith("o200k") and _o200k_is_here() else ENCODING


def _o200k_is_here() -> bool:
    """Return whether tiktoken's cache holds the complete file; otherwise it would download it."""
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder is None:
        folder = str(Path(tempfile.gettempdir()) / "data-gym-cache")
    if not folder:  # empty: tiktoken has no cache and would download
        return False
    cached = Path(folder) / hashlib.sha1(_O200K_URL.encode()).hexdigest()
    try:
        return hashlib.sha256(cached.read_bytes()).hexdigest() == _O200K_SHA256
    except OSError:
        return False


class CalibratedCounter:
    """A counter that learns from a server's reported usage how far its estimates are off."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self.factor = 1.0  # of estimates: 0.5 to 2
        self._lock = threading.Lock()

    def __call__(self, text: str) -> int:
        return math.ceil(self._counter(text) * self.factor)

    def learn(self, *, estimated_tokens: int, reported_tokens: int) -> None:
        """Learn from the reported tokens of a text that was estimated with the present factor."""
        if estimated_tokens < _SMALLEST_SAMPLE or reported_tokens <= 0:
            return
        with self._lock:
            wanted = self.factor * reported_tokens / estimated_tokens
            wanted = min(max(wanted, SMALLEST_FACTOR), LARGEST_FACTOR)
            self.factor += _LEARNING_RATE * (wanted - self.factor)

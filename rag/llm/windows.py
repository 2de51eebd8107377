"""How many tokens a model takes, and how they are shared between what it reads and writes."""

import json
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo
    from openai import OpenAI

DEFAULT_WINDOW = 8000
OLLAMA_WINDOW = 4096  # of a model that is not loaded yet and was given no `num_ctx`
SHRINKING = 0.75  # of a window that was too large, where nobody says what fits
_SMALLEST_WINDOW, _LARGEST_WINDOW = 256, 100_000_000  # anything else is a server's mistake
_ASK_AGAIN_SECONDS = 60.0  # after a server that was absent
_ASK_TIMEOUT_SECONDS = 5.0

Paths = Sequence[tuple[str, ...]]

# In this order: what a running server was started with says more than what the model could do.
_WINDOW_KEYS = (
    ("meta", "n_ctx"),
    ("max_model_len",),
    ("context_length",),
    ("max_context_length",),
    ("context_window",),
)
_TRAINED_KEYS = (("meta", "n_ctx_train"),)  # what the model could take, if it were started so


@dataclass(frozen=True, slots=True)
class Budget:
    """How a window is shared: what may be written, a reserve for overhead, the rest may be read.

    An answer takes what it needs, in a small window never more than the share that is not input's.
    """

    window: int
    input_share: float = 0.6
    reserved: int = 150
    answer_tokens: int = 1500
    tools: int = 0  # of the reserve, for their description

    @property
    def input_tokens(self) -> int:
        """What all messages together may have."""
        return max(0, self.window - self.max_tokens - self.reserved)

    @property
    def max_tokens(self) -> int:
        """What the reply may have."""
        share = int(self.window * (1 - self.input_share) + 1e-6)
        return max(1, min(self.answer_tokens, share))


class ModelWindow:
    """The window of one model at one server, found out once and remembered.

    The server's own word counts first, then what is published about the provider's models, then
    8000; the setting is a cap on each, and stands alone where nobody knows. An absent server is no
    error: it is asked again a minute later, and so is one that has not loaded its model yet.
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
        self._told: int | None = None
        self._is_sure = False  # what a model could take says little of how it was started
        self._refused: int | None = None
        self._asked_at: float | None = None
        self._asking = threading.Lock()

    def tokens(self) -> int:
        """Never raises; at worst 8000."""
        with self._asking:
            if not self._is_sure and self._may_ask():
                self._asked_at = self._clock()
                self._told = self._ask_server()
        found = self._told or self._without_server() or self._configured or DEFAULT_WINDOW
        return min(cap for cap in (found, self._configured, self._refused) if cap is not None)

    def was_too_small(self, fits: int | None) -> None:
        """The server refused messages as too long; perhaps it said what fits."""
        now = self.tokens()
        self._refused = fits if fits is not None and fits < now else int(now * SHRINKING)

    def _may_ask(self) -> bool:
        return self._asked_at is None or self._clock() - self._asked_at >= _ASK_AGAIN_SECONDS

    def _ask_server(self) -> int | None:
        """What it was started with, wherever it says so; else what the model could take."""
        import openai

        client = openai.OpenAI(
            base_url=self._base_url,
            api_key=self._api_key or "none",
            timeout=_ASK_TIMEOUT_SECONDS,
            max_retries=0,
        )
        with client:
            try:
                listing = client.models.with_raw_response.list().http_response.text
            except openai.OpenAIError:
                return None
            told = window_told(listing, self._model)
            self._is_sure = told is not None or self._published() is not None
            could = window_told(listing, self._model, keys=_TRAINED_KEYS)
            return told if self._is_sure else self._ask_beside(client) or could

    def _ask_beside(self, client: "OpenAI") -> int | None:
        """What llama.cpp, LM Studio and Ollama tell beside the protocol."""
        root = client.with_options(base_url=self._base_url.rstrip("/").removesuffix("/v1"))
        props = _answer_of(lambda: root.get("/props", cast_to=object))
        window = _first_window(props, (("default_generation_settings", "n_ctx"), ("n_ctx",)))
        self._is_sure = window is not None
        if window is not None:
            return window
        for path, key in (("/api/v0/models", "data"), ("/api/ps", "models")):  # what is loaded
            loaded = _answer_of(lambda path=path: root.get(path, cast_to=object))  # type: ignore[misc]
            window = _loaded_window(loaded, key, self._model)
            self._is_sure = window is not None
            if window is not None:
                return window
        named = {"model": self._model, "name": self._model}
        return _window_of_ollama(
            _answer_of(lambda: root.post("/api/show", body=named, cast_to=object))
        )

    def _published(self) -> int | None:
        return published_window(self._model, base_url=self._base_url)

    def _without_server(self) -> int | None:
        """Published windows hold for the provider's own address only.

        A local server of the same model is often started with a much smaller window, and to be
        told "context too long" is worse than to summarise a little early.
        """
        published = self._published()
        if published is None and self._configured is None and not _is_local(self._base_url):
            published = published_window(self._model)
        return published


def window_told(listing: str, model: str, *, keys: Paths = _WINDOW_KEYS) -> int | None:
    """The window of a model in the text of `/v1/models`, where the server tells."""
    try:
        found = json.loads(listing)
    except ValueError:
        return None
    rows = found.get("data") if isinstance(found, dict) else found
    if not isinstance(rows, list):
        return None
    rows = [row for row in rows if isinstance(row, dict)]
    named = [row for row in rows if row.get("id") == model]
    # A server of one model often calls it by its file's name.
    candidates = named or (rows if len(rows) == 1 else [])
    found = (_first_window(row, keys) for row in candidates)
    return next((window for window in found if window is not None), None)


def _first_window(told: object, paths: Paths) -> int | None:
    for path in paths:
        value: Any = told
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, int) and _SMALLEST_WINDOW <= value <= _LARGEST_WINDOW:
            return value
    return None


def _answer_of(ask: Callable[[], object]) -> object:
    """What a server says where most have nothing to say; None for anything unexpected."""
    import openai

    try:
        return ask()
    except (openai.OpenAIError, ValueError):
        return None


def _loaded_window(listing: object, key: str, model: str) -> int | None:
    """The window with which a server has loaded the model; it may be far below the model's own."""
    rows = listing.get(key) if isinstance(listing, dict) else None
    for row in rows if isinstance(rows, list) else ():
        names = (
            {row.get(key) for key in ("id", "name", "model")} if isinstance(row, dict) else set()
        )
        if names & {model, f"{model}:latest"}:
            return _first_window(row, (("loaded_context_length",), ("context_length",)))
    return None


def _window_of_ollama(shown: object) -> int | None:
    """`num_ctx` of its parameters; else what Ollama loads by itself, which no model tells.

    It says nothing when messages are longer, and leaves out their beginning: the rules.
    """
    if not isinstance(shown, dict):
        return None
    chosen = re.search(r"^num_ctx\s+(\d+)", str(shown.get("parameters") or ""), re.MULTILINE)
    if chosen:
        return _first_window({"num_ctx": int(chosen[1])}, (("num_ctx",),))
    about = shown.get("model_info")
    keys = [key for key in about if key.endswith(".context_length")] if about else []
    made_for = _first_window(about, [(key,) for key in keys])
    return made_for and min(made_for, OLLAMA_WINDOW)


def published_window(model: str, *, base_url: str | None = None) -> int | None:
    """The window in the price list that is installed with us, of the provider at `base_url`."""
    info = _price_list_entry(model, base_url)
    window = info.context_window if info is not None else None
    return window if window and window >= _SMALLEST_WINDOW else None


def _price_list_entry(model: str, base_url: str | None) -> "ModelInfo | None":
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:
        return None
    try:
        _, info = get_snapshot().find_provider_model(model, None, None, base_url)
    except LookupError:
        return None
    return info


def _is_local(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    return host in ("localhost", "::1") or host.startswith(("127.", "10.", "192.168.", "172."))

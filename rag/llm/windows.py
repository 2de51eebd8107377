"""How many tokens a model takes, and how they are shared between what it reads and writes."""

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo

DEFAULT_WINDOW = 8000
_SMALLEST_WINDOW, _LARGEST_WINDOW = 256, 100_000_000  # anything else is a server's mistake
_ASK_AGAIN_SECONDS = 60.0  # after a server that was absent
_ASK_TIMEOUT_SECONDS = 5.0

# In this order: what a running server was started with says more than what the model could do.
_WINDOW_KEYS = (
    ("meta", "n_ctx"),
    ("max_model_len",),
    ("context_length",),
    ("max_context_length",),
    ("context_window",),
    ("meta", "n_ctx_train"),
)


@dataclass(frozen=True, slots=True)
class Budget:
    """How a window is shared: what may be read, what may be written, and a reserve for overhead."""

    window: int
    input_share: float = 0.6
    reserved: int = 150

    @property
    def input_tokens(self) -> int:
        """What all messages together may have."""
        return max(0, int(self.window * self.input_share) - self.reserved)

    @property
    def max_tokens(self) -> int:
        """What the reply may have."""
        return max(1, int(self.window * (1 - self.input_share) + 1e-6))


class ModelWindow:
    """The window of one model at one server, found out once and remembered.

    The server's own word counts first, then what is published about the provider's models, then the
    setting, then 8000. An absent server is no error: it is asked again a minute later.
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
        self._asked_at: float | None = None
        self._asking = threading.Lock()

    def tokens(self) -> int:
        """Never raises; at worst 8000."""
        with self._asking:
            if self._told is None and self._may_ask():
                self._asked_at = self._clock()
                self._told = self._ask_server()
        return self._told or self._without_server()

    def _may_ask(self) -> bool:
        return self._asked_at is None or self._clock() - self._asked_at >= _ASK_AGAIN_SECONDS

    def _ask_server(self) -> int | None:
        import openai

        client = openai.OpenAI(
            base_url=self._base_url,
            api_key=self._api_key or "none",
            timeout=_ASK_TIMEOUT_SECONDS,
            max_retries=0,
        )
        try:
            with client:
                listing = client.models.with_raw_response.list().http_response.text
        except openai.OpenAIError:
            return None
        return window_told(listing, self._model)

    def _without_server(self) -> int:
        """Published windows hold for the provider's own address only.

        A local server of the same model is often started with a much smaller window, and to be
        told "context too long" is worse than to summarise a little early.
        """
        published = published_window(self._model, base_url=self._base_url)
        if published is None and self._configured is None and not _is_local(self._base_url):
            published = published_window(self._model)
        return published or self._configured or DEFAULT_WINDOW


def window_told(listing: str, model: str) -> int | None:
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
    return next((window for row in candidates for window in _windows_in(row)), None)


def _windows_in(row: Mapping[str, Any]) -> Iterable[int]:
    for path in _WINDOW_KEYS:
        value: Any = row
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, int) and _SMALLEST_WINDOW <= value <= _LARGEST_WINDOW:
            yield value


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

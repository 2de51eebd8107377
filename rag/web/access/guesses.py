"""Bounds the guessing of tokens without locking anybody out who has one."""

import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

from rag.calm import tell
from rag.errors import SetupError

log = logging.getLogger(__name__)
WRONG_PER_MINUTE = 10  # from one address
PATIENCE = {"socket_timeout": 2, "socket_connect_timeout": 2}  # with counters that are away
WINDOW_SECONDS = 60.0
REMEMBERED = 10_000  # addresses, and tokens that were right


class Guesses:
    """Counts wrong tokens by address; a token that was right before is never held up.

    So a guesser behind a shared address slows down only those there who come for the first time.
    """

    def __init__(self, *, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()
        self._right: OrderedDict[str, None] = OrderedDict()

    def wait_seconds(self, address: str, token_digest: str) -> float:
        """How long this caller has to wait before the token is even looked at; 0 for most."""
        with self._lock:
            if token_digest in self._right:
                return 0.0
            wrong = self._recent(network_of(address))
            if len(wrong) < WRONG_PER_MINUTE:
                return 0.0
            return wrong[0] + WINDOW_SECONDS - self._now()

    def was_wrong(self, address: str) -> None:
        """Count one against the address."""
        network = network_of(address)
        with self._lock:
            self._wrong.setdefault(network, deque(maxlen=WRONG_PER_MINUTE)).append(self._now())
            _forget_oldest(self._wrong, network)

    def is_right(self, token_digest: str) -> bool:
        """Whether it was right before, here."""
        with self._lock:
            return token_digest in self._right

    def was_right(self, token_digest: str) -> None:
        """Remember a token that is known, by its digest."""
        with self._lock:
            self._right[token_digest] = None
            _forget_oldest(self._right, token_digest)

    def _recent(self, network: str) -> deque[float]:
        wrong = self._wrong.get(network, deque())
        while wrong and wrong[0] <= self._now() - WINDOW_SECONDS:
            wrong.popleft()
        return wrong


class SharedGuesses(Guesses):
    """Counts together with the other processes; while their counters are away, for itself."""

    def __init__(self, url: str) -> None:
        """Raises SetupError."""
        super().__init__()
        from limits import RateLimitItemPerMinute
        from limits.errors import ConfigurationError
        from limits.storage import storage_from_string
        from limits.strategies import MovingWindowRateLimiter

        patience = PATIENCE if url.startswith("redis") else {}
        try:
            self._counters = MovingWindowRateLimiter(storage_from_string(url, **patience))
        except ConfigurationError as error:
            raise SetupError(
                f"web.rate_limit_storage is no place for counters ({error})."
            ) from error
        self._allowed = RateLimitItemPerMinute(WRONG_PER_MINUTE, namespace="groundnote-guesses")

    def wait_seconds(self, address: str, token_digest: str) -> float:
        own = super().wait_seconds(address, token_digest)
        if own or self.is_right(token_digest):
            return own
        network = network_of(address)
        try:
            if self._counters.test(self._allowed, network):
                return 0.0
            ends_at = self._counters.get_window_stats(self._allowed, network).reset_time
        except Exception as error:  # noqa: BLE001 - whatever a store of counters raises
            tell(log, "Wrong tokens are counted by each process alone", error)
            return 0.0
        return max(0.0, ends_at - time.time())

    def was_wrong(self, address: str) -> None:
        super().was_wrong(address)
        try:
            self._counters.hit(self._allowed, network_of(address))
        except Exception as error:  # noqa: BLE001 - whatever a store of counters raises
            tell(log, "Wrong tokens are counted by each process alone", error)


def _forget_oldest(kept: OrderedDict[str, Any], newest: str) -> None:
    kept.move_to_end(newest)
    while len(kept) > REMEMBERED:
        kept.popitem(last=False)


def network_of(address: str) -> str:
    """Who has one IPv6 address has 2⁶⁴ of them."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        return str(ip_network((parsed, 64), strict=False))
    return address

"""Bounds the guessing of tokens without locking anybody out who has one."""

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

WRONG_PER_MINUTE = 10  # from one address
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
            wrong = self._recent(_network_of(address))
            if len(wrong) < WRONG_PER_MINUTE:
                return 0.0
            return wrong[0] + WINDOW_SECONDS - self._now()

    def was_wrong(self, address: str) -> None:
        """Count one against the address."""
        network = _network_of(address)
        with self._lock:
            self._wrong.setdefault(network, deque(maxlen=WRONG_PER_MINUTE)).append(self._now())
            _forget_oldest(self._wrong, network)

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


def _forget_oldest(kept: OrderedDict[str, Any], newest: str) -> None:
    kept.move_to_end(newest)
    while len(kept) > REMEMBERED:
        kept.popitem(last=False)


def _network_of(address: str) -> str:
    """Who has one IPv6 address has 2⁶⁴ of them."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        return str(ip_network((parsed, 64), strict=False))
    return address

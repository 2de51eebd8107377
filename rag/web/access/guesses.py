"""Bounds the guessing of tokens without locking anybody out who has one."""

import threading
from collections import OrderedDict
from functools import cached_property
from ipaddress import IPv6Address, ip_network
from typing import TYPE_CHECKING

from werkzeug.exceptions import TooManyRequests

from rag.web.access.counters import NOWHERE, Counters
from rag.wiring.listeners import address_of

if TYPE_CHECKING:
    from limits import RateLimitItem

WRONG_PER_MINUTE = 10  # from one address
REMEMBERED = 10_000  # tokens that were right


class GuessCounter:
    """Counts wrong tokens by address; a token that was right before is never held up.

    So a guesser behind a shared address slows down only those there who come for the first time.
    """

    def __init__(self, counters: str = NOWHERE) -> None:
        """Raises SetupError."""
        self._counters = Counters(counters)
        self._lock = threading.Lock()
        self._right: OrderedDict[str, None] = OrderedDict()

    @cached_property
    def _allowed(self) -> "RateLimitItem":
        from limits import RateLimitItemPerMinute

        return RateLimitItemPerMinute(WRONG_PER_MINUTE, namespace="groundnote-guesses")

    def refuse_many(self, address: str, token_digest: str) -> None:
        """Raises TooManyRequests before the token is even looked at."""
        wait = self.wait_seconds(address, token_digest)
        if wait > 0:
            raise TooManyRequests(
                "Too many unknown tokens came from this address. Wait a minute and try again.",
                retry_after=int(wait) + 1,
            )

    def wait_seconds(self, address: str, token_digest: str) -> float:
        """How long this caller has to wait; 0 for most."""
        with self._lock:
            if token_digest in self._right:
                return 0.0
        return self._counters.wait_seconds(self._allowed, network_of(address))

    def was_wrong(self, address: str) -> None:
        """Count one against the address."""
        self._counters.count(self._allowed, network_of(address))

    def was_right(self, token_digest: str) -> None:
        """Remember a token that is known, by its digest."""
        with self._lock:
            self._right[token_digest] = None
            self._right.move_to_end(token_digest)
            while len(self._right) > REMEMBERED:
                self._right.popitem(last=False)


def network_of(address: str) -> str:
    """Who has one IPv6 address has 2⁶⁴ of them."""
    parsed = address_of(address)
    if isinstance(parsed, IPv6Address):
        return str(ip_network((parsed, 64), strict=False))
    return str(parsed or address)

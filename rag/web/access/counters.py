"""Counters of what each caller did in the last minutes.

All processes count together if a store of counters is configured. Each process also counts by
itself, so that requests are still served, and guesses of tokens still limited, while that store
cannot be reached.
"""

import logging
import threading
import time
from collections import OrderedDict
from functools import cached_property, partial
from ipaddress import IPv6Address, ip_network
from typing import TYPE_CHECKING

from werkzeug.exceptions import TooManyRequests

from rag.errors import SetupError
from rag.runtime.error_log import log_throttled
from rag.runtime.shared import SCHEME, SharedObject
from rag.settings import Settings
from rag.wiring.listeners import address_of

if TYPE_CHECKING:
    from limits import RateLimitItem
    from limits.strategies import MovingWindowRateLimiter

NOWHERE = "memory://"  # each process counts by itself
WAIT_SECONDS = 2.0  # for a call to the process that has the shared counters
PATIENCE = {"socket_timeout": 2, "socket_connect_timeout": 2}  # for a Redis that does not answer
log = logging.getLogger(__name__)


def place_of_counters(settings: Settings) -> str:
    """Return the URL of the store: the configured one, else the Redis of the jobs."""
    named = settings.web.rate_limit_storage
    return settings.jobs.url or NOWHERE if named == NOWHERE else named


class Counters:
    """Moving windows of requests, by limit and caller."""

    def __init__(self, url: str = NOWHERE) -> None:
        """Raises SetupError."""
        self._together = None if url == NOWHERE else limiter(url)

    @cached_property
    def _alone(self) -> "MovingWindowRateLimiter | SharedCounters":
        return limiter()

    def count(self, allowed: "RateLimitItem", who: str) -> bool:
        """Count one request of `who`, and return whether the limit allows it."""
        is_allowed = self._alone.hit(allowed, who)
        try:
            if self._together is not None:
                return bool(self._together.hit(allowed, who)) and is_allowed
        except Exception as error:  # noqa: BLE001 - whatever a store of counters raises
            log_throttled(log, "Each process counts alone", error)
        return is_allowed

    def wait_seconds(self, allowed: "RateLimitItem", who: str) -> float:
        """Return the seconds until the limit allows one more request; mostly 0."""
        wait = _seconds_until_free(self._alone, allowed, who)
        try:
            if self._together is not None:
                return max(wait, _seconds_until_free(self._together, allowed, who))
        except Exception as error:  # noqa: BLE001 - whatever a store of counters raises
            log_throttled(log, "Each process counts alone", error)
        return wait


class SharedCounters:
    """The counters in the process that all workers of a server share."""

    def __init__(self, url: str) -> None:
        counters = SharedObject(url, "counters")
        self.hit = partial(counters.call, "hit", seconds=WAIT_SECONDS)
        self.test = partial(counters.call, "test", seconds=WAIT_SECONDS)
        self.get_window_stats = partial(counters.call, "get_window_stats", seconds=WAIT_SECONDS)


def limiter(url: str = NOWHERE) -> "MovingWindowRateLimiter | SharedCounters":
    """Return a limiter over the store at `url`. Raises SetupError."""
    if url.startswith(SCHEME):
        return SharedCounters(url)
    from limits.errors import ConfigurationError
    from limits.storage import storage_from_string
    from limits.strategies import MovingWindowRateLimiter

    patience = PATIENCE if url.startswith("redis") else {}
    try:
        return MovingWindowRateLimiter(storage_from_string(url, **patience))
    except ConfigurationError as error:
        raise SetupError(
            f"web.rate_limit_storage is no place for counters ({error}). Expected memory:// or a "
            "URL such as redis://127.0.0.1:6379/1."
        ) from error


def _seconds_until_free(
    counted: "MovingWindowRateLimiter | SharedCounters", allowed: "RateLimitItem", who: str
) -> float:
    if counted.test(allowed, who):
        return 0.0
    return max(0.001, counted.get_window_stats(allowed, who).reset_time - time.time())


WRONG_PER_MINUTE = 10  # wrong tokens from one network
REMEMBERED = 10_000  # known tokens that are kept, by digest


class GuessCounter:
    """Counts wrong tokens by address; a token that was right before never has to wait.

    So somebody who guesses from behind a shared address slows down only callers of that address who
    use their token for the first time.
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
        """Raise TooManyRequests if this caller has to wait, before the token is looked up."""
        wait = self.wait_seconds(address, token_digest)
        if wait > 0:
            raise TooManyRequests(
                "Too many unknown tokens came from this address. Wait a minute and try again.",
                retry_after=int(wait) + 1,
            )

    def wait_seconds(self, address: str, token_digest: str) -> float:
        """Return the seconds that this caller has to wait; mostly 0."""
        with self._lock:
            if token_digest in self._right:
                return 0.0
        return self._counters.wait_seconds(self._allowed, network_of(address))

    def was_wrong(self, address: str) -> None:
        """Count a wrong token against the address."""
        self._counters.count(self._allowed, network_of(address))

    def was_right(self, token_digest: str) -> None:
        """Remember the digest of a token that is known."""
        with self._lock:
            self._right[token_digest] = None
            self._right.move_to_end(token_digest)
            while len(self._right) > REMEMBERED:
                self._right.popitem(last=False)


def network_of(address: str) -> str:
    """Return the network that is counted: an IPv6 address's /64, which one caller has."""
    parsed = address_of(address)
    if isinstance(parsed, IPv6Address):
        return str(ip_network((parsed, 64), strict=False))
    return str(parsed or address)

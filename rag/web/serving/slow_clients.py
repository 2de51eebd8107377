"""The HTTP server: requests are read whole, and answers sent, without a thread that waits for it.

waitress does the reading and sending in one loop. What it lacks are deadlines for clients that send
or read a little at a time, which would hold sockets and memory for ever.
"""

import resource
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from waitress.channel import HTTPChannel
from waitress.server import TcpWSGIServer

CONNECTIONS = 2_000
HEADER_SECONDS = 15  # for the whole head of a request
BODY_SECONDS = 30  # for a body, and a second more …
BODY_BYTES_PER_SECOND = 10_000  # … for each of these
UNREAD_SECONDS = 30  # while a client takes nothing of what is there for it
IDLE_SECONDS = 60  # between two requests of a connection
SWEEP_SECONDS = 2


class Channel(HTTPChannel):  # type: ignore[misc]
    """A connection that knows since when a request is on its way in."""

    request_since: float | None = None
    request_bytes = 0

    def received(self, data: bytes) -> Any:
        if self.request_since is None:
            self.request_since, self.request_bytes = time.time(), 0
        self.request_bytes += len(data)
        taken = super().received(data)
        if self.request is None:  # whole: it is being answered
            self.request_since = None
        return taken

    def is_overdue(self, now: float) -> bool:
        """Whether its client had all the time that it can have."""
        if self.total_outbufs_len and self.last_activity < now - UNREAD_SECONDS:
            return True
        if self.request_since is None or self.request is None:
            return False
        allowed = float(HEADER_SECONDS)
        if self.request.headers_finished:
            allowed = BODY_SECONDS + self.request_bytes / BODY_BYTES_PER_SECOND
        return self.request_since < now - allowed


class DeadlineServer(TcpWSGIServer):  # type: ignore[misc]
    """waitress, with an end to the patience."""

    channel_class = Channel

    def maintenance(self, now: float) -> None:
        super().maintenance(now)
        for channel in list(self.active_channels.values()):
            if channel.is_overdue(now):
                channel.will_close = True


def open_server(
    app: Callable[..., Any], host: str, port: int, *, threads: int, max_body_bytes: int
) -> DeadlineServer:
    """A server that listens; `run` serves until it is closed."""
    _allow_sockets(CONNECTIONS + 200)
    return DeadlineServer(
        app,
        host=host,
        port=port,
        threads=threads,
        connection_limit=CONNECTIONS,
        asyncore_use_poll=True,
        asyncore_loop_timeout=1,
        backlog=1024,
        channel_timeout=IDLE_SECONDS,
        cleanup_interval=SWEEP_SECONDS,
        channel_request_lookahead=1,  # so that a client that leaves is seen while it is answered
        max_request_body_size=max_body_bytes,
        clear_untrusted_proxy_headers=False,
        ident=None,
    )


def _allow_sockets(wanted: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft < allowed:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))

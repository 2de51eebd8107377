"""The HTTP server: requests are read whole, and answers sent, without a thread that waits for it.

waitress does the reading and sending in one loop. What it lacks are deadlines for clients that send
or read a little at a time, which would hold sockets and memory for ever.
"""

import resource
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.server import TcpWSGIServer

CONNECTIONS = 2_000
BACKLOG = 1_024  # connections that wait for any process
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

    @property
    def _is_local(self) -> bool:
        return bool(self.family == socket.AF_UNIX)

    def getsockname(self) -> tuple[str, str]:
        """As logs say it."""
        return ("unix", "") if self._is_local else super().getsockname()

    def set_socket_options(self, conn: socket.socket) -> None:
        """Those of TCP, where it is."""
        if not self._is_local:
            super().set_socket_options(conn)

    def fix_addr(self, addr: Any) -> Any:
        """A peer at a Unix socket is on this machine."""
        return ("localhost", None) if self._is_local else addr

    def run(self) -> None:
        """Serve until SystemExit; what is under way then goes on in `finish`."""
        with suppress(SystemExit, KeyboardInterrupt):
            self._loop()

    def finish(self, is_writing: Callable[[], bool], *, seconds: float) -> None:
        """Take no new connection; let requests that came, and answers that are written, end."""
        wasyncore.dispatcher.close(self)  # other processes may go on listening
        until = time.monotonic() + seconds
        while (self._is_busy() or is_writing()) and time.monotonic() < until:
            self._loop(turns=1)
        self.task_dispatcher.shutdown(timeout=1)
        self.trigger.close()

    def _is_busy(self) -> bool:
        channels = list(self.active_channels.values())
        return any(channel.requests or channel.total_outbufs_len for channel in channels)

    def _loop(self, turns: int | None = None) -> None:
        wasyncore.loop(timeout=1, map=self._map, use_poll=True, count=turns)

    def maintenance(self, now: float) -> None:
        super().maintenance(now)
        for channel in list(self.active_channels.values()):
            if channel.is_overdue(now):
                channel.will_close = True


def open_server(
    app: Callable[..., Any], listener: socket.socket, *, threads: int, max_body_bytes: int
) -> DeadlineServer:
    """A server over a socket that listens; `run` serves until it is told to end."""
    _allow_sockets(CONNECTIONS + 200)
    return DeadlineServer(
        app,
        _sock=listener,
        bind_socket=False,
        sockinfo=(listener.family, listener.type, listener.proto, listener.getsockname()),
        threads=threads,
        connection_limit=CONNECTIONS,
        backlog=BACKLOG,
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

"""The HTTP server: waitress with deadlines, several worker processes, and the log as JSON.

waitress reads and sends in one loop, so that a slow request holds no thread. It lacks deadlines for
clients that send or read a little at a time, which would hold sockets and memory for ever.
"""

import ctypes
import json
import logging
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.server import TcpWSGIServer

from rag.errors import RagError, SetupError
from rag.runtime.error_log import ERRORS

CONNECTIONS = 2_000
BACKLOG = 1_024  # connections that wait for any process
HEADER_SECONDS = 15  # for the whole head of a request
BODY_SECONDS = 30  # for a body, and a second for each …
BODY_BYTES_PER_SECOND = 10_000  # … so many bytes
UNREAD_SECONDS = 30  # while a client reads nothing of its response
IDLE_SECONDS = 60  # between two requests of a connection
SWEEP_SECONDS = 2


class Channel(HTTPChannel):  # type: ignore[misc]
    """A connection that knows since when it is receiving a request."""

    request_since: float | None = None
    request_bytes = 0

    def received(self, data: bytes) -> Any:
        if self.request_since is None:
            self.request_since, self.request_bytes = time.time(), 0
        self.request_bytes += len(data)
        taken = super().received(data)
        if self.request is None:  # complete: it is being answered
            self.request_since = None
        return taken

    def is_overdue(self, now: float) -> bool:
        """Return whether the client has used all the time that it may take."""
        if self.total_outbufs_len and self.last_activity < now - UNREAD_SECONDS:
            return True
        if self.request_since is None or self.request is None:
            return False
        allowed = float(HEADER_SECONDS)
        if self.request.headers_finished:
            allowed = BODY_SECONDS + self.request_bytes / BODY_BYTES_PER_SECOND
        return self.request_since < now - allowed


class DeadlineServer(TcpWSGIServer):  # type: ignore[misc]
    """waitress, with deadlines for its connections."""

    channel_class = Channel

    @property
    def _is_local(self) -> bool:
        return bool(self.family == socket.AF_UNIX)

    def getsockname(self) -> tuple[str, str]:
        """Return the address as the log shows it."""
        return ("unix", "") if self._is_local else super().getsockname()

    def set_socket_options(self, conn: socket.socket) -> None:
        """Set the options of TCP, unless this is a Unix socket."""
        if not self._is_local:
            super().set_socket_options(conn)

    def fix_addr(self, addr: Any) -> Any:
        """Return the peer's address; a peer at a Unix socket is on this machine."""
        return ("localhost", None) if self._is_local else addr

    def run(self) -> None:
        """Serve until SystemExit; `finish` then ends what has begun."""
        with suppress(SystemExit, KeyboardInterrupt):
            self._loop()

    def finish(self, is_writing: Callable[[], bool], *, seconds: float) -> None:
        """Accept no more connections; wait at most `seconds` for requests and answers to end."""
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
    """Create a server over a socket that listens; its `run` serves until SystemExit."""
    allow_sockets()
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


def allow_sockets(wanted: int = CONNECTIONS + 200) -> None:
    """Raise the limit of open sockets to `wanted`, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft < allowed:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


WATCHED = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)
LOOK_SECONDS = 0.5
HEALTHY_SECONDS = 10.0  # a worker that ran so long had no fault at its start
LONGEST_PAUSE_SECONDS = 30.0
REFUSED = 3  # the status of a worker that cannot begin
PR_SET_PDEATHSIG = 1  # of linux/prctl.h
Work = Callable[[int], None]  # its argument is the number of the worker, from 0
SHARED = -1  # the number of the process that all workers call

log = logging.getLogger(__name__)


@dataclass(slots=True)
class WorkerSlot:
    """One worker, or the shared process, across all its restarts."""

    number: int
    pid: int | None = None
    began_at: float = 0.0
    due_at: float = 0.0  # time of the next start
    failures: int = 0


@dataclass(slots=True)
class Fleet:
    """Runs `work` in several processes until a signal ends all of them.

    The shared process starts before the workers, and ends when the last of them has ended.
    """

    work: Work
    shared: WorkerSlot
    workers: list[WorkerSlot]
    is_stopping: bool = False
    has_settled: bool = False
    signals_before: set[int | signal.Signals] = field(default_factory=set)

    def run(self) -> None:
        """Run until all workers have ended. Raises SetupError if none can start."""
        self.signals_before = signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
        try:
            while not self.is_stopping or any(place.pid for place in self.workers):
                now = time.monotonic()
                for place in (self.shared, *self.workers):
                    if place.pid is None and not self.is_stopping and now >= place.due_at:
                        place.pid, place.began_at = self._fork(place.number), now
                signalled = signal.sigtimedwait(WATCHED, LOOK_SECONDS)
                if signalled is not None and signalled.si_signo != signal.SIGCHLD:
                    self._stop()
                self._bury_dead()
        finally:
            _end(self.shared)
            if self.shared.pid is not None:
                os.waitpid(self.shared.pid, 0)
            signal.pthread_sigmask(signal.SIG_SETMASK, self.signals_before)

    def _stop(self) -> None:
        """Send SIGTERM to the workers. A second one ends them before their answers have ended."""
        self.is_stopping = True
        for place in self.workers:
            _end(place)

    def _bury_dead(self) -> None:
        for place in (self.shared, *self.workers):
            if place.pid is None:
                continue
            pid, status = os.waitpid(place.pid, os.WNOHANG)
            if pid:
                self._replace(place, os.waitstatus_to_exitcode(status))

    def _replace(self, place: WorkerSlot, status: int) -> None:
        """Schedule the next start of a worker, with a longer pause each time it fails soon."""
        lived = time.monotonic() - place.began_at
        self.has_settled = self.has_settled or lived > HEALTHY_SECONDS
        pid, place.pid = place.pid, None
        if self.is_stopping:
            return
        if status == REFUSED and not self.has_settled:
            self._stop()
            raise SetupError("The server ends, because its workers cannot begin.")
        place.failures = 0 if lived > HEALTHY_SECONDS else place.failures + 1
        pause = min(LONGEST_PAUSE_SECONDS, 2.0**place.failures - 1)
        place.due_at = time.monotonic() + pause
        log.warning(
            "worker %d (process %d) ended with %d; it is replaced", place.number, pid, status
        )

    def _fork(self, number: int) -> int:
        above = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        status = 1
        try:
            # End with the supervisor, without which nothing stops or restarts this worker.
            with suppress(OSError, AttributeError):  # another system
                ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != above:
                os._exit(0)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor sends SIGTERM
            signal.pthread_sigmask(signal.SIG_SETMASK, self.signals_before)
            self.work(number)
            status = 0
        except RagError as error:
            print(f"Error: {error}", file=sys.stderr)  # noqa: T201
            status = REFUSED
        except BaseException as error:  # noqa: BLE001 - the outermost edge of a process
            print(f"Error: {ERRORS.report(error)}", file=sys.stderr)  # noqa: T201
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)


def _end(place: WorkerSlot) -> None:
    if place.pid is not None:
        with suppress(ProcessLookupError):
            os.kill(place.pid, signal.SIGTERM)


def run_fleet(work: Work, count: int) -> None:
    """Run `work` in `count` processes and a shared one (see Fleet.run)."""
    Fleet(work, WorkerSlot(SHARED), [WorkerSlot(number) for number in range(count)]).run()


class JsonLines(logging.Formatter):
    """Formats a record as a line of JSON; a traceback is a text in it, without local variables."""

    def format(self, record: logging.LogRecord) -> str:
        event = {
            "event": record.getMessage(),
            "error": getattr(record, "error", None),
            "logger": record.name,
            "level": record.levelname.lower(),
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "exception": self.formatException(record.exc_info) if record.exc_info else None,
        }
        fields = {name: value for name, value in event.items() if value is not None}
        return json.dumps(fields, ensure_ascii=False)


def log_as_json(*loggers: str) -> None:
    """Write the records of these loggers as JSON; they still reach the root logger's handlers."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    for name in loggers:
        logging.getLogger(name).handlers = [handler]

"""Several processes behind one listening socket, and one above them that replaces the dead."""

import ctypes
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from rag.errors import RagError, SetupError
from rag.runtime.error_log import ERRORS

WATCHED = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)
LOOK_SECONDS = 0.5
SETTLED_SECONDS = 10.0  # a worker that lived so long was well
LONGEST_PAUSE_SECONDS = 30.0
REFUSED = 3  # the status of a worker that cannot begin
PR_SET_PDEATHSIG = 1  # of linux/prctl.h
Work = Callable[[int], None]  # given the number of the worker, from 0
SHARED = -1  # the number of the process that all workers call

log = logging.getLogger(__name__)


@dataclass(slots=True)
class WorkerSlot:
    """One of the workers, or what they share, through all its lives."""

    number: int
    pid: int | None = None
    began_at: float = 0.0
    due_at: float = 0.0  # of the next life
    failures: int = 0


@dataclass(slots=True)
class Fleet:
    """Runs `work` in so many processes until a signal ends all.

    What they share begins before them, and ends when the last of them has.
    """

    work: Work
    shared: WorkerSlot
    workers: list[WorkerSlot]
    is_stopping: bool = False
    has_settled: bool = False
    signals_before: set[int | signal.Signals] = field(default_factory=set)

    def run(self) -> None:
        """Raises SetupError if none can begin."""
        self.signals_before = signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
        try:
            while not self.is_stopping or any(place.pid for place in self.workers):
                self._start_due()
                told = signal.sigtimedwait(WATCHED, LOOK_SECONDS)
                if told is not None and told.si_signo != signal.SIGCHLD:
                    self._stop()
                self._bury_dead()
        finally:
            _end(self.shared)
            if self.shared.pid is not None:
                os.waitpid(self.shared.pid, 0)
            signal.pthread_sigmask(signal.SIG_SETMASK, self.signals_before)

    def _start_due(self) -> None:
        now = time.monotonic()
        for place in (self.shared, *self.workers):
            if place.pid is None and not self.is_stopping and now >= place.due_at:
                place.pid, place.began_at = self._fork(place.number), now

    def _stop(self) -> None:
        """Once: each ends when what it answers has ended; again: at once."""
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
        """Later and later, if it dies again and again."""
        lived = time.monotonic() - place.began_at
        self.has_settled = self.has_settled or lived > SETTLED_SECONDS
        pid, place.pid = place.pid, None
        if self.is_stopping:
            return
        if status == REFUSED and not self.has_settled:
            self._stop()
            raise SetupError("The server ends, because its workers cannot begin.")
        place.failures = 0 if lived > SETTLED_SECONDS else place.failures + 1
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
            _end_with(above)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's; the one above tells us
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


def _end_with(above: int) -> None:
    """Nobody would stop or replace a worker whose supervisor was killed."""
    with suppress(OSError, AttributeError):  # another system
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != above:
        os._exit(0)


def _end(place: WorkerSlot) -> None:
    if place.pid is not None:
        with suppress(ProcessLookupError):
            os.kill(place.pid, signal.SIGTERM)


def run_fleet(work: Work, count: int) -> None:
    """See Fleet.run; `work` is also given the number of what they share."""
    Fleet(work, WorkerSlot(SHARED), [WorkerSlot(number) for number in range(count)]).run()

"""Errors are told of calmly: in one line, and what is away for a while once a minute.

What nobody expected is told in a sentence; its traceback is kept in a file for who mends it.
"""

import logging
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

A_MINUTE = 60.0
FILE = "errors.log"
LARGEST = 1 << 20  # bytes: then the file begins anew
LONGEST_MESSAGE = 300  # characters of what the error says of itself

_last_times: dict[str, float] = {}
_lock = Lock()


def is_due(what: str) -> bool:
    """True at most once a minute for the same thing."""
    now = time.monotonic()
    with _lock:
        if now - _last_times.get(what, -A_MINUTE) < A_MINUTE:
            return False
        _last_times[what] = now
        return True


def log_throttled(log: logging.Logger, what: str, error: BaseException | str) -> None:
    """A warning in one line: `what` is away, whatever is said of that, which others say no more."""
    reason = " ".join(str(getattr(error, "orig", None) or error).split())[:300]
    if is_due(what):
        is_due(reason)
        log.warning("%s: %s", what, reason)


class ErrorLog:
    """The errors of this process; `folder` is where it keeps what it writes, once that is known."""

    def __init__(self) -> None:
        self.folder: Path | None = None

    def report(self, error: BaseException) -> str:
        """A sentence for people, after the error was written down."""
        path = self.keep(error)
        where = f"The details are in {path}" if path else "The details could not be written down"
        return f"This should not have happened ({_reason(error)}). {where}. Try it again, please."

    def keep(self, error: BaseException) -> Path | None:
        """The file that holds the error now; None where nothing can be written."""
        lines = [f"\n{datetime.now(UTC).isoformat()}\n", *traceback.format_exception(error)]
        for folder in (self.folder, Path(tempfile.gettempdir()) / "groundnote"):
            with suppress(OSError):
                if folder is not None:
                    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                    file = folder / FILE
                    is_full = file.exists() and file.stat().st_size > LARGEST
                    with file.open("w" if is_full else "a", encoding="utf-8") as stream:
                        stream.writelines(lines)
                    return file
        return None

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Errors that come to no edge are told as well: in threads, while tidying up, in logs."""
        before = threading.excepthook, sys.unraisablehook, logging.lastResort
        threading.excepthook = self._of_a_thread
        sys.unraisablehook = self._unraisable
        logging.lastResort = _OneLine(self)
        try:
            yield
        finally:
            threading.excepthook, sys.unraisablehook, logging.lastResort = before

    def _of_a_thread(self, ended: threading.ExceptHookArgs) -> None:
        if ended.exc_value is not None and not isinstance(ended.exc_value, SystemExit):
            _say(self.report(ended.exc_value))

    def _unraisable(self, ended: Any) -> None:
        if ended.exc_value is not None:
            self.keep(ended.exc_value)


class _OneLine(logging.Handler):
    """Where nobody set up logs: a line each, and tracebacks only in the file."""

    def __init__(self, log: ErrorLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        report = f": {self._log.report(error)}" if error is not None else ""
        _say(f"{record.getMessage()}{report}")


def _say(text: str) -> None:
    with suppress(OSError, ValueError):  # nobody hears us any more
        print(text, file=sys.stderr, flush=True)  # noqa: T201


def _reason(error: BaseException) -> str:
    message = " ".join(str(error).split())[:LONGEST_MESSAGE]
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


ERRORS = ErrorLog()

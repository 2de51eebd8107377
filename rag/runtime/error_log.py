"""Logs each error in one line, and an error that repeats at most once a minute.

An unexpected error is reported in a sentence; its traceback is written to a file.
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
LARGEST = 1 << 20  # bytes: then the file is overwritten
LONGEST_MESSAGE = 300  # characters of the error's own message

_last_times: dict[str, float] = {}
_lock = Lock()


def is_due(what: str) -> bool:
    """Return True at most once a minute for the same `what`."""
    now = time.monotonic()
    with _lock:
        if now - _last_times.get(what, -A_MINUTE) < A_MINUTE:
            return False
        _last_times[what] = now
        return True


def log_throttled(log: logging.Logger, what: str, error: BaseException | str) -> None:
    """Log a warning in one line, and neither `what` nor its reason again for a minute."""
    reason = " ".join(str(getattr(error, "orig", None) or error).split())[:300]
    if is_due(what):
        is_due(reason)
        log.warning("%s: %s", what, reason)


class ErrorLog:
    """The errors of this process; `folder` is where they are written, once it is known."""

    def __init__(self) -> None:
        self.folder: Path | None = None

    def report(self, error: BaseException) -> str:
        """Write the error down, and return a sentence for people."""
        path = self.keep(error)
        where = f"The details are in {path}" if path else "The details could not be written down"
        message = " ".join(str(error).split())[:LONGEST_MESSAGE]
        reason = f"{type(error).__name__}: {message}" if message else type(error).__name__
        return f"This should not have happened ({reason}). {where}. Try it again, please."

    def keep(self, error: BaseException) -> Path | None:
        """Return the file that the error was written to; None if none can be written."""
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
        """Also report errors that nothing catches: in threads, in finalizers, in logs."""
        before = threading.excepthook, sys.unraisablehook, logging.lastResort

        def of_a_thread(ended: threading.ExceptHookArgs) -> None:
            if ended.exc_value is not None and not isinstance(ended.exc_value, SystemExit):
                _say(self.report(ended.exc_value))

        def unraisable(ended: Any) -> None:
            if ended.exc_value is not None:
                self.keep(ended.exc_value)

        threading.excepthook, sys.unraisablehook = of_a_thread, unraisable
        logging.lastResort = _OneLine(self)
        try:
            yield
        finally:
            threading.excepthook, sys.unraisablehook, logging.lastResort = before


class _OneLine(logging.Handler):
    """The handler where logging is not configured: a line each, tracebacks only in the file."""

    def __init__(self, log: ErrorLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        report = f": {self._log.report(error)}" if error is not None else ""
        _say(f"{record.getMessage()}{report}")


def _say(text: str) -> None:
    with suppress(OSError, ValueError):  # stderr is closed
        print(text, file=sys.stderr, flush=True)  # noqa: T201


ERRORS = ErrorLog()

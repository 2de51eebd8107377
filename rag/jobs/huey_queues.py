"""The queues that Huey keeps jobs in: a SQLite file, or Redis. Each is loaded at its first use."""

import fcntl
import logging
import os
import sqlite3
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from rag.errors import SetupError
from rag.runtime.error_log import ThrottledErrors

POLL_SECONDS = 0.25
REDIS_PATIENCE = {"socket_timeout": 5, "socket_connect_timeout": 3}  # huey waits for 1 s
STOP_SECONDS = 3.0  # for running jobs to come to a point where they can be left

CALM = ThrottledErrors()


class AloneLock:
    """Held by one process at a time, and by none that is dead."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self) -> bool:
        """Whether it is ours now."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def open_huey(folder: Path, url: str | None, *, name: str) -> Any:
    """Raises SetupError where the URL is none."""
    _load_huey(without=("psycopg",) if url is not None else ("psycopg", "redis"))
    if url is not None:
        from huey import RedisHuey
        from redis import ConnectionPool

        try:
            pool = ConnectionPool.from_url(url, **REDIS_PATIENCE)
            return RedisHuey(name, connection_pool=pool, results=False)
        except ValueError as error:
            raise SetupError(f"jobs.url is no URL of a Redis server: {error}.") from error
    from huey import SqliteHuey

    folder.mkdir(parents=True, exist_ok=True)
    return SqliteHuey("groundnote", filename=str(folder / "jobs.db"), results=False)


def _load_huey(*, without: Sequence[str]) -> None:
    """It would load the clients of all databases that are installed: a tenth of a start.

    A process has queues of one kind, unless it imports redis before the first.
    """
    hidden = [name for name in without if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None: not to be found
    try:
        import_module("huey")
    finally:
        for name in hidden:
            del sys.modules[name]


def queue_errors(url: str | None) -> tuple[type[Exception], ...]:
    """What a queue raises that cannot be reached."""
    if url is None:
        return (sqlite3.Error, OSError)
    from redis.exceptions import RedisError

    return (RedisError, OSError)


def new_consumer(huey: Any, workers: int) -> Any:
    """Threads of this process that do what is queued."""
    from huey.consumer import Consumer

    class EmbeddedConsumer(Consumer):  # type: ignore[misc]
        """Runs beside a web server, to which the signals of the process belong."""

        def _set_signal_handlers(self) -> None:
            pass

    for name in ("huey", "huey.consumer.Worker", "huey.consumer.Scheduler"):
        logging.getLogger(name).addFilter(CALM)
    return EmbeddedConsumer(
        huey,
        workers=workers,
        periodic=False,
        initial_delay=POLL_SECONDS,
        max_delay=POLL_SECONDS,
        check_worker_health=False,
        shutdown_timeout=STOP_SECONDS,
    )

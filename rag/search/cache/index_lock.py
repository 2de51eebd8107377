"""Which process holds an embedded index.

An advisory lock of the operating system: it ends with its process, however that ends, and is not
fooled by a process number used again (in containers they are). The file's text is for people.
"""

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from rag.errors import SetupError

LOCK_FILE = "in_use_by.json"

_held: dict[tuple[int, Path], tuple[int, int]] = {}  # (pid, directory) → descriptor, users
_held_lock = threading.Lock()


def acquire(directory: Path, pid: int | None = None) -> None:
    """Take the directory for this process, or raise SetupError naming the one that has it.

    Others are told of `pid` instead, where this process is one of a server's.
    """
    directory.mkdir(parents=True, exist_ok=True)
    key = (os.getpid(), directory.resolve())
    with _held_lock:
        descriptor, users = _held.get(key, (-1, 0))
        _held[key] = (_locked(directory, pid) if users == 0 else descriptor, users + 1)


def _locked(directory: Path, pid: int | None) -> int:
    descriptor = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.read(descriptor, 1000).decode("utf-8", "replace").strip()
        os.close(descriptor)
        raise SetupError(
            f"The vector index in {directory} is in use by another process: {holder or 'unknown'}. "
            "Stop that process, or hand it the work over its API (`groundnote ingest` does this "
            "while `groundnote serve` runs); several processes at once need a Chroma server "
            "(retrieval.chroma_url)."
        ) from error
    started = datetime.now(UTC).isoformat(timespec="seconds")
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps({"pid": pid or os.getpid(), "started": started}).encode(), 0)
    return descriptor


def release(directory: Path) -> None:
    """Give back what `acquire` took; others may have it when each user of this process did."""
    key = (os.getpid(), directory.resolve())
    with _held_lock:
        descriptor, users = _held.get(key, (-1, 0))
        if users > 1:
            _held[key] = (descriptor, users - 1)
        elif users == 1:
            del _held[key]
            os.close(descriptor)  # the lock goes with it


@contextmanager
def holding(directory: Path, pid: int | None = None) -> Iterator[None]:
    """Keep other processes from the directory meanwhile; see `acquire`. Raises SetupError."""
    acquire(directory, pid)
    try:
        yield
    finally:
        release(directory)


def holder_of(directory: Path) -> int | None:
    """The process that holds the embedded index now (maybe this one), or None."""
    path = directory / LOCK_FILE
    if not path.is_file():
        return None
    with path.open("r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return int(json.loads(file.read() or b"{}").get("pid", 0)) or None
    return None

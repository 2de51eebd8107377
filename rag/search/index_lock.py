"""A lock by which one process alone writes an index on disk, and a file about its content.

Loading Chroma takes longer than all other checks. If the file says that the index is complete,
Chroma is not loaded; otherwise Chroma itself is asked.

The lock is an advisory lock of the operating system: it ends with its process, and a reused process
number (common in containers) does not matter. The file's text is for people.
"""

import fcntl
import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from rag.errors import SetupError

FILE = "chroma.sqlite3"
COLLECTION = "chunks"
# Of the form that is read here; a version of Chroma with another one is asked itself.
FORM = {"embeddings_queue": 2, "metadb": 6, "sysdb": 10}
_FORM = "SELECT dir, max(version) FROM migrations GROUP BY dir"
_COLLECTION = (
    "SELECT collections.id, segments.id, coalesce(max_seq_id.seq_id, 0) FROM collections "
    "JOIN segments ON segments.collection = collections.id AND segments.scope = 'METADATA' "
    "LEFT JOIN max_seq_id ON max_seq_id.segment_id = segments.id "
    "WHERE collections.name = ?"
)
_MADE_BY = "SELECT str_value FROM collection_metadata WHERE collection_id = ? AND key = 'embedding'"
# Written, but not yet taken over into the table of ids.
_WAITING = "SELECT 1 FROM embeddings_queue WHERE seq_id > ? AND topic LIKE '%/' || ? LIMIT 1"
_IDS = "SELECT embedding_id FROM embeddings WHERE segment_id = ?"


def _reader(directory: Path) -> AbstractContextManager[sqlite3.Connection]:
    address = f"{(directory / FILE).absolute().as_uri()}?mode=ro"
    return closing(sqlite3.connect(address, uri=True))


def ids_in_file(directory: Path, *, embedding: str) -> set[str] | None:
    """Return the ids of the chunks if this model made them and the file is in order; else None."""
    with suppress(sqlite3.Error, ValueError), _reader(directory) as reader:
        if dict(reader.execute(_FORM)) != FORM:
            return None
        rows = reader.execute(_COLLECTION, (COLLECTION,)).fetchall()
        if len(rows) != 1:
            return None
        collection_id, segment, taken_over = rows[0]
        if reader.execute(_MADE_BY, (collection_id,)).fetchall() != [(embedding,)]:
            return None
        if reader.execute(_WAITING, (taken_over, collection_id)).fetchone():
            return None
        return {chunk_id for (chunk_id,) in reader.execute(_IDS, (segment,))}
    return None


def holds_vectors(directory: Path) -> bool:
    """Whether an index was filled here and not given up since; True if that is unknown."""
    if not (directory / FILE).is_file():
        return False
    try:
        with _reader(directory) as reader:
            rows = reader.execute("SELECT 1 FROM collections WHERE name = ?", (COLLECTION,))
            return rows.fetchone() is not None
    except sqlite3.Error:
        return True


def is_damaged(directory: Path) -> bool:
    """Whether the index's database exists and cannot be read in part."""
    if not (directory / FILE).is_file():
        return False
    try:
        with _reader(directory) as reader:
            return reader.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]
    except sqlite3.DatabaseError as error:
        return not isinstance(error, sqlite3.OperationalError)  # locked, or it may not be read


LOCK_FILE = "in_use_by.json"

_locks: dict[tuple[int, Path], tuple[int, int]] = {}  # (pid, directory) → descriptor, users
_locks_guard = threading.Lock()


def acquire(directory: Path, pid: int | None = None) -> None:
    """Take the directory for this process. Raises SetupError that names the process using it.

    The lock names `pid` to others if this process belongs to that server.
    """
    directory.mkdir(parents=True, exist_ok=True)
    key = (os.getpid(), directory.resolve())
    with _locks_guard:
        descriptor, users = _locks.get(key, (-1, 0))
        _locks[key] = (_locked(directory, pid) if users == 0 else descriptor, users + 1)


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
    """Undo one `acquire`; the lock is free once each user in this process has released it."""
    key = (os.getpid(), directory.resolve())
    with _locks_guard:
        descriptor, users = _locks.get(key, (-1, 0))
        if users > 1:
            _locks[key] = (descriptor, users - 1)
        elif users == 1:
            del _locks[key]
            os.close(descriptor)  # the lock goes with it


@contextmanager
def holding(directory: Path, pid: int | None = None) -> Iterator[None]:
    """Keep other processes from the directory for the block; see `acquire`. Raises SetupError."""
    acquire(directory, pid)
    try:
        yield
    finally:
        release(directory)


def holder_of(directory: Path) -> int | None:
    """Return the process that uses the embedded index now (maybe this one), or None."""
    path = directory / LOCK_FILE
    if not path.is_file():
        return None
    with path.open("r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return int(json.loads(file.read() or b"{}").get("pid", 0)) or None
    return None

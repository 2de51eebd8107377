"""Blobs: files by name in a folder or at a URL that fsspec knows; and holds on their deletion.

Each file is written completely or not at all, and never changed. Client libraries are imported
when a place needs them. A hold is a database row, so that every process on every machine sees it.
"""

import errno
import os
import shutil
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Protocol
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

from sqlalchemy import Connection, Engine, delete, insert, inspect, or_, select, update
from sqlalchemy.exc import SQLAlchemyError

from rag.db.audit_trail import record
from rag.db.engine import as_utc, reading, writing
from rag.db.schema import holds
from rag.errors import SetupError, StorageFailed

BLOCK = 1 << 20
PART = ".part"
CACHE_BYTES = 1 << 30  # of remote files, cached on this machine


class Blobs(Protocol):
    """A place of files; names are relative, with `/` between their parts."""

    place: str  # for people, without passwords

    def sizes(self) -> dict[str, int]:
        """Return all names with the sizes of their files; incomplete files are left out."""

    def size(self, name: str) -> int | None:
        """Return the size of a file; None if there is no such file."""

    def open(self, name: str) -> BinaryIO:
        """Open a file. Raises OSError."""

    def write(self, name: str, parts: Iterable[bytes]) -> None:
        """Write a file, replacing an existing one.

        Raises OSError, and then leaves no incomplete file.
        """

    def remove(self, names: Iterable[str]) -> None:
        """Delete the files that exist."""

    def modified(self, name: str) -> datetime:
        """Return when a file was written."""


def open_blobs(url: str | Path) -> "FolderBlobs | RemoteBlobs":
    """Open a folder, by its path or a file: URL, or any other URL through fsspec."""
    text = str(url)
    if "://" not in text:
        return FolderBlobs(Path(text))
    if text.startswith("file://"):
        return FolderBlobs(Path(text.removeprefix("file://")))
    return RemoteBlobs(text)


def blocks(file: BinaryIO) -> Iterator[bytes]:
    """Yield a file's content in blocks, and close it at the end."""
    with file:
        while block := file.read(BLOCK):
            yield block


class FolderBlobs:
    """Files in a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = str(folder)

    def sizes(self) -> dict[str, int]:
        results: dict[str, int] = {}
        for path in self.folder.rglob("*"):
            with suppress(FileNotFoundError):
                if path.is_file() and path.suffix != PART:
                    results[path.relative_to(self.folder).as_posix()] = path.stat().st_size
        return results

    def size(self, name: str) -> int | None:
        path = self.path(name)
        return path.stat().st_size if path.is_file() else None

    def open(self, name: str) -> BinaryIO:
        return self.path(name).open("rb")

    def write(self, name: str, parts: Iterable[bytes]) -> None:
        target = self.path(name)
        half = target.with_name(f"{target.name}{PART}")
        _make_private(target.parent)
        try:
            descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(descriptor, "wb") as file:  # noqa: PTH123  # a descriptor is no path
                for part in parts:
                    file.write(part)
                file.flush()
                os.fsync(descriptor)
            half.replace(target)
        except BaseException:
            half.unlink(missing_ok=True)  # a full disk needs the room
            raise

    def link(self, name: str, other: Path) -> bool:
        """Link a file of another folder under this name; False where that is not possible."""
        target = self.path(name)
        _make_private(target.parent)
        with suppress(OSError):
            if not target.exists():
                os.link(other, target)
            return True
        return False

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            self.path(name).unlink(missing_ok=True)

    def remove_halves(self, before: datetime | None = None) -> None:
        """Delete incomplete files that killed processes left, of those begun before `before`."""
        for path in self.folder.rglob(f"*{PART}"):
            with suppress(FileNotFoundError):
                if before is None or path.stat().st_mtime < before.timestamp():
                    path.unlink()

    def modified(self, name: str) -> datetime:
        return datetime.fromtimestamp(self.path(name).stat().st_mtime, UTC)

    def path(self, name: str) -> Path:
        """Return where a file of this name is, or would be."""
        return self.folder / name

    def free(self) -> int:
        """Return how many bytes can still be written."""
        folder = self.folder.absolute()
        while not folder.exists():
            folder = folder.parent
        return shutil.disk_usage(folder).free


class RemoteBlobs:
    """Files at a URL that fsspec knows; errors of its client become OSError."""

    def __init__(self, url: str) -> None:
        self._url = url
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        self.place = urlunsplit((parts.scheme, host, parts.path, "", ""))

    def check(self) -> None:
        """Raise SetupError where no installed package can open the URL."""
        _ = self._opened

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        import fsspec

        try:
            system, folder = fsspec.core.url_to_fs(self._url)
        except (ValueError, ImportError) as error:
            raise SetupError(f"{self.place} cannot be opened: {error}.") from error
        return system, folder.rstrip("/")

    @contextmanager
    def _file_system(self) -> Iterator[tuple[Any, str]]:
        opened = self._opened
        try:
            yield opened
        except (OSError, SetupError):
            raise
        except Exception as error:
            raise OSError(errno.EIO, f"{self.place} fails: {error}") from error

    def sizes(self) -> dict[str, int]:
        with self._file_system() as (system, folder):
            system.invalidate_cache()
            listing = system.find(folder, detail=True) if system.exists(folder) else {}
            cut = len(folder) + 1
        return {
            str(path)[cut:]: int(about.get("size") or 0)
            for path, about in listing.items()
            if not str(path).endswith(PART)
        }

    def size(self, name: str) -> int | None:
        with suppress(FileNotFoundError), self._file_system() as (system, folder):
            system.invalidate_cache()  # other hosts write there, too
            return int(system.info(f"{folder}/{name}")["size"])
        return None

    def open(self, name: str) -> BinaryIO:
        with self._file_system() as (system, folder):
            opened: BinaryIO = system.open(f"{folder}/{name}", "rb")
            return opened

    def write(self, name: str, parts: Iterable[bytes]) -> None:
        with self._file_system() as (system, folder):
            target = f"{folder}/{name}"
            half = f"{target}{PART}"
            system.makedirs(target.rpartition("/")[0], exist_ok=True)
            try:
                with system.open(half, "wb") as file:
                    for part in parts:
                        file.write(part)
                system.mv(half, target)
            except BaseException:
                with suppress(Exception):
                    system.rm(half)
                raise

    def remove(self, names: Iterable[str]) -> None:
        with self._file_system() as (system, folder):
            for name in names:
                with suppress(FileNotFoundError):
                    system.rm(f"{folder}/{name}")

    def modified(self, name: str) -> datetime:
        with self._file_system() as (system, folder):
            moment: datetime = system.modified(f"{folder}/{name}")
            return moment


def local_path(blobs: Blobs, name: str, cache: Path) -> Path | None:
    """Return a local path of a file; a remote file is fetched and cached. None if there is none.

    The cache drops the least recently used files when it is full.
    """
    if isinstance(blobs, FolderBlobs):
        path = blobs.path(name)
        return path if path.is_file() else None
    here = FolderBlobs(cache)
    fetched = here.path(name)
    if not fetched.is_file():
        try:
            here.write(name, blocks(blobs.open(name)))
        except FileNotFoundError:
            return None
        _trim(cache, fetched)
    os.utime(fetched)
    return fetched


def _trim(cache: Path, newest: Path) -> None:
    """Delete the least recently used files of a cache that has grown too large."""
    files = []
    for path in cache.rglob("*"):
        with suppress(FileNotFoundError):
            if path.is_file():
                about = path.stat()
                files.append((about.st_mtime, about.st_size, path))
    over = sum(size for _, size, _ in files) - CACHE_BYTES
    for _, size, path in sorted(files):
        if over <= 0:
            return
        if path != newest:
            path.unlink(missing_ok=True)
            over -= size


BACKUP, RESTORE = "backup", "restore"
LEASE = timedelta(minutes=2)  # a killed backup delays deletions no longer than this
RENEW_SECONDS = 20.0


@contextmanager
def deletions_put_off(engine: Engine) -> Iterator[None]:
    """Let no process delete a file beside the database; the next tidying deletes them."""
    hold_id, ended = uuid4().hex, threading.Event()
    _place(engine, hold_id, BACKUP, datetime.now(UTC) + LEASE)

    def renew() -> None:
        while not ended.wait(RENEW_SECONDS):
            with suppress(SQLAlchemyError, StorageFailed), writing(engine) as connection:
                until = datetime.now(UTC) + LEASE
                connection.execute(update(holds).where(holds.c.id == hold_id).values(until=until))

    thread = threading.Thread(target=renew, name="hold", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        with writing(engine) as connection:
            connection.execute(delete(holds).where(holds.c.id == hold_id))


def has_holds(engine: Engine) -> bool:
    """Return whether this database has the table of holds."""
    return inspect(engine).has_table(holds.name)


def deletions_wait(engine: Engine) -> bool:
    """Return whether a backup is copying files now."""
    is_alive = or_(holds.c.until.is_(None), holds.c.until > datetime.now(UTC))
    query = select(holds.c.id).where(holds.c.kind == BACKUP, is_alive)
    with reading(engine) as connection:
        return connection.execute(query.limit(1)).first() is not None


def hold_jobs(engine: Engine) -> None:
    """Hold the jobs that were queued or due before now, until `release_jobs`."""
    _place(engine, RESTORE, RESTORE, None, "library.restored", "")


def release_jobs(engine: Engine) -> bool:
    """Let held jobs run; False if none were held."""
    with writing(engine) as connection:
        count = connection.execute(delete(holds).where(holds.c.kind == RESTORE)).rowcount
        record(connection, "jobs.resumed", *([""] if count else []))
    return bool(count)


def restored_at(connection: Connection) -> datetime | None:
    """Return when this library was restored from a backup; None once its jobs are released."""
    query = select(holds.c.since).where(holds.c.kind == RESTORE)
    since = connection.execute(query.limit(1)).scalar()
    return as_utc(since) if since else None


def _place(engine: Engine, hold_id: str, kind: str, until: datetime | None, *deed: str) -> None:
    row = {"id": hold_id, "kind": kind, "since": datetime.now(UTC), "until": until}
    with writing(engine) as connection:
        connection.execute(insert(holds).values(**row))
        if deed:
            record(connection, *deed)


def _make_private(folder: Path) -> None:
    """Create a folder and its missing parents for the owner only, unlike `mkdir(parents=True)`."""
    if not folder.is_dir():
        _make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)

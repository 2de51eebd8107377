"""A backup of a library in use: its database at one moment, then the files that this names."""

import hashlib
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection, Engine, func, select

from rag.db import documents, jobs, sessions, source_files, tables
from rag.db.blobs import Blobs, FolderBlobs, blocks
from rag.db.waiting import deletions_put_off, has_holds
from rag.errors import StorageFailed
from rag.operations.manifest import ENDING, FileRecord
from rag.operations.repository import BackupManifest, BackupRepository, folder_beside, room_for
from rag.operations.snapshot import Snapshot, size_of, taken

SPARE_BYTES = 64 << 20
LATE_SECONDS = 5.0  # in which the file of a document that came just before is written, too
FileReport = Callable[[int, int], None]  # files done, and in all


@dataclass(frozen=True, slots=True)
class Library:
    """What is kept of one: its database and the places of its files."""

    engine: Engine
    originals: tuple[Blobs, ...]  # in each of these is looked
    rows: Blobs
    uploads: FolderBlobs | None  # None: they are in the database
    staging: Path  # for a copy of the database, where the backup is on no disk of this machine
    version: str
    settings: dict[str, object] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()  # names of settings that hold some


@dataclass(frozen=True, slots=True)
class NeededFile:
    """A file that a database names, and whose it is."""

    name: str  # in the backup
    places: tuple[tuple[Blobs, str], ...]  # where it may lie
    documents: list[str]
    checksum: str | None = None  # where its name tells it


def back_up(
    library: Library,
    repository: BackupRepository,
    *,
    report: FileReport = lambda done, total: None,
    links: bool = False,
) -> BackupManifest:
    """Make one; `links` has files under a second name where they lie on the same disk.

    Files that are gone are in its `missing`. Raises StorageFailed where there is no room.
    """
    now = datetime.now(UTC)
    backup_id = f"{now:%Y%m%d-%H%M%S-%f}-{secrets.token_hex(2)}"
    check_room(library, repository, links=links)
    staging = folder_beside(repository.blobs, library.staging)
    with ExitStack() as held:
        held.enter_context(repository.being_made(backup_id))
        if has_holds(library.engine):  # not before the migration that makes them
            held.enter_context(deletions_put_off(library.engine))
        snapshot = held.enter_context(taken(library.engine, staging))
        database = {
            name: _written(repository.blobs, name, parts)
            for file, parts in snapshot.files()
            for name in (f"databases/{backup_id}/{file}",)
        }
        needed = list(_needed(library, snapshot.connection))
        copying = _Copying(repository.blobs, report, links=links)
        copying.copy(needed)
        manifest = BackupManifest(
            id=backup_id,
            created_at=now.isoformat(timespec="seconds"),
            version=library.version,
            revision=snapshot.revision,
            counts=_counts(snapshot),
            database=database,
            files=copying.copied,
            missing={file.name: sorted(file.documents) for file in copying.missing},
            settings=library.settings,
            secrets=list(library.secrets),
        )
        if lacking := repository.lacking(manifest):
            raise StorageFailed(
                f"{len(lacking)} files of the backup are not in {repository.place} any more "
                f"({', '.join(lacking[:3])}): something else removes them. Nothing was finished."
            )
        repository.write_manifest(manifest)
    return manifest


def check_room(library: Library, repository: BackupRepository, *, links: bool = False) -> None:
    """Raises StorageFailed with both sizes where the backup would not fit."""
    room = room_for(repository.blobs)
    if room is None:
        return
    size = needed = size_of(library.engine)
    if library.engine.dialect.name == "sqlite":
        needed = 2 * size  # a copy, and the same compressed
    if not links:
        there = repository.blobs.sizes()
        with library.engine.connect() as connection:
            needed += sum(
                _size(file) for file in _needed(library, connection) if file.name not in there
            )
    if needed + SPARE_BYTES > room:
        raise StorageFailed(
            f"The backup needs up to {_mib(needed + SPARE_BYTES)}, and the disk of "
            f"{repository.place} has {_mib(room)} left. Make room, or name another place; nothing "
            "was begun."
        )


def _mib(size: int) -> str:
    return f"{-(-size // 2**20):,} MiB"


def _size(file: NeededFile) -> int:
    sizes = (blobs.size(name) for blobs, name in file.places)
    return next((size for size in sizes if size is not None), 0)


class _Copying:
    """Files on their way into a backup; what is there already stays as it is."""

    def __init__(self, target: Blobs, report: FileReport, *, links: bool) -> None:
        self._target = target
        self._report = report
        self._links = links
        self._there = target.sizes()
        self.copied: dict[str, FileRecord] = {}
        self.missing: list[NeededFile] = []

    def copy(self, needed: list[NeededFile]) -> None:
        lacking = []
        for count, file in enumerate(needed, start=1):
            if not self._copy(file):
                lacking.append(file)
            self._report(count, len(needed))
        until = time.monotonic() + LATE_SECONDS
        while lacking and time.monotonic() < until:
            time.sleep(LATE_SECONDS / 10)
            lacking = [file for file in lacking if not self._copy(file)]
            if all(file.checksum is None for file in lacking):
                break
        self.missing = lacking

    def _copy(self, file: NeededFile) -> bool:
        for blobs, name in file.places:
            size = blobs.size(name)
            if size is None:
                continue
            if file.checksum is not None and self._there.get(file.name) == size:
                self.copied[file.name] = FileRecord(size, file.checksum)
                return True
            try:
                noted = self._brought(file, blobs, name)
            except FileNotFoundError:
                continue
            if file.checksum in (None, noted.checksum):
                self.copied[file.name] = noted
                return True
            self._target.remove([file.name])  # it is not what it is called by
        return False

    def _brought(self, file: NeededFile, blobs: Blobs, name: str) -> FileRecord:
        can_link = isinstance(blobs, FolderBlobs) and isinstance(self._target, FolderBlobs)
        if self._links and can_link:
            assert isinstance(blobs, FolderBlobs)
            assert isinstance(self._target, FolderBlobs)
            if self._target.link(file.name, blobs.path(name)):
                digest = _Digest()
                for _block in digest.over(blocks(blobs.open(name))):
                    pass
                return digest.record()
        return _written(self._target, file.name, blocks(blobs.open(name)))


class _Digest:
    """Length and checksum of what passes."""

    def __init__(self) -> None:
        self._size = 0
        self._digest = hashlib.sha256()

    def over(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        for part in parts:
            self._size += len(part)
            self._digest.update(part)
            yield part

    def record(self) -> FileRecord:
        return FileRecord(self._size, self._digest.hexdigest())


def _written(target: Blobs, name: str, parts: Iterable[bytes]) -> FileRecord:
    digest = _Digest()
    target.write(name, digest.over(parts))
    return digest.record()


def _needed(library: Library, connection: Connection) -> Iterator[NeededFile]:
    """What the database names, as it is asked."""
    of_content: dict[str, list[str]] = {}
    for content_hash, name in connection.execute(
        select(documents.c.content_hash, documents.c.name)
    ):
        of_content.setdefault(content_hash, []).append(name)
    standing = source_files.c.standing.in_(("removing", "removed", "back"))
    removed = select(source_files.c.content_hash, source_files.c.document_name).where(standing)
    for content_hash, name in connection.execute(removed):
        of_content.setdefault(content_hash, []).append(name)
    for content_hash, names in sorted(of_content.items()):
        if content_hash:
            name = f"{content_hash[:2]}/{content_hash}"
            places = tuple((blobs, name) for blobs in library.originals)
            yield NeededFile(f"originals/{name}", places, names, content_hash)
    of_tables = select(tables.c.id, documents.c.name).join_from(tables, documents)
    for table_id, name in connection.execute(of_tables.order_by(tables.c.id)):
        file = f"{table_id}{ENDING}"
        yield NeededFile(f"tables/{file}", ((library.rows, file),), [name])
    if library.uploads is not None:
        waiting = select(jobs.c.id, jobs.c.subject).where(
            jobs.c.kind == "ingest", jobs.c.state.in_(("queued", "running"))
        )
        for upload_id, name in connection.execute(waiting.order_by(jobs.c.id)):
            yield NeededFile(f"uploads/{upload_id}", ((library.uploads, upload_id),), [name])


def _counts(snapshot: Snapshot) -> dict[str, int]:
    named = {"documents": documents, "tables": tables, "conversations": sessions}
    return {
        name: int(snapshot.connection.execute(select(func.count()).select_from(table)).scalar_one())
        for name, table in named.items()
    }

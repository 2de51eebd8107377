"""Backup, restore and repair of a library in use.

A backup holds the database as it was at one moment, then the files that it names.
"""

import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection, Engine, select

from rag.db import documents, jobs, newest_revision, revisions, sessions, source_files, tables
from rag.db.blobs import Blobs, FolderBlobs, blocks, deletions_put_off, has_holds
from rag.documents.store import IndexDebts
from rag.errors import Conflict, SetupError, StorageFailed, UserError
from rag.operations.repository import BackupManifest, BackupRepository, folder_beside, room_for
from rag.operations.snapshot import (
    ENDING,
    FileRecord,
    checksum,
    count_rows,
    put_back,
    refuse_emptied,
    size_of,
    taken,
)
from rag.seams import ChunkIndex
from rag.search.lexical_schema import count_words, rebuild_words

SPARE_BYTES = 64 << 20
LATE_SECONDS = 5.0  # how long to wait for the file of a document stored just before
COUNTED = {"documents": documents, "tables": tables, "conversations": sessions}
FileReport = Callable[[int, int], None]  # files done, files in all


@dataclass(frozen=True, slots=True)
class Library:
    """The parts of a library to back up: its database and the places of its files."""

    engine: Engine
    originals: tuple[Blobs, ...]  # searched in this order
    rows: Blobs
    uploads: FolderBlobs | None  # None: they are in the database
    staging: Path  # for a copy of the database, where the backup is remote
    version: str
    settings: dict[str, object] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()  # names of the settings that hold secrets


@dataclass(frozen=True, slots=True)
class NeededFile:
    """A file that the database names, and the documents that need it."""

    name: str  # in the backup
    places: tuple[tuple[Blobs, str], ...]  # where it may be
    documents: list[str]
    checksum: str | None = None  # if its name contains it


def back_up(
    library: Library,
    repository: BackupRepository,
    *,
    report: FileReport = lambda done, total: None,
    links: bool = False,
) -> BackupManifest:
    """Make a backup; `links` makes hard links of files on the same disk.

    Files that do not exist any more are listed in its `missing`. Raises StorageFailed where there
    is no room.
    """
    now = datetime.now(UTC)
    backup_id = f"{now:%Y%m%d-%H%M%S-%f}-{secrets.token_hex(2)}"
    check_backup_fits(library, repository, links=links)
    staging = folder_beside(repository.blobs, library.staging)
    with ExitStack() as resources:
        resources.enter_context(repository.being_made(backup_id))
        if has_holds(library.engine):  # absent before the migration that creates them
            resources.enter_context(deletions_put_off(library.engine))
        snapshot = resources.enter_context(taken(library.engine, staging))
        database = {
            name: _written(repository.blobs, name, parts)
            for file, parts in snapshot.files()
            for name in (f"databases/{backup_id}/{file}",)
        }
        needed = list(_needed(library, snapshot.connection))
        copied, missing = _copy_all(repository.blobs, needed, report, links=links)
        manifest = BackupManifest(
            id=backup_id,
            created_at=now.isoformat(timespec="seconds"),
            version=library.version,
            revision=snapshot.revision,
            counts={
                name: count_rows(snapshot.connection, table) for name, table in COUNTED.items()
            },
            database=database,
            files=copied,
            missing={file.name: sorted(file.documents) for file in missing},
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


def check_backup_fits(
    library: Library, repository: BackupRepository, *, links: bool = False
) -> None:
    """Raise StorageFailed, with both sizes, where the backup would not fit."""
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


def _copy_all(
    target: Blobs, needed: Sequence[NeededFile], report: FileReport, *, links: bool
) -> tuple[dict[str, FileRecord], list[NeededFile]]:
    """Copy files into a backup, those that are there already excepted; return also what is gone."""
    there, copied = target.sizes(), dict[str, FileRecord]()

    def lacks(file: NeededFile) -> bool:
        record = _copied(target, file, there.get(file.name), links=links)
        if record is not None:
            copied[file.name] = record
        return record is None

    lacking = []
    for count, file in enumerate(needed, start=1):
        if lacks(file):
            lacking.append(file)
        report(count, len(needed))
    until = time.monotonic() + LATE_SECONDS
    while lacking and time.monotonic() < until:
        time.sleep(LATE_SECONDS / 10)
        lacking = [file for file in lacking if lacks(file)]
        if all(file.checksum is None for file in lacking):
            break
    return copied, lacking


def _copied(
    target: Blobs, file: NeededFile, size_there: int | None, *, links: bool
) -> FileRecord | None:
    """Copy a file from the first of its places that has it; None if none has."""
    for blobs, name in file.places:
        size = blobs.size(name)
        if size is None:
            continue
        if file.checksum is not None and size_there == size:
            return FileRecord(size, file.checksum)
        try:
            path = blobs.path(name) if links and isinstance(blobs, FolderBlobs) else None
            if path and isinstance(target, FolderBlobs) and target.link(file.name, path):
                record = FileRecord(path.stat().st_size, checksum(path))
            else:
                record = _written(target, file.name, blocks(blobs.open(name)))
        except FileNotFoundError:
            continue
        if file.checksum in (None, record.checksum):
            return record
        target.remove([file.name])  # its content does not match its name
    return None


def _written(target: Blobs, name: str, parts: Iterable[bytes]) -> FileRecord:
    """Write a file; return its size and checksum, computed on the way."""
    size, digest = 0, hashlib.sha256()

    def counted() -> Iterator[bytes]:
        nonlocal size
        for part in parts:
            size += len(part)
            digest.update(part)
            yield part

    target.write(name, counted())
    return FileRecord(size, digest.hexdigest())


def _needed(library: Library, connection: Connection) -> Iterator[NeededFile]:
    """Yield the files that the database names."""
    of_content: dict[str, list[str]] = {}
    is_removed = source_files.c.standing.in_(("removing", "removed", "back"))
    for query in (
        select(documents.c.content_hash, documents.c.name),
        select(source_files.c.content_hash, source_files.c.document_name).where(is_removed),
    ):
        for content_hash, name in connection.execute(query):
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


UNFINISHED = "restoring.json"  # exists while a restore is unfinished
# Made again, or not part of the library.
HARMLESS = frozenset({"models", "ocr", "errors.log", "secret.key", "lost+found"})


@dataclass(frozen=True, slots=True)
class EmptyLibrary:
    """The empty place to which a library is restored."""

    folder: Path
    database_url: str
    is_database_empty: Callable[[], bool]  # whether nothing is in it
    originals: Blobs
    rows: Blobs
    uploads: FolderBlobs


def restore(
    repository: BackupRepository,
    manifest: BackupManifest,
    target: EmptyLibrary,
    *,
    report: FileReport = lambda done, total: None,
) -> None:
    """Restore a backup; the library cannot be opened before it has finished. It can be run again.

    Raises UserError for an incomplete backup, Conflict where the target is not empty, SetupError
    for a backup of a newer version.
    """
    if manifest.revision not in revisions():
        raise SetupError(
            f"Backup {manifest.id} was made by version {manifest.version} (schema "
            f"{manifest.revision}), which is newer than this one ({newest_revision()}). Install "
            "that version to restore it."
        )
    if lacking := repository.lacking(manifest):
        raise UserError(
            f"Backup {manifest.id} in {repository.place} is not whole: {len(lacking)} of "
            f"{len(manifest.all_files)} files that its manifest names are gone or of another "
            f"length ({', '.join(lacking[:5])}). Nothing was restored. Take another backup: "
            f"{', '.join(id_ for id_ in repository.ids() if id_ != manifest.id) or 'none'}."
        )
    goes_on = _begun(target, manifest)
    _check_room(manifest, target)
    (target.folder / UNFINISHED).write_text(json.dumps({"backup": manifest.id}))
    places = {"originals": target.originals, "tables": target.rows, "uploads": target.uploads}
    for count, (name, file) in enumerate(sorted(manifest.files.items()), start=1):
        kind, _, rest = name.partition("/")
        if not (goes_on and places[kind].size(rest) == file.size):
            places[kind].write(rest, _checked(repository, name, file))
        report(count, len(manifest.files))
    for name, file in manifest.database.items():
        for _block in _checked(repository, name, file):
            pass
    contents = {name.rpartition("/")[2]: repository.blobs.open(name) for name in manifest.database}
    put_back(target.database_url, manifest.revision, contents)
    (target.folder / UNFINISHED).unlink()


def refuse_unfinished(folder: Path) -> None:
    """Raise SetupError where a restore was interrupted."""
    if (folder / UNFINISHED).exists():
        raise SetupError(
            f"A backup was being put back into {folder}, and that did not come to its end. Run "
            "`groundnote restore` again with the same backup; nothing is opened before."
        )


def _begun(target: EmptyLibrary, manifest: BackupManifest) -> bool:
    """Return whether this restore was begun before; else check that all is empty.

    Raises Conflict.
    """
    target.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(OSError, ValueError, KeyError):
        before = json.loads((target.folder / UNFINISHED).read_text())["backup"]
        if before != manifest.id:
            raise Conflict(
                f"Backup {before} was being put back into {target.folder}. Run that again, or name "
                "another GROUNDNOTE_DATA_DIR."
            )
        if not target.is_database_empty():
            raise Conflict(f"The database that {target.folder} uses holds something by now.")
        return True
    there = [path.name for path in target.folder.iterdir() if path.name not in HARMLESS]
    if there:
        raise Conflict(
            f"{target.folder} is not empty (it holds {', '.join(sorted(there)[:5])}). Nothing is "
            "written over: name an empty folder with GROUNDNOTE_DATA_DIR."
        )
    if not target.is_database_empty():
        raise Conflict(
            "The database of sessions.database_url is not empty. Nothing is written over: name an "
            "empty one."
        )
    for place in (target.originals, target.rows):
        if count := len(place.sizes()):
            raise Conflict(
                f"{place.place} is not empty (it holds {count} files). Nothing is written over: "
                "name an empty place (documents.originals_url, tables.url)."
            )
    return False


def _check_room(manifest: BackupManifest, target: EmptyLibrary) -> None:
    databases = sum(file.size for file in manifest.database.values())
    room, needed = room_for(FolderBlobs(target.folder)), manifest.size + 4 * databases
    if room is not None and needed > room:
        raise SetupError(
            f"The backup needs about {needed >> 20:,} MiB, and the disk of {target.folder} has "
            f"{room >> 20:,} MiB left. Make room, or name another GROUNDNOTE_DATA_DIR; nothing was "
            "begun."
        )


def _checked(repository: BackupRepository, name: str, file: FileRecord) -> Iterator[bytes]:
    """Yield a file of the backup; raises UserError at its end if the checksum differs."""
    digest = hashlib.sha256()
    for block in blocks(repository.blobs.open(name)):
        digest.update(block)
        yield block
    if digest.hexdigest() != file.checksum:
        raise UserError(
            f"{name} of the backup in {repository.place} is damaged: its checksum is another. "
            "Take another backup; nothing can be opened here before."
        )


# ── Comparing and repairing the indexes; room on the disk ────────────────────────────────────────

LEAST_FREE_BYTES = 64 * 1024 * 1024  # with less, nothing that writes is begun
REMOVED_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class Differences:
    """How the indexes differ from the database."""

    chunks: int
    missing_vectors: tuple[str, ...]  # ids of chunks without a vector
    extra_vectors: tuple[str, ...]  # ids of vectors without a chunk
    words: int  # chunks in the word index

    @property
    def has_all_words(self) -> bool:
        return self.words == self.chunks

    @property
    def is_whole(self) -> bool:
        return self.has_all_words and not self.missing_vectors and not self.extra_vectors

    def __str__(self) -> str:
        results = []
        if self.missing_vectors:
            results.append(f"{len(self.missing_vectors)} of {self.chunks} chunks have no vector")
        if self.extra_vectors:
            results.append(f"{len(self.extra_vectors)} vectors belong to no chunk")
        if not self.has_all_words:
            results.append(f"the word index holds {self.words} of {self.chunks} chunks")
        return "; ".join(results) or f"{self.chunks} chunks, with vectors and words"


class ChunkIds(Protocol):
    """The ids that a vector index holds."""

    def chunk_ids(self, among: Sequence[str] | None = None) -> set[str]: ...

    def count(self) -> int: ...


def compare(engine: Engine, index: ChunkIds) -> Differences:
    """Compare ids, not contents, in batches."""
    debts, present, missing = IndexDebts(engine), 0, list[str]()
    for ids in debts.embedded_batches():
        there = index.chunk_ids(ids)
        present += len(there)
        missing += [chunk_id for chunk_id in ids if chunk_id not in there]
    extra = index.chunk_ids() if index.count() > present else set()
    for ids in debts.embedded_batches() if extra else ():
        extra.difference_update(ids)
    return Differences(
        debts.chunk_count(), tuple(sorted(missing)), tuple(sorted(extra)), count_words(engine)
    )


def repair(
    engine: Engine,
    index: ChunkIndex,
    *,
    folder: Path,
    embed_missing: Callable[[], int],
) -> Differences:
    """Add what the indexes lack and remove what they have too much; return what was different.

    Raises SetupError, before anything is removed, for a database that seems to be lost.
    """
    differences = compare(engine, index)
    if differences.extra_vectors and not differences.chunks:
        refuse_emptied(engine, folder, vectors=len(differences.extra_vectors))
    if not differences.has_all_words:
        rebuild_words(engine)
    for start in range(0, len(differences.extra_vectors), REMOVED_AT_ONCE):
        index.remove(differences.extra_vectors[start : start + REMOVED_AT_ONCE])
    if differences.missing_vectors:
        IndexDebts(engine).mark_unembedded(differences.missing_vectors)
    embed_missing()
    return differences


def check_room(folder: Path) -> None:
    """Raise StorageFailed if the disk has too little room to begin."""
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE_BYTES:
        raise StorageFailed(
            f"The disk of {folder} has {free >> 20} MiB left; {LEAST_FREE_BYTES >> 20} MiB are the "
            "least to work with. Make room; nothing that is stored is lost."
        )
    if os.statvfs(folder).f_flag & os.ST_RDONLY or not os.access(folder, os.W_OK):
        raise StorageFailed(
            f"{folder} can only be read just now. Answers can be looked up, nothing can be added. "
            "Mount it for writing; nothing that is stored is lost."
        )

"""A library put back from a backup into an empty place; nothing that is there is ever replaced."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine

from rag.db import newest_revision, revisions
from rag.db.blobs import Blobs, FolderBlobs, blocks
from rag.documents.index_changes import IndexDebts
from rag.errors import Conflict, SetupError, StorageFailed, UserError
from rag.operations.backup import FileReport
from rag.operations.manifest import FileRecord, refuse_emptied
from rag.operations.repository import BackupManifest, BackupRepository, room_for
from rag.operations.snapshot import put_back
from rag.seams import ChunkIndex
from rag.search.word_repair import count_words, rebuild_words

UNFINISHED = "restoring.json"  # there from the first file of a restore to the last
HARMLESS = frozenset(
    {"models", "ocr", "errors.log", "secret.key", "lost+found"}
)  # made again, or nobody's


@dataclass(frozen=True, slots=True)
class EmptyLibrary:
    """Where one is put back to."""

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
    """Put it back; until it has ended nothing can be opened there, and it can be run again.

    Raises UserError where the backup is not whole, Conflict where something is there, SetupError
    for a backup of a newer version.
    """
    _refuse_newer(manifest)
    _refuse_lacking(repository, manifest)
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
    """Raises SetupError where a restore was broken off."""
    if (folder / UNFINISHED).exists():
        raise SetupError(
            f"A backup was being put back into {folder}, and that did not come to its end. Run "
            "`groundnote restore` again with the same backup; nothing is opened before."
        )


def _refuse_newer(manifest: BackupManifest) -> None:
    if manifest.revision not in revisions():
        raise SetupError(
            f"Backup {manifest.id} was made by version {manifest.version} (schema "
            f"{manifest.revision}), which is newer than this one ({newest_revision()}). Install "
            "that version to restore it."
        )


def _refuse_lacking(repository: BackupRepository, manifest: BackupManifest) -> None:
    if lacking := repository.lacking(manifest):
        raise UserError(
            f"Backup {manifest.id} in {repository.place} is not whole: {len(lacking)} of "
            f"{len(manifest.all_files)} files that its manifest names are gone or of another "
            f"length ({', '.join(lacking[:5])}). Nothing was restored. Take another backup: "
            f"{', '.join(id_ for id_ in repository.ids() if id_ != manifest.id) or 'none'}."
        )


def _begun(target: EmptyLibrary, manifest: BackupManifest) -> bool:
    """Whether this very restore was begun here before; else all is empty. Raises Conflict."""
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
    """A file of the backup, unless it is another one. Raises UserError at its end."""
    digest = hashlib.sha256()
    yield from _over(digest, blocks(repository.blobs.open(name)))
    if digest.hexdigest() != file.checksum:
        raise UserError(
            f"{name} of the backup in {repository.place} is damaged: its checksum is another. "
            "Take another backup; nothing can be opened here before."
        )


def _over(digest: "hashlib._Hash", parts: Iterable[bytes]) -> Iterator[bytes]:
    for part in parts:
        digest.update(part)
        yield part


# ── Whether the indexes hold what the database says, and their repair; room on the disk ───────────

LEAST_FREE_BYTES = 64 * 1024 * 1024  # with less nothing is begun that writes
REMOVED_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class Differences:
    """How the indexes differ from the database; all are counts but the ids."""

    chunks: int
    missing_vectors: tuple[str, ...]  # ids of chunks that should have one
    extra_vectors: tuple[str, ...]  # ids that are no chunk's
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


def compare(engine: Engine, held: Set[str]) -> Differences:
    """Look at ids, not at contents; `held` are those of the vector index."""
    debts = IndexDebts(engine)
    embedded, chunks = debts.embedded_ids(), debts.chunk_count()
    return Differences(
        chunks,
        tuple(sorted(embedded - held)),
        tuple(sorted(held - embedded)),
        count_words(engine),
    )


def repair(
    engine: Engine,
    index: ChunkIndex,
    *,
    folder: Path,
    embed_missing: Callable[[], int],
) -> Differences:
    """Make what is missing and take away what is too much; returns what there was to do.

    Raises SetupError before anything is taken away for a database that is gone.
    """
    differences = compare(engine, index.chunk_ids())
    if differences.extra_vectors and not differences.chunks:
        refuse_emptied(engine, folder, vectors=len(differences.extra_vectors))
    if not differences.has_all_words:
        rebuild_words(engine)
    for at in range(0, len(differences.extra_vectors), REMOVED_AT_ONCE):
        index.remove(differences.extra_vectors[at : at + REMOVED_AT_ONCE])
    if differences.missing_vectors:
        IndexDebts(engine).mark_unembedded(differences.missing_vectors)
    embed_missing()
    return differences


def check_room(folder: Path) -> None:
    """Refuse to begin what the disk has no room for. Raises StorageFailed."""
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

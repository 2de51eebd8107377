"""Backup repositories: a folder or URL with many backups and each file once, or one archive.

originals/ab/ab12…     by content hash tables/ID.parquet      by table id uploads/ID
files that wait to be read databases/BACKUP/…     the database of each backup
manifests/BACKUP.json.gz   written last: a backup is complete only with its manifest
"""

import gzip
import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, cast

from rag.db.blobs import PART, Blobs, FolderBlobs, blocks, open_blobs
from rag.errors import SetupError, UserError
from rag.operations.snapshot import FileRecord

FORMAT = 1
ARCHIVE = ".zip"
MANIFESTS, ENDING = "manifests/", ".json.gz"
RUNNING = "running/"  # markers of backups that are being made
LONGEST_SECONDS = 86_400  # after which an unfinished backup counts as killed


@dataclass(frozen=True, slots=True)
class BackupManifest:
    """The contents of a backup; if anything of it is missing, it is refused."""

    id: str  # begins with the time
    created_at: str
    version: str
    revision: str  # the schema's revision
    counts: dict[str, int]
    database: dict[str, FileRecord]
    files: dict[str, FileRecord]
    # With the documents that need the file.
    missing: dict[str, list[str]] = field(default_factory=dict)
    settings: dict[str, object] = field(default_factory=dict)
    secrets: list[str] = field(default_factory=list)  # names of settings that are left out

    @property
    def all_files(self) -> dict[str, FileRecord]:
        """The files, including those of the database."""
        return self.database | self.files

    @property
    def size(self) -> int:
        return sum(file.size for file in self.all_files.values())


class BackupRepository:
    """The backups in one place."""

    def __init__(self, blobs: Blobs) -> None:
        self.blobs = blobs
        self.place = blobs.place

    def ids(self) -> list[str]:
        """Return the ids of complete backups, the newest first."""
        names = [name for name in self.blobs.sizes() if name.startswith(MANIFESTS)]
        ids = (name.removeprefix(MANIFESTS).removesuffix(ENDING) for name in names)
        return sorted(ids, reverse=True)

    def manifest(self, backup_id: str = "") -> BackupManifest:
        """Return a backup's manifest, or the newest. Raises UserError if missing or incomplete."""
        ids = self.ids()
        chosen = backup_id or (ids[0] if ids else "")
        if chosen not in ids:
            others = f"There are {', '.join(ids[:5])}." if ids else "There is none."
            what = f"backup {backup_id}" if backup_id else "whole backup"
            raise UserError(f"{self.place} holds no {what}. {others}")
        try:
            packed = b"".join(blocks(self.blobs.open(f"{MANIFESTS}{chosen}{ENDING}")))
            values = json.loads(gzip.decompress(packed))
            if values["format"] > FORMAT:
                raise SetupError(
                    f"Backup {chosen} was made by version {values['version']} of Groundnote, which "
                    "is newer than this one. Install that one to restore it."
                )
            if values.pop("checksum") != _hash_values(values):
                raise ValueError("its checksum is another")
            del values["format"]
            for part in ("database", "files"):
                values[part] = {name: FileRecord(*file) for name, file in values[part].items()}
            return BackupManifest(**values)
        except (ValueError, KeyError, TypeError, EOFError, OSError) as error:
            raise UserError(
                f"The manifest of backup {chosen} in {self.place} cannot be read ({error}). Take "
                f"another backup: {', '.join(id_ for id_ in ids if id_ != chosen) or 'none'}."
            ) from error

    def write_manifest(self, manifest: BackupManifest) -> None:
        """Write the manifest, the last file of a backup."""
        values = {"format": FORMAT, **asdict(manifest)}
        packed = gzip.compress(json.dumps(values | {"checksum": _hash_values(values)}).encode())
        self.blobs.write(f"{MANIFESTS}{manifest.id}{ENDING}", [packed])

    def lacking(self, manifest: BackupManifest, *, reads: bool = False) -> list[str]:
        """Return the files of a backup that are missing or have another size.

        With `reads` each file is read as well and compared with its checksum.
        """
        sizes = self.blobs.sizes()
        return [
            name
            for name, file in manifest.all_files.items()
            if sizes.get(name) != file.size or (reads and not self._is_whole(name, file))
        ]

    def _is_whole(self, name: str, file: FileRecord) -> bool:
        digest = hashlib.sha256()
        with suppress(OSError, zipfile.BadZipFile):
            for block in blocks(self.blobs.open(name)):  # remote stores have no `readinto`
                digest.update(block)
            return digest.hexdigest() == file.checksum
        return False

    @contextmanager
    def being_made(self, backup_id: str) -> Iterator[None]:
        """Mark a backup as being made, so that `keep` deletes no files meanwhile."""
        name = f"{RUNNING}{backup_id}"
        self.blobs.write(name, [b"."])
        try:
            yield
        finally:
            self.blobs.remove([name])

    def keep(self, count: int) -> int:
        """Delete all but the newest complete backups; return how many.

        Files that a kept manifest names are never deleted, and none while another backup is being
        made.
        """
        ids = self.ids()
        whole = [id_ for id_ in ids if self._is_readable(id_)]
        unwanted = [id_ for id_ in ids if id_ not in whole[: max(1, count)]]
        if not whole or not unwanted or self._is_written_by_others():
            return 0
        staying = [self.manifest(id_) for id_ in ids if id_ not in unwanted]
        self.blobs.remove(f"{MANIFESTS}{id_}{ENDING}" for id_ in unwanted)
        needed = {name for manifest in staying for name in manifest.all_files}
        kinds = ("originals/", "tables/", "uploads/", "databases/")
        self.blobs.remove(
            name for name in self.blobs.sizes() if name.startswith(kinds) and name not in needed
        )
        return len(unwanted)

    def _is_readable(self, backup_id: str) -> bool:
        try:
            return not self.lacking(self.manifest(backup_id))
        except (UserError, SetupError):
            return False

    def _is_written_by_others(self) -> bool:
        now = datetime.now(UTC)
        names = [name for name in self.blobs.sizes() if name.startswith(RUNNING)]
        with suppress(FileNotFoundError):
            return any(
                (now - self.blobs.modified(name)).total_seconds() < LONGEST_SECONDS
                for name in names
            )
        return True


def _hash_values(values: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


@contextmanager
def opened_for_backup(target: str) -> Iterator[BackupRepository]:
    """Open a folder or URL, or a new archive. Raises UserError."""
    path = Path(target)
    if "://" in target or path.suffix.lower() != ARCHIVE:
        if "://" not in target and path.is_file():
            raise UserError(f"{target} is a file. Name a folder, a URL, or an archive that ends "
                            f"with {ARCHIVE}.")  # fmt: skip
        yield BackupRepository(open_blobs(target))
        return
    if path.exists():
        raise UserError(
            f"{target} is there already, and a backup that is whole is never written over. Name "
            "another file."
        )
    half = path.with_name(f"{path.name}{PART}")
    try:
        with ArchiveBlobs(half, "x") as archive:
            yield BackupRepository(archive)
        with half.open("rb") as file:
            os.fsync(file.fileno())
        half.rename(path)
    except BaseException:
        half.unlink(missing_ok=True)
        raise


@contextmanager
def opened_for_restore(source: str) -> Iterator[BackupRepository]:
    """Open a folder, URL or archive. Raises UserError if it is no backup."""
    path = Path(source)
    if "://" in source or path.is_dir():
        yield BackupRepository(open_blobs(source))
        return
    if not path.is_file():
        raise UserError(f"There is no backup at {source}.")
    try:
        archive = ArchiveBlobs(path, "r")
    except (zipfile.BadZipFile, OSError) as error:
        raise UserError(
            f"{source} is no whole archive ({error}): its end is missing, or it is another file. "
            "Take another backup."
        ) from error
    with archive:
        yield BackupRepository(archive)


class ArchiveBlobs:
    """Files in one ZIP archive, uncompressed."""

    def __init__(self, path: Path, mode: str) -> None:
        self.place = str(path.with_name(path.name.removesuffix(PART)))
        self.path = path
        if mode == "x":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)  # left by a killed process
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        self._zip = zipfile.ZipFile(path, "w" if mode == "x" else "r", zipfile.ZIP_STORED)
        self._sizes = {member.filename: member.file_size for member in self._zip.infolist()}

    def __enter__(self) -> "ArchiveBlobs":
        return self

    def __exit__(self, *_error: object) -> None:
        self._zip.close()

    def sizes(self) -> dict[str, int]:
        return dict(self._sizes)

    def size(self, name: str) -> int | None:
        return self._sizes.get(name)

    def open(self, name: str) -> BinaryIO:
        try:
            return cast("BinaryIO", self._zip.open(name))
        except KeyError as error:
            raise FileNotFoundError(name) from error

    def write(self, name: str, parts: Iterable[bytes]) -> None:
        if name.startswith(RUNNING):
            return
        size = 0
        with self._zip.open(name, "w", force_zip64=True) as file:
            for part in parts:
                size += file.write(part)
        self._sizes[name] = size

    def remove(self, names: Iterable[str]) -> None:
        """Do nothing: files cannot be removed from an archive."""

    def modified(self, name: str) -> datetime:
        return datetime.fromtimestamp(self.path.stat().st_mtime, UTC)


def room_for(blobs: Blobs) -> int | None:
    """Return how many bytes can still be written; None if unknown."""
    if isinstance(blobs, FolderBlobs):
        return blobs.free()
    if isinstance(blobs, ArchiveBlobs):
        return shutil.disk_usage(blobs.path.parent).free
    return None


def folder_beside(blobs: Blobs, otherwise: Path) -> Path:
    """Return a folder on the disk of the backup, if that is on this machine."""
    if isinstance(blobs, FolderBlobs):
        return blobs.folder
    return blobs.path.parent if isinstance(blobs, ArchiveBlobs) else otherwise

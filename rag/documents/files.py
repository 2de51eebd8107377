"""Files to ingest: found in folders, uploaded, or packed in zip archives."""

import io
import os
import re
import stat
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

from rag.documents.limits import MEBIBYTE
from rag.errors import TooLarge, Unreadable, UserError
from rag.records import DEFAULT_COLLECTION

MOST_FILES = 10_000
MOST_BYTES = 2_000 * MEBIBYTE  # unpacked size of all files of an archive
MOST_RATIO = 200  # unpacked size to packed size of one file
SMALL_BYTES = MEBIBYTE  # a file up to this size may have any ratio
BROKEN = (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, ValueError, EOFError)
HIDDEN = ("__MACOSX", ".")


def is_archive(name: str) -> bool:
    """Return whether the name ends as a zip archive's; zipped document formats end otherwise."""
    return name.lower().endswith(".zip")


def members(name: str, archive: Path | bytes) -> Iterator[tuple[str, int]]:
    """Yield an archive's file names, sorted, and their sizes in bytes, without hidden files.

    Raises:
        Unreadable: The archive is damaged or encrypted.
        TooLarge: It holds more files, or unpacks to more, than an honest archive does.
    """
    with _opened_archive(name, archive) as opened:
        files = [file for file in opened.infolist() if not file.is_dir()]
        if any(file.flag_bits & 1 for file in files):
            raise Unreadable(name, "the archive is encrypted. Unpack it, then add what is in it.")
        check_honest(name, files)
        sizes = {file.filename: file.file_size for file in files}
        for member, size in sorted(sizes.items()):
            if not any(part.startswith(HIDDEN) for part in member.split("/")):
                yield member, size


def check_honest(name: str, files: Sequence[zipfile.ZipInfo]) -> None:
    """Raise TooLarge where the files unpack to more than those of an honest archive do."""
    total = sum(file.file_size for file in files)
    is_bomb = any(unpacks_hugely(file, MOST_RATIO) for file in files)
    if len(files) > MOST_FILES or total > MOST_BYTES or is_bomb:
        raise TooLarge(
            f"{name}: holds {len(files):,} files of {total / MEBIBYTE:,.0f} MiB together, as zip "
            f"bombs do; at most {MOST_FILES:,} files, {MOST_BYTES / MEBIBYTE:,.0f} MiB and "
            f"{MOST_RATIO} times the packed size of each are unpacked. Unpack it yourself."
        )


def unpacked(name: str, archive: Path | bytes, member: str, max_bytes: int) -> bytes:
    """Return the bytes of one file of an archive. Raises Unreadable and TooLarge."""
    with _opened_archive(name, archive) as opened, opened.open(member) as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise TooLarge(f"{name}/{member}: has more than {max_bytes:,} bytes, the limit. Split it.")
    return data


def name_inside(name: str, member: str) -> str:
    """Return the name of an archive's file, `offers.zip/2026/prices.csv`, without any `..`."""
    parts = member.replace("\\", "/").split("/")
    return "/".join([name, *(part for part in parts if part not in ("", ".", ".."))])


@contextmanager
def _opened_archive(name: str, archive: Path | bytes) -> Iterator[zipfile.ZipFile]:
    """Open an archive; errors of the zip library become Unreadable."""
    source = io.BytesIO(archive) if isinstance(archive, bytes) else archive
    try:
        with zipfile.ZipFile(source) as unzipped:
            yield unzipped
    except (*BROKEN, KeyError) as error:
        raise Unreadable(name, "the archive is damaged or was cut off. Save it again.") from error


def unpacks_hugely(file: zipfile.ZipInfo, ratio: int) -> bool:
    """Return whether a file has more than so many times its packed size, and is not small."""
    return file.file_size > max(SMALL_BYTES, ratio * max(1, file.compress_size))


READ_ATTEMPTS = 3
LONGEST_NAME_BYTES = 255
UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
LEADS_OUT = (
    "this link leads out of the folder and is not followed. "
    "Ingest what it leads to by its own path."
)
ReadBytes = Callable[[int], bytes]  # its argument: the largest size allowed, in bytes


@dataclass(frozen=True, slots=True)
class IncomingFile:
    """A file that has yet to be read; its bytes are in memory no longer than needed."""

    name: str  # relative to the ingested folder, with forward slashes
    read: ReadBytes  # raises UserError
    owner: str = ""  # who adds it; empty: an owner who may replace any document
    collection_id: str = DEFAULT_COLLECTION
    job_id: str = ""  # of an upload
    document_id: str = ""  # the document to replace, whatever its name; "": found by name
    url: str = ""  # the link under which people open it
    is_again: bool = False  # read again although it has not changed
    has_arrived: bool = False  # was stored before: if it was deleted since, it is not stored again
    author: str = ""  # used where the file itself names none
    date: str = ""  # likewise, as "2025-03-31"

    @classmethod
    def from_bytes(cls, name: str, data: bytes) -> "IncomingFile":
        """Make an upload from its bytes. Raises UserError where the name has no safe part."""
        return cls(safe_name(name), lambda _max_bytes: data)

    @classmethod
    def from_path(cls, path: Path, *, name: str) -> "IncomingFile":
        """Make a file from a path on disk; it is opened only when `read` is called."""
        return cls(name, lambda max_bytes: read_steadily(path, name=name, max_bytes=max_bytes))

    @classmethod
    def failing(cls, name: str, error: UserError) -> "IncomingFile":
        """Make a file whose `read` raises the error, so that the path is reported in its place."""

        def read(_max_bytes: int) -> bytes:
            raise error

        return cls(name, read)


def safe_name(name: str) -> str:
    """Return the last part of an uploaded name, without dots and characters that are not safe.

    Raises:
        UserError: Nothing is left of the name.
    """
    normal = unicodedata.normalize("NFC", UNFIT.sub("", name)).replace("\\", "/")
    base = normal.rsplit("/", 1)[-1].strip().lstrip(".").strip()
    while len(base.encode()) > LONGEST_NAME_BYTES:
        stem, dot, ending = base.rpartition(".")
        base = f"{stem[:-1]}{dot}{ending}" if stem and len(ending) < 20 else base[:-1]
    if not base:
        raise UserError(
            f"{name[:60]!r} is no file name. Give the file a name such as manual.pdf "
            "and send it again."
        )
    return base


def collect(paths: Iterable[Path | str]) -> list[IncomingFile]:
    """Return the files at the paths and in the folders, in sorted order.

    Names are relative to the given folder; hidden files are left out. A path that does not exist
    or cannot be listed becomes a file that fails when it is read.
    """
    results: list[IncomingFile] = []
    for path in map(Path, paths):
        if path.is_dir():
            results.extend(_walk_folder(path, path, frozenset()))
        elif is_archive(path.name):
            results.extend(archive_files(path))
        else:
            results.append(IncomingFile.from_path(path, name=fit_name(path.name) or str(path)))
    return results


def archive_files(path: Path) -> Iterator[IncomingFile]:
    """Yield the files of a zip archive on disk; a damaged one yields a file that fails to read."""
    name = fit_name(path.name)
    try:
        for member, _size in members(name, path):
            read = partial(unpacked, name, path, member)
            yield IncomingFile(fit_name(name_inside(name, member)), read)
    except UserError as error:
        yield IncomingFile.failing(name, error)
    except OSError as error:
        yield IncomingFile.failing(name, Unreadable(name, _why(error, "file")))


def _walk_folder(root: Path, folder: Path, above: frozenset[str]) -> Iterator[IncomingFile]:
    real = os.path.realpath(folder)
    if real in above:  # a link back to a folder above this one
        return
    try:
        entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        name = _relative(folder, root)
        yield IncomingFile.failing(name, Unreadable(name, _why(error, "folder")))
        return
    for entry in entries:
        name = _relative(entry, root)
        if entry.is_symlink() and not is_within(entry, root):
            yield IncomingFile.failing(name, Unreadable(name, LEADS_OUT))
        elif entry.is_dir():
            yield from _walk_folder(root, entry, above | {real})
        elif is_archive(entry.name):
            for file in archive_files(entry):  # its folder's path goes before their names
                yield replace(file, name=name + file.name.removeprefix(fit_name(entry.name)))
        else:
            yield IncomingFile.from_path(entry, name=name)


def is_within(link: Path, root: Path) -> bool:
    """Return whether a link leads into the folder `root`.

    A broken link counts as within: it is reported as missing when it is read.
    """
    target = Path(os.path.realpath(link))
    return not target.exists() or target.is_relative_to(os.path.realpath(root))


def _relative(path: Path, root: Path) -> str:
    return fit_name(path.relative_to(root).as_posix()) if path != root else fit_name(root.name)


def fit_name(name: str) -> str:
    """Return a name from a disk in NFC, with U+FFFD for characters that databases cannot store."""
    return unicodedata.normalize("NFC", UNFIT.sub("\ufffd", name))


def read_steadily(path: Path, *, name: str, max_bytes: int) -> bytes:
    """Return the bytes of a file; read again if it was written to meanwhile.

    Raises:
        Unreadable: It does not exist, may not be read, is no regular file, or keeps changing.
        TooLarge: It has more than `max_bytes`.
    """
    try:
        for _attempt in range(READ_ATTEMPTS):
            _check_regular(path.stat(), name)  # before opening: some devices then act
            with _opened(path) as file:
                before = os.fstat(file.fileno())
                _check_regular(before, name)
                data = file.read(max_bytes + 1) if before.st_size <= max_bytes else b""
            if before.st_size > max_bytes:
                raise TooLarge(
                    f"{name}: the file has {before.st_size:,} bytes, the limit is {max_bytes:,}. "
                    "Split it, or raise the limit in the settings."
                )
            if _state(before) == _state(path.stat()) and len(data) == before.st_size:
                return data
    except OSError as error:
        raise Unreadable(name, _why(error, "file")) from error
    raise Unreadable(
        name,
        "the file was being written to while it was read. Ingest it again when it is complete.",
    )


def _opened(path: Path) -> BinaryIO:
    """Open a file without waiting, also if a pipe took its place that nothing writes to."""
    waits_not = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, os.O_RDONLY | waits_not), "rb")


def _check_regular(status: os.stat_result, name: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable(name, "this is no regular file (a device, pipe or socket).")


def _state(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_mtime_ns, status.st_size, status.st_ino


def _why(error: OSError, kind: str) -> str:
    if isinstance(error, FileNotFoundError):
        return f"there is no such {kind}. Check the path."
    if isinstance(error, PermissionError):
        return f"the {kind} may not be read by this user. Change its permissions."
    return f"the {kind} cannot be read: {error.strerror or error}."

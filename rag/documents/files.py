"""Files on their way in: found in folders, uploaded, or packed in zip archives."""

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
MOST_BYTES = 2_000 * MEBIBYTE  # unpacked, over all of its files
MOST_RATIO = 200  # of what a file unpacks to, to its packed size
SMALL_BYTES = MEBIBYTE  # of a file, whatever its ratio
BROKEN = (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, ValueError, EOFError)
HIDDEN = ("__MACOSX", ".")


def is_archive(name: str) -> bool:
    """Whether the name is that of a zip archive; documents that are one have other endings."""
    return name.lower().endswith(".zip")


def members(name: str, archive: Path | bytes) -> Iterator[tuple[str, int]]:
    """Its files by their names, sorted, each with its size in bytes; hidden ones are left out.

    Raises:
        Unreadable: it is damaged, or encrypted.
        TooLarge: it holds more files, or unpacks to more, than an honest one does.
    """
    with _opened_archive(name, archive) as opened:
        files = [file for file in opened.infolist() if not file.is_dir()]
        if any(file.flag_bits & 1 for file in files):
            raise Unreadable(name, "the archive is encrypted. Unpack it, then add what is in it.")
        check_honest(name, files)
        seen = {file.filename: file.file_size for file in files if not _is_hidden(file.filename)}
        yield from sorted(seen.items())


def check_honest(name: str, files: Sequence[zipfile.ZipInfo]) -> None:
    """Raises TooLarge where they unpack to more than an honest archive does."""
    total = sum(file.file_size for file in files)
    if len(files) > MOST_FILES or total > MOST_BYTES or any(map(_is_bomb, files)):
        raise TooLarge(
            f"{name}: holds {len(files):,} files of {total / MEBIBYTE:,.0f} MiB together, as zip "
            f"bombs do; at most {MOST_FILES:,} files, {MOST_BYTES / MEBIBYTE:,.0f} MiB and "
            f"{MOST_RATIO} times the packed size of each are unpacked. Unpack it yourself."
        )


def unpacked(name: str, archive: Path | bytes, member: str, max_bytes: int) -> bytes:
    """One of its files. Raises Unreadable and TooLarge."""
    with _opened_archive(name, archive) as opened, opened.open(member) as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise TooLarge(f"{name}/{member}: has more than {max_bytes:,} bytes, the limit. Split it.")
    return data


def name_inside(name: str, member: str) -> str:
    """`offers.zip/2026/prices.csv`; nothing leads out of the archive."""
    parts = member.replace("\\", "/").split("/")
    return "/".join([name, *(part for part in parts if part not in ("", ".", ".."))])


@contextmanager
def _opened_archive(name: str, archive: Path | bytes) -> Iterator[zipfile.ZipFile]:
    """The archive, whose faults become faults of the file."""
    source = io.BytesIO(archive) if isinstance(archive, bytes) else archive
    try:
        with zipfile.ZipFile(source) as unzipped:
            yield unzipped
    except (*BROKEN, KeyError) as error:
        raise Unreadable(name, "the archive is damaged or was cut off. Save it again.") from error


def _is_bomb(file: zipfile.ZipInfo) -> bool:
    return file.file_size > max(SMALL_BYTES, MOST_RATIO * max(1, file.compress_size))


def _is_hidden(member: str) -> bool:
    return any(part.startswith(HIDDEN) for part in member.split("/"))


READ_ATTEMPTS = 3
LONGEST_NAME_BYTES = 255
UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
LEADS_OUT = (
    "this link leads out of the folder and is not followed. "
    "Ingest what it leads to by its own path."
)
ReadBytes = Callable[[int], bytes]  # gets the largest size that is allowed


@dataclass(frozen=True, slots=True)
class IncomingFile:
    """A file that has yet to be read: its bytes are held no longer than needed."""

    name: str  # relative to the ingested folder, with forward slashes
    read: ReadBytes  # raises UserError
    owner: str = ""  # who brings it; empty: somebody who may replace any
    collection_id: str = DEFAULT_COLLECTION
    job_id: str = ""  # of an upload
    document_id: str = ""  # that it is to be, whatever its name; "" leaves it to the name
    url: str = ""  # where people open it
    is_again: bool = False  # read although nothing of it changed
    has_arrived: bool = False  # among the documents, or was: gone since, it is not brought back
    author: str = ""  # where the file itself names none
    date: str = ""  # the same, "2025-03-31"

    @classmethod
    def from_bytes(cls, name: str, data: bytes) -> "IncomingFile":
        """An upload; raises UserError for a name that leaves nothing when made safe."""
        return cls(safe_name(name), lambda _max_bytes: data)

    @classmethod
    def from_path(cls, path: Path, *, name: str) -> "IncomingFile":
        """A file on disk, read when its turn comes."""
        return cls(name, lambda max_bytes: read_steadily(path, name=name, max_bytes=max_bytes))

    @classmethod
    def failing(cls, name: str, error: UserError) -> "IncomingFile":
        """Stands for a path that cannot be read, so that it is reported in its place."""

        def read(_max_bytes: int) -> bytes:
            raise error

        return cls(name, read)


def safe_name(name: str) -> str:
    """The last part of an uploaded name, without what could lead out of a folder or hide.

    Raises:
        UserError: nothing is left.
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
    """The files at the paths and in the folders, in sorted order.

    Names are relative to the folder given; hidden files are left out. A path that does not exist
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
    """The files of a zip archive on disk; one that cannot be opened fails when it is read."""
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
    if real in above:  # a link back to a folder that we are in
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
            for file in archive_files(entry):  # named with the folder that the archive lies in
                yield replace(file, name=name + file.name.removeprefix(fit_name(entry.name)))
        else:
            yield IncomingFile.from_path(entry, name=name)


def is_within(link: Path, root: Path) -> bool:
    """A link to nothing is within: it is reported as missing when its turn comes."""
    target = Path(os.path.realpath(link))
    return not target.exists() or target.is_relative_to(os.path.realpath(root))


def _relative(path: Path, root: Path) -> str:
    return fit_name(path.relative_to(root).as_posix()) if path != root else fit_name(root.name)


def fit_name(name: str) -> str:
    """A name on a disk as the library and its databases can hold it."""
    return unicodedata.normalize("NFC", UNFIT.sub("\ufffd", name))


def read_steadily(path: Path, *, name: str, max_bytes: int) -> bytes:
    """The bytes of a file that nobody wrote to meanwhile; tries again if somebody did.

    Raises:
        Unreadable: it does not exist, may not be read, is no regular file, or keeps changing.
        TooLarge: it has more than `max_bytes`.
    """
    try:
        for _attempt in range(READ_ATTEMPTS):
            _check_regular(path.stat(), name)  # some devices do something when they are opened
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
    """At once, also where a pipe took the place of the file: nobody may ever write to it."""
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

"""Zip archives as folders: each file in them is a document of its own."""

import io
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rag.documents.limits import MEBIBYTE
from rag.errors import TooLarge, Unreadable

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
    with _opened(name, archive) as opened:
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
    with _opened(name, archive) as opened, opened.open(member) as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise TooLarge(f"{name}/{member}: has more than {max_bytes:,} bytes, the limit. Split it.")
    return data


def name_inside(name: str, member: str) -> str:
    """`offers.zip/2026/prices.csv`; nothing leads out of the archive."""
    parts = member.replace("\\", "/").split("/")
    return "/".join([name, *(part for part in parts if part not in ("", ".", ".."))])


@contextmanager
def _opened(name: str, archive: Path | bytes) -> Iterator[zipfile.ZipFile]:
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

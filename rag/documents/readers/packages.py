"""The zip around DOCX, PPTX, XLSX, OpenDocument and EPUB, checked before any library opens it."""

import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from rag.documents.limits import MEBIBYTE, LoadLimits
from rag.errors import TooLarge, Unreadable

# A document type that says something itself brings entity bombs and external entities; one that
# only names a file is written by LibreOffice about macros, and in books, and is not fetched.
DOCTYPE = re.compile(rb"<!\s*(?:ENTITY|DOCTYPE[^>\[]*\[)", re.IGNORECASE)
WIDE_DOCTYPE = re.compile(
    b"|".join(
        word.encode(encoding)
        for word in ("<!DOCTYPE", "<!ENTITY")
        for encoding in ("utf-16-le", "utf-16-be")
    )
)
ZIP_START = b"PK"
SMALL_BYTES = 1024 * 1024  # of a part, whatever its ratio
PROLOGUE_BYTES = 1024 * 1024
MAX_PARTS = 20_000
XML_ENDINGS = (".xml", ".rels", ".vml")
BROKEN: tuple[type[Exception], ...] = (
    *(SyntaxError, LookupError, ValueError, TypeError, AttributeError),  # the first of XML parsers
    *(NotImplementedError, zipfile.BadZipFile, zlib.error, EOFError, OSError),
)


def check_package(name: str, data: bytes, limits: LoadLimits) -> None:
    """The directory is believed: no library unpacks more of a part than it says there.

    Raises:
        Unreadable: damaged, encrypted, or with a document type in a part.
        TooLarge: it would unpack to more than the limits allow.
    """
    with damage_told(name), zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = archive.infolist()
        _check_directory(name, parts, limits)
        for part in parts:
            if part.filename.lower().endswith(XML_ENDINGS):
                with archive.open(part) as stream:
                    _refuse_doctype(name, part.filename, stream.read(PROLOGUE_BYTES))


@contextmanager
def damage_told(name: str, *errors: type[Exception]) -> Iterator[None]:
    """What libraries raise about broken parts, these errors among them, becomes Unreadable."""
    try:
        yield
    except (*BROKEN, *errors) as error:
        raise Unreadable(
            name, "the file is damaged or was cut off: its parts cannot be unpacked. Save it again."
        ) from error


def _bomb(name: str, size: int, limits: LoadLimits) -> TooLarge:
    return TooLarge(
        f"{name}: unpacks to {size / MEBIBYTE:,.0f} MiB or more, the limit is "
        f"{limits.max_unpacked_bytes / MEBIBYTE:,.0f} MiB and {limits.max_unpacked_ratio} times "
        "its packed size. It looks like a zip bomb; save the document again or split it."
    )


def _check_directory(name: str, parts: list[zipfile.ZipInfo], limits: LoadLimits) -> None:
    if any(part.flag_bits & 1 for part in parts):
        raise Unreadable(name, "the file is encrypted and needs a password. Save it without one.")
    total = sum(part.file_size for part in parts)
    if total > limits.max_unpacked_bytes or len(parts) > MAX_PARTS:
        raise _bomb(name, total, limits)
    for part in parts:
        packed = limits.max_unpacked_ratio * max(1, part.compress_size)
        if part.file_size > max(SMALL_BYTES, packed):
            raise _bomb(name, part.file_size, limits)


def _refuse_doctype(name: str, part: str, piece: bytes) -> None:
    if DOCTYPE.search(piece) or WIDE_DOCTYPE.search(piece):
        raise Unreadable(
            name,
            f"its part {part} declares a document type or entities, which no Office program "
            "writes and which can read other files. It was not opened.",
        )

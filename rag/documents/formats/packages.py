"""The zip around DOCX, PPTX and XLSX, checked before any library opens it."""

import io
import re
import zipfile
import zlib

from rag.documents.limits import MEBIBYTE, LoadLimits
from rag.errors import TooLarge, Unreadable

# No Office program writes a document type; with one come entity bombs and external entities.
DOCTYPE = re.compile(rb"<!\s*(?:DOCTYPE|ENTITY)", re.IGNORECASE)
WIDE_DOCTYPE = re.compile(
    b"|".join(
        word.encode(encoding)
        for word in ("<!DOCTYPE", "<!ENTITY")
        for encoding in ("utf-16-le", "utf-16-be")
    )
)
PIECE_BYTES = 1024 * 1024
PROLOGUE_BYTES = 64 * 1024
MAX_PARTS = 20_000
XML_ENDINGS = (".xml", ".rels", ".vml")


def check_package(name: str, data: bytes, limits: LoadLimits) -> list[str]:
    """The names of its parts.

    What the directory claims is checked first; then every XML part is unpacked piece by piece
    and counted, because a directory can lie.

    Raises:
        Unreadable: damaged, encrypted, or with a document type in a part.
        TooLarge: it would unpack to more than the limits allow.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = archive.infolist()
            _check_directory(name, parts, limits)
            unpacked = 0
            for part in parts:
                if part.filename.lower().endswith(XML_ENDINGS):
                    unpacked += _check_part(name, archive, part, limits)
            if unpacked > limits.max_unpacked_bytes:
                raise _bomb(name, unpacked, limits)
            return [part.filename for part in parts]
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as error:
        raise damaged(name) from error


def damaged(name: str) -> Unreadable:
    """The error for a package whose parts are broken. (XML parsers raise a SyntaxError.)"""
    return Unreadable(
        name, "the file is damaged or was cut off: its parts cannot be unpacked. Save it again."
    )


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
        _check_ratio(name, part, part.file_size, limits)


def _check_ratio(name: str, part: zipfile.ZipInfo, size: int, limits: LoadLimits) -> None:
    if size > PIECE_BYTES and size > limits.max_unpacked_ratio * max(1, part.compress_size):
        raise _bomb(name, size, limits)


def _check_part(
    name: str, archive: zipfile.ZipFile, part: zipfile.ZipInfo, limits: LoadLimits
) -> int:
    size = 0
    tail = b""
    with archive.open(part) as stream:
        while piece := stream.read(PIECE_BYTES):
            if size <= PROLOGUE_BYTES:
                _refuse_doctype(name, part.filename, tail + piece)
            tail = piece[-16:]
            size += len(piece)
            if size > limits.max_unpacked_bytes:
                raise _bomb(name, size, limits)
            _check_ratio(name, part, size, limits)
    return size


def _refuse_doctype(name: str, part: str, piece: bytes) -> None:
    if DOCTYPE.search(piece) or WIDE_DOCTYPE.search(piece):
        raise Unreadable(
            name,
            f"its part {part} declares a document type or entities, which no Office program "
            "writes and which can read other files. It was not opened.",
        )

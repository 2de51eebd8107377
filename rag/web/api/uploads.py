"""Files in and out: which of an upload are taken, and the original of a document."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from typing import IO, Protocol

from flask import Response, send_file
from werkzeug.datastructures import FileStorage

from rag.db import storable
from rag.documents.archives import is_archive, members, name_inside, unpacked
from rag.errors import NotFound, TooLarge, Unreadable, UserError
from rag.records import Document, Job
from rag.web.access import rights
from rag.web.request_context import application
from rag.wiring.stores import syncs_of

MAX_NAME_CHARS = 255
BYTES_PER_MB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """An uploaded file that is not taken."""

    name: str  # as the client gave it
    error: UserError


class AcceptedFile(Protocol):
    """A file that is taken, read when its turn comes."""

    def read(self) -> bytes:
        """Raises UserError."""


@dataclass(frozen=True, slots=True)
class Member:
    """A file in a zip archive."""

    archive: str
    data: bytes
    name: str
    max_bytes: int

    def read(self) -> bytes:
        """Raises Unreadable and TooLarge."""
        return unpacked(self.archive, self.data, self.name, self.max_bytes)


def take_upload(
    uploads: Iterable[FileStorage], collection_id: str
) -> tuple[list[Job], list[RefusedFile]]:
    """A job for each file that is taken, whether a page or a program sends it; and the others.

    Raises NotFound and Forbidden where the caller may not see or add to the collection.
    """
    limit = application().settings.documents.max_file_mb
    taken, refused = sort_upload(uploads, max_file_mb=limit)
    jobs = [rights.add_document(name, file.read(), collection_id) for name, file in taken.items()]
    return jobs, refused


def sort_upload(
    uploads: Iterable[FileStorage], *, max_file_mb: float
) -> tuple[dict[str, AcceptedFile], list[RefusedFile]]:
    """Files with a plain name of their own that are small enough, by that name; and the others.

    An archive is a folder: its files are taken, not it.
    """
    taken: dict[str, AcceptedFile] = {}
    refused: list[RefusedFile] = []
    for upload in uploads:
        given = upload.filename or ""
        try:
            name = library_name(given)
            _check_size(name, upload.stream, max_file_mb=max_file_mb)
            if is_archive(name):
                _sort_archive(name, upload.read(), int(max_file_mb * BYTES_PER_MB), taken, refused)
                continue
            if name in taken:
                raise Unreadable(name, "the upload holds two files of this name; rename one.")
            taken[name] = upload
        except UserError as error:
            refused.append(RefusedFile(name=given[:MAX_NAME_CHARS], error=error))
    return taken, refused


def _sort_archive(
    name: str,
    data: bytes,
    max_bytes: int,
    taken: dict[str, AcceptedFile],
    refused: list[RefusedFile],
) -> None:
    """Raises UserError where the archive itself cannot be opened."""
    for member, size in members(name, data):
        inner = name_inside(name, member)
        try:
            inner = library_name(inner)
            if size > max_bytes:
                raise TooLarge(f"{inner} has more than {max_bytes:,} bytes, which are allowed.")
            taken.setdefault(inner, Member(name, data, member, max_bytes))
        except UserError as error:
            refused.append(RefusedFile(name=inner[:MAX_NAME_CHARS], error=error))


def library_name(given: str) -> str:
    """The name of a document from the name of a file: relative, with forward slashes.

    Raises:
        Unreadable: the name is empty, too long, or leads out of the library.
    """
    parts = [
        part for part in storable(given).replace("\\", "/").split("/") if part not in ("", ".")
    ]
    name = "/".join(parts)
    shown = given[:80] or "(a file without a name)"
    if not name:
        raise Unreadable(shown, "the file has no name; send one such as manual.pdf.")
    if ".." in parts or given.startswith(("/", "\\")) or ":" in parts[0]:
        raise Unreadable(shown, "the name leads out of the library; send a relative one without ..")
    if len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise Unreadable(
            shown,
            f"the name has {len(name)} characters; it must have at most {MAX_NAME_CHARS}, all of "
            "them printable.",
        )
    return name


def _check_size(name: str, stream: IO[bytes], *, max_file_mb: float) -> None:
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    if size > max_file_mb * BYTES_PER_MB:
        raise TooLarge(
            f"{name} has {size / BYTES_PER_MB:.1f} MB; "
            f"documents.max_file_mb allows {max_file_mb:g}."
        )


PDF = "application/pdf"
# A browser's own viewer is an object in a page that it makes; nothing of ours is in it.
VIEWED = "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'"


def original_of(document: Document, *, is_shown: bool = False) -> Response:
    """To be kept by its reader, or, if it is a PDF, to be looked at.

    What was not kept is read from its source. Raises NotFound, and as `Syncs.original` does.

    Other files are never shown by a browser from here: they might be pages with scripts.
    """
    path = application().documents.original(document)
    is_shown = is_shown and document.media_type == PDF
    response = send_file(
        path or BytesIO(_at_its_source(document)),
        mimetype=document.media_type,
        as_attachment=not is_shown,
        download_name=document.name.rpartition("/")[2],
        etag=document.content_hash,
    )
    if is_shown:
        response.headers["Content-Security-Policy"] = VIEWED
    return response


def _at_its_source(document: Document) -> bytes:
    if application().sources.table.of_document(document.id) is None:
        raise NotFound(
            f"The original of {document.name} was not kept, or not on this machine. Ingest the "
            "file again where documents.keep_originals is on."
        )
    return syncs_of(application()).original(document)


def has_original(document: Document) -> bool:
    """Whether there is one to open, kept or at its source."""
    app = application()
    is_kept = app.documents.has_original(document)
    return is_kept or app.sources.table.of_document(document.id) is not None

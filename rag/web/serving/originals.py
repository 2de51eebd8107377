"""The file that a document was read from, as a response."""

from flask import Response, send_file

from rag.errors import NotFound
from rag.records import Document
from rag.web.current import application

PDF = "application/pdf"
# A browser's own viewer is an object in a page that it makes; nothing of ours is in it.
VIEWED = "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'"


def original_of(document: Document, *, is_shown: bool = False) -> Response:
    """To be kept by its reader, or, if it is a PDF, to be looked at. Raises NotFound.

    Other files are never shown by a browser from here: they might be pages with scripts.
    """
    path = application().documents.original(document)
    if path is None:
        raise NotFound(
            f"The original of {document.name} was not kept, or not on this machine. Ingest the "
            "file again where documents.keep_originals is on."
        )
    is_shown = is_shown and document.media_type == PDF
    response = send_file(
        path,
        mimetype=document.media_type,
        as_attachment=not is_shown,
        download_name=document.name.rpartition("/")[2],
        etag=document.content_hash,
    )
    if is_shown:
        response.headers["Content-Security-Policy"] = VIEWED
    return response


def has_original(document: Document) -> bool:
    """Whether there is one to open."""
    return application().documents.original(document) is not None

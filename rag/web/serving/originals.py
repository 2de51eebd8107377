"""The file that a document was read from, as a response."""

from io import BytesIO

from flask import Response, send_file

from rag.errors import NotFound
from rag.records import Document
from rag.web.request_context import application
from rag.wiring.stores import syncs_of

PDF = "application/pdf"
# A browser's own viewer is an object in a page that it makes; nothing of ours is in it.
VIEWED = "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'"


def original_of(document: Document, *, is_shown: bool = False) -> Response:
    """To be kept by its reader, or, if it is a PDF, to be looked at.

    What was not kept is read from its source. Raises NotFound, and as `Syncs.original` does.

    Other files are never shown by a browser from here: they might be pages with scripts.
    """
    kept = application().documents.original(document)
    is_shown = is_shown and document.media_type == PDF
    response = send_file(
        kept or BytesIO(_at_its_source(document)),
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

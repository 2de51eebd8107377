"""What a caller may do: every route that finds, opens or changes documents asks here."""

from collections.abc import Mapping

from flask import g

from rag.errors import Forbidden
from rag.records import DEFAULT_COLLECTION, Document, Job, Right, Within
from rag.storage import check_room
from rag.web.access.owner import current_owner, note
from rag.web.current import application


def readable() -> Within:
    """The collections whose documents the caller may find, list, count and open."""
    if "readable" not in g:
        g.readable = application().collections.readable(current_owner())
    found = g.readable
    assert isinstance(found, Within)
    return found


def rights() -> Mapping[str, Right]:
    """What the caller may do with each collection that it may read."""
    if "rights" not in g:
        g.rights = application().collections.rights(current_owner())
    found: Mapping[str, Right] = g.rights
    return found


def is_one() -> bool:
    """Whether everybody here is the same owner."""
    return application().settings.auth.mode == "single"


def is_admin() -> bool:
    """Whether the caller may change everything."""
    return application().settings.auth.is_admin(current_owner())


def add_document(name: str, data: bytes, collection_id: str = DEFAULT_COLLECTION) -> Job:
    """Take an upload of this caller's. Raises StorageFailed before anything is half done.

    Raises NotFound and Forbidden where the caller may not see or add to the collection.
    """
    held = application().collections.collection(current_owner(), collection_id)
    if held.right < Right.ADD:
        raise Forbidden(f"You may read {held.name}, not add to it. Ask somebody who manages it.")
    check_room(application().settings.data_dir)
    owner = "" if is_one() else current_owner()
    job = application().jobs.submit_ingest(name, data, owner=owner, collection_id=held.id)
    note("document.uploaded", name)
    return job


def may_change(document: Document) -> bool:
    """Whether the caller may replace or delete it."""
    right = rights().get(document.collection_id, Right.NONE)
    return right >= Right.WRITE or (right == Right.ADD and document.owner == current_owner())


def delete_document(document_id: str) -> None:
    """Take a document out of the library. Raises NotFound and Forbidden."""
    document = application().documents.document(document_id, readable())
    if not may_change(document):
        raise Forbidden(
            f"{document.name} was not added by you. Ask whoever added it, or an administrator "
            "(auth.admins), to delete it."
        )
    application().ingestion.delete(document_id)
    note("document.deleted", document.name)


def may_see(job: Job) -> bool:
    """Whether the caller is told how this upload goes."""
    return is_admin() or job.owner == current_owner()

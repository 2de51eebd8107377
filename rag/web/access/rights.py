"""What a caller may do with documents: read and add all, change and delete their own."""

from rag.errors import Forbidden
from rag.records import Document, Job
from rag.storage import check_room
from rag.web.access.owner import current_owner, note
from rag.web.current import application


def is_admin() -> bool:
    """Whether the caller may change everything."""
    return application().settings.auth.is_admin(current_owner())


def add_document(name: str, data: bytes) -> Job:
    """Take an upload of this caller's. Raises StorageFailed before anything is half done."""
    check_room(application().settings.data_dir)
    owner = "" if is_admin() else current_owner()
    job = application().jobs.submit_ingest(name, data, owner=owner)
    note("document.uploaded", name)
    return job


def may_change(document: Document) -> bool:
    """Whether the caller may replace or delete it."""
    return is_admin() or document.owner == current_owner()


def delete_document(document_id: str) -> None:
    """Take a document out of the library. Raises NotFound and Forbidden."""
    document = application().documents.document(document_id)
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

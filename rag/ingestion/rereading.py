"""Documents that older readers read, read anew from their kept files."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from rag.documents.files import IncomingFile
from rag.documents.store import SqlDocumentStore
from rag.records import Document


def kept_files(store: SqlDocumentStore, documents: Iterable[Document]) -> Iterator[IncomingFile]:
    """The file of each, to be read although nothing of it changed; none where none was kept."""
    for document in documents:
        path = store.original(document)
        if path is not None:
            yield replace(
                IncomingFile.from_path(path, name=document.name),
                document_id=document.id,
                collection_id=document.collection_id,
                owner=document.owner,
                url=document.url,
                is_again=True,
                author=document.report.author,
                date=document.report.date,
            )

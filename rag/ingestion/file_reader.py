"""Read files, cut them into chunks and store them, ahead of embedding."""

import hashlib
import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from queue import SimpleQueue

from rag.documents.chunking import cut, fit_title
from rag.documents.cleaning import day_in, one_line, shorten
from rag.documents.files import IncomingFile
from rag.documents.outline import HEADING_CHARS
from rag.documents.sandbox import GuardedLoader
from rag.documents.store import ExistingDocument, SqlDocumentStore
from rag.documents.store_rows import StoredDocument
from rag.errors import Conflict, NotFound, TooLarge, Unreadable, UserError
from rag.records import Chunk, Document, ReadingReport, Right
from rag.runtime.budget import as_done
from rag.runtime.progress import Progress, Stage
from rag.seams import Embedder
from rag.tables.store import Origin, TableStore, profiles

# Stored in one transaction: few at first, so that embedding begins soon; then more.
FIRST_CHUNKS, STORED_CHUNKS = 16, 128
STORED_BYTES = 32 * 1024 * 1024
STORED_FILES = 256
SLOW_SECONDS = 1.0  # how long files already read wait for a slow one
FAULTS = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, AssertionError)
log = logging.getLogger(__name__)
RightOf = Callable[[str, str], Right]  # an owner's right to a collection
Stored = tuple[Sequence[Document], Sequence[Chunk]]  # of one transaction, and which chunks are new


class FileReader:
    """Stores files in the database, where word search finds them at once."""

    def __init__(
        self,
        store: SqlDocumentStore,
        embedder: Embedder,
        *,
        loader: GuardedLoader,
        tables: TableStore,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._loader = loader
        self._tables = tables
        self.right: RightOf = lambda owner, collection_id: Right.MANAGE

    def stored(
        self, files: Iterable[IncomingFile], reports: SimpleQueue[Progress]
    ) -> Generator[Stored]:
        """Read several files at once, store them in batches and yield what was stored.

        Files that are not stored are reported to `reports`. A file that fails stops no other.
        """
        at_once = self._loader.readers
        with ThreadPoolExecutor(at_once, thread_name_prefix="read") as executor:
            read = as_done(
                _once_each(files),
                lambda file: self._read(file, reports),
                executor=executor,
                at_once=at_once,
                patience=SLOW_SECONDS,
            )
            for batch in _gather_batches(read, reports):
                changes = self._store.replace_all(batch)
                self._tables.remove(changes.removed_tables)
                yield [document.document for document in batch], changes.added

    def _read(
        self, file: IncomingFile | Progress, reports: SimpleQueue[Progress]
    ) -> StoredDocument | Progress:
        if isinstance(file, Progress):
            return file
        reports.put(Progress(file.name, Stage.READING))
        try:
            data = file.read(self._loader.limits.max_bytes)
            if self.right(file.owner, file.collection_id) < Right.ADD:
                raise NotFound(f"{file.name}: its collection is not there any more, or not yours.")
            content_hash = hashlib.sha256(data).hexdigest()
            document = self._known_document(file)
            if document is None and file.has_arrived:
                return Progress(file.name, Stage.UNCHANGED)
            if document is None:
                document_id = file.document_id or self._store.free_id(file)
                return self._parse(file, data, content_hash, document_id)
            self._check_owner(file, document)
            is_same = document.content_hash == content_hash and self._tables.has_rows_of(
                document.id
            )
            if is_same and not file.is_again:
                self._store.note_arrival(file)
                self._store.keep_original(content_hash, data)  # none was kept before
                return Progress(file.name, Stage.UNCHANGED, document_id=document.id)
            return self._parse(replace(file, owner=document.owner), data, content_hash, document.id)
        except UserError as error:
            if file.is_again and isinstance(error, Unreadable | TooLarge):
                self._store.note_refusal(file.document_id, str(error))
            return _failed(file.name, error)

    def _known_document(self, file: IncomingFile) -> ExistingDocument | None:
        """Return the stored document to replace, or None.

        Raises Conflict where another document than the intended one has the file's name.
        """
        of_its_name = self._store.existing(file.name, file.collection_id)
        if not file.document_id or (of_its_name and of_its_name.id == file.document_id):
            return of_its_name
        document = self._store.existing_by_id(file.document_id)
        is_taken = of_its_name and (
            document is None or document.collection_id == file.collection_id
        )
        if is_taken:
            raise Conflict(f"{file.name}: another document has this name. Rename one of the two.")
        return document

    def _check_owner(self, file: IncomingFile, document: ExistingDocument) -> None:
        """Raises Conflict, without naming the owner, where the document is another owner's."""
        may_change_any = self.right(file.owner, document.collection_id) >= Right.WRITE
        if file.owner != document.owner and not may_change_any:
            raise Conflict(
                f"{file.name}: there is a document of this name already, and it is somebody "
                "else's. Rename the file and send it again."
            )

    def read_rows_again(self, document: Document, data: bytes) -> None:
        """Write the row files that are missing of a document's tables."""
        parsed = self._loader.load(document.name, data)
        where = Origin(document.id, document.name, document.title)
        list(self._tables.make(where, parsed.tables))

    def _parse(
        self, file: IncomingFile, data: bytes, content_hash: str, document_id: str
    ) -> StoredDocument:
        """Read and cut a file; an internal error becomes Unreadable, so that it stops no other
        file.
        """
        try:
            return self._cut(file, data, content_hash, document_id)
        except FAULTS as fault:
            log.exception("reading %s failed", file.name)
            text = f"reading it failed in a way that should not happen ({type(fault).__name__})"
            raise Unreadable(file.name, f"{text}. The details are in the log.") from fault

    def _cut(
        self, file: IncomingFile, data: bytes, content_hash: str, document_id: str
    ) -> StoredDocument:
        name = file.name
        parsed = self._loader.load(name, data)
        count_tokens, max_tokens = self._embedder.count_tokens, self._embedder.max_tokens
        title = fit_title(parsed.title, count_tokens=count_tokens, max_tokens=max_tokens)
        where = document_id, name, title
        tables = list(self._tables.make(Origin(*where), parsed.tables))
        sections = (*parsed.sections, *profiles(tables, first=len(parsed.sections)))
        chunks = cut(*where, sections, count_tokens=count_tokens, max_tokens=max_tokens)
        document = Document(
            document_id,
            name,
            title,
            parsed.media_type,
            content_hash,
            len(data),
            len(chunks),
            datetime.now(UTC),
            parsed.names,
            file.owner,
            file.collection_id,
            _with_source(parsed.report, file),
            file.url,
        )
        return StoredDocument(
            document, sections, chunks, tables, file.job_id, data, in_place=file.has_arrived
        )


def _with_source(report: ReadingReport, file: IncomingFile) -> ReadingReport:
    """Fill in author and date from the file's source where the file itself names none."""
    author = report.author or shorten(one_line(file.author), HEADING_CHARS)
    return replace(report, author=author, date=report.date or day_in(file.date))


def _gather_batches(
    read: Iterable[StoredDocument | Progress | None], reports: SimpleQueue[Progress]
) -> Iterator[list[StoredDocument]]:
    """Yield the documents to store together; a slow file does not hold up those already read."""
    batch: list[StoredDocument] = []
    enough, chunk_count, size = FIRST_CHUNKS, 0, 0
    for item in read:
        if isinstance(item, Progress):
            reports.put(item)
        if isinstance(item, StoredDocument):
            batch.append(item)
            chunk_count += len(item.chunks)
            size += item.document.size_bytes
        is_full = chunk_count >= enough or size >= STORED_BYTES or len(batch) >= STORED_FILES
        if batch and (is_full or item is None):
            yield batch
            batch, enough, chunk_count, size = [], min(2 * enough, STORED_CHUNKS), 0, 0
    if batch:
        yield batch


def _once_each(files: Iterable[IncomingFile]) -> Iterator[IncomingFile | Progress]:
    """Refuse the second file of a name: it cannot be known which of the two was meant."""
    seen: set[str] = set()
    for file in files:
        if file.name in seen:
            yield _failed(
                file.name,
                UserError(
                    f"{file.name}: another file of this name came before it and was taken. "
                    "Rename one of the two and send it again."
                ),
            )
            continue
        seen.add(file.name)
        yield file


def _failed(name: str, error: UserError) -> Progress:
    return Progress(name, Stage.FAILED, reason=str(error), error=error)

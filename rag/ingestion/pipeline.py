"""Ingestion: read, cut, store, embed and index files.

The database is written first and is the truth; the vector index follows it. A chunk that is not
in the index yet is marked so in the database, so `synchronise` finishes a killed ingest.
"""

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from queue import SimpleQueue

from rag.documents.chunking import cut, fit_title
from rag.documents.cleaning import day_in, one_line, shorten
from rag.documents.files import IncomingFile
from rag.documents.outline import HEADING_CHARS
from rag.documents.sandbox import GuardedLoader
from rag.documents.store import EmbeddingClaims, ExistingDocument, SqlDocumentStore
from rag.documents.store_rows import StoredDocument
from rag.errors import Conflict, IndexAway, ModelError, NotFound, TooLarge, Unreadable, UserError
from rag.records import EVERYTHING, Chunk, Document, Right
from rag.runtime.budget import Lane, Prefetch, as_done
from rag.runtime.progress import Progress, Stage, Unsearchable
from rag.seams import ChunkIndex, Embedder, Matrix, Renewable
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
            document = self._existing_document(file)
            if document is None and file.has_arrived:
                return Progress(file.name, Stage.UNCHANGED)
            if document is None:
                document_id = file.document_id or self._store.free_id(file)
                return self._parse(file, data, content_hash, document_id)
            is_same = document.content_hash == content_hash
            if is_same and self._tables.has_rows_of(document.id) and not file.is_again:
                self._store.note_arrival(file)
                self._store.keep_original(content_hash, data)  # none was kept before
                return Progress(file.name, Stage.UNCHANGED, document_id=document.id)
            return self._parse(replace(file, owner=document.owner), data, content_hash, document.id)
        except UserError as error:
            if file.is_again and isinstance(error, Unreadable | TooLarge):
                self._store.note_refusal(file.document_id, str(error))
            return _failed(file.name, error)

    def _existing_document(self, file: IncomingFile) -> ExistingDocument | None:
        """Return the stored document to replace, or None.

        Raises Conflict where another document than the intended one has the file's name, or it is
        another owner's, who is not named.
        """
        document = self._store.existing(file.name, file.collection_id)
        if file.document_id and (document is None or document.id != file.document_id):
            intended = self._store.existing_by_id(file.document_id)
            is_here = intended is None or intended.collection_id == file.collection_id
            if document is not None and is_here:
                raise Conflict(
                    f"{file.name}: another document has this name. Rename one of the two."
                )
            document = intended
        if document is None or file.owner == document.owner:
            return document
        if self.right(file.owner, document.collection_id) < Right.WRITE:
            raise Conflict(
                f"{file.name}: there is a document of this name already, and it is somebody "
                "else's. Rename the file and send it again."
            )
        return document

    def read_rows_again(self, document: Document, data: bytes) -> None:
        """Write the row files that are missing of a document's tables."""
        parsed = self._loader.load(document.name, data)
        where = Origin(document.id, document.name, document.title)
        list(self._tables.make(where, parsed.tables))

    def _parse(
        self, file: IncomingFile, data: bytes, content_hash: str, document_id: str
    ) -> StoredDocument:
        """Read and cut a file; an internal error becomes Unreadable and stops no other file."""
        name = file.name
        try:
            parsed = self._loader.load(name, data)
            count_tokens, max_tokens = self._embedder.count_tokens, self._embedder.max_tokens
            title = fit_title(parsed.title, count_tokens=count_tokens, max_tokens=max_tokens)
            where = document_id, name, title
            tables = list(self._tables.make(Origin(*where), parsed.tables))
            sections = (*parsed.sections, *profiles(tables, first=len(parsed.sections)))
            chunks = cut(*where, sections, count_tokens=count_tokens, max_tokens=max_tokens)
            # From the file's source where the file itself names none.
            author = parsed.report.author or shorten(one_line(file.author), HEADING_CHARS)
            date = parsed.report.date or day_in(file.date)
        except FAULTS as fault:
            log.exception("reading %s failed", name)
            text = f"reading it failed in a way that should not happen ({type(fault).__name__})"
            raise Unreadable(name, f"{text}. The details are in the log.") from fault
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
            replace(parsed.report, author=author, date=date),
            file.url,
        )
        return StoredDocument(
            document, sections, chunks, tables, file.job_id, data, in_place=file.has_arrived
        )


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
            text = f"{file.name}: another file of this name came before it and was taken. "
            error = UserError(f"{text}Rename one of the two and send it again.")
            yield _failed(file.name, error)
        else:
            seen.add(file.name)
            yield file


def _failed(name: str, error: UserError) -> Progress:
    return Progress(name, Stage.FAILED, reason=str(error), error=error)


BATCHES_AHEAD = 8  # how far reading and storing may be ahead of embedding
BATCH_CHUNKS = 2_048  # taken together, enough to sort them by length
EMBED_CHUNKS = 256  # embedded between two progress reports
MOST_IN_LINE, LONGEST_IN_LINE = 1_000, 86_400.0  # waiting ingests, and seconds that one waits
REMOVE_IDS = 5_000
REPORT_SECONDS = 0.05
SHARED_CHUNKS = 2 * EMBED_CHUNKS  # claimed at once if several processes embed
ROUND_CHUNKS = 2 * EMBED_CHUNKS  # then another ingest has its turn
MOST_NAMED = 500  # documents; for more, chunks of any document are embedded
OTHERS_SECONDS = 0.3  # between two checks of what other processes embed


class Ingestion:
    """Brings files into the database and keeps the vector index equal to it.

    One ingest at a time embeds, for a round; owners take turns.
    """

    def __init__(
        self,
        store: SqlDocumentStore,
        embedder: Embedder,
        index: ChunkIndex,
        *,
        loader: GuardedLoader,
        tables: TableStore,
    ) -> None:
        self._store = store
        self._claims: EmbeddingClaims | None = None
        self._embedder = embedder
        self._index = index
        self._tables = tables
        self._reader = FileReader(store, embedder, loader=loader, tables=tables)
        self._turn = threading.RLock()
        self._line = Lane(1, waiting=MOST_IN_LINE, what="files")
        self._worker_count = 0  # running ingests
        self._counting = threading.Lock()

    def ask_rights(self, right: RightOf) -> None:
        """Set how an owner's right is looked up, which happens when each file is read."""
        self._reader.right = right

    def share_with(self, claims: EmbeddingClaims) -> None:
        """Share embedding with other processes that write to the same index."""
        self._claims = claims

    def ingest(self, files: Iterable[IncomingFile]) -> Generator[Progress]:
        """Read, store and embed files; each gets exactly one final report, in no fixed order.

        A file that fails stops no other. While files are embedded the next are read and stored.
        """
        with self._counting:
            self._worker_count += 1
            is_alone = self._worker_count == 1
        try:
            # What a killed ingest left is embedded first, since an unchanged file is reported as
            # searchable. Beside another ingest, chunks without vectors are not such remains.
            if is_alone and self._store.unembedded(1):
                # An error is shown by the reports of the new files.
                with suppress(ModelError, IndexAway), self._turn:
                    for _ in self._embed_missing():
                        pass
            yield from self._ingested(files)
        finally:
            with self._counting:
                self._worker_count -= 1

    @property
    def is_at_work(self) -> bool:
        """Whether an ingest is running."""
        return self._worker_count > 0

    def _ingested(self, files: Iterable[IncomingFile]) -> Iterator[Progress]:
        reports: SimpleQueue[Progress] = SimpleQueue()
        waiting = Unsearchable()
        with Prefetch(self._reader.stored(files, reports), most=BATCHES_AHEAD) as batches:
            while not batches.is_over:
                stored = batches.take(patience=REPORT_SECONDS)
                while not reports.empty():
                    yield reports.get()
                for documents, new_chunks in stored:
                    yield from waiting.add(documents, new_chunks)
                if waiting:
                    yield from self._finish(waiting)

    def holds(self, name: str, collection_id: str) -> bool:
        """Return whether a collection has a document of this name."""
        return self._store.existing(name, collection_id) is not None

    def read_rows_again(self, document_id: str, data: bytes) -> None:
        """Write the rows of a document's tables again from its file; nothing else of it changes."""
        self._reader.read_rows_again(self._store.document(document_id, EVERYTHING), data)

    def delete(self, document_id: str) -> Document:
        """Delete a document from the database and from the index. Raises NotFound.

        While another thread embeds, the index follows when that ends; the caller does not wait, and
        search returns nothing that the database does not hold.
        """
        document = self._store.document(document_id, EVERYTHING)
        self._tables.remove(self._store.delete(document_id).removed_tables)
        self._unless_embedding(self._remove_deleted)
        return document

    def move(self, document_id: str, collection_id: str) -> None:
        """Move a document to another collection. Raises NotFound and Conflict.

        From then on only readers of that collection find it. The vector index follows as for a
        deletion; no chunk is embedded again.
        """
        self._store.move(document_id, collection_id)
        self._unless_embedding(self._file_moved)

    def _unless_embedding(self, follow: Callable[[], None]) -> None:
        if self._turn.acquire(blocking=False):
            try:
                follow()
            finally:
                self._turn.release()

    def alone(self) -> AbstractContextManager[object]:
        """Return a lock under which no other thread embeds or changes the index."""
        return self._turn

    def synchronise(self) -> int:
        """Bring the index up to the database; return how many chunks were embedded.

        Run at the start: it finishes what a killed process left.
        """
        with self._turn:
            self._remove_deleted()
            self._file_moved()
            self._tables.tidy()
            self._store.tidy_originals()
            return sum(len(chunks) for chunks in self._embed_missing())

    def reindex(self) -> Iterator[tuple[int, int]]:
        """Build the index again from the database; yield (chunks done, chunks in all)."""
        with self._turn:
            if isinstance(self._index, Renewable):
                yield from self._renewed(self._index)
            else:
                with self._one_writer():
                    self._index.clear()
                    self._store.mark_all_unembedded()
            total, done = self._store.unembedded_count(), 0
            yield done, total
            for chunks in self._embed_missing():
                done += len(chunks)
                yield done, total

    def _renewed(self, index: Renewable) -> Iterator[tuple[int, int]]:
        """Fill a successor while the old index serves searches; chunks added then are marked."""
        successor = index.successor(self._embedder.dimensions)
        total, done = self._store.embedded_count(), 0
        for ids in self._store.embedded_batches():
            there = successor.chunk_ids(ids)
            missing = [chunk_id for chunk_id in ids if chunk_id not in there]
            done += len(ids) - len(missing)
            for start in range(0, len(missing), EMBED_CHUNKS):
                part = missing[start : start + EMBED_CHUNKS]
                chunks = list(self._store.chunks(part, EVERYTHING).values())
                vectors = self._embedder.embed([chunk.embedded_text for chunk in chunks])
                places = [chunk.collection_id for chunk in chunks]
                successor.add([chunk.id for chunk in chunks], vectors, places)
                done += len(part)
                yield done, total
        index.take_over(self._one_writer)
        self._store.note_rebuilt()
        for ids in self._store.embedded_batches():
            self._store.mark_unembedded([*{*ids} - self._index.chunk_ids(ids)])

    # ── Embedding ────────────────────────────────────────────────────────────────────────────

    def _finish(self, waiting: Unsearchable) -> Iterator[Progress]:
        """Embed the chunks that are waiting, round by round."""
        try:
            while True:
                embedded = yield from self._round(waiting)
                if self._claims is not None:
                    is_over = self._claims.are_done(waiting.chunk_ids())
                else:
                    is_over = waiting.is_done() or not embedded
                if is_over:
                    break
                if not embedded:
                    yield from waiting.all(Stage.EMBEDDING)  # other processes embed them
                    time.sleep(OTHERS_SECONDS)
        except (ModelError, IndexAway) as error:
            yield from waiting.failed(error)
        else:
            yield from waiting.finished()

    def _round(self, waiting: Unsearchable) -> Generator[Progress, None, int]:
        """Embed some of the waiting chunks, in turn with other ingests; return how many."""
        embedded = 0

        def is_enough() -> bool:
            return waiting.is_done() or embedded >= ROUND_CHUNKS

        with self._line.place(patience_seconds=LONGEST_IN_LINE), self._turn:
            self._remove_deleted()
            self._file_moved()
            for chunks in self._embed_missing(is_enough, waiting.document_ids()):
                embedded += len(chunks)
                yield from waiting.embedded(chunks)
            self._file_moved()
        return embedded

    def _embed_missing(
        self, is_enough: Callable[[], bool] = bool, of: Sequence[str] = ()
    ) -> Iterator[list[Chunk]]:
        """Embed and index every chunk that is marked as missing; yield the chunks just written.

        While some are written into the index the next are embedded, also those of documents that
        were stored meanwhile.
        """
        on_the_way: list[Chunk] = []
        if self._store.unembedded(1):  # opened before threads use it
            self._index.check()
        with ThreadPoolExecutor(1, thread_name_prefix="index") as writer:
            written = writer.submit(list[Chunk])
            while not is_enough() and (chunks := self._missing(on_the_way, of)):
                # Sorted by length: a batch is padded to its longest text.
                chunks.sort(key=lambda chunk: len(chunk.text), reverse=True)
                try:
                    while chunks and not is_enough():
                        self._renew([*on_the_way, *chunks])
                        part = chunks[:EMBED_CHUNKS]
                        vectors = self._embedder.embed([chunk.embedded_text for chunk in part])
                        done, written = written.result(), writer.submit(self._write, part, vectors)
                        on_the_way, chunks = part, chunks[EMBED_CHUNKS:]
                        if done:
                            yield done
                finally:
                    self._give_back(chunks)
            if done := written.result():
                yield done

    def _missing(self, on_the_way: Sequence[Chunk], of: Sequence[str]) -> list[Chunk]:
        """Return chunks to embed, without those that are being written."""
        if self._claims is not None:
            return list(self._store.chunks(self._claims.take(SHARED_CHUNKS), EVERYTHING).values())
        pending = {chunk.id for chunk in on_the_way}
        documents = of if len(of) <= MOST_NAMED else ()
        chunks = self._store.unembedded(BATCH_CHUNKS + len(pending), documents)
        return [chunk for chunk in chunks if chunk.id not in pending]

    def _write(self, chunks: list[Chunk], vectors: Matrix) -> list[Chunk]:
        try:
            ids = [chunk.id for chunk in chunks]
            # A reindex in between would leave removed chunks marked as embedded.
            with self._one_writer():
                self._index.add(ids, vectors, [chunk.collection_id for chunk in chunks])
                deleted_meanwhile = self._store.mark_embedded(ids)
            if deleted_meanwhile:
                self._index.remove(deleted_meanwhile)
        finally:
            self._give_back(chunks)
        return chunks

    def _one_writer(self) -> AbstractContextManager[object]:
        return self._claims.one_writer() if self._claims is not None else nullcontext()

    def _renew(self, chunks: Sequence[Chunk]) -> None:
        if self._claims is not None:
            self._claims.renew([chunk.id for chunk in chunks])

    def _give_back(self, chunks: Sequence[Chunk]) -> None:
        if self._claims is not None:
            self._claims.give_back([chunk.id for chunk in chunks])

    def _file_moved(self) -> None:
        while moved := self._store.moved(REMOVE_IDS):
            self._index.move(moved)
            self._store.forget_moved(moved)

    def _remove_deleted(self) -> None:
        while ids := self._store.removed(REMOVE_IDS):
            self._index.remove(ids)
            self._store.forget_removed(ids)
            # Another host may have added some of them again meanwhile.
            self._store.mark_unembedded(ids)


def stored_files(store: SqlDocumentStore, documents: Iterable[Document]) -> Iterator[IncomingFile]:
    """Yield the originals of documents, to be read again; documents without one are left out."""
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
                has_arrived=True,
                author=document.report.author,
                date=document.report.date,
            )

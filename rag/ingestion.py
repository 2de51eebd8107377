"""How files become searchable: read, cut, store, embed, index.

The database is written first and is the truth; the vector index follows it. A chunk that the index
does not hold yet is marked so in the database, so a killed ingest is finished by `synchronise`.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from queue import Empty, SimpleQueue

from rag.documents.chunk import cut, fit_title
from rag.documents.files import IncomingFile
from rag.documents.guard import GuardedLoader
from rag.documents.storing.claims import EmbeddingClaims
from rag.documents.storing.store import KnownDocument, SqlDocumentStore
from rag.documents.storing.store_rows import StoredDocument
from rag.errors import Conflict, IndexAway, ModelError, NotFound, UserError
from rag.parallel import as_done
from rag.progress import Progress, Stage, Waiting
from rag.records import EVERYTHING, Chunk, Document, Right
from rag.seams import ChunkIndex, Embedder
from rag.tables.store import Origin, TableStore, profiles

LEAST_CHUNKS = 32  # are read before any is embedded; then what was read during the last batch
BATCH_CHUNKS = 1_024  # stored and embedded together: enough that their lengths can be sorted
BATCH_BYTES = 32 * 1024 * 1024
BATCH_FILES = 256
EMBED_CHUNKS = 256  # between two reports of progress
REMOVE_IDS = 5_000
REPORT_SECONDS = 0.05
SLOW_SECONDS = 1.0  # what is read does not wait longer for a file that takes more
RightOf = Callable[[str, str], Right]  # of an owner, in a collection
SHARED_CHUNKS = 2 * EMBED_CHUNKS  # claimed at once where several processes embed
OTHERS_SECONDS = 0.3  # between two looks at what other processes embed


@dataclass(frozen=True, slots=True)
class _Batch:
    """Files read together, to be stored and embedded together."""

    stored: tuple[StoredDocument, ...]
    is_last: bool


class Ingestion:
    """Brings files into the database and keeps the vector index equal to it.

    One at a time does the embedding; other threads wait for their turn.
    """

    def __init__(
        self,
        store: SqlDocumentStore,
        embedder: Embedder,
        index: ChunkIndex,
        *,
        loader: GuardedLoader,
        tables: TableStore,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._claims: EmbeddingClaims | None = None
        self._embedder = embedder
        self._index = index
        self._loader = loader
        self._tables = tables
        self._right: RightOf = lambda owner, collection_id: Right.MANAGE
        self._now = now
        self._turn = threading.RLock()

    def ask_rights(self, right: RightOf) -> None:
        """Say what who brings a file may do; it is asked when the file's turn comes."""
        self._right = right

    def share_with(self, claims: EmbeddingClaims) -> None:
        """Other processes embed for the same index."""
        self._claims = claims

    def ingest(self, files: Iterable[IncomingFile]) -> Iterator[Progress]:
        """Read, store and embed files; each gets exactly one final report, in no fixed order.

        A file that fails stops no other. While one batch is embedded the next is being read.
        """
        self._finish_others()
        reports: SimpleQueue[Progress] = SimpleQueue()
        at_once = self._loader.readers
        with ThreadPoolExecutor(1 + at_once, thread_name_prefix="read") as reader:
            rest = as_done(
                _once_each(files),
                lambda file: self._read(file, reports),
                executor=reader,
                at_once=at_once,
                patience=SLOW_SECONDS,
            )
            wanted, is_last = threading.Event(), False
            reading = reader.submit(_read_batch, rest, reports, wanted)
            while not is_last:
                wanted.set()
                yield from _until_done(reading, reports)
                wanted.clear()
                stored, is_last = reading.result().stored, reading.result().is_last
                if not is_last:
                    reading = reader.submit(_read_batch, rest, reports, wanted)
                yield from self._finish(stored)

    def _finish_others(self) -> None:
        """Embed what a killed ingest left: an unchanged file is reported as searchable."""
        if self._store.unembedded(1):
            with (
                suppress(ModelError, IndexAway),
                self._turn,
            ):  # the new files' reports will tell of it
                for _ in self._embed_missing():
                    pass

    def holds(self, name: str, collection_id: str) -> bool:
        """Whether a collection has a document of this name."""
        return self._store.known(name, collection_id) is not None

    def delete(self, document_id: str) -> Document:
        """Remove a document from the database and from the index. Raises NotFound.

        While another thread is embedding, the index follows at the end of that; nobody waits, and
        retrieval finds nothing that the database does not hold.
        """
        document = self._store.document(document_id, EVERYTHING)
        self._tables.remove(self._store.delete(document_id).removed_tables)
        if self._turn.acquire(blocking=False):
            try:
                self._remove_deleted()
            finally:
                self._turn.release()
        return document

    def move(self, document_id: str, collection_id: str) -> None:
        """Put a document into another collection. Raises NotFound and Conflict.

        From then on only those find it who may read that one; the vector index follows as it does
        a deletion, and nothing is embedded again.
        """
        self._store.move(document_id, collection_id)
        if self._turn.acquire(blocking=False):
            try:
                self._file_moved()
            finally:
                self._turn.release()

    def alone(self) -> AbstractContextManager[object]:
        """While nothing else is embedded or taken out of the index."""
        return self._turn

    def synchronise(self) -> int:
        """Bring the index up to the database; returns how many chunks were embedded.

        Run at the start: it finishes what a killed process left.
        """
        with self._turn:
            self._remove_deleted()
            self._file_moved()
            self._tables.tidy()
            return sum(len(chunks) for chunks in self._embed_missing())

    def reindex(self) -> Iterator[tuple[int, int]]:
        """Build the index anew from the database; yields chunks done and in all."""
        with self._turn:
            self._index.clear()
            self._store.mark_all_unembedded()
            total, done = self._store.unembedded_count(), 0
            yield done, total
            for chunks in self._embed_missing():
                done += len(chunks)
                yield done, total

    # ── Reading ──────────────────────────────────────────────────────────────────────────────

    def _read(
        self, file: IncomingFile | Progress, reports: SimpleQueue[Progress]
    ) -> StoredDocument | Progress:
        if isinstance(file, Progress):
            return file
        reports.put(Progress(file.name, Stage.READING))
        try:
            data = file.read(self._loader.limits.max_bytes)
            if self._right(file.owner, file.collection_id) < Right.ADD:
                raise NotFound(f"{file.name}: its collection is not there any more, or not yours.")
            content_hash = hashlib.sha256(data).hexdigest()
            known = self._store.known(file.name, file.collection_id)
            if known is None:
                return self._parse(file, data, content_hash, self._store.free_id(file))
            self._check_owner(file, known)
            if known.content_hash == content_hash:
                self._store.note_arrival(file)
                return Progress(file.name, Stage.UNCHANGED, document_id=known.id)
            return self._parse(replace(file, owner=known.owner), data, content_hash, known.id)
        except UserError as error:
            return _failed(file.name, error)

    def _check_owner(self, file: IncomingFile, known: KnownDocument) -> None:
        """Raises Conflict: whose document it is, is not said."""
        may_change_any = self._right(file.owner, file.collection_id) >= Right.WRITE
        if file.owner != known.owner and not may_change_any:
            raise Conflict(
                f"{file.name}: there is a document of this name already, and it is somebody "
                "else's. Rename the file and send it again."
            )

    def _parse(
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
            self._now(),
            parsed.names,
            file.owner,
            file.collection_id,
            parsed.report,
        )
        return StoredDocument(document, sections, chunks, tables, file.job_id)

    # ── Storing and embedding ────────────────────────────────────────────────────────────────

    def _finish(self, stored: Sequence[StoredDocument]) -> Iterator[Progress]:
        if not stored:
            return
        changes = self._store.replace_all(stored)
        self._tables.remove(changes.removed_tables)
        waiting = Waiting(stored, changes.added)
        yield from waiting.all(Stage.EMBEDDING)
        try:
            while True:
                with self._turn:
                    self._remove_deleted()
                    self._file_moved()
                    for chunks in self._embed_missing():
                        yield from waiting.embedded(chunks)
                    self._file_moved()
                added = (chunk.id for chunk in changes.added)
                if self._claims is None or self._claims.are_done(added):
                    break
                yield from waiting.all(Stage.EMBEDDING)  # others are at work on them
                time.sleep(OTHERS_SECONDS)
        except (ModelError, IndexAway) as error:
            yield from waiting.failed(error)
            return
        yield from waiting.all(Stage.FINISHED)

    def _embed_missing(self) -> Iterator[list[Chunk]]:
        """Embed and index every chunk that is marked as missing; yields what was just done."""
        while chunks := self._missing():
            # Texts of one length together: a batch is padded to its longest.
            chunks.sort(key=lambda chunk: len(chunk.text), reverse=True)
            try:
                for at in range(0, len(chunks), EMBED_CHUNKS):
                    part = chunks[at : at + EMBED_CHUNKS]
                    if self._claims is not None:
                        self._claims.renew([chunk.id for chunk in chunks[at:]])
                    self._embed(part)
                    yield part
            finally:
                if self._claims is not None:
                    self._claims.give_back([chunk.id for chunk in chunks])

    def _missing(self) -> list[Chunk]:
        if self._claims is None:
            return self._store.unembedded(BATCH_CHUNKS * 2)
        return list(self._store.chunks(self._claims.take(SHARED_CHUNKS), EVERYTHING).values())

    def _embed(self, chunks: Sequence[Chunk]) -> None:
        ids = [chunk.id for chunk in chunks]
        vectors = self._embedder.embed([chunk.embedded_text for chunk in chunks])
        with self._claims.one_writer() if self._claims is not None else nullcontext():
            self._index.add(ids, vectors, [chunk.collection_id for chunk in chunks])
        deleted_meanwhile = self._store.mark_embedded(ids)
        if deleted_meanwhile:
            self._index.remove(deleted_meanwhile)

    def _file_moved(self) -> None:
        while moved := self._store.moved(REMOVE_IDS):
            self._index.move(moved)
            self._store.forget_moved(moved)

    def _remove_deleted(self) -> None:
        while ids := self._store.removed(REMOVE_IDS):
            self._index.remove(ids)
            self._store.forget_removed(ids)
            # Another host may have brought some of them back in between.
            self._store.mark_unembedded(ids)


def _read_batch(
    files: Iterator[StoredDocument | Progress | None],
    reports: SimpleQueue[Progress],
    wanted: threading.Event,
) -> _Batch:
    """What was read until it is wanted or a batch is full; what waits for a slow file is enough."""
    stored: list[StoredDocument] = []
    chunk_count = size = 0
    for read in files:
        if read is None and stored:
            return _Batch(tuple(stored), is_last=False)
        if isinstance(read, Progress):
            reports.put(read)
        if not isinstance(read, StoredDocument):
            continue
        stored.append(read)
        chunk_count += len(read.chunks)
        size += read.document.size_bytes
        is_full = size >= BATCH_BYTES or len(stored) >= BATCH_FILES
        enough = LEAST_CHUNKS if wanted.is_set() else BATCH_CHUNKS
        if is_full or chunk_count >= enough:
            return _Batch(tuple(stored), is_last=False)
    return _Batch(tuple(stored), is_last=True)


def _until_done(reading: Future[_Batch], reports: SimpleQueue[Progress]) -> Iterator[Progress]:
    """What is reported while a batch is being read, as it comes."""
    while not reading.done():
        try:
            yield reports.get(timeout=REPORT_SECONDS)
        except Empty:
            continue
    while not reports.empty():
        yield reports.get()


def _once_each(files: Iterable[IncomingFile]) -> Iterator[IncomingFile | Progress]:
    """The second file of a name is refused: which of the two was meant cannot be known."""
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

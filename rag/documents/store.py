"""The SQL store of documents, their sections and their chunks."""

import fcntl
import hashlib
import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy import (
    Connection,
    Engine,
    Row,
    Select,
    TextClause,
    bindparam,
    delete,
    func,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.exc import IntegrityError

from rag import db
from rag.db.audit_trail import record
from rag.db.blobs import Blobs, FolderBlobs, blocks, deletions_wait, local_path
from rag.documents.chunking import document_id_for
from rag.documents.files import IncomingFile
from rag.documents.reports import READER, stored_report
from rag.documents.store_rows import (
    DocumentLists,
    Reads,
    StoredDocument,
    batches,
    chunk_from,
    chunk_ids_of,
    chunk_query,
    delete_with,
    document_from,
    existing_ids,
    mark_arrived,
    remove_chunks,
    rename_documents,
    rows_with,
    table_ids_of,
    update_with,
    write_documents,
)
from rag.errors import Conflict, NotFound, StorageFailed
from rag.records import Chunk, Document, Readable, Section
from rag.runtime.error_log import log_throttled
from rag.seams import ChunkChanges

LISTED = 2_000  # chunks at once


class IndexDebts(Reads):
    """The methods of the document store for ingestion and repair, which see every collection."""

    def unembedded(self, limit: int, of: Sequence[str] = ()) -> list[Chunk]:
        """Return chunks that are not in the index yet, oldest first; `of` only these documents."""
        query = chunk_query().where(db.chunks.c.is_embedded.is_(False))
        if of:
            query = query.where(db.chunks.c.document_id.in_(of))
        return list(map(chunk_from, self._rows(query.order_by(db.chunks.c.row).limit(limit))))

    def unembedded_count(self) -> int:
        return self._count(db.chunks.c.is_embedded.is_(False))

    def embedded_batches(self) -> Iterator[list[str]]:
        """Yield the ids of the chunks that the vector index should hold, `LISTED` at a time."""
        query = select(db.chunks.c.row, db.chunks.c.id).where(db.chunks.c.is_embedded)
        query = query.order_by(db.chunks.c.row).limit(LISTED)
        rows = self._rows(query)
        while rows:
            yield [row.id for row in rows]
            rows = self._rows(query.where(db.chunks.c.row > rows[-1].row))

    def places(self, chunk_ids: Sequence[str]) -> dict[str, str]:
        """Return the collection ids of the chunks that exist, by chunk id."""
        with db.reading(self._engine) as connection:
            return _places(connection, chunk_ids)

    def embedded_count(self) -> int:
        """Return how many chunks the vector index should hold."""
        return self._count(db.chunks.c.is_embedded.is_(True))

    def chunk_count(self) -> int:
        """Return how many chunks the whole library has."""
        return self._count()

    def document_counts(self) -> tuple[int, int]:
        """Return how many documents the library has, and how many chunks they should have."""
        query = select(func.count(), func.sum(db.documents.c.chunk_count))
        [(documents, chunks)] = self._rows(query)
        return documents, chunks or 0

    def _count(self, *conditions: Any) -> int:
        [(count,)] = self._rows(select(func.count()).select_from(db.chunks).where(*conditions))
        return int(count)

    def mark_embedded(self, chunk_ids: Sequence[str]) -> list[str]:
        """Mark chunks as held by the vector index; return the ids that were deleted meanwhile."""
        with db.writing(self._engine) as connection:
            existing = _places(connection, chunk_ids)
            update_with(connection, db.chunks.c.id, chunk_ids, is_embedded=True)
        return [chunk_id for chunk_id in chunk_ids if chunk_id not in existing]

    def mark_unembedded(self, chunk_ids: Sequence[str]) -> None:
        """Mark existing chunks as not embedded: the vector index may have lost them."""
        with db.writing(self._engine) as connection:
            update_with(connection, db.chunks.c.id, chunk_ids, is_embedded=False)

    def mark_all_unembedded(self) -> None:
        """Mark all chunks as not embedded, before the vector index is built again."""
        with db.writing(self._engine) as connection:
            connection.execute(update(db.chunks).values(is_embedded=False))
            connection.execute(delete(db.removed_chunks))
            connection.execute(delete(db.moved_chunks))
            record(connection, "index.rebuilt", "")

    def note_rebuilt(self) -> None:
        """Record that a new vector index has replaced the old one."""
        with db.writing(self._engine) as connection:
            record(connection, "index.rebuilt", "")

    def removed(self, limit: int) -> list[str]:
        """Return ids of deleted chunks that the vector index may still hold."""
        query = select(db.removed_chunks.c.id).order_by(db.removed_chunks.c.id).limit(limit)
        return [row.id for row in self._rows(query)]

    def forget_removed(self, chunk_ids: Sequence[str]) -> None:
        """Note that the vector index no longer holds these deleted chunks."""
        with db.writing(self._engine) as connection:
            delete_with(connection, db.removed_chunks.c.id, chunk_ids)

    def moved(self, limit: int) -> dict[str, str]:
        """Return the collection ids, by id, of moved chunks that the vector index may file wrongly.

        "" is the collection of a chunk that was deleted.
        """
        query = (
            select(db.moved_chunks.c.id, db.chunks.c.collection_id)
            .outerjoin(db.chunks, db.chunks.c.id == db.moved_chunks.c.id)
            .order_by(db.moved_chunks.c.id)
            .limit(limit)
        )
        return {row.id: row.collection_id or "" for row in self._rows(query)}

    def forget_moved(self, filed: Mapping[str, str]) -> None:
        """Note that the index has these chunks in these collections.

        A chunk that moved again meanwhile stays listed.
        """
        with db.writing(self._engine) as connection:
            now = _places(connection, filed)
            done = [chunk for chunk, place in filed.items() if now.get(chunk, place) == place]
            delete_with(connection, db.moved_chunks.c.id, done)


def _places(connection: Connection, chunk_ids: Iterable[str]) -> dict[str, str]:
    query = select(db.chunks.c.id, db.chunks.c.collection_id)
    rows = rows_with(connection, query, db.chunks.c.id, chunk_ids)
    return {row.id: row.collection_id for row in rows}


LOOKS = 100  # how often other processes may be quicker; each time they claim some chunks
LEASE = timedelta(minutes=1)  # renewed before each request to the model
_ONE_WRITER = text("SELECT pg_advisory_xact_lock(7102385)")


class EmbeddingClaims(Reads):
    """Claims on chunks to embed, one process each; the claims of a killed process expire."""

    def take(self, limit: int) -> list[str]:
        """Claim up to `limit` chunks that are not embedded and not claimed; return their ids.

        Raises StorageFailed where other processes are quicker `LOOKS` times in a row.
        """
        for _look in range(LOOKS):
            with suppress(IntegrityError):  # another was quicker: the next try sees its claims
                return self._take(limit)
        raise StorageFailed(
            f"The table of what is embedded refused {LOOKS} tries in a row to write into it. If no "
            "other process embeds just now, look at the database with `groundnote doctor`. Nothing "
            "is lost: what has no vector yet is taken again."
        )

    def _take(self, limit: int) -> list[str]:
        now, claims = datetime.now(UTC), db.embedding_claims
        with db.writing(self._engine) as connection:
            connection.execute(delete(claims).where(claims.c.until <= now))
            free = (
                select(db.chunks.c.id)
                .where(db.chunks.c.is_embedded.is_(False))
                .where(db.chunks.c.id.not_in(select(claims.c.chunk_id)))
                .order_by(db.chunks.c.row)
                .limit(limit)
                .with_for_update(skip_locked=True)  # concurrent processes claim different chunks
            )
            ids = list(connection.execute(free).scalars())
            if ids:
                rows = [{"chunk_id": id_, "until": now + LEASE} for id_ in ids]
                connection.execute(insert(claims), rows)
        return ids

    def renew(self, chunk_ids: Sequence[str]) -> None:
        with db.writing(self._engine) as connection:
            until = datetime.now(UTC) + LEASE
            update_with(connection, db.embedding_claims.c.chunk_id, chunk_ids, until=until)

    def give_back(self, chunk_ids: Sequence[str]) -> None:
        with db.writing(self._engine) as connection:
            delete_with(connection, db.embedding_claims.c.chunk_id, chunk_ids)

    @contextmanager
    def one_writer(self) -> Iterator[None]:
        """Let no other process write vectors meanwhile.

        Eight writers at once cost Chroma twenty times the processor time of one after the other.
        """
        if self._engine.dialect.name == "postgresql":
            with db.reading(self._engine) as connection:
                connection.execute(_ONE_WRITER)
                yield
            return
        with Path(f"{self._engine.url.database}.vectors").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def are_done(self, chunk_ids: Iterable[str]) -> bool:
        """Return whether each of these chunks is embedded or deleted."""
        waiting = select(db.chunks.c.id).where(db.chunks.c.is_embedded.is_(False)).limit(1)
        return not self._rows_with(waiting, db.chunks.c.id, chunk_ids)


Holds = Callable[[str], bool]  # whether any document has a file of this content

log = logging.getLogger(__name__)


def blob_name(content_hash: str) -> str:
    """Return the name of a file in a store of originals."""
    return f"{content_hash[:2]}/{content_hash}"


class Originals:
    """A store of originals; each stays as long as a document has its content.

    `local` is the folder on this machine with earlier originals, if the store is elsewhere; what
    the store lacks is read from there. A document is stored even if its original cannot be: a full
    disk is only logged.
    """

    def __init__(
        self, store: Blobs, *, cache: Path, local: FolderBlobs | None = None, is_on: bool = True
    ) -> None:
        self._store = store
        self._cache = cache
        self._local = local
        self._is_on = is_on
        self._turn = threading.Lock()  # so that an original is not written and deleted at once

    def keep(self, content_hash: str, data: bytes) -> None:
        """Keep the file of a stored document; a concurrent `discard` of this content sees it."""
        if not self._is_on:
            return
        name = blob_name(content_hash)
        try:
            with self._turn:
                if self._store.size(name) != len(data):
                    self._store.write(name, [data])
        except OSError as error:
            log_throttled(log, "An original cannot be kept", error)

    def path(self, content_hash: str, size: int | None = None) -> Path | None:
        """Return the file's path on this machine; None if it was not kept or is truncated.

        A file of a remote store is fetched first.
        """
        if not self._is_on:
            return None
        for place in self._places():
            path = local_path(place, blob_name(content_hash), self._cache)
            if path is not None and size in (None, path.stat().st_size):
                return path
        return None

    def has(self, content_hash: str, size: int | None = None) -> bool:
        """Return whether `path` would find the file; nothing is fetched."""
        sizes = (place.size(blob_name(content_hash)) for place in self._places())
        return self._is_on and any(one is not None and size in (None, one) for one in sizes)

    def is_whole(self, content_hash: str) -> bool:
        """Read the stored file completely and return whether it has this content hash."""
        for place in self._places():
            with suppress(OSError):
                digest = hashlib.sha256()
                for block in blocks(place.open(blob_name(content_hash))):
                    digest.update(block)
                return digest.hexdigest() == content_hash
        return False

    def sizes(self) -> dict[str, int]:
        """Return the sizes of all stored files in bytes, by content hash."""
        return {
            name.rpartition("/")[2]: size
            for place in reversed(self._places())
            for name, size in place.sizes().items()
        }

    def discard(self, content_hashes: Iterable[str], holds: Holds) -> None:
        """Delete the files that no document has any more."""
        for content_hash in content_hashes:
            with self._turn:
                for place in () if holds(content_hash) else self._places():
                    place.remove([blob_name(content_hash)])

    def tidy(self, contents: Callable[[], Set[str]]) -> None:
        """Delete what a killed process left, and every file where originals shall not be kept."""
        for place in self._places():
            if isinstance(place, FolderBlobs):
                place.remove_halves()
            names = place.sizes()
            needed = contents() if names and self._is_on else set()  # read last: newer files stay
            place.remove(name for name in names if name.rpartition("/")[2] not in needed)

    def bring(self, folder: FolderBlobs, needed: Set[str]) -> int:
        """Copy the needed files from a folder into the store; return how many were copied."""
        brought = 0
        for name, size in folder.sizes().items():
            content_hash = name.rpartition("/")[2]
            if content_hash not in needed or self._store.size(blob_name(content_hash)) == size:
                continue
            with folder.open(name) as file:
                data = file.read()
            if hashlib.sha256(data).hexdigest() == content_hash:
                self._store.write(blob_name(content_hash), [data])
                brought += 1
        return brought

    def _places(self) -> list[Blobs]:
        return [self._store, self._local] if self._local is not None else [self._store]


# A plain list of keys: SQLite looks each up; for a row-value IN it would read all sections.
_SECTION_TEXTS = 'SELECT document_id, "index", text FROM sections WHERE '
_OF_OPEN_DOCUMENTS = (
    " AND EXISTS (SELECT 1 FROM documents WHERE documents.id = sections.document_id "
    "AND documents.collection_id IN :collections)"
)
_CHUNKS = chunk_query().where(db.chunks.c.id.in_(bindparam("ids", expanding=True)))
# These queries run for each file of an ingest; building one costs several times what it takes.
_COLUMNS = ("id", "content_hash", "owner", "collection_id")
_DOCUMENTS = select(*(db.documents.c[name] for name in _COLUMNS))
_BY_NAME = _DOCUMENTS.where(
    db.documents.c.collection_id == bindparam("place"), db.documents.c.name == bindparam("name")
)
_BY_ID = _DOCUMENTS.where(db.documents.c.id == bindparam("its_id"))
# The originals to keep: of stored documents, and of removed ones that can be restored.
_CAN_COME_BACK = db.source_files.c.standing.in_(("removing", "removed", "back"))
_NEEDED_CONTENTS = (
    (select(db.documents.c.content_hash), db.documents.c.content_hash),
    (
        select(db.source_files.c.content_hash).where(_CAN_COME_BACK),
        db.source_files.c.content_hash,
    ),
)
_NTH_KEY = '(document_id = :d{0} AND "index" = :i{0})'


@dataclass(frozen=True, slots=True)
class ExistingDocument:
    """The stored document that has the name of a file to ingest."""

    id: str
    content_hash: str
    owner: str
    collection_id: str


class SqlDocumentStore(DocumentLists, IndexDebts):
    """A DocumentStore over SQLAlchemy, with the pending changes of the vector index."""

    def __init__(self, engine: Engine, originals: Originals | None = None) -> None:
        super().__init__(engine)
        self._originals = originals

    # ── Writing ──────────────────────────────────────────────────────────────────────────────

    def replace(
        self, document: Document, sections: Sequence[Section], chunks: Sequence[Chunk]
    ) -> ChunkChanges:
        """Store a document in one transaction; chunks that did not change are not written."""
        return self.replace_all([StoredDocument(document, sections, chunks)])

    def replace_all(self, stored: Iterable[StoredDocument]) -> ChunkChanges:
        """Store several documents in one transaction; of two with the same id the later counts."""
        last = {document.document.id: document for document in stored}
        with db.writing(self._engine) as connection:
            existing = existing_ids(connection, last)
            gone = [key for key in last if last[key].in_place and key not in existing]
            unused = tuple(table.id for key in gone for table in last.pop(key).tables)
            before = self._contents_of(connection, last)
            changes = write_documents(connection, last, existing)
            record(connection, "document.stored", *(new.document.name for new in last.values()))
        for document in last.values():
            self.keep_original(document.document.content_hash, document.original)
        self.let_go_of(before)
        return replace(changes, removed_tables=(*changes.removed_tables, *unused))

    def note_arrival(self, file: IncomingFile) -> None:
        """Mark the upload job of a file as arrived whose content is stored already."""
        with db.writing(self._engine) as connection:
            mark_arrived(connection, [file.job_id])

    def note_refusal(self, document_id: str, reason: str) -> None:
        """Note that the newest reader refuses a document's file, so that it is not read again.

        The document keeps the text that an older reader made.
        """
        is_it = db.documents.c.id == document_id
        with db.writing(self._engine) as connection:
            row = connection.execute(select(db.documents).where(is_it)).first()
            if row is not None:
                report = replace(document_from(row).report, refused=reason, reader=READER)
                changed = update(db.documents).where(is_it).values(report=stored_report(report))
                connection.execute(changed)

    def delete(self, document_id: str) -> ChunkChanges:
        """Delete a document. Raises NotFound."""
        with db.writing(self._engine) as connection:
            row = _row_of(connection, document_id)
            contents = self._contents_of(connection, [document_id])
            removed = chunk_ids_of(connection, document_id)
            gone_tables = tuple(table_ids_of(connection, [document_id]))
            remove_chunks(connection, removed)
            for column in (db.tables.c.document_id, db.sections.c.document_id, db.documents.c.id):
                connection.execute(delete(column.table).where(column == document_id))
            db.mark_changed(connection, [row.collection_id])
            record(connection, "document.deleted", row.name)
        self.let_go_of(contents)
        return ChunkChanges(removed=tuple(removed), removed_tables=gone_tables)

    def rename(self, renames: Iterable[tuple[str, str, str]]) -> None:
        """Give documents, by id, a new name and link; no chunk is embedded again.

        A document that does not exist, or whose collection has another of that name, stays as it
        is.
        """
        with db.writing(self._engine) as connection:
            for some in batches(renames):
                pairs = rename_documents(connection, some)
                record(connection, "document.renamed", *(f"{old} to {new}" for old, new in pairs))

    # ── Originals ────────────────────────────────────────────────────────────────────────────

    def original(self, document: Document) -> Path | None:
        """Return the file that a document was read from, or None if it was not kept.

        Whoever may open the document may open its original.
        """
        return self.original_of_content(document.content_hash, document.size_bytes)

    def original_of_content(self, content_hash: str, size: int | None = None) -> Path | None:
        """Return the original with a content hash, or None; its document may be deleted."""
        return self._originals.path(content_hash, size) if self._originals else None

    def has_original(self, document: Document) -> bool:
        """Return whether `original` would find a file; nothing is fetched from a remote store."""
        if self._originals is None:
            return False
        return self._originals.has(document.content_hash, document.size_bytes)

    def without_original(self, *, reads: bool = False) -> dict[str, str]:
        """Return the names, by id, of documents whose original is missing or has another size.

        With `reads`, each original is also read and has to match its content hash.
        """
        if self._originals is None:
            return {}
        table = db.documents.c
        query = select(table.id, table.name, table.content_hash, table.size_bytes)
        rows = self._rows(query.order_by(table.name))
        sizes = self._originals.sizes() if rows else {}
        is_whole = self._originals.is_whole if reads else lambda _hash: True
        return {
            row.id: row.name
            for row in rows
            if sizes.get(row.content_hash) != row.size_bytes or not is_whole(row.content_hash)
        }

    def bring_originals(self, folder: FolderBlobs) -> int:
        """Copy the originals that documents need from another folder; return how many."""
        return self._originals.bring(folder, self._contents()) if self._originals else 0

    def keep_original(self, content_hash: str, data: bytes | None) -> None:
        """Keep the file of a document that has been stored."""
        if self._originals is not None and data is not None:
            self._originals.keep(content_hash, data)

    def tidy_originals(self) -> None:
        """Delete originals that a killed process left, or that shall not be kept any more."""
        if self._originals is not None and not deletions_wait(self._engine):
            self._originals.tidy(self._contents)

    def let_go_of(self, contents: Iterable[str]) -> None:
        """Delete the originals with these content hashes that no document needs any more."""
        if self._originals is not None and not deletions_wait(self._engine):
            self._originals.discard(contents, self._holds)

    def _holds(self, content_hash: str) -> bool:
        return any(
            self._rows(query.where(column == content_hash).limit(1))
            for query, column in _NEEDED_CONTENTS
        )

    def _contents(self) -> set[str]:
        return {row[0] for query, _column in _NEEDED_CONTENTS for row in self._rows(query)}

    def _contents_of(self, connection: Connection, document_ids: Iterable[str]) -> set[str]:
        """Return the documents' content hashes; without a store of originals nothing is queried."""
        if self._originals is None:
            return set()
        query = select(db.documents.c.content_hash)
        return {row[0] for row in rows_with(connection, query, db.documents.c.id, document_ids)}

    # ── Reading ──────────────────────────────────────────────────────────────────────────────

    def document(self, document_id: str, readable: Readable) -> Document:
        """Return a document.

        Raises NotFound, also where it is in none of the readable collections.
        """
        is_readable = db.inside(db.documents.c.collection_id, readable)
        query = select(db.documents).where(db.documents.c.id == document_id, is_readable)
        for row in self._rows(query):
            return document_from(row)
        raise _no_document(document_id)

    def existing(self, name: str, collection_id: str) -> ExistingDocument | None:
        """Return the stored document of this name, or None."""
        return self._existing(_BY_NAME, {"place": collection_id, "name": name})

    def existing_by_id(self, document_id: str) -> ExistingDocument | None:
        """Return the stored document with this id, whatever its name, or None."""
        return self._existing(_BY_ID, {"its_id": document_id})

    def _existing(self, query: Select[Any], values: dict[str, str]) -> ExistingDocument | None:
        return next((ExistingDocument(*row) for row in self._rows(query, values)), None)

    def free_id(self, file: IncomingFile) -> str:
        """Return an id for a new document: the one from its name, or a random one if that is taken.

        It is taken where a document of this name was moved to another collection and kept its id.
        """
        document_id = document_id_for(file.name, file.collection_id)
        is_taken = self.existing_by_id(document_id) is not None
        return uuid4().hex if is_taken else document_id

    def chunks(self, chunk_ids: Sequence[str], readable: Readable) -> dict[str, Chunk]:
        """Return the readable chunks with these ids, by id; ids without a chunk are left out."""
        results: dict[str, Chunk] = {}
        query = _CHUNKS  # prepared: building a query costs as much as running it
        if readable.ids is not None:
            query = query.where(db.inside(db.chunks.c.collection_id, readable))
        with db.reading(self._engine) as connection:
            for ids in batches(chunk_ids):
                rows = connection.execute(query, {"ids": ids})
                results.update((chunk.id, chunk) for chunk in map(chunk_from, rows))
        return results

    def section_texts(
        self, keys: Sequence[tuple[str, int]], readable: Readable
    ) -> dict[tuple[str, int], str]:
        """Return the texts of readable sections by (document id, section index)."""
        texts: dict[tuple[str, int], str] = {}
        with db.reading(self._engine) as connection:
            for batch in batches(keys):
                query = _texts_of(len(batch), readable.ids is None)
                places: dict[str, Any] = {f"d{n}": key[0] for n, key in enumerate(batch)}
                places |= {f"i{n}": key[1] for n, key in enumerate(batch)}
                if readable.ids is not None:
                    places["collections"] = sorted(readable.ids)
                texts |= {(row[0], row[1]): row[2] for row in connection.execute(query, places)}
        return texts

    def is_empty(self, readable: Readable) -> bool:
        """Return whether the readable collections have no document."""
        query = select(db.documents.c.id).where(db.inside(db.documents.c.collection_id, readable))
        return not self._rows(query.limit(1))

    def sections(self, document_id: str, readable: Readable) -> list[Section]:
        """Return all sections of a document in reading order."""
        return list(map(_section, self._rows(_sections_of([document_id], readable))))

    def chunks_of(
        self, document_id: str, readable: Readable, *, sections: range | None = None
    ) -> list[Chunk]:
        """Return the chunks of a document, or of some of its sections, in reading order."""
        is_readable = db.inside(db.chunks.c.collection_id, readable)
        query = chunk_query().where(db.chunks.c.document_id == document_id, is_readable)
        if sections is not None:
            index = db.chunks.c.section_index
            query = query.where(index >= sections.start, index < sections.stop)
        return list(map(chunk_from, self._rows(query.order_by(db.chunks.c.position))))

    def neighbourhood(
        self, document_id: str, index: int, readable: Readable, *, reach: int = 1
    ) -> list[Section]:
        """Return a section with up to `reach` sections before and after it. Raises NotFound."""
        stretches = self.stretches([document_id], readable, index - reach, index + reach)
        sections = stretches[document_id]
        if not any(section.index == index for section in sections):
            raise NotFound(
                f"Document {document_id!r} has no section {index}: it was deleted or changed."
            )
        return sections

    def stretches(
        self, document_ids: Sequence[str], readable: Readable, first: int, last: int
    ) -> defaultdict[str, list[Section]]:
        """Return the sections with index `first` to `last`, both included, of each document."""
        query = _sections_of(document_ids, readable).where(db.sections.c.index.between(first, last))
        stretches = defaultdict[str, list[Section]](list)
        for row in self._rows(query):
            stretches[row.document_id].append(_section(row))
        return stretches

    # ── Collections ──────────────────────────────────────────────────────────────────────────

    def move(self, document_id: str, collection_id: str) -> None:
        """Move a document to another collection; no chunk is embedded again.

        Raises NotFound, and Conflict where that collection has a document of this name.
        """
        with db.writing(self._engine) as connection:
            row = _row_of(connection, document_id)
            twin = select(db.documents.c.id).where(
                db.documents.c.collection_id == collection_id,
                db.documents.c.name == row.name,
                db.documents.c.id != document_id,
            )
            if connection.execute(twin).first() is not None:
                raise Conflict(
                    f"{row.name}: that collection has a document of this name already. Delete one "
                    "of the two first."
                )
            for column in (db.documents.c.id, db.chunks.c.document_id):
                update_with(connection, column, [document_id], collection_id=collection_id)
            ids = select(db.chunks.c.id).where(db.chunks.c.document_id == document_id)
            connection.execute(delete(db.moved_chunks).where(db.moved_chunks.c.id.in_(ids)))
            connection.execute(insert(db.moved_chunks).from_select(["id"], ids))
            its = db.collections.c.id == collection_id
            name = connection.execute(select(db.collections.c.name).where(its)).scalar()
            record(connection, "document.moved", f"{row.name} to {collection_id} {name}")
            db.mark_changed(connection, [row.collection_id, collection_id])


@cache
def _texts_of(count: int, is_open: bool) -> TextClause:
    query = f"{_SECTION_TEXTS}({' OR '.join(map(_NTH_KEY.format, range(count)))})"
    if is_open:
        return text(query)
    return text(query + _OF_OPEN_DOCUMENTS).bindparams(bindparam("collections", expanding=True))


def _sections_of(document_ids: Sequence[str], readable: Readable) -> Select[Any]:
    is_readable = db.inside(db.documents.c.collection_id, readable)
    query = select(db.sections).join_from(db.sections, db.documents)
    query = query.where(db.sections.c.document_id.in_(document_ids), is_readable)
    return query.order_by(db.sections.c.index)


def _row_of(connection: Connection, document_id: str) -> Row[Any]:
    """Raises NotFound."""
    query = select(db.documents).where(db.documents.c.id == document_id)
    row = connection.execute(query).first()
    if row is None:
        raise _no_document(document_id)
    return row


def _no_document(document_id: str) -> NotFound:
    return NotFound(f"There is no document {document_id!r}: it was deleted or never ingested.")


def _section(row: Row[Any]) -> Section:
    return Section(row._mapping["index"], tuple(row.heading_path), row.locator, row.text, row.page)

"""Documents, sections and chunks in the database."""

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
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
    insert,
    select,
    text,
    update,
)

from rag.db import chunks as chunk_table
from rag.db import collections as collection_table
from rag.db import documents as document_table
from rag.db import (
    inside,
    mark_changed,
    moved_chunks,
    reading,
    source_files,
    versions,
    writing,
)
from rag.db import sections as section_table
from rag.db import tables as table_table
from rag.db.audit_trail import record
from rag.db.blobs import FolderBlobs, deletions_wait
from rag.documents.chunking import document_id_for
from rag.documents.document_lists import DocumentLists, document_from
from rag.documents.files import IncomingFile
from rag.documents.index_changes import IndexDebts, chunk_from, chunk_query
from rag.documents.originals import Originals
from rag.documents.reports import READER, stored_report
from rag.documents.store_rows import (
    StoredDocument,
    batches,
    chunk_ids_of,
    mark_arrived,
    remove_chunks,
    rename_documents,
    table_ids_of,
    write_documents,
)
from rag.errors import Conflict, NotFound
from rag.records import Chunk, Document, Readable, Section
from rag.seams import ChunkChanges

# A plain list of keys: SQLite looks each up, where it would read all sections for rows IN rows.
_SECTION_TEXTS = 'SELECT document_id, "index", text FROM sections WHERE '
_OF_OPEN_DOCUMENTS = (
    " AND EXISTS (SELECT 1 FROM documents WHERE documents.id = sections.document_id "
    "AND documents.collection_id IN :collections)"
)
LEXICONS_KEPT = 64  # for so many sets of collections
_CHUNKS = chunk_query().where(chunk_table.c.id.in_(bindparam("ids", expanding=True)))
# Asked for each file of an ingest: what is built anew each time costs several times the query.
_KNOWN_COLUMNS = (
    document_table.c.id,
    document_table.c.content_hash,
    document_table.c.owner,
    document_table.c.collection_id,
)
_KNOWN = select(*_KNOWN_COLUMNS).where(
    document_table.c.collection_id == bindparam("place"),
    document_table.c.name == bindparam("named"),
)
_KNOWN_BY_ID = select(*_KNOWN_COLUMNS).where(document_table.c.id == bindparam("its_id"))
_TAKEN = select(document_table.c.id).where(document_table.c.id == bindparam("its_id"))
# Whose originals stay: those of documents, and of removed ones that can be had back.
_HELD_CONTENTS = (
    (select(document_table.c.content_hash), document_table.c.content_hash),
    (
        select(source_files.c.content_hash).where(
            source_files.c.standing.in_(("removing", "removed", "back"))
        ),
        source_files.c.content_hash,
    ),
)
_NTH_KEY = '(document_id = :d{0} AND "index" = :i{0})'


@dataclass(frozen=True, slots=True)
class KnownDocument:
    """A stored document as an ingest of the same name meets it."""

    id: str
    content_hash: str
    owner: str
    collection_id: str


class SqlDocumentStore(DocumentLists, IndexDebts):
    """A DocumentStore over SQLAlchemy; also says what the vector index still has to follow."""

    def __init__(self, engine: Engine, originals: Originals | None = None) -> None:
        super().__init__(engine)
        self._originals = originals
        self._lexicons: OrderedDict[Readable, tuple[dict[str, int], tuple[str, ...]]] = (
            OrderedDict()
        )
        self._lexicon_turn = threading.Lock()
        self._facets, self._chosen = {}, {}

    # ── Writing ──────────────────────────────────────────────────────────────────────────────

    def replace(
        self, document: Document, sections: Sequence[Section], chunks: Sequence[Chunk]
    ) -> ChunkChanges:
        """Store a document, in one transaction; chunks that stayed the same are not touched."""
        return self.replace_all([StoredDocument(document, sections, chunks)])

    def replace_all(self, stored: Iterable[StoredDocument]) -> ChunkChanges:
        """Several documents in one transaction; of two with the same id the later one counts."""
        last = {each.document.id: each for each in stored}
        with writing(self._engine) as connection:
            before = self._contents_of(connection, last)
            changes = write_documents(connection, last)
            record(connection, "document.stored", *(each.document.name for each in last.values()))
        for document in last.values():
            self.keep_original(document.document.content_hash, document.original)
        self.let_go_of(before)
        return changes

    def note_arrival(self, file: IncomingFile) -> None:
        """An upload said what a document says already."""
        with writing(self._engine) as connection:
            mark_arrived(connection, [file.job_id])

    def note_refusal(self, document_id: str, reason: str) -> None:
        """The newest readers refuse its file: it keeps its text, and is not offered again."""
        is_it = document_table.c.id == document_id
        with writing(self._engine) as connection:
            row = connection.execute(select(document_table).where(is_it)).first()
            if row is not None:
                report = replace(document_from(row).report, refused=reason, reader=READER)
                connection.execute(
                    update(document_table).where(is_it).values(report=stored_report(report))
                )

    def delete(self, document_id: str) -> ChunkChanges:
        """Remove a document. Raises NotFound."""
        is_it = document_table.c.id == document_id
        with writing(self._engine) as connection:
            row = connection.execute(select(document_table).where(is_it)).first()
            if row is None:
                raise _no_document(document_id)
            contents = self._contents_of(connection, [document_id])
            removed = chunk_ids_of(connection, document_id)
            gone_tables = tuple(table_ids_of(connection, [document_id]))
            remove_chunks(connection, removed)
            connection.execute(delete(table_table).where(table_table.c.document_id == document_id))
            connection.execute(
                delete(section_table).where(section_table.c.document_id == document_id)
            )
            connection.execute(delete(document_table).where(is_it))
            mark_changed(connection, [row.collection_id])
            record(connection, "document.deleted", row.name)
        self.let_go_of(contents)
        return ChunkChanges(removed=tuple(removed), removed_tables=gone_tables)

    def rename(self, wanted: Iterable[tuple[str, str, str]]) -> None:
        """Call documents, by id, otherwise, with another link; nothing of them is embedded again.

        One that is gone, or whose collection has another of that name, stays as it is.
        """
        with writing(self._engine) as connection:
            for some in batches(wanted):
                pairs = rename_documents(connection, some)
                record(connection, "document.renamed", *(f"{old} to {new}" for old, new in pairs))

    # ── Originals ────────────────────────────────────────────────────────────────────────────

    def original(self, document: Document) -> Path | None:
        """The file that it was read from, if it was kept; who may open one may open the other."""
        return self.original_of_content(document.content_hash, document.size_bytes)

    def original_of_content(self, content_hash: str, size: int | None = None) -> Path | None:
        """The file of a document that may be gone, if it is still kept."""
        return self._originals.path(content_hash, size) if self._originals else None

    def has_original(self, document: Document) -> bool:
        """Whether `original` would find it; nothing is fetched from elsewhere for that."""
        has = self._originals.has if self._originals is not None else None
        return has is not None and has(document.content_hash, document.size_bytes)

    def without_original(self, *, reads: bool = False) -> dict[str, str]:
        """Names of documents by id whose file is not there, or not in its length.

        Read, it also has to be what they were made of.
        """
        if self._originals is None:
            return {}
        columns = ("id", "name", "content_hash", "size_bytes")
        query = select(*(document_table.c[name] for name in columns)).order_by("name")
        with reading(self._engine) as connection:
            rows = connection.execute(query).all()
        sizes = self._originals.sizes() if rows else {}
        is_whole = self._originals.is_whole if reads else lambda _hash: True
        return {
            row.id: row.name
            for row in rows
            if sizes.get(row.content_hash) != row.size_bytes or not is_whole(row.content_hash)
        }

    def bring_originals(self, folder: FolderBlobs) -> int:
        """Copy what documents need of another folder of originals into the store."""
        return self._originals.bring(folder, self._contents()) if self._originals else 0

    def keep_original(self, content_hash: str, data: bytes | None) -> None:
        """The file of a document that is stored."""
        if self._originals is not None and data is not None:
            self._originals.keep(content_hash, data)

    def tidy_originals(self) -> None:
        """Let go of those that a killed process left, or that shall not be kept any more."""
        if self._originals is not None and not deletions_wait(self._engine):
            self._originals.tidy(self._contents)

    def let_go_of(self, contents: Iterable[str]) -> None:
        """Of originals by their content, as far as nothing needs them any more."""
        if self._originals is not None and not deletions_wait(self._engine):
            self._originals.discard(contents, self._holds)

    def _holds(self, content_hash: str) -> bool:
        with reading(self._engine) as connection:
            return any(
                connection.execute(query.where(column == content_hash).limit(1)).first() is not None
                for query, column in _HELD_CONTENTS
            )

    def _contents(self) -> set[str]:
        with reading(self._engine) as connection:
            return {
                scalar
                for query, _column in _HELD_CONTENTS
                for scalar in connection.execute(query).scalars()
            }

    def _contents_of(self, connection: Connection, document_ids: Iterable[str]) -> set[str]:
        """Of what they were read before; nothing is asked where no originals are kept."""
        results: set[str] = set()
        for ids in batches(document_ids) if self._originals is not None else ():
            query = select(document_table.c.content_hash).where(document_table.c.id.in_(ids))
            results.update(connection.execute(query).scalars())
        return results

    # ── Reading ──────────────────────────────────────────────────────────────────────────────

    def document(self, document_id: str, readable: Readable) -> Document:
        """Raises NotFound, also where it is in none of the collections."""
        query = select(document_table).where(
            document_table.c.id == document_id, inside(document_table.c.collection_id, readable)
        )
        with reading(self._engine) as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            raise _no_document(document_id)
        return document_from(row)

    def known(self, name: str, collection_id: str) -> KnownDocument | None:
        """What an ingest has to know of a document before it reads it anew."""
        return self._known_document(_KNOWN, {"place": collection_id, "named": name})

    def known_by_id(self, document_id: str) -> KnownDocument | None:
        """The same of a document that keeps its id whatever it is called."""
        return self._known_document(_KNOWN_BY_ID, {"its_id": document_id})

    def _known_document(self, query: Select[Any], asked: dict[str, str]) -> KnownDocument | None:
        with reading(self._engine) as connection:
            row = connection.execute(query, asked).first()
        return None if row is None else KnownDocument(*row)

    def free_id(self, file: IncomingFile) -> str:
        """The id of a new document; that of its name, unless one that moved away has it still."""
        document_id = document_id_for(file.name, file.collection_id)
        with reading(self._engine) as connection:
            taken = connection.execute(_TAKEN, {"its_id": document_id}).first() is not None
        return uuid4().hex if taken else document_id

    def chunks(self, chunk_ids: Sequence[str], readable: Readable) -> dict[str, Chunk]:
        """Those that exist."""
        results: dict[str, Chunk] = {}
        query = _CHUNKS  # as it is, where nobody is kept out: building it anew costs as much
        if readable.ids is not None:
            query = query.where(inside(chunk_table.c.collection_id, readable))
        with reading(self._engine) as connection:
            for ids in batches(chunk_ids):
                rows = connection.execute(query, {"ids": ids})
                results.update((chunk.id, chunk) for chunk in map(chunk_from, rows))
        return results

    def section_texts(
        self, keys: Sequence[tuple[str, int]], readable: Readable
    ) -> dict[tuple[str, int], str]:
        """Texts of sections by (document id, section index); those that exist."""
        found: dict[tuple[str, int], str] = {}
        with reading(self._engine) as connection:
            for batch in batches(keys):
                query = _texts_of(len(batch), readable.ids is None)
                places: dict[str, Any] = {f"d{n}": key[0] for n, key in enumerate(batch)}
                places |= {f"i{n}": key[1] for n, key in enumerate(batch)}
                if readable.ids is not None:
                    places["collections"] = sorted(readable.ids)
                found |= {(row[0], row[1]): row[2] for row in connection.execute(query, places)}
        return found

    def is_empty(self, readable: Readable) -> bool:
        """Whether there is no document at all."""
        query = select(document_table.c.id).where(inside(document_table.c.collection_id, readable))
        with reading(self._engine) as connection:
            return connection.execute(query.limit(1)).first() is None

    def sections(self, document_id: str, readable: Readable) -> list[Section]:
        """All of a document, in reading order."""
        query = _sections_of([document_id], readable)
        with reading(self._engine) as connection:
            return [_section(row) for row in connection.execute(query)]

    def chunks_of(
        self, document_id: str, readable: Readable, *, sections: range | None = None
    ) -> list[Chunk]:
        """All of a document, or of some of its sections, in reading order."""
        query = chunk_query().where(
            chunk_table.c.document_id == document_id, inside(chunk_table.c.collection_id, readable)
        )
        if sections is not None:
            index = chunk_table.c.section_index
            query = query.where(index >= sections.start, index < sections.stop)
        with reading(self._engine) as connection:
            rows = connection.execute(query.order_by(chunk_table.c.position))
            return [chunk_from(row) for row in rows]

    def neighbourhood(
        self, document_id: str, index: int, readable: Readable, *, reach: int = 1
    ) -> list[Section]:
        """A section between up to `reach` sections before and after it. Raises NotFound."""
        sections = self.stretches([document_id], readable, index - reach, index + reach)[
            document_id
        ]
        if not any(section.index == index for section in sections):
            raise NotFound(
                f"Document {document_id!r} has no section {index}: it was deleted or changed."
            )
        return sections

    def stretches(
        self, document_ids: Sequence[str], readable: Readable, first: int, last: int
    ) -> defaultdict[str, list[Section]]:
        """Sections from `first` to `last` of each document that has any."""
        query = _sections_of(document_ids, readable).where(
            section_table.c.index.between(first, last)
        )
        found = defaultdict[str, list[Section]](list)
        with reading(self._engine) as connection:
            for row in connection.execute(query):
                found[row.document_id].append(_section(row))
        return found

    def lexicon(self, readable: Readable) -> tuple[str, ...]:
        """The product names of the documents, without repeats; read anew when they change."""
        is_open = inside(document_table.c.collection_id, readable)
        with self._lexicon_turn, reading(self._engine) as connection:
            now = versions(connection, readable)
            known = self._lexicons.pop(readable, None)
            if known is None or known[0] != now:
                query = select(document_table.c.names).where(is_open)
                rows = connection.execute(query.order_by(document_table.c.name))
                names = dict.fromkeys(name for row in rows for name in row.names)
                known = (now, tuple(names))
            self._lexicons[readable] = known
            while len(self._lexicons) > LEXICONS_KEPT:
                self._lexicons.popitem(last=False)
            return known[1]

    # ── Collections ──────────────────────────────────────────────────────────────────────────

    def move(self, document_id: str, collection_id: str) -> None:
        """Put a document into another collection; nothing of it is embedded again.

        Raises NotFound, and Conflict where that one has a document of its name.
        """
        chunks_of_it = chunk_table.c.document_id == document_id
        with writing(self._engine) as connection:
            is_it = document_table.c.id == document_id
            row = connection.execute(select(document_table).where(is_it)).first()
            if row is None:
                raise _no_document(document_id)
            twin = select(document_table.c.id).where(
                document_table.c.collection_id == collection_id,
                document_table.c.name == row.name,
                document_table.c.id != document_id,
            )
            if connection.execute(twin).first() is not None:
                raise Conflict(
                    f"{row.name}: that collection has a document of this name already. Delete one "
                    "of the two first."
                )
            connection.execute(
                update(document_table).where(is_it).values(collection_id=collection_id)
            )
            connection.execute(
                update(chunk_table).where(chunks_of_it).values(collection_id=collection_id)
            )
            ids = select(chunk_table.c.id).where(chunks_of_it)
            connection.execute(delete(moved_chunks).where(moved_chunks.c.id.in_(ids)))
            connection.execute(insert(moved_chunks).from_select(["id"], ids))
            its = collection_table.c.id == collection_id
            name = connection.execute(select(collection_table.c.name).where(its)).scalar()
            record(connection, "document.moved", f"{row.name} to {collection_id} {name}")
            mark_changed(connection, [row.collection_id, collection_id])


@cache
def _texts_of(count: int, is_open: bool) -> TextClause:
    """For so many keys."""
    wanted = f"{_SECTION_TEXTS}({' OR '.join(map(_NTH_KEY.format, range(count)))})"
    if is_open:
        return text(wanted)
    return text(wanted + _OF_OPEN_DOCUMENTS).bindparams(bindparam("collections", expanding=True))


def _sections_of(document_ids: Sequence[str], readable: Readable) -> Select[Any]:
    return (
        select(section_table)
        .join_from(section_table, document_table)
        .where(
            section_table.c.document_id.in_(document_ids),
            inside(document_table.c.collection_id, readable),
        )
        .order_by(section_table.c.index)
    )


def _no_document(document_id: str) -> NotFound:
    return NotFound(f"There is no document {document_id!r}: it was deleted or never ingested.")


def _section(row: Row[Any]) -> Section:
    return Section(row._mapping["index"], tuple(row.heading_path), row.locator, row.text, row.page)

"""Documents, sections and chunks in the database."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from sqlalchemy import Engine, Row, Select, delete, func, select, text, update

from rag.database import chunks as chunk_table
from rag.database import documents as document_table
from rag.database import reading, removed_chunks, writing
from rag.database import sections as section_table
from rag.database import tables as table_table
from rag.documents.store_rows import (
    StoredDocument,
    batches,
    chunk_ids_of,
    remove_chunks,
    table_ids_of,
    write_documents,
)
from rag.errors import NotFound
from rag.records import Chunk, Document, Section
from rag.seams import ChunkChanges

# A plain list of keys: SQLite looks each up, where it would read all sections for rows IN rows.
_SECTION_TEXTS = 'SELECT document_id, "index", text FROM sections WHERE '
_NTH_KEY = '(document_id = :d{0} AND "index" = :i{0})'


@dataclass(frozen=True, slots=True)
class KnownDocument:
    """A stored document as an ingest of the same name meets it."""

    content_hash: str
    owner: str


class SqlDocumentStore:
    """A DocumentStore over SQLAlchemy; also says what the vector index still has to follow."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lexicon: tuple[tuple[int, str], tuple[str, ...]] | None = None
        self._lexicon_turn = threading.Lock()

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
            changes = write_documents(connection, last)
        self._forget_lexicon()
        return changes

    def delete(self, document_id: str) -> ChunkChanges:
        """Remove a document. Raises NotFound."""
        with writing(self._engine) as connection:
            removed = chunk_ids_of(connection, document_id)
            gone_tables = tuple(table_ids_of(connection, [document_id]))
            remove_chunks(connection, removed)
            connection.execute(delete(table_table).where(table_table.c.document_id == document_id))
            connection.execute(
                delete(section_table).where(section_table.c.document_id == document_id)
            )
            gone = connection.execute(
                delete(document_table).where(document_table.c.id == document_id)
            )
            if gone.rowcount == 0:
                raise _no_document(document_id)
        self._forget_lexicon()
        return ChunkChanges(removed=tuple(removed), removed_tables=gone_tables)

    def _forget_lexicon(self) -> None:
        with self._lexicon_turn:
            self._lexicon = None

    # ── Reading ──────────────────────────────────────────────────────────────────────────────

    def document(self, document_id: str) -> Document:
        """Raises NotFound."""
        query = select(document_table).where(document_table.c.id == document_id)
        with reading(self._engine) as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            raise _no_document(document_id)
        return _document(row)

    def known(self, document_id: str) -> KnownDocument | None:
        """What an ingest has to know of a document before it reads it anew."""
        columns = document_table.c.content_hash, document_table.c.owner
        with reading(self._engine) as connection:
            row = connection.execute(
                select(*columns).where(document_table.c.id == document_id)
            ).first()
        return None if row is None else KnownDocument(*row)

    def documents(self) -> list[Document]:
        """All, by name."""
        with reading(self._engine) as connection:
            rows = connection.execute(select(document_table).order_by(document_table.c.name))
            return [_document(row) for row in rows]

    def chunks(self, chunk_ids: Sequence[str]) -> dict[str, Chunk]:
        """Those that exist."""
        found: dict[str, Chunk] = {}
        with reading(self._engine) as connection:
            for ids in batches(chunk_ids):
                query = _chunk_query().where(chunk_table.c.id.in_(ids))
                found.update((row.id, _chunk(row)) for row in connection.execute(query))
        return found

    def section_texts(self, keys: Sequence[tuple[str, int]]) -> dict[tuple[str, int], str]:
        """Texts of sections by (document id, section index); those that exist."""
        found: dict[tuple[str, int], str] = {}
        with reading(self._engine) as connection:
            for batch in batches(keys):
                query = text(_SECTION_TEXTS + " OR ".join(map(_NTH_KEY.format, range(len(batch)))))
                places = {f"d{n}": key[0] for n, key in enumerate(batch)}
                places |= {f"i{n}": key[1] for n, key in enumerate(batch)}
                found |= {(row[0], row[1]): row[2] for row in connection.execute(query, places)}
        return found

    def is_empty(self) -> bool:
        """Whether there is no document at all."""
        with reading(self._engine) as connection:
            return connection.execute(select(document_table.c.id).limit(1)).first() is None

    def sections(self, document_id: str) -> list[Section]:
        """All of a document, in reading order."""
        query = select(section_table).where(section_table.c.document_id == document_id)
        with reading(self._engine) as connection:
            rows = connection.execute(query.order_by(section_table.c.index))
            return [_section(row) for row in rows]

    def chunks_of(self, document_id: str) -> list[Chunk]:
        """All of a document, in reading order."""
        query = _chunk_query().where(chunk_table.c.document_id == document_id)
        with reading(self._engine) as connection:
            rows = connection.execute(query.order_by(chunk_table.c.position))
            return [_chunk(row) for row in rows]

    def section(self, document_id: str, index: int) -> Section:
        """Raises NotFound."""
        found = self.neighbourhood(document_id, index, reach=0)
        return found[0]

    def neighbourhood(self, document_id: str, index: int, *, reach: int = 1) -> list[Section]:
        """A section between up to `reach` sections before and after it. Raises NotFound."""
        query = (
            select(section_table)
            .where(
                section_table.c.document_id == document_id,
                section_table.c.index.between(index - reach, index + reach),
            )
            .order_by(section_table.c.index)
        )
        with reading(self._engine) as connection:
            found = [_section(row) for row in connection.execute(query)]
        if not any(section.index == index for section in found):
            raise NotFound(
                f"Document {document_id!r} has no section {index}: it was deleted or changed."
            )
        return found

    def lexicon(self) -> tuple[str, ...]:
        """The product names of all documents, without repeats; read anew when documents change."""
        with self._lexicon_turn, reading(self._engine) as connection:
            count, newest = connection.execute(
                select(func.count(), func.max(document_table.c.ingested_at))
            ).one()
            version = (count, str(newest))
            if self._lexicon is None or self._lexicon[0] != version:
                rows = connection.execute(
                    select(document_table.c.names).order_by(document_table.c.name)
                )
                names = dict.fromkeys(name for row in rows for name in row.names)
                self._lexicon = (version, tuple(names))
            return self._lexicon[1]

    # ── What the vector index has to follow ──────────────────────────────────────────────────

    def unembedded(self, limit: int) -> list[Chunk]:
        """Chunks that the vector index does not hold yet, oldest first."""
        query = (
            _chunk_query()
            .where(chunk_table.c.is_embedded.is_(False))
            .order_by(chunk_table.c.row)
            .limit(limit)
        )
        with reading(self._engine) as connection:
            return [_chunk(row) for row in connection.execute(query)]

    def unembedded_count(self) -> int:
        query = select(func.count()).where(chunk_table.c.is_embedded.is_(False))
        with reading(self._engine) as connection:
            return int(connection.execute(query).scalar_one())

    def embedded_ids(self) -> set[str]:
        """Ids of the chunks that the vector index shall hold."""
        query = select(chunk_table.c.id).where(chunk_table.c.is_embedded.is_(True))
        with reading(self._engine) as connection:
            return set(connection.execute(query).scalars())

    def chunk_count(self) -> int:
        """Of the whole library."""
        with reading(self._engine) as connection:
            count = select(func.count()).select_from(chunk_table)
            return int(connection.execute(count).scalar_one())

    def mark_embedded(self, chunk_ids: Sequence[str]) -> list[str]:
        """The vector index holds these now; returns those that were deleted meanwhile."""
        existing: set[str] = set()
        with writing(self._engine) as connection:
            for ids in batches(chunk_ids):
                is_one = chunk_table.c.id.in_(ids)
                existing.update(
                    connection.execute(select(chunk_table.c.id).where(is_one)).scalars()
                )
                connection.execute(update(chunk_table).where(is_one).values(is_embedded=True))
        return [chunk_id for chunk_id in chunk_ids if chunk_id not in existing]

    def mark_unembedded(self, chunk_ids: Sequence[str]) -> None:
        """The vector index may have lost these, if they exist."""
        with writing(self._engine) as connection:
            for ids in batches(chunk_ids):
                again = update(chunk_table).where(chunk_table.c.id.in_(ids))
                connection.execute(again.values(is_embedded=False))

    def mark_all_unembedded(self) -> None:
        """Before the vector index is built anew."""
        with writing(self._engine) as connection:
            connection.execute(update(chunk_table).values(is_embedded=False))
            connection.execute(delete(removed_chunks))

    def removed(self, limit: int) -> list[str]:
        """Ids of deleted chunks that the vector index may still hold."""
        query = select(removed_chunks.c.id).order_by(removed_chunks.c.id).limit(limit)
        with reading(self._engine) as connection:
            return list(connection.execute(query).scalars())

    def forget_removed(self, chunk_ids: Sequence[str]) -> None:
        """The vector index holds these no longer."""
        with writing(self._engine) as connection:
            for ids in batches(chunk_ids):
                connection.execute(delete(removed_chunks).where(removed_chunks.c.id.in_(ids)))

    def all_chunks(self, batch_size: int = 1_000) -> Iterator[list[Chunk]]:
        """Every chunk, in batches; each batch is one read."""
        after = 0
        while True:
            query = (
                _chunk_query(chunk_table.c.row)
                .where(chunk_table.c.row > after)
                .order_by(chunk_table.c.row)
                .limit(batch_size)
            )
            with reading(self._engine) as connection:
                rows = connection.execute(query).all()
            if not rows:
                return
            yield [_chunk(row) for row in rows]
            after = rows[-1].row


def _no_document(document_id: str) -> NotFound:
    return NotFound(f"There is no document {document_id!r}: it was deleted or never ingested.")


def _chunk_query(*more: Any) -> Select[Any]:
    return select(
        chunk_table.c.id,
        chunk_table.c.document_id,
        document_table.c.name.label("document_name"),
        document_table.c.title.label("document_title"),
        chunk_table.c.section_index,
        chunk_table.c.position,
        chunk_table.c.heading_path,
        chunk_table.c.locator,
        chunk_table.c.text,
        chunk_table.c.start,
        chunk_table.c.end,
        *more,
    ).join_from(chunk_table, document_table)


def _chunk(row: Row[Any]) -> Chunk:
    return Chunk(
        row.id,
        row.document_id,
        row.document_name,
        row.document_title,
        row.section_index,
        row.position,
        tuple(row.heading_path),
        row.locator,
        row.text,
        row.start,
        row.end,
    )


def _section(row: Row[Any]) -> Section:
    return Section(row._mapping["index"], tuple(row.heading_path), row.locator, row.text, row.page)


def _document(row: Row[Any]) -> Document:
    moment = row.ingested_at
    return Document(
        row.id,
        row.name,
        row.title,
        row.media_type,
        row.content_hash,
        row.size_bytes,
        row.chunk_count,
        moment if moment.tzinfo else moment.replace(tzinfo=UTC),  # SQLite stores no zone
        tuple(row.names),
        row.owner,
    )

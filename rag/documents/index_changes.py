"""What the vector index has to follow: chunks to embed, to take out, to file elsewhere."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import Engine, Row, Select, delete, func, select, update

from rag.db import chunks as chunk_table
from rag.db import documents as document_table
from rag.db import moved_chunks, reading, removed_chunks, writing
from rag.db.audit_trail import record
from rag.documents.store_rows import batches
from rag.records import Chunk

_PATH = [field.name for field in fields(Chunk)].index("heading_path")


LISTED = 2_000  # chunks at once


class IndexDebts:
    """The part of the document store that only ingestion and repair use: it knows no asker."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def unembedded(self, limit: int, of: Sequence[str] = ()) -> list[Chunk]:
        """Chunks that the vector index does not hold yet, oldest first; `of` some documents."""
        query = chunk_query().where(chunk_table.c.is_embedded.is_(False))
        if of:
            query = query.where(chunk_table.c.document_id.in_(of))
        query = query.order_by(chunk_table.c.row).limit(limit)
        with reading(self._engine) as connection:
            return [chunk_from(row) for row in connection.execute(query)]

    def unembedded_count(self) -> int:
        return self._count(chunk_table.c.is_embedded.is_(False))

    def embedded_batches(self) -> Iterator[list[str]]:
        """Ids of the chunks that the vector index shall hold, some at a time."""
        last: int | None = None
        while True:
            query = select(chunk_table.c.row, chunk_table.c.id).where(chunk_table.c.is_embedded)
            if last is not None:
                query = query.where(chunk_table.c.row > last)
            with reading(self._engine) as connection:
                rows = connection.execute(query.order_by(chunk_table.c.row).limit(LISTED)).all()
            if not rows:
                return
            last = rows[-1].row
            yield [row.id for row in rows]

    def places(self, chunk_ids: Sequence[str]) -> dict[str, str]:
        """The collections of those that are there."""
        found = select(chunk_table.c.id, chunk_table.c.collection_id)
        with reading(self._engine) as connection:
            return {
                row.id: row.collection_id
                for ids in batches(chunk_ids)
                for row in connection.execute(found.where(chunk_table.c.id.in_(ids)))
            }

    def embedded_count(self) -> int:
        """How many chunks the vector index shall hold."""
        return self._count(chunk_table.c.is_embedded.is_(True))

    def chunk_count(self) -> int:
        """Of the whole library."""
        return self._count()

    def document_counts(self) -> tuple[int, int]:
        """Documents of the whole library, and chunks that they should have."""
        query = select(func.count(), func.sum(document_table.c.chunk_count))
        with reading(self._engine) as connection:
            documents, chunks = connection.execute(query).one()
        return documents, chunks or 0

    def _count(self, *conditions: Any) -> int:
        query = select(func.count()).select_from(chunk_table).where(*conditions)
        with reading(self._engine) as connection:
            return int(connection.execute(query).scalar_one())

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
            connection.execute(delete(moved_chunks))
            record(connection, "index.rebuilt", "")

    def note_rebuilt(self) -> None:
        """Another index has taken the old one's place."""
        with writing(self._engine) as connection:
            record(connection, "index.rebuilt", "")

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

    def moved(self, limit: int) -> dict[str, str]:
        """Chunks of which the vector index may not know where they are, with their collection."""
        query = (
            select(moved_chunks.c.id, chunk_table.c.collection_id)
            .outerjoin(chunk_table, chunk_table.c.id == moved_chunks.c.id)
            .order_by(moved_chunks.c.id)
            .limit(limit)
        )
        with reading(self._engine) as connection:
            return {row.id: row.collection_id or "" for row in connection.execute(query)}

    def forget_moved(self, filed: Mapping[str, str]) -> None:
        """The vector index has these where they are; one that moved again meanwhile stays."""
        with writing(self._engine) as connection:
            for ids in batches(filed):
                query = select(chunk_table.c.id, chunk_table.c.collection_id)
                rows = connection.execute(query.where(chunk_table.c.id.in_(ids)))
                now = {row.id: row.collection_id for row in rows}
                settled = [id_ for id_ in ids if now.get(id_, filed[id_]) == filed[id_]]
                connection.execute(delete(moved_chunks).where(moved_chunks.c.id.in_(settled)))


def chunk_query() -> Select[Any]:
    """Chunks with what their documents are called: what a Chunk has, in its order."""
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
        chunk_table.c.collection_id,
    ).join_from(chunk_table, document_table)


def chunk_from(row: Row[Any]) -> Chunk:
    """A chunk from a row of `chunk_query`."""
    values = list(row)
    values[_PATH] = tuple(values[_PATH])
    return Chunk(*values)

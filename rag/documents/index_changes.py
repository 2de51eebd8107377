"""Pending changes of the vector index: chunks to embed, to remove, or to move."""

import fcntl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, text, update
from sqlalchemy.exc import IntegrityError

from rag import db
from rag.db.audit_trail import record
from rag.documents.store_rows import (
    Reads,
    chunk_from,
    chunk_query,
    delete_with,
    rows_with,
    update_with,
)
from rag.errors import StorageFailed
from rag.records import Chunk

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
            done = (
                chunk_id for chunk_id, place in filed.items() if now.get(chunk_id, place) == place
            )
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
        now = datetime.now(UTC)
        with db.writing(self._engine) as connection:
            connection.execute(
                delete(db.embedding_claims).where(db.embedding_claims.c.until <= now)
            )
            free = (
                select(db.chunks.c.id)
                .where(db.chunks.c.is_embedded.is_(False))
                .where(db.chunks.c.id.not_in(select(db.embedding_claims.c.chunk_id)))
                .order_by(db.chunks.c.row)
                .limit(limit)
                .with_for_update(skip_locked=True)  # concurrent processes claim different chunks
            )
            ids = list(connection.execute(free).scalars())
            if ids:
                rows = [{"chunk_id": id_, "until": now + LEASE} for id_ in ids]
                connection.execute(insert(db.embedding_claims), rows)
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

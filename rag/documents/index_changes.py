"""What the vector index has to follow: chunks to embed, to take out, to file elsewhere."""

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
    """The part of the document store that only ingestion and repair use: it knows no asker."""

    def unembedded(self, limit: int, of: Sequence[str] = ()) -> list[Chunk]:
        """Chunks that the vector index does not hold yet, oldest first; `of` some documents."""
        query = chunk_query().where(db.chunks.c.is_embedded.is_(False))
        if of:
            query = query.where(db.chunks.c.document_id.in_(of))
        return list(map(chunk_from, self._rows(query.order_by(db.chunks.c.row).limit(limit))))

    def unembedded_count(self) -> int:
        return self._count(db.chunks.c.is_embedded.is_(False))

    def embedded_batches(self) -> Iterator[list[str]]:
        """Ids of the chunks that the vector index shall hold, some at a time."""
        query = select(db.chunks.c.row, db.chunks.c.id).where(db.chunks.c.is_embedded)
        query = query.order_by(db.chunks.c.row).limit(LISTED)
        rows = self._rows(query)
        while rows:
            yield [row.id for row in rows]
            rows = self._rows(query.where(db.chunks.c.row > rows[-1].row))

    def places(self, chunk_ids: Sequence[str]) -> dict[str, str]:
        """The collections of those that are there."""
        with db.reading(self._engine) as connection:
            return _places(connection, chunk_ids)

    def embedded_count(self) -> int:
        """How many chunks the vector index shall hold."""
        return self._count(db.chunks.c.is_embedded.is_(True))

    def chunk_count(self) -> int:
        """Of the whole library."""
        return self._count()

    def document_counts(self) -> tuple[int, int]:
        """Documents of the whole library, and chunks that they should have."""
        query = select(func.count(), func.sum(db.documents.c.chunk_count))
        [(documents, chunks)] = self._rows(query)
        return documents, chunks or 0

    def _count(self, *conditions: Any) -> int:
        [(count,)] = self._rows(select(func.count()).select_from(db.chunks).where(*conditions))
        return int(count)

    def mark_embedded(self, chunk_ids: Sequence[str]) -> list[str]:
        """The vector index holds these now; returns those that were deleted meanwhile."""
        with db.writing(self._engine) as connection:
            existing = _places(connection, chunk_ids)
            update_with(connection, db.chunks.c.id, chunk_ids, is_embedded=True)
        return [chunk_id for chunk_id in chunk_ids if chunk_id not in existing]

    def mark_unembedded(self, chunk_ids: Sequence[str]) -> None:
        """The vector index may have lost these, if they exist."""
        with db.writing(self._engine) as connection:
            update_with(connection, db.chunks.c.id, chunk_ids, is_embedded=False)

    def mark_all_unembedded(self) -> None:
        """Before the vector index is built anew."""
        with db.writing(self._engine) as connection:
            connection.execute(update(db.chunks).values(is_embedded=False))
            connection.execute(delete(db.removed_chunks))
            connection.execute(delete(db.moved_chunks))
            record(connection, "index.rebuilt", "")

    def note_rebuilt(self) -> None:
        """Another index has taken the old one's place."""
        with db.writing(self._engine) as connection:
            record(connection, "index.rebuilt", "")

    def removed(self, limit: int) -> list[str]:
        """Ids of deleted chunks that the vector index may still hold."""
        query = select(db.removed_chunks.c.id).order_by(db.removed_chunks.c.id).limit(limit)
        return [row.id for row in self._rows(query)]

    def forget_removed(self, chunk_ids: Sequence[str]) -> None:
        """The vector index holds these no longer."""
        with db.writing(self._engine) as connection:
            delete_with(connection, db.removed_chunks.c.id, chunk_ids)

    def moved(self, limit: int) -> dict[str, str]:
        """Chunks of which the vector index may not know where they are, with their collection."""
        query = (
            select(db.moved_chunks.c.id, db.chunks.c.collection_id)
            .outerjoin(db.chunks, db.chunks.c.id == db.moved_chunks.c.id)
            .order_by(db.moved_chunks.c.id)
            .limit(limit)
        )
        return {row.id: row.collection_id or "" for row in self._rows(query)}

    def forget_moved(self, filed: Mapping[str, str]) -> None:
        """The vector index has these where they are; one that moved again meanwhile stays."""
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


LOOKS = 100  # that others may be quicker in turn; each takes something
LEASE = timedelta(minutes=1)  # renewed before each request to the model
_ONE_WRITER = text("SELECT pg_advisory_xact_lock(7102385)")


class EmbeddingClaims(Reads):
    """Each chunk is claimed by one process at a time; a dead one's claims end by themselves."""

    def take(self, limit: int) -> list[str]:
        """Ids of chunks that are to be embedded, and that nobody else embeds now.

        Raises StorageFailed where others take them away again and again.
        """
        for _look in range(LOOKS):
            with suppress(IntegrityError):  # another was quicker: the next sees what it took
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
                .with_for_update(skip_locked=True)  # several take different ones at once
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
        """No other process writes vectors meanwhile: eight writers at once cost Chroma twenty times
        the processor time of one after the other."""
        if self._engine.dialect.name == "postgresql":
            with db.reading(self._engine) as connection:
                connection.execute(_ONE_WRITER)
                yield
            return
        with Path(f"{self._engine.url.database}.vectors").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def are_done(self, chunk_ids: Iterable[str]) -> bool:
        """Whether all of these are embedded, or gone."""
        waiting = select(db.chunks.c.id).where(db.chunks.c.is_embedded.is_(False)).limit(1)
        return not self._rows_with(waiting, db.chunks.c.id, chunk_ids)

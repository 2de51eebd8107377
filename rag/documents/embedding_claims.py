"""Which process embeds which chunks, where several share a database."""

import fcntl
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import delete, insert, select, text
from sqlalchemy.exc import IntegrityError

from rag import db
from rag.documents.store_rows import Reads, delete_with, update_with
from rag.errors import StorageFailed

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

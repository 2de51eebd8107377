"""Files that were added and could not be read, as the jobs of their uploads tell."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Engine, exists, select

from rag.db import documents, jobs, reading
from rag.records import JobState

_LATER = jobs.alias("later")
_UNREAD = (
    select(jobs.c.subject, jobs.c.error, jobs.c.owner)
    .where(
        jobs.c.kind == "ingest",
        jobs.c.state == JobState.FAILED.value,
        ~exists().where(
            _LATER.c.kind == jobs.c.kind,
            _LATER.c.subject == jobs.c.subject,
            _LATER.c.collection_id == jobs.c.collection_id,
            _LATER.c.created_at > jobs.c.created_at,
        ),
        ~exists().where(
            documents.c.name == jobs.c.subject,
            documents.c.collection_id == jobs.c.collection_id,
            documents.c.ingested_at > jobs.c.created_at,
        ),
    )
    .order_by(jobs.c.subject)
)


@dataclass(frozen=True, slots=True)
class UnreadFile:
    """A file that is not in the library, and why."""

    name: str
    reason: str  # begins with the name


class UnreadFiles:
    """What failed at its last try."""

    def __init__(self, engine: Engine, sees_all: Callable[[str], bool]) -> None:
        """`sees_all` says of an owner whether others' uploads may be told of."""
        self._engine = engine
        self._sees_all = sees_all

    def __call__(self, owner: str) -> list[UnreadFile]:
        """Those that an owner may know of, by name."""
        with reading(self._engine) as connection:
            rows = connection.execute(_UNREAD).all()
        everything = self._sees_all(owner)
        return [
            UnreadFile(row.subject, row.error or row.subject)
            for row in rows
            if everything or row.owner == owner
        ]

"""Jobs in the database: what is to be done, what is being done, and when it is tried again."""

import hashlib
from collections.abc import Collection
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
    true,
    update,
)

from rag.db import as_utc, jobs, reading, storable, writing
from rag.db.blobs import restored_at
from rag.errors import NotFound
from rag.records import DEFAULT_COLLECTION, Job, JobState

UNFINISHED = (JobState.QUEUED.value, JobState.RUNNING.value)
OF_EACH = 20  # queued jobs of one owner, in one look at whose turn it is
LOOKED_AT = 1_000  # unfinished jobs in one look
FIRST_PAUSE_SECONDS = 2.0
LONGEST_PAUSE_SECONDS = 300.0


class JobTable:
    """Jobs in the database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the database."""
        return self._engine.dialect.name == "sqlite"

    @property
    def place(self) -> str:
        """Tells databases apart: two on one Redis must not take each other's jobs."""
        url = self._engine.url
        where = f"{url.host}:{url.port}/{url.database}"
        return hashlib.sha256(where.encode()).hexdigest()[:12]

    def add(
        self,
        kind: str,
        subject: str,
        *,
        owner: str = "",
        collection_id: str = DEFAULT_COLLECTION,
        due_in: timedelta | None = None,
    ) -> Job:
        """A queued job; with `due_in` nobody begins it before, unless it is let go."""
        now = datetime.now(UTC)
        job = Job(
            uuid4().hex,
            kind,
            storable(subject),
            JobState.QUEUED,
            now,
            now,
            owner=owner,
            collection_id=collection_id,
            due_at=now + due_in if due_in else None,
        )
        with writing(self._engine) as connection:
            connection.execute(insert(jobs).values(**asdict(job)))
        return job

    def set(self, job_id: str, **values: Any) -> None:
        with writing(self._engine) as connection:
            connection.execute(
                update(jobs)
                .where(jobs.c.id == job_id)
                .values(updated_at=datetime.now(UTC), **values)
            )

    def claim(self, job_id: str) -> bool:
        """Begin a queued job; False if it is not queued, or not any more."""
        return self._moved(job_id, JobState.RUNNING, jobs.c.state == JobState.QUEUED.value)

    def try_again(self, job: Job, reason: str) -> None:
        """Queue a job again after a pause, twice as long each time."""
        pause = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0**job.attempts)
        self.set(
            job.id,
            state=JobState.QUEUED.value,
            error=storable(f"{reason} It is tried again by itself."),
            attempts=job.attempts + 1,
            due_at=datetime.now(UTC) + timedelta(seconds=pause),
        )

    def give_back(self, job: Job) -> bool:
        """Queue an unfinished job again; False if somebody touched it since it was read."""
        untouched = and_(jobs.c.state == job.state.value, jobs.c.updated_at == job.updated_at)
        return self._moved(job.id, JobState.QUEUED, untouched)

    def _moved(self, job_id: str, state: JobState, condition: Any) -> bool:
        with writing(self._engine) as connection:
            moved = connection.execute(
                update(jobs)
                .where(jobs.c.id == job_id, condition)
                .values(state=state.value, due_at=None, updated_at=datetime.now(UTC))
            )
        return bool(moved.rowcount == 1)

    def touch(self, job_ids: Collection[str]) -> None:
        """A sign of life."""
        if job_ids:
            with writing(self._engine) as connection:
                connection.execute(
                    update(jobs).where(jobs.c.id.in_(job_ids)).values(updated_at=datetime.now(UTC))
                )

    def job(self, job_id: str) -> Job:
        with reading(self._engine) as connection:
            query = select(jobs).where(jobs.c.id == storable(job_id))
            row = connection.execute(query).one_or_none()
        if row is None:
            raise NotFound(f"There is no job {job_id!r}.")
        return _job_from(row)

    def newest(self, kind: str, *, limit: int = 50) -> list[Job]:
        """Newest first."""
        with reading(self._engine) as connection:
            rows = connection.execute(
                select(jobs)
                .where(jobs.c.kind == kind)
                .order_by(jobs.c.created_at.desc())
                .limit(limit)
            )
            return [_job_from(row) for row in rows]

    def unfinished(self, *states: JobState) -> list[Job]:
        """Of these states, or of both; oldest first."""
        wanted = [state.value for state in states] or UNFINISHED
        with reading(self._engine) as connection:
            rows = connection.execute(
                select(jobs)
                .where(jobs.c.state.in_(wanted))
                .order_by(jobs.c.created_at)
                .limit(LOOKED_AT)
            )
            return [_job_from(row) for row in rows]

    def due(self, *, of_each: int = OF_EACH) -> list[Job]:
        """Queued jobs that may be begun, the oldest of each owner; the oldest first."""
        is_due = or_(jobs.c.due_at.is_(None), jobs.c.due_at <= datetime.now(UTC))
        place = func.row_number().over(
            partition_by=jobs.c.owner, order_by=(jobs.c.created_at, jobs.c.id)
        )
        queued = select(jobs.c.id, place.label("place"))
        queued = queued.where(jobs.c.state == JobState.QUEUED.value, is_due)
        with reading(self._engine) as connection:
            first = queued.where(_may_go_on(connection)).subquery()
            query = select(jobs).join(first, first.c.id == jobs.c.id)
            query = query.where(first.c.place <= of_each)
            rows = connection.execute(query.order_by(jobs.c.created_at, jobs.c.id))
            return [_job_from(row) for row in rows]

    def is_unfinished(self, job_id: str) -> bool:
        """Whether there is such a job, and it has not ended."""
        is_it = and_(jobs.c.id == job_id, jobs.c.state.in_(UNFINISHED))
        with reading(self._engine) as connection:
            return connection.execute(select(jobs.c.id).where(is_it)).first() is not None

    def alike(self, job: Job) -> list[Job]:
        """Unfinished jobs of the same kind about the same subject, oldest first."""
        query = select(jobs).where(
            jobs.c.kind == job.kind,
            jobs.c.subject == job.subject,
            jobs.c.collection_id == job.collection_id,
            jobs.c.state.in_(UNFINISHED),
        )
        with reading(self._engine) as connection:
            query = query.where(_may_go_on(connection))
            rows = connection.execute(query.order_by(jobs.c.created_at, jobs.c.id))
            return [_job_from(row) for row in rows]

    def forget_ended(self, kind: str, subject: str) -> None:
        """Of work that comes again and again, what ended need not be remembered."""
        has_ended = jobs.c.state.not_in(UNFINISHED)
        with writing(self._engine) as connection:
            connection.execute(
                delete(jobs).where(jobs.c.kind == kind, jobs.c.subject == subject, has_ended)
            )

    def queued(self, kind: str, subject: str) -> Job | None:
        """One that nobody has begun."""
        query = select(jobs).where(
            jobs.c.kind == kind, jobs.c.subject == subject, jobs.c.state == JobState.QUEUED.value
        )
        with reading(self._engine) as connection:
            row = connection.execute(query.limit(1)).first()
        return _job_from(row) if row is not None else None


def _may_go_on(connection: Connection) -> ColumnElement[bool]:
    """Of a library that was put back from a backup, what came since."""
    since = restored_at(connection)
    return true() if since is None else jobs.c.created_at > since


def _job_from(row: Any) -> Job:
    values = dict(row._mapping) | {"state": JobState(row.state)}
    moments = {name: as_utc(values[name]) for name in ("created_at", "updated_at")}
    due = {"due_at": row.due_at and as_utc(row.due_at)}
    return Job(**values | moments | due)

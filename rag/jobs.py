"""Background work: the database says what is to be done, Huey does it.

A job is a row first and a queue entry second. After a kill, `JobQueue.start` queues what the
database still calls unfinished, so a job is done at least once; every kind of job can be run again.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy import Engine, insert, select, update

from rag.database import as_utc, jobs, reading, storable, writing
from rag.errors import NotFound, RagError
from rag.records import Job, JobState

Handler = Callable[["RunningJob"], None]
POLL_SECONDS = 0.25
ABANDONED_AFTER = timedelta(minutes=15)
UNFINISHED = (JobState.QUEUED.value, JobState.RUNNING.value)
INTERNAL = "It failed for a reason of our own; the server's log says more. Try it again."


@dataclass(frozen=True, slots=True)
class RunningJob:
    """What a handler is given."""

    job: Job
    report: Callable[[int, int], None]  # done, total


class JobTable:
    """Jobs in the database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, kind: str, subject: str) -> Job:
        now = datetime.now(UTC)
        job = Job(uuid4().hex, kind, storable(subject), JobState.QUEUED, now, now)
        with writing(self._engine) as connection:
            connection.execute(
                insert(jobs).values(
                    id=job.id,
                    kind=kind,
                    subject=job.subject,
                    state=job.state.value,
                    created_at=now,
                    updated_at=now,
                )
            )
        return job

    def set(self, job_id: str, **values: Any) -> None:
        with writing(self._engine) as connection:
            connection.execute(
                update(jobs)
                .where(jobs.c.id == job_id)
                .values(updated_at=datetime.now(UTC), **values)
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

    def unfinished(self) -> list[Job]:
        """Oldest first."""
        with reading(self._engine) as connection:
            rows = connection.execute(
                select(jobs).where(jobs.c.state.in_(UNFINISHED)).order_by(jobs.c.created_at)
            )
            return [_job_from(row) for row in rows]


def _job_from(row: Any) -> Job:
    return Job(
        id=row.id,
        kind=row.kind,
        subject=row.subject,
        state=JobState(row.state),
        created_at=as_utc(row.created_at),
        updated_at=as_utc(row.updated_at),
        done=row.done,
        total=row.total,
        error=row.error,
        seconds=row.seconds,
    )


class JobQueue:
    """Queues jobs, and runs them on threads of this process once `start` is called.

    `url` is a Redis URL for several hosts; None keeps the queue in a SQLite file of `folder`.
    Before `start` jobs only wait; `run_waiting` runs them in the caller's thread.
    """

    def __init__(self, table: JobTable, *, folder: Path, url: str | None, workers: int) -> None:
        self.table = table
        self._workers = workers
        self._is_shared = url is not None
        self._handlers: dict[str, Handler] = {}
        self._huey = _open_huey(folder, url)
        self._run = self._huey.task(name="run")(self._execute)
        self._consumer: Any = None

    def handle(self, kind: str, handler: Handler) -> None:
        """Say who does jobs of a kind; called while wiring, before `start`."""
        self._handlers[kind] = handler

    def submit(self, kind: str, subject: str, *, prepare: Handler | None = None) -> Job:
        """Queue a job; `prepare` runs before any worker can see it (to lay down its file)."""
        job = self.table.add(kind, subject)
        if prepare is not None:
            prepare(RunningJob(job, lambda done, total: None))
        self._run(job.id)
        return job

    def start(self) -> None:
        """Begin to work, with what a killed process left first."""
        if self._consumer is not None:
            return
        self._resume()
        self._consumer = _consumer(self._huey, self._workers)
        self._consumer.start()

    def _resume(self) -> None:
        """Queue what a killed process left; beside other hosts only what looks abandoned."""
        if not self._is_shared:
            self._huey.flush()
        abandoned = datetime.now(UTC) - ABANDONED_AFTER
        for job in self.table.unfinished():
            if not self._is_shared or job.updated_at < abandoned:
                self._run(job.id)

    def stop(self) -> None:
        """Finish what is running and stop."""
        if self._consumer is not None:
            self._consumer.stop(graceful=True)
            self._consumer = None

    def run_waiting(self) -> None:
        """Run what is queued now, in this thread."""
        while (task := self._huey.dequeue()) is not None:
            self._huey.execute(task)

    def _execute(self, job_id: str) -> None:
        job = self.table.job(job_id)
        if job.state.value not in UNFINISHED:
            return
        self.table.set(job_id, state=JobState.RUNNING.value)
        began = time.monotonic()
        try:
            self._handlers[job.kind](RunningJob(job, self._progress(job_id)))
        except RagError as error:
            self.table.set(job_id, state=JobState.FAILED.value, error=storable(str(error)))
        except BaseException:
            # The outermost edge of a worker: without this the job would wait for ever.
            self.table.set(job_id, state=JobState.FAILED.value, error=INTERNAL)
            raise
        else:
            seconds = time.monotonic() - began
            self.table.set(job_id, state=JobState.DONE.value, seconds=seconds)

    def _progress(self, job_id: str) -> Callable[[int, int], None]:
        return lambda done, total: self.table.set(job_id, done=done, total=total)


def _open_huey(folder: Path, url: str | None) -> Any:
    if url is not None:
        from huey import RedisHuey

        return RedisHuey("groundnote", url=url, results=False)
    from huey import SqliteHuey

    folder.mkdir(parents=True, exist_ok=True)
    return SqliteHuey("groundnote", filename=str(folder / "jobs.db"), results=False)


def _consumer(huey: Any, workers: int) -> Any:
    from huey.consumer import Consumer

    class EmbeddedConsumer(Consumer):  # type: ignore[misc]
        """Runs beside a web server, to which the signals of the process belong."""

        def _set_signal_handlers(self) -> None:
            pass

    return EmbeddedConsumer(
        huey,
        workers=workers,
        periodic=False,
        initial_delay=POLL_SECONDS,
        max_delay=POLL_SECONDS,
        check_worker_health=False,
    )

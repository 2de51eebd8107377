"""Background work: the database says what is to be done, Huey does it.

A job is a row first and a queue entry second. What a killed process left is queued again: at the
start where this process is alone with its database, else once nobody has touched the row for a
while. So a job is done at least once; every kind of job can be run again. Jobs of one kind about
one subject are done one after the other, in the order they were submitted.
"""

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy import Engine, and_, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from rag.database import as_utc, jobs, reading, storable, writing
from rag.errors import NotFound, RagError
from rag.queues import AloneLock, new_consumer, open_huey, queue_errors
from rag.records import DEFAULT_COLLECTION, Job, JobState

Handler = Callable[["RunningJob"], None]
BEAT_SECONDS = 10.0  # between two signs of life of a running job
ABANDONED_AFTER = {  # without a sign of life; a queued job may just wait for its turn
    JobState.RUNNING: timedelta(minutes=1),
    JobState.QUEUED: timedelta(minutes=15),
}
UNFINISHED = (JobState.QUEUED.value, JobState.RUNNING.value)
INTERNAL = "It failed for a reason of our own; the server's log says more. Try it again."

log = logging.getLogger(__name__)


class Stopped(Exception):
    """The queue stops: a handler lets this through, and its job is done again at the next start."""


@dataclass(frozen=True, slots=True)
class RunningJob:
    """What a handler is given."""

    job: Job
    report: Callable[[int, int], None]  # done, total; raises Stopped


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
        self, kind: str, subject: str, *, owner: str = "", collection_id: str = DEFAULT_COLLECTION
    ) -> Job:
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

    def give_back(self, job: Job) -> bool:
        """Queue an unfinished job again; False if somebody touched it since it was read."""
        untouched = and_(jobs.c.state == job.state.value, jobs.c.updated_at == job.updated_at)
        return self._moved(job.id, JobState.QUEUED, untouched)

    def _moved(self, job_id: str, state: JobState, condition: Any) -> bool:
        with writing(self._engine) as connection:
            moved = connection.execute(
                update(jobs)
                .where(jobs.c.id == job_id, condition)
                .values(state=state.value, updated_at=datetime.now(UTC))
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

    def unfinished(self) -> list[Job]:
        """Oldest first."""
        with reading(self._engine) as connection:
            rows = connection.execute(
                select(jobs).where(jobs.c.state.in_(UNFINISHED)).order_by(jobs.c.created_at)
            )
            return [_job_from(row) for row in rows]

    def alike(self, job: Job) -> list[Job]:
        """Unfinished jobs of the same kind about the same subject, oldest first."""
        query = select(jobs).where(
            jobs.c.kind == job.kind,
            jobs.c.subject == job.subject,
            jobs.c.collection_id == job.collection_id,
            jobs.c.state.in_(UNFINISHED),
        )
        with reading(self._engine) as connection:
            rows = connection.execute(query.order_by(jobs.c.created_at, jobs.c.id))
            return [_job_from(row) for row in rows]


def _job_from(row: Any) -> Job:
    values = dict(row._mapping) | {"state": JobState(row.state)}
    moments = {name: as_utc(values[name]) for name in ("created_at", "updated_at")}
    return Job(**values | moments)


class JobQueue:
    """Queues jobs, and runs them on threads of this process once `start` is called.

    `url` is a Redis URL for several hosts; None keeps the queue in a SQLite file of `folder`.
    Before `start` jobs only wait; `run_waiting` runs them in the caller's thread.
    """

    def __init__(self, table: JobTable, *, folder: Path, url: str | None, workers: int) -> None:
        self.table = table
        self._workers = workers
        # Its lock says which process is the only one, so that what is left must be of dead ones.
        self._lock = AloneLock(folder / "jobs.lock") if url is None and table.is_local else None
        self._handlers: dict[str, Handler] = {}
        self._open = partial(open_huey, folder, url, name=f"groundnote-{table.place}")
        self._queue_errors = queue_errors(url)
        self._consumer: Any = None
        self._running: set[str] = set()
        self._stopping = threading.Event()
        self._may_submit = threading.Event()
        self._may_submit.set()
        if url is not None:
            _ = self._huey  # a wrong URL is told at once

    @cached_property
    def _huey(self) -> Any:
        huey = self._open()
        self._task = huey.task(name="run")(self._execute)
        return huey

    def _run(self, job_id: str) -> None:
        self._huey.enqueue(self._task.s(job_id))

    def handle(self, kind: str, handler: Handler) -> None:
        """Say who does jobs of a kind; called while wiring, before `start`."""
        self._handlers[kind] = handler

    def submit(
        self,
        kind: str,
        subject: str,
        *,
        owner: str = "",
        collection_id: str = DEFAULT_COLLECTION,
        prepare: Handler | None = None,
    ) -> Job:
        """Queue a job; `prepare` runs before any worker can see it (to lay down its file).

        Where there is no room to prepare it, the job comes back failed, and says so.
        """
        self._may_submit.wait()
        job = self.table.add(kind, subject, owner=owner, collection_id=collection_id)
        try:
            if prepare is not None:
                prepare(RunningJob(job, lambda done, total: None))
        except (OSError, SQLAlchemyError) as error:
            log.exception("job %s could not be prepared", job.id)
            self._fail(job.id, f"{subject} could not be kept ({_reason(error)}). Send it again.")
            return self.table.job(job.id)
        self._enqueue(job.id)
        return job

    def _enqueue(self, job_id: str) -> None:
        try:
            self._run(job_id)
        except self._queue_errors:
            # The row stands: it is queued again when it looks abandoned.
            log.warning("job %s waits: the queue cannot be reached", job_id, exc_info=True)

    def start_soon(self) -> None:
        """Start on a thread: a page need not wait for it. Who submits meanwhile does."""
        self._stopping.clear()
        self._may_submit.clear()
        threading.Thread(target=self._start, name="start of jobs", daemon=True).start()

    def start(self) -> None:
        """Begin to work, with what a killed process left first."""
        self._stopping.clear()
        self._start()

    def _start(self) -> None:
        if self._consumer is not None:
            return
        try:
            self._resume()
            self._consumer = new_consumer(self._huey, self._workers)
            self._consumer.start()
        finally:
            self._may_submit.set()
        threading.Thread(target=self._keep_alive, name="jobs", daemon=True).start()

    def _resume(self) -> None:
        """Queue what a killed process left; beside other hosts only what looks abandoned."""
        if self._lock is None or not self._lock.take():
            self._beat()
            return
        self._huey.flush()
        for job in self.table.unfinished():
            self.table.give_back(job)
            self._enqueue(job.id)

    def _keep_alive(self) -> None:
        while not self._stopping.wait(BEAT_SECONDS):
            try:
                self._beat()
            except SQLAlchemyError:
                log.warning("jobs cannot be looked after", exc_info=True)

    def _beat(self) -> None:
        """Show that our jobs are alive, and take up those of others that are not."""
        self.table.touch(set(self._running))
        now = datetime.now(UTC)
        for job in self.table.unfinished():
            is_abandoned = job.updated_at < now - ABANDONED_AFTER[job.state]
            if is_abandoned and job.id not in self._running and self.table.give_back(job):
                self._enqueue(job.id)

    def stop(self) -> None:
        """Let running jobs come to a point where they can be left, but not for long."""
        self._stopping.set()
        self._may_submit.wait()  # until it has started, where it is about to
        if self._consumer is not None:
            self._consumer.stop(graceful=True)
            self._consumer = None
        if self._lock is not None:
            self._lock.release()

    def run_waiting(self) -> None:
        """Run what is queued now, in this thread."""
        while (task := self._huey.dequeue()) is not None:
            self._huey.execute(task)

    def _execute(self, job_id: str) -> None:
        try:
            job = self.table.job(job_id)
        except NotFound:
            return  # of a database that is gone
        alike = self.table.alike(job)
        if (alike and alike[0].id != job_id) or not self.table.claim(job_id):
            return  # an earlier one calls it when it has ended; or another worker has it
        self._running.add(job_id)
        try:
            self._do(job)
        finally:
            self._running.discard(job_id)
            for following in self.table.alike(job)[:1]:
                self._enqueue(following.id)

    def _do(self, job: Job) -> None:
        began = time.monotonic()
        try:
            self._handlers[job.kind](RunningJob(job, self._progress(job.id)))
        except Stopped:
            self.table.set(job.id, state=JobState.QUEUED.value)
        except RagError as error:
            self._fail(job.id, str(error))
        except OSError as error:
            log.exception("job %s failed", job.id)
            self._fail(job.id, f"It failed ({_reason(error)}). Try it again when that is mended.")
        except BaseException:
            # The outermost edge of a worker: without this the job would wait for ever.
            self._fail(job.id, INTERNAL)
            raise
        else:
            seconds = time.monotonic() - began
            self.table.set(job.id, state=JobState.DONE.value, seconds=seconds)

    def _fail(self, job_id: str, reason: str) -> None:
        self.table.set(job_id, state=JobState.FAILED.value, error=storable(reason))

    def _progress(self, job_id: str) -> Callable[[int, int], None]:
        def report(done: int, total: int) -> None:
            if self._stopping.is_set():
                raise Stopped
            self.table.set(job_id, done=done, total=total)

        return report


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(getattr(error, "orig", None) or error)

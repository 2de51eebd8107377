"""The job queue: the database holds the jobs, threads of each process run them.

A job is a row. When a worker is free or woken up, the rows say what to run: owners take turns,
and none has all workers of a process. What a killed process left is queued again: at the start if
this process is alone with its database, else once its row has not been touched for a while. So a
job runs at least once, and every kind of job can be run again. Jobs of one kind about one subject
run one after the other, in the order they were submitted.

A wake-up that is lost delays a job by one beat and never loses it.
"""

import fcntl
import hashlib
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Select,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.exc import InterfaceError, OperationalError, SQLAlchemyError

from rag.db import as_utc, jobs, reading, storable, writing
from rag.db.blobs import restored_at
from rag.errors import IndexAway, ModelUnavailable, NotFound, RagError, SetupError, StorageFailed
from rag.records import DEFAULT_COLLECTION, Job, JobState
from rag.runtime.error_log import ERRORS, log_throttled

if TYPE_CHECKING:
    from redis.client import PubSub

UNFINISHED = (JobState.QUEUED.value, JobState.RUNNING.value)
OF_EACH = 20  # queued jobs of one owner that are looked at to choose the next
LOOKED_AT = 1_000  # unfinished jobs in one query
FIRST_PAUSE_SECONDS = 2.0
LONGEST_PAUSE_SECONDS = 300.0


class JobTable:
    """The jobs in the database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the database."""
        return self._engine.dialect.name == "sqlite"

    @property
    def place(self) -> str:
        """A short hash of the database's address: it separates databases that share a Redis."""
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
        """Add a queued job; with `due_in` no worker begins it before then."""
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
        values |= {"updated_at": datetime.now(UTC)}
        with writing(self._engine) as connection:
            connection.execute(update(jobs).where(jobs.c.id == job_id).values(values))

    def claim(self, job_id: str) -> bool:
        """Begin a queued job; False if it is not queued, or no longer."""
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
        """Queue an unfinished job again; False if its row was changed since it was read."""
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
        """Set `updated_at` of running jobs to now, to show that they are alive."""
        if job_ids:
            now = {"updated_at": datetime.now(UTC)}
            with writing(self._engine) as connection:
                connection.execute(update(jobs).where(jobs.c.id.in_(job_ids)).values(now))

    def job(self, job_id: str) -> Job:
        rows = self._jobs(select(jobs).where(jobs.c.id == storable(job_id)))
        if not rows:
            raise NotFound(f"There is no job {job_id!r}.")
        return rows[0]

    def newest(self, kind: str, *, limit: int = 50) -> list[Job]:
        """Return the jobs of a kind, newest first."""
        query = select(jobs).where(jobs.c.kind == kind).order_by(jobs.c.created_at.desc())
        return self._jobs(query.limit(limit))

    def unfinished(self, *states: JobState) -> list[Job]:
        """Return the jobs in these states, by default queued and running, oldest first."""
        values = [state.value for state in states] or UNFINISHED
        query = select(jobs).where(jobs.c.state.in_(values)).order_by(jobs.c.created_at)
        return self._jobs(query.limit(LOOKED_AT))

    def _jobs(self, query: Select[Any]) -> list[Job]:
        with reading(self._engine) as connection:
            return [_job_from(row) for row in connection.execute(query)]

    def due(self, *, of_each: int = OF_EACH) -> list[Job]:
        """Return queued jobs that are due, up to `of_each` of each owner, oldest first."""
        in_order = jobs.c.created_at, jobs.c.id
        place = func.row_number().over(partition_by=jobs.c.owner, order_by=in_order)
        queued = select(jobs.c.id, place.label("place")).where(
            jobs.c.state == JobState.QUEUED.value,
            or_(jobs.c.due_at.is_(None), jobs.c.due_at <= datetime.now(UTC)),
        )
        with reading(self._engine) as connection:
            first = queued.where(_may_go_on(connection)).subquery()
            query = select(jobs).join(first, first.c.id == jobs.c.id)
            rows = connection.execute(query.where(first.c.place <= of_each).order_by(*in_order))
            return [_job_from(row) for row in rows]

    def is_unfinished(self, job_id: str) -> bool:
        """Return whether there is such a job and it has not ended."""
        is_it = and_(jobs.c.id == job_id, jobs.c.state.in_(UNFINISHED))
        with reading(self._engine) as connection:
            return connection.execute(select(jobs.c.id).where(is_it)).first() is not None

    def alike(self, job: Job) -> list[Job]:
        """Return the unfinished jobs of the same kind and subject, oldest first."""
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
        """Delete the ended jobs of a kind and subject, for jobs that recur often."""
        is_alike = and_(jobs.c.kind == kind, jobs.c.subject == subject)
        with writing(self._engine) as connection:
            connection.execute(delete(jobs).where(is_alike, jobs.c.state.not_in(UNFINISHED)))

    def queued(self, kind: str, subject: str) -> Job | None:
        """Return a job of a kind and subject that no worker has begun, or None."""
        is_alike = and_(jobs.c.kind == kind, jobs.c.subject == subject)
        query = select(jobs).where(is_alike, jobs.c.state == JobState.QUEUED.value)
        return next(iter(self._jobs(query.limit(1))), None)


def _may_go_on(connection: Connection) -> ColumnElement[bool]:
    """Return the condition for jobs that may run: after a restore, only those created since."""
    since = restored_at(connection)
    return true() if since is None else jobs.c.created_at > since


def _job_from(row: Any) -> Job:
    values = dict(row._mapping) | {"state": JobState(row.state)}
    moments = {name: as_utc(values[name]) for name in ("created_at", "updated_at")}
    due = {"due_at": row.due_at and as_utc(row.due_at)}
    return Job(**values | moments | due)


REDIS_TIMEOUTS = {"socket_timeout": 5, "socket_connect_timeout": 3}
EARLIER_QUEUE = "jobs.db"  # earlier versions kept wake-ups in it; their rows are run anyway


class AloneLock:
    """A file lock that tells which process of a machine was first; the system frees a dead one's.

    The first process holds it exclusively until `share`; the others wait that long.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self) -> bool:
        """Return whether this process is the first; each call asks anew."""
        self.release()
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.share()
            return False
        self._path.with_name(EARLIER_QUEUE).unlink(missing_ok=True)
        return True

    def share(self) -> None:
        """Let other processes hold the lock as well."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class WorkersCall:
    """Wakes the workers of this process."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.count = 0

    def send(self) -> None:
        with self._changed:
            self.count += 1
            self._changed.notify_all()

    def wait(self, calls: int) -> None:
        """Wait until there were more calls than these."""
        with self._changed:
            self._changed.wait_for(lambda: self.count != calls)


class RedisCall:
    """Wakes the workers of all hosts; raises one of `errors` while Redis cannot be reached."""

    def __init__(self, url: str, name: str) -> None:
        """Raises SetupError for a malformed URL."""
        from redis import Redis
        from redis.exceptions import RedisError

        self.errors: tuple[type[Exception], ...] = (RedisError, OSError)
        self._name = name
        self._subscription: PubSub | None = None
        try:
            self._redis = Redis.from_url(url, **REDIS_TIMEOUTS)
        except ValueError as error:
            raise SetupError(f"jobs.url is no URL of a Redis server: {error}.") from error

    def send(self) -> None:
        self._redis.publish(self._name, "")

    def ping(self) -> None:
        self._redis.ping()

    def wait(self, seconds: float) -> bool:
        """Return whether a call came within the seconds."""
        if self._subscription is None:
            subscription = self._redis.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
            subscription.subscribe(self._name)
            self._redis.delete(f"huey.redis.{self._name.replace('-', '')}")  # see EARLIER_QUEUE
            self._subscription = subscription
        return self._subscription.get_message(timeout=seconds) is not None


Handler = Callable[["RunningJob"], None]
After = Callable[[Job], None]
BEAT_SECONDS = 2.0  # between two updates of a running job
STOP_SECONDS = 3.0  # for running jobs to reach a point where they can be interrupted
ABANDONED_AFTER = timedelta(minutes=1)  # without an update
PREPARED_AFTER = timedelta(minutes=10)  # at the latest; after that its process was killed
PATIENCE = timedelta(days=1)  # how long a job is retried while a server cannot be reached
AWAY = (IndexAway, ModelUnavailable, OperationalError, InterfaceError)  # passes by itself
INTERNAL = "It failed for a reason of our own; the server's log says more. Try it again."

log = logging.getLogger(__name__)


class QueueStopped(Exception):
    """Raised when the queue stops; a handler lets it pass, and its job runs at the next start."""


class GaveWay(QueueStopped):
    """Raised when a long job lets others run; it is queued again behind them."""


class RetryLater(Exception):
    """Raised by a handler that cannot go on now; the job is run again later."""


@dataclass(frozen=True, slots=True)
class RunningJob:
    """The argument of a handler: its job, and a callback for progress."""

    job: Job
    report: Callable[[int, int], None]  # done, total; raises Stopped


class JobQueue:
    """Queues jobs, and runs them on threads of this process once `start` is called.

    `url` is that of a Redis through which several hosts wake each other; without one, a process
    finds jobs of other hosts at its next beat. `folder` holds the lock of the processes of one
    machine. Before `start` jobs only wait; `run_waiting` runs them in the caller's thread.
    """

    def __init__(self, table: JobTable, *, folder: Path, url: str | None, workers: int) -> None:
        self.table = table
        self._workers = workers
        # The first process of a machine knows that unfinished jobs are those of dead processes.
        self._lock = AloneLock(folder / "jobs.lock") if url is None and table.is_local else None
        self._handlers: dict[str, tuple[Handler, After]] = {}
        self._call = WorkersCall()
        self._call_all = RedisCall(url, f"groundnote-{table.place}") if url is not None else None
        self._threads: list[threading.Thread] = []
        self._running: dict[str, str] = {}  # job ids with their owners
        self._served: dict[str, int] = {}  # owners with the sequence number of their last job
        self._places = count(1)
        self._choosing = threading.Lock()
        self._stopping = threading.Event()
        self._starting = threading.Lock()
        self._may_submit = threading.Event()
        self._may_submit.set()

    def handle(self, kind: str, handler: Handler, after: After = lambda job: None) -> None:
        """Set the handler for jobs of a kind; `after` runs once a job is stored as done.

        `after` deletes what the job needs to be run again: the process may be killed before it.
        """
        self._handlers[kind] = (handler, after)

    def submit(
        self,
        kind: str,
        subject: str,
        *,
        owner: str = "",
        collection_id: str = DEFAULT_COLLECTION,
        prepare: After | None = None,
    ) -> Job:
        """Queue a job; `prepare` runs before any worker can see the job (to store its file).

        If there is no room for that, the job is returned as failed, with the reason.
        """
        self._may_submit.wait()
        job = self.table.add(
            kind,
            subject,
            owner=owner,
            collection_id=collection_id,
            due_in=None if prepare is None else PREPARED_AFTER,
        )
        try:
            if prepare is not None:
                prepare(job)
                self.table.set(job.id, due_at=None)
        except (OSError, SQLAlchemyError) as error:
            log.exception("job %s could not be prepared", job.id)
            self._fail(job.id, f"{subject} could not be kept ({_reason(error)}). Send it again.")
            return self.table.job(job.id)
        self._call.send()
        if self._call_all is not None:
            try:
                self._call_all.send()
            except self._call_all.errors as error:
                # The row is stored: other hosts find it at their next beat.
                log_throttled(log, "Other hosts are not told of jobs", error)
        return job

    def start_soon(self, first: Callable[[], None]) -> None:
        """Start on a thread, so that a page need not wait; `submit` waits until it has started.

        A start that fails because a server cannot be reached is tried again.
        """
        self._begin_anew()
        self._may_submit.clear()
        start = partial(self._start_at_last, first)
        threading.Thread(target=start, name="start of jobs", daemon=True).start()

    def _start_at_last(self, first: Callable[[], None]) -> None:
        while True:
            try:
                return self._start(first)
            except Exception as error:  # noqa: BLE001  # on any error jobs must not wait for ever
                log_throttled(log, "Jobs wait, because not everything can be loaded", error)
            if self._stopping.wait(BEAT_SECONDS):
                return None

    def start(self) -> None:
        """Start the workers, which first run what a killed process left."""
        self._begin_anew()
        self._start()

    def _begin_anew(self) -> None:
        """Use a new stop event: threads that are still stopping keep the old one and end."""
        if self._stopping.is_set():
            self._stopping = threading.Event()

    def _start(self, first: Callable[[], None] = lambda: None) -> None:
        if self._threads:
            self._may_submit.set()
            return
        try:
            first()
            with self._starting:
                if self._stopping.is_set():
                    return
                self._resume()
                for _ in range(self._workers):  # without any, jobs are only queued
                    self._threads.append(self._thread(self._work))
        finally:
            self._may_submit.set()
        self._thread(self._keep_alive)
        if self._call_all is not None:
            self._thread(partial(self._listen, self._call_all))

    def _thread(self, work: Callable[[threading.Event], None]) -> threading.Thread:
        thread = threading.Thread(target=work, args=(self._stopping,), name="jobs", daemon=True)
        thread.start()
        return thread

    def _work(self, stopping: threading.Event) -> None:
        while not stopping.is_set():
            calls = self._call.count
            if not self._do_next():
                self._call.wait(calls)

    def _listen(self, calls: RedisCall, stopping: threading.Event) -> None:
        while not stopping.is_set():
            try:
                if calls.wait(BEAT_SECONDS):
                    self._call.send()
            except calls.errors as error:
                log_throttled(log, "Jobs of other hosts are not heard of", error)
                stopping.wait(BEAT_SECONDS)

    def _resume(self) -> None:
        """Queue again what a killed process left; beside other hosts only what looks abandoned."""
        if self._lock is None or not self._lock.take():
            self._look_after()
            return
        try:
            for job in self.table.unfinished():
                self.table.give_back(job)
        finally:
            self._lock.share()

    def _keep_alive(self, stopping: threading.Event) -> None:
        while not stopping.wait(BEAT_SECONDS):
            self._look_after()

    def _look_after(self) -> None:
        try:
            self._beat()
        except (SQLAlchemyError, StorageFailed) as error:
            log_throttled(log, "Jobs cannot be looked after", error)

    def _beat(self) -> None:
        """Touch the running jobs, and queue what is due or abandoned."""
        self.table.touch(set(self._running))
        left = datetime.now(UTC) - ABANDONED_AFTER
        for job in self.table.unfinished(JobState.RUNNING):
            if job.id not in self._running and job.updated_at <= left:
                self.table.give_back(job)
        if self.table.due(of_each=1):
            self._call.send()

    def stop(self) -> None:
        """Stop the workers; give running jobs STOP_SECONDS to reach an interruptible point."""
        self._stopping.set()
        self._may_submit.wait()  # if it is just starting, until it has started
        with self._starting:
            threads, self._threads = self._threads, []
        self._call.send()
        until = time.monotonic() + STOP_SECONDS
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        if self._lock is not None:
            self._lock.release()

    def ping(self) -> None:
        """Raise the error of Redis while it cannot be reached."""
        if self._call_all is not None:
            self._call_all.ping()

    def run_waiting(self) -> None:
        """Run the jobs that are queued now, in this thread."""
        while not self._stopping.is_set() and self._do_next():
            pass

    def others_wait(self, job: Job) -> bool:
        """Return whether a job about another subject is due and no worker has begun it."""
        return any(other.subject != job.subject for other in self.table.due(of_each=2))

    def _do_next(self) -> bool:
        """Run the next job; False if there is none that this process may run now."""
        try:
            job = self._claimed()
            if job is None:
                return False
            try:
                self._do(job)
            finally:
                self._running.pop(job.id, None)
                self._call.send()  # wake the jobs that wait for this one
        except (SQLAlchemyError, StorageFailed) as error:
            # In any case the row is queued again once it is no longer touched.
            what = "A job is left, because the database cannot be reached or written"
            log_throttled(log, what, error)
            return False
        return True

    def _claimed(self) -> Job | None:
        """Claim and return the job whose turn it is; None if there is none for this process."""
        with self._choosing:
            for job in self._in_turn(self.table.due()):
                is_first = next((other.id for other in self.table.alike(job)), "") == job.id
                if is_first and self.table.claim(job.id):
                    self._running[job.id] = job.owner
                    self._served[job.owner] = next(self._places)
                    return job
        return None

    def _in_turn(self, due: list[Job]) -> list[Job]:
        """Sort jobs: owners with the fewest running jobs first, then those served longest ago."""
        at_work = Counter(self._running.values())
        share = max(1, self._workers - 1)
        able = [
            job
            for job in due
            if job.kind in self._handlers  # a newer host runs the other kinds
            if not job.owner or at_work[job.owner] < share
        ]
        return sorted(able, key=lambda job: (at_work[job.owner], self._served.get(job.owner, 0)))

    def _do(self, job: Job) -> None:
        began = time.monotonic()
        handler, after = self._handlers[job.kind]
        try:
            handler(RunningJob(job, partial(self._report, job.id)))
        except QueueStopped as left:
            behind = {"created_at": datetime.now(UTC)} if isinstance(left, GaveWay) else {}
            self.table.set(job.id, state=JobState.QUEUED.value, **behind)
        except (RetryLater, *AWAY) as error:
            self._try_again(job, error)
        except RagError as error:
            self._fail(job.id, str(error))
        except OSError as error:
            log.exception("job %s failed", job.id)
            self._fail(job.id, f"It failed ({_reason(error)}). Try it again when that is mended.")
        except BaseException as error:
            # The last resort of a worker: without it the job would wait for ever.
            self._fail(job.id, INTERNAL)
            if not isinstance(error, Exception):
                raise
            log.error("job %s failed, see %s", job.id, ERRORS.keep(error))  # on one line
        else:
            seconds = time.monotonic() - began
            self.table.set(job.id, state=JobState.DONE.value, seconds=seconds, error=None)
            after(job)

    def _try_again(self, job: Job, error: Exception) -> None:
        log_throttled(log, "A job is tried again later", error)
        if datetime.now(UTC) - job.created_at > PATIENCE:
            self._fail(job.id, _reason(error))
        else:
            self.table.try_again(job, _reason(error))

    def _fail(self, job_id: str, reason: str) -> None:
        self.table.set(job_id, state=JobState.FAILED.value, error=storable(reason))

    def _report(self, job_id: str, done: int, total: int) -> None:
        if self._stopping.is_set():
            raise QueueStopped
        self.table.set(job_id, done=done, total=total)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(getattr(error, "orig", None) or error)

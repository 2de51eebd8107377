"""Background work: the database says what is to be done, threads of this process do it.

A job is a row. When a worker is free, or hears that there is something to do, the rows say what:
owners take turns, and none has all workers of a process. What a killed process left is queued
again: at the start where this process is alone with its database, else once nobody has touched the
row for a while. So a job is done at least once; every kind of job can be run again. Jobs of one
kind about one subject are done one after the other, in the order they were submitted.

The rows of the database are the queue. A call that is lost costs a beat, and never a job.
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


REDIS_TIMEOUTS = {"socket_timeout": 5, "socket_connect_timeout": 3}
EARLIER_QUEUE = "jobs.db"  # versions before kept calls in it, each for a row that is done anyway


class AloneLock:
    """Says who is the first process of a machine; the others share it, and the dead have no part.

    Whoever is first has it alone until `share`, and they wait so long.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self) -> bool:
        """Whether we are the first; asked again, it is as if for the first time."""
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
        """Let others have it as well."""
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

    def wait(self, seen: int) -> None:
        """Until there were more calls than `seen`."""
        with self._changed:
            self._changed.wait_for(lambda: self.count != seen)


class RedisCall:
    """Wakes the workers of all hosts; raises what `errors` names while Redis is away."""

    def __init__(self, url: str, name: str) -> None:
        """Raises SetupError where the URL is none."""
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
        """Whether somebody called."""
        if self._subscription is None:
            subscription = self._redis.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
            subscription.subscribe(self._name)
            self._redis.delete(f"huey.redis.{self._name.replace('-', '')}")  # see EARLIER_QUEUE
            self._subscription = subscription
        return self._subscription.get_message(timeout=seconds) is not None


Handler = Callable[["RunningJob"], None]
After = Callable[[Job], None]
BEAT_SECONDS = 2.0  # between two signs of life of a running job
STOP_SECONDS = 3.0  # for running jobs to come to a point where they can be left
ABANDONED_AFTER = timedelta(minutes=1)  # without a sign of life
PREPARED_AFTER = timedelta(minutes=10)  # at the latest: then whoever took it in was killed
PATIENCE = timedelta(days=1)  # with what is away
AWAY = (IndexAway, ModelUnavailable, OperationalError, InterfaceError)  # it comes back
INTERNAL = "It failed for a reason of our own; the server's log says more. Try it again."

log = logging.getLogger(__name__)


class QueueStopped(Exception):
    """The queue stops: a handler lets this through, and its job is done again at the next start."""


class GaveWay(QueueStopped):
    """A job that takes long lets others be served, and is queued again behind them."""


class RetryLater(Exception):
    """A handler cannot go on now, for the reason that it gives: its job is done again by itself."""


@dataclass(frozen=True, slots=True)
class RunningJob:
    """What a handler is given."""

    job: Job
    report: Callable[[int, int], None]  # done, total; raises Stopped


class JobQueue:
    """Queues jobs, and runs them on threads of this process once `start` is called.

    `url` is that of a Redis by which several hosts wake each other; without one, a process finds
    what others submit at its next beat. `folder` is where processes of one machine meet.
    Before `start` jobs only wait; `run_waiting` runs them in the caller's thread.
    """

    def __init__(self, table: JobTable, *, folder: Path, url: str | None, workers: int) -> None:
        self.table = table
        self._workers = workers
        # Whoever is the first of this machine knows that what is left must be of dead ones.
        self._lock = AloneLock(folder / "jobs.lock") if url is None and table.is_local else None
        self._handlers: dict[str, tuple[Handler, After]] = {}
        self._call = WorkersCall()
        self._call_all = RedisCall(url, f"groundnote-{table.place}") if url is not None else None
        self._threads: list[threading.Thread] = []
        self._running: dict[str, str] = {}  # ids, with their owners
        self._served: dict[str, int] = {}  # owners, with the place of their last job
        self._places = count(1)
        self._choosing = threading.Lock()
        self._stopping = threading.Event()
        self._starting = threading.Lock()
        self._may_submit = threading.Event()
        self._may_submit.set()

    def handle(self, kind: str, handler: Handler, after: After = lambda job: None) -> None:
        """What does jobs of this kind; `after` follows once a job is written down as done.

        What a job needs to be done again is let go there: a process may be killed before.
        """
        self._handlers[kind] = (handler, after)

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
        job = self.table.add(
            kind,
            subject,
            owner=owner,
            collection_id=collection_id,
            due_in=None if prepare is None else PREPARED_AFTER,
        )
        try:
            if prepare is not None:
                prepare(RunningJob(job, lambda done, total: None))
                self.table.set(job.id, due_at=None)
        except (OSError, SQLAlchemyError) as error:
            log.exception("job %s could not be prepared", job.id)
            self._fail(job.id, f"{subject} could not be kept ({_reason(error)}). Send it again.")
            return self.table.job(job.id)
        self._call_workers()
        return job

    def _call_workers(self) -> None:
        self._call.send()
        if self._call_all is not None:
            try:
                self._call_all.send()
            except self._call_all.errors as error:
                # The row stands: others find it at their next beat.
                log_throttled(log, "Other hosts are not told of jobs", error)

    def start_soon(self, first: Callable[[], None]) -> None:
        """Start on a thread: a page need not wait for it. Who submits meanwhile does.

        What cannot be begun now, because a server is away, is tried again.
        """
        self._begin_anew()
        self._may_submit.clear()
        start = partial(self._start_at_last, first)
        threading.Thread(target=start, name="start of jobs", daemon=True).start()

    def _start_at_last(self, first: Callable[[], None]) -> None:
        while True:
            try:
                return self._start(first)
            except Exception as error:  # noqa: BLE001  # whatever it is, jobs must not wait for ever
                log_throttled(log, "Jobs wait, because not everything can be loaded", error)
            if self._stopping.wait(BEAT_SECONDS):
                return None

    def start(self) -> None:
        """Begin to work, with what a killed process left first."""
        self._begin_anew()
        self._start()

    def _begin_anew(self) -> None:
        """Threads that were told to stop, and still end a job, do not go on."""
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
                for _ in range(self._workers):  # without any, jobs are only handed on
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
            seen = self._call.count
            if not self._do_next():
                self._call.wait(seen)

    def _listen(self, calls: RedisCall, stopping: threading.Event) -> None:
        while not stopping.is_set():
            try:
                if calls.wait(BEAT_SECONDS):
                    self._call.send()
            except calls.errors as error:
                log_throttled(log, "Jobs of other hosts are not heard of", error)
                stopping.wait(BEAT_SECONDS)

    def _resume(self) -> None:
        """Queue what a killed process left; beside other hosts only what looks abandoned."""
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
        """Show that our jobs are alive, and queue what is due, forgotten or of a dead process."""
        self.table.touch(set(self._running))
        left = datetime.now(UTC) - ABANDONED_AFTER
        for job in self.table.unfinished(JobState.RUNNING):
            if job.id not in self._running and job.updated_at <= left:
                self.table.give_back(job)
        if self.table.due(of_each=1):
            self._call.send()

    def stop(self) -> None:
        """Let running jobs come to a point where they can be left, but not for long."""
        self._stopping.set()
        self._may_submit.wait()  # until it has started, where it is about to
        with self._starting:
            threads, self._threads = self._threads, []
        self._call.send()
        until = time.monotonic() + STOP_SECONDS
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        if self._lock is not None:
            self._lock.release()

    def ping(self) -> None:
        """Raises what Redis raises while it is away."""
        if self._call_all is not None:
            self._call_all.ping()

    def run_waiting(self) -> None:
        """Run what is queued now, in this thread."""
        while not self._stopping.is_set() and self._do_next():
            pass

    def others_wait(self, job: Job) -> bool:
        """Whether a job about something else may be begun now, and nobody has begun it."""
        return any(other.subject != job.subject for other in self.table.due(of_each=2))

    def _do_next(self) -> bool:
        """Whether there was one for us: others do theirs, and its owner may have enough at work."""
        try:
            job = self._claimed()
            if job is None:
                return False
            try:
                self._do(job)
            finally:
                self._running.pop(job.id, None)
                self._call.send()  # to those that wait behind it
        except (SQLAlchemyError, StorageFailed) as error:
            # Whatever the row says: it is queued again once nobody touches it.
            what = "A job is left, because the database cannot be reached or written"
            log_throttled(log, what, error)
            return False
        return True

    def _claimed(self) -> Job | None:
        """The job whose turn it is, ours now; None where there is none for us."""
        with self._choosing:
            for job in self._in_turn(self.table.due()):
                is_first = next((other.id for other in self.table.alike(job)), "") == job.id
                if is_first and self.table.claim(job.id):
                    self._running[job.id] = job.owner
                    self._served[job.owner] = next(self._places)
                    return job
        return None

    def _in_turn(self, due: list[Job]) -> list[Job]:
        """Of the owner with the fewest at work first; of equals, who was served longest ago."""
        at_work = Counter(self._running.values())
        share = max(1, self._workers - 1)
        due = [job for job in due if job.kind in self._handlers]  # else a newer host does it
        able = [job for job in due if not job.owner or at_work[job.owner] < share]
        return sorted(able, key=lambda job: (at_work[job.owner], self._served.get(job.owner, 0)))

    def _do(self, job: Job) -> None:
        began = time.monotonic()
        handler, after = self._handlers[job.kind]
        try:
            handler(RunningJob(job, self._progress(job.id)))
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
            # The outermost edge of a worker: without this the job would wait for ever.
            self._fail(job.id, INTERNAL)
            if not isinstance(error, Exception):
                raise
            log.error("job %s failed, see %s", job.id, ERRORS.keep(error))  # in a line
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

    def _progress(self, job_id: str) -> Callable[[int, int], None]:
        def report(done: int, total: int) -> None:
            if self._stopping.is_set():
                raise QueueStopped
            self.table.set(job_id, done=done, total=total)

        return report


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(getattr(error, "orig", None) or error)

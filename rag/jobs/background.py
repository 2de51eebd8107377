"""Background jobs of the application: ingest uploads, summarise old turns, sync, reread."""

import errno
import logging
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sqlalchemy import Engine, delete, insert, select
from sqlalchemy.exc import SQLAlchemyError

from rag.connectors.kinds import FOLDER
from rag.connectors.table import SYNC
from rag.db import reading, uploads, writing
from rag.db.audit_trail import acting
from rag.db.blobs import PART, FolderBlobs, deletions_wait
from rag.documents.files import IncomingFile
from rag.errors import StorageFailed, Unreadable, UserError
from rag.jobs.queue import AWAY, GaveWay, JobQueue, QueueStopped, RetryLater, RunningJob
from rag.records import DEFAULT_COLLECTION, DocumentSource, Job, JobState
from rag.runtime.budget import Budget, limited
from rag.runtime.error_log import log_throttled
from rag.runtime.metrics import Metrics
from rag.runtime.progress import Progress, Stage
from rag.seams import ConversationStore, OwnedSession, SessionHandle

if TYPE_CHECKING:  # listing jobs does not need the readers
    from rag.ingestion.pipeline import Ingestion

INGEST, COMPACT, REREAD = "ingest", "compact", "reread"
# Owners of sync jobs: owners take turns, so many syncs leave room for other jobs, and syncs of
# local folders never wait for remote sources.
SYNCER, LOCAL_SYNCER = "sources", "folders"
GIVE_WAY_SECONDS = 5.0  # a sync runs on while others wait; it is resumed later
COMPACT_SECONDS = 600.0  # of processor time
MOST_JOBS = 2_000  # of one upload, listed together
Compact = Callable[[SessionHandle], object]
REFUSED_NAMED = 20  # files named in an error
ReportProgress = Callable[[int, int], None]  # done, total
RunReread = Callable[[str], Iterable[tuple[int, int, Progress]]]  # of a collection
RunSync = Callable[[str, ReportProgress], object]  # of a source id
WITHOUT_ROOM = (errno.ENOSPC, errno.EDQUOT)
NO_ROOM = "A disk that this server writes to is full. Make room; nothing that was stored is lost."
NOT_WHOLE = "the upload did not arrive whole. Send the file again."

log = logging.getLogger(__name__)


class Uploads(Protocol):
    """Storage of uploaded files until they are ingested."""

    def keep(self, upload_id: str, data: bytes) -> None: ...

    def file(self, upload_id: str, *, name: str) -> IncomingFile:
        """Return the upload as a file; reading it raises Unreadable if it was not kept."""

    def forget(self, upload_id: str) -> None:
        """Delete an upload; one that was not kept is no error."""

    def ids(self) -> set[str]:
        """Return the ids of the stored uploads, complete or not."""


class FolderUploads:
    """Uploads as files in a folder; none is deleted while a backup copies them."""

    def __init__(self, folder: Path, stay: Callable[[], bool] = lambda: False) -> None:
        self._files = FolderBlobs(folder)
        self._stay = stay

    def keep(self, upload_id: str, data: bytes) -> None:
        self._files.write(upload_id, [data])

    def file(self, upload_id: str, *, name: str) -> IncomingFile:
        if self._files.size(upload_id) is None:
            raise Unreadable(name, NOT_WHOLE)
        return IncomingFile.from_path(self._files.path(upload_id), name=name)

    def forget(self, upload_id: str) -> None:
        if not self._stay():
            self._files.remove([upload_id, f"{upload_id}{PART}"])

    def ids(self) -> set[str]:
        return {path.stem for path in self._files.folder.glob("*")}


class TableUploads:
    """Uploads in the database, where every host finds them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def keep(self, upload_id: str, data: bytes) -> None:
        with writing(self._engine) as connection:
            connection.execute(insert(uploads).values(id=upload_id, content=data))

    def file(self, upload_id: str, *, name: str) -> IncomingFile:
        def read(_max_bytes: int) -> bytes:
            with reading(self._engine) as connection:
                query = select(uploads.c.content).where(uploads.c.id == upload_id)
                content = connection.execute(query).scalar_one_or_none()
            if content is None:
                raise Unreadable(name, NOT_WHOLE)
            return bytes(content)

        return IncomingFile(name, read)

    def forget(self, upload_id: str) -> None:
        with writing(self._engine) as connection:
            connection.execute(delete(uploads).where(uploads.c.id == upload_id))

    def ids(self) -> set[str]:
        with reading(self._engine) as connection:
            return set(connection.execute(select(uploads.c.id)).scalars())


def uploads_for(engine: Engine, data_dir: Path) -> Uploads:
    """Return a storage of uploads: a folder beside a SQLite database, else the database."""
    if engine.dialect.name == "sqlite":
        return FolderUploads(data_dir / "uploads", stay=lambda: deletions_wait(engine))
    return TableUploads(engine)


class BackgroundJobs:
    """Queues the application's jobs and handles them.

    An upload is kept until its job has ended, so a killed server loses none.
    """

    def __init__(
        self,
        queue: JobQueue,
        store: ConversationStore,
        *,
        ingestion: Callable[[], "Ingestion"],
        compact: Compact,
        uploads: Uploads,
        metrics: Metrics,
    ) -> None:
        self._queue = queue
        self._ingestion = ingestion
        self._store = store
        self._uploads = uploads
        self._metrics = metrics
        self._compact = compact
        queue.handle(INGEST, self._ingest, lambda job: uploads.forget(job.id))
        queue.handle(COMPACT, self._compact_session)

    def run_syncs(self, run: RunSync) -> None:
        """Set the function that synchronises a source."""

        def handle(running: RunningJob) -> None:
            try:
                # Each file has its own limits.
                with limited(Budget(math.inf, owner=running.job.owner)):
                    run(running.job.subject, self._giving_way(running))
            except StorageFailed as error:
                raise RetryLater(str(error)) from error
            except OSError as error:
                if error.errno not in WITHOUT_ROOM:
                    raise
                raise RetryLater(NO_ROOM) from error

        self._queue.handle(SYNC, handle)

    def run_rereads(self, run: RunReread) -> None:
        """Set the function that reads the documents of a collection again."""

        def handle(running: RunningJob) -> None:
            refused = []
            owner = running.job.owner
            # Each file has its own limits.
            with acting(owner, "a job"), limited(Budget(math.inf, owner=owner)):
                for done, total, progress in run(running.job.subject):
                    running.report(done, total)
                    if progress.stage is Stage.FAILED:
                        refused.append(progress.reason)
            if refused:
                raise UserError(" ".join(refused[:REFUSED_NAMED]))

        self._queue.handle(REREAD, handle)

    def submit_reread(self, collection_id: str, *, owner: str = "") -> Job:
        """Queue reading again what older readers read; started again, it goes on with the rest."""
        return self._submit_once(REREAD, collection_id, owner, collection_id)

    def _submit_once(self, kind: str, subject: str, owner: str, collection_id: str) -> Job:
        """Queue a job, or return the one that is queued and will do the same."""
        waiting = self._queue.table.queued(kind, subject)
        if waiting is not None:
            return waiting
        self._queue.table.forget_ended(kind, subject)
        return self._queue.submit(kind, subject, owner=owner, collection_id=collection_id)

    def _giving_way(self, running: RunningJob) -> ReportProgress:
        """Return a progress callback that lets other jobs run.

        It does so only once the job has run for as long as it took to get back to where it was.
        """
        began, first = time.monotonic(), 0.0

        def report(done: int, total: int) -> None:
            nonlocal first
            running.report(done, total)
            now = time.monotonic()
            first = first or now
            is_long = now - first > max(GIVE_WAY_SECONDS, first - began)
            if is_long and self._queue.others_wait(running.job):
                raise GaveWay

        return report

    def submit_ingest(
        self, name: str, data: bytes, *, owner: str = "", collection_id: str = DEFAULT_COLLECTION
    ) -> Job:
        """Keep an upload and queue its job; if it cannot be kept, the returned job has failed."""
        return self._queue.submit(
            INGEST,
            name,
            owner=owner,
            collection_id=collection_id,
            prepare=lambda job: self._uploads.keep(job.id, data),
        )

    def note_unread(self, name: str, reason: str, collection_id: str = DEFAULT_COLLECTION) -> None:
        """Record a failed job for a file that was ingested without a job."""
        job = self._queue.table.add(INGEST, name, collection_id=collection_id)
        self._queue.table.set(job.id, state=JobState.FAILED.value, error=reason)

    def submit_compaction(self, session: OwnedSession) -> Job:
        subject = f"{session.id} {session.owner}"
        return self._queue.submit(COMPACT, subject, owner=session.owner)

    def submit_sync(self, source: DocumentSource) -> Job:
        """Queue a sync, or return the one that is queued: it will see all changes when it runs."""
        owner = LOCAL_SYNCER if source.kind == FOLDER else SYNCER
        return self._submit_once(SYNC, source.id, owner, source.collection_id)

    def job(self, job_id: str) -> Job:
        """Return a job. Raises NotFound."""
        return self._queue.table.job(job_id)

    def jobs(self) -> list[Job]:
        """Return the newest ingest jobs, newest first; up to MOST_JOBS while any is unfinished."""
        newest = self._queue.table.newest(INGEST)
        if any(job.state in (JobState.QUEUED, JobState.RUNNING) for job in newest):
            return self._queue.table.newest(INGEST, limit=MOST_JOBS)
        return newest

    def run_waiting(self) -> None:
        """Run what is queued in this thread, for a command line without workers."""
        self._queue.run_waiting()

    def ping(self) -> None:
        """Raise the queue's error while the queue cannot be reached."""
        self._queue.ping()

    def start(self, first: Callable[[], None] = lambda: None) -> None:
        """Start the workers soon, after `first` has run."""

        def begin() -> None:
            first()
            self._sweep()

        self._queue.start_soon(begin)

    def _sweep(self) -> None:
        """Delete uploads whose job has ended, left by a process that was killed in between."""
        try:
            for upload_id in self._uploads.ids():  # each job was created before its upload was kept
                if not self._queue.table.is_unfinished(upload_id):
                    self._uploads.forget(upload_id)
        except (OSError, SQLAlchemyError) as error:
            log_throttled(log, "What is left of old uploads cannot be let go of", error)

    def stop(self) -> None:
        self._queue.stop()

    def _ingest(self, running: RunningJob) -> None:
        job = running.job
        if job.has_arrived and not self._ingestion().holds(job.subject, job.collection_id):
            return  # stored before the process was killed, and moved or deleted since
        last: Progress | None = None
        try:
            file = replace(
                self._uploads.file(job.id, name=job.subject),
                owner=job.owner,
                collection_id=job.collection_id,
                job_id=job.id,
                has_arrived=job.has_arrived,
            )
            # A file is read under its own limits.
            with acting(job.owner, "a job"), limited(Budget(math.inf, owner=job.owner)):
                for last in self._ingestion().ingest([file]):
                    running.report(last.done, last.total)
            if last is not None:
                self._metrics.documents.labels(last.stage.value).inc()
                if last.stage is Stage.FAILED:
                    raise last.error or Unreadable(file.name, last.reason)
        except (QueueStopped, *AWAY):
            raise  # the job runs again and needs its upload
        except BaseException:
            self._uploads.forget(job.id)
            raise

    def _compact_session(self, running: RunningJob) -> None:
        session_id, _, owner = running.job.subject.partition(" ")
        with limited(Budget(COMPACT_SECONDS, owner=owner)):
            self._compact(self._store.open(session_id, owner=owner))

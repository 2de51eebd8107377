"""What is done behind the users' backs: uploads are ingested, old turns summarised."""

from collections.abc import Callable
from pathlib import Path

from rag.documents.files import IncomingFile
from rag.errors import Unreadable
from rag.ingestion import Ingestion, Progress, Stage
from rag.jobs import JobQueue, RunningJob
from rag.metrics import Metrics
from rag.records import Job
from rag.seams import ConversationStore, SessionHandle

INGEST, COMPACT = "ingest", "compact"
Compact = Callable[[SessionHandle], object]


class Background:
    """Queues ingest and compaction jobs, and does them.

    An upload waits as a file of `folder` until its job has ended, so a killed server loses none.
    """

    def __init__(
        self,
        queue: JobQueue,
        ingestion: Ingestion,
        store: ConversationStore,
        *,
        folder: Path,
        metrics: Metrics,
    ) -> None:
        self._queue = queue
        self._ingestion = ingestion
        self._store = store
        self._folder = folder
        self._metrics = metrics
        self._compact: Compact = lambda session: None
        queue.handle(INGEST, self._ingest)
        queue.handle(COMPACT, self._compact_session)

    def compact_with(self, compact: Compact) -> None:
        """Say how sessions are compacted; memory needs this queue, so it comes second."""
        self._compact = compact

    def submit_ingest(self, name: str, data: bytes) -> Job:
        """Take an upload; it is on disk when this returns."""

        def lay_down(running: RunningJob) -> None:
            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._upload(running.job)
            part = path.with_suffix(".part")
            part.write_bytes(data)
            part.rename(path)

        return self._queue.submit(INGEST, name, prepare=lay_down)

    def submit_compaction(self, session: SessionHandle) -> Job:
        return self._queue.submit(COMPACT, f"{session.id} {session.owner}")

    def job(self, job_id: str) -> Job:
        """Raises NotFound."""
        return self._queue.table.job(job_id)

    def jobs(self) -> list[Job]:
        """Ingest jobs, newest first."""
        return self._queue.table.newest(INGEST)

    def run_waiting(self) -> None:
        """Do what is queued, in this thread: a command line has no workers."""
        self._queue.run_waiting()

    def start(self) -> None:
        self._queue.start()

    def stop(self) -> None:
        self._queue.stop()

    def _upload(self, job: Job) -> Path:
        return self._folder / job.id

    def _ingest(self, running: RunningJob) -> None:
        path = self._upload(running.job)
        name = running.job.subject
        if not path.exists():
            raise Unreadable(name, "the upload did not arrive whole. Send the file again.")
        last: Progress | None = None
        for progress in self._ingestion.ingest([IncomingFile.from_path(path, name=name)]):
            running.report(progress.done, progress.total)
            last = progress
        path.unlink(missing_ok=True)
        if last is not None:
            self._metrics.documents.labels(last.stage.value).inc()
            if last.stage is Stage.FAILED:
                raise last.error or Unreadable(name, last.reason)

    def _compact_session(self, running: RunningJob) -> None:
        session_id, _, owner = running.job.subject.partition(" ")
        self._compact(self._store.open(session_id, owner=owner))

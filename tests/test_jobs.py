"""Background work survives errors and kills."""

import time

import pytest

from rag.database import migrate, open_engine
from rag.errors import NotFound, Unreadable
from rag.jobs import JobQueue, JobTable
from rag.records import JobState


@pytest.fixture
def table(tmp_path):
    engine = open_engine(f"sqlite:///{tmp_path}/groundnote.db")
    migrate(engine)
    return JobTable(engine)


@pytest.fixture
def queue(table, tmp_path):
    queue = JobQueue(table, folder=tmp_path, url=None, workers=2)
    yield queue
    queue.stop()


def wait_for(queue, job, state, seconds=10.0):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if queue.table.job(job.id).state is state:
            return queue.table.job(job.id)
        time.sleep(0.02)
    raise AssertionError(queue.table.job(job.id))


class TestJobQueue:
    def test_does_a_job_and_reports_its_progress(self, queue):
        queue.handle("ingest", lambda running: running.report(3, 4))
        queue.start()

        job = queue.submit("ingest", "prices.csv")

        done = wait_for(queue, job, JobState.DONE)
        assert (done.subject, done.done, done.total, done.error) == ("prices.csv", 3, 4, None)

    def test_keeps_the_message_of_an_error_we_raise_on_purpose(self, queue):
        def refuse(running):
            raise Unreadable("scan.pdf", "it holds no text.")

        queue.handle("ingest", refuse)
        queue.start()

        job = queue.submit("ingest", "scan.pdf")

        assert wait_for(queue, job, JobState.FAILED).error == "scan.pdf: it holds no text."

    def test_ends_a_job_that_breaks_and_goes_on_with_the_next(self, queue):
        def break_down(running):
            if running.job.subject == "bad":
                raise ZeroDivisionError("secret detail")

        queue.handle("ingest", break_down)
        queue.start()

        bad, good = queue.submit("ingest", "bad"), queue.submit("ingest", "good")

        assert wait_for(queue, good, JobState.DONE)
        assert "secret" not in wait_for(queue, bad, JobState.FAILED).error

    def test_runs_prepare_before_a_worker_can_see_the_job(self, queue):
        seen = []
        queue.handle("ingest", lambda running: seen.append("run"))
        queue.start()

        job = queue.submit("ingest", "a", prepare=lambda running: seen.append("prepare"))

        wait_for(queue, job, JobState.DONE)
        assert seen == ["prepare", "run"]

    def test_takes_up_what_a_killed_process_left(self, table, tmp_path):
        left = table.add("ingest", "half-done.pdf")
        table.set(left.id, state=JobState.RUNNING.value)
        queue = JobQueue(table, folder=tmp_path, url=None, workers=1)
        queue.handle("ingest", lambda running: None)

        queue.start()

        assert wait_for(queue, left, JobState.DONE)
        queue.stop()

    def test_runs_waiting_jobs_in_the_callers_thread_without_being_started(self, queue):
        queue.handle("compact", lambda running: None)
        job = queue.submit("compact", "session")

        queue.run_waiting()

        assert queue.table.job(job.id).state is JobState.DONE

    def test_lists_the_newest_first_and_knows_no_stranger(self, queue):
        first, second = queue.submit("ingest", "a"), queue.submit("ingest", "b")

        assert [job.id for job in queue.table.newest("ingest")] == [second.id, first.id]
        with pytest.raises(NotFound, match="nobody"):
            queue.table.job("nobody")

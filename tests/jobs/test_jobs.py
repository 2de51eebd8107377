"""Background work survives errors and kills."""

import threading
import time
from datetime import timedelta
from itertools import pairwise
from socket import socket
from uuid import uuid4

import pytest
from redis import Redis
from redis.exceptions import RedisError

from rag.errors import ModelUnavailable, NotFound, SetupError, Unreadable
from rag.jobs import queue as job_table
from rag.jobs import queue as jobs
from rag.jobs.queue import JobQueue, JobTable
from rag.records import JobState
from tests.deployment.conftest import server_url
from tests.prepared import migrated
from tests.waiting import LONG, until


@pytest.fixture
def table(tmp_path):
    engine = migrated(tmp_path / "groundnote.db")
    return JobTable(engine)


@pytest.fixture
def queue(table, tmp_path):
    queue = JobQueue(table, folder=tmp_path, url=None, workers=2)
    yield queue
    queue.stop()


def wait_for(queue, job, state):
    until(lambda: queue.table.job(job.id).state is state)
    return queue.table.job(job.id)


class TestJobQueue:
    def test_does_a_job_and_reports_its_progress(self, queue):
        queue.handle("ingest", lambda running: running.report(3, 4))
        queue.start()

        job = queue.submit("ingest", "prices.csv")

        done = wait_for(queue, job, JobState.DONE)
        assert (done.subject, done.done, done.total, done.error) == ("prices.csv", 3, 4, None)

    def test_lets_go_of_what_a_job_needs_only_when_it_is_written_down_as_done(self, queue):
        states = []
        queue.handle(
            "ingest", lambda running: None, lambda job: states.append(queue.table.job(job.id).state)
        )

        queue.submit("ingest", "prices.csv")
        queue.run_waiting()

        assert states == [JobState.DONE]

    def test_may_be_started_again_while_it_runs(self, queue):
        queue.handle("ingest", lambda running: None)
        queue.start()

        queue.start_soon(lambda: None)

        wait_for(queue, queue.submit("ingest", "prices.csv"), JobState.DONE)
        threads = list(queue._threads)
        queue.stop()
        assert not any(thread.is_alive() for thread in threads)

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

    def test_without_workers_it_hands_jobs_on_and_does_none(self, queue, table, tmp_path):
        (tmp_path / "served").mkdir()
        served = JobQueue(table, folder=tmp_path / "served", url=None, workers=0)
        served.handle("ingest", lambda running: pytest.fail("done where jobs are not done"))
        queue.handle("ingest", lambda running: None)
        served.start()
        job = served.submit("ingest", "prices.csv")
        assert served.table.job(job.id).state is JobState.QUEUED

        queue.start()

        wait_for(queue, job, JobState.DONE)
        served.stop()

    def test_lists_the_newest_first_and_knows_no_stranger(self, queue):
        first, second = queue.submit("ingest", "a"), queue.submit("ingest", "b")

        assert [job.id for job in queue.table.newest("ingest")] == [second.id, first.id]
        with pytest.raises(NotFound, match="nobody"):
            queue.table.job("nobody")

    def test_is_tried_again_after_longer_pauses_up_to_the_longest(self, table):
        job, pauses = table.add("ingest", "prices.csv"), []
        for _ in range(12):
            table.try_again(table.job(job.id), "The server is away.")
            now = table.job(job.id)
            pauses.append(round((now.due_at - now.updated_at).total_seconds()))

        assert pauses[:3] == [2, 4, 8]
        assert pauses[-2:] == [job_table.LONGEST_PAUSE_SECONDS] * 2

    def test_is_alike_only_in_its_own_collection(self, table):
        first = table.add("ingest", "prices.csv", collection_id="1")
        again = table.add("ingest", "prices.csv", collection_id="1")
        table.add("ingest", "prices.csv", collection_id="2")

        assert [each.id for each in table.alike(first)] == [first.id, again.id]

    def test_is_given_back_once_and_by_who_saw_it_last(self, table):
        added = table.add("ingest", "half-done.pdf")
        table.claim(added.id)
        seen = table.job(added.id)

        assert table.give_back(seen)
        assert not table.give_back(seen)

        table.claim(added.id)
        assert not table.give_back(seen)  # it is running again, since
        assert table.job(added.id).state is JobState.RUNNING

    def test_does_jobs_about_one_subject_one_after_the_other_in_order(self, queue):
        begun, seen = threading.Event(), []

        def slow_at_first(running):
            seen.append(running.job.id)
            if not begun.is_set():
                begun.set()
                wait_for(queue, other, JobState.DONE)
            seen.append(running.job.id)

        queue.handle("ingest", slow_at_first)
        first, second = queue.submit("ingest", "a"), queue.submit("ingest", "a")
        other = queue.submit("ingest", "b")

        queue.start()

        wait_for(queue, second, JobState.DONE)
        assert [each for each in seen if each != other.id] == [first.id] * 2 + [second.id] * 2

    def test_takes_up_jobs_of_which_nothing_was_heard(self, queue, monkeypatch):
        monkeypatch.setattr(jobs, "BEAT_SECONDS", 0.05)
        monkeypatch.setattr(jobs, "ABANDONED_AFTER", timedelta())
        queue.handle("ingest", lambda running: None)
        queue.start()

        left = queue.table.add("ingest", "a")
        queue.table.claim(left.id)

        wait_for(queue, left, JobState.DONE)

    def test_a_running_job_that_is_stopped_is_done_at_the_next_start(self, queue, table, tmp_path):
        begun, again = threading.Event(), threading.Event()

        def without_end(running):
            begun.set()
            while not again.is_set():
                running.report(1, 2)
                time.sleep(0.01)

        queue.handle("ingest", without_end)
        queue.start()
        job = queue.submit("ingest", "a")
        assert begun.wait(LONG)
        queue.stop()
        assert table.job(job.id).state is JobState.QUEUED

        again.set()
        queue.start()

        wait_for(queue, job, JobState.DONE)

    def test_fails_a_job_for_which_there_is_no_room(self, queue):
        def disk_is_full(running):
            raise OSError(28, "No space left on device")

        queue.handle("ingest", disk_is_full)
        not_laid_down = queue.submit("ingest", "a.pdf", prepare=disk_is_full)
        not_done = queue.submit("ingest", "b.pdf")

        queue.run_waiting()

        for job in (not_laid_down, not_done):
            failed = queue.table.job(job.id)
            assert failed.state is JobState.FAILED
            assert "No space left on device" in failed.error

    def test_while_redis_is_away_jobs_are_done_all_the_same(self, table, tmp_path):
        with socket() as nobody:
            nobody.bind(("127.0.0.1", 0))  # and does not listen
            url = f"redis://127.0.0.1:{nobody.getsockname()[1]}/0"
            queue = JobQueue(table, folder=tmp_path, url=url, workers=1)
            queue.handle("ingest", lambda running: None)
            before = queue.submit("ingest", "a")
            queue.start()
            wait_for(queue, before, JobState.DONE)

            after = queue.submit("ingest", "b")

            wait_for(queue, after, JobState.DONE)
            with pytest.raises(RedisError):
                queue.ping()
            queue.stop()

    def test_what_an_earlier_version_queued_is_done_and_its_file_goes(self, table, tmp_path):
        (tmp_path / "jobs.db").write_bytes(b"calls of an earlier version")
        waiting, begun = table.add("ingest", "a"), table.add("ingest", "b")
        table.claim(begun.id)
        queue = JobQueue(table, folder=tmp_path, url=None, workers=1)
        queue.handle("ingest", lambda running: None)

        queue.start()

        for job in (waiting, begun):
            wait_for(queue, job, JobState.DONE)
        assert not (tmp_path / "jobs.db").exists()
        queue.stop()

    def test_what_only_a_newer_version_can_do_is_left_to_it(self, queue, table):
        queue.handle("ingest", lambda running: None)
        strange = table.add("dream", "a")
        queue.start()

        wait_for(queue, queue.submit("ingest", "b"), JobState.DONE)

        assert table.job(strange.id).state is JobState.QUEUED

    def test_what_was_away_is_tried_again_with_growing_pauses(self, queue, monkeypatch):
        monkeypatch.setattr(jobs, "BEAT_SECONDS", 0.02)
        monkeypatch.setattr(job_table, "FIRST_PAUSE_SECONDS", 0.1)
        began = []

        def away_at_first(running):
            began.append(time.monotonic())
            if len(began) < 4:
                raise ModelUnavailable("The embedding server cannot be reached.")

        queue.handle("ingest", away_at_first)
        queue.start()
        job = queue.submit("ingest", "a")

        done = wait_for(queue, job, JobState.DONE)

        pauses = [after - before for before, after in pairwise(began)]
        assert all(pause >= least for pause, least in zip(pauses, (0.1, 0.2, 0.4), strict=True))
        assert (done.error, done.attempts) == (None, 3)

    def test_a_job_that_waits_says_why(self, queue):
        def away(running):
            raise ModelUnavailable("The embedding server cannot be reached.")

        queue.handle("ingest", away)
        job = queue.submit("ingest", "a")
        queue.run_waiting()

        waiting = queue.table.job(job.id)
        assert waiting.state is JobState.QUEUED
        assert waiting.error == (
            "The embedding server cannot be reached. It is tried again by itself."
        )

    def test_what_the_queue_forgot_is_queued_again(self, queue, monkeypatch):
        monkeypatch.setattr(jobs, "BEAT_SECONDS", 0.02)
        monkeypatch.setattr(jobs, "ABANDONED_AFTER", timedelta())
        queue.handle("ingest", lambda running: None)
        queue.start()

        forgotten = queue.table.add("ingest", "a")

        wait_for(queue, forgotten, JobState.DONE)

    def test_what_cannot_be_begun_yet_is_tried_again(self, queue, monkeypatch):
        monkeypatch.setattr(jobs, "BEAT_SECONDS", 0.02)
        tries = iter([OSError("away"), SystemError("half loaded")])

        def load():
            for error in tries:
                raise error

        queue.handle("ingest", lambda running: None)
        queue.start_soon(load)

        wait_for(queue, queue.submit("ingest", "a"), JobState.DONE)

    def test_a_second_process_on_the_same_data_leaves_running_jobs_alone(
        self, queue, table, tmp_path
    ):
        begun, enough, runs = threading.Event(), threading.Event(), []

        def slow(running):
            runs.append(running.job.id)
            begun.set()
            enough.wait(LONG)

        second = JobQueue(table, folder=tmp_path, url=None, workers=1)
        for each in (queue, second):
            each.handle("ingest", slow)
        queue.start()
        job = queue.submit("ingest", "a")
        assert begun.wait(LONG)

        second.start()
        follower = second.submit("ingest", "b")
        enough.set()

        wait_for(queue, job, JobState.DONE)
        wait_for(queue, follower, JobState.DONE)
        second.stop()
        assert sorted(runs) == sorted([job.id, follower.id])

    def test_whoever_takes_the_place_of_the_first_leaves_the_jobs_of_the_others_alone(
        self, queue, table, tmp_path
    ):
        begun, enough, runs = threading.Event(), threading.Event(), []

        def slow(running):
            runs.append(running.job.id)
            begun.set()
            enough.wait(LONG)

        second, third = (
            JobQueue(table, folder=tmp_path, url=None, workers=1) for _ in ("second", "third")
        )
        for each in (queue, second, third):
            each.handle("ingest", slow)
        queue.start()
        second.start()
        queue.stop()
        job = second.submit("ingest", "a")
        assert begun.wait(LONG)

        third.start()
        enough.set()

        wait_for(second, job, JobState.DONE)
        third.stop()
        second.stop()
        assert runs == [job.id]


def test_a_host_hears_at_once_what_another_submits(table, tmp_path, monkeypatch):
    """By Redis: the next beat is an hour away. What is left of an earlier version's calls goes."""
    monkeypatch.setattr(jobs, "BEAT_SECONDS", 3600.0)
    monkeypatch.setattr(JobTable, "place", uuid4().hex)
    url = server_url("GROUNDNOTE_TEST_REDIS_URL")
    server = Redis.from_url(url)
    server.rpush(f"huey.redis.groundnote{table.place}", b"a call of an earlier version")
    here, there = (JobQueue(table, folder=tmp_path, url=url, workers=n) for n in (0, 1))
    for queue in (here, there):
        queue.handle("ingest", lambda running: None)
    there.start()
    until(lambda: server.pubsub_numsub(f"groundnote-{table.place}")[0][1] == 1)

    job = here.submit("ingest", "a")

    wait_for(there, job, JobState.DONE)
    assert not server.keys(f"huey*{table.place}")
    there.stop()


def test_a_wrong_url_is_refused_by_name(table, tmp_path):
    with pytest.raises(SetupError, match=r"jobs\.url is no URL"):
        JobQueue(table, folder=tmp_path, url="x", workers=1)


class TestFairTurn:
    @pytest.mark.slow
    def test_another_owners_job_is_second_in_line(self, queue):
        seen = []
        queue.handle("ingest", lambda running: seen.append(running.job.owner))
        for at in range(500):
            queue.submit("ingest", f"{at}.html", owner="anna")
        bens = queue.submit("ingest", "ben.md", owner="ben")

        queue.run_waiting()

        assert seen.index("ben") <= 1
        assert len(seen) == 501
        assert queue.table.job(bens.id).state is JobState.DONE

    def test_one_owner_never_has_all_workers(self, queue):
        enough = threading.Event()

        def slow(running):
            if running.job.owner == "anna":
                enough.wait(LONG)

        queue.handle("ingest", slow)
        slow_ones = [queue.submit("ingest", f"{at}.html", owner="anna") for at in range(5)]
        queue.start()
        wait_for(queue, slow_ones[0], JobState.RUNNING)

        bens = queue.submit("ingest", "ben.md", owner="ben")

        wait_for(queue, bens, JobState.DONE)
        assert sum(queue.table.job(j.id).state is JobState.RUNNING for j in slow_ones) == 1
        enough.set()
        wait_for(queue, slow_ones[-1], JobState.DONE)

    def test_what_belongs_to_nobody_in_particular_has_all_workers(self, queue):
        both = threading.Barrier(2, timeout=LONG)
        queue.handle("ingest", lambda running: both.wait())
        jobs = [queue.submit("ingest", f"{at}.html") for at in range(2)]

        queue.start()

        for job in jobs:
            wait_for(queue, job, JobState.DONE)

"""Syncs beside each other, by the clock, on a change, and by a process that is killed."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

from rag.connectors import transfer
from rag.connectors.folder import FolderSource, mark_of
from rag.connectors.transfer import Transfer
from rag.connectors.web import open_web
from rag.connectors.web.source import WebSource
from rag.errors import ModelUnavailable
from rag.jobs import background
from rag.jobs.background import LOCAL_SYNCER, SYNCER
from rag.records import DocumentSource, JobState, SyncState
from rag.seams import SourceOptions
from tests.connectors.remote.site import Site, running
from tests.waiting import until

PAGES = 6
LOOPBACK = ("127.0.0.1",)
WORDS = " ".join(f"word{at}" for at in range(20))
ROOT = Path(__file__).parents[2]


class TestTwoSyncs:
    def test_of_one_source_follow_each_other(self, office):
        """Four threads in two queues, as in a fleet: each file is read in once."""
        for number in range(30):
            office.write(f"{number}.md", f"# Number {number}\n\nIt weighs {number} kg.\n")
        at_once, most, run = [], [], office.app.jobs._queue._handlers["sync"]

        def watched(running):
            at_once.append(1)
            most.append(len(at_once))
            run[0](running)
            at_once.pop()

        office.app.jobs._queue._handlers["sync"] = (watched, run[1])
        made = office.book.add(source_of(office))
        office.app.jobs._queue.submit("sync", made.id, owner=LOCAL_SYNCER)
        threads = [threading.Thread(target=office.app.jobs.run_waiting) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        office.app.jobs.run_waiting()
        office.source = made

        assert max(most) == 1
        assert len(most) == 2
        assert len(office.texts()) == 30
        assert office.told().source.counts.unchanged == 30

    def test_that_are_asked_for_while_one_waits_are_that_one(self, office):
        made = office.book.add(source_of(office))
        jobs = [office.app.jobs.submit_sync(made).id for _ in range(3)]

        assert len(set(jobs)) == 1

    def test_leave_one_job_behind(self, office):
        office.write("a.md", "# A\n\nWords.\n")
        office.add()
        for _ in range(3):
            office.sync()

        assert len(office.app.jobs._queue.table.newest("sync")) == 1

    def test_leave_room_for_uploads(self, office):
        """Of two workers one; whoever asks for the syncs."""
        queue = office.app.jobs._queue
        for subject in ("one source", "another"):
            queue.submit("sync", subject, owner=SYNCER)
        upload = office.app.jobs.submit_ingest("a.md", b"# A\n\nWords.\n")

        taken = [queue._claimed() for _ in range(3)]

        assert [job and job.kind for job in taken] == ["sync", "ingest", None]
        assert taken[1].id == upload.id

    def test_of_a_folder_never_waits_for_one_of_a_site(self, office):
        queue = office.app.jobs._queue
        for subject in ("one site", "another"):
            queue.submit("sync", subject, owner=SYNCER)
        office.source = office.book.add(source_of(office))

        taken = [queue._claimed() for _ in range(3)]

        assert [job and job.subject for job in taken] == ["one site", office.source.id, None]
        assert office.told().reason == ""

    def test_that_waits_says_so(self, office):
        office.source = office.book.add(source_of(office))

        assert office.told().reason == "It waits for its turn."

    def test_of_a_folder_that_takes_long_lets_an_upload_be_read_and_goes_on(
        self, office, monkeypatch
    ):
        monkeypatch.setattr(background, "GIVE_WAY_SECONDS", 0.0)
        monkeypatch.setattr(Transfer, "_is_time", lambda _self: True)
        for number in range(10):
            office.write(f"{number}.md", f"# Number {number}\n\nIt weighs {number} kg.\n")
        office.source = office.book.add(source_of(office))
        upload = office.app.jobs.submit_ingest("a.md", b"# A\n\nWords.\n")
        ended = []
        queue = office.app.jobs._queue
        do = queue._do

        def noted(job):
            do(job)
            ended.append((job.kind, queue.table.job(job.id).state))

        monkeypatch.setattr(queue, "_do", noted)
        office.app.jobs.run_waiting()

        assert ended[:2] == [("sync", JobState.QUEUED), ("ingest", JobState.DONE)]
        assert ended[-1] == ("sync", JobState.DONE)
        assert upload.id
        assert len(office.texts()) == 11

    @pytest.mark.parametrize("place", ["list", "slow list", "transfer"])
    def test_of_two_sites_take_turns_and_ask_for_no_page_twice(self, office_of, monkeypatch, place):
        """Whether a look is left while it lists, or while what it listed is read in.

        Coming to where it was is no work of its own, however long it takes.
        """
        monkeypatch.setattr(transfer, "ASK_SECONDS", 60.0 if place == "transfer" else 0.0)
        seen_before = WebSource._replay

        def slow(*given):
            time.sleep(0.05 if place == "slow list" else 0)
            return seen_before(*given)

        monkeypatch.setattr(WebSource, "_replay", slow)
        monkeypatch.setattr(background, "GIVE_WAY_SECONDS", 0.0)
        monkeypatch.setattr(Transfer, "_is_time", lambda _self: place == "transfer")
        office = office_of(sources={"private_hosts": LOOPBACK})
        office.write("a.md", "# A\n\nWords.\n")
        office.add()  # what reads files in is there from now on
        turns, queue = [], office.app.jobs._queue
        do = queue._do

        def noted(job):
            turns.append(job.subject)
            assert len(turns) < 99, "they take turns and ask for nothing"
            do(job)

        monkeypatch.setattr(queue, "_do", noted)
        with running(Site()) as one, running(Site()) as two:
            for site in (one, two):
                links = "".join(f'<a href="/{at}">more</a>' for at in range(PAGES))
                site["/"] = f"<main><h1>Start</h1><p>{WORDS}</p></main>{links}"
                for at in range(PAGES):
                    site[f"/{at}"] = f"<main><h1>Number {at}</h1><p>It is {at}. {WORDS}</p></main>"
                office.book.add(source_of(office, address=site.url + "/"))
            with closing(open_web(one.url, SourceOptions(private_hosts=LOOPBACK))) as warmed:
                assert list(warmed.listed())  # what reads pages is there from now on
            one.asked.clear()
            office.app.jobs.run_waiting()
            asked = [site.paths() for site in (one, two)]

        assert len(set(turns)) == 2
        assert sum(before != after for before, after in pairwise(turns)) >= 3
        assert [len(paths) - len(set(paths)) for paths in asked] == [1, 1]  # its address, twice
        assert len(office.texts()) == 2 * (PAGES + 1) + 1
        assert not [*office.settings.data_dir.glob("sources/*/pages")]

    def test_whose_source_is_removed_ends_while_it_lists(self, office, monkeypatch):
        monkeypatch.setattr(transfer, "ASK_SECONDS", 0.0)
        for number in range(3):
            office.write(f"{number}.md", f"# Number {number}\n\nIt weighs {number} kg.\n")
        made = office.book.add(source_of(office))
        listed = []
        real = FolderSource.listed

        def slow(self):
            for file in real(self):
                listed.append(file)
                if len(listed) == 1:
                    office.book.remove(made.id)
                yield file

        monkeypatch.setattr(FolderSource, "listed", slow)
        office.app.jobs.run_waiting()

        assert len(listed) == 1
        assert office.texts() == {}


class TestByTheClock:
    def test_a_source_is_looked_at_when_its_time_has_come(self, office):
        office.write("a.md", "# A\n\nWords.\n")
        office.add(every_seconds=60)
        office.write("b.md", "# B\n\nWords.\n")
        office.book.submit_due()
        office.app.jobs.run_waiting()
        assert len(office.texts()) == 1

        office.book.table.change(office.source.id, next_due_at=datetime.now(UTC))
        office.book.submit_due()
        office.app.jobs.run_waiting()

        assert len(office.texts()) == 2
        assert office.told().source.next_due_at > datetime.now(UTC) + timedelta(seconds=50)

    def test_one_of_several_processes_takes_it(self, office, monkeypatch):
        office.add(every_seconds=60)
        table = office.book.table
        table.change(office.source.id, next_due_at=datetime.now(UTC))
        seen = table.sources()  # by all of them, before one takes it
        monkeypatch.setattr(table, "_sources_where", lambda *conditions: seen)

        assert [len(table.claim_due()) for _ in range(3)] == [1, 0, 0]


class TestClocks:
    @pytest.mark.parametrize(
        ("age", "has_mark", "is_settled"),
        [
            pytest.param(0.5, False, False, id="somebody may be writing"),
            pytest.param(1.5, False, True, id="another version may have this time"),
            pytest.param(3, True, True, id="its time tells it apart"),
            pytest.param(-500, False, True, id="of a time to come"),
        ],
    )
    def test_decide_whether_a_time_is_believed(self, age, has_mark, is_settled):
        found = os.stat_result((0o100644, 1, 1, 1, 0, 0, 12, 1_000_000, 1_000_000, 1_000_000))

        mark, settled = mark_of(found, 1_000_000 + age)

        assert (bool(mark), settled) == (has_mark, is_settled)

    def test_of_another_content_with_the_same_time_and_size_is_seen(self, office):
        """The time of the last change of its entry tells, which nobody can set."""
        office.write("a.md", "# A\n\nIt weighs 1 kg.\n", when=1_700_000_000)
        office.add()
        time.sleep(0.02)
        office.write("a.md", "# A\n\nIt weighs 2 kg.\n", when=1_700_000_000)

        office.sync()

        assert "2 kg" in office.texts()["a.md"]

    def test_a_thorough_look_reads_every_file(self, office, monkeypatch):
        monkeypatch.setattr("rag.connectors.folder.mark_of", lambda found, moment: ("same", True))
        office.write("a.md", "# A\n\nIt weighs 1 kg.\n")
        office.add()
        office.write("a.md", "# A\n\nIt weighs 2 kg.\n")
        office.sync()
        assert "1 kg" in office.texts()["a.md"]

        office.book.sync(office.source.id, thorough=True)
        office.app.jobs.run_waiting()

        assert "2 kg" in office.texts()["a.md"]


class TestAModelThatIsAway:
    def test_leaves_words_that_are_found_and_is_tried_again(self, office, monkeypatch):
        office.write("a.md", "# Aero\n\nThe zorblax weighs 1 kg.\n")
        embed = office.app.embedder.embed

        def refuse(_texts):
            raise ModelUnavailable("No embedding server.")

        monkeypatch.setattr(office.app.embedder, "embed", refuse)
        told = office.add()
        assert told.state is SyncState.RUNNING
        assert "tried again" in told.reason
        assert office.found("zorblax") == {"a.md"}

        monkeypatch.setattr(office.app.embedder, "embed", embed)
        (job,) = office.app.jobs._queue.table.unfinished(JobState.QUEUED)
        office.app.jobs._queue.table.set(job.id, due_at=None)
        office.app.jobs.run_waiting()

        assert office.told().state is SyncState.IDLE
        assert office.app.documents.unembedded_count() == 0


@pytest.mark.slow
class TestAWatchedFolder:
    @pytest.fixture
    def live(self, office, monkeypatch):
        monkeypatch.setattr("rag.connectors.folder.QUIET_MS", 100)
        monkeypatch.setattr("rag.connectors.folder.LOOK_MS", 100)
        monkeypatch.setattr("rag.connectors.folder.LOOK_SECONDS", 0.1)
        office.source = office.book.add(source_of(office, watch=True))
        import_module("watchfiles")  # what tests load is parsed, by one thread at a time
        office.app.load()
        office.app.start()
        return office

    def test_is_looked_at_when_something_changes(self, live):
        until(lambda: live.told().source.last_synced_at)
        live.write("a.md", "# Aero\n\nThe zorblax weighs 1 kg.\n")
        until(lambda: live.found("zorblax") == {"a.md"})
        live.move("a.md", "b.md")
        until(lambda: live.found("zorblax") == {"b.md"})

    def test_that_went_is_watched_again_when_it_is_back(self, live):
        until(lambda: live.told().source.last_synced_at)
        live.move(".", "../away")
        time.sleep(0.5)
        (live.folder.parent / "away").rename(live.folder)
        live.write("late.md", "# Late\n\nThe quux weighs 1 kg.\n")
        until(lambda: live.found("quux") == {"late.md"})


KILLED = """
import os, signal, sys
from pathlib import Path
from sqlalchemy import event
from rag.settings import Settings
from tests.applications import application_of
from rag.wiring.stores import syncs_of
app = application_of(Settings(data_dir=Path(sys.argv[1])))
left = [int(sys.argv[3])]
def end(_connection):
    left[0] -= 1
    if left[0] <= 0:
        os.kill(os.getpid(), signal.SIGKILL)
event.listen(app.engine, "commit", end)
syncs_of(app).run(sys.argv[2], lambda done, total: None)
"""


@pytest.mark.slow
class TestAProcessThatIsKilled:
    @pytest.mark.parametrize("write", [4, 9, 14, 20])
    def test_leaves_what_the_next_sync_makes_right(self, office, write):
        for number in range(20):
            office.write(f"{number}.md", f"# Number {number}\n\nIt weighs {number} kg.\n")
        office.add()
        before = office.ids()
        office.move("1.md", "moved.md")
        office.delete("2.md")
        office.write("3.md", "# Number 3\n\nIt weighs much.\n")
        office.write("new.md", "# New\n\nIt weighs little.\n")
        source_id, folder = office.source.id, office.app.settings.data_dir
        office.app.stop()

        ended = subprocess.run(
            [sys.executable, "-c", KILLED, str(folder), source_id, str(write)],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=False,
        )
        office.reopen()
        told = office.sync()

        assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
        assert told.state is SyncState.IDLE
        assert office.documents().keys() == {path.name for path in office.folder.iterdir()}
        assert office.ids()["moved.md"] == before["1.md"]
        assert office.ids()["3.md"] == before["3.md"]
        assert "much" in office.texts()["3.md"]
        assert office.app.documents.unembedded_count() == 0
        office.app.ingestion.synchronise()
        assert office.app.index.count() == office.app.documents.chunk_count()


def source_of(office, **wish):
    wish = {"address": str(office.folder)} | wish
    return DocumentSource("", kind="", name="", is_operators=True, **wish)

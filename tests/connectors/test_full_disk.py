"""A disk that is full in the middle of a sync: told, and made right by the one that follows."""

import errno
import sqlite3
from contextlib import contextmanager
from datetime import timedelta

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from rag.cli.source import _lines
from rag.connectors.folder import FolderSource
from rag.documents.sandbox import GuardedLoader
from rag.jobs import queue as queues
from rag.records import EVERYTHING, JobState, SyncState
from rag.tables.store import TableFiles

pytestmark = pytest.mark.slow

PRICES = "name,watts,price\n" + "".join(f"Lamp {n},{n},{n * 10}\n" for n in range(1, 9))


def no_room(*_given, **_named):
    raise OSError(errno.ENOSPC, "No space left on device")


@contextmanager
def full_from(engine, write):
    """From that write on the database takes none; tells whether it came so far."""
    left, is_full = [write], []

    def begin(connection, _cursor, statement, *_given):
        if statement.startswith("BEGIN"):
            connection.info["writes"] = statement == "BEGIN IMMEDIATE"

    def refuse(connection):
        if not connection.info["writes"]:
            return
        left[0] -= 1
        if left[0] <= 0:
            is_full.append(True)
            said = sqlite3.OperationalError("database or disk is full")
            raise OperationalError("COMMIT", {}, said)

    event.listen(engine, "before_cursor_execute", begin)
    event.listen(engine, "commit", refuse)
    try:
        yield is_full
    finally:
        event.remove(engine, "commit", refuse)
        event.remove(engine, "before_cursor_execute", begin)


@pytest.fixture
def changed(office):
    """A source of six files, of which one moved, one went, one changed, and two came."""
    for number in range(6):
        office.write(f"{number}.md", f"# Number {number}\n\nIt weighs {number} kg.\n")
    office.add()
    office.move("1.md", "moved.md")
    office.delete("2.md")
    office.write("3.md", "# Number 3\n\nIt weighs much.\n")
    office.write("new.md", "# New\n\nIt weighs little.\n")
    office.write("prices.csv", PRICES)
    return office


def goes_on(office, monkeypatch):
    """What a server does by itself a while after."""
    monkeypatch.setattr(queues, "ABANDONED_AFTER", timedelta(0))
    queue = office.app.jobs._queue
    for job in queue.table.unfinished(JobState.QUEUED):
        queue.table.set(job.id, due_at=None)
    queue._beat()
    office.app.jobs.run_waiting()


def is_whole(office, before):
    """As the folder, nothing lost and nothing twice."""
    told = office.told()
    assert (told.state, told.reason, told.failures) == (SyncState.IDLE, "", ())
    ids = office.ids()
    assert len(office.app.documents.documents(EVERYTHING)) == len(ids)
    assert ids.keys() == {path.name for path in office.folder.iterdir()}
    for name in ("0.md", "3.md", "4.md", "5.md"):
        assert ids[name] == before[name]
    assert ids["moved.md"] == before["1.md"]
    assert "much" in office.texts()["3.md"]
    assert office.app.documents.unembedded_count() == 0
    office.app.ingestion.synchronise()
    assert office.app.index.count() == office.app.documents.chunk_count()


@pytest.mark.parametrize("write", range(1, 16))
def test_a_database_that_takes_nothing_from_a_write_on(changed, monkeypatch, write):
    before = changed.ids()
    changed.book.sync(changed.source.id)
    with full_from(changed.app.engine, write) as is_full:
        changed.app.jobs.run_waiting()
    assert is_full
    assert set(before) - set(changed.ids()) <= {"1.md", "2.md"}  # moved and removed

    goes_on(changed, monkeypatch)

    is_whole(changed, before)


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (lambda _office: TableFiles, "write"),
        (lambda _office: GuardedLoader, "ask"),
        (lambda _office: FolderSource, "listed"),
        (lambda office: office.app.index, "add"),
    ],
    ids=["tables", "reading", "aside", "index"],
)
def test_a_disk_that_takes_nothing_beside_the_database(changed, monkeypatch, place, name):
    before = changed.ids()
    with monkeypatch.context() as patched:
        patched.setattr(place(changed), name, no_room)
        told = changed.sync()
    is_told(changed, told)

    goes_on(changed, monkeypatch)

    is_whole(changed, before)


def is_told(office, told):
    assert told.state is SyncState.RUNNING
    assert "is full" in told.reason
    assert "tried again by itself" in told.reason
    assert "is full" in "\n".join(_lines(told))


def test_a_database_that_is_full_for_a_moment_is_told(changed, monkeypatch):
    """As it mostly is: what is large finds no room, a word about a job does."""
    before = changed.ids()
    replace_all = type(changed.app.documents).replace_all
    with monkeypatch.context() as patched:

        def refuse(store, stored):
            with full_from(changed.app.engine, 1):
                return replace_all(store, stored)

        patched.setattr(type(changed.app.documents), "replace_all", refuse)
        told = changed.sync()
    is_told(changed, told)

    goes_on(changed, monkeypatch)

    is_whole(changed, before)


def test_originals_that_find_no_room_keep_no_document_out(changed, monkeypatch):
    before = changed.ids()
    with monkeypatch.context() as patched:
        patched.setattr(changed.app.documents._originals._store, "write", no_room)
        changed.sync()

    is_whole(changed, before)
    new = changed.documents()["new.md"]
    assert changed.app.documents.original(new) is None

    changed.book.sync(changed.source.id, thorough=True)
    changed.app.jobs.run_waiting()
    assert changed.app.documents.original(new) is not None


def test_ends_no_worker_and_not_what_looks_after_jobs(changed, monkeypatch):
    queue = changed.app.jobs._queue
    changed.book.sync(changed.source.id)
    (job,) = queue.table.unfinished()
    monkeypatch.setattr(queue, "_running", {job.id: ""})

    with full_from(changed.app.engine, 1) as is_full:
        queue._look_after()
        queue._do_next()

    assert len(is_full) > 1

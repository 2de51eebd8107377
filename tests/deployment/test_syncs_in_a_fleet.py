"""A folder that several hosts see is kept in step by one of them at a time."""

import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from rag.connectors.transfer import SyncRun
from rag.jobs import queue
from rag.records import EVERYTHING, DocumentSource, SyncState
from tests.deployment.conftest import until


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "shared-folder"
    made.mkdir()
    for number in range(40):
        (made / f"{number}.md").write_text(f"# Number {number}\n\nIt weighs {number} kg.\n")
    return made


@pytest.fixture
def reads(monkeypatch):
    """Names of the files that any host reads."""
    names, read = [], SyncRun.read

    def noting(look, file):
        names.append(file.name)
        return read(look, file)

    monkeypatch.setattr(SyncRun, "read", noting)
    monkeypatch.setattr("rag.connectors.folder.now", lambda: time.time() + 7200)  # none is young
    monkeypatch.setattr("rag.wiring.application.LOST_SECONDS", 0.1)
    return names


def test_each_file_is_read_once(shared, built, folder, reads):
    hosts = [built(shared(f"host-{n}")) for n in (1, 2)]
    wish = DocumentSource("", str(folder), "", "", watch=True, is_operators=True)
    made = hosts[0].sources.add(wish)
    for host in hosts:
        host.start()
    until(lambda: standing(hosts[1], made).state is SyncState.IDLE)

    for host in hosts:  # both find that its time has come
        host.sources.table.change(made.id, next_due_at=datetime.now(UTC))
    until(lambda: standing(hosts[0], made).source.next_due_at > datetime.now(UTC))
    until(lambda: standing(hosts[0], made).state is SyncState.IDLE)

    assert sorted(reads) == sorted(path.name for path in folder.iterdir())
    assert len(hosts[0].documents.documents(EVERYTHING)) == 40
    hosts[0].ingestion.synchronise()
    assert hosts[0].index.count() == 40


def test_what_a_dead_host_began_is_taken_up(shared, built, folder, reads, monkeypatch):
    monkeypatch.setattr(queue, "BEAT_SECONDS", 0.1)
    monkeypatch.setattr(queue, "ABANDONED_AFTER", timedelta(seconds=1))
    dead, alive = built(shared("host-1")), built(shared("host-2"))
    made = dead.sources.add(DocumentSource("", str(folder), "", "", is_operators=True))
    is_stuck = threading.Event()

    def stuck(running):
        is_stuck.set()
        raise KeyboardInterrupt  # and nobody is left to write down that it ended

    dead.jobs._queue._handlers["sync"] = (stuck, lambda job: None)
    monkeypatch.setattr(dead.jobs._queue, "_fail", lambda job_id, reason: None)
    with pytest.raises(KeyboardInterrupt):
        dead.jobs._queue._do_next()
    assert is_stuck.is_set()

    alive.start()
    until(lambda: standing(alive, made).state is SyncState.IDLE)

    assert len(alive.documents.documents(EVERYTHING)) == 40


def standing(host, source):
    return host.sources.statuses([host.sources.table.source(source.id)])[0]

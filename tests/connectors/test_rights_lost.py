"""A right that is taken away before a sync, or in the middle of one, and given back."""

import re
import time

import pytest

from rag.cli.source import _lines
from rag.connectors.folder import FolderSource
from rag.records import EVERYTHING
from tests.connectors.test_source_api import SOURCES, Served

REASON = "ben may not manage this collection any more"


@pytest.fixture
def ben(tmp_path, monkeypatch):
    """Ben may manage Anna's collection, and has added a folder of one file to it."""
    monkeypatch.setattr("rag.connectors.folder.now", lambda: time.time() + 7200)
    served = Served(tmp_path)
    give(served, "manage")
    served.source = served.add(served.open, by="ben").get_json()["id"]
    served.run()
    yield served
    served.app.stop()


def give(served, right):
    members = {"ben": right} if right else {}
    url = f"/api/v1/collections/{served.lamps}"
    assert served.call("PUT", url, json={"members": members}).status_code == 200


def more(served):
    """One file goes, three come."""
    for name in ("b.md", "c.md", "d.md"):
        (served.open / name).write_text(f"# {name}\n\nThis is {name} of the lamps.\n")
    (served.open / "gone.md").unlink(missing_ok=True)


def lost_after(monkeypatch, served, files, right):
    """So many files of the sync are read, then it is taken away."""
    read, count = FolderSource.read, []

    def one(source, file):
        data = read(source, file)
        count.append(file.name)
        if len(count) == files:
            give(served, right)
        return data

    monkeypatch.setattr(FolderSource, "read", one)
    return count


def sync(served):
    served.app.sources.sync(served.source)
    served.run()
    return served.call("GET", f"{SOURCES}/{served.source}").get_json()


def documents(served):
    return {each.name: each.id for each in served.app.documents.documents(EVERYTHING)}


def is_told(served, told):
    assert (told["state"], REASON in told["reason"]) == ("failed", True)
    source = served.app.sources.table.source(served.source)
    (in_list,) = served.app.sources.statuses([source])
    assert REASON in "\n".join(_lines(in_list))
    page = served.call("GET", f"/collections/{served.lamps}/sources")
    assert REASON in re.sub(r"\s+", " ", page.text)


@pytest.mark.parametrize("right", [None, "read", "write"])
def test_in_the_middle_nothing_more_is_brought_and_it_goes_on_later(ben, monkeypatch, right):
    more(ben)
    with monkeypatch.context() as patched:
        lost_after(patched, ben, 1, right)
        told = sync(ben)

    is_told(ben, told)
    assert len(documents(ben)) <= 2  # what was there, and at most the one that was read before
    assert told["failures"] == []
    before = documents(ben)

    give(ben, "manage")
    told = sync(ben)

    assert (told["state"], told["reason"]) == ("idle", "")
    assert documents(ben).keys() == {"a.md", "b.md", "c.md", "d.md"}
    assert before.items() <= documents(ben).items()


def test_once_the_last_file_was_read_is_told_of_the_source_and_not_of_the_file(ben, monkeypatch):
    (ben.open / "b.md").write_text("# B\n\nThis is b.md of the lamps.\n")
    with monkeypatch.context() as patched:
        lost_after(patched, ben, 1, None)
        told = sync(ben)

    is_told(ben, told)
    assert told["failures"] == []
    assert documents(ben).keys() == {"a.md"}


def test_before_one_nothing_is_read_or_removed(ben, monkeypatch):
    more(ben)
    (ben.open / "a.md").unlink()
    give(ben, None)
    before = documents(ben)
    with monkeypatch.context() as patched:
        patched.setattr(FolderSource, "read", None)
        told = sync(ben)

    is_told(ben, told)
    assert documents(ben) == before

    give(ben, "manage")
    assert sync(ben)["state"] == "waiting_for_yes"  # the only file there was
    assert documents(ben).keys() == {"a.md", "b.md", "c.md", "d.md"}


def test_while_it_is_listed_nothing_is_removed_or_renamed(ben, monkeypatch):
    more(ben)
    sync(ben)
    (ben.open / "a.md").unlink()
    (ben.open / "b.md").rename(ben.open / "e.md")
    before = documents(ben)
    walk = FolderSource._walk

    def lost(source):
        yield from walk(source)
        give(ben, None)

    with monkeypatch.context() as patched:
        patched.setattr(FolderSource, "_walk", lost)
        told = sync(ben)

    is_told(ben, told)
    assert documents(ben) == before

    give(ben, "manage")
    told = sync(ben)
    assert told["state"] == "idle"
    assert documents(ben).keys() == {"c.md", "d.md", "e.md"}
    assert documents(ben)["e.md"] == before["b.md"]


def test_while_it_is_seen_what_moved_nothing_is_removed(ben, monkeypatch):
    """A file was read to see whether it is another's; then the right went."""
    more(ben)
    sync(ben)
    (ben.open / "b.md").rename(ben.open / "e.md")
    before = documents(ben)
    with monkeypatch.context() as patched:
        lost_after(patched, ben, 1, None)
        sync(ben)

    assert before.items() <= documents(ben).items() or documents(ben)["e.md"] == before["b.md"]
    give(ben, "manage")
    assert sync(ben)["state"] == "idle"
    assert documents(ben).keys() == {"a.md", "c.md", "d.md", "e.md"}
    assert documents(ben)["e.md"] == before["b.md"]

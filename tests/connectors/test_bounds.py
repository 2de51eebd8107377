"""What is over a bound of the settings is told with its numbers, and comes once that is raised."""

import zipfile

import pytest

from rag.connectors.folder import FolderSource
from rag.records import SyncState
from rag.settings import Settings

BIG = "# Big\n\n" + "This is told at some length. " * 60
SMALL = "# Small\n\nIt is short.\n"


def with_settings(office, **settings):
    """After a new start with others."""
    office.app.stop()
    office.settings = Settings(data_dir=office.settings.data_dir, **settings)
    office.reopen()


@pytest.mark.parametrize("name", ["big.md", "all.zip/big.md"])
def test_a_file_that_is_too_large_comes_when_it_may_be_larger(office_of, monkeypatch, name):
    office = office_of(documents={"max_file_mb": 0.001})
    archive, _, member = name.rpartition("/")
    if archive:
        with zipfile.ZipFile(office.folder / archive, "w", zipfile.ZIP_DEFLATED) as packed:
            packed.writestr(member, BIG)
    else:
        office.write(name, BIG)
    office.write("small.md", SMALL)

    told = office.add()

    assert (told.state, told.source.counts.failed) == (SyncState.IDLE, 1)
    (failure,) = told.failures
    assert name in failure.reason
    assert "1,048" in failure.reason
    assert office.ids().keys() == {"small.md"}
    with monkeypatch.context() as patched:  # until then it costs nothing
        patched.setattr(FolderSource, "read", None)
        assert office.sync().source.counts.failed == 1

    with_settings(office, documents={"max_file_mb": 1})
    told = office.sync()

    assert (told.state, told.failures) == (SyncState.IDLE, ())
    assert (told.source.counts.new, told.source.counts.unchanged) == (1, 1)
    assert office.ids().keys() == {name, "small.md"}


def test_a_version_that_became_too_large_leaves_what_was_read_and_comes_later(office_of):
    office = office_of(documents={"max_file_mb": 0.001})
    office.write("a.md", SMALL)
    office.add()
    before = office.ids()
    office.write("a.md", BIG)

    told = office.sync()

    assert "1,048" in told.failures[0].reason
    assert "It is short." in office.texts()["a.md"]

    with_settings(office)
    assert office.sync().failures == ()
    assert "at some length" in office.texts()["a.md"]
    assert office.ids() == before


def test_more_files_than_a_source_may_have_are_told_and_the_rest_comes(office_of):
    office = office_of(sources={"most_files": 3})
    for number in range(5):
        office.write(f"{number}.md", f"# Number {number}\n\nIt weighs {number} kg.\n")

    told = office.add()

    assert told.state is SyncState.AWAY
    assert "more than 3 files" in told.reason
    assert "sources.most_files" in told.reason
    before = office.ids()
    assert len(before) == 3
    assert office.sync().source.counts.unchanged == 3

    with_settings(office, sources={"most_files": 5})
    told = office.sync()

    assert (told.state, told.reason, told.source.counts.new) == (SyncState.IDLE, "", 2)
    assert before.items() <= office.ids().items()
    assert len(office.ids()) == 5


def test_a_bound_that_is_lowered_removes_nothing(office_of):
    office = office_of()
    for number in range(5):
        office.write(f"{number}.md", f"# Number {number}\n\nIt weighs {number} kg.\n")
    office.add()
    before = office.ids()

    with_settings(office, sources={"most_files": 2})

    assert office.sync().state is SyncState.AWAY
    assert office.ids() == before

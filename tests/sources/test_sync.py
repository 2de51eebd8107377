"""A collection is as its folder is, after each sync."""

import pytest

from rag.records import Standing, SyncState


@pytest.fixture
def two(office):
    """A source of two files."""
    office.write("aero.md", "# Aero 5\n\nThe Aero 5 weighs 120 g.\n")
    office.write("guides/reset.md", "# Reset\n\nHold the button for ten seconds.\n")
    office.add()
    return office


class TestTheFirstSync:
    def test_brings_every_file_in_under_its_name(self, two):
        assert set(two.texts()) == {"aero.md", "guides/reset.md"}
        assert two.found("button") == {"guides/reset.md"}
        assert two.told().source.counts.new == 2
        assert two.told().state is SyncState.IDLE

    def test_and_a_second_reads_and_embeds_nothing(self, two, monkeypatch):
        monkeypatch.setattr("rag.sources.folder.FolderSource.read", None)
        embedded = len(two.embedded)

        told = two.sync()

        assert len(two.embedded) == embedded
        assert (told.source.counts.new, told.source.counts.unchanged) == (0, 2)


class TestAChangedFile:
    def test_keeps_its_id(self, two):
        before = two.ids()
        two.write("aero.md", "# Aero 5\n\nThe Aero 5 weighs 130 g.\n")

        told = two.sync()

        assert "130 g" in two.texts()["aero.md"]
        assert two.ids() == before
        assert told.source.counts.changed == 1

    def test_that_was_only_touched_is_read_and_not_embedded(self, two):
        embedded = len(two.embedded)
        two.age("aero.md")

        told = two.sync()

        assert len(two.embedded) == embedded
        assert told.source.counts.changed == 0


class TestAMovedFile:
    def test_keeps_its_id_and_is_not_embedded_again(self, two):
        before, embedded = two.ids(), len(two.embedded)
        two.move("guides/reset.md", "help/restart.md")

        told = two.sync()

        assert two.ids() == {
            "aero.md": before["aero.md"],
            "help/restart.md": before["guides/reset.md"],
        }
        assert len(two.embedded) == embedded
        assert two.found("restart button") == {"help/restart.md"}
        assert told.source.counts.moved == 1
        assert told.source.counts.removed == 0


class TestARemovedFile:
    def test_leaves_the_search_at_once(self, two):
        two.delete("guides/reset.md")

        told = two.sync()

        assert set(two.texts()) == {"aero.md"}
        assert two.found("button") == set()
        assert told.source.counts.removed == 1

    def test_can_be_had_back_and_stays(self, two):
        before = two.ids()
        two.delete("guides/reset.md")
        two.sync()

        assert two.book.undo(two.source.id) == 1
        two.app.jobs.run_waiting()
        two.sync()

        assert two.ids() == before
        assert two.found("button") == {"guides/reset.md"}
        assert [row.standing for row in two.files(Standing.KEPT)] == [Standing.KEPT]

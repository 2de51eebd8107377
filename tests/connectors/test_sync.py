"""A collection is as its folder is, after each sync."""

import os
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rag.connectors.folder import FolderSource, open_folder
from rag.documents.files import IncomingFile
from rag.errors import Unreadable
from rag.records import EVERYTHING, Filters, Standing, SyncState
from rag.seams import SourceOptions
from tests.connectors.folder_model import Killed


@pytest.fixture
def two(office):
    """A source of two files."""
    office.write("aero.md", "# Aero 5\n\nThe Aero 5 weighs 120 g.\n")
    office.write("guides/reset.md", "# Reset\n\nHold the button for ten seconds.\n")
    office.add()
    return office


class TestTheDayOfAFile:
    def test_is_filtered_by_where_the_file_itself_names_none(self, office):
        office.write("old.md", "# Old\n\nHold the button.\n", when=1_700_000_000)
        office.write("new.md", "# New\n\nHold the button.\n", when=1_710_000_000)
        own = "---\ndate: 2020-05-06\n---\n# Own\n\nHold the button.\n"
        office.write("own.md", own, when=1_710_000_000)
        office.add()
        chosen = office.app.documents.filtered(Filters(after="2024-01-01"), EVERYTHING)
        reports = {each.name: each.report for each in office.app.documents.documents(EVERYTHING)}

        assert chosen.names == ("new.md",)
        assert reports["old.md"].date == "2023-11-14"
        assert reports["own.md"].date == "2020-05-06"


class TestTheFirstSync:
    def test_brings_every_file_in_under_its_name(self, two):
        assert set(two.texts()) == {"aero.md", "guides/reset.md"}
        assert two.found("button") == {"guides/reset.md"}
        assert two.told().source.counts.new == 2
        assert two.told().state is SyncState.IDLE

    def test_and_a_second_reads_and_embeds_nothing(self, two, monkeypatch):
        monkeypatch.setattr("rag.connectors.folder.FolderSource.read", None)
        embedded = len(two.embedded)

        told = two.sync()

        assert len(two.embedded) == embedded
        assert (told.source.counts.new, told.source.counts.unchanged) == (0, 2)
        assert told.state is SyncState.IDLE


class TestNamesThatLookAlike:
    def test_that_differ_in_how_letters_are_composed_are_two_documents(self, two):
        two.write("\u00fcber.md", "# One\n\nIt weighs 11 g.\n")
        two.write("u\u0308ber.md", "# Two\n\nIt weighs 22 g.\n")

        told = two.sync()

        assert told.source.counts.new == 2
        assert sum("1 g" in text or "22 g" in text for text in two.texts().values()) == 2
        assert two.sync().source.counts.unchanged == 4

    def test_of_odd_kinds_are_two_documents_too(self, two):
        for name, text in ((b"a\xfe", "It weighs 11 g."), (b"a\xff", "It weighs 22 g.")):
            path = two.folder / os.fsdecode(name + b".md")
            path.write_text(text)
            os.utime(path, (time.time() - 60,) * 2)

        assert two.sync().source.counts.new == 2


class TestALinkThatTakesAFilesPlace:
    def test_is_not_followed_out_of_the_folder(self, tmp_path):
        folder, secret = tmp_path / "shared", tmp_path / "secret.md"
        folder.mkdir()
        secret.write_text("hush")
        (folder / "a.md").write_text("# A")
        source = open_folder(str(folder), SourceOptions())
        (file,) = source.listed()

        (folder / "a.md").unlink()
        (folder / "a.md").symlink_to(secret)

        with pytest.raises(Unreadable, match="leads out of the folder"):
            source.read(file)

    def test_nor_where_it_is_a_folder_on_the_way(self, tmp_path):
        folder, other = tmp_path / "shared", tmp_path / "other"
        for each in (folder / "in", other):
            each.mkdir(parents=True)
            (each / "a.md").write_text("# A")
        source = open_folder(str(folder), SourceOptions())
        (file,) = source.listed()

        (folder / "in").rename(tmp_path / "gone")
        (folder / "in").symlink_to(other, target_is_directory=True)

        with pytest.raises(Unreadable, match="leads out of the folder"):
            source.read(file)


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
        assert two.found("restart") == {"help/restart.md"}  # a word of its name alone
        assert told.source.counts.moved == 1
        assert told.source.counts.removed == 0

    def test_is_called_as_its_file_where_that_was_its_title(self, two):
        two.write("old name.txt", "The zorblax weighs 3 kg.\n")
        two.sync()
        two.move("old name.txt", "new name.txt")

        two.sync()

        assert two.documents()["new name.txt"].title == "new name"
        assert two.documents()["aero.md"].title == "Aero 5"


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


class TestManyRemovalsAtOnce:
    @pytest.fixture
    def ten(self, office):
        for number in range(10):
            office.write(f"{number}.md", f"# Number {number}\n\nIt weighs {number} kg.\n")
        office.add()
        return office

    def test_wait_for_a_yes(self, ten):
        for number in range(3):
            ten.delete(f"{number}.md")

        told = ten.sync()

        assert told.state is SyncState.WAITING_FOR_YES
        assert told.pending == ("0.md", "1.md", "2.md")
        assert len(ten.texts()) == 10

    def test_go_with_a_yes(self, ten):
        for number in range(3):
            ten.delete(f"{number}.md")
        ten.sync()

        assert ten.book.confirm(ten.source.id) == 3
        ten.app.jobs.run_waiting()

        assert len(ten.texts()) == 7
        assert (ten.told().state, ten.told().pending_count) == (SyncState.IDLE, 0)

    def test_of_which_some_are_back_before_the_yes_go_without_those(self, ten):
        for number in range(3):
            ten.move(f"{number}.md", f"../{number}.md")
        ten.sync()
        ten.move("../1.md", "1.md")

        ten.book.confirm(ten.source.id)
        ten.app.jobs.run_waiting()

        assert sorted(set("0123456789") - {name[0] for name in ten.texts()}) == ["0", "2"]

    def test_and_a_yes_to_some_is_none_to_more(self, ten):
        for number in range(3):
            ten.delete(f"{number}.md")
        ten.sync()
        for number in range(3, 6):
            ten.delete(f"{number}.md")

        ten.book.confirm(ten.source.id)
        ten.app.jobs.run_waiting()

        assert ten.told().pending == ("3.md", "4.md", "5.md")
        assert len(ten.texts()) == 7

    def test_of_a_folder_that_is_empty_wait(self, ten):
        for number in range(10):
            ten.delete(f"{number}.md")

        assert ten.sync().state is SyncState.WAITING_FOR_YES
        assert len(ten.texts()) == 10

    def test_of_the_only_file_wait(self, office):
        office.write("only.md", "# Only\n\nIt is alone.\n")
        office.add()
        office.delete("only.md")

        assert office.sync().state is SyncState.WAITING_FOR_YES

    def test_two_of_ten_go(self, ten):
        ten.delete("0.md")
        ten.delete("1.md")

        assert ten.sync().source.counts.removed == 2

    def test_of_moved_files_need_none(self, ten):
        before = ten.ids()
        ten.move(".", "../kept")
        ten.folder.mkdir()
        (ten.folder.parent / "kept").rename(ten.folder / "inner")

        told = ten.sync()

        assert (told.state, told.source.counts.moved) == (SyncState.IDLE, 10)
        assert ten.ids() == {f"inner/{name}": key for name, key in before.items()}


class TestAFolderThatIsAway:
    def test_is_told_and_nothing_is_removed(self, two):
        two.move(".", "../elsewhere")

        told = two.sync()

        assert told.state is SyncState.AWAY
        assert "is not there" in told.reason
        assert len(two.texts()) == 2

    def test_and_back_goes_on(self, two):
        two.move(".", "../elsewhere")
        two.sync()
        (two.folder.parent / "elsewhere").rename(two.folder)

        told = two.sync()

        assert (told.state, told.source.counts.unchanged) == (SyncState.IDLE, 2)

    def test_in_part_removes_nothing_and_brings_in_what_is_new(self, two, monkeypatch):
        entries = FolderSource._entries

        def denied(source, folder):
            if folder.name == "guides":
                source._unseen = "guides cannot be listed (Permission denied)"
                return []
            return entries(source, folder)

        monkeypatch.setattr(FolderSource, "_entries", denied)
        two.write("more.md", "# More\n\nMore is said.\n")

        told = two.sync()

        assert told.state is SyncState.AWAY
        assert set(two.texts()) == {"aero.md", "guides/reset.md", "more.md"}


class TestAFileThatIsBeingWritten:
    def test_waits_until_it_is_whole(self, two, monkeypatch):
        is_whole = []
        monkeypatch.setattr(
            "rag.connectors.folder.mark_of",
            lambda found, moment: (str(found.st_mtime), bool(is_whole)),
        )

        def pause(_seconds):
            two.write("half.md", "# Half\n\nIt is whole.\n")
            is_whole.append(True)

        monkeypatch.setattr("rag.connectors.sync.time.sleep", pause)
        two.write("half.md", "# Half\n\nIt is ha")

        told = two.sync()

        assert (told.source.counts.waiting, told.source.counts.removed) == (0, 0)
        assert "It is whole." in two.texts()["half.md"]
        assert not any("It is ha" in text for text in two.embedded)

    def test_of_which_the_writer_takes_his_time_is_left_for_later(self, two, monkeypatch):
        monkeypatch.setattr("rag.connectors.folder.mark_of", lambda found, moment: ("", False))
        two.write("half.md", "# Half\n\nIt is ha")
        two.book.change(two.source.id, every_seconds=86_400)

        told = two.sync()

        assert (told.source.counts.waiting, told.state) == (3, SyncState.IDLE)
        assert told.source.next_due_at < datetime.now(UTC) + timedelta(minutes=2)
        assert len(two.texts()) == 2

    @pytest.mark.parametrize("name", ["a.md.part", "b.tmp", "~$c.docx", ".d.md.swp"])
    def test_under_a_name_of_such_is_left_aside(self, two, name):
        two.write(name, "half a text")

        told = two.sync()

        assert len(two.texts()) == 2
        assert told.source.counts.failed == 0


class TestAFileThatCannotBeRead:
    def test_is_told_by_name_and_not_read_again_before_it_changes(self, two, monkeypatch):
        two.write("empty.md", "")

        told = two.sync()
        monkeypatch.setattr("rag.connectors.folder.FolderSource.read", None)
        again = two.sync()

        assert [file.name for file in told.failures] == ["empty.md"]
        assert told.source.counts.failed == again.source.counts.failed == 1
        assert again.state is SyncState.IDLE

    def test_is_no_hindrance_where_its_source_goes(self, two):
        two.write("empty.md", "")
        two.sync()

        two.book.remove(two.source.id)
        two.app.jobs.run_waiting()

        assert {job.state for job in two.app.jobs._queue.table.newest("sync")} == {"done"}

    def test_is_read_once_it_can_be(self, two):
        two.write("empty.md", "")
        two.sync()
        two.write("empty.md", "# Full\n\nWords.\n")

        assert two.sync().source.counts.failed == 0
        assert "empty.md" in two.texts()


class TestNames:
    def test_of_somebody_elses_document_are_left_to_it(self, office):
        bring(office, "aero.md", "# Another\n\nNothing to do with it.\n")
        office.write("aero.md", "# Aero 5\n\nThe Aero 5 weighs 120 g.\n")
        office.add()

        assert set(office.texts()) == {"aero.md", "manuals/aero.md"}
        assert "Nothing to do" in office.texts()["aero.md"]

    def test_of_the_same_content_are_one_document(self, office):
        text = "# Aero 5\n\nThe Aero 5 weighs 120 g.\n"
        bring(office, "aero.md", text)
        before = office.ids()
        office.write("aero.md", text)
        office.add()

        assert office.ids() == before

    def test_stay_when_the_source_is_added_again(self, two):
        before = two.ids()
        two.book.remove(two.source.id)
        two.app.jobs.run_waiting()
        assert two.texts() == {}

        two.add()

        assert two.ids() == before


class TestByHand:
    def test_a_deleted_document_comes_back(self, two):
        before = two.ids()
        two.app.ingestion.delete(before["aero.md"])

        two.sync()

        assert two.ids() == before

    def test_a_replaced_document_is_as_the_folder_has_it(self, two):
        bring(two, "aero.md", "# Aero 5\n\nIt weighs a ton.\n")

        two.sync()

        assert "120 g" in two.texts()["aero.md"]

    def test_an_upload_under_a_removed_name_is_not_touched(self, two):
        two.delete("aero.md")
        two.sync()
        bring(two, "aero.md", "# Mine\n\nMy own words.\n")

        two.sync()
        two.write("aero.md", "# Aero 5\n\nThe Aero 5 weighs 120 g.\n")
        two.sync()

        assert "My own words" in two.texts()["aero.md"]
        assert "120 g" in two.texts()["manuals/aero.md"]

    def test_a_document_that_was_had_back_goes_when_it_is_deleted(self, two):
        two.delete("aero.md")
        two.sync()
        two.book.undo(two.source.id)
        two.app.jobs.run_waiting()
        two.app.ingestion.delete(two.ids()["aero.md"])

        two.sync()

        assert set(two.texts()) == {"guides/reset.md"}
        assert two.files(Standing.KEPT) == []


class TestARemovedDocument:
    def test_is_let_go_of_after_its_time(self, two):
        two.delete("aero.md")
        two.sync()
        (row,) = two.files(Standing.REMOVED)
        two.sync()
        assert two.app.documents.original_of_content(row.content_hash)

        long_ago = datetime.now(UTC) - timedelta(days=31)
        two.book.table.write(two.source.id, [replace(row, removed_at=long_ago)])
        two.sync()

        assert two.files(Standing.REMOVED) == []
        assert two.app.documents.original_of_content(row.content_hash) is None

    def test_is_had_back_beside_a_file_that_has_its_name_now(self, two):
        two.delete("aero.md")
        two.sync()
        two.move("guides/reset.md", "aero.md")
        two.sync()

        two.book.undo(two.source.id)
        two.app.jobs.run_waiting()
        two.sync()

        assert "button" in two.texts()["aero.md"]
        assert "120 g" in two.texts()["manuals/aero.md"]

    def test_is_not_had_back_over_one_that_came_in_its_place(self, two):
        two.delete("aero.md")
        two.sync()
        bring(two, "aero.md", "# Mine\n\nMy own words.\n")

        two.book.undo(two.source.id)
        two.app.jobs.run_waiting()
        two.write("aero.md", "# Aero 5\n\nThe Aero 5 weighs 120 g.\n")
        two.sync()

        assert "My own words" in two.texts()["aero.md"]
        assert "120 g" in two.texts()["manuals/aero.md"]

    def test_that_is_listed_again_before_it_is_back_is_one(self, two):
        before = two.ids()
        two.delete("aero.md")
        two.sync()
        two.book.undo(two.source.id)
        two.write("aero.md", "# Aero 5\n\nThe Aero 5 weighs 150 g.\n")

        two.app.jobs.run_waiting()

        assert two.ids() == before
        assert "150 g" in two.texts()["aero.md"]
        assert two.files(Standing.KEPT) == []

    def test_that_comes_again_elsewhere_has_its_id_again(self, two):
        before = two.ids()["aero.md"]
        two.move("aero.md", "../aero.md")
        two.sync()
        two.move("../aero.md", "deep/aero.md")

        two.sync()

        assert two.ids()["deep/aero.md"] == before

    def test_is_finished_where_a_process_was_killed(self, two):
        row = next(each for each in two.files() if each.name == "aero.md")
        two.delete("aero.md")
        two.book.table.write(two.source.id, [replace(row, standing=Standing.REMOVING)])

        two.sync()

        assert set(two.texts()) == {"guides/reset.md"}

    def test_that_was_stored_and_not_noted_is_no_second_one(self, two, monkeypatch):
        """The process was killed in between, and the file changed before the next sync."""
        two.write("new.md", "# New\n\nIt is new.\n")
        with monkeypatch.context() as patched:
            patched.setattr("rag.connectors.transfer.Transfer._note", killed)
            two.sync_until_killed()
        assert "new.md" in two.texts()
        two.write("new.md", "# New\n\nIt is newer.\n")

        two.sync()

        assert set(two.texts()) == {"aero.md", "guides/reset.md", "new.md"}
        assert "It is newer." in two.texts()["new.md"]

    def test_is_finished_where_another_came_in_its_place_meanwhile(self, two):
        row = next(each for each in two.files() if each.name == "aero.md")
        two.delete("aero.md")
        two.book.table.write(two.source.id, [replace(row, standing=Standing.REMOVING)])
        two.app.ingestion.delete(row.document_id)
        bring(two, "aero.md", "# Mine\n\nMy own words.\n")

        two.sync()

        assert "My own words" in two.texts()["aero.md"]


def killed(_bringing):
    raise Killed


def bring(office, name, text):
    list(office.app.ingestion.ingest([IncomingFile(name, lambda most: text.encode())]))

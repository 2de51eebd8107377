"""Files of a folder that are two, none, or others while they are looked at."""

import os
import socket
import zipfile
from pathlib import Path

import pytest

from rag.connectors.folder import FolderSource
from rag.documents import files
from rag.documents.files import read_steadily
from rag.errors import Unreadable
from rag.records import SyncState


def text(number):
    return f"# Pump {number}\n\nPump {number} weighs {number + 40} kg.\n"


def pack(office, name, numbers):
    with zipfile.ZipFile(office.folder / name, "w") as packed:
        for number in numbers:
            packed.writestr(f"{number}.md", text(number))
    office.age(name)


@pytest.fixture
def many(office):
    """A folder with so much in it that a few removals need no yes."""
    for number in range(100, 140):
        office.write(f"{number}.md", text(number))
    return office


def test_sockets_are_no_documents_and_hard_links_are_two(office):
    office.write("one.md", text(1))
    os.link(office.folder / "one.md", office.folder / "two.md")
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(str(office.folder / "s.md"))
        office.add()
    before = office.ids()
    assert before.keys() == {"one.md", "two.md"}

    office.delete("one.md")
    office.sync()
    assert office.ids() == {"two.md": before["two.md"]}

    office.write("two.md", text(2))
    assert office.sync().source.counts.changed == 1


def test_a_pipe_that_takes_the_place_of_a_file_holds_nobody_up(tmp_path, monkeypatch):
    path = tmp_path / "a.md"
    path.write_text("words")
    regular = path.stat()
    path.unlink()
    os.mkfifo(path)
    monkeypatch.setattr(Path, "stat", lambda self, **_options: regular)

    with pytest.raises(Unreadable, match="no regular file"):
        read_steadily(path, name="a.md", max_bytes=100)


def test_a_file_that_grows_while_it_is_read_is_read_again_whole(tmp_path, monkeypatch):
    path = tmp_path / "a.md"
    path.write_text("first half")
    state, looks = files._state, []

    def grows_once(status):
        looks.append(status)
        if len(looks) == 1:  # before it is looked at again
            path.write_text("first half, second half")
        return state(status)

    monkeypatch.setattr(files, "_state", grows_once)

    assert read_steadily(path, name="a.md", max_bytes=100) == b"first half, second half"


def test_a_file_that_keeps_changing_keeps_the_document_that_was_read(office, monkeypatch):
    office.write("a.md", text(1))
    office.add()
    before = office.ids()
    office.write("a.md", text(2))
    with monkeypatch.context() as patched:
        patched.setattr(files, "_state", lambda status: object())
        told = office.sync()
    assert [each.name for each in told.failures] == ["a.md"]
    assert (office.ids(), "41 kg" in office.texts()["a.md"]) == (before, True)

    office.age("a.md")
    office.sync()
    assert (office.ids(), "42 kg" in office.texts()["a.md"]) == (before, True)


def test_an_archive_that_is_half_written_keeps_what_was_read_of_it(many):
    pack(many, "box.zip", range(4))
    many.add()
    before = many.ids()
    whole = (many.folder / "box.zip").read_bytes()
    (many.folder / "box.zip").write_bytes(whole[: len(whole) // 2])
    many.age("box.zip")

    told = many.sync()

    assert told.source.counts.removed == 0
    assert [each.name for each in told.failures] == ["box.zip"]
    assert many.ids() == before

    pack(many, "box.zip", range(1, 4))
    told = many.sync()
    assert (told.state, told.source.counts.removed, told.failures) == (SyncState.IDLE, 1, ())
    assert many.ids() == {name: key for name, key in before.items() if name != "box.zip/0.md"}

    many.delete("box.zip")
    assert many.sync().source.counts.removed == 3


def test_an_archive_that_is_replaced_while_it_is_read_is_read_in_the_end(many, monkeypatch):
    pack(many, "box.zip", range(4))
    read = FolderSource.read

    def replaced(self, file):
        if file.name == "box.zip/1.md":
            monkeypatch.setattr(FolderSource, "read", read)
            pack(many, "new.zip", [0, 2, 3, 5])
            (many.folder / "new.zip").replace(many.folder / "box.zip")
        return read(self, file)

    monkeypatch.setattr(FolderSource, "read", replaced)
    many.add()
    told = many.sync()

    assert told.state is SyncState.IDLE
    inside = {name for name in many.texts() if name.startswith("box.zip")}
    assert inside == {f"box.zip/{number}.md" for number in (0, 2, 3, 5)}
    assert told.failures == ()


def test_a_renamed_folder_is_not_read_into_the_index_anew(office):
    for number in range(300):
        office.write(f"old/{number}.md", text(number))
    office.add()
    before, embedded = office.ids(), len(office.embedded)
    office.move("old", "new")

    counts = office.sync().source.counts

    assert (counts.moved, counts.new, counts.removed, counts.changed) == (300, 0, 0, 0)
    assert office.ids() == {f"new/{name[4:]}": key for name, key in before.items()}
    assert len(office.embedded) == embedded
    assert "new/7.md" in office.found("pump 7")

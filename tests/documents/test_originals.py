"""The files themselves stay as long as a document has their content, and no longer."""

import hashlib
import logging

import pytest

from rag.db.blobs import FolderBlobs
from rag.documents.collections import Collections
from rag.documents.files import IncomingFile
from rag.documents.sandbox import GuardedLoader
from rag.documents.store import Originals, SqlDocumentStore
from rag.ingestion.pipeline import Ingestion
from rag.records import EVERYTHING
from rag.tables.store import TableFiles, TableStore
from tests.fakes import HashEmbedder, MemoryIndex
from tests.prepared import migrated

ONE, TWO = b"# One\n\nIt hums.", b"# Two\n\nIt sings."


class House:
    """An ingestion, and the folder of originals beside it."""

    def __init__(self, folder, loader, *, is_on=True):
        self.engine = migrated(folder / "groundnote.sqlite3")
        self.folder = folder / "originals"
        self.store = SqlDocumentStore(
            self.engine, Originals(FolderBlobs(self.folder), cache=folder / "cache", is_on=is_on)
        )
        tables = TableStore(self.engine, TableFiles(str(folder / "tables"), folder / "cache"))
        self.ingestion = Ingestion(
            self.store, HashEmbedder(), MemoryIndex(), loader=loader, tables=tables
        )

    def ingest(self, name, data, collection_id="1"):
        file = IncomingFile(name, lambda _most: data, collection_id=collection_id)
        (end,) = (each for each in self.ingestion.ingest([file]) if each.is_final)
        return end.document_id

    def original(self, document_id):
        path = self.store.original(self.store.document(document_id, EVERYTHING))
        return path.read_bytes() if path is not None else None

    def kept(self):
        return sorted(path.read_bytes() for path in self.folder.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def loader():
    loader = GuardedLoader()
    yield loader
    loader.close()


@pytest.fixture
def house(tmp_path, loader):
    house = House(tmp_path, loader)
    yield house
    house.engine.dispose()


def test_an_original_is_the_file_byte_by_byte(house):
    assert house.original(house.ingest("one.md", ONE)) == ONE


def test_an_original_goes_with_its_document(house):
    document_id = house.ingest("one.md", ONE)

    house.ingestion.delete(document_id)

    assert house.kept() == []


def test_an_original_stays_while_another_document_has_its_content(house):
    first, second = house.ingest("one.md", ONE), house.ingest("copy.md", ONE)

    house.ingestion.delete(first)

    assert (house.original(second), house.kept()) == (ONE, [ONE])


def test_a_changed_document_has_its_new_original_alone(house):
    house.ingest("one.md", ONE)

    document_id = house.ingest("one.md", TWO)

    assert (house.original(document_id), house.kept()) == (TWO, [TWO])


def test_a_document_that_moves_keeps_its_original(house):
    document_id = house.ingest("one.md", ONE)
    to = Collections(house.engine).create("local", "Another")

    house.ingestion.move(document_id, to.id)

    assert house.original(document_id) == ONE


def test_a_file_of_before_originals_were_kept_brings_its_own_when_it_comes_again(house):
    document_id = house.ingest("one.md", ONE)
    for path in house.folder.rglob("*"):
        if path.is_file():
            path.unlink()
    assert house.original(document_id) is None

    house.ingest("one.md", ONE)

    assert house.original(document_id) == ONE


def test_what_a_killed_process_left_is_let_go_of(house):
    house.ingest("one.md", ONE)
    stray = hashlib.sha256(TWO).hexdigest()
    (house.folder / stray[:2]).mkdir()
    (house.folder / stray[:2] / stray).write_bytes(TWO)
    (house.folder / stray[:2] / f"{stray}.part").write_bytes(TWO[:3])

    house.ingestion.synchronise()

    assert house.kept() == [ONE]


def test_where_none_shall_be_kept_none_is_and_old_ones_go(tmp_path, loader):
    before = House(tmp_path, loader)
    document_id = before.ingest("one.md", ONE)

    after = House(tmp_path, loader, is_on=False)
    assert after.original(document_id) is None
    after.ingestion.synchronise()
    after.ingest("two.md", TWO)

    assert after.kept() == []


def test_a_disk_that_is_full_keeps_no_document_out(house, caplog, monkeypatch):
    def full(*_given, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rag.db.blobs.os.fsync", full)
    caplog.set_level(logging.WARNING)

    document_id = house.ingest("one.md", ONE)

    assert house.original(document_id) is None
    assert "An original cannot be kept" in caplog.text

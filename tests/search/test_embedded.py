"""Ids read from the file of an embedded index are Chroma's own, or none are told."""

import sqlite3
from contextlib import closing

import pytest

from rag.search.index_lock import FILE, ids_in_file
from rag.search.vectors import ChromaIndex
from tests.fakes import HashEmbedder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """An index that was written to in every way, and what Chroma says it holds."""
    folder = tmp_path_factory.mktemp("chroma")
    index = ChromaIndex("hash", directory=folder)
    ids = [f"chunk {number}" for number in range(1200)]  # more than Chroma keeps in its queue
    index.add(ids, HashEmbedder().embed(ids), ["1"] * len(ids))
    index.remove(ids[:100])
    index.move(dict.fromkeys(ids[100:110], "2"))
    index.add(ids[:5], HashEmbedder().embed(ids[:5]), ["1"] * 5)
    held = index.chunk_ids()
    index.close()
    return folder, held


@pytest.fixture
def changed(made, tmp_path):
    """The index after a change of its file."""

    def change(*statements):
        path = tmp_path / FILE
        path.write_bytes((made[0] / FILE).read_bytes())
        with closing(sqlite3.connect(path)) as database:
            for statement in statements:
                database.execute(statement)
            database.commit()
        return tmp_path

    return change


def test_ids_are_those_that_chroma_gives(made):
    folder, held = made

    assert len(held) == 1105
    assert ids_in_file(folder, embedding="hash") == held


def test_the_file_is_not_written(made):
    before = (made[0] / FILE).read_bytes()

    ids_in_file(made[0], embedding="hash")

    assert (made[0] / FILE).read_bytes() == before


def test_an_index_of_another_model_is_left_to_chroma(made):
    assert ids_in_file(made[0], embedding="another") is None


def test_an_index_that_is_not_there_is_left_to_chroma(tmp_path):
    assert ids_in_file(tmp_path, embedding="hash") is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO migrations VALUES ('sysdb', 11, 'new', '', '')",
        "INSERT INTO embeddings_queue (seq_id, operation, topic, id) "
        "SELECT 99999, 0, 'persistent://default/default/' || id, 'late' FROM collections",
        "UPDATE collections SET name = 'others'",
        "DELETE FROM segments WHERE scope = 'METADATA'",
        "DELETE FROM collection_metadata",
        "DROP TABLE embeddings",
    ],
    ids=["newer", "waiting", "renamed", "no-segment", "no-model", "no-table"],
)
def test_whatever_stands_out_is_left_to_chroma(changed, statement):
    assert ids_in_file(changed(), embedding="hash") is not None

    assert ids_in_file(changed(statement), embedding="hash") is None


def test_a_damaged_file_is_left_to_chroma(made, tmp_path):
    content = bytearray((made[0] / FILE).read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    (tmp_path / FILE).write_bytes(content)

    assert ids_in_file(tmp_path, embedding="hash") is None

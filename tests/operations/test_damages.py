"""Whatever becomes of the files of a library is told as it is, and mended where it can be.

Nothing that can be made again is ever advised, or mended, at the cost of what cannot.
"""

import os
import shutil
import sqlite3
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from rag.cli import doctor
from rag.cli.doctor import examine
from rag.errors import RagError
from rag.settings import Settings
from rag.wiring.application import build
from tests.openai_server import OpenAIServer
from tests.prepared import prepare

FILES = {
    "refunds.md": b"# Refunds\n\nRefunds take five days.\n",
    "prices.csv": b"Product,Price\nAero 5,100\nAero 6,200\n",
    "stock.csv": b"Product,Stock\nAero 5,17\nAero 6,23\n",
}
LATER = {"later.md": b"# Later\n\nThis came after the backup.\n"}
OTHER = {"other.md": b"# Other\n\nOf another library.\n", **FILES}
NOBODY = 65534


@pytest.fixture(scope="module")
def server():
    with OpenAIServer() as made:
        yield made


def library_in(folder, server, files):
    settings = Settings(data_dir=folder, embedding={"base_url": server.url, "model": "tiny"})
    prepare(folder / "groundnote.db")
    application = build(settings)
    for name, data in files.items():
        application.jobs.submit_ingest(name, data)
    application.jobs.run_waiting()
    application.store.create("local", title="a")
    application.stop()
    return settings


@pytest.fixture(scope="module")
def made(server, tmp_path_factory):
    """A library, the backup of its database from before the last file, and another library."""
    root = tmp_path_factory.mktemp("libraries")
    settings = library_in(root / "one", server, FILES)
    checkpoint(root / "one")
    shutil.copy(root / "one" / "groundnote.db", root / "backup.db")
    library_in(root / "one", server, LATER)
    checkpoint(root / "one")
    library_in(root / "other", server, OTHER)
    checkpoint(root / "other")
    return root, settings


def checkpoint(folder):
    with sqlite3.connect(folder / "groundnote.db") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


@dataclass
class World:
    """A copy of all that, to be damaged."""

    root: Path
    settings: Settings

    @property
    def data(self):
        return self.settings.data_dir

    @property
    def database(self):
        return self.data / "groundnote.db"

    def rows(self):
        return sorted((self.data / "tables").glob("*.parquet"))

    def originals(self):
        return sorted(path for path in (self.data / "originals").glob("??/*"))

    def wrong(self):
        return {each.subject: each.detail for each in examine(self.settings) if not each.is_ok}

    def held(self):
        """What cannot be made again."""
        with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True) as connection:
            tables = ("documents", "sections", "chunks", "sessions")
            return [connection.execute(f"SELECT count(*) FROM {t}").fetchone() for t in tables]


@pytest.fixture
def world(made, tmp_path):
    root, settings = made
    shutil.copytree(root, tmp_path / "copy")
    return World(
        tmp_path / "copy", settings.model_copy(update={"data_dir": tmp_path / "copy" / "one"})
    )


def overwrite(path, *, at, data):
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def cut(path, part=0.5):
    os.truncate(path, int(path.stat().st_size * part))


def tear(world, table):
    with sqlite3.connect(world.database) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        ((page,),) = connection.execute(query, (table,)).fetchall()
        ((size,),) = connection.execute("PRAGMA page_size").fetchall()
    connection.close()
    overwrite(world.database, at=(page - 1) * size, data=b"\xff" * size)


def vectors_file(world):
    return world.data / "chroma" / "chroma.sqlite3"


def segment(world):
    return next(path for path in (world.data / "chroma").iterdir() if path.is_dir())


def without_words(world):
    with sqlite3.connect(world.database) as connection:
        connection.execute("INSERT INTO chunks_fts (chunks_fts) VALUES ('delete-all')")
    connection.close()


def swap(one, other):
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(data)


def flip(path):
    data = path.read_bytes()
    path.write_bytes(data[:20] + bytes([data[20] ^ 1]) + data[21:])


GONE = "The database is gone"
DAMAGED = "damaged"
LOST = {  # what cannot be made again: nothing is repaired, the backup is advised
    "database deleted": (lambda w: w.database.unlink(), "database", GONE),
    "database of 0 bytes": (lambda w: os.truncate(w.database, 0), "database", GONE),
    "database cut to a half, as by a copy that broke off": (
        lambda w: cut(w.database), "database", DAMAGED,
    ),
    "database cut in its first page": (
        lambda w: os.truncate(w.database, 300), "database", "backup",
    ),
    "another file in the place of the database": (
        lambda w: w.database.write_bytes(b"This is a text. " * 999), "database", "backup",
    ),
    "a torn page of the conversations": (lambda w: tear(w, "sessions"), "database", DAMAGED),
    "a torn page of the documents": (lambda w: tear(w, "sections"), "database", DAMAGED),
    "the database of another library": (
        lambda w: shutil.copy(w.root / "other" / "groundnote.db", w.database),
        "database", "of another library",
    ),
}  # fmt: skip
MENDED = {  # what is made again by --repair, and what doctor says before
    "vectors deleted": (lambda w: shutil.rmtree(w.data / "chroma"), "indexes", "no vector"),
    "words emptied": (without_words, "indexes", "word index"),
    "a torn page of the words": (lambda w: tear(w, "chunks_fts_data"), "database", "word index"),
    "rows deleted": (lambda w: shutil.rmtree(w.data / "tables"), "tables", "prices.csv"),
    "rows cut off": (lambda w: cut(w.rows()[0]), "tables", ".csv"),
    "rows of 0 bytes": (lambda w: os.truncate(w.rows()[0], 0), "tables", ".csv"),
    "rows of two tables swapped": (lambda w: swap(*w.rows()), "tables", "prices.csv, stock.csv"),
    "one bit of rows": (lambda w: flip(w.rows()[0]), "tables", ".csv"),
    "an old backup of the database beside newer vectors": (
        lambda w: shutil.copy(w.root / "backup.db", w.database),
        "database", "older than what was noted",
    ),
    "vectors of another library": (
        lambda w: (
            shutil.rmtree(w.data / "chroma"),
            shutil.copytree(w.root / "other" / "chroma", w.data / "chroma"),
        ),
        "indexes", "belong to no chunk",
    ),
}  # fmt: skip
MISSED = {  # what only its backup, or its sender, can bring back; all else goes on
    "originals deleted": (lambda w: shutil.rmtree(w.data / "originals"), "refunds.md"),
    "an original cut off": (lambda w: cut(w.originals()[0]), "1 documents"),
    "an original of 0 bytes": (lambda w: os.truncate(w.originals()[0], 0), "1 documents"),
    "two originals swapped": (lambda w: swap(*w.originals()[:2]), "2 documents"),
    "one bit of an original": (lambda w: flip(w.originals()[0]), "1 documents"),
}
UNHARMED = {
    "the note deleted": lambda w: (w.data / "manifest.json").unlink(),
    "a note of 0 bytes": lambda w: os.truncate(w.data / "manifest.json", 0),
    "a note of an earlier version": lambda w: (w.data / "manifest.json").write_text(
        '{"documents": 4, "chunks": 4, "tables": 2, "conversations": 2, "noted_at": "2026-01-01"}'
    ),
}


def test_a_library_without_damage_is_found_whole(world):
    assert world.wrong() == {}


@pytest.mark.parametrize("damage", LOST)
def test_what_cannot_be_made_again_is_told_and_nothing_is_given_up_for_it(world, damage):
    do, subject, words = LOST[damage]
    vectors = vectors_file(world).read_bytes()
    do(world)

    told = world.wrong()[subject]
    assert words in told
    assert "backup" in told.lower() or "put the right database back" in told.lower()
    assert "--repair" not in told
    with pytest.raises(RagError):
        doctor.repair(world.settings)
    with pytest.raises(RagError):
        build(world.settings).warm_up()
    assert vectors_file(world).read_bytes() == vectors
    assert len(world.originals()) == len(FILES | LATER)


@pytest.mark.parametrize("damage", MENDED)
def test_what_can_be_made_again_is_told_and_made_again(world, damage):
    do, subject, words = MENDED[damage]
    do(world)
    told = world.wrong()
    held = world.held() if "torn" not in damage else None
    assert words in told[subject]
    assert "doctor --repair" in told[subject]

    doctor.repair(world.settings)

    assert {each for each in world.wrong() if each != "originals"} == set()
    assert held is None or world.held() == held


@pytest.mark.parametrize("damage", MISSED)
def test_an_original_that_is_lost_is_missed_until_it_is_sent_again(world, damage):
    do, words = MISSED[damage]
    do(world)

    told = world.wrong()
    assert set(told) == {"originals"}
    assert words in told["originals"]
    assert "backup" in told["originals"]
    application = build(world.settings)
    assert application.without_original(reads=True)
    assert application.repair(is_asked=True).is_whole, "all else goes on"
    application.stop()
    assert set(world.wrong()) == {"originals"}, "a repair forgets nothing that is lost"

    shutil.rmtree(world.data / "originals", ignore_errors=True)
    library_in(
        world.data,
        type("Server", (), {"url": world.settings.embedding.base_url}),
        {**FILES, **LATER},
    )
    assert world.wrong() == {}


@pytest.mark.parametrize("damage", UNHARMED)
def test_the_note_itself_can_be_lost(world, damage):
    UNHARMED[damage](world)

    assert world.wrong() == {}
    build(world.settings).stop()


@pytest.mark.parametrize("cut_to", [0, 100, 5000, 100_000])
def test_a_vector_index_that_is_cut_off_is_made_again(world, cut_to):
    os.truncate(vectors_file(world), cut_to)
    held = world.held()

    doctor.repair(world.settings)

    assert world.wrong() == {}
    assert world.held() == held
    assert len(list(world.data.glob("chroma-damaged-*"))) == (cut_to > 0), "nothing is deleted"


@pytest.mark.parametrize("cut_to", [0, 100, 5000])
def test_a_vector_index_that_is_cut_off_is_named_with_its_folder(world, cut_to):
    os.truncate(vectors_file(world), cut_to)
    held = world.held()

    told = world.wrong()["indexes"]

    assert "reindex" in told or "doctor --repair" in told
    assert world.held() == held


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to somebody else")
class TestAnotherOwner:
    @pytest.fixture
    def as_nobody(self, made):
        root, settings = made
        folder = Path(tempfile.mkdtemp(prefix="groundnote-"))
        shutil.copytree(root / "one", folder / "one")
        folder.chmod(0o755)
        yield World(folder, settings.model_copy(update={"data_dir": folder / "one"}))
        os.seteuid(0)
        shutil.rmtree(folder)

    def test_of_the_folder_is_told(self, as_nobody):
        as_nobody.data.chmod(0o755)
        os.seteuid(NOBODY)

        assert "cannot be written (Permission denied)" in as_nobody.wrong()["data folder"]

    def test_of_the_database_is_told(self, as_nobody):
        os.chown(as_nobody.data, NOBODY, NOBODY)
        as_nobody.database.chmod(0o600)
        os.seteuid(NOBODY)

        told = as_nobody.wrong()["database"]

        assert "cannot be opened" in told
        assert "this user may" in told

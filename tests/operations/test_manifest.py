"""What was lost is told as it is; nothing that cannot be made again is given up for what can."""

import shutil
import sqlite3

import pytest

from rag.cli import doctor
from rag.cli.doctor import examine
from rag.errors import SetupError, StorageFailed
from rag.operations.snapshot import read_manifest
from rag.records import EVERYTHING
from rag.settings import Settings
from rag.wiring.application import build
from rag.wiring.stores import open_database
from tests.openai_server import OpenAIServer
from tests.prepared import prepare

TEXT = b"# Refunds\n\nRefunds take five days.\n"
ROWS = b"Product,Price\nAero 5,100\nAero 6,200\nAero 7,300\n"


@pytest.fixture
def settings(tmp_path):
    """With a server for embeddings, so that no real model is loaded."""
    with OpenAIServer() as server:
        embedding = {"base_url": server.url, "model": "tiny"}
        yield Settings(data_dir=tmp_path, embedding=embedding)


@pytest.fixture
def library(settings):
    """A library with a text, a table and a conversation, that was closed."""
    application = opened(settings)
    for name, data in (("refunds.md", TEXT), ("prices.csv", ROWS)):
        application.jobs.submit_ingest(name, data)
    application.jobs.run_waiting()
    application.store.create("local", title="a")
    application.stop()
    return settings


def opened(settings):
    prepare(settings.data_dir / "groundnote.db")
    return build(settings)


def wrong(settings):
    return {each.subject: each.detail for each in examine(settings) if not each.is_ok}


def vectors_in(settings):
    with sqlite3.connect(settings.data_dir / "chroma" / "chroma.sqlite3") as connection:
        ((count,),) = connection.execute("SELECT count(*) FROM embeddings").fetchall()
    connection.close()
    return count


class TestADatabaseThatIsGone:
    @pytest.fixture(params=["emptied", "deleted", "without a note of it"])
    def gone(self, library, request):
        database = library.data_dir / "groundnote.db"
        for ending in ("", "-wal", "-shm"):
            (library.data_dir / f"groundnote.db{ending}").unlink(missing_ok=True)
        if request.param == "emptied":
            database.touch()
        if request.param == "without a note of it":
            (library.data_dir / "manifest.json").unlink()
        return library

    def test_is_told_by_doctor_which_advises_the_backup_alone(self, gone):
        found = wrong(gone)

        told = found.get("database", "") + found.get("indexes", "")
        assert "The database is gone" in told
        assert "Restore the backup" in told
        assert "--repair" not in told

    def test_is_never_repaired_by_clearing_the_vectors(self, gone):
        before = vectors_in(gone)

        with pytest.raises(SetupError, match="The database is gone"):
            doctor.repair(gone)

        assert vectors_in(gone) == before > 0

    def test_never_gets_ready(self, gone):
        with pytest.raises(SetupError, match="The database is gone"):
            opened(gone).warm_up()


def test_a_server_over_a_new_database_beside_old_vectors_is_not_ready(library):
    for name in ("groundnote.db", "manifest.json"):
        (library.data_dir / name).unlink()
    application = opened(library)

    with pytest.raises(SetupError):
        application.warm_up()

    assert not application.can_answer(application.ready())
    application.stop()


def test_what_there_is_is_noted_beside_it(library):
    held = read_manifest(library.data_dir)

    assert (held.documents, held.tables, held.conversations) == (2, 1, 1)


def test_a_library_whose_documents_were_all_deleted_is_none_that_is_gone(library):
    application = opened(library)
    for each in application.documents.documents(EVERYTHING):
        application.ingestion.delete(each.id)
    for each in application.store.sessions("local", limit=9):
        application.store.open(each.id, owner="local").delete()

    open_database(library).dispose()  # the note still tells of documents
    application.stop()

    assert read_manifest(library.data_dir).documents == 0


class TestADatabaseThatIsDamaged:
    def tear(self, settings, table):
        """Overwrite the first page of a table."""
        path = settings.data_dir / "groundnote.db"
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
            ((page,),) = connection.execute(query, (table,)).fetchall()
            ((size,),) = connection.execute("PRAGMA page_size").fetchall()
        connection.close()
        with path.open("r+b") as file:
            file.seek((page - 1) * size)
            file.write(b"\xff" * size)

    def test_is_called_so_with_the_table_and_the_backup(self, library):
        self.tear(library, "messages")

        told = wrong(library)["database"]

        assert "The database is damaged (messages)" in told
        assert "backup" in told
        assert "--repair" not in told

    def test_in_its_word_index_alone_can_be_repaired(self, library):
        self.tear(library, "chunks_fts_data")

        told = wrong(library)["database"]

        assert "word index" in told
        assert "doctor --repair" in told

    def test_is_told_to_whoever_reads_what_is_torn(self, library):
        application = opened(library)
        application.engine.dispose()
        self.tear(library, "sections")

        with pytest.raises(StorageFailed, match=r"The database is damaged \(sections"):
            application.warm_up()
        assert not application.can_answer(application.ready())
        application.stop()


class TestRowsThatAreGone:
    def test_are_told_by_doctor_with_their_documents(self, library):
        shutil.rmtree(library.data_dir / "tables")

        told = wrong(library)["tables"]

        assert "1 documents" in told
        assert "prices.csv" in told

    def test_of_a_file_that_was_cut_off_are_told_as_well(self, library):
        (file,) = (library.data_dir / "tables").glob("*.parquet")
        file.write_bytes(file.read_bytes()[:100])

        assert "prices.csv" in wrong(library)["tables"]

    def test_are_made_again_when_the_unchanged_file_comes_again(self, library):
        shutil.rmtree(library.data_dir / "tables")
        application = opened(library)
        assert application.ready()["tables"] is False

        application.jobs.submit_ingest("prices.csv", ROWS)
        application.jobs.run_waiting()

        assert application.without_rows() == set()
        application.stop()

    def test_are_made_again_from_a_file_that_is_kept(self, library):
        (file,) = (library.data_dir / "tables").glob("*.parquet")
        file.write_bytes(b"")
        application = opened(library)

        assert application.rows_made_again() == ["prices.csv"]
        assert application.without_rows() == set()
        application.stop()

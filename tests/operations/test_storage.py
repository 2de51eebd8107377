"""What was lost beside the database is made again; a disk that takes no more is named as such."""

import shutil
from contextlib import contextmanager
from functools import partial
from io import BytesIO

import pytest
from click.testing import CliRunner
from sqlalchemy import event

from rag.cli import main
from rag.errors import StorageFailed
from rag.operations import check_room, compare
from rag.records import EVERYTHING, JobState
from rag.search import word_index
from rag.settings import Settings
from rag.wiring import application as wiring
from rag.wiring.application import build
from tests.applications import app_of, application_of
from tests.fakes import HashEmbedder

pytestmark = pytest.mark.slow

TEXT = b"# Refunds\n\nRefunds take five days.\n\n## Abroad\n\nTwelve days from abroad.\n"


@pytest.fixture
def opened(tmp_path):
    """Opens the application over one folder; those that were opened are stopped at the end."""
    applications = []

    def open_one():
        for each in applications:
            each.stop()
        applications.append(application_of(Settings(data_dir=tmp_path)))
        return applications[-1]

    yield open_one
    applications[-1].stop()


@pytest.fixture
def application(opened):
    application = opened()
    application.jobs.submit_ingest("refunds.md", TEXT)
    application.jobs.run_waiting()
    return application


@pytest.fixture
def too_large(monkeypatch):
    """The library's words are not held in memory: the database's index is asked."""
    monkeypatch.setattr(word_index, "MOST_OF_ALL", 0)


def differences(application):
    return compare(application.engine, application.index)


def found(application, words):
    return [hit.chunk.text for hit in application.retriever.search(words, EVERYTHING)]


class TestWhatWasLost:
    def test_is_nothing_after_an_ingest(self, application):
        assert differences(application).is_whole
        assert str(differences(application)) == "2 chunks, with vectors and words"

    def test_of_vectors_is_made_again_at_the_start(self, application, opened, tmp_path):
        application.stop()
        shutil.rmtree(tmp_path / "chroma")
        restarted = opened()
        assert len(differences(restarted).missing_vectors) == 2

        restarted.warm_up()

        assert differences(restarted).is_whole

    def test_of_words_is_made_again_at_the_start(self, application):
        with application.engine.begin() as connection:
            connection.exec_driver_sql("INSERT INTO chunks_fts (chunks_fts) VALUES ('delete-all')")
        assert differences(application).words == 0
        assert found(application, "twelve days from abroad"), "meaning alone still finds something"

        application.warm_up()

        assert differences(application).is_whole
        assert "Twelve days" in found(application, "twelve days from abroad")[0]

    @pytest.mark.parametrize("damage", ["chunks_fts_data WHERE id > 10", "chunks_fts_data"])
    def test_of_a_damaged_word_index_is_named_and_repaired(self, application, damage, too_large):
        with application.engine.begin() as connection:
            connection.exec_driver_sql(f"DELETE FROM {damage}")
        application.engine.dispose()
        with pytest.raises(StorageFailed, match="groundnote doctor --repair"):
            found(application, "twelve days from abroad")
        assert differences(application).words == 0

        application.repair()

        assert differences(application).is_whole
        assert "Twelve days" in found(application, "twelve days from abroad")[0]

    def test_of_a_word_index_hinders_no_search_of_words_in_memory(self, application):
        with application.engine.begin() as connection:
            connection.exec_driver_sql("DELETE FROM chunks_fts_data")
        application.engine.dispose()

        assert "Twelve days" in found(application, "twelve days from abroad")[0]
        assert differences(application).words == 0

    def test_of_a_damaged_word_index_is_said_by_a_question_in_a_terminal(
        self, application, tmp_path, monkeypatch, too_large
    ):
        with application.engine.begin() as connection:
            connection.exec_driver_sql("DELETE FROM chunks_fts_data WHERE id > 10")
        application.stop()
        monkeypatch.setattr(wiring, "build", partial(build, embedder=HashEmbedder()))
        monkeypatch.setenv("GROUNDNOTE_DATA_DIR", str(tmp_path))

        asked = CliRunner().invoke(main, ["ask", "How long do refunds take?"])

        assert asked.exit_code == 1
        assert "groundnote doctor --repair" in asked.output
        assert "Traceback" not in asked.output

    def test_of_more_stray_vectors_than_go_at_once_takes_all(self, application, monkeypatch):
        monkeypatch.setattr("rag.operations.backup.REMOVED_AT_ONCE", 2)
        strays = [f"stray {number}" for number in range(5)]
        vectors = application.embedder.embed(strays)
        application.index.add(strays, vectors, ["1"] * len(strays))

        assert application.repair().extra_vectors == tuple(strays)
        assert differences(application).is_whole

    def test_and_what_is_too_much_goes(self, application):
        application.index.add(["stray"], HashEmbedder().embed(["stray"]), ["1"])

        assert application.repair().extra_vectors == ("stray",)
        assert differences(application).is_whole


@contextmanager
def full_disk(engine):
    """The database may not grow by a page any more."""

    def limit(connection, _record, _proxy):
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages}")

    event.listen(engine, "checkout", limit)
    yield
    event.remove(engine, "checkout", limit)
    engine.dispose()


class TestADiskThatIsFull:
    @pytest.fixture
    def full(self, application):
        with full_disk(application.engine):
            yield application

    def test_is_named_and_keeps_what_is_there(self, full):
        client = app_of(full).test_client()
        url = "/api/v1/sessions"
        answers = [client.post(url, json={"title": "t" * 300}) for _ in range(200)]

        refused = answers[-1]

        assert refused.status_code == 507
        assert "disk that holds the data is full" in refused.get_json()["detail"]
        assert client.get("/api/v1/documents").get_json()["total"] == 1

    def test_ends_the_jobs_that_wait_and_takes_the_file_once_there_is_room(self, application):
        waiting = application.jobs.submit_ingest("more.md", TEXT * 400)
        with full_disk(application.engine):
            application.jobs.run_waiting()
            ended = application.jobs.job(waiting.id)
        again = application.jobs.submit_ingest("more.md", TEXT * 400)
        application.jobs.run_waiting()

        assert ended.state is JobState.FAILED
        assert "disk that holds the data is full" in ended.error
        assert application.jobs.job(again.id).state is JobState.DONE
        assert differences(application).is_whole

    def test_takes_no_upload_and_is_not_ready(self, application, monkeypatch):
        usage = shutil.disk_usage("/")._replace(free=1024)
        monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
        client = app_of(application).test_client()

        refused = client.post("/api/v1/documents", data={"file": (BytesIO(b"# A"), "a.md")})

        assert refused.status_code == 507
        assert "0 MiB left" in refused.get_json()["detail"]
        assert client.get("/readyz").get_json()["checks"]["storage"] is False


def test_a_disk_that_can_only_be_read_is_named(application):
    def only_read(connection, _record, _proxy):
        connection.execute("PRAGMA query_only=ON")

    event.listen(application.engine, "checkout", only_read)
    client = app_of(application).test_client()

    refused = client.post("/api/v1/sessions", json={})

    assert refused.status_code == 507
    assert "can only be read just now" in refused.get_json()["detail"]


def test_a_folder_with_room_is_let_be(tmp_path):
    check_room(tmp_path)


def test_a_disk_without_room_is_named_before_anything_is_begun(tmp_path, monkeypatch):
    usage = shutil.disk_usage("/")._replace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)

    with pytest.raises(StorageFailed, match="Make room; nothing that is stored is lost"):
        check_room(tmp_path)

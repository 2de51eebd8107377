"""The application as it is put together."""

from datetime import UTC, datetime, timedelta
from threading import Event, Thread

import numpy as np
import pytest

from rag.documents.files import IncomingFile
from rag.errors import SetupError
from rag.sessions.store import SqlConversationStore
from rag.settings import EmbeddingSettings, LlmSettings, SessionSettings, Settings
from rag.wiring import application as wired
from rag.wiring.application import build
from rag.wiring.components import file_places, open_embedder, open_model
from tests.fakes import HashEmbedder
from tests.waiting import until


@pytest.fixture
def old_session(tmp_path):
    """A session that was last used two days ago."""
    application = build(Settings(data_dir=tmp_path), embedder=HashEmbedder())
    then = datetime.now(UTC) - timedelta(days=2)
    store = SqlConversationStore(application.engine, clock=lambda: then)
    session = store.create("ada")
    application.stop()
    return session.id


class TestTimeToLive:
    def test_old_sessions_go_when_the_server_starts(self, tmp_path, old_session):
        settings = Settings(data_dir=tmp_path, sessions=SessionSettings(ttl_hours=24))
        application = build(settings, embedder=HashEmbedder())

        application.start()

        assert application.store.sessions("ada") == []
        application.stop()

    def test_and_while_it_runs(self, tmp_path, monkeypatch):
        monkeypatch.setattr(wired, "TIDY_SECONDS", 0.01)
        settings = Settings(data_dir=tmp_path, sessions=SessionSettings(ttl_hours=24))
        application = build(settings, embedder=HashEmbedder())
        application.start()
        then = datetime.now(UTC) - timedelta(days=2)
        SqlConversationStore(application.engine, clock=lambda: then).create("ada")

        until(lambda: application.store.sessions("ada") == [])
        application.stop()

    def test_without_a_limit_nothing_goes(self, tmp_path, old_session):
        application = build(Settings(data_dir=tmp_path), embedder=HashEmbedder())

        application.start()

        assert [s.id for s in application.store.sessions("ada")] == [old_session]
        application.stop()


class TestTheSecondModel:
    def test_reads_when_no_upload_is_under_way(self, tmp_path, monkeypatch):
        monkeypatch.setattr(wired, "LOOK_SECONDS", 0.01)
        application = build(Settings(data_dir=tmp_path), embedder=HashEmbedder())
        second = vars(application)["second"] = Reading()
        uploading, goes_on = Event(), Event()

        def slow_file(_most):
            uploading.set()
            assert goes_on.wait(60)
            return b"# Lamp\n\nDim the lamp."

        upload = Thread(
            target=lambda: list(application.ingestion.ingest([IncomingFile("a.md", slow_file)]))
        )
        upload.start()
        assert uploading.wait(60)
        application.start()
        assert not second.began.wait(0.3)
        goes_on.set()

        assert second.began.wait(60)
        upload.join()
        application.stop()


class Reading:
    """A second model of which it is only known when it begins."""

    def __init__(self):
        self.began = Event()

    def make_missing(self, _is_over):
        self.began.set()
        return iter(())


class TestParts:
    def test_no_model_is_opened_unless_one_is_named(self, tmp_path):
        assert open_model(Settings(data_dir=tmp_path)) is None

    def test_a_summary_model_is_at_the_same_server(self, tmp_path):
        llm = LlmSettings(base_url="http://127.0.0.1:1/v1", model="large")

        assert open_model(Settings(data_dir=tmp_path, llm=llm), "small").name == "small"

    def test_an_embedding_server_needs_the_name_of_its_model(self, tmp_path):
        embedding = EmbeddingSettings(base_url="http://127.0.0.1:1/v1")

        with pytest.raises(SetupError, match=r"embedding\.model is not"):
            open_embedder(Settings(data_dir=tmp_path, embedding=embedding))

    def test_readiness_says_which_part_is_missing(self, tmp_path):
        application = build(Settings(data_dir=tmp_path), embedder=HashEmbedder())
        assert application.ready() == {
            "database": True,
            "embedding_model": False,
            "index": False,
            "queue": True,
            "storage": True,
            "tables": True,
            "originals": True,
            "newest": True,
        }
        application.warm_up()
        assert application.ready() == {
            "database": True,
            "embedding_model": True,
            "index": True,
            "queue": True,
            "storage": True,
            "tables": True,
            "originals": True,
            "newest": True,
        }

        assert all(application.last_checks.values())
        (tmp_path / "groundnote.db").unlink()
        application.engine.dispose()
        (tmp_path / "groundnote.db").mkdir()

        assert application.ready()["database"] is application.last_checks["database"] is False
        application.stop()


class Nearer(HashEmbedder):
    """A model that finds all texts near to each other, as many do, and two words more so."""

    def embed(self, texts):
        vectors = np.zeros_like(super().embed(texts))
        vectors[:, :2] = [(1, 0) if text in ("ink", "colour") else (0.8, 0.6) for text in texts]
        return vectors


@pytest.mark.parametrize("question", ["How long do refunds take?", "What is the ink of A1?"])
def test_nearness_says_nothing_where_it_was_not_measured(tmp_path, question):
    """No question is a greeting, and no word means a column, for another model than ours."""
    settings = Settings(data_dir=tmp_path, embedding=EmbeddingSettings(model="another"))
    application = build(settings, embedder=Nearer())
    rows = b"Pen,Colour\nA1,blue\nB2,red\nC3,red\n"
    list(application.ingestion.ingest([IncomingFile.from_bytes("pens.csv", rows)]))

    *_, end = application.assistant.ask(application.store.create("me"), question)
    application.stop()

    assert end.message.answer.card is not None


def test_rows_that_lie_elsewhere_are_looked_for_in_no_folder_of_this_machine(tmp_path):
    here, elsewhere = (
        file_places(Settings(data_dir=tmp_path, tables={"url": url}))
        for url in (None, "s3://bucket/rows")
    )

    assert (here.rows, elsewhere.rows) == (tmp_path / "tables", None)

"""Vectors in PostgreSQL: the same answers as elsewhere, and the way there and back."""

import os

import numpy as np
import pytest
from sqlalchemy import insert, text

from rag.db import collections, open_engine, writing
from rag.documents.files import IncomingFile
from rag.errors import IndexMismatch, SetupError
from rag.records import EVERYTHING, Readable
from rag.search import pgvector
from rag.search.pgvector import ChangingIndex, PgVectorIndex
from rag.settings import Settings
from rag.wiring.building import build
from tests.conftest import postgres_database
from tests.fakes import HashEmbedder

TEXTS = {"refunds.md": "# Refunds\n\nA refund takes five days.", "router.md": "# Router\n\nReset."}


@pytest.fixture
def database():
    name = f"vectors_{os.getpid()}"
    with postgres_database(name, variable="GROUNDNOTE_TEST_PGVECTOR_URL") as url:
        yield url


@pytest.fixture
def start(tmp_path, database):
    """An application by these settings of vectors, with what a server does at its start."""
    started = []

    def start(kind):
        if started:
            started[-1].stop()
        settings = Settings(
            data_dir=tmp_path,
            sessions={"database_url": database},
            retrieval={"vectors": kind},
        )
        embedder = HashEmbedder()
        started.append(build(settings, embedder=embedder))
        started[-1].warm_up()
        return started[-1]

    yield start
    started[-1].stop()


def ingest(application, texts=TEXTS):
    files = [IncomingFile.from_bytes(name, data.encode()) for name, data in texts.items()]
    assert not [each for each in application.ingestion.ingest(files) if each.error]


def found(application, query="refund takes five days"):
    vectors = application.embedder.embed([query])
    return application.index.nearest(vectors, EVERYTHING, limit=5)[0]


def test_what_is_taken_in_is_found_and_goes_with_its_chunk(start):
    application = start("postgresql")
    ingest(application)

    (best, cosine), *_ = hits = found(application)
    assert len(hits) == application.index.count() == len(application.index.chunk_ids())
    assert 0 < cosine <= 1
    assert np.isclose(np.linalg.norm(application.index.vectors([best])[best]), 1, atol=0.01)

    with writing(application.engine) as connection:  # nothing else has to be told
        connection.execute(text("DELETE FROM chunks WHERE id = :id"), {"id": best})
    assert best not in application.index.chunk_ids()


def test_only_what_may_be_read_is_found_and_never_fewer_than_there_are(start, monkeypatch):
    application = start("postgresql")
    ingest(application, {f"{n}.md": f"# Part {n}\n\nWord{n} and some more." for n in range(60)})
    index, vectors = application.index, application.embedder.embed(["Word7"])
    with writing(application.engine) as connection:
        few = connection.execute(text("SELECT id FROM chunks ORDER BY id LIMIT 3")).scalars().all()
        row = {"id": "few", "owner": "", "name": "Few", "everybody": 0}
        connection.execute(insert(collections).values(row))
        moved = text("UPDATE chunks SET collection_id = 'few' WHERE id = ANY(:ids)")
        connection.execute(moved, {"ids": few})
    index.move(dict.fromkeys(few, "few"))
    exactly = index.nearest(vectors, Readable(frozenset({"few"})), limit=10)

    monkeypatch.setattr(pgvector, "EXACT", 0)  # by the graph

    assert {key for key, _ in exactly[0]} == set(few)
    assert index.nearest(vectors, Readable(frozenset({"few"})), limit=10) == exactly
    assert len(index.nearest(vectors, EVERYTHING, limit=100)[0]) == index.count()
    assert index.nearest(vectors, Readable(frozenset()), limit=10) == [[]]


def test_vectors_are_copied_there_and_back_and_nothing_is_embedded_anew(start, monkeypatch):
    first = start("chroma")
    ingest(first)
    before = found(first)
    monkeypatch.setattr(type(first.embedder), "embed", only_questions(type(first.embedder).embed))

    there = start("postgresql")
    assert isinstance(there.index, ChangingIndex)
    assert found(there) == [(key, pytest.approx(cosine, abs=0.002)) for key, cosine in before]
    assert PgVectorIndex("hash", there.engine).built() is not None

    again = start("postgresql")
    assert isinstance(again.index, PgVectorIndex)  # the folder that was given up is not asked

    back = start("chroma")
    assert found(back) == [(key, pytest.approx(cosine, abs=0.002)) for key, cosine in before]
    assert PgVectorIndex("hash", back.engine).built() is None  # the other is gone


def only_questions(embed):
    def embed_one(self, texts):
        assert len(texts) == 1, "passages were embedded anew"
        assert texts[0] in {"warm", "refund takes five days"}
        return embed(self, texts)

    return embed_one


def test_until_all_is_copied_the_old_index_answers_and_both_are_written(start):
    application = start("postgresql")
    ingest(application)
    old, new = FakeIndex(), FakeIndex()
    changing = ChangingIndex(old, new)
    old.rows = {"a": np.ones(2, np.float32)}

    changing.add(["b"], np.ones((1, 2), np.float32), ["1"])
    assert changing.chunk_ids() == {"a", "b"}
    assert new.chunk_ids() == {"b"}
    assert changing.copy({"a": "1", "b": "1"}) == 2
    changing.add(["c"], np.ones((1, 2), np.float32), ["1"])

    assert changing.chunk_ids() == new.chunk_ids() == {"a", "b", "c"}
    assert old.chunk_ids() == set()


class FakeIndex:
    def __init__(self):
        self.rows = {}

    def add(self, chunk_ids, vectors, collections):
        self.rows |= dict(zip(chunk_ids, vectors, strict=True))

    def vectors(self, chunk_ids):
        return {key: self.rows[key] for key in chunk_ids}

    def chunk_ids(self):
        return set(self.rows)

    def count(self):
        return len(self.rows)

    def clear(self):
        self.rows.clear()


def test_vectors_of_another_model_are_refused(start):
    application = start("postgresql")
    ingest(application)

    other = PgVectorIndex("another", application.engine)

    with pytest.raises(IndexMismatch, match="groundnote reindex"):
        other.check()


def test_without_the_right_to_make_the_extension_the_sentence_is_said_that_a_superuser_runs(
    database,
):
    server = open_engine(database)
    with writing(server) as connection:
        connection.execute(text("DROP ROLE IF EXISTS weak"))
        connection.execute(text("CREATE ROLE weak LOGIN"))
        connection.execute(text("DROP EXTENSION IF EXISTS vector"))
    weak = open_engine(server.url.set(username="weak").render_as_string())

    with pytest.raises(SetupError, match="CREATE EXTENSION vector;"):
        PgVectorIndex("hash", weak).check()

    weak.dispose()
    server.dispose()


def test_another_database_is_refused(tmp_path):
    with pytest.raises(SetupError, match="Set sessions"):
        PgVectorIndex("hash", open_engine(f"sqlite:///{tmp_path / 'a.db'}"))

"""Vectors in PostgreSQL: the same answers as elsewhere, and the way there and back."""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest
from sqlalchemy import Engine, event, insert, text

from rag.db import collections, open_engine, reading, writing
from rag.documents.files import IncomingFile
from rag.errors import IndexAway, IndexMismatch, SetupError
from rag.operations.backup import back_up, restore
from rag.operations.repository import opened_for_backup, opened_for_restore
from rag.records import EVERYTHING, Readable
from rag.search import pgvector
from rag.search.pgvector import ChangingIndex, PgVectorIndex
from rag.search.word_tables import TsvectorWords
from rag.settings import Settings
from rag.wiring.application import build
from rag.wiring.stores import empty_library, library_of
from tests.conftest import postgres_database
from tests.fakes import HashEmbedder
from tests.waiting import until

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
    assert changing.copy(lambda: [["a"], ["b"]], lambda ids: dict.fromkeys(ids, "1")) == 2
    changing.add(["c"], np.ones((1, 2), np.float32), ["1"])

    assert changing.chunk_ids() == new.chunk_ids() == {"a", "b", "c"}
    assert old.chunk_ids() == set()


def test_what_is_moved_or_removed_while_it_is_copied_is_so_in_the_new_index():
    old, new = FakeIndex(), FakeIndex()
    old.rows = {key: np.ones(2, np.float32) for key in "abc"}
    changing = ChangingIndex(old, new)
    places = {"a": "1", "b": "1", "c": "1"}

    def then(ids):
        """The database as it is asked, and what is done right after it."""
        known = {key: places[key] for key in ids if key in places}
        if places.get("a") == "1":
            places["a"] = "2"
            changing.move({"a": "2"})
            del places["b"]
            changing.remove(["b"])
        return known

    changing.copy(lambda: [["a", "b"], ["c"]], then)

    assert {key: new.places[key] for key in new.rows} == {"a": "2", "c": "1"}


def test_a_move_of_a_process_that_knows_the_old_index_alone_is_known_to_the_new_one():
    old, new = FakeIndex(), FakeIndex()
    old.rows = {key: np.ones(2, np.float32) for key in "abc"}
    places = {"a": "1", "b": "1", "c": "1"}

    def batches():
        yield ["a", "b"]
        places["a"] = "2"
        old.move({"a": "2"})
        yield ["c"]

    ChangingIndex(old, new).copy(batches, lambda ids: {key: places[key] for key in ids})

    assert new.places == {"a": "2", "b": "1", "c": "1"}


class FakeIndex:
    def __init__(self):
        self.rows, self.places = {}, {}

    def add(self, chunk_ids, vectors, collections):
        self.places |= dict(zip(chunk_ids, collections, strict=True))
        self.rows |= dict(zip(chunk_ids, vectors, strict=True))

    def vectors(self, chunk_ids):
        return {key: self.rows[key] for key in chunk_ids if key in self.rows}

    def chunk_ids(self, among=None):
        return set(self.rows) if among is None else self.rows.keys() & set(among)

    def move(self, collections):
        self.places |= {key: place for key, place in collections.items() if key in self.rows}

    def remove(self, chunk_ids):
        for chunk_id in chunk_ids:
            self.rows.pop(chunk_id, None)

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


def test_an_extension_that_is_too_old_is_said_with_what_to_do(start, monkeypatch):
    application = start("postgresql")
    monkeypatch.setattr(pgvector, "OLDEST", (99, 1))

    with pytest.raises(SetupError, match=r"99\.1 or newer.*ALTER EXTENSION vector UPDATE"):
        application.index.check()


def test_some_of_the_ids_are_asked_for_without_all(start):
    application = start("postgresql")
    ingest(application)
    one, *_rest = application.index.chunk_ids()

    assert application.index.chunk_ids([one, "nothing"]) == {one}


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


def test_a_backup_of_the_library_is_put_back_without_its_vectors_which_are_made_again(
    start, tmp_path, monkeypatch
):
    application = start("postgresql")
    ingest(application)
    application.words.search("refund", EVERYTHING, limit=1)
    before = found(application)
    with opened_for_backup(str(tmp_path / "a.zip")) as repository:
        back_up(library_of(application.settings, application.engine), repository)

    name = f"vectors_restored_{os.getpid()}"
    with postgres_database(
        name, like="template0", variable="GROUNDNOTE_TEST_PGVECTOR_URL"
    ) as other:
        settings = application.settings.model_copy(
            update={
                "data_dir": tmp_path / "two",
                "sessions": application.settings.sessions.model_copy(
                    update={"database_url": other}
                ),
            }
        )
        with opened_for_restore(str(tmp_path / "a.zip")) as repository:
            restore(repository, repository.manifest(), empty_library(settings))
        restored = build(settings, embedder=HashEmbedder())
        restored.warm_up()
        assert found(restored) == [(key, pytest.approx(score)) for key, score in before]
        restored.stop()


def test_the_words_of_the_library_are_counted_by_one_process_for_all(start):
    application = start("postgresql")
    ingest(application)
    counting = []

    @event.listens_for(Engine, "before_cursor_execute")
    def noted(_connection, _cursor, statement, *_others):
        counting.append("ts_stat" in statement)

    def counts():
        with reading(application.engine) as connection:
            return TsvectorWords().vocabulary(connection)

    try:
        first, again = counts(), counts()
        assert sum(counting) == 1
        assert first == again
        assert first["refund"] == 1
    finally:
        event.remove(Engine, "before_cursor_execute", noted)


CHUNKS = "relation = 'chunks'::regclass"


def waiting(engine, for_what=CHUNKS):
    """How many wait for this lock."""
    query = (
        f"SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database "
        f"WHERE datname = current_database() AND NOT granted AND {for_what}"
    )
    with reading(engine) as connection:
        return connection.scalar(text(query))


class TestThoseAtWorkAtOnce:
    @pytest.fixture
    def application(self, start, monkeypatch):
        monkeypatch.setattr(pgvector, "PAUSE_SECONDS", 0.01)
        application = start("postgresql")
        ingest(application)
        return application

    def test_whoever_changes_vectors_or_looks_for_some_locks_chunks_first(self, application):
        """As deleting a chunk does: else two would wait for each other."""
        index, engine = application.index, application.engine
        (key, vector), *_ = index.vectors(list(index.chunk_ids())).items()
        rows = vector[np.newaxis]
        works = (
            lambda: index.add([key], rows, [""]),
            lambda: index.move({key: ""}),
            lambda: index.nearest(rows, EVERYTHING, limit=1),
            lambda: index.remove([key]),
        )
        with ThreadPoolExecutor(len(works)) as pool, writing(engine) as connection:
            connection.execute(text("LOCK TABLE chunks IN ACCESS EXCLUSIVE MODE"))
            done = [pool.submit(work) for work in works]
            until(lambda: waiting(engine) == len(works))
            connection.execute(
                text("LOCK TABLE chunk_vectors IN ACCESS EXCLUSIVE MODE NOWAIT")  # nobody has it
            )
            connection.commit()
            for one in done:
                one.result()

    def test_a_table_that_is_made_anew_while_a_question_begins_answers(self, application):
        with ThreadPoolExecutor(1) as pool, writing(application.engine) as connection:
            connection.execute(text("LOCK TABLE chunks IN ACCESS EXCLUSIVE MODE"))
            comment = connection.scalar(text("SELECT obj_description('chunk_vectors'::regclass)"))
            connection.execute(text("CREATE TABLE anew (LIKE chunk_vectors INCLUDING ALL)"))
            connection.execute(text("DROP TABLE chunk_vectors"))
            answer = pool.submit(found, application)
            until(lambda: waiting(application.engine))
            connection.execute(text("ALTER TABLE anew RENAME TO chunk_vectors"))
            connection.exec_driver_sql(f"COMMENT ON TABLE chunk_vectors IS '{comment}'")
            connection.commit()

            assert answer.result() == []

    def test_tables_are_replaced_when_a_backup_is_over_and_nobody_waits_for_it(
        self, application, monkeypatch
    ):
        index, engine = application.index, application.engine
        ids = list(index.chunk_ids())
        rows = np.ones((len(ids), 128), np.float32)
        index = PgVectorIndex("other", engine)
        index.successor(128).add(ids, rows, [""] * len(ids))
        with ThreadPoolExecutor(1) as pool:
            with reading(engine) as backup:
                backup.execute(text("SELECT count(*) FROM chunks"))
                taking = pool.submit(index.take_over, nullcontext)
                until(lambda: waiting(engine))
                with reading(engine) as question:
                    question.execute(text("SET LOCAL lock_timeout = '10s'"))
                    assert question.scalar(text("SELECT count(*) FROM chunks")) == len(ids)
                assert not taking.done()
            taking.result()
        assert index.chunk_ids() == set(ids)

        monkeypatch.setattr(pgvector, "PATIENCE_SECONDS", 0.0)
        with reading(engine) as backup:
            backup.execute(text("SELECT count(*) FROM chunks"))
            with pytest.raises(IndexAway, match=r"a backup, .* goes on from here"):
                index.clear()
        assert index.chunk_ids() == set(ids)

    def test_a_deadlock_with_another_program_is_tried_again(self, application, database):
        """Which locks vectors first; PostgreSQL ends whichever of two looks first."""
        with writing(application.engine) as connection:
            name = connection.engine.url.database
            connection.execute(text(f"ALTER DATABASE {name} SET deadlock_timeout = 20"))
        theirs, mine = open_engine(database), open_engine(database)

        def lock_vectors_and_chunks():
            with writing(theirs) as connection:
                connection.execute(text("SET LOCAL deadlock_timeout = '1min'"))
                connection.execute(text("LOCK TABLE chunk_vectors IN ACCESS EXCLUSIVE MODE"))
                until(lambda: waiting(theirs))
                connection.execute(text("LOCK TABLE chunks IN ACCESS SHARE MODE"))

        ends = []
        event.listen(mine, "handle_error", lambda context: ends.append(context.original_exception))
        with ThreadPoolExecutor(2) as pool:
            with reading(theirs) as backup:
                backup.execute(text("SELECT count(*) FROM chunks"))
                other = pool.submit(lock_vectors_and_chunks)
                clearing = pool.submit(PgVectorIndex("hash", mine).clear)
                until(lambda: waiting(theirs) == 2)
            other.result()
            clearing.result()
        assert any(error.sqlstate == "40P01" for error in ends)
        theirs.dispose()
        mine.dispose()


class TestAnotherModel:
    """`groundnote reindex` with another model, beside a server that runs with the old one."""

    @pytest.fixture
    def old(self, start):
        application = start("postgresql")
        ingest(application)
        return application

    @pytest.fixture
    def new(self, old):
        application = build(old.settings, embedder=HashEmbedder(dimensions=128, name="other"))
        yield application
        application.stop()

    def test_the_old_one_answers_until_the_new_one_has_it_all(self, old, new):
        before = found(old)
        with pytest.raises(IndexMismatch, match="groundnote reindex"):
            found(new)

        steps = new.ingestion.reindex()
        assert next(steps) == (len(before), len(before))
        assert PgVectorIndex("other", new.engine, table=pgvector.NEXT).count() == len(before)
        assert found(old) == before
        assert list(steps) == [(0, 0)]

        assert {key for key, _ in found(new)} == {key for key, _ in before}
        with pytest.raises(IndexMismatch, match="other"):
            found(old)
        late = [IncomingFile.from_bytes("late.md", b"# Late\n\nComes when it is over.")]
        with pytest.raises(IndexMismatch, match="groundnote reindex"):
            list(old.ingestion.ingest(late))
        new.index.check()
        ingest(new, {"late.md": "# Late\n\nComes when it is over."})
        assert is_level(new)

    def test_what_is_written_with_the_old_one_meanwhile_is_in_the_new_one(self, old, new):
        row = {"id": "few", "owner": "", "name": "Few", "everybody": 0}
        with writing(old.engine) as connection:
            connection.execute(insert(collections).values(row))
        documents = {each.name: each.id for each in old.documents.documents(EVERYTHING)}

        steps = new.ingestion.reindex()
        next(steps)
        ingest(old, {"news.md": "# News\n\nThe lamp is green."})
        old.ingestion.move(documents["router.md"], "few")
        old.ingestion.delete(documents["refunds.md"])
        assert found(old, "lamp green")
        list(steps)

        assert is_level(new)
        moved = new.index.nearest(
            new.embedder.embed(["Reset"]), Readable(frozenset({"few"})), limit=9
        )
        assert new.documents.chunks([key for key, _ in moved[0]], EVERYTHING).values()
        assert len(found(new, "lamp green")) == 2

    def test_one_that_was_killed_goes_on_where_it_was_and_a_third_model_begins_anew(self, old, new):
        steps = new.ingestion.reindex()
        next(steps)
        steps.close()
        embedded = len(new.embedder.embedded)

        list(new.ingestion.reindex())

        assert len(new.embedder.embedded) == embedded == new.index.count()
        steps = new.ingestion.reindex()  # of the same model: that is asked for
        next(steps)
        assert set(indexes(new)) == {f"chunk_vectors_{kind}" for kind in KINDS}
        assert PgVectorIndex("third", new.engine).successor(128).count() == 0

    def test_one_of_other_dimensions_is_begun_anew_whatever_it_is_called(self, old):
        embedders = [HashEmbedder(dimensions=dimensions) for dimensions in (128, 64)]
        begun, new = (build(old.settings, embedder=embedder) for embedder in embedders)
        steps = begun.ingestion.reindex()
        next(steps)
        steps.close()

        with pytest.raises(IndexMismatch, match=r"\(256 dimensions\).*\(64 dimensions\)"):
            found(new)
        list(new.ingestion.reindex())

        assert found(new)
        assert is_level(new)
        begun.stop()
        new.stop()

    def test_what_another_process_writes_in_that_moment_is_embedded_again(
        self, old, new, monkeypatch
    ):
        """Its vectors are of the old table, and it marks them when the new one has its place."""
        marking = old.documents.mark_embedded

        def mark(ids):
            reindex = pool.submit(list, new.ingestion.reindex())
            until(lambda: reindex.done() or waiting(old.engine, "locktype = 'advisory'"))
            reindexes.append(reindex)
            return marking(ids)

        reindexes = []
        monkeypatch.setattr(old.ingestion._store, "mark_embedded", mark)
        with ThreadPoolExecutor(1) as pool:
            ingest(old, {"news.md": "# News\n\nThe lamp is green."})
            assert len(reindexes) == 1
            reindexes[0].result()

        assert is_level(new)

    def test_an_empty_library_is_that_of_the_new_model(self, old, new):
        for document in old.documents.documents(EVERYTHING):
            old.ingestion.delete(document.id)

        list(new.ingestion.reindex())
        ingest(new, {"news.md": "# News\n\nThe lamp is green."})

        assert len(found(new, "lamp green")) == 1


KINDS = ("pkey", "by_collection", "graph", "next_pkey", "next_by_collection")


def indexes(application):
    names = "SELECT indexname FROM pg_indexes WHERE tablename LIKE 'chunk_vectors%'"
    with reading(application.engine) as connection:
        return connection.scalars(text(names)).all()


def is_level(application):
    """Whether each chunk has its vector, and there are no others."""
    with reading(application.engine) as connection:
        ids = set(connection.scalars(text("SELECT id FROM chunks")))
    return application.index.chunk_ids() == ids

"""Chunks are embedded once, however many processes share them."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy.exc import IntegrityError

from rag.documents.store import LOOKS, EmbeddingClaims, SqlDocumentStore
from rag.errors import StorageFailed
from tests.documents.test_document_store import write


@pytest.fixture
def ids(any_engine):
    store = SqlDocumentStore(any_engine)
    changes, _ = write(store, *(f"Part {n}." for n in range(40)))
    return [chunk.id for chunk in changes.added]


def test_nothing_is_taken_twice(any_engine, ids):
    taken, lock = [], threading.Lock()

    def take():
        mine = EmbeddingClaims(any_engine)
        while part := mine.take(3):
            with lock:
                taken.extend(part)

    workers = [threading.Thread(target=take) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert sorted(taken) == sorted(ids)


def test_what_is_given_back_or_was_a_dead_ones_is_taken_again(any_engine, ids, monkeypatch):
    own = EmbeddingClaims(any_engine)
    monkeypatch.setattr("rag.documents.store.LEASE", timedelta(seconds=-1))
    assert own.take(10) == ids[:10]
    monkeypatch.undo()

    assert own.take(10) == ids[:10]
    assert own.take(10) == ids[10:20]
    own.give_back(ids[:5])
    assert own.take(10) == [*ids[:5], *ids[20:25]]


def test_chunks_are_done_once_they_are_embedded_or_gone(any_engine, ids):
    store, own = SqlDocumentStore(any_engine), EmbeddingClaims(any_engine)
    assert not own.are_done(ids)

    store.mark_embedded(ids[1:])
    assert not own.are_done(ids)

    store.mark_embedded(ids[:1])
    assert own.are_done([*ids, "gone"])
    assert own.take(10) == []


def test_vectors_are_written_by_one_process_at_a_time(any_engine, ids):
    inside, most, writes = set(), [], 24

    def write_vectors(number):
        with EmbeddingClaims(any_engine).one_writer():
            inside.add(number)
            most.append(len(inside))
            time.sleep(0.002)
            inside.discard(number)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write_vectors, range(writes)))

    assert most == [1] * writes


def test_a_table_that_refuses_every_try_is_told_with_what_to_do(any_engine, ids, monkeypatch):
    def refused(_self, _limit):
        nonlocal tries
        tries += 1
        raise IntegrityError("INSERT", {}, ValueError())

    tries = 0
    monkeypatch.setattr(EmbeddingClaims, "_take", refused)

    with pytest.raises(StorageFailed, match=rf"refused {LOOKS} tries .*groundnote doctor"):
        EmbeddingClaims(any_engine).take(5)
    assert tries == LOOKS

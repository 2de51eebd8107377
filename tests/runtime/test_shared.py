"""What the workers of a server share: the calls of one process in another, behind a key."""

import os
import pickle
import signal
import socket
import time
from multiprocessing import Process
from threading import Thread
from urllib.parse import urlsplit

import numpy as np
import pytest

from rag.errors import IndexAway, IndexMismatch, SharedAway
from rag.records import Readable
from rag.runtime.shared import SharedObject, open_door, share
from rag.search.vectors import ChromaIndex, SharedIndex
from rag.web.access.counters import Counters, limiter


class Parrot:
    def say(self, *, word):
        return word * 2

    def refuse(self):
        raise IndexMismatch("another model's")

    def dawdle(self, file):
        with file.open("a") as calls:
            calls.write("x")
        time.sleep(3)

    def fail(self):
        return {}["missing"]


@pytest.fixture
def served():
    """Serves objects in a process of its own; called again it replaces that, behind one door."""
    door, url = open_door()
    processes = []

    def serve(**objects):
        if processes:
            os.kill(processes[-1].pid, signal.SIGKILL)
            processes[-1].join()
        processes.append(Process(target=share, args=(door, url, objects), daemon=True))
        processes[-1].start()
        return url

    yield serve
    os.kill(processes[-1].pid, signal.SIGKILL)
    door.close()


def test_what_is_returned_and_what_is_raised_arrives(served):
    parrot = SharedObject(served(parrot=Parrot()), "parrot")

    assert parrot.call("say", seconds=5, word=[1]) == [1, 1]
    with pytest.raises(IndexMismatch, match="another model's"):
        parrot.call("refuse", seconds=5)
    with pytest.raises(SharedAway, match="KeyError"):
        parrot.call("fail", seconds=5)


def test_a_slow_call_is_made_once(served, tmp_path):
    parrot = SharedObject(served(parrot=Parrot()), "parrot")
    parrot.call("say", seconds=5, word=[1])  # there is a connection from now on

    with pytest.raises(SharedAway, match="slow"):
        parrot.call("dawdle", tmp_path / "calls", seconds=0.5)

    assert (tmp_path / "calls").read_text() == "x"


def test_who_says_nothing_at_the_door_is_sent_away(served, monkeypatch):
    monkeypatch.setattr("rag.runtime.shared.HANDSHAKE_SECONDS", 1)
    port = urlsplit(served(parrot=Parrot())).port

    with socket.create_connection(("127.0.0.1", port), timeout=5) as silent:
        while silent.recv(100):
            pass


def test_calls_go_on_when_the_process_is_replaced(served):
    parrot = SharedObject(served(parrot=Parrot()), "parrot")
    assert parrot.call("say", seconds=5, word="a") == "aa"

    served(parrot=Parrot())

    assert parrot.call("say", seconds=5, word="b") == "bb"


def test_who_does_not_know_the_key_gets_nothing_and_nothing_of_theirs_is_read(served):
    url = served(parrot=Parrot())
    where = url.rpartition("@")[2]
    with pytest.raises(SharedAway):
        SharedObject(f"fleet://{'0' * 64}@{where}", "parrot").call("say", seconds=1, word="a")

    host, _, port = where.partition(":")
    with socket.create_connection((host, int(port)), timeout=5) as stranger:
        stranger.sendall(len(evil := pickle.dumps(Boom())).to_bytes(4, "big") + evil)
        assert b"exploded" not in stranger.recv(1000)
    assert SharedObject(url, "parrot").call("say", seconds=5, word="a") == "aa"


class Boom:
    def __reduce__(self):
        return os._exit, (1,)


def test_who_is_away_is_told_as_an_index_that_is_away():
    door, url = open_door()
    door.close()

    with pytest.raises(IndexAway, match="started again by itself"):
        SharedIndex(url).nearest(np.ones((1, 2), np.float32), Readable(None), limit=1)


def test_the_index_of_another_process_is_one(tmp_path):
    door, url = open_door()
    objects = {"index": ChromaIndex("m", directory=tmp_path)}
    Thread(target=share, args=(door, url, objects), daemon=True).start()
    index = SharedIndex(url)
    vectors = np.eye(3, dtype=np.float32)

    index.check()
    index.add(["a", "b", "c"], vectors, ["x", "x", "y"])
    index.move({"b": "y"})
    index.remove(["c"])

    readable = Readable(frozenset({"y"}))
    assert index.nearest(vectors[1:2], readable, limit=5) == [[("b", pytest.approx(1.0))]]
    assert index.chunk_ids() == {"a", "b"}
    assert index.count() == 2
    assert np.allclose(index.vectors(["a"])["a"], vectors[0])
    index.clear()
    assert index.count() == 0
    objects["index"].close()


def test_counters_count_for_all(served):
    from limits import RateLimitItemPerMinute

    url = served(counters=limiter())
    here, there, two = Counters(url), Counters(url), RateLimitItemPerMinute(2)

    assert here.count(two, "ana")
    assert there.count(two, "ana")
    assert not here.count(two, "ana")
    assert there.wait_seconds(two, "ana") > 0
    assert there.wait_seconds(two, "bo") == 0

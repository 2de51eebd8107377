import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rag.errors import IndexAway, IndexMismatch, SetupError
from rag.records import EVERYTHING, Readable
from rag.seams import ChunkIndex
from rag.search import vectors
from rag.search.index_lock import LOCK_FILE, holder_of
from rag.search.vectors import CachedVectors, ChromaIndex, CollectionScope, ExactVectors
from tests.fakes import MemoryIndex
from tests.waiting import until

AXES = np.eye(4, dtype=np.float32)
BETWEEN = np.array([0.8, 0.6, 0.0, 0.0], dtype=np.float32)

Open = Callable[..., ChromaIndex]


def nearest(
    index: Any, vector: NDArray[np.float32], readable: Readable, *, limit: int
) -> list[tuple[str, float]] | None:
    found = index.nearest(vector[None], readable, limit=limit)
    return None if found is None else found[0]


@pytest.fixture
def open_index(tmp_path: Path) -> Iterator[Open]:
    opened: list[ChromaIndex] = []

    def open_index(embedding: str = "model", directory: Path = tmp_path / "chroma") -> ChromaIndex:
        opened.append(ChromaIndex(embedding, directory=directory))
        return opened[-1]

    yield open_index
    for index in opened:
        index.close()


@pytest.fixture(params=["memory", "chroma"])
def index(request: pytest.FixtureRequest, open_index: Open) -> ChunkIndex:
    return MemoryIndex() if request.param == "memory" else open_index()


# ── Every chunk index ────────────────────────────────────────────────────────────────────────


def test_an_empty_index_finds_nothing(index: ChunkIndex) -> None:
    assert nearest(index, BETWEEN, EVERYTHING, limit=5) == []
    assert index.chunk_ids() == set()
    assert index.vectors(["a"]) == {}
    index.remove(["a"])
    index.clear()


def test_the_nearest_come_first_with_their_cosine(index: ChunkIndex) -> None:
    index.add(["a", "b", "c"], AXES[:3], ["1", "1", "1"])

    found = nearest(index, BETWEEN, EVERYTHING, limit=2)

    assert [chunk_id for chunk_id, _ in found] == ["a", "b"]
    assert [similarity for _, similarity in found] == pytest.approx([0.8, 0.6], abs=1e-5)


@pytest.mark.parametrize("most", [0, 10], ids=["in a graph", "exactly"])
def test_each_of_several_vectors_has_its_own_nearest(
    index: ChunkIndex, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    if isinstance(index, ChromaIndex):
        monkeypatch.setattr(index._exact, "_most_of_all", most)
    index.add(["a", "b", "c"], AXES[:3], ["1", "1", "1"])

    found = index.nearest(np.stack([AXES[1], BETWEEN]), EVERYTHING, limit=2)

    assert [each[0][0] for each in found] == ["b", "a"]
    assert found[1] == [("a", pytest.approx(0.8)), ("b", pytest.approx(0.6))]


def test_fewer_chunks_than_asked_for_are_all_found(index: ChunkIndex) -> None:
    index.add(["a", "b"], AXES[:2], ["1", "1"])

    assert {chunk_id for chunk_id, _ in nearest(index, BETWEEN, EVERYTHING, limit=50)} == {"a", "b"}


def test_adding_again_overwrites(index: ChunkIndex) -> None:
    index.add(["a", "b"], AXES[:2], ["1", "1"])
    index.add(["a"], AXES[2:3], ["1"])

    assert index.chunk_ids() == {"a", "b"}
    assert nearest(index, AXES[2], EVERYTHING, limit=1)[0][0] == "a"


def test_removed_chunks_are_not_found(index: ChunkIndex) -> None:
    index.add(["a", "b"], AXES[:2], ["1", "1"])
    index.remove(["a", "never there"])

    assert index.chunk_ids() == {"b"}
    assert [chunk_id for chunk_id, _ in nearest(index, AXES[0], EVERYTHING, limit=5)] == ["b"]


def test_vectors_come_back_for_the_chunks_that_exist(index: ChunkIndex) -> None:
    index.add(["a", "b"], AXES[:2], ["1", "1"])

    vectors = index.vectors(["b", "nowhere"])

    assert set(vectors) == {"b"}
    np.testing.assert_allclose(vectors["b"], AXES[1], atol=1e-6)


def test_a_cleared_index_is_empty_and_can_be_filled_again(index: ChunkIndex) -> None:
    index.add(["a"], AXES[:1], ["1"])
    index.clear()
    index.add(["b"], AXES[1:2], ["1"])

    assert index.chunk_ids() == {"b"}


def test_adding_nothing_does_nothing(index: ChunkIndex) -> None:
    index.add([], AXES[:0], [])

    assert index.chunk_ids() == set()


# ── Chroma ───────────────────────────────────────────────────────────────────────────────────


def test_more_chunks_than_one_batch_takes_are_kept_over_a_restart(
    open_index: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "PAGE", 250)
    ids = [f"chunk {number}" for number in range(600)]
    rows = np.random.default_rng(7).normal(size=(600, 8)).astype(np.float32)
    index = open_index()
    index.add(ids, rows, ["1"] * len(ids))
    index.close()

    again = open_index()

    assert again.chunk_ids() == set(ids)
    assert nearest(again, rows[471], EVERYTHING, limit=1)[0][0] == "chunk 471"
    again.remove(ids[1:])
    assert again.chunk_ids() == {"chunk 0"}


def test_another_embedding_model_is_told_what_to_do(open_index: Open) -> None:
    open_index("first model").add(["a"], AXES[:1], ["1"])
    other = open_index("other model")

    for use in (other.check, lambda: nearest(other, BETWEEN, EVERYTHING, limit=1)):
        with pytest.raises(IndexMismatch, match=r"first model.*other model.*groundnote reindex"):
            use()


def test_other_dimensions_are_a_mismatch_too(open_index: Open) -> None:
    index = open_index()
    index.add(["a"], AXES[:1], ["1"])

    with pytest.raises(IndexMismatch, match="4 dimensions"):
        index.add(["b"], np.ones((1, 3), dtype=np.float32), ["1"])
    with pytest.raises(IndexMismatch):
        nearest(index, np.ones(3, dtype=np.float32), EVERYTHING, limit=1)


def test_a_cleared_index_takes_another_model(open_index: Open) -> None:
    first, other = open_index("first model"), open_index("other model")
    first.add(["a"], AXES[:1], ["1"])

    other.clear()
    other.add(["b"], np.ones((1, 3), dtype=np.float32), ["1"])

    assert other.chunk_ids() == {"b"}


def test_an_index_cleared_elsewhere_is_opened_again(open_index: Open) -> None:
    one, two = open_index(), open_index()
    one.add(["a"], AXES[:1], ["1"])
    two.clear()

    assert nearest(one, BETWEEN, EVERYTHING, limit=3) == []
    one.add(["b"], AXES[1:2], ["1"])
    assert two.chunk_ids() == {"b"}


def test_a_broken_directory_says_how_to_rebuild_it(tmp_path: Path) -> None:
    (tmp_path / "chroma.sqlite3").write_text("not a database, whatever its name says" * 50)
    index = ChromaIndex("model", directory=tmp_path)

    with pytest.raises(SetupError, match="stop the server, run"):
        index.chunk_ids()

    assert holder_of(tmp_path) is None


def test_a_full_disk_is_called_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_given: Any, **_named: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("chromadb.PersistentClient", no_room)

    with pytest.raises(IndexAway, match=r"disk .* is full.*[Mm]ake room") as refused:
        ChromaIndex("model", directory=tmp_path / "chroma").add(["a"], AXES[:1], ["c"])
    assert "--repair" not in str(refused.value)


def test_a_server_that_does_not_answer_is_named() -> None:
    index = ChromaIndex("model", url="http://127.0.0.1:9")

    with pytest.raises(SetupError, match=r"127\.0\.0\.1:9"):
        index.chunk_ids()


def test_an_index_is_a_directory_or_a_url(tmp_path: Path) -> None:
    for places in ({}, {"directory": tmp_path, "url": "http://127.0.0.1:9"}):
        with pytest.raises(SetupError, match="expected one of them"):
            ChromaIndex("model", **places)


# ── One process at a time ────────────────────────────────────────────────────────────────────

HOLD = """
import sys
from pathlib import Path
from rag.search.index_lock import acquire
acquire(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_an_index_in_use_by_another_process_names_it(tmp_path: Path, open_index: Open) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline().strip() == b"held"

        with pytest.raises(SetupError, match=rf'"pid": {other.pid}\b'):
            open_index(directory=tmp_path).chunk_ids()
        assert holder_of(tmp_path) == other.pid
        other.kill()

    assert open_index(directory=tmp_path).chunk_ids() == set()  # died without giving it back
    assert holder_of(tmp_path) == os.getpid()


def test_the_note_of_a_process_that_died_is_no_obstacle(tmp_path: Path, open_index: Open) -> None:
    (tmp_path / LOCK_FILE).write_text(json.dumps({"pid": 1, "started": "long ago"}))

    index = open_index(directory=tmp_path)

    assert holder_of(tmp_path) is None
    index.add(["a"], AXES[:1], ["1"])
    assert json.loads((tmp_path / LOCK_FILE).read_text())["pid"] == os.getpid()


def test_two_indexes_in_one_process_share_the_directory(tmp_path: Path, open_index: Open) -> None:
    one, two = open_index(directory=tmp_path), open_index(directory=tmp_path)
    one.add(["a"], AXES[:1], ["1"])
    assert two.chunk_ids() == {"a"}

    one.close()
    assert holder_of(tmp_path) == os.getpid()
    two.close()
    assert holder_of(tmp_path) is None


class TestWithinCollections:
    """Vectors of chosen collections are kept in memory: whatever is written must show at once."""

    ONE, TWO = Readable(frozenset({"1"})), Readable(frozenset({"2"}))

    @pytest.fixture
    def filled(self, index: ChunkIndex) -> ChunkIndex:
        index.add(["a", "b", "c"], AXES[:3], ["1", "2", "1"])
        assert ids(nearest(index, BETWEEN, self.ONE, limit=5)) == ["a", "c"]
        assert ids(nearest(index, BETWEEN, self.TWO, limit=5)) == ["b"]
        return index

    def test_the_nearest_come_with_the_same_cosine(self, filled: ChunkIndex) -> None:
        of_all = dict(nearest(filled, BETWEEN, EVERYTHING, limit=5))

        for readable in (self.ONE, self.TWO, Readable(frozenset({"1", "2"}))):
            for key, cosine in nearest(filled, BETWEEN, readable, limit=5):
                assert cosine == pytest.approx(of_all[key], abs=1e-5)

    def test_the_limit_holds_over_all_of_them(self, filled: ChunkIndex) -> None:
        both = Readable(frozenset({"1", "2"}))

        assert ids(nearest(filled, BETWEEN, both, limit=2)) == ["a", "b"]

    def test_what_is_added_is_found(self, filled: ChunkIndex) -> None:
        filled.add(["d"], AXES[3:4], ["2"])

        assert ids(nearest(filled, AXES[3], self.TWO, limit=5)) == ["d", "b"]

    def test_what_is_added_again_is_there_once(self, filled: ChunkIndex) -> None:
        filled.add(["b"], AXES[3:4], ["2"])

        assert nearest(filled, AXES[3], self.TWO, limit=5) == [("b", pytest.approx(1.0))]

    def test_what_is_removed_or_moved_is_gone(self, filled: ChunkIndex) -> None:
        filled.remove(["a"])
        filled.move({"c": "2"})

        assert nearest(filled, BETWEEN, self.ONE, limit=5) == []
        assert set(ids(nearest(filled, BETWEEN, self.TWO, limit=5))) == {"b", "c"}

    def test_what_is_added_elsewhere_has_left(self, filled: ChunkIndex) -> None:
        filled.add(["a"], AXES[:1], ["2"])

        assert ids(nearest(filled, BETWEEN, self.ONE, limit=5)) == ["c"]

    def test_a_cleared_index_holds_nothing(self, filled: ChunkIndex) -> None:
        filled.clear()

        assert nearest(filled, BETWEEN, self.ONE, limit=5) == []

    def test_large_collections_are_searched_in_the_index(
        self, filled: ChunkIndex, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        small = nearest(filled, BETWEEN, self.ONE, limit=5)
        if isinstance(filled, ChromaIndex):
            monkeypatch.setattr(filled._exact, "_most", 1)

        large = nearest(filled, BETWEEN, self.ONE, limit=5)

        assert ids(large) == ids(small)
        assert [cosine for _, cosine in large] == pytest.approx([c for _, c in small], abs=1e-5)


@pytest.mark.parametrize("most", [0, 10], ids=["in a graph", "exactly"])
def test_vectors_of_any_length_are_compared_by_direction(
    open_index: Open, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(vectors, "MOST_OF_ALL", most)
    index = open_index()
    index.add(["far", "near"], np.array([[0, 9, 0, 0], [0.1, 0, 0, 0]], np.float32), ["1", "1"])

    for readable in (EVERYTHING, of("1")):
        found = nearest(index, AXES[0], readable, limit=2)
        assert ids(found) == ["near", "far"]
        assert [cosine for _, cosine in found] == pytest.approx([1.0, 0.0], abs=1e-6)


class TestKeptVectors:
    """Those of a server, where others write as well, and more than there is room for."""

    def kept(
        self, **options: Any
    ) -> tuple[ExactVectors, dict[CollectionScope, list[str]], list[CollectionScope]]:
        there: dict[CollectionScope, list[str]] = {"1": ["a", "b"], "2": ["c"]}
        reads: list[CollectionScope] = []

        def read(collection: CollectionScope) -> tuple[list[str], Any]:
            reads.append(collection)
            held = list(there[collection])
            return held, np.ones((len(held), 4), dtype=np.float32)

        options = {"most": 10, "most_of_all": 10, "fresh_seconds": 60.0} | options
        return ExactVectors(read, lambda each: len(there[each]), **options), there, reads

    def test_are_read_once_and_again_when_they_are_old(self) -> None:
        exact, there, reads = self.kept()
        for _ in range(3):
            nearest(exact, BETWEEN, of("1"), limit=5)
        assert reads == ["1"]

        old, there, reads = self.kept(fresh_seconds=0.0)
        nearest(old, BETWEEN, of("1"), limit=5)
        there["1"].append("z")
        assert "z" in ids(nearest(old, BETWEEN, of("1"), limit=5) or [])

    def test_make_room_for_each_other(self) -> None:
        exact, _, reads = self.kept(most=2)
        for collection in ("1", "2", "1"):
            assert nearest(exact, BETWEEN, of(collection), limit=5)

        assert reads == ["1", "2", "1"]

    def test_all_of_a_small_library_are_kept_as_one(self) -> None:
        exact, there, reads = self.kept()
        there[None] = ["a", "b", "c"]
        for _ in range(2):
            assert len(nearest(exact, BETWEEN, EVERYTHING, limit=5) or []) == 3
        assert reads == [None]

        del there[None]  # nobody counts what is held
        exact.remove(["b"])
        assert ids(nearest(exact, BETWEEN, EVERYTHING, limit=5) or []) == ["a", "c"]
        assert nearest(self.kept(most_of_all=0)[0], BETWEEN, EVERYTHING, limit=5) is None

    def test_are_given_by_id_only_where_all_are_held(self) -> None:
        exact, _, _ = self.kept()
        assert exact.vectors(["a"]) is None

        nearest(exact, BETWEEN, of("1"), limit=5)
        nearest(exact, BETWEEN, of("2"), limit=5)

        assert list(exact.vectors(["c", "a"]) or {}) == ["a", "c"]
        assert exact.vectors(["a", "z"]) is None
        exact.remove(["a"])
        assert exact.vectors(["a"]) is None

    def test_many_are_read_beside_the_question_that_asks_first(self) -> None:
        exact, _, reads = self.kept(waited_for=1)

        assert nearest(exact, BETWEEN, of("1"), limit=5) is None
        until(lambda: nearest(exact, BETWEEN, of("1"), limit=5) is not None)
        assert reads == ["1"]

    def test_grow_and_shrink_as_they_would_be_read_anew(self) -> None:
        rng = np.random.default_rng(5)
        exact, _there, _ = self.kept(most=10_000)
        nearest(exact, BETWEEN, of("1"), limit=5)
        exact.remove(["a", "b"])
        known: dict[str, NDArray[np.float32]] = {}
        for step in range(30):
            rows = rng.normal(size=(7, 4)).astype(np.float32)
            added = [f"{step}-{row}" for row in range(7)]
            exact.add(added, rows, ["1"] * 7)
            known |= zip(added, rows, strict=True)
            gone = [key for key in list(known) if rng.random() < 0.2]
            exact.remove(gone)
            known = {key: row for key, row in known.items() if key not in gone}

        found = dict(nearest(exact, BETWEEN, of("1"), limit=1000) or [])
        expected = {key: row @ BETWEEN / np.linalg.norm(row) for key, row in known.items()}
        assert found == {key: pytest.approx(cosine, abs=1e-3) for key, cosine in expected.items()}

    def test_are_compared_in_half_precision_as_numpy_would(self) -> None:
        rng = np.random.default_rng(6)
        rows = rng.normal(size=(2_500, 48)).astype(np.float32) * np.float32(1e-3)
        rows[:, 0] = 1
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        halves = CachedVectors.of([str(row) for row in range(2_500)], rows, 0.0)

        found = halves.cosines(rows[:3])

        np.testing.assert_allclose(
            found, rows[:3] @ rows.astype(np.float16).astype(np.float32).T, atol=1e-6
        )
        np.testing.assert_allclose(found, rows[:3] @ rows.T, atol=1e-3)

    def test_too_many_are_never_read(self) -> None:
        exact, _, reads = self.kept(most=2)

        assert nearest(exact, BETWEEN, of("1", "2"), limit=5) is None
        assert reads == []

    def test_are_counted_once_and_again_when_some_were_removed(self) -> None:
        exact, there, _ = self.kept(most_of_all=2)
        there[None] = ["a", "b", "c"]
        assert nearest(exact, BETWEEN, EVERYTHING, limit=5) is None

        del there[None]
        exact.add(["d"], AXES[:1], ["1"])
        assert nearest(exact, BETWEEN, EVERYTHING, limit=5) is None

        there[None] = ["a", "b"]
        exact.remove(["c", "d"])
        assert ids(nearest(exact, BETWEEN, EVERYTHING, limit=5) or []) == ["a", "b"]

    def test_read_while_somebody_wrote_are_not_kept(self) -> None:
        exact, _there, reads = self.kept()

        def read(collection: CollectionScope) -> tuple[list[str], Any]:
            reads.append(collection)
            exact.remove(["a"])
            return ["a", "b"], np.ones((2, 4), dtype=np.float32)

        exact._read = read
        nearest(exact, BETWEEN, of("1"), limit=5)
        nearest(exact, BETWEEN, of("1"), limit=5)

        assert reads == ["1", "1"]


def of(*collections: str) -> Readable:
    return Readable(frozenset(collections))


def ids(found: list[tuple[str, float]]) -> list[str]:
    return [key for key, _ in found]

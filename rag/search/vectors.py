"""The vector index over chunks: Chroma, embedded in this process or a server by URL.

A filter makes a graph search dearer, the more the less it lets through, and shows by the time it
takes what lies beside it. Comparing with every vector that may be found is cheaper up to hundreds
of thousands, misses none, and takes a time that depends on these alone. They are kept in half
precision: 0.8 KB each of the packaged model's.
"""

import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from rag.db.engine import storage_reason
from rag.errors import IndexAway, IndexMismatch, RagError, SetupError
from rag.records import Readable
from rag.runtime.error_log import log_throttled
from rag.runtime.shared import SharedObject
from rag.seams import Matrix
from rag.search.embedders.engines import unit
from rag.search.index_lock import COLLECTION, acquire, release

# Rows that are compared at once: of more, two threads take a share each and spin as they wait.
BATCH = 1_000
WAITED_FOR = 20_000  # vectors that a question waits for; more are read beside it
CollectionScope = str | None  # a collection, or all of them
# The bits of a half, moved to where a float has them, are the number times 2 ** -112.
_MOVED, _SIGN_AND_REST = 13, np.int32(-0x70000001)
_BACK = np.float32(2.0**112)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CachedVectors:
    """The vectors of one collection, or of all.

    Rows are only added behind those that a reader sees; a removal makes a copy without the row.
    """

    ids: list[str]
    rows: dict[str, int]  # by chunk id
    halves: NDArray[np.float16]  # with room for more
    count: int
    read_at: float

    @classmethod
    def of(cls, ids: Sequence[str], vectors: Matrix, read_at: float) -> "CachedVectors":
        """Keep vectors, which must have length 1."""
        all_ids = list(ids)
        rows = {chunk_id: row for row, chunk_id in enumerate(all_ids)}
        return cls(all_ids, rows, vectors.astype(np.float16), len(all_ids), read_at)

    def with_more(self, ids: Sequence[str], vectors: Matrix) -> "CachedVectors":
        """Return these vectors and more; rows are copied only if there is no room."""
        count, halves = self.count + len(ids), self.halves
        if count > len(halves):
            halves = np.empty((max(count, len(halves) * 5 // 4), vectors.shape[1]), np.float16)
            halves[: self.count] = self.halves[: self.count]
        halves[self.count : count] = vectors
        self.ids.extend(ids)
        self.rows.update(zip(ids, range(self.count, count), strict=True))
        return CachedVectors(self.ids, self.rows, halves, count, self.read_at)

    def without(self, chunk_ids: Set[str]) -> "CachedVectors":
        if self.rows.keys().isdisjoint(chunk_ids):
            return self
        staying = [row for row, key in enumerate(self.ids) if key not in chunk_ids]
        ids = [self.ids[row] for row in staying]
        rows = {chunk_id: row for row, chunk_id in enumerate(ids)}
        return CachedVectors(ids, rows, self.halves[staying], len(ids), self.read_at)

    def cosines(self, vectors: Matrix) -> Matrix:
        """Return the cosine of each vector with each row.

        Half-precision numbers become floats a piece at a time, by moving their bits: numpy's
        conversion takes seven times as long. Each vector is compared with a piece while it is in
        the cache: all at once would be spread over threads that spin.
        """
        scaled = [np.ascontiguousarray(vector * _BACK, dtype=np.float32) for vector in vectors]
        results = np.empty((len(vectors), self.count), np.float32)
        bits = self.halves.view(np.int16)
        piece = np.empty((min(BATCH, self.count), bits.shape[1]), np.int32)
        for start in range(0, self.count, BATCH):
            end = min(start + BATCH, self.count)
            floats = piece[: end - start]
            np.copyto(floats, bits[start:end])
            np.left_shift(floats, _MOVED, out=floats)
            np.bitwise_and(floats, _SIGN_AND_REST, out=floats)
            for vector, cosines in zip(scaled, results, strict=True):
                np.matmul(floats.view(np.float32), vector, out=cosines[start:end])
        return results

    def vector(self, chunk_id: str) -> NDArray[np.float32]:
        """Return the vector of a chunk that is here."""
        vector: NDArray[np.float32] = self.halves[self.rows[chunk_id]].astype(np.float32)
        return vector


class ExactVectors:
    """A cache of vectors by collection, compared exactly; the least recently searched go first."""

    def __init__(
        self,
        read: Callable[[CollectionScope], tuple[Sequence[str], Matrix]],
        count: Callable[[CollectionScope], int],
        *,
        most: int,
        most_of_all: int,
        fresh_seconds: float,
        waited_for: int = WAITED_FOR,
    ) -> None:
        """Keep at most `most` vectors of a collection and `most_of_all` in all.

        Vectors that other processes may write are read again after a while. A search does not wait
        for more than `waited_for` vectors to be read.
        """
        self._read = read
        self._count = count
        self._most, self._most_of_all = most, most_of_all
        self._fresh_seconds = fresh_seconds
        self._waited_for = waited_for
        self._coming: set[CollectionScope] = set()
        self._vectors: OrderedDict[CollectionScope, CachedVectors] = OrderedDict()
        self._sizes: dict[CollectionScope, int] = {}  # roughly: counted once, then as they grow
        self._writes = 0
        self._lock = threading.RLock()

    def nearest(
        self, vectors: Matrix, readable: Readable, *, limit: int
    ) -> list[list[tuple[str, float]]] | None:
        """Return the nearest chunks of each vector, best first; None if there are too many vectors,
        or if they are still being read.
        """
        scopes: list[CollectionScope] = [None] if readable.ids is None else [*sorted(readable.ids)]
        most = self._most_of_all if readable.ids is None else self._most
        sizes = {scope: self._size(scope) for scope in scopes} if most else {}
        if not most or sum(sizes.values()) > most or self._are_coming(sizes):
            return None
        parts = [part for part in map(self._of, scopes) if part.count]
        if not parts:
            return [[] for _ in vectors]
        cosines = np.concatenate([part.cosines(vectors) for part in parts], axis=1)
        ids = list(chain.from_iterable(part.ids[: part.count] for part in parts))
        return [_best(ids, row, limit) for row in cosines]

    def _are_coming(self, sizes: Mapping[CollectionScope, int]) -> bool:
        """Whether collections are being read; starts to read large ones in the background."""
        with self._lock:
            new = [size for size in sizes if size not in self._vectors]
            if sum(sizes[scope] for scope in new) > self._waited_for and not self._coming:
                self._coming.update(new)
                threading.Thread(target=self._bring, args=(new,), daemon=True).start()
            return not self._coming.isdisjoint(new)

    def _bring(self, scopes: Sequence[CollectionScope]) -> None:
        try:
            for scope in scopes:
                self._of(scope)
        except RagError as error:
            log_throttled(log, "Vectors are not kept in memory", error)
        finally:
            with self._lock:
                self._coming.difference_update(scopes)

    def vectors(self, chunk_ids: Sequence[str]) -> dict[str, NDArray[np.float32]] | None:
        """Return the vectors of these chunks, of length 1; None unless all are cached."""
        with self._lock:
            cached = [*self._vectors.values()]
        results = {
            key: vectors.vector(key)
            for vectors in cached
            for key in chunk_ids
            if key in vectors.rows
        }
        return results if len(results) == len(chunk_ids) else None

    def _size(self, collection: CollectionScope) -> int:
        vectors = self._vectors.get(collection)
        if vectors is not None:
            return vectors.count
        if collection not in self._sizes:
            self._sizes[collection] = self._count(collection)
        return self._sizes[collection]

    def _of(self, collection: CollectionScope) -> CachedVectors:
        with self._lock:
            cached, writes = self._vectors.get(collection), self._writes
            if cached is not None and time.monotonic() - cached.read_at < self._fresh_seconds:
                self._vectors.move_to_end(collection)
                return cached
        ids, vectors = self._read(collection)
        cached = CachedVectors.of(ids, unit(vectors) if ids else vectors, time.monotonic())
        with self._lock:
            self._sizes[collection] = len(ids)
            if ids and self._writes == writes:  # else it may be of before
                self._vectors[collection] = cached
                self._vectors.move_to_end(collection)
                total = sum(other.count for other in self._vectors.values())
                while total > self._most:
                    total -= self._vectors.popitem(last=False)[1].count
        return cached

    # ── What is written meanwhile ────────────────────────────────────────────────────────────

    def add(self, chunk_ids: Sequence[str], vectors: Matrix, collections: Sequence[str]) -> None:
        vectors = unit(vectors)
        with self._lock:
            self._drop(chunk_ids)
            for collection in {*collections, None}:
                rows = [
                    row for row, of_row in enumerate(collections) if collection in (of_row, None)
                ]
                if collection in self._sizes:
                    self._sizes[collection] += len(rows)
                cached = self._vectors.get(collection)
                if cached is not None:
                    ids = [chunk_ids[row] for row in rows]
                    self._vectors[collection] = cached.with_more(ids, vectors[rows])

    def move(self, collections: Mapping[str, str]) -> None:
        with self._lock:
            self._drop(list(collections))
            for collection in {*collections.values(), None}:
                self._vectors.pop(collection, None)
                self._sizes.pop(collection, None)

    def remove(self, chunk_ids: Sequence[str]) -> None:
        with self._lock:
            self._drop(chunk_ids)
            self._sizes.clear()

    def _drop(self, chunk_ids: Sequence[str]) -> None:
        gone = frozenset(chunk_ids)
        with self._lock:
            self._writes += 1
            for collection, vectors in self._vectors.items():
                self._vectors[collection] = vectors.without(gone)

    def clear(self) -> None:
        with self._lock:
            self._writes += 1
            self._vectors.clear()
            self._sizes.clear()


def _best(ids: Sequence[str], cosines: NDArray[np.float32], limit: int) -> list[tuple[str, float]]:
    """Return the best; only those that may be among them are sorted."""
    least = -np.partition(-cosines, limit)[limit] if limit < len(ids) else -np.inf
    near = np.flatnonzero(cosines >= least)
    best = near[np.argsort(-cosines[near], kind="stable")[:limit]]
    return [(ids[row], cosine) for row, cosine in zip(best, cosines[best].tolist(), strict=True)]


FromIndex = TypeVar("FromIndex")

PLACE = "collection"  # what the index knows of a chunk: where it is
PAGE = 5000  # chunks written in one request
# Ids listed in one: Chroma counts its way to each page, so that many pages take the square of them.
LISTED = 250_000
# Collections of no more chunks together are searched exactly, by vectors in memory: 230 MB of the
# packaged model's. Those of a server travel as text, and others write there. Where nothing is
# filtered, a graph of more than the third is quicker.
MOST_HELD, MOST_HELD_OF_A_SERVER, MOST_OF_ALL = 300_000, 2_000, 60_000
FRESH_SECONDS = 5.0
# That a server may take: a question has words to go on with, what is written must get there.
QUERY_SECONDS, WRITE_SECONDS = 5.0, 60.0
# Wide beams: a missed neighbour is a missed answer, and 20 000 chunks take a millisecond anyway.
HNSW = {"space": "cosine", "max_neighbors": 32, "ef_construction": 200, "ef_search": 200}


class ChromaIndex:
    """Chunk vectors in a Chroma collection, which records the model that made them.

    Opened at the first use. The embedded index belongs to one process at a time; `close` gives it
    back. Threads may share one index.
    """

    def __init__(
        self,
        embedding: str,
        *,
        directory: Path | None = None,
        url: str | None = None,
        collection: str = COLLECTION,
    ) -> None:
        """`embedding` is the model's name; give a directory (embedded) or a URL (server)."""
        if (directory is None) == (url is None):
            raise SetupError("A vector index is either a directory or a URL; expected one of them.")
        self._embedding = embedding
        self._name = collection
        self._directory = directory
        self._url = url
        self._lock = threading.RLock()
        self._is_ours = False
        self._client: Any = None
        self._collection: Any = None
        self._exact = ExactVectors(
            lambda place: self._read(where=place and {PLACE: place}),
            self._count_in,
            most=MOST_HELD if url is None else MOST_HELD_OF_A_SERVER,
            most_of_all=MOST_OF_ALL if url is None else 0,
            fresh_seconds=math.inf if url is None else FRESH_SECONDS,
        )

    def add(self, chunk_ids: Sequence[str], vectors: Matrix, collections: Sequence[str]) -> None:
        if not chunk_ids:
            return
        dimensions = int(vectors.shape[1])

        def upsert(collection: Any) -> None:
            self._check(collection, dimensions)
            for part in self._parts(len(chunk_ids)):
                collection.upsert(
                    ids=list(chunk_ids[part]),
                    embeddings=vectors[part],
                    metadatas=[{PLACE: place} for place in collections[part]],
                )

        with self._lock:  # writers one at a time; Chroma orders them no better itself
            self._use(upsert, None, create=dimensions)
            self._exact.add(chunk_ids, vectors, collections)

    def _parts(self, count: int) -> Iterator[slice]:
        """Return the parts in which one request each may write so many chunks."""
        step = min(PAGE, self._client.get_max_batch_size())
        return (slice(start, start + step) for start in range(0, count, step))

    def move(self, collections: Mapping[str, str]) -> None:
        def update(collection: Any) -> None:
            ids = sorted(collections)
            for part in self._parts(len(ids)):
                there = collection.get(ids=ids[part], include=[])["ids"]
                if there:
                    places = [{PLACE: collections[key]} for key in there]
                    collection.update(ids=there, metadatas=places)

        with self._lock:
            self._use(update, None)
            self._exact.move(collections)

    def remove(self, chunk_ids: Sequence[str]) -> None:
        def delete(collection: Any) -> None:
            for part in self._parts(len(chunk_ids)):
                collection.delete(ids=list(chunk_ids[part]))

        with self._lock:
            self._use(delete, None)
            self._exact.remove(chunk_ids)

    def nearest(
        self, vectors: Matrix, readable: Readable, *, limit: int
    ) -> list[list[tuple[str, float]]]:
        def query(collection: Any) -> list[list[tuple[str, float]]]:
            self._check(collection, vectors.shape[1])
            exact = self._exact.nearest(vectors, readable, limit=limit)
            if exact is not None:
                return exact
            reply = collection.query(
                query_embeddings=vectors,
                n_results=limit,
                include=["distances"],
                where=None if readable.ids is None else {PLACE: {"$in": sorted(readable.ids)}},
            )
            return [
                [(key, 1.0 - float(distance)) for key, distance in zip(*pair, strict=True)]
                for pair in zip(reply["ids"], reply["distances"], strict=True)
            ]

        none: list[list[tuple[str, float]]] = [[] for _ in vectors]
        return self._use(query, none) if limit > 0 and readable.ids != frozenset() else none

    def vectors(self, chunk_ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        cached = self._exact.vectors(chunk_ids)
        if cached is None:
            return dict(zip(*self._read(ids=list(chunk_ids)), strict=True))
        return cached

    def _read(self, **which: Any) -> tuple[list[str], Matrix]:
        none: dict[str, Any] = {"ids": [], "embeddings": np.empty((0, 0))}
        chunk_rows = self._use(lambda chunks: chunks.get(include=["embeddings"], **which), none)
        return chunk_rows["ids"], np.asarray(chunk_rows["embeddings"], dtype=np.float32)

    def _count_in(self, place: str | None) -> int:
        if place is None:
            return self.count()
        where = {PLACE: place}
        return self._use(lambda chunks: len(chunks.get(where=where, include=[])["ids"]), 0)

    def count(self) -> int:
        return self._use(lambda collection: int(collection.count()), 0)

    def chunk_ids(self, among: Sequence[str] | None = None) -> set[str]:
        def stored_ids(collection: Any) -> set[str]:
            if among is not None:
                return set(collection.get(ids=list(among), include=[])["ids"]) if among else set()
            ids: set[str] = set()
            for offset in range(0, collection.count(), LISTED):
                ids.update(collection.get(limit=LISTED, offset=offset, include=[])["ids"])
            return ids

        return self._use(stored_ids, set())

    def clear(self) -> None:
        from chromadb.errors import NotFoundError

        with self._lock, self._translated():
            try:
                self._opened().delete_collection(self._name)
            except NotFoundError:
                return  # nothing was ever added
            finally:
                self._collection = None
                self._exact.clear()

    def check(self) -> None:
        """Raise IndexMismatch if another embedding model built the index. Opens it."""
        self._use(lambda collection: self._check(collection, None), None)

    def close(self) -> None:
        with self._lock:
            if self._client is not None:
                self._client.close()
            self._client = self._collection = None
            self._let_go()

    def _let_go(self) -> None:
        if self._directory is not None and self._is_ours:
            self._is_ours = False
            release(self._directory)

    def _use(
        self, act: Callable[[Any], FromIndex], otherwise: FromIndex, *, create: int | None = None
    ) -> FromIndex:
        """Act on the collection; return `otherwise` if there is none and none is to be created."""
        from chromadb.errors import NotFoundError

        for attempt in (1, 2):
            try:
                with self._translated():
                    collection = self._opened_collection(create)
                    return otherwise if collection is None else act(collection)
            except NotFoundError:  # cleared by another index object or process since we opened it
                self._collection = None
                self._exact.clear()
                if attempt == 2:
                    raise
        return otherwise

    def _opened_collection(self, dimensions: int | None) -> Any:
        from chromadb.errors import NotFoundError

        with self._lock:
            if self._collection is None and dimensions is not None:
                self._collection = self._opened().get_or_create_collection(
                    self._name,
                    embedding_function=None,
                    configuration={"hnsw": HNSW},
                    metadata={"embedding": self._embedding, "dimensions": dimensions},
                )
            elif self._collection is None:
                with suppress(NotFoundError):
                    self._collection = self._opened().get_collection(
                        self._name, embedding_function=None
                    )
            return self._collection

    def _opened(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = self._open()
            return self._client

    def _open(self) -> Any:
        import chromadb
        import httpx
        from chromadb.config import Settings

        quiet = Settings(anonymized_telemetry=False)
        if self._directory is None:
            parts = urlsplit(str(self._url))
            is_ssl = parts.scheme == "https"
            port = parts.port or (443 if is_ssl else 8000)
            # Its client waits for ever for a server that takes the connection and says nothing.
            httpx.get(f"{str(self._url).rstrip('/')}/api/v2/heartbeat", timeout=QUERY_SECONDS)
            client: Any = chromadb.HttpClient(
                parts.hostname or "", port, ssl=is_ssl, settings=quiet
            )
            session = client._server._session
            session.timeout, session.event_hooks = WRITE_SECONDS, {"request": [_hurry]}
            return client
        acquire(self._directory)
        self._is_ours = True
        try:
            return chromadb.PersistentClient(self._directory, settings=quiet)
        except BaseException:
            self._let_go()
            raise

    def _check(self, collection: Any, dimensions: int | None) -> None:
        made_by = collection.metadata or {}
        built = (made_by.get("embedding"), made_by.get("dimensions"))
        if built[0] != self._embedding or dimensions not in (None, built[1]):
            raise IndexMismatch(
                f"The vector index was built with the embedding model {built[0]!r} "
                f"({built[1]} dimensions), but the settings name {self._embedding!r}"
                f"{f' ({dimensions} dimensions)' if dimensions else ''}. Run `groundnote reindex`, "
                "or set embedding.model back."
            )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        from chromadb.errors import ChromaError, NotFoundError
        from httpx import HTTPError

        try:
            yield
        except NotFoundError:
            raise
        except (ChromaError, HTTPError, ValueError, OSError) as error:
            full = storage_reason(str(error))
            if self._url is not None:
                message = (
                    f"The Chroma server at {self._url} does not answer as expected ({error}); "
                    "check that it runs and that retrieval.chroma_url is right."
                )
            elif full is not None:
                message = f"The vector index in {self._directory}: {full}"
            else:
                message = (
                    f"The vector index in {self._directory} cannot be read ({error}). It is made "
                    "again from the database: stop the server, run `groundnote doctor --repair`."
                )
            raise IndexAway(message) from error


class SharedIndex:
    """The index that another process of this server has open; see `rag.runtime.shared`."""

    def __init__(self, url: str) -> None:
        self._index = SharedObject(url, "index")

    def _write(self, method: str, *arguments: Any) -> Any:
        return self._index.call(method, *arguments, seconds=WRITE_SECONDS)

    def add(self, chunk_ids: Sequence[str], vectors: Matrix, collections: Sequence[str]) -> None:
        self._write("add", chunk_ids, vectors, collections)

    def move(self, collections: Mapping[str, str]) -> None:
        self._write("move", collections)

    def remove(self, chunk_ids: Sequence[str]) -> None:
        self._write("remove", chunk_ids)

    def clear(self) -> None:
        self._write("clear")

    def check(self) -> None:
        self._write("check")

    def count(self) -> int:
        return int(self._write("count"))

    def chunk_ids(self, among: Sequence[str] | None = None) -> set[str]:
        return set(self._write("chunk_ids", among))

    def nearest(
        self, vectors: Matrix, readable: Readable, *, limit: int
    ) -> list[list[tuple[str, float]]]:
        nearest = self._index.call("nearest", vectors, readable, seconds=QUERY_SECONDS, limit=limit)
        return list(nearest)

    def vectors(self, chunk_ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        return dict(self._index.call("vectors", chunk_ids, seconds=QUERY_SECONDS))

    def close(self) -> None:
        self._index.close()


def _hurry(request: Any) -> None:
    """Give a search a short timeout, for a server that accepts connections but does not reply."""
    if request.url.path.endswith("/query"):
        request.extensions["timeout"] = dict.fromkeys(request.extensions["timeout"], QUERY_SECONDS)

"""The vector index over chunks: Chroma, embedded in this process or a server by URL."""

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from rag.db.engine import storage_reason
from rag.errors import IndexAway, IndexMismatch, SetupError
from rag.records import Readable
from rag.runtime.shared import SharedObject
from rag.seams import Matrix
from rag.search.index_lock import COLLECTION, acquire, release
from rag.search.vector_cache import ExactVectors

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
    """Chunk vectors in a Chroma collection that knows which model made them.

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
            step = min(PAGE, self._client.get_max_batch_size())
            for start in range(0, len(chunk_ids), step):
                part = slice(start, start + step)
                collection.upsert(
                    ids=list(chunk_ids[part]),
                    embeddings=vectors[part],
                    metadatas=[{PLACE: place} for place in collections[part]],
                )

        with self._lock:  # writers one at a time; Chroma orders them no better itself
            self._use(upsert, None, create=dimensions)
            self._exact.add(chunk_ids, vectors, collections)

    def move(self, collections: Mapping[str, str]) -> None:
        def update(collection: Any) -> None:
            step = min(PAGE, self._client.get_max_batch_size())
            ids = sorted(collections)
            for start in range(0, len(ids), step):
                there = collection.get(ids=ids[start : start + step], include=[])["ids"]
                if there:
                    places = [{PLACE: collections[key]} for key in there]
                    collection.update(ids=there, metadatas=places)

        with self._lock:
            self._use(update, None)
            self._exact.move(collections)

    def remove(self, chunk_ids: Sequence[str]) -> None:
        def delete(collection: Any) -> None:
            step = min(PAGE, self._client.get_max_batch_size())
            for start in range(0, len(chunk_ids), step):
                collection.delete(ids=list(chunk_ids[start : start + step]))

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
        """Act on the collection; `otherwise` if there is none and none is to be created."""
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
                try:
                    self._collection = self._opened().get_collection(
                        self._name, embedding_function=None
                    )
                except NotFoundError:
                    return None
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
            raise IndexAway(self._explain(error)) from error

    def _explain(self, error: Exception) -> str:
        if self._url is not None:
            return (
                f"The Chroma server at {self._url} does not answer as expected ({error}); check "
                "that it runs and that retrieval.chroma_url is right."
            )
        full = storage_reason(str(error))
        if full is not None:
            return f"The vector index in {self._directory}: {full}"
        return (
            f"The vector index in {self._directory} cannot be read ({error}). It is made "
            "again from the database: stop the server, run `groundnote doctor --repair`."
        )


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
    """A search does not wait long for a server that took the connection and says nothing."""
    if request.url.path.endswith("/query"):
        request.extensions["timeout"] = dict.fromkeys(request.extensions["timeout"], QUERY_SECONDS)

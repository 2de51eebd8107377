"""Vectors of a second, multilingual model, kept in the database and compared exactly.

They are made in the background, after the first model's: until a chunk has one, it is found by the
first model and by words. They follow the database by themselves, since a chunk's row takes its
vector along when it goes.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Engine, delete, func, insert, select

from rag.db import chunks, inside, reading, second_vectors, versions, writing
from rag.records import Readable
from rag.seams import Embedder, Matrix
from rag.search.confidence import SAMPLE, Spread, usual_spread
from rag.search.embedders.local import Vector

MOST_HELD = 50_000  # chunks whose vectors stay in memory: 77 MB; of more candidates are compared
BATCH = 64  # chunks that are embedded between two writes
SHARE_OF_TIME = 0.02  # that reading a growing collection again may take
STEPS = 127  # of a number that is kept in one byte


class QuestionEmbedder(Embedder, Protocol):
    """An embedder with a separate call for questions."""

    def embed_questions(self, texts: list[str]) -> Matrix: ...

    def is_word(self, text: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class Cosines:
    """The cosines of a question with some chunks, or with the best, and the spread of all."""

    of_chunk: dict[str, float]
    spread: Spread | None  # where all were compared


@dataclass(frozen=True, slots=True)
class _CollectionVectors:
    version: int
    is_whole: bool
    rows: dict[str, int]
    vectors: Matrix
    read_at: float
    seconds: float


class MultilingualVectors:
    """The vectors of the second model, of the chunks that have one."""

    def __init__(self, engine: Engine, embedder: QuestionEmbedder) -> None:
        self._engine = engine
        self._embedder = embedder
        self._collections: OrderedDict[str, _CollectionVectors] = OrderedDict()
        self._lock = threading.Lock()
        self._made = threading.Event()

    @property
    def model(self) -> str:
        return self._embedder.name

    # ── Asking ───────────────────────────────────────────────────────────────────────────────

    def questions(self, texts: Sequence[str]) -> Matrix | None:
        """Return the questions' vectors; None, without loading the model, if no chunk has one."""
        if not self._made.is_set():
            with reading(self._engine) as connection:
                if connection.execute(select(second_vectors.c.chunk_id).limit(1)).first() is None:
                    return None
            self._made.set()
        return self._embedder.embed_questions(list(texts))

    def is_word(self, text: str) -> bool:
        """Whether the model has one piece for the whole text, in any language."""
        return self._embedder.is_word(text)

    @cached_property
    def usual(self) -> Spread:
        """The spread of the model's cosines between texts that have nothing in common."""
        return usual_spread(self._embedder.embed)

    def nearest(self, vector: Vector, readable: Readable, *, limit: int) -> Cosines:
        """Return the best of all readable chunks; none if there are too many to compare."""
        parts = self._parts(readable)
        if not parts:
            return Cosines({}, None)
        cosines = np.concatenate([part.vectors @ vector for part in parts])
        ids = [chunk_id for part in parts for chunk_id in part.rows]
        best = np.argsort(-cosines, kind="stable")[:limit]
        results = {ids[place]: float(cosines[place]) for place in best}
        return Cosines(results, Spread.of(cosines))

    def spread(self, vector: Vector, readable: Readable) -> Spread:
        """Return the spread of the cosines with a sample, if not all are compared."""
        query = select(second_vectors.c.chunk_id).join(chunks)
        query = query.where(inside(chunks.c.collection_id, readable))
        with reading(self._engine) as connection:
            ids = connection.scalars(query.order_by(second_vectors.c.chunk_id).limit(SAMPLE)).all()
        cosines = self.cosines(vector, ids, readable)
        return Spread.of(np.array(list(cosines.values()), dtype=np.float32))

    def cosines(
        self, vector: Vector, chunk_ids: Sequence[str], readable: Readable
    ) -> dict[str, float]:
        """Return the cosines of the chunks that have a vector."""
        parts = self._parts(readable)
        if parts:
            return {
                key: float(part.vectors[part.rows[key]] @ vector)
                for part in parts
                for key in chunk_ids
                if key in part.rows
            }
        table = second_vectors
        query = (
            select(table.c.chunk_id, table.c.vector)
            .join(chunks)
            .where(
                table.c.chunk_id.in_(list(chunk_ids)),
                table.c.model == self._embedder.name,
                inside(chunks.c.collection_id, readable),
            )
        )
        with reading(self._engine) as connection:
            rows = connection.execute(query).all()
        return {row.chunk_id: float(_vector(row.vector) @ vector) for row in rows}

    def _parts(self, readable: Readable) -> list[_CollectionVectors]:
        """Return the vectors by collection; none if there are more than can be cached."""
        is_open = inside(chunks.c.collection_id, readable)
        with reading(self._engine) as connection:
            now = versions(connection, readable)
            counted = select(chunks.c.row).where(is_open).limit(MOST_HELD + 1).subquery()
            size = connection.execute(select(func.count()).select_from(counted)).scalar_one()
            if size > MOST_HELD:
                return []
            parts = [self._part(connection, key, version) for key, version in sorted(now.items())]
        return [part for part in parts if part.rows]

    def _part(self, connection: Connection, collection_id: str, version: int) -> _CollectionVectors:
        with self._lock:
            vectors = self._collections.get(collection_id)
        if vectors is None or vectors.version != version or _may_have_grown(vectors):
            vectors = self._read(connection, collection_id, version)
        with self._lock:
            self._collections[collection_id] = vectors
            self._collections.move_to_end(collection_id)
            while sum(len(cached.rows) for cached in self._collections.values()) > MOST_HELD:
                self._collections.popitem(last=False)
        return vectors

    def _read(self, connection: Connection, collection_id: str, version: int) -> _CollectionVectors:
        began = time.monotonic()
        table = second_vectors
        is_own = chunks.c.collection_id == collection_id
        query = (
            select(chunks.c.id, table.c.vector)
            .join(table, table.c.chunk_id == chunks.c.id)
            .where(is_own, table.c.model == self._embedder.name)
            .order_by(chunks.c.row)
        )
        rows = connection.execute(query).all()
        size = select(func.count()).select_from(chunks).where(is_own)
        is_whole = connection.execute(size).scalar_one() == len(rows)
        vectors = np.array([_vector(row.vector) for row in rows], dtype=np.float32)
        now = time.monotonic()
        places = {row.id: place for place, row in enumerate(rows)}
        return _CollectionVectors(version, is_whole, places, vectors, now, now - began)

    # ── Making them ──────────────────────────────────────────────────────────────────────────

    def make_missing(self, is_over: Callable[[], bool] = bool) -> Iterator[tuple[int, int]]:
        """Embed chunks without a vector; yield how many chunks have one, and how many there are."""
        table = second_vectors
        with writing(self._engine) as connection:
            connection.execute(delete(table).where(table.c.model != self._embedder.name))
        has_vector = select(table.c.chunk_id).where(table.c.chunk_id == chunks.c.id).exists()
        missing = select(chunks.c.id, chunks.c.heading, chunks.c.text).where(~has_vector)
        missing = missing.order_by(chunks.c.row).limit(BATCH)
        done, total = self.progress()
        while done < total and not is_over():
            with reading(self._engine) as connection:
                rows = connection.execute(missing).all()
            if not rows:
                return
            _ = self.usual  # no question waits for it
            texts = [f"{row.heading}\n{row.text}" for row in rows]  # as Chunk.embedded_text
            self._store([row.id for row in rows], self._embedder.embed(texts))
            done, total = self.progress()
            yield done, total

    def progress(self) -> tuple[int, int]:
        """Return how many chunks have a vector, and how many chunks there are."""
        counted = select(func.count()).where(second_vectors.c.model == self._embedder.name)
        with reading(self._engine) as connection:
            done = int(connection.execute(counted).scalar_one())
            total = connection.execute(select(func.count()).select_from(chunks)).scalar_one()
        return done, int(total)

    def _store(self, chunk_ids: Sequence[str], vectors: Matrix) -> None:
        """Store vectors, but for chunks deleted meanwhile or embedded by another process."""
        table = second_vectors
        with writing(self._engine) as connection:
            there = set(connection.scalars(select(chunks.c.id).where(chunks.c.id.in_(chunk_ids))))
            made = select(table.c.chunk_id).where(table.c.chunk_id.in_(chunk_ids))
            there -= set(connection.scalars(made))
            rows = [
                {"chunk_id": key, "model": self._embedder.name, "vector": _bytes(vector)}
                for key, vector in zip(chunk_ids, vectors, strict=True)
                if key in there
            ]
            if rows:
                connection.execute(insert(table), rows)


def _may_have_grown(vectors: _CollectionVectors) -> bool:
    """Whether it is time to look for new vectors: nothing tells when one was added."""
    return (
        not vectors.is_whole
        and time.monotonic() - vectors.read_at > vectors.seconds / SHARE_OF_TIME
    )


def _bytes(vector: Vector) -> bytes:
    """Quantise a vector to one byte a number and the step; the cosine stays within .001."""
    step = np.float32(max(float(np.abs(vector).max()), 1e-9) / STEPS)
    steps: NDArray[np.int8] = np.rint(vector / step).astype(np.int8)
    return bytes(step.tobytes() + steps.tobytes())


def _vector(stored: bytes) -> Vector:
    step = np.frombuffer(stored, dtype=np.float32, count=1)[0]
    vector: Vector = np.frombuffer(stored, dtype=np.int8, offset=4).astype(np.float32) * step
    return vector

"""Exact similarity within chosen collections, whose vectors are kept in memory.

A filter makes a graph search dearer, the more the less it lets through, and shows by the time it
takes what lies beside it. Comparing with every vector that may be found is cheaper up to hundreds
of thousands, misses none, and takes a time that depends on these alone. They are kept in half
precision: 0.8 KB each of the packaged model's.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from rag.errors import RagError
from rag.records import Readable
from rag.runtime.error_log import log_throttled
from rag.seams import Matrix
from rag.search.embedders.engines import unit

# Rows that are compared at once: of more, two threads take a share each and spin as they wait.
AT_ONCE = 1_000
WAITED_FOR = 20_000  # vectors that a question waits for; more are read beside it
CollectionScope = str | None  # a collection, or all of them
# The bits of a half, moved to where a float has them, are the number times 2 ** -112.
_MOVED, _SIGN_AND_REST = 13, np.int32(-0x70000001)
_BACK = np.float32(2.0**112)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CachedVectors:
    """The vectors of one collection, or of all.

    Rows are only ever added behind those that a reader sees; what goes leaves a copy without it.
    """

    ids: list[str]
    rows: dict[str, int]  # by chunk id
    halves: NDArray[np.float16]  # with room for more
    count: int
    read_at: float

    @classmethod
    def of(cls, ids: Sequence[str], vectors: Matrix, read_at: float) -> "CachedVectors":
        """Of vectors of length 1."""
        all_ids = list(ids)
        rows = {chunk_id: row for row, chunk_id in enumerate(all_ids)}
        return cls(all_ids, rows, vectors.astype(np.float16), len(all_ids), read_at)

    def with_more(self, ids: Sequence[str], vectors: Matrix) -> "CachedVectors":
        """Those and more; where there is room, none is copied."""
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
        """Of each vector with each row.

        Halves become floats a piece at a time, by moving their bits: numpy's own way takes seven
        times as long. While a piece is at hand, each vector is compared with it: several at once
        would be shared out to threads that spin.
        """
        wanted = [np.ascontiguousarray(vector * _BACK, dtype=np.float32) for vector in vectors]
        results = np.empty((len(vectors), self.count), np.float32)
        bits = self.halves.view(np.int16)
        piece = np.empty((min(AT_ONCE, self.count), bits.shape[1]), np.int32)
        for start in range(0, self.count, AT_ONCE):
            end = min(start + AT_ONCE, self.count)
            floats = piece[: end - start]
            np.copyto(floats, bits[start:end])
            np.left_shift(floats, _MOVED, out=floats)
            np.bitwise_and(floats, _SIGN_AND_REST, out=floats)
            for vector, cosines in zip(wanted, results, strict=True):
                np.matmul(floats.view(np.float32), vector, out=cosines[start:end])
        return results

    def vector(self, chunk_id: str) -> NDArray[np.float32]:
        """Of one that is there."""
        vector: NDArray[np.float32] = self.halves[self.rows[chunk_id]].astype(np.float32)
        return vector


class ExactVectors:
    """Vectors by collection; those that were not searched for longest go first."""

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
        """At most `most` vectors are kept, of all collections together `most_of_all`.

        What others may write is read again after a while. Of more than `waited_for` nothing is
        known until they are read.
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
        """For each vector, best first; None if they are too many, or are still being read."""
        wanted: list[CollectionScope] = [None] if readable.ids is None else [*sorted(readable.ids)]
        most = self._most_of_all if readable.ids is None else self._most
        sizes = {scope: self._size(scope) for scope in wanted} if most else {}
        if not most or sum(sizes.values()) > most or self._are_coming(sizes):
            return None
        parts = [vectors_of for vectors_of in map(self._of, wanted) if vectors_of.count]
        if not parts:
            return [[] for _ in vectors]
        cosines = np.concatenate([part.cosines(vectors) for part in parts], axis=1)
        ids = list(chain.from_iterable(part.ids[: part.count] for part in parts))
        return [_best(ids, row, limit) for row in cosines]

    def _are_coming(self, sizes: Mapping[CollectionScope, int]) -> bool:
        """Whether some are being read; many that are not here are begun with."""
        with self._lock:
            new = [size for size in sizes if size not in self._vectors]
            if sum(sizes[scope] for scope in new) > self._waited_for and not self._coming:
                self._coming.update(new)
                bring = threading.Thread(target=self._bring, args=(new,), daemon=True)
                bring.start()
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
        """Of length 1; None unless all are held."""
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
                self._forget_oldest()
        return cached

    def _forget_oldest(self) -> None:
        total = sum(vectors.count for vectors in self._vectors.values())
        while total > self._most:
            total -= self._vectors.popitem(last=False)[1].count

    # ── What is written meanwhile ────────────────────────────────────────────────────────────

    def add(self, chunk_ids: Sequence[str], vectors: Matrix, collections: Sequence[str]) -> None:
        vectors = unit(vectors)
        with self._lock:
            self._drop(chunk_ids)
            for collection in {*collections, None}:
                places = [
                    place for place, other in enumerate(collections) if collection in (other, None)
                ]
                if collection in self._sizes:
                    self._sizes[collection] += len(places)
                cached = self._vectors.get(collection)
                if cached is not None:
                    ids = [chunk_ids[place] for place in places]
                    self._vectors[collection] = cached.with_more(ids, vectors[places])

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
    """Only those are put in order that may be among the best."""
    least = -np.partition(-cosines, limit)[limit] if limit < len(ids) else -np.inf
    near = np.flatnonzero(cosines >= least)
    best = near[np.argsort(-cosines[near], kind="stable")[:limit]]
    return [(ids[row], cosine) for row, cosine in zip(best, cosines[best].tolist(), strict=True)]

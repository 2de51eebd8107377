"""Exact similarity within chosen collections, whose vectors are kept in memory.

A filter makes a graph search dearer, the more the less it lets through, and shows by the time it
takes what lies beside it. Comparing with every vector that may be found is cheaper up to tens of
thousands, misses none, and takes a time that depends on these alone. All of a small library are
held as one.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from rag.records import Within
from rag.seams import Matrix
from rag.search.embedders.engines import unit

# Rows that are compared at once: of more, two threads take a share each and spin as they wait.
AT_ONCE = 1_000
CollectionScope = str | None  # a collection, or all of them


@dataclass(frozen=True, slots=True)
class VectorsHeld:
    """The vectors of one collection, or of all."""

    rows: Mapping[str, int]  # by chunk id, in order
    vectors: Matrix
    read_at: float

    @classmethod
    def of(cls, ids: Iterable[str], vectors: Matrix, read_at: float) -> "VectorsHeld":
        return cls({chunk_id: at for at, chunk_id in enumerate(ids)}, vectors, read_at)

    def without(self, chunk_ids: Set[str]) -> "VectorsHeld":
        if self.rows.keys().isdisjoint(chunk_ids):
            return self
        kept = {key: at for key, at in self.rows.items() if key not in chunk_ids}
        return VectorsHeld.of(kept, self.vectors[[*kept.values()]], self.read_at)


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
    ) -> None:
        """At most `most` vectors are kept, of all collections together `most_of_all`.

        What others may write is read again after a while.
        """
        self._read = read
        self._count = count
        self._most, self._most_of_all = most, most_of_all
        self._fresh_seconds = fresh_seconds
        self._held: OrderedDict[CollectionScope, VectorsHeld] = OrderedDict()
        self._sizes: dict[CollectionScope, int] = {}  # roughly: counted once, then as they grow
        self._writes = 0
        self._lock = threading.RLock()

    def nearest(
        self, vectors: Matrix, within: Within, *, limit: int
    ) -> list[list[tuple[str, float]]] | None:
        """For each vector, best first; None if the collections are too large to be held."""
        wanted: list[CollectionScope] = [None] if within.ids is None else [*sorted(within.ids)]
        most = self._most_of_all if within.ids is None else self._most
        if not most or sum(map(self._size, wanted)) > most:
            return None
        held = [found for found in map(self._of, wanted) if found.rows]
        if not held:
            return [[] for _ in vectors]
        parts = (np.array_split(each.vectors, 1 + len(each.rows) // AT_ONCE) for each in held)
        # While rows are at hand all vectors are compared with them: fetching them takes longest.
        shares = [[part @ vector for vector in vectors] for each in parts for part in each]
        ids = list(chain.from_iterable(each.rows for each in held))
        return [_best(ids, np.concatenate(share), limit) for share in zip(*shares, strict=True)]

    def vectors(self, chunk_ids: Sequence[str]) -> dict[str, NDArray[np.float32]] | None:
        """Of length 1; None unless all are held."""
        with self._lock:
            held = [*self._held.values()]
        found = {
            key: each.vectors[each.rows[key]]
            for each in held
            for key in chunk_ids
            if key in each.rows
        }
        return found if len(found) == len(chunk_ids) else None

    def _size(self, collection: CollectionScope) -> int:
        held = self._held.get(collection)
        if held is not None:
            return len(held.rows)
        if collection not in self._sizes:
            self._sizes[collection] = self._count(collection)
        return self._sizes[collection]

    def _of(self, collection: CollectionScope) -> VectorsHeld:
        with self._lock:
            held, writes = self._held.get(collection), self._writes
            if held is not None and time.monotonic() - held.read_at < self._fresh_seconds:
                self._held.move_to_end(collection)
                return held
        ids, vectors = self._read(collection)
        held = VectorsHeld.of(ids, unit(vectors) if ids else vectors, time.monotonic())
        with self._lock:
            self._sizes[collection] = len(ids)
            if ids and self._writes == writes:  # else it may be of before
                self._held[collection] = held
                self._held.move_to_end(collection)
                self._forget_oldest()
        return held

    def _forget_oldest(self) -> None:
        total = sum(len(each.rows) for each in self._held.values())
        while total > self._most:
            total -= len(self._held.popitem(last=False)[1].rows)

    # ── What is written meanwhile ────────────────────────────────────────────────────────────

    def add(self, chunk_ids: Sequence[str], vectors: Matrix, collections: Sequence[str]) -> None:
        vectors = unit(vectors)
        with self._lock:
            self._drop(chunk_ids)
            for collection in {*collections, None}:
                at = [place for place, each in enumerate(collections) if collection in (each, None)]
                if collection in self._sizes:
                    self._sizes[collection] += len(at)
                held = self._held.get(collection)
                if held is not None:
                    ids = chain(held.rows, (chunk_ids[place] for place in at))
                    both = np.vstack([held.vectors, vectors[at]])
                    self._held[collection] = VectorsHeld.of(ids, both, held.read_at)

    def move(self, collections: Mapping[str, str]) -> None:
        with self._lock:
            self._drop(list(collections))
            for collection in {*collections.values(), None}:
                self._held.pop(collection, None)
                self._sizes.pop(collection, None)

    def remove(self, chunk_ids: Sequence[str]) -> None:
        with self._lock:
            self._drop(chunk_ids)
            self._sizes.clear()

    def _drop(self, chunk_ids: Sequence[str]) -> None:
        gone = frozenset(chunk_ids)
        with self._lock:
            self._writes += 1
            for collection, held in self._held.items():
                self._held[collection] = held.without(gone)

    def clear(self) -> None:
        with self._lock:
            self._writes += 1
            self._held.clear()
            self._sizes.clear()


def _best(ids: Sequence[str], cosines: NDArray[np.float32], limit: int) -> list[tuple[str, float]]:
    """Only those are put in order that may be among the best."""
    least = -np.partition(-cosines, limit)[limit] if limit < len(ids) else -np.inf
    near = np.flatnonzero(cosines >= least)
    best = near[np.argsort(-cosines[near], kind="stable")[:limit]]
    return [(ids[at], cosine) for at, cosine in zip(best, cosines[best].tolist(), strict=True)]

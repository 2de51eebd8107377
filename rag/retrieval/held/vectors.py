"""Exact similarity within chosen collections, whose vectors are kept in memory.

A filter makes a graph search dearer, the more the less it lets through, and shows by the time it
takes what lies beside it. Comparing with every vector that may be found is cheaper up to tens of
thousands, misses none, and takes a time that depends on these alone. All of a small library are
held as one.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag.records import Within
from rag.seams import Matrix

# Rows that are compared at once: of more, two threads take a share each and spin as they wait.
AT_ONCE = 1_000
Place = str | None  # a collection, or all of them


@dataclass(frozen=True, slots=True)
class Held:
    """The vectors of one collection, or of all."""

    ids: Sequence[str]
    vectors: Matrix
    read_at: float

    def without(self, chunk_ids: frozenset[str]) -> "Held":
        kept = [at for at, each in enumerate(self.ids) if each not in chunk_ids]
        if len(kept) == len(self.ids):
            return self
        return Held([self.ids[at] for at in kept], self.vectors[kept], self.read_at)


class ExactVectors:
    """Vectors by collection; those that were not searched for longest go first."""

    def __init__(
        self,
        read: Callable[[Place], tuple[Sequence[str], Matrix]],
        count: Callable[[Place], int],
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
        self._held: OrderedDict[Place, Held] = OrderedDict()
        self._sizes: dict[Place, int] = {}  # roughly: counted once, then as they grow
        self._writes = 0
        self._lock = threading.Lock()

    def nearest(
        self, vector: NDArray[np.float32], within: Within, *, limit: int
    ) -> list[tuple[str, float]] | None:
        """Best first; None if the collections are too large to be held."""
        wanted: list[Place] = [None] if within.ids is None else [*sorted(within.ids)]
        most = self._most_of_all if within.ids is None else self._most
        sizes = {each: self._size(each) for each in wanted} if most else {}
        if not most or sum(sizes.values()) > most:
            return None
        held = [found for found in (self._of(*each) for each in sizes.items()) if found.ids]
        if not held:
            return []
        parts = (np.array_split(each.vectors, 1 + len(each.ids) // AT_ONCE) for each in held)
        cosines = np.concatenate([part @ vector for each in parts for part in each])
        ids = [chunk_id for each in held for chunk_id in each.ids]
        best = np.argsort(-cosines, kind="stable")[:limit]
        return [(ids[at], float(cosines[at])) for at in best]

    def _size(self, collection: Place) -> int:
        if collection is None:
            return self._count(None)  # which is quick
        if collection not in self._sizes:
            self._sizes[collection] = self._count(collection)
        return self._sizes[collection]

    def _of(self, collection: Place, size: int) -> Held:
        with self._lock:
            held, writes = self._held.get(collection), self._writes
            is_fresh = held is not None and time.monotonic() - held.read_at < self._fresh_seconds
            if held is not None and is_fresh and (collection or len(held.ids) == size):
                self._held.move_to_end(collection)
                return held
        ids, vectors = self._read(collection)
        held = Held(ids, _unit(vectors) if ids else vectors, time.monotonic())
        with self._lock:
            self._sizes[collection] = len(held.ids)
            if ids and self._writes == writes:  # else it may be of before
                self._held[collection] = held
                self._held.move_to_end(collection)
                self._forget_oldest()
        return held

    def _forget_oldest(self) -> None:
        total = sum(len(each.ids) for each in self._held.values())
        while total > self._most:
            total -= len(self._held.popitem(last=False)[1].ids)

    # ── What is written meanwhile ────────────────────────────────────────────────────────────

    def add(self, chunk_ids: Sequence[str], vectors: Matrix, collections: Sequence[str]) -> None:
        self.remove(chunk_ids)
        vectors = _unit(vectors)
        with self._lock:
            for collection in {*collections, None}:
                at = [place for place, each in enumerate(collections) if collection in (each, None)]
                if collection in self._sizes:
                    self._sizes[collection] += len(at)
                held = self._held.get(collection)
                if held is not None:
                    ids = [*held.ids, *(chunk_ids[place] for place in at)]
                    both = np.vstack([held.vectors, vectors[at]])
                    self._held[collection] = Held(ids, both, held.read_at)

    def move(self, collections: Mapping[str, str]) -> None:
        self.remove(list(collections))
        with self._lock:
            for collection in {*collections.values(), None}:
                self._held.pop(collection, None)
                self._sizes.pop(collection, None)

    def remove(self, chunk_ids: Sequence[str]) -> None:
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


def _unit(vectors: Matrix) -> Matrix:
    """Of length 1, as not every embedding server sends them: only directions are compared."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Matrix = vectors / np.maximum(lengths, 1e-9).astype(np.float32)
    return unit

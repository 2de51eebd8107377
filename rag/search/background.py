"""What a question's similarity to any text is like, before one text is found to be nearer.

A cosine alone tells little: one model's lie about 0, another's about .8, and a question about
everything is somewhat like everything. Standardised against the question's own background all are
told in one measure: by how many standard deviations a text stands out.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine, select

from rag.db import chunks, inside, reading, versions
from rag.language.languages import read_lists
from rag.records import Readable
from rag.seams import ChunkIndex

SAMPLE = 500  # chunks that stand for all of a library
USUAL = 50  # chunks: from so many on a library's own spread counts alone
SETS_KEPT = 32  # of collections, as askers choose them

UNRELATED = tuple(read_lists("unrelated")["sentences"])  # neither of a subject nor of a language

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and standard deviation of a question's cosines, and of how many."""

    mean: float
    deviation: float
    count: int

    @classmethod
    def of(cls, cosines: NDArray[np.float32]) -> "Spread":
        if not len(cosines):
            return cls(0.0, 0.0, 0)
        return cls(float(cosines.mean()), float(cosines.std()), len(cosines))

    def steadied(self, usual: "Spread") -> "Spread":
        """With what is usual for the model mixed in, the more the fewer chunks there are."""
        weight = min(1.0, self.count / USUAL)
        mean = weight * self.mean + (1 - weight) * usual.mean
        readable = weight * self.deviation**2 + (1 - weight) * usual.deviation**2
        between = weight * (1 - weight) * (self.mean - usual.mean) ** 2
        return Spread(mean, max((readable + between) ** 0.5, 1e-6), self.count)

    def nearness(self, cosine: float) -> float:
        """By how many standard deviations a cosine lies above the mean."""
        return (cosine - self.mean) / max(self.deviation, 1e-6)

    def standardised(self, cosines: Mapping[str, float]) -> dict[str, float]:
        return {key: self.nearness(cosine) for key, cosine in cosines.items()}


def usual_spread(embed: Callable[[Sequence[str]], Vectors]) -> Spread:
    """Of the cosines of texts that have nothing to do with each other: a model's own, for good."""
    rows = embed(UNRELATED)
    return Spread.of((rows @ rows.T)[~np.eye(len(rows), dtype=bool)])


class QuestionBackground:
    """A sample of the chunks that an asker may read: always the same, until they change."""

    def __init__(self, engine: Engine, index: ChunkIndex) -> None:
        self._engine = engine
        self._index = index
        self._held: OrderedDict[frozenset[str] | None, tuple[Mapping[str, int], Vectors]]
        self._held = OrderedDict()
        self._lock = threading.Lock()

    def spread(self, vector: Vectors, readable: Readable) -> Spread:
        """Of the cosines of a question with that sample."""
        sample = self._sample(readable)
        return Spread.of(sample @ vector if len(sample) else np.empty(0, dtype=np.float32))

    def _sample(self, readable: Readable) -> Vectors:
        with reading(self._engine) as connection:
            now = versions(connection, readable)
            with self._lock:
                held = self._held.get(readable.ids)
            if held is not None and held[0] == now:
                return held[1]
            # Ids come of the content: their order is none of the library's.
            query = select(chunks.c.id).where(inside(chunks.c.collection_id, readable))
            ids = list(connection.scalars(query.order_by(chunks.c.id).limit(SAMPLE)))
        vectors = np.array(list(self._index.vectors(ids).values()), dtype=np.float32)
        if len(vectors) < len(ids):  # some are being embedded
            return vectors
        with self._lock:
            self._held[readable.ids] = (now, vectors)
            self._held.move_to_end(readable.ids)
            while len(self._held) > SETS_KEPT:
                self._held.popitem(last=False)
        return vectors

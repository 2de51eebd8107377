"""The plainest searches, to stand beside ours for good: words, vectors, three lines of arithmetic.

The three lines are both models' cosines, standardised over all passages, and three times the share
of the question's words that a passage holds.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag.records import EVERYTHING
from rag.seams import Embedder
from rag.search.hybrid import ranked
from rag.search.lexical import LexicalIndex
from rag.search.multilingual import MultilingualVectors
from rag.search.vectors import ChromaIndex

BASELINES = ("words", "vectors", "lines")
DEPTH = 100
SAMPLES = 2_000  # of the questions, for the interval of a difference
Ranking = list[tuple[str, float]]


@dataclass(frozen=True)
class Baselines:
    """Over the indexes of a library; without a second model the first one stands alone."""

    embedder: Embedder
    index: ChromaIndex
    lexical: LexicalIndex
    second: MultilingualVectors | None

    def rankings(self, query: str) -> dict[str, Ranking]:
        """Chunks by each, best first."""
        dense = self._dense(query)
        held = self.lexical.coverage(query, EVERYTHING, list(dense))
        return {
            "words": self.lexical.search(query, EVERYTHING, limit=DEPTH),
            "vectors": ranked(dense)[:DEPTH],
            "lines": ranked({key: dense[key] + 3 * held[key] for key in dense})[:DEPTH],
        }

    def _dense(self, query: str) -> dict[str, float]:
        count = self.index.count()
        [first] = self.index.nearest(self.embedder.embed([query]), EVERYTHING, limit=count)
        models = [_standardised(dict(first))]
        rows = self.second.questions([query]) if self.second is not None else None
        if self.second is not None and rows is not None:
            models.append(
                _standardised(self.second.nearest(rows[0], EVERYTHING, limit=count).of_chunk)
            )
        common = models[0].keys() & models[-1].keys()
        return {key: float(np.mean([each[key] for each in models])) for key in common}


def falls_behind(ours: dict[str, float], other: dict[str, float]) -> bool:
    """Whether a difference of means that is paired by question is surely below nothing."""
    return compared(ours, other)[2] < 0


def compared(ours: dict[str, float], other: dict[str, float]) -> tuple[float, float, float]:
    """That difference, and in which interval it lies."""
    pairs = np.array([ours.get(query, 0.0) - each for query, each in other.items()])
    return float(pairs.mean()), *interval(pairs)


def interval(pairs: NDArray[np.float64]) -> tuple[float, float]:
    """In which the mean of differences lies with 95 %, by drawing questions again."""
    chosen = np.random.default_rng(0).integers(0, len(pairs), (SAMPLES, len(pairs)))
    low, high = np.quantile(pairs[chosen].mean(axis=1), (0.025, 0.975))
    return float(low), float(high)


def _standardised(cosines: dict[str, float]) -> dict[str, float]:
    values = np.array(list(cosines.values()))
    deviation = max(float(values.std()), 1e-6) if len(values) else 1.0
    return {key: (each - values.mean()) / deviation for key, each in cosines.items()}

"""Hybrid retrieval: vectors and words, fused, folded, and read in their neighbourhood."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag.records import Chunk, Hit
from rag.retrieval.fuse import convex_combination, ranked
from rag.retrieval.lexical import LexicalIndex
from rag.retrieval.passages import merged, neighbourhood
from rag.seams import ChunkIndex, DocumentStore, Embedder, Reranker

CANDIDATES = 100  # from each index
# Of more chunks the similarity is asked for: most that only the words found are among them.
SIMILARITIES = 300
DENSE_WEIGHT = 0.4
RERANKED = 30  # candidates that a reranker reads


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that one of the indexes found."""

    chunk: Chunk
    score: float
    cosine: float
    coverage: float


class HybridRetriever:
    """Finds chunks by meaning and by words; the database decides which of them exist."""

    def __init__(
        self,
        embedder: Embedder,
        index: ChunkIndex,
        lexical: LexicalIndex,
        documents: DocumentStore,
        *,
        reranker: Reranker | None = None,
    ) -> None:
        self._embedder = embedder
        self._index = index
        self._lexical = lexical
        self._documents = documents
        self._reranker = reranker

    def search(
        self,
        dense_query: str,
        *,
        lexical_query: str = "",
        dense_context: Sequence[tuple[str, float]] = (),
        limit: int = 8,
    ) -> list[Hit]:
        """See `rag.seams.Retriever`.

        Raises:
            ModelUnavailable: the embedding server cannot be reached.
        """
        dense_query, lexical_query = _either(dense_query), _either(lexical_query or dense_query)
        if not dense_query or limit <= 0:
            return []
        candidates = self._candidates(dense_query, lexical_query, dense_context)
        if self._reranker is not None:
            candidates = self._reranked(self._reranker, dense_query, candidates)
        # Twice as many as asked for: some become one.
        return self._read(_folded(candidates), limit)

    def _candidates(
        self, dense_query: str, lexical_query: str, dense_context: Sequence[tuple[str, float]]
    ) -> list[Candidate]:
        vector = self._mixed(dense_query, dense_context)
        cosines = dict(self._index.nearest(vector, limit=SIMILARITIES))
        words = dict(self._lexical.search(lexical_query, limit=CANDIDATES))
        fused = _fused(cosines, words)
        chunks = self._documents.chunks(list(fused))
        coverage = self._coverage({dense_query, lexical_query}, list(chunks))
        lowest = min(cosines.values(), default=0.0)
        return [
            Candidate(chunks[key], score, cosines.get(key, lowest), coverage.get(key, 0.0))
            for key, score in ranked(fused)
            if key in chunks
        ]

    def _mixed(
        self, query: str, context: Sequence[tuple[str, float]]
    ) -> NDArray[np.float32]:
        """The query's vector with those of its conversation mixed in, of length 1."""
        rows = self._embedder.embed([query, *(text for text, _ in context)])
        weights = np.array([1.0, *(weight for _, weight in context)], dtype=np.float32)
        mixed: NDArray[np.float32] = weights @ rows
        return mixed / max(float(np.linalg.norm(mixed)), 1e-12)

    def _coverage(self, queries: set[str], chunk_ids: Sequence[str]) -> dict[str, float]:
        """The better of the queries: one of them may hold more of the conversation."""
        found = [self._lexical.coverage(query, chunk_ids) for query in queries]
        return {key: max(each[key] for each in found) for key in chunk_ids}

    def _read(self, candidates: Sequence[Candidate], limit: int) -> list[Hit]:
        chosen = candidates[: 4 * limit]
        keys = dict.fromkeys((c.chunk.document_id, c.chunk.section_index) for c in chosen)
        texts = self._documents.section_texts(list(keys))
        hits = [_hit(candidate, texts) for candidate in chosen]
        return merged(hits, texts)[:limit]

    def _reranked(
        self, reranker: Reranker, query: str, candidates: Sequence[Candidate]
    ) -> list[Candidate]:
        best, rest = candidates[:RERANKED], candidates[RERANKED:]
        scores = reranker.score(query, [candidate.chunk.embedded_text for candidate in best])
        order = sorted(range(len(best)), key=lambda place: -scores[place])
        return [*(best[place] for place in order), *rest]


def _fused(cosines: Mapping[str, float], words: Mapping[str, float]) -> dict[str, float]:
    """Scores of the best of both indexes; `cosines` are in order, best first."""
    nearest = list(cosines)[:CANDIDATES]
    floor = cosines[nearest[-1]] if nearest else None
    lowest = min(cosines.values(), default=0.0)
    similar = {key: cosines.get(key, lowest) for key in dict.fromkeys((*nearest, *words))}
    return convex_combination(similar, words, weight=DENSE_WEIGHT, floor=floor)


def _either(query: str) -> str:
    return query.replace("\0", " ").strip()


def _hit(candidate: Candidate, texts: Mapping[tuple[str, int], str]) -> Hit:
    chunk = candidate.chunk
    text = texts.get((chunk.document_id, chunk.section_index))
    start, end = chunk.start, chunk.end
    if text is not None:
        start, end = neighbourhood(text, chunk.start, chunk.end)
    return Hit(
        chunk=chunk,
        score=candidate.score,
        passage=chunk.text if text is None else text[start:end],
        passage_start=start,
        passage_end=end,
        relevance=relevance(candidate.cosine, candidate.coverage),
    )


def relevance(cosine: float, coverage: float) -> float:
    """How likely a chunk is about its query, 0 to 1, comparable between queries."""
    return 1.0 / (1.0 + math.exp(-(8.0 * cosine + 4.0 * coverage - 6.0)))


def _folded(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Without copies: the same words under the same heading, in whichever documents.

    The same words under another title are no copy: sibling products' manuals differ by the
    product's name alone.
    """
    best: dict[str, Candidate] = {}
    for candidate in candidates:
        chunk = candidate.chunk
        words = re.findall(r"\w+", f"{chunk.heading}\n{chunk.text}".casefold())
        best.setdefault(" ".join(words), candidate)
    return list(best.values())

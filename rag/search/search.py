"""Hybrid retrieval: vectors and words, fused, folded, and read in their neighbourhood."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from rag.errors import IndexAway
from rag.records import NOTHING_BEFORE, Before, Chunk, Hit, Within
from rag.seams import ChunkIndex, DocumentStore, Embedder, Reranker
from rag.search.fuse import convex_combination, ranked
from rag.search.lexical import LexicalIndex
from rag.search.passages import grown, merged, section_of

QueryVector = NDArray[np.float32]

CANDIDATES = 100  # from each index
# Of more chunks the similarity is asked for: most that only the words found are among them.
SIMILARITIES = 300
DENSE_WEIGHT = 0.45
FEEDBACK = 5  # best chunks that the query's vector is moved towards …
FEEDBACK_WEIGHT = 0.7  # … by so much of their mean
PREFERRED = 0.15  # what a chunk of a document cited last counts more, of a score up to 1
DEEPEST = 6  # candidates that are read for each hit wanted, at most
RERANKED = 30  # candidates that a reranker reads


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
        within: Within,
        *,
        lexical_query: str = "",
        before: Before = NOTHING_BEFORE,
        limit: int = 8,
    ) -> list[Hit]:
        """See `rag.seams.Retriever`.

        Raises:
            ModelUnavailable: the embedding server cannot be reached.
            IndexAway: nor can the vector index, or it holds nothing.
        """
        dense_query, lexical_query = _either(dense_query), _either(lexical_query or dense_query)
        if not dense_query or limit <= 0:
            return []
        own, vector = self._vectors(dense_query, before)
        best, similar = self._best(vector, self._by_words(lexical_query, within, before), within)
        found = self._read(dense_query, best, within, limit, before.documents)
        return self._rated(found, own, similar, (dense_query, lexical_query), within)

    def by_words(
        self, query: str, within: Within, *, before: Before = NOTHING_BEFORE, limit: int = 8
    ) -> list[Hit]:
        """See `rag.seams.Retriever`."""
        query = _either(query)
        if not query or limit <= 0:
            return []
        best = ranked(self._by_words(query, within, before))
        found = self._read("", best, within, limit, before.documents)
        [coverage] = self._lexical.coverages([query], within, [hit.chunk.id for hit in found])
        return [replace(hit, relevance=coverage[hit.chunk.id]) for hit in found]

    def _rated(
        self,
        found: Sequence[Hit],
        own: QueryVector,
        similar: Mapping[str, float],
        queries: tuple[str, str],
        within: Within,
    ) -> list[Hit]:
        """How relevant a hit is says the question itself, without what was said before it."""
        ids = [hit.chunk.id for hit in found]
        coverages = self._lexical.coverages(list(dict.fromkeys(queries)), within, ids)
        known = self._index.vectors(ids)
        lowest = min(similar.values(), default=0.0)
        return [
            replace(
                hit,
                relevance=relevance(
                    float(own @ known[key]) if key in known else similar.get(key, lowest),
                    max(coverage[key] for coverage in coverages),
                ),
            )
            for key, hit in zip(ids, found, strict=True)
        ]

    def _vectors(self, query: str, before: Before) -> tuple[QueryVector, QueryVector]:
        """The query's own vector, and with what was said before mixed in; of length 1."""
        said = [(_either(text), weight) for text, weight in before.said if text.strip()]
        rows = self._embedder.embed([query, *(text for text, _ in said)])
        own = _unit(rows[0])
        if not said:
            return own, own
        mixed = np.array([weight for _, weight in said], dtype=np.float32) @ rows[1:]
        return own, _unit(own + mixed)

    def _by_words(self, query: str, within: Within, before: Before) -> dict[str, float]:
        """Scores by the words of a query, and less by those of what was said before it."""
        said = [(_either(text), weight) for text, weight in before.words if text.strip()]
        found = self._lexical.searches(
            [query, *(text for text, _ in said)], within, limit=CANDIDATES
        )
        total: dict[str, float] = dict(found[0])
        for (_, weight), scores in zip(said, found[1:], strict=True):
            for key, score in scores:
                total[key] = total.get(key, 0.0) + weight * score
        return dict(ranked(total)[:CANDIDATES])

    def _best(
        self, vector: QueryVector, words: Mapping[str, float], within: Within
    ) -> tuple[list[tuple[str, float]], dict[str, float]]:
        """Ids of chunks with their score, best first, and how similar the nearest are."""
        similar = self._nearest(vector, within)
        if words and not similar:
            raise IndexAway("The vector index is empty beside a full database; it is rebuilt.")
        again = self._nearest(self._moved(vector, _fused(similar, words)), within)
        return ranked(_fused(again, words)), similar

    def _nearest(self, vector: QueryVector, within: Within) -> dict[str, float]:
        [found] = self._index.nearest(vector[None], within, limit=SIMILARITIES)
        return dict(found)

    def _moved(self, vector: QueryVector, fused: Mapping[str, float]) -> QueryVector:
        """A query's vector towards the best chunks (Rocchio), to search again.

        What both indexes agree on says in the documents' own words what the query is about.
        """
        seeds = {key: score for key, score in ranked(fused)[:FEEDBACK] if score > 0}
        known = self._index.vectors(list(seeds))
        total = sum(seeds[key] for key in known)
        if total <= 0:
            return vector
        mean = sum((seeds[key] / total * known[key] for key in known), np.zeros_like(vector))
        return _unit(vector + FEEDBACK_WEIGHT * mean)

    def _read(
        self,
        query: str,
        best: Sequence[tuple[str, float]],
        within: Within,
        limit: int,
        preferred: Collection[str],
    ) -> list[Hit]:
        """The best in their neighbourhood; more is read only if too many became one.

        A reranker orders them for their query, if there is one.
        """
        best = best[: max(CANDIDATES, DEEPEST * limit)]
        hits: list[Hit] = []
        read = partial(grown, spans={})
        for many in (2, DEEPEST):
            deep = len(best) if preferred else max(RERANKED, (many + 1) * limit)
            chunks = self._documents.chunks([key for key, _ in best[:deep]], within)
            candidates = self._reranked(query, _candidates(best[:deep], chunks, preferred))
            chosen = _folded(candidates, many * limit)
            texts = self._documents.section_texts(
                list(dict.fromkeys(map(section_of, chosen))), within
            )
            hits = merged(chosen, texts, limit, read)
            if len(hits) >= limit or deep >= len(best):
                break
        return hits

    def _reranked(self, query: str, candidates: Sequence[Hit]) -> Sequence[Hit]:
        if self._reranker is None or not query:
            return candidates
        best, rest = candidates[:RERANKED], candidates[RERANKED:]
        scores = self._reranker.score(query, [each.chunk.embedded_text for each in best])
        order = sorted(range(len(best)), key=lambda place: -scores[place])
        return [*(best[place] for place in order), *rest]


def _unit(vector: QueryVector) -> QueryVector:
    return vector / max(float(np.linalg.norm(vector)), 1e-9)


def _fused(cosines: Mapping[str, float], words: Mapping[str, float]) -> dict[str, float]:
    """Scores of the best of both indexes; `cosines` are in order, best first."""
    nearest = list(cosines)[:CANDIDATES]
    floor = cosines[nearest[-1]] if nearest else None
    lowest = min(cosines.values(), default=0.0)
    similar = {key: cosines.get(key, lowest) for key in dict.fromkeys((*nearest, *words))}
    return convex_combination(similar, words, weight=DENSE_WEIGHT, floor=floor)


def _either(query: str) -> str:
    return query.replace("\0", " ").strip()


def relevance(cosine: float, coverage: float) -> float:
    """How likely a chunk is about its query, 0 to 1, comparable between queries.

    A logistic regression over the best hits of questions that the documents answer (manuals, web
    documentation, encyclopedia, abstracts), of the same questions with the answering documents
    taken away, and of questions put to the wrong library. Similarity alone tells these apart
    poorly (area under the curve 0.78, with coverage 0.87). The wrong library's hits are below
    0.1, hits beside the point spread from 0.1 to 0.5, most answers are above 0.4.
    """
    return 1.0 / (1.0 + math.exp(-(4.2 * cosine + 4.8 * coverage - 5.7)))


def _candidates(
    best: Sequence[tuple[str, float]], chunks: Mapping[str, Chunk], preferred: Collection[str]
) -> list[Hit]:
    """Those that exist; equal ones as they are read, since ids differ between libraries."""
    found = [
        (chunks[key], score + PREFERRED * (chunks[key].document_id in preferred))
        for key, score in best
        if key in chunks
    ]
    found.sort(key=lambda pair: (-pair[1], pair[0].document_name, pair[0].position))
    return [Hit(chunk, score, chunk.text, chunk.start, chunk.end) for chunk, score in found]


def _folded(candidates: Sequence[Hit], most: int) -> list[Hit]:
    """The first without copies: the same words under the same heading, in whichever documents.

    The same words under another title are no copy: sibling products' manuals differ by the
    product's name alone.
    """
    best: dict[str, Hit] = {}
    for candidate in candidates:
        if len(best) == most:
            break
        chunk = candidate.chunk
        best.setdefault(_words_of(chunk.heading, chunk.text), candidate)
    return list(best.values())


@lru_cache(1024)  # what is found is found again: by other parts, by the next question
def _words_of(heading: str, text: str) -> str:
    return " ".join(re.findall(r"\w+", f"{heading}\n{text}".casefold()))

"""Hybrid retrieval: vectors and words, fused, folded, and read in their neighbourhood."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rag.errors import IndexAway
from rag.records import Hit, Within
from rag.retrieval.fuse import convex_combination, ranked
from rag.retrieval.lexical import LexicalIndex
from rag.retrieval.passages import Texts, grown, in_turn, merged, section_of
from rag.seams import ChunkIndex, DocumentStore, Embedder, Reranker

Vector = NDArray[np.float32]

CANDIDATES = 100  # from each index
# Of more chunks the similarity is asked for: most that only the words found are among them.
SIMILARITIES = 300
DENSE_WEIGHT = 0.45
FEEDBACK = 5  # best chunks that the query's vector is moved towards …
FEEDBACK_WEIGHT = 0.7  # … by so much of their mean
MOST_APART = 5  # searches for one query
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
        split: Callable[[str, Within], Sequence[tuple[str, str]]] = lambda query, within: (),
    ) -> None:
        """`split` gives what a query that asks several things is to be searched for instead.

        Each by meaning and by words; nothing for a query that asks one thing.
        """
        self._embedder = embedder
        self._index = index
        self._lexical = lexical
        self._documents = documents
        self._reranker = reranker
        self._split = split

    def search(
        self,
        dense_query: str,
        within: Within,
        *,
        lexical_query: str = "",
        dense_context: Sequence[tuple[str, float]] = (),
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
        queries = self._split(dense_query, within)[:MOST_APART] or [(dense_query, lexical_query)]
        vectors = self._vectors([dense for dense, _ in queries], dense_context)
        found = [
            self._found(*both, *query, within, limit=limit)
            for query, both in zip(queries, vectors, strict=True)
        ]
        return found[0] if len(found) == 1 else self._shared(found, within, limit)

    def by_words(self, query: str, within: Within, *, limit: int = 8) -> list[Hit]:
        """See `rag.seams.Retriever`."""
        query = _either(query)
        if not query or limit <= 0:
            return []
        best = ranked(dict(self._lexical.search(query, within, limit=CANDIDATES)))
        found = self._read("", best, within, limit)
        coverage = self._coverage({query}, within, [hit.chunk.id for hit in found])
        return [replace(hit, relevance=coverage[hit.chunk.id]) for hit in found]

    def _found(
        self, own: Vector, vector: Vector, dense: str, lexical: str, within: Within, *, limit: int
    ) -> list[Hit]:
        """Searched for by `vector`; how relevant a hit is says the query's own."""
        best, similar = self._best(vector, lexical, within)
        most = max(CANDIDATES, DEEPEST * limit)
        hits = self._read(dense, best[:most], within, limit)
        lowest = min(similar.values(), default=0.0)
        cosines = {hit.chunk.id: similar.get(hit.chunk.id, lowest) for hit in hits}
        if own is not vector:
            known = self._index.vectors(list(cosines))
            cosines |= {key: float(own @ row) for key, row in known.items()}
        coverage = self._coverage({dense, lexical}, within, list(cosines))
        return [
            replace(hit, relevance=relevance(cosines[key], coverage[key]))
            for key, hit in zip(cosines, hits, strict=True)
        ]

    def _shared(self, found: Sequence[Sequence[Hit]], within: Within, limit: int) -> list[Hit]:
        """The best of each list in turn, so that none goes without; passages that meet are one."""
        hits = in_turn(found)
        return merged(hits, self._texts(hits, within), limit)

    def _vectors(
        self, queries: Sequence[str], context: Sequence[tuple[str, float]]
    ) -> list[tuple[Vector, Vector]]:
        """Each query's own vector, and with those of its conversation mixed in; of length 1."""
        rows = self._embedder.embed([*queries, *(text for text, _ in context)])
        own, shared = [_unit(row) for row in rows[: len(queries)]], rows[len(queries) :]
        if not context:
            return [(each, each) for each in own]
        mixed = np.array([weight for _, weight in context], dtype=np.float32) @ shared
        return [(each, _unit(each + mixed)) for each in own]

    def _best(
        self, vector: Vector, lexical_query: str, within: Within
    ) -> tuple[list[tuple[str, float]], dict[str, float]]:
        """Ids of chunks with their score, best first, and how similar the nearest are."""
        cosines = dict(self._index.nearest(vector, within, limit=SIMILARITIES))
        words = dict(self._lexical.search(lexical_query, within, limit=CANDIDATES))
        if words and not cosines:
            raise IndexAway("The vector index is empty beside a full database; it is rebuilt.")
        return ranked(self._second_look(vector, _fused(cosines, words), words, within)), cosines

    def _second_look(
        self,
        vector: Vector,
        fused: Mapping[str, float],
        words: Mapping[str, float],
        within: Within,
    ) -> dict[str, float]:
        """Search again with the query's vector moved towards the best chunks (Rocchio).

        What both indexes agree on says in the documents' own words what the query is about.
        """
        seeds = {key: score for key, score in ranked(fused)[:FEEDBACK] if score > 0}
        known = self._index.vectors(list(seeds))
        total = sum(seeds[key] for key in known)
        if total <= 0:
            return dict(fused)
        mean = sum((seeds[key] / total * known[key] for key in known), np.zeros_like(vector))
        moved = _unit(vector + FEEDBACK_WEIGHT * mean)
        return _fused(dict(self._index.nearest(moved, within, limit=SIMILARITIES)), words)

    def _coverage(
        self, queries: set[str], within: Within, chunk_ids: Sequence[str]
    ) -> dict[str, float]:
        """The better of the queries: one of them may hold more of the conversation."""
        found = [self._lexical.coverage(query, within, chunk_ids) for query in queries]
        return {key: max(each[key] for each in found) for key in chunk_ids}

    def _read(
        self,
        query: str,
        best: Sequence[tuple[str, float]],
        within: Within,
        limit: int,
    ) -> list[Hit]:
        """The best in their neighbourhood; more are read only if too many became one.

        A reranker orders them for the query, if there is one.
        """
        for many in (2, DEEPEST):
            deep = max(RERANKED, (many + 1) * limit)
            candidates = self._candidates(best[:deep], within)
            if query and self._reranker is not None:
                candidates = self._reranked(self._reranker, query, candidates)
            chosen = _folded(candidates, many * limit)
            hits = merged(chosen, self._texts(chosen, within), limit, grown)
            if len(hits) >= limit or deep >= len(best):
                break
        return hits

    def _texts(self, hits: Sequence[Hit], within: Within) -> Texts:
        """Of the hits' sections."""
        return self._documents.section_texts(list(dict.fromkeys(map(section_of, hits))), within)

    def _candidates(self, best: Sequence[tuple[str, float]], within: Within) -> list[Hit]:
        """Those that exist; equal ones as they are read, since ids differ between libraries."""
        chunks = self._documents.chunks([key for key, _ in best], within)
        found = [(chunks[key], score) for key, score in best if key in chunks]
        found.sort(key=lambda pair: (-pair[1], pair[0].document_name, pair[0].position))
        return [Hit(chunk, score, chunk.text, chunk.start, chunk.end) for chunk, score in found]

    def _reranked(self, reranker: Reranker, query: str, candidates: Sequence[Hit]) -> list[Hit]:
        best, rest = candidates[:RERANKED], candidates[RERANKED:]
        scores = reranker.score(query, [candidate.chunk.embedded_text for candidate in best])
        order = sorted(range(len(best)), key=lambda place: -scores[place])
        return [*(best[place] for place in order), *rest]


def _unit(vector: Vector) -> Vector:
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
        words = re.findall(r"\w+", f"{chunk.heading}\n{chunk.text}".casefold())
        best.setdefault(" ".join(words), candidate)
    return list(best.values())

"""Hybrid retrieval: vectors and words, fused, folded, and read in their neighbourhood."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from rag.errors import IndexAway
from rag.records import Chunk, Hit, Within
from rag.retrieval.fuse import convex_combination, ranked
from rag.retrieval.lexical import LexicalIndex
from rag.retrieval.passages import Texts, grown, in_turn, merged, section_of
from rag.seams import ChunkIndex, DocumentStore, Embedder, Matrix, Reranker

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
        found, texts = self._found(queries, vectors, within, limit)
        # The best of each list in turn, so that none goes without; passages that meet are one.
        return found[0] if len(found) == 1 else merged(in_turn(found), texts, limit)

    def by_words(self, query: str, within: Within, *, limit: int = 8) -> list[Hit]:
        """See `rag.seams.Retriever`."""
        query = _either(query)
        if not query or limit <= 0:
            return []
        best = ranked(dict(self._lexical.search(query, within, limit=CANDIDATES)))
        [found], _ = self._read([""], [best], within, limit)
        [coverage] = self._lexical.coverages([query], within, [hit.chunk.id for hit in found])
        return [replace(hit, relevance=coverage[hit.chunk.id]) for hit in found]

    def _found(
        self,
        queries: Sequence[tuple[str, str]],
        vectors: Sequence[tuple[Vector, Vector]],
        within: Within,
        limit: int,
    ) -> tuple[list[list[Hit]], Texts]:
        """For each query what is found by its vector; how relevant a hit is says its own."""
        best, similar = self._best(vectors, [words for _, words in queries], within)
        most = max(CANDIDATES, DEEPEST * limit)
        found, texts = self._read(
            [dense for dense, _ in queries], [each[:most] for each in best], within, limit
        )
        asked = list(dict.fromkeys(chain.from_iterable(queries)))
        ids = list(dict.fromkeys(hit.chunk.id for hits in found for hit in hits))
        coverage = dict(zip(asked, self._lexical.coverages(asked, within, ids), strict=True))
        for hits, both, (own, vector), cosines in zip(
            found, queries, vectors, similar, strict=True
        ):
            lowest = min(cosines.values(), default=0.0)
            known = {} if own is vector else self._index.vectors([hit.chunk.id for hit in hits])
            for place, hit in enumerate(hits):
                key = hit.chunk.id
                cosine = float(own @ known[key]) if key in known else cosines.get(key, lowest)
                # One of the two may hold more of the conversation.
                covered = max(coverage[each][key] for each in both)
                hits[place] = replace(hit, relevance=relevance(cosine, covered))
        return found, texts

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
        self, vectors: Sequence[tuple[Vector, Vector]], queries: Sequence[str], within: Within
    ) -> tuple[list[list[tuple[str, float]]], list[dict[str, float]]]:
        """Ids of chunks with their score, best first, and how similar the nearest are."""
        shared = np.stack([vector for _, vector in vectors])
        similar = self._nearest(shared, within)
        words = [*map(dict, self._lexical.searches(queries, within, limit=CANDIDATES))]
        if any(words) and not any(similar):
            raise IndexAway("The vector index is empty beside a full database; it is rebuilt.")
        moved = np.stack(list(map(self._moved, shared, map(_fused, similar, words))))
        again = self._nearest(moved, within)
        return [ranked(_fused(*both)) for both in zip(again, words, strict=True)], similar

    def _nearest(self, vectors: Matrix, within: Within) -> list[dict[str, float]]:
        return [*map(dict, self._index.nearest(vectors, within, limit=SIMILARITIES))]

    def _moved(self, vector: Vector, fused: Mapping[str, float]) -> Vector:
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
        queries: Sequence[str],
        best: Sequence[Sequence[tuple[str, float]]],
        within: Within,
        limit: int,
    ) -> tuple[list[list[Hit]], Texts]:
        """Of each query the best in their neighbourhood, and the sections that they stand in.

        What several found is read once; more is read only if too many became one. A reranker
        orders them for their query, if there is one.
        """
        hits: dict[int, list[Hit]] = {}
        texts: dict[tuple[str, int], str] = {}
        read = partial(grown, spans={})
        waiting: Sequence[int] = range(len(queries))
        for many in (2, DEEPEST):
            deep = max(RERANKED, (many + 1) * limit)
            ids = dict.fromkeys(key for place in waiting for key, _ in best[place][:deep])
            chunks = self._documents.chunks(list(ids), within)
            chosen = {}
            for place in waiting:
                candidates = self._reranked(queries[place], _candidates(best[place][:deep], chunks))
                chosen[place] = _folded(candidates, many * limit)
            sections = dict.fromkeys(map(section_of, chain.from_iterable(chosen.values())))
            texts |= self._documents.section_texts(list(sections), within)
            hits |= {place: merged(each, texts, limit, read) for place, each in chosen.items()}
            waiting = [n for n in waiting if len(hits[n]) < limit and deep < len(best[n])]
            if not waiting:
                break
        return [hits[place] for place in range(len(queries))], texts

    def _reranked(self, query: str, candidates: Sequence[Hit]) -> Sequence[Hit]:
        if self._reranker is None or not query:
            return candidates
        best, rest = candidates[:RERANKED], candidates[RERANKED:]
        scores = self._reranker.score(query, [each.chunk.embedded_text for each in best])
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


def _candidates(best: Sequence[tuple[str, float]], chunks: Mapping[str, Chunk]) -> list[Hit]:
    """Those that exist; equal ones as they are read, since ids differ between libraries."""
    found = [(chunks[key], score) for key, score in best if key in chunks]
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

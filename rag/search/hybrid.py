"""Hybrid retrieval: one score from meaning, words and codes; copies folded, passages grown.

Cosines are standardised against the question's own background, and what a passage holds of the
question's words is added: the best passage in a manual's own words holds nearly all of them, one
that answers an asker's words less than half, so that no fixed weight of ranks or BM25 is right for
both. Nothing counts against a passage that anything found.
"""

import re
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag.errors import IndexAway, SetupError, needs_extra
from rag.language.names import TypedNames, typed_names
from rag.records import (
    NO_EARLIER_TOPICS,
    NO_FILTERS,
    Certainty,
    Chunk,
    Confidence,
    EarlierTopics,
    Filters,
    Hit,
    Readable,
)
from rag.seams import ChunkIndex, DocumentStore, Embedder, Reranker
from rag.search.confidence import (
    LITTLE,
    QuestionBackground,
    Spread,
    across_languages,
    certainty,
    relevance,
    usual_spread,
)
from rag.search.embedders.local import Vector
from rag.search.lexical import LexicalIndex, look_up_identifiers
from rag.search.multilingual import MultilingualVectors
from rag.search.passages import (
    AROUND,
    BESIDE,
    arranged,
    grown,
    is_step,
    merged,
    section_of,
    with_steps,
)
from rag.search.word_index import words_of

CANDIDATES = 100  # from each index
COVERAGE = 3.0  # standard deviations that a passage with all words of a question gains
EXACT = 100.0  # the same for one that holds its code
NEAR = 3.0  # … a code near to one that nobody has: as much as one with all of the words
NAME_GAIN, NAME_CANDIDATES = 1.5, 40  # … for one that holds its product names, of so many
PREFERRED = 0.9  # … for one of a document cited last
DEEPEST = 6  # candidates that are read for each hit wanted, at most
FILTERED = 5_000  # chunks of filtered documents that are all compared; of more, the nearest of
MORE_CANDIDATES = 4_000  # … so many
RERANKED = 30  # candidates that a reranker reads
NEAREST = 20  # passages whose words tell whether a question is in their language


@dataclass(frozen=True, slots=True)
class _Scores:
    """The scores of candidate chunks by their ids: in all, and by the question alone."""

    total: dict[str, float]
    nearness: dict[str, float]  # by how many of a model's usual deviations
    coverage: dict[str, float]


@dataclass(frozen=True, slots=True)
class _SecondNearness:
    """The nearest passage by the second model, in standard deviations."""

    nearness: float  # above what is usual for the model
    standing: float  # above all passages that may be read
    is_language_known: bool  # whether those nearest hold words of the question at all


class HybridRetriever:
    """Finds chunks by meaning, words and codes; the database decides which of them exist."""

    def __init__(
        self,
        embedder: Embedder,
        index: ChunkIndex,
        lexical: LexicalIndex,
        documents: DocumentStore,
        *,
        reranker: Reranker | None = None,
        second: MultilingualVectors | None = None,
    ) -> None:
        """`second` scores the chunks that another embedding model has read."""
        self._embedder = embedder
        self._index = index
        self._lexical = lexical
        self._documents = documents
        self._reranker = reranker
        self._second = second
        self._background = QuestionBackground(lexical.engine, index)

    def search(
        self,
        query: str,
        readable: Readable,
        *,
        before: EarlierTopics = NO_EARLIER_TOPICS,
        limit: int = 8,
        filters: Filters = NO_FILTERS,
    ) -> list[Hit]:
        """Search as `rag.seams.Retriever` promises.

        Raises:
            UserError: a filter is none.
            ModelUnavailable: the embedding server cannot be reached.
            IndexAway: nor can the vector index, or it holds nothing.
        """
        query = _cleaned(query)
        if not query or limit <= 0:
            return []
        query = self._respelled(query, readable)
        only = self._documents.filtered(filters, readable).chunk_ids if filters else None
        if only == frozenset():
            return []
        scores = self._scores(*_led(query, before), readable, only)
        best = self._by_names(query, ranked(scores.total), readable)
        hits = []
        for hit in self._read(query, best, readable, limit, before.documents):
            key = hit.chunk.id
            likely = relevance(scores.nearness[key], scores.coverage[key])
            hits.append(replace(hit, relevance=likely))
        return self._with_steps(hits, readable)[:limit]

    def _respelled(self, query: str, readable: Readable) -> str:
        """Correct mistyped words; what the second model has a word piece for counts as a word."""
        if self._second is None:
            return self._lexical.respelled(query, readable)
        return self._lexical.respelled(query, readable, self._second.is_word)

    def _with_steps(self, hits: list[Hit], readable: Readable) -> list[Hit]:
        """Add the other steps of the first procedure that one of the first hits belongs to."""
        for hit in hits[:BESIDE]:
            if not is_step(hit.chunk):
                continue
            index = hit.chunk.section_index
            sections = range(index - AROUND, index + AROUND + 1)
            near = self._documents.chunks_of(hit.chunk.document_id, readable, sections=sections)
            with_all = with_steps(hits, hit, near)
            if with_all != hits:
                return with_all
        return hits

    def _by_names(
        self, query: str, best: list[tuple[str, float]], readable: Readable
    ) -> list[tuple[str, float]]:
        """Rank first the chunks with exactly the product name asked for, not a sibling's.

        A chunk of a document that is titled with another product loses.
        """
        names = typed_names(tuple(self._documents.lexicon(readable)))
        products = _names_in(query, names)
        if not products:
            return best
        chunks = self._documents.chunks([key for key, _ in best[:NAME_CANDIDATES]], readable)
        gains = {key: NAME_GAIN * _naming(products, chunk, names) for key, chunk in chunks.items()}
        return ranked({key: score + gains.get(key, 0.0) for key, score in best})

    def _scores(
        self,
        texts: Sequence[str],
        weights: Sequence[float],
        readable: Readable,
        only: Collection[str] | None,
    ) -> _Scores:
        """Score the candidates by the question, the first of the texts, and by earlier topics."""
        words = self._by_words(texts, weights, readable)
        codes = look_up_identifiers(self._lexical.engine, texts[0], readable)
        required = list(dict.fromkeys((*codes.exact, *codes.near, *words)))
        limit = CANDIDATES
        if only is not None and len(only) <= FILTERED:
            required = sorted(only)
        elif only is not None:
            limit = MORE_CANDIDATES
        standing, nearness = self._standing(texts, weights, readable, required, limit)
        if only is not None:
            standing = {key: score for key, score in standing.items() if key in only}
        shares = self._lexical.coverages(texts, readable, list(standing))
        total = {}
        for key, score in standing.items():
            covered = sum(
                weight * share[key] for weight, share in zip(weights, shares, strict=True)
            )
            is_exact, is_near = key in codes.exact, key in codes.near
            total[key] = score + COVERAGE * covered + EXACT * is_exact + NEAR * is_near
        return _Scores(total, nearness, shares[0])

    def _standing(
        self,
        texts: Sequence[str],
        weights: Sequence[float],
        readable: Readable,
        required: Sequence[str],
        limit: int,
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Return each chunk's standardised cosine, and its nearness by the question alone.

        The chunks are the nearest ones and `required`. Earlier topics lead the search, but not the
        nearness.
        """
        rows = self._embedder.embed(texts)
        question_vector, vector = _normalise(rows[0]), _mixed(rows, weights)
        [nearest] = self._index.nearest(vector[None], readable, limit=limit)
        if required and not nearest:
            raise IndexAway("The vector index is empty beside a full database; it is rebuilt.")
        others, standing_by_second = self._by_second(texts, weights, readable)
        keys = list(dict.fromkeys((*(key for key, _ in nearest), *others, *required)))
        vectors = self._index.vectors(keys)
        lowest = dict.fromkeys(keys, min((cosine for _, cosine in nearest), default=0.0))
        cosines = lowest | {key: float(row @ vector) for key, row in vectors.items()}
        spread = self._background.spread(vector, readable).steadied(self.usual)
        alone = lowest | {key: float(row @ question_vector) for key, row in vectors.items()}
        nearness = self.usual.standardised(alone)
        standing = spread.standardised(cosines)
        # A chunk that only one model has read keeps that one's score.
        for key, score in standing_by_second(keys).items():
            standing[key] = (standing[key] + score) / 2
        return standing, nearness

    def _by_second(
        self, texts: Sequence[str], weights: Sequence[float], readable: Readable
    ) -> tuple[Sequence[str], Callable[[Sequence[str]], dict[str, float]]]:
        """Return the nearest chunks by the second model, and a function that scores chunks by it;
        of those alone that this model has read.
        """
        second = self._second
        rows = None if second is None else second.questions(texts)
        if second is None or rows is None:
            return (), lambda keys: {}
        vector = _mixed(rows, weights)
        best = second.nearest(vector, readable, limit=CANDIDATES)
        spread = (best.spread or second.spread(vector, readable)).steadied(second.usual)
        return list(best.of_chunk), lambda keys: spread.standardised(
            second.cosines(vector, keys, readable)
        )

    @cached_property
    def usual(self) -> Spread:
        """The spread of the model's cosines between texts that have nothing in common."""
        return usual_spread(self._embedder.embed)

    def confidence(self, query: str, readable: Readable) -> Confidence:
        """Tell how likely the documents answer, as `rag.seams.Retriever` promises."""
        query = self._respelled(_cleaned(query), readable)
        codes = look_up_identifiers(self._lexical.engine, query, readable)
        if codes.exact:
            return Confidence(Certainty.FOUND, codes.missing)
        standing: dict[str, float] = {}
        if query:
            standing, nearness = self._standing([query], [1.0], readable, (), CANDIDATES)
        if not standing:
            return Confidence(Certainty.NOTHING, codes.missing)
        coverage = self._lexical.coverage(query, readable, list(standing))
        best = max(standing, key=lambda key: standing[key] + COVERAGE * coverage[key])
        second = self._second_nearness(query, readable)
        nearness_of_second = None if second is None else second.nearness
        level = certainty(max(nearness.values()), nearness_of_second, coverage[best])
        if second is None or level is not Certainty.NOTHING or second.is_language_known:
            return Confidence(level, codes.missing)
        level = across_languages(second.nearness, second.standing)
        return Confidence(level, codes.missing, is_other_language=True)

    def _second_nearness(self, query: str, readable: Readable) -> _SecondNearness | None:
        second = self._second
        rows = None if second is None else second.questions([query])
        if second is None or rows is None:
            return None
        nearest = second.nearest(rows[0], readable, limit=NEAREST)
        if not nearest.of_chunk:
            return None
        best = max(nearest.of_chunk.values())
        spread = nearest.spread or second.spread(rows[0], readable)
        chunks = self._documents.chunks(list(nearest.of_chunk), readable).values()
        library_words = {word for chunk in chunks for word in words_of(chunk.embedded_text)}
        words = [word for word in words_of(query) if not word.isdigit()]
        return _SecondNearness(
            second.usual.nearness(best),
            spread.nearness(best),
            sum(word in library_words for word in words) >= LITTLE * len(words),
        )

    def by_words(
        self,
        query: str,
        readable: Readable,
        *,
        before: EarlierTopics = NO_EARLIER_TOPICS,
        limit: int = 8,
    ) -> list[Hit]:
        """Search by words alone, as `rag.seams.Retriever` promises."""
        query = _cleaned(query)
        if not query or limit <= 0:
            return []
        query = self._respelled(query, readable)
        best = ranked(self._by_words(*_led(query, before), readable))
        read = self._read("", best, readable, limit, before.documents)
        [coverage] = self._lexical.coverages([query], readable, [hit.chunk.id for hit in read])
        hits = [replace(hit, relevance=coverage[hit.chunk.id]) for hit in read]
        return self._with_steps(hits, readable)[:limit]

    def _by_words(
        self, texts: Sequence[str], weights: Sequence[float], readable: Readable
    ) -> dict[str, float]:
        results = self._lexical.searches(texts, readable, limit=CANDIDATES)
        total: dict[str, float] = {}
        for weight, scores in zip(weights, results, strict=True):
            for key, score in scores:
                total[key] = total.get(key, 0.0) + weight * score
        return dict(ranked(total)[:CANDIDATES])

    def _read(
        self,
        query: str,
        best: Sequence[tuple[str, float]],
        readable: Readable,
        limit: int,
        preferred: Collection[str],
    ) -> list[Hit]:
        """Return the best hits, each with its neighbourhood.

        More candidates are read only if too many were merged. A reranker, if there is one, orders
        them by the query.
        """
        best = best[: max(CANDIDATES, DEEPEST * limit)]
        hits: list[Hit] = []
        for many in (2, DEEPEST):
            deep = len(best) if preferred else max(RERANKED, (many + 1) * limit)
            chunks = self._documents.chunks([key for key, _ in best[:deep]], readable)
            candidates: Sequence[Hit] = _candidates(best[:deep], chunks, preferred)
            if self._reranker is not None and query:
                candidates = _reranked(self._reranker, query, candidates)
            chosen = arranged(_folded(candidates, many * limit))
            sections = list(dict.fromkeys(map(section_of, chosen)))
            texts = self._documents.section_texts(sections, readable)
            hits = merged(chosen, texts, limit, grown)
            if len(hits) >= limit or deep >= len(best):
                break
        return hits


def _reranked(reranker: Reranker, query: str, candidates: Sequence[Hit]) -> Sequence[Hit]:
    best, rest = candidates[:RERANKED], candidates[RERANKED:]
    scores = reranker.score(query, [hit.chunk.embedded_text for hit in best])
    order = sorted(range(len(best)), key=lambda place: -scores[place])
    return [*(best[place] for place in order), *rest]


def _normalise(vector: Vector) -> Vector:
    return vector / max(float(np.linalg.norm(vector)), 1e-9)


def _mixed(rows: NDArray[np.float32], weights: Sequence[float]) -> Vector:
    return _normalise(np.asarray(weights, dtype=np.float32) @ rows)


def _naming(products: set[str], chunk: Chunk, names: TypedNames) -> float:
    """Return 1 if a chunk names all products asked for, and 1.5 if its title names one.

    Return -1 if it names none, in a document titled with a sibling of the same first word.
    """
    in_title, in_text = (
        _names_in(text, names) for text in (chunk.document_title, chunk.embedded_text)
    )
    if products & in_title:
        return 1.5
    if products <= in_text:
        return 1.0
    families = {name.split()[0] for name in products}
    is_sibling = any(name.split()[0] in families for name in in_title)
    return -1.0 if is_sibling and not products & in_text else 0.0


def _names_in(text: str, names: TypedNames) -> set[str]:
    return {name.text.casefold() for name in names.find(text)}


def ranked(scores: Mapping[str, float]) -> list[tuple[str, float]]:
    """Sort by score, best first; equal scores by their keys, so that runs agree."""
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))


def _cleaned(query: str) -> str:
    return query.replace("\0", " ").strip()


def _led(query: str, before: EarlierTopics) -> tuple[list[str], list[float]]:
    """Return the question and its earlier topics, and their weights."""
    earlier = [(_cleaned(text), weight) for text, weight in before.texts if text.strip()]
    return [query, *(text for text, _ in earlier)], [1.0, *(weight for _, weight in earlier)]


def _candidates(
    best: Sequence[tuple[str, float]], chunks: Mapping[str, Chunk], preferred: Collection[str]
) -> list[Hit]:
    """Return the chunks that exist, best first; equal ones in reading order, since ids differ
    between libraries.
    """
    results = [
        (chunks[key], score + PREFERRED * (chunks[key].document_id in preferred))
        for key, score in best
        if key in chunks
    ]
    results.sort(key=lambda pair: (-pair[1], pair[0].document_name, pair[0].position))
    return [Hit(chunk, score, chunk.text, chunk.start, chunk.end) for chunk, score in results]


def _folded(candidates: Sequence[Hit], most: int) -> list[Hit]:
    """Drop copies: chunks with the same words under the same heading, in whatever documents.

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


@lru_cache(1024)  # the next questions mostly find the same chunks
def _words_of(heading: str, text: str) -> str:
    return " ".join(re.findall(r"\w+", f"{heading}\n{text}".casefold()))


class CrossEncoderReranker:
    """A sentence-transformers cross-encoder from this disk, loaded at the first call."""

    def __init__(self, model: str, *, allow_download: bool = False) -> None:
        """`model` is a folder, or a Hugging Face name in the local model cache."""
        self._model = model
        self._allow_download = allow_download
        self._lock = threading.Lock()
        self._encoder: Any = None

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        if not texts:
            return []
        with self._lock:
            if self._encoder is None:
                self._encoder = self._load()
            pairs = [(query, text) for text in texts]
            scores = self._encoder.predict(pairs, batch_size=16, show_progress_bar=False)
        return [float(score) for score in scores]

    def _load(self) -> Any:
        try:
            from sentence_transformers import CrossEncoder
        except ImportError as error:
            what = f"The reranking model {self._model!r} (retrieval.rerank_model)"
            text = f"{needs_extra(what, 'models')} Until then words alone find passages."
            raise IndexAway(text) from error
        is_local = Path(self._model).is_dir() or not self._allow_download
        try:
            return CrossEncoder(self._model, device="cpu", local_files_only=is_local)
        except (OSError, ValueError, KeyError) as error:
            raise SetupError(
                f"The reranking model {self._model!r} cannot be loaded ({error}); expected "
                "a folder or a model in the local cache. Set retrieval.rerank_model to one, or "
                "leave it out."
            ) from error

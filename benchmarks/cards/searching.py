"""Every question of a set with what is found for it: by us, and by a plain BM25."""

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.cards.sets import QuestionSet, Wanted
from benchmarks.retrieval import Installation
from rag.db import reading
from rag.language.words import STOP_WORDS
from rag.records import EVERYTHING, Hit, Source
from rag.seams import Embedder, Matrix, WriteRequest
from rag.search.hybrid import HybridRetriever
from rag.search.passages import neighbourhood
from rag.search.word_index import Plan, Term, WeighedTerm, words_of
from rag.search.word_tables import Fts5Words

SOURCES = 8
PLAIN = 3  # passages of BM25
BATCH = 500


class KnownTexts:
    """An embedder that remembers each text's vector, in a folder if one is named."""

    def __init__(self, embedder: Embedder, folder: Path | None) -> None:
        self._embedder = embedder
        self._path = folder / "vectors.npz" if folder else None
        self._vectors: dict[str, Matrix] = {}
        self._is_new = False
        self.name, self.dimensions = embedder.name, embedder.dimensions
        self.max_tokens = embedder.max_tokens
        self.count_tokens = embedder.count_tokens
        if self._path and self._path.exists():
            with np.load(self._path) as kept:
                self._vectors = dict(zip(kept["keys"].tolist(), kept["vectors"], strict=True))

    def embed(self, texts: Sequence[str]) -> Matrix:
        keys = [self._key(text) for text in texts]
        missing = {k: t for k, t in zip(keys, texts, strict=True) if k not in self._vectors}
        if missing:
            found = self._embedder.embed(list(missing.values()))
            self._vectors.update(zip(missing, found, strict=True))
            self._is_new = True
        return np.array([self._vectors[key] for key in keys], dtype=np.float32)

    def _key(self, text: str) -> str:
        return hashlib.sha256(f"{self.name}\0{text}".encode("utf-8", "replace")).hexdigest()[:32]

    def save(self) -> None:
        """Write what is known, if anything is new."""
        if self._path and self._is_new:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            vectors = np.array(list(self._vectors.values()), dtype=np.float32)
            np.savez(self._path, keys=list(self._vectors), vectors=vectors)
            self._is_new = False


@dataclass(frozen=True, slots=True)
class Found:
    """A question with the passages that were found for it."""

    wanted: Wanted
    request: WriteRequest
    plain: tuple[Source, ...]  # BM25's first ones, in their neighbourhood


def searched(
    questions: QuestionSet,
    embedder: KnownTexts,
    strangers: Sequence[Wanted] = (),
) -> Iterator[Found]:
    """The documents of a set in a library of their own, and each question searched in it.

    `strangers` are questions to other libraries, which this one cannot answer.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Installation(Path(folder), embedder)
        stored = list(questions.documents(embedder))
        place.store.replace_all(stored)
        chunks = [chunk for document in stored for chunk in document.chunks]
        for start in range(0, len(chunks), BATCH):
            part = chunks[start : start + BATCH]
            vectors = embedder.embed([chunk.embedded_text for chunk in part])
            place.index.add(
                [chunk.id for chunk in part], vectors, [chunk.collection_id for chunk in part]
            )
        embedder.save()
        retriever = HybridRetriever(
            embedder,
            place.index,
            place.lexical,
            place.store,
        )
        for wanted in (*questions.questions, *strangers):
            hits = retriever.search(wanted.question, EVERYTHING, limit=SOURCES)
            sources = tuple(source_of(number, hit) for number, hit in enumerate(hits, start=1))
            relevance = {number: hit.relevance for number, hit in enumerate(hits, start=1)}
            request = WriteRequest(wanted.question, sources, (), 1_000, relevance=relevance)
            yield Found(wanted, request, tuple(_plain(place, wanted.question)))
        embedder.save()
        place.index.close()


def _plain(place: Installation, question: str) -> Iterator[Source]:
    """The best chunks by the words of the question alone, each by itself."""
    words = frozenset(words_of(question))
    terms = [Term((word,)) for word in sorted(words - STOP_WORDS or words)]
    with reading(place.engine) as connection:
        plan = Plan([WeighedTerm(term, 1, 1.0) for term in terms], [])
        best = Fts5Words().search(connection, plan, EVERYTHING, PLAIN) if terms else []
    for chunk_id, score in best:
        chunk = place.store.chunks([chunk_id], EVERYTHING)[chunk_id]
        key = chunk.document_id, chunk.section_index
        text = place.store.section_texts([key], EVERYTHING)[key]
        start, end = neighbourhood(text, chunk.start, chunk.end)
        yield source_of(0, Hit(chunk, score, text[start:end], start, end))


def source_of(number: int, hit: Hit) -> Source:
    """A hit as a session would register it."""
    chunk = hit.chunk
    return Source(
        number=number,
        chunk_id=chunk.id,
        document_id=chunk.document_id,
        document_name=chunk.document_name,
        document_title=chunk.document_title,
        locator=chunk.locator,
        heading_path=chunk.heading_path,
        text=chunk.text,
        passage=hit.passage,
        content_hash="",
    )

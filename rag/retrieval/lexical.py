"""Chunks by words: BM25 over the database's own index (SQLite FTS5, PostgreSQL tsvector)."""

from collections.abc import Sequence

from sqlalchemy import Connection, Engine

from rag.database import reading
from rag.retrieval.fts5 import Fts5Words
from rag.retrieval.query import Term, names_in, terms_of
from rag.retrieval.tsvector import TsvectorWords
from rag.retrieval.vocabulary import Vocabulary
from rag.retrieval.word_index import WordIndex, chunk_count, idf, version


class LexicalIndex:
    """Best chunks by BM25, and how much of a query a chunk holds."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._words: WordIndex = (
            TsvectorWords() if engine.dialect.name == "postgresql" else Fts5Words()
        )
        self._vocabulary: tuple[tuple[int, int], Vocabulary] | None = None

    def search(self, query: str, *, limit: int) -> list[tuple[str, float]]:
        """Ids of chunks that hold any term of the query, with their score, best first."""
        if not terms_of(query) or limit <= 0:
            return []
        with reading(self._engine) as connection:
            return self._words.search(connection, self._terms(connection, query), limit)

    def coverage(self, query: str, chunk_ids: Sequence[str]) -> dict[str, float]:
        """For each chunk the share of the query's terms that it holds, 0 to 1.

        Rare terms weigh more (by inverse document frequency), and a term that no chunk holds
        weighs most: a query about something unknown covers nothing well.
        """
        held = dict.fromkeys(chunk_ids, 0.0)
        if not terms_of(query) or not chunk_ids:
            return held
        total = 0.0
        with reading(self._engine) as connection:
            terms = [term for term in self._terms(connection, query) if term.counts]
            size = chunk_count(connection)
            frequencies = self._words.frequencies(connection, terms)
            for term, frequency in zip(terms, frequencies, strict=True):
                weight = idf(size, frequency)
                total += weight
                holders = self._words.holders(connection, term, chunk_ids) if frequency else []
                for chunk_id in holders:
                    held[chunk_id] += weight
        return {chunk_id: weight / (total or 1.0) for chunk_id, weight in held.items()}

    def _terms(self, connection: Connection, query: str) -> list[Term]:
        """What to look up, in the library's own words where the query's are none of them."""
        now = version(connection)
        if self._vocabulary is None or self._vocabulary[0] != now:
            counts = self._words.vocabulary(connection)
            self._vocabulary = now, Vocabulary(counts, self._words.stemmer)
        return list(self._vocabulary[1].meant(terms_of(query), names_in(query)))

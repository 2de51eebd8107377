"""Chunks by words: BM25 over the database's own index (SQLite FTS5, PostgreSQL tsvector)."""

import math
from collections.abc import Sequence
from typing import Protocol

from sqlalchemy import Connection, Engine, bindparam, text

from rag.database import reading
from rag.retrieval.query import Term, terms_of

HEADING_WEIGHT = 2.0


class LexicalIndex:
    """Best chunks by BM25, and how much of a query a chunk holds."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._words: _WordIndex = (
            _TsvectorWords() if engine.dialect.name == "postgresql" else _Fts5Words()
        )

    def search(self, query: str, *, limit: int) -> list[tuple[str, float]]:
        """Ids of chunks that hold any term of the query, with their score, best first."""
        terms = terms_of(query)
        if not terms or limit <= 0:
            return []
        with reading(self._engine) as connection:
            return self._words.search(connection, terms, limit)

    def coverage(self, query: str, chunk_ids: Sequence[str]) -> dict[str, float]:
        """For each chunk the share of the query's terms that it holds, 0 to 1.

        Rare terms weigh more (by inverse document frequency), and a term that no chunk holds
        weighs most: a query about something unknown covers nothing well.
        """
        terms = [term for term in terms_of(query) if term.counts]
        if not terms or not chunk_ids:
            return dict.fromkeys(chunk_ids, 0.0)
        held = dict.fromkeys(chunk_ids, 0.0)
        total = 0.0
        with reading(self._engine) as connection:
            size = self._words.size(connection)
            for term in terms:
                frequency, holders = self._words.holders(connection, term, chunk_ids)
                weight = math.log1p((size - frequency + 0.5) / (frequency + 0.5))
                total += weight
                for chunk_id in holders:
                    held[chunk_id] += weight
        return {chunk_id: weight / total for chunk_id, weight in held.items()}


class _WordIndex(Protocol):
    """What differs between the databases."""

    def search(
        self, connection: Connection, terms: Sequence[Term], limit: int
    ) -> list[tuple[str, float]]: ...

    def size(self, connection: Connection) -> int: ...

    def holders(
        self, connection: Connection, term: Term, chunk_ids: Sequence[str]
    ) -> tuple[int, list[str]]:
        """In how many chunks the term is, and in which of these."""


class _Fts5Words:
    """SQLite's FTS5 with its own bm25()."""

    _SEARCH = text(
        "SELECT chunks.id, found.score FROM "
        f"(SELECT rowid, -bm25(chunks_fts, {HEADING_WEIGHT}, 1.0) AS score FROM chunks_fts "
        "WHERE chunks_fts MATCH :match ORDER BY score DESC LIMIT :limit) AS found "
        "JOIN chunks ON chunks.row = found.rowid ORDER BY found.score DESC, chunks.row"
    )
    _FREQUENCY = text("SELECT count(*) FROM chunks_fts WHERE chunks_fts MATCH :match")
    _HOLDERS = text(
        "SELECT chunks.id FROM chunks JOIN chunks_fts ON chunks_fts.rowid = chunks.row "
        "WHERE chunks_fts MATCH :match AND chunks.id IN :ids"
    ).bindparams(bindparam("ids", expanding=True))

    def search(
        self, connection: Connection, terms: Sequence[Term], limit: int
    ) -> list[tuple[str, float]]:
        match = " OR ".join(map(_fts5, terms))
        rows = connection.execute(self._SEARCH, {"match": match, "limit": limit})
        return [(chunk_id, float(score)) for chunk_id, score in rows]

    def size(self, connection: Connection) -> int:
        return int(connection.execute(text("SELECT count(*) FROM chunks")).scalar_one())

    def holders(
        self, connection: Connection, term: Term, chunk_ids: Sequence[str]
    ) -> tuple[int, list[str]]:
        match = _fts5(term)
        frequency = connection.execute(self._FREQUENCY, {"match": match}).scalar_one()
        if not frequency:
            return 0, []
        held = connection.execute(self._HOLDERS, {"match": match, "ids": list(chunk_ids)})
        return int(frequency), list(held.scalars())


def _fts5(term: Term) -> str:
    """A quoted phrase: nothing inside is an operator (tokens hold no quotes)."""
    return f'"{" ".join(term.tokens)}"' + ("*" if term.is_prefix else "")


class _TsvectorWords:
    """PostgreSQL's tsvector; it knows no BM25, so the score is counted here."""

    # A query written out by hand is safe: tokens hold letters, numbers and marks only.
    _SEARCH = text(
        "WITH asked AS (SELECT to_tsquery('english', :tsquery) AS query) "
        "SELECT id, ts_rank_cd('{0.0, 0.0, 0.5, 1.0}', words, asked.query, 1) AS score "
        "FROM chunks, asked WHERE words @@ asked.query ORDER BY score DESC, row LIMIT :limit"
    )
    _FREQUENCY = text("SELECT count(*) FROM chunks WHERE words @@ to_tsquery('english', :tsquery)")
    _HOLDERS = text(
        "SELECT id FROM chunks WHERE id IN :ids AND words @@ to_tsquery('english', :tsquery)"
    ).bindparams(bindparam("ids", expanding=True))

    def search(
        self, connection: Connection, terms: Sequence[Term], limit: int
    ) -> list[tuple[str, float]]:
        tsquery = " | ".join(map(_tsquery, terms))
        rows = connection.execute(self._SEARCH, {"tsquery": tsquery, "limit": limit})
        return [(chunk_id, float(score)) for chunk_id, score in rows]

    def size(self, connection: Connection) -> int:
        return int(connection.execute(text("SELECT count(*) FROM chunks")).scalar_one())

    def holders(
        self, connection: Connection, term: Term, chunk_ids: Sequence[str]
    ) -> tuple[int, list[str]]:
        tsquery = _tsquery(term)
        frequency = connection.execute(self._FREQUENCY, {"tsquery": tsquery}).scalar_one()
        if not frequency:
            return 0, []
        held = connection.execute(self._HOLDERS, {"tsquery": tsquery, "ids": list(chunk_ids)})
        return int(frequency), list(held.scalars())


def _tsquery(term: Term) -> str:
    tokens = term.tokens[0] if term.is_letters else term.tokens
    return f"({' <-> '.join(tokens)})"

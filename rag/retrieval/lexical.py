"""Chunks by words: BM25 over the database's own index (SQLite FTS5, PostgreSQL tsvector)."""

import math
from collections.abc import Sequence
from typing import Protocol

from sqlalchemy import Connection, Engine, TextClause, bindparam, text

from rag.database import reading
from rag.retrieval.lexical_schema import ACCENTED, UNACCENTED
from rag.retrieval.query import Term, terms_of

HEADING_WEIGHT = 2.0
DEPTH = 5  # times the limit: how far down a phrase may lift a chunk


_WITHOUT_ACCENTS = str.maketrans(ACCENTED, UNACCENTED)  # as PostgreSQL's column is made


def _with_list(statement: str) -> TextClause:
    return text(statement).bindparams(bindparam("keys", expanding=True))


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
            size = _size(connection)
            for term in terms:
                frequency = self._words.frequency(connection, term)
                weight = _idf(size, frequency)
                total += weight
                holders = self._words.holders(connection, term, chunk_ids) if frequency else []
                for chunk_id in holders:
                    held[chunk_id] += weight
        return {chunk_id: weight / total for chunk_id, weight in held.items()}


class _WordIndex(Protocol):
    """What differs between the databases."""

    def search(
        self, connection: Connection, terms: Sequence[Term], limit: int
    ) -> list[tuple[str, float]]: ...

    def frequency(self, connection: Connection, term: Term) -> int:
        """In how many chunks the term is."""

    def holders(self, connection: Connection, term: Term, chunk_ids: Sequence[str]) -> list[str]:
        """Which of these chunks hold the term."""


class _Fts5Words:
    """SQLite's FTS5 with its own bm25()."""

    _SCORES = text(
        f"SELECT rowid, -bm25(chunks_fts, {HEADING_WEIGHT}, 1.0) AS score FROM chunks_fts "
        "WHERE chunks_fts MATCH :match ORDER BY score DESC LIMIT :limit"
    )
    _IDS = _with_list("SELECT row, id FROM chunks WHERE row IN :keys")
    _FREQUENCY = text("SELECT count(*) FROM chunks_fts WHERE chunks_fts MATCH :match")
    _HOLDERS = _with_list(
        "SELECT chunks.id FROM chunks JOIN chunks_fts ON chunks_fts.rowid = chunks.row "
        "WHERE chunks_fts MATCH :match AND chunks.id IN :keys"
    )

    def search(
        self, connection: Connection, terms: Sequence[Term], limit: int
    ) -> list[tuple[str, float]]:
        """Terms of one weight are one query; FTS5 scores each term, and they add up."""
        scores: dict[int, float] = {}
        for weight in sorted({term.weight for term in terms}, reverse=True):
            match = " OR ".join(_fts5(term) for term in terms if term.weight == weight)
            found = connection.execute(self._SCORES, {"match": match, "limit": DEPTH * limit})
            for row, score in found:
                scores[row] = scores.get(row, 0.0) + weight * score
        best = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
        rows = connection.execute(self._IDS, {"keys": [row for row, _ in best]})
        ids = {found.row: found.id for found in rows}
        return [(ids[row], score) for row, score in best if row in ids]

    def frequency(self, connection: Connection, term: Term) -> int:
        return int(connection.execute(self._FREQUENCY, {"match": _fts5(term)}).scalar_one())

    def holders(self, connection: Connection, term: Term, chunk_ids: Sequence[str]) -> list[str]:
        held = connection.execute(self._HOLDERS, {"match": _fts5(term), "keys": list(chunk_ids)})
        return list(held.scalars())


def _fts5(term: Term) -> str:
    """A quoted phrase: nothing inside is an operator (tokens hold no quotes)."""
    return f'"{" ".join(term.tokens)}"' + ("*" if term.is_prefix else "")


class _TsvectorWords:
    """PostgreSQL's tsvector. It ranks without document frequencies, so they are put in here.

    For one term `ts_rank` grows with its count and levels off, as BM25 does; divided by the
    logarithm of the length (option 1) and times the term's idf it comes close to BM25.
    """

    _SEARCH = text(
        "WITH asked AS (SELECT to_tsquery('english', query) AS query, weight "
        "FROM unnest(CAST(:queries AS text[]), CAST(:weights AS float[])) AS given(query, weight)) "
        "SELECT id, (SELECT sum(weight * ts_rank('{0, 0, 0.5, 1}', words, query, 1)) FROM asked "
        "WHERE words @@ query) AS score "
        "FROM chunks WHERE words @@ to_tsquery('english', :any) "
        "ORDER BY score DESC NULLS LAST, row LIMIT :limit"
    )
    _FREQUENCY = text("SELECT count(*) FROM chunks WHERE words @@ to_tsquery('english', :query)")
    _HOLDERS = _with_list(
        "SELECT id FROM chunks WHERE id IN :keys AND words @@ to_tsquery('english', :query)"
    )

    def search(
        self, connection: Connection, terms: Sequence[Term], limit: int
    ) -> list[tuple[str, float]]:
        size = _size(connection)
        weights = [term.weight * _idf(size, self.frequency(connection, term)) for term in terms]
        queries = [_tsquery(term) for term in terms]
        asked = {"queries": queries, "weights": weights, "any": " | ".join(queries)}
        rows = connection.execute(self._SEARCH, {**asked, "limit": limit})
        return [(chunk_id, float(score or 0.0)) for chunk_id, score in rows]

    def frequency(self, connection: Connection, term: Term) -> int:
        return int(connection.execute(self._FREQUENCY, {"query": _tsquery(term)}).scalar_one())

    def holders(self, connection: Connection, term: Term, chunk_ids: Sequence[str]) -> list[str]:
        held = connection.execute(self._HOLDERS, {"query": _tsquery(term), "keys": list(chunk_ids)})
        return list(held.scalars())


def _tsquery(term: Term) -> str:
    """Tokens hold letters, numbers and marks only: nothing in them is an operator."""
    tokens = term.tokens[0] if term.is_letters else term.tokens
    return f"({' <-> '.join(tokens)})".translate(_WITHOUT_ACCENTS)


def _size(connection: Connection) -> int:
    return int(connection.execute(text("SELECT count(*) FROM chunks")).scalar_one())


def _idf(size: int, frequency: int) -> float:
    return math.log1p((size - frequency + 0.5) / (frequency + 0.5))

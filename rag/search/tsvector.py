"""Words in PostgreSQL: the column `chunks.words`, a tsvector.

Its own `ts_rank` knows neither how rare a word is nor how long texts are, so that each term is
weighed here. It orders candidates of large libraries only: the words of others are in memory.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from sqlalchemy import Connection, TextClause, text

from rag.records import Readable
from rag.search.query import Term
from rag.search.word_index import IN_TEXT, MOST_WORDS, Positions, WeighedTerm

IN_HEADING = "A"  # the weight that the column gives to words of the heading

# Latin letters lose their accents in the index of PostgreSQL, and in what is looked up there.
ACCENTED = "àáâãäåçèéêëìíîïñòóôõöùúûüýÿāăąćčďēėęěğīįıłńňōőřśşšťūůűųźżž"
UNACCENTED = "aaaaaaceeeeiiiinooooouuuuyyaaaccdeeeegiiilnnoorssstuuuuzzz"
_WITHOUT_ACCENTS = str.maketrans(ACCENTED, UNACCENTED)  # as the column is made


class TsvectorWords:
    """A WordIndex over the column `chunks.words`."""

    # Joined term by term, so that each is one look-up in the index.
    _SCORES = (
        "WITH asked AS (SELECT to_tsquery('english', query) AS query, weight "
        "FROM unnest(CAST(:queries AS text[]), CAST(:weights AS float[])) AS given(query, weight)) "
        "SELECT id, sum(weight * ts_rank('{{0, 0, 0.7, 1}}', words, query, 1)) AS score "
        "FROM asked JOIN chunks ON words @@ query{inside} GROUP BY id, row "
        "ORDER BY score DESC, row LIMIT :limit"
    )
    _LEXEMES = text(
        "SELECT token, ARRAY(SELECT lexeme FROM unnest(to_tsvector('english', token)) "
        "ORDER BY positions[1]) AS lexemes FROM unnest(CAST(:tokens AS text[])) AS given(token)"
    )
    _FREQUENCIES = (
        "SELECT (SELECT count(*) FROM (SELECT 1 FROM chunks "
        "WHERE words @@ to_tsquery('english', query){inside} LIMIT :most) AS counted) "
        "FROM unnest(CAST(:queries AS text[])) WITH ORDINALITY AS given(query, place) "
        "ORDER BY place"
    )
    _HOLDING = (
        "SELECT id FROM chunks WHERE words @@ to_tsquery('english', :query){inside} "
        "ORDER BY row LIMIT :limit"
    )

    _HOLDERS = text(
        "SELECT place, id FROM unnest(CAST(:queries AS text[])) "
        "WITH ORDINALITY AS given(query, place), chunks "
        "WHERE id = ANY(:ids) AND words @@ to_tsquery('english', query)"
    )
    _WORDS_OF = text(
        "SELECT lexeme, array_agg((CAST(chunks.row AS bigint) << 16) | at | "
        f"(CASE kind WHEN '{IN_HEADING}' THEN 0 ELSE {IN_TEXT} END) ORDER BY chunks.row, at) "
        "AS places FROM chunks, unnest(words) AS held(lexeme, positions, weights), "
        "unnest(positions, weights) AS place(at, kind) "
        "WHERE collection_id = :collection AND chunks.row >= :first GROUP BY lexeme"
    )
    _WORDS = text(
        "SELECT word, ndoc FROM ts_stat('SELECT words FROM chunks') "
        f"ORDER BY ndoc DESC LIMIT {MOST_WORDS}"
    )

    stemmer = "english"

    def search(
        self,
        connection: Connection,
        terms: Sequence[WeighedTerm],
        within: Readable,
        limit: int,
        *,
        is_all: bool = False,
    ) -> list[tuple[str, float]]:
        queries = [_tsquery(each.term) for each in terms]
        weights = [each.weight for each in terms]
        given = {
            "queries": [" & ".join(queries)] if is_all else queries,
            "weights": [sum(weights)] if is_all else weights,
            "limit": limit,
        }
        rows = connection.execute(_open(self._SCORES, within), given)
        return [(row.id, float(row.score)) for row in rows]

    def frequencies(
        self, connection: Connection, terms: Sequence[Term], within: Readable, most: int
    ) -> list[int]:
        asked = {"queries": [_tsquery(term) for term in terms], "most": most}
        return list(connection.execute(_open(self._FREQUENCIES, within), asked).scalars())

    def vocabulary(self, connection: Connection) -> dict[str, int]:
        return {row.word: row.ndoc for row in connection.execute(self._WORDS)}

    def places(
        self, connection: Connection, collection_id: str, first_row: int
    ) -> Iterator[tuple[str, Positions]]:
        asked = {"collection": collection_id, "first": first_row}
        for row in connection.execute(self._WORDS_OF, asked):
            yield row.lexeme, np.array(row.places, dtype=np.int64)

    def holders(
        self, connection: Connection, terms: Sequence[Term], chunk_ids: Sequence[str]
    ) -> list[list[str]]:
        asked = {"queries": [_tsquery(term) for term in terms], "ids": list(chunk_ids)}
        found: list[list[str]] = [[] for _ in terms]
        for row in connection.execute(self._HOLDERS, asked):
            found[row.place - 1].append(row.id)
        return found

    def holding(
        self, connection: Connection, term: Term, within: Readable, limit: int
    ) -> list[str]:
        asked = {"query": _tsquery(term), "limit": limit}
        return list(connection.execute(_open(self._HOLDING, within), asked).scalars())

    def lexemes(self, connection: Connection, terms: Sequence[Term]) -> dict[Term, list[str]]:
        tokens = sorted({token for term in terms for token in _tokens(term)})
        rows = connection.execute(self._LEXEMES, {"tokens": tokens})
        of_token: dict[str, list[str]] = {row.token: row.lexemes for row in rows}
        return {
            term: [lexeme for token in _tokens(term) for lexeme in of_token[token]]
            for term in terms
        }


def _open(statement: str, within: Readable) -> TextClause:
    """The statement over what the asker may read."""
    if within.ids is None:
        return text(statement.format(inside=""))
    inside = " AND collection_id = ANY(:collections)"
    return text(statement.format(inside=inside)).bindparams(collections=sorted(within.ids))


def _tsquery(term: Term) -> str:
    return f"({' <-> '.join(_tokens(term))})"


def _tokens(term: Term) -> list[str]:
    """They hold letters, numbers and marks only: nothing in them is an operator."""
    tokens = term.tokens[0] if term.is_letters else term.tokens
    return [token.translate(_WITHOUT_ACCENTS) for token in tokens]

"""Words in PostgreSQL: BM25 over a tsvector.

PostgreSQL's own `ts_rank` knows neither document frequencies nor average lengths, and a word in a
heading hides those of the text. It only chooses candidates here; their positions are read and
scored as FTS5 does (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

from rag.retrieval.lexical_schema import ACCENTED, UNACCENTED
from rag.retrieval.query import Term
from rag.retrieval.word_index import (
    DEPTH,
    HEADING_WEIGHT,
    MOST_WORDS,
    SHORTEST_STEM,
    chunk_count,
    idf,
    with_list,
)

K1, B = 1.2, 0.75  # as in FTS5
IN_HEADING = "A"  # the weight that the column gives to words of the heading

_WITHOUT_ACCENTS = str.maketrans(ACCENTED, UNACCENTED)  # as the column is made

Positions = Mapping[int, str]  # where a lexeme stands, with the weight of the place


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A chunk that holds some term: its length in characters, and where its lexemes stand."""

    length: int
    lexemes: dict[str, Positions]


class TsvectorWords:
    """A WordIndex over the column `chunks.words`."""

    # Joined term by term, so that each is one look-up in the index.
    _CANDIDATES = text(
        "WITH asked AS (SELECT to_tsquery('english', query) AS query, weight "
        "FROM unnest(CAST(:queries AS text[]), CAST(:weights AS float[])) AS given(query, weight)) "
        "SELECT id, row FROM asked JOIN chunks ON words @@ query GROUP BY id, row "
        "ORDER BY sum(weight * ts_rank('{0, 0, 0.7, 1}', words, query, 1)) DESC, row LIMIT :limit"
    )
    _PLACES = text(
        "SELECT id, length(heading) + length(text) AS length, lexeme, positions, weights "
        "FROM chunks, unnest(words) WHERE id = ANY(:ids) AND lexeme = ANY(:lexemes)"
    )
    _LEXEMES = text(
        "SELECT token, ARRAY(SELECT lexeme FROM unnest(to_tsvector('english', token)) "
        "ORDER BY positions[1]) AS lexemes FROM unnest(CAST(:tokens AS text[])) AS given(token)"
    )
    _FREQUENCIES = text(
        "SELECT (SELECT count(*) FROM chunks WHERE words @@ to_tsquery('english', query)) "
        "FROM unnest(CAST(:queries AS text[])) WITH ORDINALITY AS given(query, place) "
        "ORDER BY place"
    )
    _AVERAGE = text("SELECT avg(length(heading) + length(text)) FROM chunks")
    _HOLDERS = with_list(
        "SELECT id FROM chunks WHERE id IN :keys AND words @@ to_tsquery('english', :query)"
    )

    _WORDS = text(
        "SELECT word, ndoc FROM ts_stat('SELECT words FROM chunks') "
        f"WHERE length(word) BETWEEN {SHORTEST_STEM} AND 40 ORDER BY ndoc DESC LIMIT {MOST_WORDS}"
    )

    stemmer = "english"

    def __init__(self) -> None:
        self._average = (0, 1.0)  # chunks, and the average of their lengths then

    def search(
        self, connection: Connection, terms: Sequence[Term], limit: int
    ) -> list[tuple[str, float]]:
        """Best chunks with their scores."""
        size = chunk_count(connection)
        weights = [
            term.weight * idf(size, frequency)
            for term, frequency in zip(terms, self.frequencies(connection, terms), strict=True)
        ]
        candidates = self._candidates(connection, terms, weights, DEPTH * limit)
        lexemes = self._lexemes(connection, terms)
        average = self._average_length(connection, size)
        scores = {
            chunk_id: sum(
                weight * _saturated(_count(lexemes[term], found), found.length / average)
                for term, weight in zip(terms, weights, strict=True)
            )
            for chunk_id, found in self._places(connection, candidates, lexemes).items()
        }
        return sorted(scores.items(), key=lambda pair: (-pair[1], candidates[pair[0]]))[:limit]

    def frequencies(self, connection: Connection, terms: Sequence[Term]) -> list[int]:
        queries = [_tsquery(term) for term in terms]
        return list(connection.execute(self._FREQUENCIES, {"queries": queries}).scalars())

    def vocabulary(self, connection: Connection) -> dict[str, int]:
        return {word: count for word, count in connection.execute(self._WORDS) if word.isalpha()}

    def holders(self, connection: Connection, term: Term, chunk_ids: Sequence[str]) -> list[str]:
        held = connection.execute(self._HOLDERS, {"query": _tsquery(term), "keys": list(chunk_ids)})
        return list(held.scalars())

    def _candidates(
        self, connection: Connection, terms: Sequence[Term], weights: Sequence[float], limit: int
    ) -> dict[str, int]:
        """Ids of chunks that may be among the best, and their rows."""
        asked = {"queries": [_tsquery(term) for term in terms], "weights": list(weights)}
        rows = connection.execute(self._CANDIDATES, {**asked, "limit": limit})
        return {row.id: row.row for row in rows}

    def _lexemes(self, connection: Connection, terms: Sequence[Term]) -> dict[Term, list[str]]:
        """What the index holds for the tokens of each term, in their order."""
        tokens = sorted({token for term in terms for token in _tokens(term)})
        rows = connection.execute(self._LEXEMES, {"tokens": tokens})
        of_token: dict[str, list[str]] = {row.token: row.lexemes for row in rows}
        return {
            term: [lexeme for token in _tokens(term) for lexeme in of_token[token]]
            for term in terms
        }

    def _places(
        self, connection: Connection, ids: Iterable[str], lexemes: Mapping[Term, Sequence[str]]
    ) -> dict[str, _Candidate]:
        wanted = sorted({lexeme for of_term in lexemes.values() for lexeme in of_term})
        rows = connection.execute(self._PLACES, {"ids": list(ids), "lexemes": wanted})
        found: dict[str, _Candidate] = {}
        for row in rows:
            candidate = found.setdefault(row.id, _Candidate(row.length, {}))
            candidate.lexemes[row.lexeme] = dict(zip(row.positions, row.weights, strict=True))
        return found

    def _average_length(self, connection: Connection, size: int) -> float:
        """Read again only when chunks came or went: it reads them all."""
        if self._average[0] != size:
            self._average = (size, float(connection.execute(self._AVERAGE).scalar_one() or 1.0))
        return self._average[1]


def _count(lexemes: Sequence[str], candidate: _Candidate) -> float:
    """How often these stand one after the other; in a heading they count more."""
    places = [candidate.lexemes.get(lexeme, {}) for lexeme in lexemes]
    if not places:
        return 0.0
    return sum(
        HEADING_WEIGHT if weight == IN_HEADING else 1.0
        for position, weight in places[0].items()
        if all(position + step in later for step, later in enumerate(places[1:], start=1))
    )


def _saturated(count: float, relative_length: float) -> float:
    """BM25's share of one term: it levels off, the later the longer the chunk."""
    return count * (K1 + 1) / (count + K1 * (1 - B + B * relative_length))


def _tsquery(term: Term) -> str:
    return f"({' <-> '.join(_tokens(term))})"


def _tokens(term: Term) -> list[str]:
    """They hold letters, numbers and marks only: nothing in them is an operator."""
    tokens = term.tokens[0] if term.is_letters else term.tokens
    return [token.translate(_WITHOUT_ACCENTS) for token in tokens]

"""Words in SQLite: FTS5 with its own bm25()."""

from collections.abc import Sequence

from sqlalchemy import Connection, text

from rag.retrieval.query import Term
from rag.retrieval.word_index import (
    DEPTH,
    HEADING_WEIGHT,
    MOST_WORDS,
    SHORTEST_STEM,
    chunk_count,
    with_list,
)

MOST_SCORED = 20_000  # rows that one query scores, summed over its terms


class Fts5Words:
    """A WordIndex over the table `chunks_fts`."""

    stemmer = "porter"

    _SCORES = text(
        f"SELECT rowid, -bm25(chunks_fts, {HEADING_WEIGHT}, 1.0) AS score FROM chunks_fts "
        "WHERE chunks_fts MATCH :match ORDER BY score DESC LIMIT :limit"
    )
    _IDS = with_list("SELECT row, id FROM chunks WHERE row IN :keys")
    _FREQUENCY = text("SELECT count(*) FROM chunks_fts WHERE chunks_fts MATCH :match")
    _VOCABULARY = text(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.library_words "
        "USING fts5vocab(main, chunks_fts, row)"
    )
    _WORDS = text(
        "SELECT term, doc FROM temp.library_words "
        f"WHERE length(term) BETWEEN {SHORTEST_STEM} AND 40 ORDER BY doc DESC LIMIT {MOST_WORDS}"
    )
    _HOLDERS = with_list(
        "SELECT chunks.id FROM chunks JOIN chunks_fts ON chunks_fts.rowid = chunks.row "
        "WHERE chunks_fts MATCH :match AND chunks.id IN :keys"
    )

    def search(
        self, connection: Connection, terms: Sequence[Term], limit: int
    ) -> list[tuple[str, float]]:
        """Terms of one weight are one query; FTS5 scores each term, and they add up."""
        scores: dict[int, float] = {}
        terms = self._affordable(connection, terms)
        for weight in sorted({term.weight for term in terms}, reverse=True):
            match = " OR ".join(_fts5(term) for term in terms if term.weight == weight)
            found = connection.execute(self._SCORES, {"match": match, "limit": DEPTH * limit})
            for row, score in found:
                scores[row] = scores.get(row, 0.0) + weight * score
        best = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
        rows = connection.execute(self._IDS, {"keys": [row for row, _ in best]})
        ids = {found.row: found.id for found in rows}
        return [(ids[row], score) for row, score in best if row in ids]

    def _affordable(self, connection: Connection, terms: Sequence[Term]) -> Sequence[Term]:
        """The rarest, as many as one query can score whatever the size of the library.

        bm25() is computed for every chunk that holds any of the terms.
        """
        if chunk_count(connection) * len(terms) <= MOST_SCORED:
            return terms
        chosen: list[Term] = []
        scored = 0
        by_frequency = zip(self.frequencies(connection, terms), terms, strict=True)
        for frequency, term in sorted(by_frequency, key=lambda pair: pair[0]):
            scored += frequency
            if scored > MOST_SCORED and any(each.counts for each in chosen):
                break
            chosen.append(term)
        return chosen

    def frequencies(self, connection: Connection, terms: Sequence[Term]) -> list[int]:
        return [
            int(connection.execute(self._FREQUENCY, {"match": _fts5(term)}).scalar_one())
            for term in terms
        ]

    def vocabulary(self, connection: Connection) -> dict[str, int]:
        connection.execute(self._VOCABULARY)
        rows = connection.execute(self._WORDS)
        return {term: count for term, count in rows if term.isalpha()}

    def holders(self, connection: Connection, term: Term, chunk_ids: Sequence[str]) -> list[str]:
        held = connection.execute(self._HOLDERS, {"match": _fts5(term), "keys": list(chunk_ids)})
        return list(held.scalars())


def _fts5(term: Term) -> str:
    """A quoted phrase: nothing inside is an operator (tokens hold no quotes)."""
    return f'"{" ".join(term.tokens)}"' + ("*" if term.is_prefix else "")

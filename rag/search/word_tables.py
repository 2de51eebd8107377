"""Words of chunks in the database's own index: FTS5 of SQLite, tsvector of PostgreSQL.

PostgreSQL's own `ts_rank` knows neither document frequencies nor average lengths, and a word in a
heading hides those of the text. It only chooses candidates here; their positions are read and
scored as FTS5 does (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009).
"""

import json
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row, TextClause, text

from rag.db import writing
from rag.language.words import stem_of
from rag.records import Readable
from rag.search.lexical_schema import ACCENTED, TOKENIZER, UNACCENTED, set_apart
from rag.search.word_index import (
    HEADING_WEIGHT,
    IN_TEXT,
    MOST_WORDS,
    RANKED,
    SHARE_OF_TIME,
    Plan,
    Positions,
    Term,
    plain,
    rows_of_terms,
    score,
    with_list,
)

_WORD = re.compile(r"[^\W_]+")
_BEGINNING = 3  # letters of a word that its stem keeps


class Fts5Words:
    """A WordIndex over the table `chunks_fts` of SQLite."""

    stemmer = "porter"

    _SCORES = text(
        f"SELECT rowid, -bm25(chunks_fts, {HEADING_WEIGHT}, 1.0, 0.0) AS score FROM chunks_fts "
        "WHERE chunks_fts MATCH :match ORDER BY score DESC LIMIT :limit"
    )
    _TOGETHER = text("SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH :match LIMIT :limit")
    _IDS = with_list("SELECT row, id FROM chunks WHERE row IN :keys")
    _TEXTS_OF = with_list("SELECT row, id, heading, text FROM chunks WHERE id IN :keys")
    _TEXTS = with_list("SELECT row, heading, text FROM chunks WHERE row IN :keys")
    _FREQUENCY = text(
        "SELECT count(*) FROM (SELECT 1 FROM chunks_fts WHERE chunks_fts MATCH :match LIMIT :most)"
    )
    _VOCABULARY = text(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.library_words "
        "USING fts5vocab(main, chunks_fts, row)"
    )
    _WORDS = text(f"SELECT term, doc FROM temp.library_words ORDER BY doc DESC LIMIT {MOST_WORDS}")

    # The index tells no collection's words apart from others': they are indexed once more.
    _APART = (
        "CREATE VIRTUAL TABLE temp.own USING fts5(heading, text, content='', "
        f'tokenize="{TOKENIZER}")',
        "CREATE VIRTUAL TABLE temp.own_words USING fts5vocab(temp, own, instance)",
    )
    _FILL = text(
        f"INSERT INTO temp.own (rowid, heading, text) SELECT row, {set_apart('heading')}, "
        f"{set_apart('text')} FROM chunks WHERE collection_id = :collection AND row >= :first"
    )
    _WORDS_OF = (
        "SELECT term, group_concat((doc << 16) | (CASE col WHEN 'text' THEN "
        f"{IN_TEXT} ELSE 0 END) | min(offset, {IN_TEXT - 1})) FROM temp.own_words "
        "WHERE term <> '' GROUP BY term"  # a lone accent leaves nothing
    )
    _DROP = ("DROP TABLE temp.own_words", "DROP TABLE temp.own")

    def search(
        self, connection: Connection, plan: Plan, readable: Readable, limit: int
    ) -> list[tuple[str, float]]:
        scores: dict[int, float] = {}
        if plan.rare:  # FTS5 scores each of them, and the scores add up
            match = _match_expression(" OR ", [term.term for term in plan.rare], readable)
            parameters = {"match": match, "limit": RANKED * limit}
            rare = connection.execute(self._SCORES, parameters)
            scores = {row: float(scored) for row, scored in rare.all()}
        if plan.common or readable.ids is not None:
            scores = self._ranked(connection, plan, readable, scores, RANKED * limit)
        best = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
        rows = connection.execute(self._IDS, {"keys": [row for row, _ in best]})
        ids = {row.row: row.id for row in rows}
        return [(ids[row], scored) for row, scored in best if row in ids]

    def _ranked(
        self,
        connection: Connection,
        plan: Plan,
        readable: Readable,
        scores: Mapping[int, float],
        most: int,
    ) -> dict[int, float]:
        """Score the best chunks so far, and those that hold common terms together, by all terms.

        FTS5 knows how rare a term is among all documents only: where not all may be read, the
        rare ones are weighed here as well.
        """
        rows = sorted(scores, key=lambda row: (-scores[row], row))[:most]
        together: dict[int, None] = {}
        for terms in plan.together():
            match = _match_expression(" AND ", terms, readable)
            matching = connection.execute(self._TOGETHER, {"match": match, "limit": most})
            together |= dict.fromkeys(matching.scalars())
            if len(together) >= most:
                break
        weighed = plan.common if readable.ids is None else plan.all
        stems = _Stems(self.stemmer, [term.term for term in weighed])
        keys = list(dict.fromkeys([*rows, *together]))
        lengths: dict[int, int] = {}
        for row in connection.execute(self._TEXTS, {"keys": keys}).all():
            lengths[row.row] = stems.read(row.row, row.heading, row.text)
        shares = score(weighed, stems.of_term, stems.places(), lengths)
        if readable.ids is not None:
            return shares
        return {row: scores.get(row, 0.0) + share for row, share in shares.items()}

    def frequencies(
        self, connection: Connection, terms: Sequence[Term], readable: Readable, most: int
    ) -> list[int]:
        counts = []
        for term in terms:
            parameters = {"match": _match_expression("", [term], readable), "most": most}
            counts.append(int(connection.execute(self._FREQUENCY, parameters).scalar_one()))
        return counts

    def vocabulary(self, connection: Connection) -> dict[str, int]:
        connection.execute(self._VOCABULARY)
        rows = connection.execute(self._WORDS)
        return {row.term: row.doc for row in rows if row.term}  # a lone accent leaves nothing

    def holding(
        self, connection: Connection, term: Term, readable: Readable, limit: int
    ) -> list[str]:
        parameters = {"match": _match_expression("", [term], readable), "limit": limit}
        rows = connection.execute(self._TOGETHER, parameters).scalars().all()
        ids = connection.execute(self._IDS, {"keys": rows})
        return [row.id for row in sorted(ids, key=lambda row: row.row)]

    def holders(
        self, connection: Connection, terms: Sequence[Term], chunk_ids: Sequence[str]
    ) -> list[list[str]]:
        rows = connection.execute(self._TEXTS_OF, {"keys": list(chunk_ids)}).all()
        stems = _Stems(self.stemmer, terms)
        for row in rows:
            stems.read(row.row, row.heading, row.text)
        return rows_of_terms(stems.of_term, stems.places(), {row.row: row.id for row in rows})

    def tokens(self, term: Term) -> Sequence[str]:
        return term.tokens

    def lexemes(self, connection: Connection, terms: Sequence[Term]) -> dict[Term, list[str]]:
        return {
            term: list(term.tokens)
            if term.is_letters
            else [stem_of(plain(token), self.stemmer) for token in term.tokens]
            for term in terms
        }

    def places(
        self, connection: Connection, collection_id: str, first_row: int
    ) -> Iterator[tuple[str, Positions]]:
        for statement in self._APART:
            connection.exec_driver_sql(statement)
        connection.execute(self._FILL, {"collection": collection_id, "first": first_row})
        rows = connection.exec_driver_sql(self._WORDS_OF).all()
        for statement in self._DROP:
            connection.exec_driver_sql(statement)
        for word, places in rows:
            yield word, np.sort(np.fromstring(places, dtype=np.int64, sep=","))


class _Stems:
    """Finds terms in texts as the index's tokenizer would; the index itself keeps no texts."""

    def __init__(self, stemmer: str, terms: Sequence[Term]) -> None:
        self._rules = stemmer
        self._stem_by_word: dict[str, str] = {}
        self._letters = [term.tokens[0] for term in terms if term.is_letters]
        self.of_term = {
            term: term.tokens if term.is_letters else [self._stem(token) for token in term.tokens]
            for term in terms
        }
        self._positions: defaultdict[str, list[int]] = defaultdict(list)
        beginnings = {
            stem[:_BEGINNING] for stems in self.of_term.values() for stem in stems if stem
        }
        patterns = [
            # A short beginning is a whole word.
            re.escape(letters) + ("" if len(letters) == _BEGINNING else r"(?![^\W_])")
            for letters in sorted(beginnings)
        ]
        self._words = re.compile(rf"(?:{'|'.join(patterns) or '(?!)'})[^\W_]*")

    def read(self, row: int, heading: str, body: str) -> int:
        """Note where the terms stand in a text; return its length in words.

        Only words that may be terms are stemmed: of places it matters only which adjoin.
        """
        heading, body = plain(heading), plain(body)
        for part, first in ((heading, row << 16), (body, row << 16 | IN_TEXT)):
            place, end = first, 0
            for match in self._words.finditer(part):
                position = match.start()
                if position and part[position - 1].isalnum():
                    continue  # within a word
                place += 2 if _WORD.search(part, end, position) else 1
                self._positions[self._stem(match.group())].append(place)
                end = match.end()
            for letters in self._letters:
                for match in re.finditer(letters, part):
                    self._positions[letters].append(first + min(match.start(), IN_TEXT - 1))
        return len(heading) + len(body)

    def places(self) -> dict[str, Positions]:
        return {stem: np.unique(np.array(positions)) for stem, positions in self._positions.items()}

    def _stem(self, word: str) -> str:
        if word not in self._stem_by_word:
            self._stem_by_word[word] = stem_of(plain(word), self._rules)
        return self._stem_by_word[word]


def _match_expression(joined: str, terms: Sequence[Term], readable: Readable) -> str:
    """Return the FTS5 expression for the terms within the readable collections.

    Each term is a quoted phrase: tokens hold no quotes, so nothing in it is an operator.
    """
    phrases = (f'"{" ".join(term.tokens)}"' + ("*" if term.is_prefix else "") for term in terms)
    words = f"{{heading text}} : ({joined.join(phrases)})"
    if readable.ids is None:
        return words
    places = " OR ".join(f'"{id_}"' for id_ in sorted(readable.ids))
    return f"({words}) AND place : ({places})"


DEPTH = 5  # times the limit: candidates that are scored, since the index orders them otherwise
QUICK = 0.2  # seconds: counting that takes less is done whenever chunks came
IN_HEADING = "A"  # the weight that the column gives to words of the heading
_AS_NUMBERS = str.maketrans({IN_HEADING: ".5", "B": "", "C": "", "D": ""})

_WITHOUT_ACCENTS = str.maketrans(ACCENTED, UNACCENTED)  # as the column is made


class TsvectorWords:
    """A WordIndex over the column `chunks.words` of PostgreSQL."""

    # Joined term by term, so that each is one look-up in the index.
    _CANDIDATES = (
        "WITH asked AS (SELECT to_tsquery('english', query) AS query, weight "
        "FROM unnest(CAST(:queries AS text[]), CAST(:weights AS float[])) AS given(query, weight)) "
        "SELECT id, chunks.row, length(heading) + length(text) AS length FROM ("
        "SELECT id, row FROM asked JOIN chunks ON words @@ query{inside} GROUP BY id, row "
        "ORDER BY sum(weight * ts_rank('{{0, 0, 0.7, 1}}', words, query, 1)) DESC, row LIMIT :limit"
        ") AS best JOIN chunks USING (id)"
    )
    _LEXEMES = text(
        "SELECT token, ARRAY(SELECT lexeme FROM unnest(to_tsvector('english', token)) "
        "ORDER BY positions[1]) AS lexemes FROM unnest(CAST(:tokens AS text[])) AS given(token)"
    )
    _TOGETHER = (
        "SELECT id, row, length(heading) + length(text) AS length FROM chunks "
        "WHERE words @@ to_tsquery('english', :query){inside} LIMIT :limit"
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

    # Taking the columns apart here costs four times as much as reading them as they are written.
    _WRITTEN = text("SELECT row, id, CAST(words AS text) AS words FROM chunks WHERE id = ANY(:ids)")
    _WORDS_OF = text(
        "SELECT lexeme, array_agg((CAST(chunks.row AS bigint) << 16) | at | "
        f"(CASE kind WHEN '{IN_HEADING}' THEN 0 ELSE {IN_TEXT} END) ORDER BY chunks.row, at) "
        "AS places FROM chunks, unnest(words) AS held(lexeme, positions, weights), "
        "unnest(positions, weights) AS place(at, kind) "
        "WHERE collection_id = :collection AND chunks.row >= :first GROUP BY lexeme"
    )
    # Counting reads all chunks: one process does it for all, again once others came.
    _COUNTING = text("SELECT pg_advisory_xact_lock(7102388)")
    _COUNTED = text("SELECT obj_description(to_regclass('chunk_word_counts'), 'pg_class')")
    _NEWEST = text("SELECT coalesce(max(row), 0) FROM chunks")
    _TABLE = text(
        "CREATE TABLE IF NOT EXISTS chunk_word_counts (word text, chunks bigint NOT NULL)"
    )
    _COUNT = (
        "DELETE FROM chunk_word_counts",
        "INSERT INTO chunk_word_counts SELECT word, ndoc FROM ts_stat('SELECT words FROM chunks') "
        f"ORDER BY ndoc DESC LIMIT {MOST_WORDS}",
    )
    _WORDS = text("SELECT word, chunks FROM chunk_word_counts")

    stemmer = "english"

    def search(
        self, connection: Connection, plan: Plan, readable: Readable, limit: int
    ) -> list[tuple[str, float]]:
        deep = RANKED if plan.common else DEPTH
        candidates = self._candidates(connection, plan, readable, deep * limit)
        lexemes = self.lexemes(connection, [term.term for term in plan.all])
        parameters = {"ids": [candidate.id for candidate in candidates.values()]}
        places = _places(connection.execute(self._WRITTEN, parameters), lexemes)
        lengths = {row: candidate.length for row, candidate in candidates.items()}
        scores = score(plan.all, lexemes, places, lengths)
        best = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
        return [(candidates[row].id, scored) for row, scored in best]

    def frequencies(
        self, connection: Connection, terms: Sequence[Term], readable: Readable, most: int
    ) -> list[int]:
        parameters = {"queries": [_tsquery(term) for term in terms], "most": most}
        statement = _readable_statement(self._FREQUENCIES, readable)
        return list(connection.execute(statement, parameters).scalars())

    def vocabulary(self, connection: Connection) -> dict[str, int]:
        with writing(connection.engine) as writer:  # the other sees what was when it began
            writer.execute(self._COUNTING)
            newest = int(writer.scalar(self._NEWEST))
            counted = json.loads(writer.scalar(self._COUNTED) or "{}")
            is_counted = counted.get("newest") == newest or time.time() < counted.get("again", 0)
            if not is_counted:
                writer.execute(self._TABLE)
                began = time.monotonic()
                for statement in self._COUNT:
                    writer.execute(text(statement))
                seconds = time.monotonic() - began
                rest = seconds / SHARE_OF_TIME if seconds >= QUICK else 0.0
                state = json.dumps({"newest": newest, "again": time.time() + rest})
                writer.exec_driver_sql(f"COMMENT ON TABLE chunk_word_counts IS '{state}'")
            return {row.word: row.chunks for row in writer.execute(self._WORDS)}

    def places(
        self, connection: Connection, collection_id: str, first_row: int
    ) -> Iterator[tuple[str, Positions]]:
        parameters = {"collection": collection_id, "first": first_row}
        for row in connection.execute(self._WORDS_OF, parameters):
            yield row.lexeme, np.array(row.places, dtype=np.int64)

    def holders(
        self, connection: Connection, terms: Sequence[Term], chunk_ids: Sequence[str]
    ) -> list[list[str]]:
        rows = connection.execute(self._WRITTEN, {"ids": list(chunk_ids)}).all()
        lexemes = self.lexemes(connection, terms)
        return rows_of_terms(lexemes, _places(rows, lexemes), {row.row: row.id for row in rows})

    def tokens(self, term: Term) -> Sequence[str]:
        return _unaccented_tokens(term)

    def holding(
        self, connection: Connection, term: Term, readable: Readable, limit: int
    ) -> list[str]:
        parameters = {"query": _tsquery(term), "limit": limit}
        statement = _readable_statement(self._HOLDING, readable)
        return list(connection.execute(statement, parameters).scalars())

    def _candidates(
        self, connection: Connection, plan: Plan, readable: Readable, most: int
    ) -> dict[int, Row[Any]]:
        """Return by row the ids and lengths of chunks that may be among the best."""
        parameters = {
            "queries": [_tsquery(term.term) for term in plan.rare],
            "weights": [term.weight for term in plan.rare],
            "limit": most,
        }
        rows = connection.execute(_readable_statement(self._CANDIDATES, readable), parameters)
        results = {row.row: row for row in rows}
        together: dict[int, Row[Any]] = {}
        statement = _readable_statement(self._TOGETHER, readable)
        for terms in plan.together() if plan.common else ():
            query = " & ".join(map(_tsquery, terms))
            rows = connection.execute(statement, {"query": query, "limit": most})
            together |= {row.row: row for row in rows}
            if len(together) >= most:
                break
        return results | together

    def lexemes(self, connection: Connection, terms: Sequence[Term]) -> dict[Term, list[str]]:
        tokens = sorted({token for term in terms for token in _unaccented_tokens(term)})
        rows = connection.execute(self._LEXEMES, {"tokens": tokens})
        of_token: dict[str, list[str]] = {row.token: row.lexemes for row in rows}
        return {
            term: [lexeme for token in _unaccented_tokens(term) for lexeme in of_token[token]]
            for term in terms
        }


def _places(
    written: Iterable[Row[Any]], lexemes: Mapping[Term, Sequence[str]]
) -> dict[str, Positions]:
    """Return where words stand, from columns such as `'aero':1A,7B 'batteri':3B`."""
    words = {lexeme for of_term in lexemes.values() for lexeme in of_term}
    pattern = re.compile(rf"'({'|'.join(map(re.escape, words)) or '(?!)'})':([\dA-D,]+)")
    by_lexeme: dict[str, tuple[list[int], list[str]]] = {}
    for row in written:
        for lexeme, positions in pattern.findall(row.words):
            rows, columns = by_lexeme.setdefault(lexeme, ([], []))
            rows.append(row.row)
            columns.append(positions)
    results: dict[str, Positions] = {}
    for lexeme, (rows, columns) in by_lexeme.items():
        repeated = np.repeat(rows, [positions.count(",") + 1 for positions in columns])
        places = np.fromstring(",".join(columns).translate(_AS_NUMBERS), sep=",")
        in_text = np.where(places % 1, 0, IN_TEXT)
        numbers = repeated.astype(np.int64) << 16 | places.astype(np.int64) | in_text
        results[lexeme] = np.sort(numbers)
    return results


def _readable_statement(statement: str, readable: Readable) -> TextClause:
    """Return the statement restricted to the readable collections."""
    if readable.ids is None:
        return text(statement.format(inside=""))
    inside = " AND collection_id = ANY(:collections)"
    return text(statement.format(inside=inside)).bindparams(collections=sorted(readable.ids))


def _tsquery(term: Term) -> str:
    return f"({' <-> '.join(_unaccented_tokens(term))})"


def _unaccented_tokens(term: Term) -> list[str]:
    """Return a term's tokens, which hold letters, digits and marks only: no operators."""
    tokens = term.tokens[0] if term.is_letters else term.tokens
    return [token.translate(_WITHOUT_ACCENTS) for token in tokens]

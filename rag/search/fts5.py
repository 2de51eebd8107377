"""Words in SQLite: FTS5 with its own bm25(); it has kept no texts, so candidates' are read."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from sqlalchemy import BindParameter, Connection, Engine, bindparam, text
from sqlalchemy.exc import DatabaseError

from rag.db import reading, writing
from rag.language.words import stem_of
from rag.records import Readable
from rag.search.query import ALPHABETIC_UNSPACED, OTHER_UNSPACED, UNSPACED, Term, plain
from rag.search.word_index import HEADING_WEIGHT, IN_TEXT, MOST_WORDS, Positions, WeighedTerm

_KEYS: BindParameter[Any] = bindparam("keys", expanding=True)
_BEGINNING = 3  # letters of a word that its stem keeps


MAX_POSITIONS = 16384  # the letters of one chunk beyond this are not set apart


def set_apart(column: str) -> str:
    """An SQL expression: the text with each run of unspaced letters as overlapping runs."""
    letter = f"substr({column}, n, 1)"
    piece = (
        f"CASE WHEN {letter} GLOB '[{ALPHABETIC_UNSPACED}]' "
        f"THEN ' ' || substr({column}, n, 3) || ' ' "
        f"WHEN {letter} GLOB '[{OTHER_UNSPACED}]' "
        f"THEN ' ' || substr({column}, n, 2) || ' ' "
        f"ELSE {letter} END"
    )
    return (
        f"CASE WHEN {column} GLOB '*{UNSPACED}*' THEN "
        f"(SELECT group_concat(piece, '') FROM (SELECT {piece} AS piece FROM text_positions "
        f"WHERE n <= length({column}) ORDER BY n)) || substr({column}, {MAX_POSITIONS + 1}) "
        f"ELSE {column} END"
    )


# Marks (M*) are part of a word in Devanagari, Arabic and others; the default splits there.
TOKENIZER = "porter unicode61 remove_diacritics 2 categories 'L* N* M* Co'"
_INDEX = (
    "CREATE VIRTUAL TABLE chunks_fts USING fts5(heading, text, place, content='', "
    f'tokenize="{TOKENIZER}")'
)


class Fts5Words:
    """A WordIndex over the table `chunks_fts`."""

    stemmer = "porter"

    _SCORES = text(
        f"SELECT rowid, -bm25(chunks_fts, {HEADING_WEIGHT}, 1.0, 0.0) AS score FROM chunks_fts "
        "WHERE chunks_fts MATCH :match ORDER BY score DESC, rowid LIMIT :limit"
    )
    _TOGETHER = text("SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH :match LIMIT :limit")
    _IDS = text("SELECT row, id FROM chunks WHERE row IN :keys").bindparams(_KEYS)
    _TEXTS_OF = text("SELECT id, heading, text FROM chunks WHERE id IN :keys").bindparams(_KEYS)
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
        self,
        connection: Connection,
        terms: Sequence[WeighedTerm],
        within: Readable,
        limit: int,
        *,
        is_all: bool = False,
    ) -> list[tuple[str, float]]:
        match = _match(" AND " if is_all else " OR ", [each.term for each in terms], within)
        found = connection.execute(self._SCORES, {"match": match, "limit": limit}).all()
        rows = connection.execute(self._IDS, {"keys": [row.rowid for row in found]})
        ids = {row.row: row.id for row in rows}
        return [(ids[row.rowid], float(row.score)) for row in found if row.rowid in ids]

    def frequencies(
        self, connection: Connection, terms: Sequence[Term], within: Readable, most: int
    ) -> list[int]:
        asked = ({"match": _match("", [term], within), "most": most} for term in terms)
        return [int(connection.execute(self._FREQUENCY, each).scalar_one()) for each in asked]

    def vocabulary(self, connection: Connection) -> dict[str, int]:
        connection.execute(self._VOCABULARY)
        found = connection.execute(self._WORDS)
        return {row.term: row.doc for row in found if row.term}  # a lone accent leaves nothing

    def holding(
        self, connection: Connection, term: Term, within: Readable, limit: int
    ) -> list[str]:
        asked = {"match": _match("", [term], within), "limit": limit}
        rows = connection.execute(self._TOGETHER, asked).scalars().all()
        found = connection.execute(self._IDS, {"keys": rows})
        return [row.id for row in sorted(found, key=lambda row: row.row)]

    def holders(
        self, connection: Connection, terms: Sequence[Term], chunk_ids: Sequence[str]
    ) -> list[list[str]]:
        rows = connection.execute(self._TEXTS_OF, {"keys": list(chunk_ids)}).all()
        texts = {row.id: plain(f"{row.heading}\n{row.text}") for row in rows}
        stems = [stems[0] for stems in self.lexemes(connection, terms).values()]
        letters = {term.tokens[0] for term in terms if term.is_letters}
        begin = _beginning_with(
            {stem[:_BEGINNING] for stem in stems if stem and stem not in letters}
        )
        stem = cache(lambda word: stem_of(word, self.stemmer))
        words = {key: {stem(word) for word in begin.findall(text)} for key, text in texts.items()}
        return [
            [key for key in texts if each in (texts if each in letters else words)[key]]
            for each in stems
        ]

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
        found = connection.exec_driver_sql(self._WORDS_OF).all()
        for statement in self._DROP:
            connection.exec_driver_sql(statement)
        for word, places in found:
            yield word, np.sort(np.fromstring(places, dtype=np.int64, sep=","))


def _beginning_with(beginnings: Iterable[str]) -> re.Pattern[str]:
    """Words that begin so; a beginning of fewer letters is all of a word."""
    each = (
        re.escape(letters) + ("" if len(letters) == _BEGINNING else r"(?![^\W_])")
        for letters in sorted(beginnings)
    )
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(each) or '(?!)'})[^\W_]*")


def _match(joined: str, terms: Sequence[Term], within: Readable) -> str:
    """Chunks with the terms; the index finds them only where the asker may read."""
    words = f"{{heading text}} : ({joined.join(map(_fts5, terms))})"
    if within.ids is None:
        return words
    places = " OR ".join(f'"{id_}"' for id_ in sorted(within.ids))
    return f"({words}) AND place : ({places})"


def _fts5(term: Term) -> str:
    """A quoted phrase: nothing inside is an operator (tokens hold no quotes)."""
    return f'"{" ".join(term.tokens)}"' + ("*" if term.is_prefix else "")


# ── The index itself: damaged, it is made anew ──

_HELD = text("SELECT count(*) FROM chunks_fts_docsize")
_CHUNKS = text("SELECT count(*) FROM chunks")
_CHECK = "INSERT INTO chunks_fts (chunks_fts) VALUES ('integrity-check')"
_EMPTY = "INSERT INTO chunks_fts (chunks_fts) VALUES ('delete-all')"
# The tables behind an FTS5 index as SQLite makes them: no averages, a structure of no level.
_RESET = (
    "DELETE FROM chunks_fts_data",
    "DELETE FROM chunks_fts_idx",
    "DELETE FROM chunks_fts_docsize",
    "INSERT INTO chunks_fts_data (id, block) VALUES (1, x''), (10, x'00000000000000')",
    "INSERT OR REPLACE INTO chunks_fts_config (k, v) VALUES ('version', 4)",
)
_FORGET = "DELETE FROM sqlite_master WHERE name = 'chunks_fts' OR name GLOB 'chunks_fts_*'"
_REFILL = (
    "INSERT INTO chunks_fts (rowid, heading, text, place) "
    f"SELECT row, {set_apart('heading')}, {set_apart('text')}, collection_id FROM chunks"
)


def count_words(engine: Engine) -> int:
    """Chunks in the word index, 0 if it is damaged; PostgreSQL keeps it in the very rows."""
    if engine.dialect.name == "postgresql":
        with reading(engine) as connection:
            return int(connection.execute(_CHUNKS).scalar_one())
    try:
        with writing(engine) as connection:
            connection.exec_driver_sql(_CHECK)
            return int(connection.execute(_HELD).scalar_one())
    except DatabaseError:
        return 0


def rebuild_words(engine: Engine) -> None:
    """Make the word index anew from the chunks (SQLite; PostgreSQL has nothing to make)."""
    if engine.dialect.name == "postgresql":
        return
    try:
        with writing(engine) as connection:
            connection.exec_driver_sql(_EMPTY)
    except DatabaseError:  # too damaged to be opened
        try:
            with writing(engine) as connection:
                for statement in _RESET:
                    connection.exec_driver_sql(statement)
        except DatabaseError:  # … or even to be emptied
            _begin_anew(engine)
        engine.dispose()  # connections that met the damage remember it
    with writing(engine) as connection:
        connection.exec_driver_sql(_EMPTY)
        connection.exec_driver_sql(_REFILL)


def _begin_anew(engine: Engine) -> None:
    """Forget the tables without reading them: their pages are damaged; then give these free."""
    engine.dispose()
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA writable_schema = ON")
        connection.exec_driver_sql(_FORGET)
        connection.exec_driver_sql("PRAGMA writable_schema = RESET")
    engine.dispose()
    with engine.connect() as connection:
        connection.exec_driver_sql(_INDEX)
        connection.exec_driver_sql("VACUUM")

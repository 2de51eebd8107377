"""What the database needs for lexical search: DDL that the first migration copies.

One index over headings, texts and collections of chunks, kept equal to the table: SQLite
`chunks_fts` by triggers, PostgreSQL `chunks.words` as a generated column. Scripts that are written
without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese) or whose words carry particles
(Korean) have no words to index, so their letters are set apart first: SQLite indexes runs of two
letters (three in the alphabetic scripts), PostgreSQL single letters with their positions.
"""

from sqlalchemy import Engine, text
from sqlalchemy.exc import DatabaseError

from rag.db import reading, writing

# Character ranges of a GLOB or a regular expression.
ALPHABETIC_UNSPACED = "ก-๛ກ-ໟက-႟ក-៹"  # Thai, Lao, Burmese, Khmer
OTHER_UNSPACED = "ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-\U0003ffff"  # Kana, Bopomofo, Han, Hangul
UNSPACED = f"[{ALPHABETIC_UNSPACED}{OTHER_UNSPACED}]"

MAX_POSITIONS = 16384  # the letters of one chunk beyond this are not set apart


def set_apart(column: str) -> str:
    """Return an SQL expression that splits each run of unspaced letters into overlapping runs."""
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


_ADD = (
    "INSERT INTO chunks_fts (rowid, heading, text, place) VALUES "
    f"(new.row, {set_apart('new.heading')}, {set_apart('new.text')}, new.collection_id);"
)
# The index holds no text: it has to be told what it indexed.
_REMOVE = (
    "INSERT INTO chunks_fts (chunks_fts, rowid, heading, text, place) VALUES "
    f"('delete', old.row, {set_apart('old.heading')}, {set_apart('old.text')}, old.collection_id);"
)

# Marks (M*) are part of a word in Devanagari, Arabic and others; the default splits there.
TOKENIZER = "porter unicode61 remove_diacritics 2 categories 'L* N* M* Co'"

SQLITE_DDL: tuple[str, ...] = (
    "CREATE VIRTUAL TABLE chunks_fts USING fts5(heading, text, place, content='', "
    f'tokenize="{TOKENIZER}")',
    "CREATE TABLE text_positions (n INTEGER PRIMARY KEY)",
    "INSERT INTO text_positions WITH RECURSIVE counted(n) AS "
    f"(SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < {MAX_POSITIONS}) "
    "SELECT n FROM counted",
    f"CREATE TRIGGER chunks_added AFTER INSERT ON chunks BEGIN {_ADD} END",
    f"CREATE TRIGGER chunks_removed AFTER DELETE ON chunks BEGIN {_REMOVE} END",
    "CREATE TRIGGER chunks_changed AFTER UPDATE OF heading, text, collection_id ON chunks "
    f"BEGIN {_REMOVE} {_ADD} END",
)

# Latin letters lose their accents in the index of PostgreSQL, and in what is looked up there.
ACCENTED = "àáâãäåçèéêëìíîïñòóôõöùúûüýÿāăąćčďēėęěğīįıłńňōőřśşšťūůűųźżž"
UNACCENTED = "aaaaaaceeeeiiiinooooouuuuyyaaaccdeeeegiiilnnoorssstuuuuzzz"


_INDEXED = text("SELECT count(*) FROM chunks_fts_docsize")
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
    """Count the chunks in the word index, 0 if it is damaged; on PostgreSQL they are the chunks."""
    if engine.dialect.name == "postgresql":
        with reading(engine) as connection:
            return int(connection.execute(_CHUNKS).scalar_one())
    try:
        with writing(engine) as connection:
            connection.exec_driver_sql(_CHECK)
            return int(connection.execute(_INDEXED).scalar_one())
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
    """Drop damaged tables without reading their pages, then free the pages."""
    engine.dispose()
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA writable_schema = ON")
        connection.exec_driver_sql(_FORGET)
        connection.exec_driver_sql("PRAGMA writable_schema = RESET")
    engine.dispose()
    with engine.connect() as connection:
        connection.exec_driver_sql(SQLITE_DDL[0])
        connection.exec_driver_sql("VACUUM")

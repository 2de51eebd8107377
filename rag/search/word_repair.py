"""How many chunks the word index holds, and how it is made anew."""

from sqlalchemy import Engine, text
from sqlalchemy.exc import DatabaseError

from rag.db import reading, writing
from rag.search.lexical_schema import SQLITE_DDL, set_apart

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
        connection.exec_driver_sql(SQLITE_DDL[0])
        connection.exec_driver_sql("VACUUM")

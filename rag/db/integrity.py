"""Which tables of a SQLite database are damaged, page by page, and what that means."""

import re

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DatabaseError

WORDS = "chunks_fts"  # what begins so is made of the chunks, and can be made again
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 ORDER BY name"
UNREADABLE = "the list of its tables"


def damaged_tables(engine: Engine) -> list[str]:
    """Names of tables whose pages cannot be read; none of PostgreSQL, which checks its own."""
    if engine.dialect.name != "sqlite":
        return []
    with engine.connect() as connection:
        try:
            names = list(connection.exec_driver_sql(_TABLES).scalars())
        except DatabaseError:
            return [UNREADABLE]
        return [name for name in names if not _is_whole(connection, name)]


def _is_whole(connection: Connection, name: str) -> bool:
    quoted = name.replace("'", "''")
    try:
        found = connection.exec_driver_sql(f"PRAGMA quick_check('{quoted}')")
        return list(found.scalars()) == ["ok"]
    except DatabaseError:
        return False


def is_damage(error: BaseException) -> bool:
    """Whether that is what the database says, and not that it is away or not ours."""
    told = str(getattr(error, "orig", None) or error)
    return bool(re.search("malformed|corrupt|vtable constructor failed|not a database", told))


def is_of_words(names: list[str]) -> bool:
    """Whether all that is damaged can be made again from the rest."""
    return bool(names) and all(name.startswith(WORDS) for name in names)


def damage_in_words(names: list[str]) -> str:
    """What is damaged, and what to do."""
    if is_of_words(names):
        return (
            "The word index of the database is damaged; the documents themselves are whole. "
            "`groundnote doctor --repair` makes it anew from them."
        )
    return (
        f"The database is damaged ({', '.join(names[:5])}). Stop the server and put the backup of "
        "the database back; keep the damaged file, of which `sqlite3 FILE .recover` may save more."
    )

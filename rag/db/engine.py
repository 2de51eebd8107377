"""Connections to SQLite or PostgreSQL, migrations, and plain messages for full or damaged disks."""

import fcntl
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    Engine,
    create_engine,
    event,
    inspect,
    make_url,
    select,
    true,
    update,
)
from sqlalchemy.exc import DatabaseError, OperationalError

from rag.db.schema import collections, metadata
from rag.errors import SetupError, StorageFailed
from rag.records import Readable

# ── Damaged tables of a SQLite database ──────────────────────────────────────────────────────────

WORDS = "chunks_fts"  # tables with this prefix are derived from the chunks and can be rebuilt
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 ORDER BY name"
UNREADABLE = "the list of its tables"


def damaged_tables(engine: Engine) -> list[str]:
    """Return the tables whose pages cannot be read; PostgreSQL checks its own, so none of it."""
    if engine.dialect.name != "sqlite":
        return []
    with engine.connect() as connection:
        try:
            names = list(connection.exec_driver_sql(_TABLES).scalars())
        except DatabaseError:
            return [UNREADABLE]
        damaged = []
        for name in names:
            quoted = name.replace("'", "''")
            try:
                complaints = connection.exec_driver_sql(f"PRAGMA quick_check('{quoted}')")
                is_whole = list(complaints.scalars()) == ["ok"]
            except DatabaseError:
                is_whole = False
            if not is_whole:
                damaged.append(name)
        return damaged


def is_damage(error: BaseException) -> bool:
    """Return whether a database error means damage, not an unreachable or foreign database."""
    message = str(getattr(error, "orig", None) or error)
    return bool(re.search("malformed|corrupt|vtable constructor failed|not a database", message))


def is_of_words(names: list[str]) -> bool:
    """Return whether all damaged tables can be rebuilt from the others."""
    return bool(names) and all(name.startswith(WORDS) for name in names)


def damage_in_words(names: list[str]) -> str:
    """Return which tables are damaged, and what to do."""
    if is_of_words(names):
        return (
            "The word index of the database is damaged; the documents themselves are whole. "
            "`groundnote doctor --repair` makes it anew from them."
        )
    return (
        f"The database is damaged ({', '.join(names[:5])}). Stop the server and put the backup of "
        "the database back; keep the damaged file, of which `sqlite3 FILE .recover` may save more."
    )


# ── Connections, and errors of full or damaged disks ─────────────────────────────────────────────

SQLITE_PRAGMAS = ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", "busy_timeout=15000")

POSTGRESQL_SETTINGS = (
    "SET jit = off; SET plan_cache_mode = force_custom_plan; SET synchronize_seqscans = off"
)

POOL = 10  # connections of a process to PostgreSQL, and as many more under load
CONNECT_SECONDS = 10  # how long a caller waits for a connection
AWAY_SECONDS = 60.0  # how long saving an answer waits for PostgreSQL
TRY_AGAIN_SECONDS = 0.5
_waits_until: ContextVar[float] = ContextVar("waits_until", default=0.0)


def open_engine(url: str) -> Engine:
    """Open an engine; call `migrate` once before use.

    On SQLite every write transaction begins IMMEDIATE: two writers wait for each other instead of
    failing when the second one upgrades its lock.
    """
    parsed = make_url(url)
    if parsed.get_backend_name() == "postgresql":
        return _open_postgresql(parsed)
    if parsed.get_backend_name() != "sqlite":
        raise SetupError(
            f"sessions.database_url is {parsed.render_as_string()!r}; expected a URL that starts "
            "with sqlite:/// or postgresql://."
        )
    if parsed.database and parsed.database != ":memory:":
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(
        parsed,
        connect_args={"check_same_thread": False, "timeout": 15},
        hide_parameters=True,  # otherwise errors would contain questions and documents
    )
    event.listen(engine, "connect", _prepare_sqlite)
    return engine


def _open_postgresql(url: URL) -> Engine:
    try:
        engine = create_engine(
            url.set(drivername="postgresql+psycopg"),
            pool_pre_ping=True,
            pool_size=POOL,
            max_overflow=POOL,
            pool_timeout=CONNECT_SECONDS,
            connect_args={"connect_timeout": CONNECT_SECONDS},
            hide_parameters=True,
        )
    except ModuleNotFoundError as error:
        raise SetupError(
            f"sessions.database_url is {url.render_as_string()!r}, and psycopg is not installed. "
            "Install it: pip install 'groundnote[postgresql]'."
        ) from error
    event.listen(engine, "connect", _prepare_postgresql)
    event.listen(engine, "do_connect", _connect_patiently)
    return engine


@contextmanager
def waiting_for_database() -> Iterator[None]:
    """Let new connections in this block wait for a database that cannot be reached."""
    before = _waits_until.set(time.monotonic() + AWAY_SECONDS)
    try:
        yield
    finally:
        _waits_until.reset(before)


def _connect_patiently(dialect: Any, _record: Any, where: Any, options: Any) -> Any:
    while True:
        try:
            return dialect.connect(*where, **options)
        except dialect.loaded_dbapi.OperationalError:
            if time.monotonic() >= _waits_until.get():
                raise
        time.sleep(TRY_AGAIN_SECONDS)


def _prepare_postgresql(connection: Any, _record: Any) -> None:
    """Plan each query for its own values: a rare and a common word need different plans.

    JIT compilation takes longer than any of the queries. Scans begin at the table's start, so that
    runs agree.
    """
    connection.execute(POSTGRESQL_SETTINGS)
    connection.commit()


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # the driver opens no transaction of its own
    for pragma in SQLITE_PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")


@contextmanager
def writing(engine: Engine, *, follows_keys: bool = True) -> Iterator[Connection]:
    """Open a write transaction: it commits at the end and rolls back on any error.

    Without following foreign keys SQLite lets one table replace another.

    Raises:
        StorageFailed: The disk is full or read-only.
    """
    try:
        with (
            engine.connect() as connection,
            _foreign_keys_off(connection, follows_keys),
            connection.begin(),
        ):
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection
    except OperationalError as error:
        reason = storage_reason(str(error.orig))
        if reason is None:
            raise
        raise StorageFailed(reason) from error


@contextmanager
def _foreign_keys_off(connection: Connection, are_followed: bool) -> Iterator[None]:
    if are_followed or connection.dialect.name != "sqlite":
        yield
        return
    connection.connection.execute("PRAGMA foreign_keys=OFF")  # has no effect inside a transaction
    try:
        yield
    finally:
        connection.connection.execute("PRAGMA foreign_keys=ON")


def storage_reason(text: str) -> str | None:
    """Return what an error of a full or read-only disk means in plain words.

    None for other errors.
    """
    if re.search(r"disk is full|no space left|could not extend file|disk I/O error", text, re.I):
        return (
            "The disk that holds the data is full, so this could not be kept. Make room and try "
            "again; nothing that was stored is lost."
        )
    if re.search(r"readonly database|read-only", text, re.I):
        return (
            "The data can only be read just now, so this could not be kept. Make its disk writable "
            "and try again; nothing that was stored is lost."
        )
    return None


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Open a read transaction: all reads inside see the same state.

    Raises:
        StorageFailed: The database or its word index is damaged; the message says which.
    """
    try:
        with engine.connect() as connection, connection.begin():
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("BEGIN")
            elif connection.dialect.name == "postgresql":
                connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            yield connection
    except DatabaseError as error:
        if not is_damage(error):
            raise
        raise StorageFailed(damage_in_words(damaged_tables(engine) or [WORDS])) from error


def as_utc(moment: datetime) -> datetime:
    """Add the zone UTC to a time without one: SQLite does not store zones."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def storable(text: str) -> str:
    """Replace what databases refuse, NULs and lone surrogates, by U+FFFD."""
    if text.isascii() and "\x00" not in text:
        return text
    return (
        text.encode("utf-16-le", "surrogatepass")
        .decode("utf-16-le", "replace")
        .replace("\x00", "\ufffd")
    )


_REVISION = re.compile(r'^(revision|down_revision)[^=\n]*= *"?(\w+)', re.MULTILINE)
MIGRATIONS = Path(__file__).with_name("migrations")
FIRST_SCHEMA = MIGRATIONS / "first"
TEXT_INDEXES = FIRST_SCHEMA  # the newest are in NAME_text.sql: SQLAlchemy cannot express them
BEFORE_RELEASE = "a9da5e2b"  # the last commit with the migrations before the first schema


def newest_revision() -> str:
    """Return the newest schema revision."""
    return revisions()[-1]


@cache
def revisions() -> list[str]:
    """Return all revisions, oldest first, from each migration's `down_revision`."""
    following: dict[str, str] = {}
    for path in (MIGRATIONS / "versions").glob("[0-9]*.py"):
        header = dict(_REVISION.findall(path.read_text(encoding="utf-8")))
        following[header["down_revision"]] = header["revision"]
    chain = [following["None"]]
    while chain[-1] in following:
        chain.append(following[chain[-1]])
    return chain


def migrate(engine: Engine, *, before: Callable[[str], object] | None = None) -> str | None:
    """Create the schema, or upgrade it; several processes may do so at once.

    `before` is called with the old revision of an existing database, by one process at a time.
    Returns the old revision if there was one and it was not the newest.
    """
    revision = revision_of(engine)
    if revision == newest_revision():
        return None  # the usual case, without importing Alembic
    if revision is not None and revision < revisions()[0]:
        raise SetupError(
            f"The database {engine.url.render_as_string()} was made before the first release (its "
            f"schema is {revision}, the first that was released {revisions()[0]}). Start it once "
            f"with commit {BEFORE_RELEASE} of Groundnote, which brings it up to date, or name "
            "another database and add the documents again."
        )
    if revision is None and _made_new(engine):
        return None
    with _migration_lock(engine, is_needed=before is not None):
        revision = revision_of(engine)
        if before is not None and revision is not None and revision in revisions()[:-1]:
            before(revision)
        with writing(engine, follows_keys=False) as connection:
            upgrade(connection, "head")
    return None if revision == newest_revision() else revision


def _made_new(engine: Engine) -> bool:
    """Create the newest schema in an empty database, without Alembic; False if it is not empty."""
    with writing(engine) as connection:
        _wait_for_others(connection)
        if inspect(connection).has_table("alembic_version"):
            return False
        metadata.create_all(connection, checkfirst=False)
        run_statements(connection, TEXT_INDEXES / f"{connection.dialect.name}_text.sql")
        connection.exec_driver_sql(
            "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, "
            "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
        )
        connection.exec_driver_sql(f"INSERT INTO alembic_version VALUES ('{newest_revision()}')")
    return True


def run_statements(connection: Connection, file: Path) -> None:
    """Run the statements of an SQL file unchanged."""
    for statement in file.read_text(encoding="utf-8").split("\n-- next\n"):
        # The PostgreSQL driver reads a per cent sign as a placeholder.
        is_postgresql = connection.dialect.name == "postgresql"
        connection.exec_driver_sql(statement.replace("%", "%%") if is_postgresql else statement)


def _wait_for_others(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7102384)")


@contextmanager
def restored_schema(engine: Engine, revision: str) -> Iterator[Connection]:
    """Open a transaction on an empty database with a revision's schema; upgrade it at the end."""
    with writing(engine, follows_keys=False) as connection:
        upgrade(connection, revision)
        yield connection
        upgrade(connection, "head")


@contextmanager
def _migration_lock(engine: Engine, *, is_needed: bool) -> Iterator[None]:
    """Let no other process run what precedes a migration meanwhile."""
    if not is_needed:
        yield
    elif engine.dialect.name == "postgresql":
        with engine.connect() as connection:
            connection.exec_driver_sql("SELECT pg_advisory_lock(7102386)")
            try:
                yield
            finally:
                connection.exec_driver_sql("SELECT pg_advisory_unlock(7102386)")
    else:
        with Path(f"{engine.url.database}.migrating").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def upgrade(connection: Connection, revision: str) -> None:
    """Upgrade in the connection's transaction. Raises SetupError for an unknown revision."""
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    _wait_for_others(connection)
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, revision)
    except CommandError as error:
        raise SetupError(
            f"The database {connection.engine.url.render_as_string()} is not of this version "
            f"({error}); a newer version of Groundnote may have used it. Use that one, or another "
            "database."
        ) from error


def revision_of(engine: Engine) -> str | None:
    """Return the schema's revision; None if there is no schema."""
    with reading(engine) as connection:
        if not inspect(connection).has_table("alembic_version"):
            return None
        return connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()


# ── The condition that limits every query to readable collections ────────────────────────────────


def inside(column: ColumnElement[Any], readable: Readable) -> ColumnElement[bool]:
    """Return the condition for rows of the collections that the caller may read."""
    return true() if readable.ids is None else column.in_(sorted(readable.ids))


def versions(connection: Connection, readable: Readable) -> dict[str, int]:
    """Return the versions of collections; values read from one are valid until it changes."""
    table = collections
    if readable.ids is None:  # each search runs it; to build the query costs five times as much
        rows = connection.exec_driver_sql("SELECT id, version FROM collections")
    else:
        query = select(table.c.id, table.c.version).where(inside(table.c.id, readable))
        rows = connection.execute(query)
    return {row.id: row.version for row in rows}


def mark_changed(connection: Connection, collection_ids: Iterable[str]) -> None:
    """Raise the versions of collections whose documents were written, moved or deleted."""
    query = update(collections).values(version=collections.c.version + 1)
    connection.execute(query.where(collections.c.id.in_(sorted(set(collection_ids)))))

"""The database as it is at one moment, while it is in use, and the way back.

SQLite copies itself (its online backup). PostgreSQL tells each table in one read-only transaction,
as pg_dump does; done by the driver it needs no program of the server's own version.
"""

import gzip
import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from sqlalchemy import Connection, Engine, MetaData, create_engine, text

from rag.db import metadata, migrate, open_engine, restored_schema
from rag.db.blobs import BLOCK, blocks, hold_jobs
from rag.db.engine import damage_in_words, damaged_tables, is_of_words
from rag.errors import SetupError, StorageFailed
from rag.operations.manifest import Noted, Places, is_as_noted
from rag.records import EVERYTHING

if TYPE_CHECKING:
    from rag.tables.store import TableStore

SQLITE_NAME = "groundnote.sqlite.gz"
TABLE_ENDING = ".copy.gz"
# Begin the names of tables that are made again from the others.
INDEX_TABLES = ("vectors", "chunk_vectors", "chunk_word_counts")
_COLUMNS = text(
    "SELECT c.table_name, c.column_name FROM information_schema.columns c "
    "JOIN information_schema.tables t USING (table_schema, table_name) "
    "WHERE c.table_schema = current_schema() AND t.table_type = 'BASE TABLE' "
    "AND c.is_generated = 'NEVER' AND c.table_name <> 'alembic_version' "
    "ORDER BY c.table_name, c.ordinal_position"
)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A moment of a database: it can be asked, and told file by file."""

    connection: Connection
    path: Path | None  # the copy, of SQLite

    @property
    def revision(self) -> str:
        """Of its schema."""
        query = text("SELECT version_num FROM alembic_version")
        return str(self.connection.execute(query).scalar_one())

    def files(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        """Their names, with their compressed contents."""
        if self.path is not None:
            yield SQLITE_NAME, _compressed(blocks(self.path.open("rb")))
            return
        for table, columns in _columns_of(self.connection).items():
            copy = f"COPY (SELECT {_names(columns)} FROM {_names([table])}) TO STDOUT"
            header = ",".join(columns).encode() + b"\n"
            yield f"{table}{TABLE_ENDING}", _compressed(_copied(self.connection, copy, header))


@contextmanager
def taken(engine: Engine, staging: Path) -> Iterator[Snapshot]:
    """A snapshot; on SQLite `staging` has room for a copy. Raises StorageFailed where damaged."""
    if engine.dialect.name == "postgresql":
        with engine.connect() as connection, connection.begin():
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield Snapshot(connection, None)
        return
    staging.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".snapshot-", dir=staging) as folder:
        path = Path(folder) / "groundnote.sqlite"
        with (
            closing(sqlite3.connect(f"{engine.url.database}")) as live,
            closing(sqlite3.connect(path)) as copy,
        ):
            live.backup(copy)  # in one step: writers go on, and it is not begun anew for them
        asked = create_engine("sqlite://", creator=lambda: _read_only(path))
        try:
            _refuse_damage(asked)
            with asked.connect() as connection:
                yield Snapshot(connection, path)
        finally:
            asked.dispose()


def _refuse_damage(engine: Engine) -> None:
    damaged = damaged_tables(engine)
    if damaged and not is_of_words(damaged):
        raise StorageFailed(damage_in_words(damaged))


def _read_only(path: Path) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    return sqlite3.connect(uri, uri=True, check_same_thread=False)


def size_of(engine: Engine) -> int:
    """Bytes of the database now."""
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            query = "SELECT pg_database_size(current_database())"
            return int(connection.exec_driver_sql(query).scalar_one())
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        return int(pages) * int(connection.exec_driver_sql("PRAGMA page_size").scalar_one())


# ── Back ─────────────────────────────────────────────────────────────────────────────────────


def put_back(url: str, revision: str, files: Mapping[str, BinaryIO]) -> None:
    """Fill an empty database with what `Snapshot.files` gave; old jobs and syncs wait for a yes.

    It is there whole, in the newest schema, or not at all. Raises SetupError.
    """
    is_file = SQLITE_NAME in files
    if is_file and not url.startswith("sqlite"):
        raise SetupError(
            f"This is the backup of a SQLite database, and sessions.database_url names "
            f"{url.partition(':')[0]}. Restore it without that setting."
        )
    if not is_file and url.startswith("sqlite"):
        raise SetupError(
            "This is the backup of a PostgreSQL database: name an empty one in "
            "sessions.database_url to restore it."
        )
    if is_file:
        _put_back_file(url, files[SQLITE_NAME])
    else:
        _put_back_tables(url, revision, files)


def _put_back_file(url: str, file: BinaryIO) -> None:
    target = Path(url.removeprefix("sqlite:///"))
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    half = target.with_name(f"{target.name}.part")
    for ending in ("", "-wal", "-shm"):
        half.with_name(half.name + ending).unlink(missing_ok=True)
    with file, gzip.open(file) as content, half.open("wb") as copy:
        shutil.copyfileobj(content, copy, BLOCK)
    half.chmod(0o600)
    engine = open_engine(f"sqlite:///{half}")
    try:
        _refuse_damage(engine)
        migrate(engine)
        hold_jobs(engine)
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        engine.dispose()
    half.replace(target)


def _put_back_tables(url: str, revision: str, files: Mapping[str, BinaryIO]) -> None:
    engine = open_engine(url)
    try:
        with restored_schema(engine, revision) as connection:
            contents = {name.removesuffix(TABLE_ENDING): file for name, file in files.items()}
            for table in _by_dependency(connection, contents):
                with contents[table] as file, gzip.open(file) as rows:
                    columns = rows.readline().decode().strip().split(",")
                    copy = f"COPY {_names([table])} ({_names(columns)}) FROM STDIN"
                    cursor = connection.connection.cursor()
                    with cursor.copy(copy) as copied:
                        while block := rows.read(BLOCK):
                            copied.write(block)
            _follow_sequences(connection)
        hold_jobs(engine)
    finally:
        engine.dispose()


def _by_dependency(connection: Connection, tables: Iterable[str]) -> list[str]:
    """Tables after those that their keys name."""
    reflected = MetaData()
    reflected.reflect(connection)
    wanted = set(tables)
    missing = wanted - reflected.tables.keys()
    if missing:
        raise SetupError(f"This backup has tables that its version does not know: {missing}.")
    with_rows = [table.name for table in reflected.sorted_tables if table.name in wanted]
    connection.exec_driver_sql(f"TRUNCATE {_names(with_rows)} CASCADE")  # what migrations filled
    return with_rows


def _follow_sequences(connection: Connection) -> None:
    """Rows that come from now on are numbered after those that were put back."""
    for table in metadata.sorted_tables:
        for column in table.primary_key:
            if column.autoincrement is True:
                name, key = _names([table.name]), _names([column.name])
                connection.exec_driver_sql(
                    f"SELECT setval(pg_get_serial_sequence('{table.name}', '{column.name}'), "
                    f"coalesce(max({key}), 0) + 1, false) FROM {name}"
                )


def _columns_of(connection: Connection) -> dict[str, list[str]]:
    results: dict[str, list[str]] = {}
    for table, column in connection.execute(_COLUMNS):
        if not table.startswith(INDEX_TABLES):
            results.setdefault(table, []).append(column)
    return results


def _names(names: Iterable[str]) -> str:
    return ", ".join('"' + name.replace('"', '""') + '"' for name in names)


def _copied(connection: Connection, copy: str, header: bytes) -> Iterator[bytes]:
    yield header
    cursor = connection.connection.cursor()
    with cursor.copy(copy) as rows:
        for row in rows:
            yield bytes(row)


def _compressed(parts: Iterable[bytes]) -> Iterator[bytes]:
    """As gzip writes it, quickly."""
    packer = zlib.compressobj(level=1, wbits=31)
    for part in parts:
        if packed := packer.compress(part):
            yield packed
    yield packer.flush()


# ── Tables whose rows are gone: a folder was deleted, a file was cut off or is another one ────────


def tables_without_rows(
    tables: "TableStore", places: Places, rows: Noted, *, reads: bool = False
) -> set[str]:
    """Ids of tables whose rows cannot be read, or are not those that were noted."""
    ids = tables.ids(EVERYTHING)
    noted = ((key, kept) for key, kept in rows.items() if key in ids)
    changed = {k for k, kept in noted if not is_as_noted(places.rows_of(k), kept, reads=reads)}
    return tables.files.lacking(ids) | changed


def documents_of(tables: "TableStore", table_ids: set[str]) -> dict[str, str]:
    """Names of the documents of these, by id."""
    of = (
        [table for table in tables.tables(EVERYTHING) if table.id in table_ids] if table_ids else []
    )
    return {each.document_id: each.document_name for each in of}

"""A consistent copy of the database while it is in use, its restore, and the library's manifest.

SQLite makes an online backup. PostgreSQL copies each table in one read-only transaction, as pg_dump
does; through the driver, this needs no program of the server's version.

A database that was deleted, emptied, replaced by an old backup or taken from elsewhere looks
intact. The manifest beside it tells the difference. Vectors and words need no record there: they
are compared with the database, chunk by chunk.
"""

import gzip
import hashlib
import json
import secrets
import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from sqlalchemy import Connection, Engine, MetaData, Table, create_engine, func, select, text

from rag.db import (
    collections,
    documents,
    metadata,
    migrate,
    open_engine,
    reading,
    restored_schema,
    sessions,
    tables,
    versions,
    writing,
)
from rag.db.blobs import BLOCK, blocks, hold_jobs
from rag.db.engine import damage_in_words, damaged_tables, is_of_words
from rag.documents.store import IndexDebts
from rag.errors import SetupError, StorageFailed
from rag.records import EVERYTHING

if TYPE_CHECKING:
    from rag.tables.store import TableStore

# ── Row files of the tables ──────────────────────────────────────────────────────────────────────

ENDING = ".parquet"


class FileRecord(NamedTuple):
    """The size and checksum of a file when it was recorded."""

    size: int
    checksum: str  # SHA-256


FileRecords = Mapping[str, FileRecord]


@dataclass(frozen=True, slots=True)
class Places:
    """Folders on this machine; None if elsewhere, then not checked."""

    rows: Path | None

    def rows_of(self, table_id: str) -> Path | None:
        return None if self.rows is None else self.rows / f"{table_id}{ENDING}"


def list_files(engine: Engine, places: Places, before: FileRecords) -> dict[str, FileRecord]:
    """Return records of the row files that the database names, made now for new ones.

    Earlier records stay as long as the file is named, so a lost file is noticed.
    """
    rows = {}
    with reading(engine) as connection:
        table_ids = connection.scalars(select(tables.c.id)).all()
    for key in table_ids:
        file = places.rows_of(key)
        if key in before:
            rows[key] = before[key]
        elif file is not None and file.is_file():
            rows[key] = FileRecord(file.stat().st_size, checksum(file))
    return rows


def is_as_noted(path: Path | None, record: FileRecord, *, reads: bool) -> bool:
    """Return whether a file exists with its size and, with `reads`, its content."""
    if path is None:
        return True
    try:
        is_whole = path.stat().st_size == record.size
        return is_whole and (not reads or checksum(path) == record.checksum)
    except OSError:
        return False


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ── The manifest beside the database ─────────────────────────────────────────────────────────────

FILE = "manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """Counts and checksums of what cannot be made again, and the versions of the collections."""

    documents: int
    chunks: int
    tables: int
    conversations: int
    noted_at: str
    library: int = 0  # an id stored in the database; 0 if it cannot hold one
    versions: dict[str, int] = field(default_factory=dict)  # of collections; they only increase
    rows: dict[str, FileRecord] = field(default_factory=dict)  # of tables, by id

    def __str__(self) -> str:
        return (
            f"{self.documents} documents, {self.chunks} chunks, {self.tables} tables and "
            f"{self.conversations} conversations"
        )


def count_rows(connection: Connection, table: Table) -> int:
    """Return how many rows a table has."""
    return connection.scalar(select(func.count()).select_from(table)) or 0


def take_inventory(engine: Engine) -> Manifest:
    """Return the manifest of what the database holds now."""
    of_documents, chunks = IndexDebts(engine).document_counts()
    with reading(engine) as connection:
        of_tables, conversations = count_rows(connection, tables), count_rows(connection, sessions)
        library = 0
        if engine.dialect.name == "sqlite":
            library = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
        come = versions(connection, EVERYTHING)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Manifest(of_documents, chunks, of_tables, conversations, now, library, come)


def note_manifest(
    engine: Engine,
    folder: Path,
    places: Places,
    *,
    remade: Set[str] = frozenset(),
    accepts: bool = False,
) -> None:
    """Write the manifest, if it differs from the last one.

    `remade` are tables whose rows were written again. The highest versions stay recorded until a
    restored database is accepted (`accepts`).
    """
    now, before = take_inventory(engine), read_manifest(folder)
    if not now.library and engine.dialect.name == "sqlite":
        now = replace(now, library=1 + secrets.randbelow(2**31 - 1))
        with writing(engine) as connection:
            connection.exec_driver_sql(f"PRAGMA user_version = {now.library}")
    if before is not None:
        if not accepts:
            furthest = {
                key: max(version, before.versions.get(key, version))
                for key, version in now.versions.items()
            }
            now = replace(now, versions=furthest)
        if replace(before, noted_at=now.noted_at) == replace(now, rows=before.rows) and not remade:
            return
    noted_rows = before.rows if before is not None else {}
    noted_rows = {key: file for key, file in noted_rows.items() if key not in remade}
    rows = list_files(engine, places, noted_rows)
    half = folder / f"{FILE}.part"
    half.write_text(json.dumps(asdict(replace(now, rows=rows))))
    half.replace(folder / FILE)


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest that was written last; None if there is none or it is unreadable."""
    with suppress(OSError, ValueError, TypeError):
        data = json.loads((folder / FILE).read_text(encoding="utf-8"))
        data.pop("originals", None)  # of an earlier version; now in the documents
        data["rows"] = {key: FileRecord(*of) for key, of in data.get("rows", {}).items()}
        return Manifest(**data)
    return None


def set_back(engine: Engine, folder: Path) -> str:
    """Return how an old backup differs from the newer database it replaced; "" if it does not.

    The text also says what to do.
    """
    before = read_manifest(folder)
    if before is None:
        return ""
    now = take_inventory(engine)
    if all(now.versions.get(key, version) >= version for key, version in before.versions.items()):
        return ""
    return (
        f"The database is older than what was noted here at {before.noted_at}: it holds {now}, and "
        f"there were {before}. If an old backup was put back, put back the newest one, or send "
        "again what came after it. `groundnote doctor --repair` keeps this database as it is: "
        "vectors that belong to none of its documents go then."
    )


def refuse_foreign(engine: Engine, folder: Path) -> None:
    """Raise SetupError where the database is that of another library."""
    before = read_manifest(folder)
    if before is None or not before.library or engine.dialect.name != "sqlite":
        return
    with reading(engine) as connection:
        library = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
    if library and library != before.library:
        raise SetupError(
            f"{engine.url.render_as_string()} is the database of another library; here were "
            f"{before}, as noted at {before.noted_at}. Put the right database back; nothing is "
            "repaired or removed before that. To keep this one here, put its own folder in the "
            f"place of this one, or delete {folder / FILE}."
        )


def refuse_emptied(engine: Engine, folder: Path, *, vectors: int = 0) -> None:
    """Raise SetupError where a new database has replaced one that was not empty.

    A library whose documents were all deleted is not new: its collections' versions show that.
    """
    before = read_manifest(folder)
    is_expected = before is not None and (before.documents or before.conversations)
    if not (is_expected or vectors) or not _is_new(engine):
        return
    inventory = f"{before}, as noted at {before.noted_at}" if before and is_expected else ""
    losses = inventory or f"{vectors} vectors of a library in {folder}"
    raise SetupError(
        f"The database is gone: {engine.url.render_as_string()} is empty, and there were {losses}. "
        "Restore the backup of the database; nothing is repaired or removed before that. To begin "
        f"anew instead, name another GROUNDNOTE_DATA_DIR, or delete {folder / FILE} and "
        f"{folder / 'chroma'}."
    )


def _is_new(engine: Engine) -> bool:
    """Return whether the database never had a document and has no conversation."""
    with reading(engine) as connection:
        ever = connection.scalar(select(func.max(collections.c.version)))
        return not ever and not any(count_rows(connection, t) for t in (documents, sessions))


SQLITE_NAME = "groundnote.sqlite.gz"
TABLE_ENDING = ".copy.gz"
# Prefixes of tables that are derived from the others.
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
    """A moment of a database, which can be queried and read file by file."""

    connection: Connection
    path: Path | None  # the copy of a SQLite database

    @property
    def revision(self) -> str:
        """The revision of its schema."""
        query = text("SELECT version_num FROM alembic_version")
        return str(self.connection.execute(query).scalar_one())

    def files(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        """Yield the snapshot's file names with their compressed contents."""
        if self.path is not None:
            yield SQLITE_NAME, _compressed(blocks(self.path.open("rb")))
            return
        columns: dict[str, list[str]] = {}
        for table, column in self.connection.execute(_COLUMNS):
            if not table.startswith(INDEX_TABLES):
                columns.setdefault(table, []).append(column)
        for table, names in columns.items():
            copy = f"COPY (SELECT {_names(names)} FROM {_names([table])}) TO STDOUT"
            header = ",".join(names).encode() + b"\n"
            yield f"{table}{TABLE_ENDING}", _compressed(_copied(self.connection, copy, header))


@contextmanager
def taken(engine: Engine, staging: Path) -> Iterator[Snapshot]:
    """Take a snapshot, of SQLite by a copy in `staging`. Raises StorageFailed if damaged."""
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
            live.backup(copy)  # in one step: otherwise each concurrent write restarts it
        uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        connect = partial(sqlite3.connect, uri, uri=True, check_same_thread=False)
        snapshot = create_engine("sqlite://", creator=connect)
        try:
            _refuse_damage(snapshot)
            with snapshot.connect() as connection:
                yield Snapshot(connection, path)
        finally:
            snapshot.dispose()


def _refuse_damage(engine: Engine) -> None:
    damaged = damaged_tables(engine)
    if damaged and not is_of_words(damaged):
        raise StorageFailed(damage_in_words(damaged))


def size_of(engine: Engine) -> int:
    """Return the size of the database in bytes."""
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            query = "SELECT pg_database_size(current_database())"
            return int(connection.exec_driver_sql(query).scalar_one())
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        return int(pages) * int(connection.exec_driver_sql("PRAGMA page_size").scalar_one())


# ── Back ─────────────────────────────────────────────────────────────────────────────────────


def put_back(url: str, revision: str, files: Mapping[str, BinaryIO]) -> None:
    """Restore `Snapshot.files` to an empty database; old jobs and syncs are held until released.

    It is restored completely, in the newest schema, or not at all. Raises SetupError.
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
    """Sort tables so that each follows those that its foreign keys name."""
    reflected = MetaData()
    reflected.reflect(connection)
    names = set(tables)
    missing = names - reflected.tables.keys()
    if missing:
        raise SetupError(f"This backup has tables that its version does not know: {missing}.")
    with_rows = [table.name for table in reflected.sorted_tables if table.name in names]
    # Rows that migrations inserted.
    connection.exec_driver_sql(f"TRUNCATE {_names(with_rows)} CASCADE")
    return with_rows


def _follow_sequences(connection: Connection) -> None:
    """Set the sequences so that new rows are numbered after the restored ones."""
    for table in metadata.sorted_tables:
        for column in table.primary_key:
            if column.autoincrement is True:
                name, key = _names([table.name]), _names([column.name])
                connection.exec_driver_sql(
                    f"SELECT setval(pg_get_serial_sequence('{table.name}', '{column.name}'), "
                    f"coalesce(max({key}), 0) + 1, false) FROM {name}"
                )


def _names(names: Iterable[str]) -> str:
    return ", ".join('"' + name.replace('"', '""') + '"' for name in names)


def _copied(connection: Connection, copy: str, header: bytes) -> Iterator[bytes]:
    yield header
    cursor = connection.connection.cursor()
    with cursor.copy(copy) as rows:
        for row in rows:
            yield bytes(row)


def _compressed(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Compress with gzip at its fastest level."""
    packer = zlib.compressobj(level=1, wbits=31)
    for part in parts:
        if packed := packer.compress(part):
            yield packed
    yield packer.flush()


# ── Tables whose rows are lost ───────────────────────────────────────────────────────────────────


def tables_without_rows(
    tables: "TableStore", places: Places, rows: FileRecords, *, reads: bool = False
) -> set[str]:
    """Return the ids of tables whose rows are unreadable or differ from the record."""
    ids = tables.ids(EVERYTHING)
    changed = {
        table_id
        for table_id, record in rows.items()
        if table_id in ids and not is_as_noted(places.rows_of(table_id), record, reads=reads)
    }
    return tables.files.lacking(ids) | changed


def documents_of(tables: "TableStore", table_ids: set[str]) -> dict[str, str]:
    """Return the names of these tables' documents, by id."""
    stored = tables.tables(EVERYTHING) if table_ids else []
    return {table.document_id: table.document_name for table in stored if table.id in table_ids}

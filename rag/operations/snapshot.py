"""The database as it is at one moment, while it is in use, and the way back.

SQLite copies itself (its online backup). PostgreSQL tells each table in one read-only transaction,
as pg_dump does; done by the driver it needs no program of the server's own version.

A database that was deleted, emptied, put back from an old backup or taken from elsewhere looks like
a good one. Beside what is noted here it is told as what it is. Vectors and words need no note: they
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
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from sqlalchemy import Connection, Engine, MetaData, create_engine, func, select, text

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

# ── Rows of tables, beside the database: which must be there, how long they are, ──

ENDING = ".parquet"


class FileRecord(NamedTuple):
    """A file as it was when it was noted."""

    size: int
    checksum: str  # SHA-256


FileRecords = Mapping[str, FileRecord]


@dataclass(frozen=True, slots=True)
class Places:
    """Folders of this machine; None: elsewhere, and not looked at."""

    rows: Path | None

    def rows_of(self, table_id: str) -> Path | None:
        return None if self.rows is None else self.rows / f"{table_id}{ENDING}"


def list_files(engine: Engine, places: Places, before: FileRecords) -> dict[str, FileRecord]:
    """Rows that the database names, as they are where they are new here.

    What was noted stays so as long as it is named: a file that is gone is missed.
    """
    rows = {}
    with reading(engine) as connection:
        named = connection.scalars(select(tables.c.id)).all()
    for key in named:
        file = places.rows_of(key)
        if key in before:
            rows[key] = before[key]
        elif file is not None and file.is_file():
            rows[key] = FileRecord(file.stat().st_size, checksum(file))
    return rows


def is_as_noted(path: Path | None, record: FileRecord, *, reads: bool) -> bool:
    """Whether it is there in its length, and, if it is read, with its content."""
    if path is None:
        return True
    try:
        is_whole = path.stat().st_size == record.size
        return is_whole and (not reads or checksum(path) == record.checksum)
    except OSError:
        return False


def checksum(path: Path) -> str:
    """Of the content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ── What must exist, written beside the database as it was when it was last looked at ─────────────

FILE = "manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """Counts and checksums of what cannot be made again, and how far the library had come."""

    documents: int
    chunks: int
    tables: int
    conversations: int
    noted_at: str
    library: int = 0  # by which its database is known; 0 where it has no room for that
    versions: dict[str, int] = field(default_factory=dict)  # of collections: they only grow
    rows: dict[str, FileRecord] = field(default_factory=dict)  # of tables, by their ids

    def __str__(self) -> str:
        return (
            f"{self.documents} documents, {self.chunks} chunks, {self.tables} tables and "
            f"{self.conversations} conversations"
        )


def take_inventory(engine: Engine) -> Manifest:
    """What the database holds now."""
    of_documents, chunks = IndexDebts(engine).document_counts()
    count = select(func.count())
    with reading(engine) as connection:
        of_tables = connection.execute(count.select_from(tables)).scalar_one()
        conversations = connection.execute(count.select_from(sessions)).scalar_one()
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
    """Write down what is there, where it is not what was noted before.

    `remade` are tables whose rows were written again. How far the library had come stays noted,
    until somebody `accepts` a database that was put back.
    """
    now, before = take_inventory(engine), read_manifest(folder)
    if not now.library and engine.dialect.name == "sqlite":
        now = replace(now, library=_give_name(engine))
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


def _give_name(engine: Engine) -> int:
    name = 1 + secrets.randbelow(2**31 - 1)
    with writing(engine) as connection:
        connection.exec_driver_sql(f"PRAGMA user_version = {name}")
    return name


def read_manifest(folder: Path) -> Manifest | None:
    """What was written down last; None where nothing can be read."""
    with suppress(OSError, ValueError, TypeError):
        data = json.loads((folder / FILE).read_text(encoding="utf-8"))
        data.pop("originals", None)  # of an earlier version: documents tell theirs
        data["rows"] = {key: FileRecord(*of) for key, of in data.get("rows", {}).items()}
        return Manifest(**data)
    return None


def set_back(engine: Engine, folder: Path) -> str:
    """In what an old backup stands in the place of a newer database, and what to do; "" if not."""
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
    """Raises SetupError where the database is that of another library."""
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
    """Raises SetupError where a new database stands in the place of one that held something.

    A library whose documents were all deleted is none: its collections remember that.
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
    """Whether no document ever was in it, and no conversation is."""
    with reading(engine) as connection:
        ever = connection.execute(select(func.max(collections.c.version))).scalar()
        count = select(func.count())
        now = [connection.execute(count.select_from(t)).scalar_one() for t in (documents, sessions)]
    return not ever and not any(now)


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
        for table, columns in _columns_by_table(self.connection).items():
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
        snapshot = create_engine("sqlite://", creator=lambda: _read_only(path))
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


def _columns_by_table(connection: Connection) -> dict[str, list[str]]:
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
    tables: "TableStore", places: Places, rows: FileRecords, *, reads: bool = False
) -> set[str]:
    """Ids of tables whose rows cannot be read, or are not those that were noted."""
    ids = tables.ids(EVERYTHING)
    noted = ((key, record) for key, record in rows.items() if key in ids)
    changed = {k for k, record in noted if not is_as_noted(places.rows_of(k), record, reads=reads)}
    return tables.files.lacking(ids) | changed


def documents_of(tables: "TableStore", table_ids: set[str]) -> dict[str, str]:
    """Names of the documents of these, by id."""
    of = (
        [table for table in tables.tables(EVERYTHING) if table.id in table_ids] if table_ids else []
    )
    return {table.document_id: table.document_name for table in of}

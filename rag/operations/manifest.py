"""What must exist, written beside the database as it was when it was last looked at.

A database that was deleted, emptied, put back from an old backup or taken from elsewhere looks like
a good one. Beside what is noted here it is told as what it is. Vectors and words need no note: they
are compared with the database, chunk by chunk.
"""

import hashlib
import json
import secrets
from collections.abc import Mapping, Set
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Engine, func, select

from rag.db import collections, documents, reading, sessions, tables, versions, writing
from rag.documents.index_changes import IndexDebts
from rag.errors import SetupError
from rag.records import EVERYTHING

# ── Rows of tables, beside the database: which must be there, how long they are, ──

ENDING = ".parquet"


class FileRecord(NamedTuple):
    """A file as it was when it was noted."""

    size: int
    checksum: str  # SHA-256


Noted = Mapping[str, FileRecord]


@dataclass(frozen=True, slots=True)
class Places:
    """Folders of this machine; None: elsewhere, and not looked at."""

    rows: Path | None

    def rows_of(self, table_id: str) -> Path | None:
        return None if self.rows is None else self.rows / f"{table_id}{ENDING}"


def named_files(engine: Engine, places: Places, before: Noted) -> dict[str, FileRecord]:
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


def is_as_noted(path: Path | None, kept: FileRecord, *, reads: bool) -> bool:
    """Whether it is there in its length, and, if it is read, with its content."""
    if path is None:
        return True
    try:
        is_whole = path.stat().st_size == kept.size
        return is_whole and (not reads or checksum(path) == kept.checksum)
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
                key: max(at, before.versions.get(key, at)) for key, at in now.versions.items()
            }
            now = replace(now, versions=furthest)
        if replace(before, noted_at=now.noted_at) == replace(now, rows=before.rows) and not remade:
            return
    noted_rows = before.rows if before is not None else {}
    noted_rows = {key: file for key, file in noted_rows.items() if key not in remade}
    rows = named_files(engine, places, noted_rows)
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
    if all(now.versions.get(key, at) >= at for key, at in before.versions.items()):
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
    told = f"{before}, as noted at {before.noted_at}" if before and is_expected else ""
    held = told or f"{vectors} vectors of a library in {folder}"
    raise SetupError(
        f"The database is gone: {engine.url.render_as_string()} is empty, and there were {held}. "
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

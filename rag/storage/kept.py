"""Files beside the database: which must be there, how long they are, and their checksums.

Originals are named by their checksum. Rows of tables are read once, when they are noted.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import ColumnElement, Engine, select

from rag.database import documents, reading, tables

ENDING = ".parquet"
BLOCK = 1 << 20


class NotedFile(NamedTuple):
    """A file as it was when it was noted."""

    size: int
    checksum: str  # SHA-256


Noted = Mapping[str, NotedFile]


@dataclass(frozen=True, slots=True)
class Places:
    """Folders of this machine; None: elsewhere, and not looked at."""

    originals: Path
    rows: Path | None

    def original(self, content_hash: str) -> Path:
        return self.originals / content_hash[:2] / content_hash

    def rows_of(self, table_id: str) -> Path | None:
        return None if self.rows is None else self.rows / f"{table_id}{ENDING}"


def kept_by(
    engine: Engine, places: Places, before: tuple[Noted, Noted] | None
) -> tuple[dict[str, NotedFile], dict[str, NotedFile]]:
    """Originals and rows that the database names, as they are where they are new here.

    What was noted stays so as long as it is named: a file that is gone is missed.
    """
    of_originals, of_rows = before or ({}, {})
    originals = {
        key: of_originals.get(key) or NotedFile(path.stat().st_size, key)
        for key in _ids(engine, documents.c.content_hash)
        if key in of_originals or (path := places.original(key)).is_file()
    }
    rows = {}
    for key in _ids(engine, tables.c.id):
        file = places.rows_of(key)
        if key in of_rows:
            rows[key] = of_rows[key]
        elif file is not None and file.is_file():
            rows[key] = NotedFile(file.stat().st_size, checksum(file))
    return originals, rows


def _ids(engine: Engine, column: ColumnElement[str]) -> set[str]:
    with reading(engine) as connection:
        return set(connection.execute(select(column)).scalars())


def is_as_noted(path: Path | None, kept: NotedFile, *, reads: bool) -> bool:
    """Whether it is there in its length, and, if it is read, with its content."""
    if path is None:
        return True
    try:
        is_whole = path.stat().st_size == kept.size
        return is_whole and (not reads or checksum(path) == kept.checksum)
    except OSError:
        return False


def checksum(path: Path) -> str:
    """Of the content, read in blocks."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def documents_without_original(
    engine: Engine, places: Places, originals: Noted, *, reads: bool = False
) -> dict[str, str]:
    """Names of documents by id, whose file was kept, and is gone or another one now."""
    lost = {
        key
        for key, kept in originals.items()
        if not is_as_noted(places.original(key), kept, reads=reads)
    }
    if not lost:
        return {}
    columns = (documents.c.id, documents.c.name, documents.c.content_hash)
    with reading(engine) as connection:
        rows = connection.execute(select(*columns).order_by(documents.c.name)).all()
    return {row.id: row.name for row in rows if row.content_hash in lost}

"""Rows of tables, beside the database: which must be there, how long they are, their checksums.

They are read once, when they are noted. Originals need no note: documents tell theirs.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import ColumnElement, Engine, select

from rag.db import reading, tables

ENDING = ".parquet"
BLOCK = 1 << 20


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


def kept_by(engine: Engine, places: Places, before: Noted) -> dict[str, FileRecord]:
    """Rows that the database names, as they are where they are new here.

    What was noted stays so as long as it is named: a file that is gone is missed.
    """
    rows = {}
    for key in _ids(engine, tables.c.id):
        file = places.rows_of(key)
        if key in before:
            rows[key] = before[key]
        elif file is not None and file.is_file():
            rows[key] = FileRecord(file.stat().st_size, checksum(file))
    return rows


def _ids(engine: Engine, column: ColumnElement[str]) -> set[str]:
    with reading(engine) as connection:
        return set(connection.execute(select(column)).scalars())


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
    """Of the content, read in blocks."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()

"""What the database held when it was last looked at, written beside it.

A database that was deleted, emptied or never put back after a move looks like a new one. Beside
indexes of a library, or where this says what there was, it is told as what it is: gone.
"""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Engine, func, select

from rag.database import collections, documents, reading, sessions, tables
from rag.documents.storing.index_debts import IndexDebts
from rag.errors import SetupError

FILE = "manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """Counts of what cannot be made again."""

    documents: int
    chunks: int
    tables: int
    conversations: int
    noted_at: str

    @property
    def counts(self) -> tuple[int, int, int, int]:
        return self.documents, self.chunks, self.tables, self.conversations

    def __str__(self) -> str:
        return (
            f"{self.documents} documents, {self.chunks} chunks, {self.tables} tables and "
            f"{self.conversations} conversations"
        )


def held_by(engine: Engine) -> Manifest:
    """What is there now."""
    of_documents, chunks = IndexDebts(engine).document_counts()
    count = select(func.count())
    with reading(engine) as connection:
        of_tables = connection.execute(count.select_from(tables)).scalar_one()
        conversations = connection.execute(count.select_from(sessions)).scalar_one()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Manifest(of_documents, chunks, of_tables, conversations, now)


def note_manifest(engine: Engine, folder: Path) -> None:
    """Write down what is there, where it is not what was noted before."""
    now, before = held_by(engine), noted(folder)
    if before is None or before.counts != now.counts:
        half = folder / f"{FILE}.part"
        half.write_text(json.dumps(asdict(now)), encoding="utf-8")
        half.replace(folder / FILE)


def noted(folder: Path) -> Manifest | None:
    """What was written down last; None where nothing can be read."""
    with suppress(OSError, ValueError, TypeError):
        return Manifest(**json.loads((folder / FILE).read_text(encoding="utf-8")))
    return None


def refuse_emptied(engine: Engine, folder: Path, *, vectors: int = 0) -> None:
    """Raises SetupError where a new database stands in the place of one that held something.

    A library whose documents were all deleted is none: its collections remember that.
    """
    before = noted(folder)
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

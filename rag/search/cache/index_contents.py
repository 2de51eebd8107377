"""What an embedded Chroma index holds, read from its database alone.

Loading Chroma takes longer than all else that a check does. Where its file says that the index is
as it should be, that is all there is to know; whatever else it says, Chroma itself is to be asked.
"""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

FILE = "chroma.sqlite3"
COLLECTION = "chunks"
# Of the form that is read here; a version of Chroma with another one is asked itself.
FORM = {"embeddings_queue": 2, "metadb": 6, "sysdb": 10}
_FORM = "SELECT dir, max(version) FROM migrations GROUP BY dir"
_COLLECTION = (
    "SELECT collections.id, segments.id, coalesce(max_seq_id.seq_id, 0) FROM collections "
    "JOIN segments ON segments.collection = collections.id AND segments.scope = 'METADATA' "
    "LEFT JOIN max_seq_id ON max_seq_id.segment_id = segments.id "
    "WHERE collections.name = ?"
)
_MADE_BY = "SELECT str_value FROM collection_metadata WHERE collection_id = ? AND key = 'embedding'"
# Written, but not yet taken over into the table of ids.
_WAITING = "SELECT 1 FROM embeddings_queue WHERE seq_id > ? AND topic LIKE '%/' || ? LIMIT 1"
_IDS = "SELECT embedding_id FROM embeddings WHERE segment_id = ?"


def ids_in_file(directory: Path, *, embedding: str) -> set[str] | None:
    """Ids of the chunks, if this model made them and nothing stands out; else None."""
    address = f"{(directory / FILE).absolute().as_uri()}?mode=ro"
    with (
        suppress(sqlite3.Error, ValueError),
        closing(sqlite3.connect(address, uri=True)) as reader,
    ):
        if dict(reader.execute(_FORM)) != FORM:
            return None
        found = reader.execute(_COLLECTION, (COLLECTION,)).fetchall()
        if len(found) != 1:
            return None
        collection_id, segment, taken_over = found[0]
        if reader.execute(_MADE_BY, (collection_id,)).fetchall() != [(embedding,)]:
            return None
        if reader.execute(_WAITING, (taken_over, collection_id)).fetchone():
            return None
        return {chunk_id for (chunk_id,) in reader.execute(_IDS, (segment,))}
    return None


def holds_vectors(directory: Path) -> bool:
    """Whether an index was filled here and not given up since; also where that cannot be told."""
    if not (directory / FILE).is_file():
        return False
    address = f"{(directory / FILE).absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True)) as reader:
            rows = reader.execute("SELECT 1 FROM collections WHERE name = ?", (COLLECTION,))
            return rows.fetchone() is not None
    except sqlite3.Error:
        return True


def is_damaged(directory: Path) -> bool:
    """Whether its database is there, and some of it cannot be read."""
    if not (directory / FILE).is_file():
        return False
    address = f"{(directory / FILE).absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True)) as reader:
            return reader.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]
    except sqlite3.DatabaseError as error:
        return not isinstance(error, sqlite3.OperationalError)  # locked, or it may not be read

"""What recall reads of one session: where its words are said, and its embedded messages.

A block is written once, when nothing in it can be written anew any more; what is erased takes its
block and those behind it with it.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, TextClause, bindparam, delete, func, insert, select, text

from rag.db import message_vectors, message_words, storable
from rag.sessions.rows import OWNED, SessionKey, check, fetch_rows

AT_ONCE = 200  # words of one statement; SQLite takes 500 parts
LONGEST = 200  # characters of a word; longer ones are not looked up
SIZE = ""  # the word whose postings tell the size of the index
_NEWEST_BLOCK = (
    select(message_words.c.end, message_words.c.postings)
    .where(message_words.c.session_id == bindparam("its_id"), message_words.c.word == SIZE, OWNED)
    .order_by(message_words.c.end.desc())
    .limit(1)
)
_BLOCKS_OF_WORD = """
SELECT * FROM (
    SELECT word, "end", postings FROM message_words
    WHERE session_id = :its_id AND word = :word{0} AND "end" <= :last
    AND EXISTS (SELECT 1 FROM sessions WHERE id = :its_id AND owner = :its_owner)
    ORDER BY "end" DESC LIMIT :most
) AS word{0}"""


@lru_cache(maxsize=256)
def _of_words(count: int) -> TextClause:
    return text(" UNION ALL ".join(_BLOCKS_OF_WORD.format(number) for number in range(count)))


def newest_block(connection: Connection, key: SessionKey) -> tuple[int, bytes]:
    """Where the last block ends, and the size of the index up to there. Raises NotFound."""
    rows = fetch_rows(connection, key, _NEWEST_BLOCK)
    return (rows[0].end, rows[0].postings) if rows else (0, b"")


def blocks_of(
    connection: Connection, key: SessionKey, words: Sequence[str], *, last: int, most: int
) -> dict[str, list[tuple[int, bytes]]]:
    """The newest blocks that hold each word, newest first, with their ends. Raises NotFound."""
    wanted = [storable(word) for word in words if 0 < len(word) <= LONGEST]
    if not wanted:
        check(connection, key)
        return {}
    blocks: dict[str, list[tuple[int, bytes]]] = {}
    for start in range(0, len(wanted), AT_ONCE):
        some = {f"word{n}": word for n, word in enumerate(wanted[start : start + AT_ONCE])}
        for row in fetch_rows(connection, key, _of_words(len(some)), last=last, most=most, **some):
            blocks.setdefault(row.word, []).append((row.end, bytes(row.postings)))
    return blocks


def add_words(
    connection: Connection, session_id: str, end: int, size: bytes, words: Mapping[str, bytes]
) -> None:
    """The next block, up to a message."""
    every = {storable(word): postings for word, postings in words.items()} | {SIZE: size}
    rows = [
        {"session_id": session_id, "word": word, "end": end, "postings": postings}
        for word, postings in every.items()
        if len(word) <= LONGEST
    ]
    connection.execute(insert(message_words), rows)


def remove_words(connection: Connection, session_id: str, first: int) -> None:
    """The blocks of a session that hold a message or what follows it: they are made anew."""
    behind = (message_words.c.session_id == session_id) & (message_words.c.end > first)
    connection.execute(delete(message_words).where(behind))


_ITS_VECTORS = (message_vectors.c.session_id == bindparam("its_id"), OWNED)
_VECTORS_OF = select(message_vectors.c.index, message_vectors.c.vector).where(
    *_ITS_VECTORS, message_vectors.c.index.in_(bindparam("wanted", expanding=True))
)
_BEHIND = select(message_vectors.c.index, message_vectors.c.vector).where(
    *_ITS_VECTORS, message_vectors.c.index > bindparam("last")
)
_UNTIL = (
    *_ITS_VECTORS,
    message_vectors.c.index <= bindparam("last"),
    message_vectors.c.index >= bindparam("since"),
)
_COUNTED = select(func.count()).select_from(message_vectors).where(*_UNTIL)
_INDICES = select(message_vectors.c.index).where(*_UNTIL)


def save_vectors(connection: Connection, session_id: str, vectors: Mapping[int, Any]) -> None:
    """In place of those that are there."""
    import numpy as np

    of_session = message_vectors.c.session_id == session_id
    connection.execute(
        delete(message_vectors).where(of_session, message_vectors.c.index.in_(vectors))
    )
    rows = [
        {"session_id": session_id, "index": index, "vector": np.asarray(vector, "<f4").tobytes()}
        for index, vector in vectors.items()
    ]
    connection.execute(insert(message_vectors), rows)


def vectors_of(connection: Connection, key: SessionKey, indices: Sequence[int]) -> dict[int, Any]:
    """Those that are saved. Raises NotFound."""
    return _arrays(fetch_rows(connection, key, _VECTORS_OF, wanted=list(indices)))


def vectors_besides(
    connection: Connection, key: SessionKey, indices: Collection[int], since: int
) -> dict[int, Any]:
    """Those of messages from one on beside these; raises NotFound.

    Mostly these are the newest: what is older is counted, and listed only if these are not all.
    """
    last = max(indices, default=since - 1)
    newer = _arrays(fetch_rows(connection, key, _BEHIND, last=last))
    if fetch_rows(connection, key, _COUNTED, last=last, since=since)[0][0] == len(indices):
        return newer
    every = (index for (index,) in fetch_rows(connection, key, _INDICES, last=last, since=since))
    return newer | vectors_of(connection, key, [index for index in every if index not in indices])


def _arrays(rows: Sequence[Any]) -> dict[int, Any]:
    import numpy as np

    return {index: np.frombuffer(vector, dtype="<f4") for index, vector in rows}

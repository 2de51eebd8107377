"""Where the words of a long session's older messages are said, in blocks of messages.

A block is written once, when nothing in it can be written anew any more; what is erased takes its
block and those behind it with it.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from sqlalchemy import Connection, TextClause, bindparam, delete, insert, select, text

from rag.db import message_words, storable
from rag.sessions.rows import OWNED, SessionKey, check, found

AT_ONCE = 200  # words of one statement; SQLite takes 500 parts
LONGEST = 200  # characters of a word; longer ones are not looked up
SIZE = ""  # the word whose postings tell the size of the index
_NEWEST = (
    select(message_words.c.end, message_words.c.postings)
    .where(message_words.c.session_id == bindparam("its_id"), message_words.c.word == SIZE, OWNED)
    .order_by(message_words.c.end.desc())
    .limit(1)
)
_OF_ONE = """
SELECT * FROM (
    SELECT word, "end", postings FROM message_words
    WHERE session_id = :its_id AND word = :word{0} AND "end" <= :last
    AND EXISTS (SELECT 1 FROM sessions WHERE id = :its_id AND owner = :its_owner)
    ORDER BY "end" DESC LIMIT :most
) AS word{0}"""


@lru_cache(maxsize=256)
def _of_words(count: int) -> TextClause:
    return text(" UNION ALL ".join(_OF_ONE.format(number) for number in range(count)))


def newest(connection: Connection, key: SessionKey) -> tuple[int, bytes]:
    """Where the last block ends, and the size of the index up to there. Raises NotFound."""
    rows = found(connection, key, _NEWEST)
    return (rows[0].end, rows[0].postings) if rows else (0, b"")


def of(
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
        for row in found(connection, key, _of_words(len(some)), last=last, most=most, **some):
            blocks.setdefault(row.word, []).append((row.end, bytes(row.postings)))
    return blocks


def add(
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


def remove(connection: Connection, session_id: str, first: int) -> None:
    """The blocks of a session that hold a message or what follows it: they are made anew."""
    behind = (message_words.c.session_id == session_id) & (message_words.c.end > first)
    connection.execute(delete(message_words).where(behind))

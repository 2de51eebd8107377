"""Embedded messages in the database, for recall; an array of float32 a message."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select

from rag.db import message_vectors
from rag.sessions.rows import OWNED, SessionKey, found

_ITS = (message_vectors.c.session_id == bindparam("its_id"), OWNED)
_OF = select(message_vectors.c.index, message_vectors.c.vector).where(
    *_ITS, message_vectors.c.index.in_(bindparam("wanted", expanding=True))
)
_BEHIND = select(message_vectors.c.index, message_vectors.c.vector).where(
    *_ITS, message_vectors.c.index > bindparam("last")
)
_UNTIL = (
    *_ITS,
    message_vectors.c.index <= bindparam("last"),
    message_vectors.c.index >= bindparam("since"),
)
_COUNTED = select(func.count()).select_from(message_vectors).where(*_UNTIL)
_INDICES = select(message_vectors.c.index).where(*_UNTIL)


def save(connection: Connection, session_id: str, vectors: Mapping[int, Any]) -> None:
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


def of(connection: Connection, key: SessionKey, indices: Sequence[int]) -> dict[int, Any]:
    """Those that are saved. Raises NotFound."""
    return _arrays(found(connection, key, _OF, wanted=list(indices)))


def besides(
    connection: Connection, key: SessionKey, known: Collection[int], since: int
) -> dict[int, Any]:
    """Those of messages from one on that are not known; raises NotFound.

    Mostly these are the newest: what is older is counted, and listed only if it is not all known.
    """
    last = max(known, default=since - 1)
    newer = _arrays(found(connection, key, _BEHIND, last=last))
    if found(connection, key, _COUNTED, last=last, since=since)[0][0] == len(known):
        return newer
    every = (index for (index,) in found(connection, key, _INDICES, last=last, since=since))
    return newer | of(connection, key, [index for index in every if index not in known])


def _arrays(rows: Sequence[Any]) -> dict[int, Any]:
    import numpy as np

    return {index: np.frombuffer(vector, dtype="<f4") for index, vector in rows}

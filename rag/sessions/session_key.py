"""One session as its owner names it: what every statement about it asks for (C7)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Executable, bindparam, literal_column, select

from rag.db import sessions
from rag.errors import NotFound

# Conditions for statements that are put together once; `SessionKey.asking` gives their values. The
# first is for the row of the session itself, the second for what belongs to the session.
IS_MINE = (sessions.c.id == bindparam("its_id")) & (sessions.c.owner == bindparam("its_owner"))
OWNED = select(literal_column("1")).select_from(sessions).where(IS_MINE).exists()
_THERE = select(sessions.c.id).where(IS_MINE)


@dataclass(frozen=True, slots=True)
class SessionKey:
    """A session's id with its owner: neither opens anything without the other."""

    id: str
    owner: str

    def asking(self, **more: Any) -> dict[str, Any]:
        """Parameters of a statement that holds one of the conditions."""
        return {"its_id": self.id, "its_owner": self.owner, **more}


def found(
    connection: Connection, key: SessionKey, /, query: Executable, **asked: Any
) -> Sequence[Any]:
    """The rows of a statement that holds one of the conditions. Raises NotFound."""
    rows = connection.execute(query, key.asking(**asked)).all()
    if not rows:
        check(connection, key)
    return rows


def check(connection: Connection, key: SessionKey) -> None:
    """Raises NotFound if the owner has no such session."""
    if connection.execute(_THERE, key.asking()).one_or_none() is None:
        raise absent(key)


def absent(key: SessionKey) -> NotFound:
    """What is said of a session that is not there, or not the asker's."""
    return NotFound(f"There is no session {key.id!r}. It may have been deleted.")

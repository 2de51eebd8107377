"""The audit trail: who did what, when and from where, written in the transaction that does it.

So it is complete for pages, API clients, command lines, syncs and jobs alike.
"""

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, Engine, insert, select

from rag.db.engine import as_utc, reading, storable, writing
from rag.db.schema import audit

LONGEST_SUBJECT = 300
HERE = "this machine"  # the address for command lines


@dataclass(frozen=True, slots=True)
class Actor:
    """The owner and address on whose behalf something is done."""

    owner: str  # empty where the caller was not known
    address: str


_actor: ContextVar[Actor | None] = ContextVar("actor", default=None)


@contextmanager
def acting(owner: str, address: str) -> Iterator[None]:
    """Attribute what is done inside the block to this owner and address."""
    token = _actor.set(Actor(owner, address))
    try:
        yield
    finally:
        _actor.reset(token)


def act(owner: str, address: str) -> None:
    """Attribute what this request does from now on to this owner and address."""
    _actor.set(Actor(owner, address))


def act_no_more() -> None:
    """End the attribution of a request: its thread serves other requests."""
    _actor.set(None)


def record(connection: Connection, action: str, *subjects: str) -> None:
    """Record an action of this transaction, once for each subject.

    It is the current actor's, or else the operating system's user's who runs the process.
    """
    actor = _actor.get()
    if actor is None:
        try:
            actor = Actor(f"operator:{getpass.getuser()}", HERE)
        except (KeyError, OSError):  # a user without a name, as in containers
            actor = Actor(f"operator:{os.getuid()}", HERE)
    row = {"at": datetime.now(UTC), "action": action, **asdict(actor)}
    rows = [row | {"subject": storable(subject)[:LONGEST_SUBJECT]} for subject in subjects]
    if rows:
        connection.execute(insert(audit), rows)


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An entry of the audit trail."""

    at: datetime
    owner: str  # empty where the caller was not known
    action: str  # such as "document.deleted"
    subject: str
    address: str


class AuditTrail:
    """The audit trail in the database; entries are added and read, never changed."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(
        self, action: str, subject: str = "", *, owner: str | None = None, address: str = ""
    ) -> None:
        """Record an action that just happened; without an owner, for the current actor."""
        with writing(self._engine) as connection:
            if owner is None:
                record(connection, action, subject)
                return
            with acting(owner, address):
                record(connection, action, subject)

    def entries(self) -> Iterator[AuditEntry]:
        """Yield all entries, oldest first."""
        with reading(self._engine) as connection:
            for row in connection.execute(select(audit).order_by(audit.c.row)):
                yield AuditEntry(as_utc(row.at), row.owner, row.action, row.subject, row.address)

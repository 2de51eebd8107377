"""Who did what, when and from where: written where it happens, in the same transaction.

So it holds by whatever way it was done: a page, a program, a command line, a sync, a job.
"""

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, Engine, insert, select

from rag.db.engine import as_utc, reading, storable, writing
from rag.db.schema import audit

LONGEST_SUBJECT = 300
HERE = "this machine"  # the address of whoever runs a command


@dataclass(frozen=True, slots=True)
class Actor:
    """On whose behalf something is done."""

    owner: str  # empty where the caller was not known
    address: str


_actor: ContextVar[Actor | None] = ContextVar("actor", default=None)


@contextmanager
def acting(owner: str, address: str) -> Iterator[None]:
    """What is done until the end is done on this behalf."""
    token = _actor.set(Actor(owner, address))
    try:
        yield
    finally:
        _actor.reset(token)


def act(owner: str, address: str) -> None:
    """What this request does from now on is done on this behalf."""
    _actor.set(Actor(owner, address))


def act_no_more() -> None:
    """The request has ended; its thread serves others."""
    _actor.set(None)


def _somebody() -> Actor:
    """Whoever runs the process, where nobody else asked."""
    try:
        return _actor.get() or Actor(f"operator:{getpass.getuser()}", HERE)
    except (KeyError, OSError):  # a user without a name, as in containers
        return Actor(f"operator:{os.getuid()}", HERE)


def record(connection: Connection, action: str, *subjects: str) -> None:
    """Write down what this transaction does, to each of these."""
    actor = _somebody()
    row = {"at": datetime.now(UTC), "action": action, "owner": actor.owner}
    row["address"] = actor.address
    rows = [row | {"subject": storable(subject)[:LONGEST_SUBJECT]} for subject in subjects]
    if rows:
        connection.execute(insert(audit), rows)


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One thing that somebody did."""

    at: datetime
    owner: str  # empty where the caller was not known
    action: str  # such as "document.deleted"
    subject: str
    address: str


class AuditTrail:
    """Entries are added and read, never changed."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(
        self, action: str, subject: str = "", *, owner: str | None = None, address: str = ""
    ) -> None:
        """Write down what just happened; without an owner, on behalf of whom it happens."""
        with writing(self._engine) as connection:
            if owner is None:
                record(connection, action, subject)
                return
            with acting(owner, address):
                record(connection, action, subject)

    def entries(self) -> Iterator[AuditEntry]:
        """All, oldest first."""
        with reading(self._engine) as connection:
            for row in connection.execute(select(audit).order_by(audit.c.row)):
                yield AuditEntry(as_utc(row.at), row.owner, row.action, row.subject, row.address)

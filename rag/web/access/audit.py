"""Who did what, when and from where: logins, uploads, deletions, rights."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Engine, insert, select

from rag.db import as_utc, audit, reading, storable, writing

LONGEST_SUBJECT = 300


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

    def add(self, action: str, *, owner: str, subject: str = "", address: str = "") -> None:
        """Write down what just happened."""
        row = {
            "at": datetime.now(UTC),
            "owner": owner,
            "action": action,
            "subject": storable(subject)[:LONGEST_SUBJECT],
            "address": address,
        }
        with writing(self._engine) as connection:
            connection.execute(insert(audit), [row])

    def entries(self) -> Iterator[AuditEntry]:
        """All, oldest first."""
        with reading(self._engine) as connection:
            for row in connection.execute(select(audit).order_by(audit.c.row)):
                yield AuditEntry(as_utc(row.at), row.owner, row.action, row.subject, row.address)

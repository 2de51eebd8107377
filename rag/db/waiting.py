"""What waits for something else: deletions of files for a backup that copies them, jobs for a yes.

A hold is a row, so that every process on every machine sees it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from sqlalchemy import Connection, Engine, delete, insert, inspect, or_, select, update
from sqlalchemy.exc import SQLAlchemyError

from rag.db.audit_trail import record
from rag.db.engine import as_utc, reading, writing
from rag.db.schema import holds
from rag.errors import StorageFailed

BACKUP, RESTORE = "backup", "restore"
LEASE = timedelta(minutes=2)  # a killed backup keeps nothing for longer
RENEW_SECONDS = 20.0


@contextmanager
def deletions_put_off(engine: Engine) -> Iterator[None]:
    """Nobody removes a file beside the database meanwhile; what waits goes at the next tidying."""
    hold_id, ended = uuid4().hex, threading.Event()
    _place(engine, hold_id, BACKUP, datetime.now(UTC) + LEASE)

    def renew() -> None:
        while not ended.wait(RENEW_SECONDS):
            with suppress(SQLAlchemyError, StorageFailed), writing(engine) as connection:
                until = datetime.now(UTC) + LEASE
                connection.execute(update(holds).where(holds.c.id == hold_id).values(until=until))

    thread = threading.Thread(target=renew, name="hold", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        with writing(engine) as connection:
            connection.execute(delete(holds).where(holds.c.id == hold_id))


def has_holds(engine: Engine) -> bool:
    """Whether this database knows of any."""
    return inspect(engine).has_table(holds.name)


def deletions_wait(engine: Engine) -> bool:
    """Whether a backup copies files just now."""
    is_alive = or_(holds.c.until.is_(None), holds.c.until > datetime.now(UTC))
    query = select(holds.c.id).where(holds.c.kind == BACKUP, is_alive)
    with reading(engine) as connection:
        return connection.execute(query.limit(1)).first() is not None


def hold_jobs(engine: Engine) -> None:
    """What was queued or due before now waits for somebody who lets it go on."""
    _place(engine, RESTORE, RESTORE, None, "library.restored", "")


def release_jobs(engine: Engine) -> bool:
    """Let them go on; False where none waited."""
    with writing(engine) as connection:
        count = connection.execute(delete(holds).where(holds.c.kind == RESTORE)).rowcount
        record(connection, "jobs.resumed", *([""] if count else []))
    return bool(count)


def restored_at(connection: Connection) -> datetime | None:
    """When this library was put back from a backup, unless its jobs go on since."""
    query = select(holds.c.since).where(holds.c.kind == RESTORE)
    since = connection.execute(query.limit(1)).scalar()
    return as_utc(since) if since else None


def _place(engine: Engine, hold_id: str, kind: str, until: datetime | None, *deed: str) -> None:
    row = {"id": hold_id, "kind": kind, "since": datetime.now(UTC), "until": until}
    with writing(engine) as connection:
        connection.execute(insert(holds).values(**row))
        if deed:
            record(connection, *deed)

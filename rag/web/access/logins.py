"""Logins of browsers, kept in the database until they end."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from sqlalchemy import Engine, Row, delete, insert, select, update

from rag.db import as_utc, logins, reading, storable, writing
from rag.errors import NotAllowed
from rag.settings import GROUP

LASTS = timedelta(days=31)
LAST_USE_PRECISION = timedelta(minutes=5)  # how exactly the last use is known
SECRET_BYTES = 32
LONGEST_AGENT = 200
LONGEST_OWNER = 200
# The first of each that is found is meant: most browsers call themselves by several names.
AGENT_NAMES = (
    ("Edge", "Firefox", "Chrome", "Safari"),
    ("Android", "iPhone", "iPad", "Windows", "Mac OS X", "Linux"),
)


@dataclass(frozen=True, slots=True)
class Login:
    """One browser that is logged in."""

    id: str  # of no use to whoever reads it: the cookie holds what it is the digest of
    owner: str
    created_at: datetime
    last_used_at: datetime
    expires_at: datetime
    address: str
    agent: str

    @property
    def browser(self) -> str:
        """Such as "Firefox on Windows", where it says so."""
        agent = self.agent.replace("Edg/", "Edge/")
        parts = [next((name for name in names if name in agent), "") for names in AGENT_NAMES]
        name_and_system = " on ".join(parts).replace("Mac OS X", "macOS")
        return name_and_system if all(parts) else self.agent or "A browser that gave no name"


@dataclass(frozen=True, slots=True)
class Entrant:
    """Who logs in, and how that is known."""

    owner: str
    credential: str  # stands for what they came with: without that the login is over
    groups: tuple[str, ...] = ()


class LoginTable:
    """All logins; a cookie holds a secret of which only the digest is kept."""

    def __init__(
        self, engine: Engine, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._engine = engine
        self._now = now

    def begin(self, entrant: Entrant, *, address: str, agent: str, lasts: timedelta = LASTS) -> str:
        """Log a browser in; returns the secret for its cookie."""
        secret = secrets.token_urlsafe(SECRET_BYTES)
        now = self._now()
        with writing(self._engine) as connection:
            connection.execute(delete(logins).where(logins.c.expires_at <= now))
            connection.execute(
                insert(logins).values(
                    id=digest(secret),
                    owner=entrant.owner,
                    credential=entrant.credential,
                    groups=list(entrant.groups),
                    created_at=now,
                    last_used_at=now,
                    expires_at=now + lasts,
                    address=address,
                    agent=storable(agent)[:LONGEST_AGENT],
                )
            )
        return secret

    def find(self, secret: str) -> tuple[Login, str] | None:
        """The login of this secret with its credential, unless it is over."""
        if not secret:
            return None
        with reading(self._engine) as connection:
            row = connection.execute(select(logins).where(logins.c.id == digest(secret))).first()
        if row is None or as_utc(row.expires_at) <= self._now():
            return None
        login = _login(row)
        if login.last_used_at < self._now() - LAST_USE_PRECISION:
            with writing(self._engine) as connection:
                seen = update(logins).where(logins.c.id == login.id)
                connection.execute(seen.values(last_used_at=self._now()))
        return login, str(row.credential)

    def of(self, owner: str) -> list[Login]:
        """An owner's logins that are not over, newest use first."""
        query = (
            select(logins)
            .where(logins.c.owner == owner, logins.c.expires_at > self._now())
            .order_by(logins.c.last_used_at.desc())
        )
        with reading(self._engine) as connection:
            return [_login(row) for row in connection.execute(query)]

    def end(self, owner: str, login_id: str) -> bool:
        """End one of an owner's logins; False if there is none of this id."""
        with writing(self._engine) as connection:
            ended = connection.execute(
                delete(logins).where(logins.c.id == login_id, logins.c.owner == owner)
            )
            return ended.rowcount > 0


def digest(secret: str) -> str:
    """Stands for a secret wherever it is kept."""
    return sha256(secret.encode("utf-8", "replace")).hexdigest()


def _login(row: Row[Any]) -> Login:
    return Login(
        row.id,
        row.owner,
        as_utc(row.created_at),
        as_utc(row.last_used_at),
        as_utc(row.expires_at),
        row.address,
        row.agent,
    )


def checked_owner(owner: str) -> str:
    """Whoever chooses their own name must not become a group by it. Raises NotAllowed."""
    if not 0 < len(owner) <= LONGEST_OWNER or not owner.isprintable() or owner.startswith(GROUP):
        raise NotAllowed(
            f"{owner[:40]!r} is no name of a caller: expected are 1 to {LONGEST_OWNER} printable "
            f"characters that do not begin with {GROUP}"
        )
    return owner

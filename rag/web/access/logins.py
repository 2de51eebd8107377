"""Logins of browsers, kept in the database until they expire."""

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
# The first name that is found counts: most browsers send the names of several.
AGENT_NAMES = (
    ("Edge", "Firefox", "Chrome", "Safari"),
    ("Android", "iPhone", "iPad", "Windows", "Mac OS X", "Linux"),
)


@dataclass(frozen=True, slots=True)
class Login:
    """One browser that is logged in."""

    id: str  # the digest of the secret in the cookie, so of no use to a reader of the database
    owner: str
    created_at: datetime
    last_used_at: datetime
    expires_at: datetime
    address: str
    agent: str

    @property
    def browser(self) -> str:
        """The browser's name, such as "Firefox on Windows", else the whole User-Agent."""
        agent = self.agent.replace("Edg/", "Edge/")
        parts = [next((name for name in names if name in agent), "") for names in AGENT_NAMES]
        name_and_system = " on ".join(parts).replace("Mac OS X", "macOS")
        return name_and_system if all(parts) else self.agent or "A browser that gave no name"


@dataclass(frozen=True, slots=True)
class Entrant:
    """A caller at the moment of a login: the owner, and the credential that proves it."""

    owner: str
    credential: str  # of the token or the provider; without it the login is over
    groups: tuple[str, ...] = ()


class LoginTable:
    """The table of logins; a cookie holds a secret, and the table only its digest."""

    def __init__(
        self, engine: Engine, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._engine = engine
        self._now = now

    def begin(self, entrant: Entrant, *, address: str, agent: str, lasts: timedelta = LASTS) -> str:
        """Log a browser in and return the secret for its cookie; delete expired logins."""
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
        """Return the login of this secret with its credential; None if it is unknown or expired."""
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
        """Return an owner's logins that have not expired, last used first."""
        query = (
            select(logins)
            .where(logins.c.owner == owner, logins.c.expires_at > self._now())
            .order_by(logins.c.last_used_at.desc())
        )
        with reading(self._engine) as connection:
            return [_login(row) for row in connection.execute(query)]

    def end(self, owner: str, login_id: str) -> bool:
        """End one of an owner's logins; return False if the owner has none with this id."""
        with writing(self._engine) as connection:
            ended = connection.execute(
                delete(logins).where(logins.c.id == login_id, logins.c.owner == owner)
            )
            return ended.rowcount > 0


def digest(secret: str) -> str:
    """Return the SHA-256 digest that is stored in place of a secret."""
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
    """Return the owner if it may be a caller's name, which a group's must not.

    Raises NotAllowed.
    """
    if not 0 < len(owner) <= LONGEST_OWNER or not owner.isprintable() or owner.startswith(GROUP):
        raise NotAllowed(
            f"{owner[:40]!r} is no name of a caller: expected are 1 to {LONGEST_OWNER} printable "
            f"characters that do not begin with {GROUP}"
        )
    return owner

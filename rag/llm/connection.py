"""The language model that an operator connected in the browser, kept with its key encrypted.

There is at most one in use, and one that is being tried. Each process looks at the version of the
one in use before it answers, so that a change is known everywhere without a restart.
"""

import base64
import hmac
import os
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from sqlalchemy import Engine, delete, func, insert, select

from rag.db import model_connections, reading, writing
from rag.db.audit_trail import record
from rag.errors import SetupError

SECRET_VARIABLE = "GROUNDNOTE_SECRET_KEY"
SECRET_FILE = "secret.key"  # beside the data; no backup holds it
IN_USE = "in use"
TRIED = "tried"


@dataclass(frozen=True, slots=True)
class ModelConnection:
    """A server of the OpenAI protocol, and which of its models answers."""

    base_url: str
    model: str  # empty while a server is only looked at
    api_key: str = field(default="", repr=False)
    choices: tuple[str, ...] = ()  # other models of the server that people may pick
    version: int = 0  # counts the changes of the one in use


class SecretBox:
    """Encrypts what is kept with the secret of this installation, and reads it again."""

    def __init__(self, folder: Path) -> None:
        """The secret is GROUNDNOTE_SECRET_KEY, else a file of the folder, made when needed."""
        self._file = folder / SECRET_FILE

    def close(self, text: str) -> str:
        """Empty text stays empty."""
        from cryptography.fernet import Fernet

        return Fernet(self._key()).encrypt(text.encode()).decode() if text else ""

    def open(self, closed: str) -> str:
        """Raises SetupError where the secret is another one than it was closed with."""
        from cryptography.fernet import Fernet, InvalidToken

        if not closed:
            return ""
        try:
            opened: str = Fernet(self._key()).decrypt(closed.encode()).decode()
        except InvalidToken as error:
            raise SetupError(
                "The key of the connected model was kept with another secret than this one. Give "
                f"the key anew under Settings → Models, or set {SECRET_VARIABLE} to what it was."
            ) from error
        return opened

    def sign(self, text: str) -> str:
        """What nobody can make without the secret."""
        return hmac.new(self._key(), text.encode(), sha256).hexdigest()

    def _key(self) -> bytes:
        secret = os.environ.get(SECRET_VARIABLE) or self._secret_of_file()
        return base64.urlsafe_b64encode(sha256(secret.encode()).digest())

    def _secret_of_file(self) -> str:
        made = secrets.token_urlsafe(32)
        try:
            descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return self._file.read_text(encoding="ascii").strip()
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(made)
        return made


class ModelConnections:
    """The rows of the connection in use and of the one that is tried."""

    def __init__(self, engine: Engine, box: SecretBox) -> None:
        self._engine = engine
        self._box = box

    def version(self) -> int:
        """Of the connection in use; 0 where there never was one. One small query."""
        where = model_connections.c.standing == IN_USE
        with reading(self._engine) as connection:
            found = connection.execute(select(model_connections.c.version).where(where)).scalar()
        return found or 0

    def connection(self, standing: str = IN_USE) -> ModelConnection | None:
        """None where there is none. Raises SetupError where its key cannot be read."""
        with reading(self._engine) as connection:
            where = model_connections.c.standing == standing
            row = connection.execute(select(model_connections).where(where)).first()
        if row is None or not row.base_url:
            return None
        key = self._box.open(row.api_key)
        return ModelConnection(row.base_url, row.model, key, tuple(row.choices), row.version)

    def keep(self, connected: ModelConnection, standing: str = IN_USE) -> None:
        """In place of what was kept under the same standing."""
        used, tried = ("model.connected", connected.model), ("model.server", connected.base_url)
        self._write(
            standing,
            used if standing == IN_USE else tried,
            base_url=connected.base_url,
            model=connected.model,
            api_key=self._box.close(connected.api_key),
            choices=list(connected.choices),
        )

    def forget(self) -> None:
        """The model in use and the one that was tried, with their keys."""
        nothing = {"base_url": "", "model": "", "api_key": "", "choices": []}
        self._write(IN_USE, ("model.disconnected", ""), **nothing)
        with writing(self._engine) as connection:
            connection.execute(
                delete(model_connections).where(model_connections.c.standing == TRIED)
            )

    def _write(self, standing: str, deed: tuple[str, str], **values: object) -> None:
        """The version goes up also where nothing is left, so that other processes see it."""
        where = model_connections.c.standing == standing
        with writing(self._engine) as connection:
            newest = select(func.max(model_connections.c.version)).where(where)
            version = (connection.execute(newest).scalar() or 0) + 1
            connection.execute(delete(model_connections).where(where))
            row = {"standing": standing, "version": version, "changed_at": datetime.now(UTC)}
            connection.execute(insert(model_connections), [row | values])
            record(connection, *deed)

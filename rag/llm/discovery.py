"""Servers of the OpenAI protocol: those on this machine, their models, a trial; the connection.

At most one connection is in use, and one is being tried. Each process compares the version of the
one in use before it answers, so that a change takes effect everywhere without a restart.
"""

import base64
import hmac
import json
import os
import secrets
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine, delete, func, insert, select

from rag.citations.markers import cited_numbers
from rag.db import model_connections, reading, writing
from rag.db.audit_trail import record
from rag.errors import ModelError, ModelUnavailable, SetupError
from rag.records import ChatMessage, Role
from rag.seams import ChatModel, ModelRequest, ToolSpec
from rag.seams.models import Patience

if TYPE_CHECKING:
    import httpx

# The default ports, by the documentation of each server.
USUAL = (
    ("Ollama", 11434),
    ("llama.cpp", 8080),
    ("LM Studio", 1234),
    ("vLLM", 8000),
)
LOOK_SECONDS = 1.5  # for a server of this machine
LIST_SECONDS = 8.0  # for any other server
TRIAL = Patience(60)
MOST_MODELS = 500
LARGEST_LISTING = 2_000_000  # bytes
TRIAL_TOKENS = 400
SOURCES = (
    "Sources:\n[1] Pump P-12: the working pressure is 40 bar.\n"
    "[2] Pump P-12: the warranty lasts 30 months from delivery.\n\n"
    "How long does the warranty of the pump P-12 last? Answer in one sentence, from these sources "
    "alone, and put the number of the source in square brackets behind it, such as [3]."
)
PRICE = ToolSpec(
    "look_up_price",
    "The price of an article",
    {
        "type": "object",
        "properties": {"article": {"type": "string"}},
        "required": ["article"],
    },
)


@dataclass(frozen=True, slots=True)
class ModelServer:
    """A server that answers, with its models."""

    name: str
    base_url: str
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ModelTrial:
    """The results of two small requests to one model."""

    answer: str = ""
    is_right: bool = False  # the answer agrees with the source
    cites: bool = False  # it cites exactly that source
    streams: bool = False  # in more than one piece
    first_seconds: float | None = None
    calls_tools: bool = False
    window: int | None = None  # tokens
    problem: str = ""  # why there is no answer


def local_servers(skipped_ports: Collection[int] = ()) -> list[ModelServer]:
    """Return the servers that listen on loopback at their usual ports, in the order of `USUAL`.

    The ports of Groundnote itself, which speaks the protocol too, are to be skipped.
    """
    looked_at = [(name, port) for name, port in USUAL if port not in skipped_ports]
    with ThreadPoolExecutor(max_workers=max(1, len(looked_at))) as pool:
        return [
            server for server in pool.map(_local_server, *zip(*looked_at, strict=True)) if server
        ]


def _local_server(name: str, port: int) -> ModelServer | None:
    base_url = f"http://127.0.0.1:{port}/v1"
    with suppress(ModelUnavailable):
        return ModelServer(name, base_url, models_at(base_url, seconds=LOOK_SECONDS))
    return None


def models_at(
    base_url: str, api_key: str = "", *, seconds: float = LIST_SECONDS
) -> tuple[str, ...]:
    """Return the sorted names of a server's models. Raises ModelUnavailable."""
    import httpx

    address = f"{base_url.rstrip('/')}/models"
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        with (
            httpx.Client(timeout=seconds, trust_env=False, follow_redirects=False) as client,
            client.stream("GET", address, headers=headers) as response,
        ):
            content = _read_bounded(response)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ModelUnavailable(
            f"No model server answers at {base_url} ({error}). Check the address, and that it runs."
        ) from error
    if response.status_code in (401, 403):
        raise ModelUnavailable(
            f"{base_url} refuses the key ({response.status_code}). Give it anew."
        )
    names = _names(content) if response.status_code == 200 else ()
    if not names:
        raise ModelUnavailable(
            f"{address} answered {response.status_code} without a list of models. An address such "
            "as http://127.0.0.1:11434/v1 is expected."
        )
    return names


def _read_bounded(response: "httpx.Response") -> bytes:
    content = b""
    for piece in response.iter_bytes():
        content += piece
        if len(content) > LARGEST_LISTING:
            return b""
    return content


def _names(content: bytes) -> tuple[str, ...]:
    try:
        listing = json.loads(content)
    except ValueError:
        return ()
    rows = listing.get("data") if isinstance(listing, Mapping) else None
    names = [row.get("id") for row in rows or () if isinstance(row, Mapping)]
    return tuple(sorted({name for name in names if isinstance(name, str) and name}))[:MOST_MODELS]


def try_model(model: ChatModel, window: int | None) -> ModelTrial:
    """Ask for one cited answer and one call of a tool. Never raises for a server's errors."""
    request = ModelRequest(
        (ChatMessage(Role.USER, SOURCES),),
        TRIAL_TOKENS,
        temperature=0,
        patience=TRIAL,
        thinks=False,
    )
    pieces: list[str] = []
    began, first = monotonic(), None
    try:
        for delta in model.stream(request):
            if delta.discard:
                pieces.clear()
            if delta.text:
                first = first or monotonic() - began
                pieces.append(delta.text)
    except ModelError as error:
        return ModelTrial(problem=str(error), window=window)
    answer = "".join(pieces).strip()
    return ModelTrial(
        answer=answer,
        is_right="30" in answer,
        cites=cited_numbers(answer) == [2],
        streams=len(pieces) > 1,
        first_seconds=first,
        calls_tools=_calls_tools(model),
        window=window,
        problem="" if answer else "The reply was empty.",
    )


def _calls_tools(model: ChatModel) -> bool:
    question = ChatMessage(Role.USER, "What does the article K-100 cost? Look it up.")
    request = ModelRequest(
        (question,), TRIAL_TOKENS, temperature=0, tools=(PRICE,), patience=TRIAL, thinks=False
    )
    calls: list[Any] = []
    with suppress(ModelError):
        for delta in model.stream(request):
            calls += delta.tool_calls
    return any(call.name == PRICE.name for call in calls)


SECRET_VARIABLE = "GROUNDNOTE_SECRET_KEY"
SECRET_FILE = "secret.key"  # beside the data; no backup holds it
IN_USE = "in use"
TRIED = "tried"


@dataclass(frozen=True, slots=True)
class ModelConnection:
    """A server of the OpenAI protocol, and which of its models answers."""

    base_url: str
    model: str  # "" while no model is chosen
    api_key: str = field(default="", repr=False)
    choices: tuple[str, ...] = ()  # other models of the server that people may pick
    version: int = 0  # counts the changes of the one in use


class SecretBox:
    """Encrypts and decrypts stored values with the secret of this installation."""

    def __init__(self, folder: Path) -> None:
        """The secret is GROUNDNOTE_SECRET_KEY, else a file in the folder, made when needed."""
        self._file = folder / SECRET_FILE

    def close(self, text: str) -> str:
        """Encrypt a text; "" stays ""."""
        from cryptography.fernet import Fernet

        return Fernet(self._key()).encrypt(text.encode()).decode() if text else ""

    def open(self, closed: str) -> str:
        """Decrypt a text. Raises SetupError if it was encrypted with another secret."""
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
        """Return a signature that needs the secret."""
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
    """The stored connections: the one in use, and the one being tried."""

    def __init__(self, engine: Engine, box: SecretBox) -> None:
        self._engine = engine
        self._box = box

    def version(self) -> int:
        """Return the version of the connection in use, in one small query; 0 if never."""
        where = model_connections.c.standing == IN_USE
        with reading(self._engine) as connection:
            version = connection.execute(select(model_connections.c.version).where(where)).scalar()
        return version or 0

    def connection(self, standing: str = IN_USE) -> ModelConnection | None:
        """Return a connection, or None. Raises SetupError if its key cannot be read."""
        with reading(self._engine) as connection:
            where = model_connections.c.standing == standing
            row = connection.execute(select(model_connections).where(where)).first()
        if row is None or not row.base_url:
            return None
        key = self._box.open(row.api_key)
        return ModelConnection(row.base_url, row.model, key, tuple(row.choices), row.version)

    def keep(self, connected: ModelConnection, standing: str = IN_USE) -> None:
        """Store a connection in place of the one with the same standing."""
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
        """Delete the connections in use and being tried, with their keys."""
        nothing = {"base_url": "", "model": "", "api_key": "", "choices": []}
        self._write(IN_USE, ("model.disconnected", ""), **nothing)
        with writing(self._engine) as connection:
            connection.execute(
                delete(model_connections).where(model_connections.c.standing == TRIED)
            )

    def _write(self, standing: str, deed: tuple[str, str], **values: object) -> None:
        """Store a row; the version also rises for an empty one, so that other processes see it."""
        where = model_connections.c.standing == standing
        with writing(self._engine) as connection:
            newest = select(func.max(model_connections.c.version)).where(where)
            version = (connection.execute(newest).scalar() or 0) + 1
            connection.execute(delete(model_connections).where(where))
            row = {"standing": standing, "version": version, "changed_at": datetime.now(UTC)}
            connection.execute(insert(model_connections), [row | values])
            record(connection, *deed)

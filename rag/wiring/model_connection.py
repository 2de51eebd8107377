"""The model that answers: named by a variable or the file, else connected in the browser."""

import logging
import os
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sqlalchemy import Engine

from rag.errors import SetupError, UserError
from rag.llm.discovery import IN_USE, TRIED, ModelConnection, ModelConnections, SecretBox
from rag.runtime.error_log import log_throttled
from rag.settings import PREFIX, Settings

if TYPE_CHECKING:
    from rag.llm.discovery import ModelServer, ModelTrial

LOOK_SECONDS = 1.0  # between two looks whether another process connected a model
LONGEST_ADDRESS = 500
LONGEST_KEY = 2000
MOST_CHOICES = 20
log = logging.getLogger(__name__)


class ConnectedModel:
    """What the browser says of the model, and what it may say: nothing beside the settings."""

    def __init__(self, configured: Settings, engine: Engine) -> None:
        self._configured, self._is_configured = configured, configured.llm.is_configured
        self._connections = ModelConnections(engine, SecretBox(configured.data_dir))
        self._version = 0
        self._looked_at = 0.0
        self.problem = ""  # why the connection that is kept cannot be used

    @property
    def origin(self) -> str:
        """Where the model is named that answers now: "variable", "file", "browser", or ""."""
        if not self._configured.llm.is_configured:
            return "browser" if self.current is not None else ""
        return "variable" if os.environ.get(f"{PREFIX}LLM__MODEL") else "file"

    @property
    def current(self) -> ModelConnection | None:
        """The one that was connected in the browser; None also where its key cannot be read."""
        try:
            connection = self._connections.connection()
        except SetupError as error:
            self.problem = str(error)
            log_throttled(log, "The connected model is not used", error)
            return None
        self.problem = ""
        return connection

    def settings(self) -> Settings:
        """Those of the file and the variables, with the connected model where they name none."""
        self._version = self._connections.version()
        self._looked_at = monotonic()
        connection = None if self._configured.llm.is_configured else self.current
        if connection is None:
            return self._configured
        llm = self._configured.llm.connected(
            connection.base_url, connection.model, connection.api_key, connection.choices
        )
        return self._configured.model_copy(update={"llm": llm})

    def has_changed(self) -> bool:
        """Whether a model was connected or disconnected since `settings`; looks once a second."""
        if self._is_configured or monotonic() - self._looked_at < LOOK_SECONDS:
            return False
        self._looked_at = monotonic()
        return self._connections.version() != self._version

    # ── What an operator does ────────────────────────────────────────────────────────────────

    def servers(self) -> "list[ModelServer]":
        """Those that run on this machine."""
        from rag.llm.discovery import local_servers

        return local_servers({self._configured.web.port})

    def tried(self) -> ModelConnection | None:
        """What was looked at last; None also where its key cannot be read any more."""
        with suppress(SetupError):
            return self._connections.connection(TRIED)
        return None

    def look(self, base_url: str, api_key: str) -> tuple[str, ...]:
        """Names of the models at an address, which is kept with its key to be tried.

        An empty key for the same address is the one that was given before.

        Raises:
            UserError: the settings name the model, or this is no address.
            Forbidden: it lies in this network, and is not named in sources.private_hosts.
            ModelUnavailable: no such server answers there.
        """
        from rag.llm.discovery import models_at

        self._refuse_where_settings_name_one()
        self._check(base_url, api_key)
        before = self.tried()
        if not api_key and before is not None and before.base_url == base_url:
            api_key = before.api_key
        names = models_at(base_url, api_key)
        self._connections.keep(ModelConnection(base_url, "", api_key), TRIED)
        return names

    def try_out(self, model: str) -> "ModelTrial":
        """What a model of the server that was looked at can do. Raises UserError."""
        from rag.llm.discovery import try_model
        from rag.wiring.components import open_model, open_window

        looked_at = self._looked_at_server()
        llm = self._configured.llm.connected(looked_at.base_url, model, looked_at.api_key)
        settings = self._configured.model_copy(update={"llm": llm})
        chat_model, window = open_model(settings), open_window(settings)
        assert chat_model is not None
        assert window is not None
        return try_model(chat_model, window.tokens())

    def use(self, model: str, choices: tuple[str, ...] = ()) -> None:
        """Have a model of the server that was looked at answer from now on, in every process."""
        self._refuse_where_settings_name_one()
        looked_at = self._looked_at_server()
        if not 0 < len(model) <= LONGEST_ADDRESS:
            raise UserError("Choose a model by its name.")
        if len(choices) > MOST_CHOICES:
            raise UserError(
                f"{len(choices)} models are too many to pick from; at most {MOST_CHOICES}."
            )
        self._connections.keep(
            ModelConnection(looked_at.base_url, model, looked_at.api_key, choices), IN_USE
        )

    def disconnect(self) -> None:
        """Answer without a model again; the key is forgotten."""
        self._refuse_where_settings_name_one()
        self._connections.forget()

    def _looked_at_server(self) -> ModelConnection:
        connection = self.tried()
        if connection is None:
            raise UserError("Look at a server first: give its address under Settings → Models.")
        return connection

    def _refuse_where_settings_name_one(self) -> None:
        if self._configured.llm.is_configured:
            raise UserError(
                f"The model is named in the {self.origin} (llm.model is "
                f"{self._configured.llm.model!r}), which comes before the browser. Take it out "
                "there to connect one here."
            )

    def _check(self, base_url: str, api_key: str) -> None:
        from rag.connectors.guard import Guard

        try:
            parts = urlsplit(base_url)
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError:
            parts, port = urlsplit(""), 0
        is_address = parts.scheme in ("http", "https") and parts.hostname and not parts.username
        if not is_address or not base_url.isprintable() or len(base_url) > LONGEST_ADDRESS:
            raise UserError(
                f"{base_url[:100]!r} is no address of a model server. One such as "
                "http://127.0.0.1:11434/v1 or https://api.openai.com/v1 is expected."
            )
        if len(api_key) > LONGEST_KEY or not api_key.isascii() or not api_key.isprintable():
            raise UserError("A key is one line of letters, digits and signs.")
        allowed = ("127.0.0.0/8", "::1/128", *self._configured.sources.private_hosts)
        Guard(allowed, ports=None).addresses(str(parts.hostname), port)

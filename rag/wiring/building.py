"""How an application is begun; commands and servers that need all of it begin here."""

from rag.seams import Embedder
from rag.settings import Settings
from rag.wiring.application import Application


def build(settings: Settings, *, embedder: Embedder | None = None) -> Application:
    """The whole application, over the migrated database. Raises SetupError."""
    return Application(settings, embedder)

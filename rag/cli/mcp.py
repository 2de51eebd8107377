"""`groundnote mcp`: the library for clients of the Model Context Protocol."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from rag.cli.remote import token_from_environment
from rag.errors import SetupError
from rag.llm.discovery import SecretBox
from rag.settings import Settings
from rag.wiring.listeners import listener_policy, running_server

if TYPE_CHECKING:
    from rag.mcp.library import LibraryApi

HERE = "http://127.0.0.1"  # what links are relative to where no server runs


def serve_mcp(settings: Settings, *, is_http: bool, host: str, port: int, url: str | None) -> None:
    """Serve until the client closes standard input, or over HTTP until a signal ends it.

    Raises SetupError where the extra package is missing, or anybody would be let in.
    """
    try:
        from rag.mcp.server import mcp_server, serve_http
    except ImportError as error:
        raise SetupError(
            f"`groundnote mcp` needs the extra groundnote[mcp] ({error}). Install it with "
            "pip install 'groundnote[mcp]'."
        ) from error
    policy = listener_policy(settings, host) if is_http else None
    with _library(settings, url) as library:
        server = mcp_server(library, token=token_from_environment(), version=version("groundnote"))
        if policy is not None:
            serve_http(server, library, policy, host=host, port=port)
        else:
            server.run("stdio")


@contextmanager
def _library(settings: Settings, url: str | None) -> Iterator["LibraryApi"]:
    """Of a server that is named or runs on this machine; else of an application here."""
    from rag.mcp.library import LibraryApi

    found = url or running_server(settings.data_dir)
    if found is not None:
        library = LibraryApi(
            found, secrets=SecretBox(settings.data_dir), public_url=settings.web.public_url
        )
        try:
            yield library
        finally:
            library.close()
        return
    with _application_here(settings) as app:
        yield LibraryApi(
            HERE, app=app, secrets=SecretBox(settings.data_dir), public_url=settings.web.public_url
        )


@contextmanager
def _application_here(settings: Settings) -> Iterator[Any]:
    from rag.web import create_app
    from rag.web.server import opened

    with opened(settings) as application:
        application.load()
        application.start()
        yield create_app(application)

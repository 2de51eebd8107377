"""The client of the server that already holds the index, over its own API."""

import json
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from rag.errors import RagError, SetupError
from rag.llm.discovery import SecretBox
from rag.records import Failed
from rag.settings import Settings
from rag.wiring.listeners import listener_policy, running_server

if TYPE_CHECKING:
    from rag.mcp.server import LibraryApi

TOKEN_VARIABLE = "GROUNDNOTE_TOKEN"
DOCUMENTS_AT_ONCE = 1000

ServerEvent = tuple[str, dict[str, Any]]  # the name of a server-sent event, and its values


def token_from_environment() -> str:
    """Return the token for a server that requires one; "" without one."""
    return os.environ.get(TOKEN_VARIABLE, "").strip()


class RefusedByServer(RagError):
    """The running server answered with an error; the message is its own."""


class RemoteServer:
    """A Groundnote server on this machine."""

    def __init__(self, url: str) -> None:
        import httpx

        self._url = url
        token = token_from_environment()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(
            base_url=f"{url}/api/v1", headers=headers, timeout=httpx.Timeout(30, read=None)
        )

    def close(self) -> None:
        self._http.close()

    def upload(self, name: str, data: bytes, collection: str = "") -> str:
        """Upload one file; return the id of its job."""
        answer = self._call(
            "POST", "/documents", files=[("file", (name, data))], data={"collection": collection}
        )
        for refused in answer.get("refused", []):
            raise RefusedByServer(f"{refused['document']}: {refused['reason']}")
        return str(answer["jobs"][0]["id"])

    def jobs(self, job_ids: Collection[str]) -> dict[str, dict[str, Any]]:
        """Return these jobs by id: in one call, if they are among the newest."""
        newest = {job["id"]: job for job in self._call("GET", "/jobs")["jobs"]}
        return {id_: newest.get(id_) or self._call("GET", f"/jobs/{id_}") for id_ in job_ids}

    def content_hashes(self, collection: str) -> dict[str, str]:
        """Return the SHA-256 of each document of a collection, by name."""
        hashes: dict[str, str] = {}
        while True:
            page = {"limit": DOCUMENTS_AT_ONCE, "offset": len(hashes), "collection": collection}
            answer = self._call("GET", "/documents", params=page)
            hashes |= {one["name"]: one["content_hash"] for one in answer["documents"]}
            if not answer["documents"] or len(hashes) >= answer["total"]:
                return hashes

    def create_session(self, collections: Collection[str] = ()) -> str:
        body = {"collections": list(collections)}
        return str(self._call("POST", "/sessions", json=body)["id"])

    def ask(self, session_id: str, question: str) -> Iterator[ServerEvent]:
        """Yield the events of one turn as the server sends them."""
        path = f"/sessions/{session_id}/messages"
        headers = {"Accept": "text/event-stream"}
        body = {"content": question}
        with (
            self._translated(),
            self._http.stream("POST", path, json=body, headers=headers) as response,
        ):
            if response.is_error:
                response.read()
                raise RefusedByServer(_detail(response))
            yield from read_events(response.iter_lines())

    def script_of(self, session_id: str) -> dict[str, Any]:
        """Return a session as a scripted conversation."""
        return self._call("GET", f"/sessions/{session_id}/export", params={"format": "test"})

    def _call(self, method: str, path: str, **kwargs: Any) -> dict[str, Any]:
        with self._translated():
            response = self._http.request(method, path, **kwargs)
        if response.is_error:
            raise RefusedByServer(_detail(response))
        answer: dict[str, Any] = response.json()
        return answer

    @contextmanager
    def _translated(self) -> Iterator[None]:
        import httpx

        try:
            yield
        except httpx.TransportError as error:
            raise RefusedByServer(
                f"The server at {self._url} does not answer ({error}). See whether it still runs, "
                "then try again."
            ) from error


def read_events(lines: Iterator[str]) -> Iterator[ServerEvent]:
    """Yield server-sent events; comments and unknown fields are ignored."""
    name, lines_of_event = "", list[str]()
    for line in lines:
        if line.startswith("event:"):
            name = line.removeprefix("event:").strip()
        elif line.startswith("data:"):
            lines_of_event.append(line.removeprefix("data:").strip())
        elif not line and lines_of_event:
            yield name, json.loads("\n".join(lines_of_event))
            name, lines_of_event = "", []


def _detail(response: Any) -> str:
    try:
        return str(response.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return f"The server answered {response.status_code} {response.reason_phrase}."


# Takes a question, yields the events of its turn.
AskServer = Callable[[str], Iterator[ServerEvent]]


@contextmanager
def asking_with(
    settings: Settings, session_id: str | None, collections: tuple[str, ...]
) -> Iterator[tuple[AskServer, str]]:
    """Open a function that asks, with the id of its session."""
    url = running_server(settings.data_dir)
    if url is not None:
        with closing(RemoteServer(url)) as server:
            used_id = session_id or server.create_session(collections)
            yield (lambda question: server.ask(used_id, question)), used_id
        return
    from rag.web.api.sse import encode
    from rag.wiring.application import opened

    with opened(settings) as application:
        owner = settings.sessions.default_owner
        store = application.store
        session = store.open(session_id, owner=owner) if session_id else store.create(owner)
        if collections:
            named = application.collections.find
            session.choose([named(owner, collection).id for collection in collections])

        def asking(question: str) -> Iterator[ServerEvent]:
            for event in application.assistant.ask(session, question):
                if isinstance(event, Failed):  # the local user may see errors of settings
                    yield "error", {"detail": event.message}
                else:
                    yield encode(event, session_id=session.id)
            application.jobs.run_waiting()

        yield asking, session.id


HERE = "http://127.0.0.1"  # base of links where no server runs


def serve_mcp(settings: Settings, *, is_http: bool, host: str, port: int, url: str | None) -> None:
    """Serve until the client closes standard input, or over HTTP until a signal ends it.

    Raises SetupError if the extra package is missing, or anybody would get in.
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
    """Open the API of a named or running server; else of an application in this process."""
    from rag.mcp.server import LibraryApi

    secrets, public_url = SecretBox(settings.data_dir), settings.web.public_url
    address = url or running_server(settings.data_dir)
    if address is not None:
        with closing(LibraryApi(address, secrets=secrets, public_url=public_url)) as library:
            yield library
        return
    from rag.web import create_app
    from rag.wiring.application import opened

    with opened(settings) as application:
        application.load()
        application.start()
        app = create_app(application)
        yield LibraryApi(HERE, app=app, secrets=secrets, public_url=public_url)

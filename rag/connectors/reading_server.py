"""PDF and Office files read by a server that speaks the protocol of docling-serve.

The file is sent (`POST /v1/convert/file`); the reply is read in the sandbox. Only the operator can
set the server, which may be on this machine or in its network.
"""

import json
import ssl
import time
from dataclasses import asdict
from pathlib import PurePosixPath
from typing import Any

import httpx

from rag.connectors.guard import Guard, GuardedNetwork
from rag.connectors.web.fetch import guarded_transport
from rag.documents.kinds import FileKind
from rag.documents.limits import LoadLimits, check_size
from rag.documents.sandbox import GuardedLoader
from rag.documents.sandbox_worker import from_json
from rag.errors import RagError, SetupError, TooLarge, Unreadable, UserError
from rag.records import ParsedDocument

# Spreadsheets are read locally: as pages they would lose cells and types.
SERVED = {".pdf": FileKind.PDF, ".docx": FileKind.DOCX, ".pptx": FileKind.PPTX}
STARTS = (b"%PDF-", b"PK\x03\x04")
FORM = {"to_formats": "json", "image_export_mode": "placeholder", "abort_on_error": "false"}
BYTES_OF_A_CHARACTER = 12  # of a reply, including positions on the page
LOOK_SECONDS = 3.0
ANSWERS = {
    401: "it refuses the key (documents.reader_api_key)",
    403: "it refuses the key (documents.reader_api_key)",
    404: "no docling-serve answers at this address (documents.reader_url)",
    504: "it took longer than the server allows (DOCLING_SERVE_MAX_SYNC_WAIT there)",
}


class ReadingServer:
    """The client of one reading server; used by many threads."""

    def __init__(self, url: str, *, api_key: str = "", seconds: float, max_bytes: int) -> None:
        """Raises SetupError for an invalid URL."""
        address = httpx.URL(url) if url.isprintable() else httpx.URL("")
        if address.scheme not in ("http", "https") or not address.host:
            raise SetupError(
                f"documents.reader_url is {url[:100]!r}; an address such as http://127.0.0.1:5001 "
                "is expected."
            )
        self._url = url.rstrip("/")
        self._headers = {"X-Api-Key": api_key} if api_key else {}
        self._seconds, self._max_bytes = seconds, max_bytes
        self._guard = Guard((address.host,), ports=None)

    def convert(self, name: str, data: bytes, media_type: str) -> bytes:
        """Return the server's reply for a file, unparsed.

        Raises:
            Unreadable: The server says that it cannot read this file.
            TooLarge: The reply is too large.
            UserError: The server is unreachable or busy; the file may be sent again.
        """
        file = (PurePosixPath(name).name, data, media_type)
        status, body = self._ask("POST", "/v1/convert/file", self._seconds, {"files": file})
        if status in (413, 422):
            raise Unreadable(name, f"the reading server refuses it ({status}: {_detail(body)}).")
        if status != 200:
            raise self._away(name, ANSWERS.get(status, f"it answered {status}: {_detail(body)}"))
        try:
            state = json.loads(body)["status"]
        except (ValueError, LookupError, TypeError) as error:
            raise self._away(name, "what it sent is no reply of docling-serve") from error
        if state not in ("success", "partial_success"):
            raise Unreadable(name, f"the reading server could not read it ({_detail(body)}).")
        return body

    def look(self) -> None:
        """Raise SetupError if the server does not answer."""
        try:
            status, _body = self._ask("GET", "/health", LOOK_SECONDS)
        except UserError as error:
            raise SetupError(str(error)) from error
        if status != 200:
            raise SetupError(f"The reading server at {self._url} answers {status} to /health.")

    def _ask(
        self, method: str, path: str, seconds: float, files: dict[str, Any] | None = None
    ) -> tuple[int, bytes]:
        network = GuardedNetwork(self._guard)
        network.deadline = time.monotonic() + seconds
        transport = guarded_transport(network)
        client = httpx.Client(transport=transport, timeout=seconds, trust_env=False)
        url, form = f"{self._url}{path}", FORM if files else None
        asking = client.stream(method, url, headers=self._headers, files=files, data=form)
        try:
            with client, asking as response:
                body = bytearray()
                for piece in response.iter_bytes():
                    body += piece
                    if len(body) > self._max_bytes:
                        raise TooLarge(
                            f"The reading server sent more than {self._max_bytes:,} bytes, the "
                            "limit for one file. Split it."
                        )
                return response.status_code, bytes(body)
        except TooLarge:
            raise
        except httpx.TimeoutException as error:
            raise self._away("", f"it did not answer within {seconds:g} seconds") from error
        except (httpx.HTTPError, ssl.SSLError, OSError, RagError) as error:
            raise self._away("", str(error) or type(error).__name__) from error

    def _away(self, name: str, reason: str) -> UserError:
        return UserError(
            f"{name + ': ' if name else ''}the reading server at {self._url} cannot be used: "
            f"{reason.rstrip('.')}. Mend it, or take out documents.reader_url, and send the file "
            "again."
        )


def _detail(body: bytes) -> str:
    """Return a server's error message on one line."""
    try:
        reply = json.loads(body)
        faults = reply.get("errors") or reply.get("detail") or reply.get("status")
    except (ValueError, AttributeError):
        faults = body[:200].decode("utf-8", "replace")
    messages = (
        fault.get("error_message") or fault.get("msg") if isinstance(fault, dict) else fault
        for fault in (faults if isinstance(faults, list) else [faults])
    )
    return "; ".join(map(str, messages))[:300]


class ServedLoader(GuardedLoader):
    """A loader that has PDF and Office files read by a server, and all others locally."""

    def __init__(self, limits: LoadLimits, server: ReadingServer) -> None:
        super().__init__(limits)
        replies = LoadLimits(**{**asdict(limits), "max_bytes": most_bytes(limits)})
        self._replies = GuardedLoader(replies, module="rag.documents.docling")
        self._server = server

    def load(self, name: str, data: bytes) -> ParsedDocument:
        kind = SERVED.get(PurePosixPath(name).suffix.lower())
        if kind is None or not data.startswith(STARTS):
            return super().load(name, data)
        check_size(name, len(data), limits=self.limits)
        reply = self._server.convert(name, data, kind.value)
        return from_json(self._replies.ask(name, f"{kind.value}\n".encode() + reply))

    def close(self) -> None:
        super().close()
        self._replies.close()


def most_bytes(limits: LoadLimits) -> int:
    """Return the largest size of a reply in bytes."""
    return limits.max_characters * BYTES_OF_A_CHARACTER

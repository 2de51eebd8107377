"""A real HTTP server on loopback that speaks the OpenAI protocol from a script, faults included."""

import json
import select
import socket
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from rag.errors import ModelError
from rag.llm.openai_compatible import OpenAIChatModel
from rag.records import ChatMessage, Role
from rag.seams import ModelRequest
from tests.canary import KEY, look_at_request
from tests.fakes import HashEmbedder

QUESTION = ChatMessage(Role.USER, "How long do refunds take?")

Behaviour = Callable[["Exchange"], None]
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


@dataclass(frozen=True)
class Received:
    """One request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: dict[str, Any]


# ── Behaviours ───────────────────────────────────────────────────────────────────────────────


def reply(text: str, *, usage: dict[str, int] | None = USAGE, finish: str = "stop") -> Behaviour:
    """A good reply, streamed word by word or whole, as the request asks."""

    def behave(exchange: "Exchange") -> None:
        if not exchange.body.get("stream"):
            exchange.send_json(200, whole_completion({"content": text}, usage, finish))
            return
        words = [word + " " for word in text.split(" ")]
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": word} for word in [*words[:-1], words[-1][:-1]]]
        events = [delta_event(delta) for delta in deltas] + [delta_event({}, finish)]
        asked = exchange.body.get("stream_options", {}).get("include_usage")
        if usage and asked:
            events.append({"choices": [], "usage": usage})
        exchange.send_events([*events, "[DONE]"])

    return behave


def deltas(*pieces: dict[str, Any], finish: str | None = "stop", done: bool = True) -> Behaviour:
    """A stream of exactly these deltas; with `finish=None, done=False` it just ends."""

    def behave(exchange: "Exchange") -> None:
        events: list[Any] = [delta_event(piece) for piece in pieces]
        events += [delta_event({}, finish)] if finish else []
        exchange.send_events([*events, "[DONE]"] if done else events)

    return behave


def events(*found: dict[str, Any] | str) -> Behaviour:
    """Exactly these server-sent events; texts are sent as they are."""
    return lambda exchange: exchange.send_events(found)


def whole(message: dict[str, Any], *, finish: str = "stop") -> Behaviour:
    """A whole completion at once, even when a stream was asked for."""
    return lambda exchange: exchange.send_json(200, whole_completion(message, USAGE, finish))


def failure(
    status: int, message: str, *, code: str | None = None, headers: dict[str, str] | None = None
) -> Behaviour:
    """An error in the protocol's form."""
    error = {"error": {"message": message, "type": "error", "param": None, "code": code}}
    return lambda exchange: exchange.send_json(status, error, headers or {})


def page(content: str, *, status: int = 200, content_type: str = "text/html") -> Behaviour:
    """Something that is not in the protocol, such as a proxy's page or broken JSON."""
    return lambda exchange: exchange.send(status, content.encode(), content_type)


def hang(after: str = "") -> Behaviour:
    """Says `after` (with nothing to say, not even headers) and then nothing more."""

    def behave(exchange: "Exchange") -> None:
        if after:
            exchange.begin_stream()
            exchange.send_event(delta_event({"content": after}))
        exchange.wait_for_hang_up()

    return behave


def slowly(text: str, *, seconds_a_word: float) -> Behaviour:
    """A good reply that takes its time."""

    def behave(exchange: "Exchange") -> None:
        exchange.begin_stream()
        for word in text.split(" "):
            exchange.send_event(delta_event({"content": f"{word} "}))
            if exchange.hung_up(seconds_a_word):
                return
        exchange.send_event(delta_event({}, "stop"))
        exchange.send_event("[DONE]")
        exchange.end_stream()

    return behave


def only_pings() -> Behaviour:
    """Keeps the connection busy with comments and never says anything."""

    def behave(exchange: "Exchange") -> None:
        exchange.begin_stream()
        while not exchange.hung_up(0.02):
            exchange.send_text(": ping\n\n")

    return behave


def endless(word: str = "word ", *, counting: bool = False) -> Behaviour:
    """Repeats a word until the client goes away, perhaps with a number that grows in it."""

    def behave(exchange: "Exchange") -> None:
        exchange.begin_stream()
        number = 0
        while not exchange.hung_up(0.005):
            said = word.format(number) if counting else word
            exchange.send_event(delta_event({"content": said}))
            number += 1

    return behave


def drop() -> Behaviour:
    """Closes the connection without a word, as a server does with one that was idle too long."""
    return lambda exchange: exchange.handler.connection.close()


def cut(after: str, *, politely: bool = False) -> Behaviour:
    """Breaks off in the middle: within a chunk, or with a proper end of the HTTP message."""

    def behave(exchange: "Exchange") -> None:
        exchange.begin_stream()
        exchange.send_event(delta_event({"content": after}))
        exchange.send_text('data: {"choices": [{"delta": {"con')
        if politely:
            exchange.end_stream()

    return behave


def delta_event(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def whole_completion(
    message: dict[str, Any], usage: dict[str, int] | None, finish: str
) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage}


# ── Server ───────────────────────────────────────────────────────────────────────────────────


class OpenAIServer:
    """Serves its behaviours one after the other; the last one for ever.

    `requests` holds what arrived at /chat/completions, `disconnected` is set when a client hung up
    in the middle of a reply.
    """

    def __init__(
        self,
        *behaviours: Behaviour,
        models: Sequence[dict[str, Any]] = ({"id": "fake", "object": "model"},),
        models_behaviour: Behaviour | None = None,
        dimensions: int = 32,
        beside: Mapping[str, Any] | None = None,
        port: int = 0,
    ) -> None:
        self.port = port
        self.behaviours = list(behaviours) or [reply("Hello from the server.")]
        self.models = list(models)
        self.models_behaviour = models_behaviour
        self.beside = beside or {}  # what it tells outside the protocol, by path
        self.embedder = HashEmbedder(dimensions=dimensions)
        self.requests: list[Received] = []
        self.other_requests: list[Received] = []
        self.disconnected = threading.Event()
        self.closing = threading.Event()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self) -> "OpenAIServer":
        self._http = ThreadingHTTPServer(("127.0.0.1", self.port), _handler_for(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def answer(self, exchange: "Exchange") -> None:
        received = exchange.received
        match received.path.rstrip("/"):
            case "/v1/chat/completions":
                self._next_behaviour(received)(exchange)
            case "/v1/models":
                self.other_requests.append(received)
                listing = {"object": "list", "data": self.models}
                (self.models_behaviour or (lambda e: e.send_json(200, listing)))(exchange)
            case "/v1/embeddings":
                self.other_requests.append(received)
                exchange.send_json(200, self._embeddings(received.body))
            case path if path in self.beside:
                exchange.send_json(200, self.beside[path])
            case _:
                exchange.send_json(404, {"error": {"message": f"no route {received.path}"}})

    def _next_behaviour(self, received: Received) -> Behaviour:
        with self._lock:
            self.requests.append(received)
            return self.behaviours.pop(0) if len(self.behaviours) > 1 else self.behaviours[0]

    def _embeddings(self, body: dict[str, Any]) -> dict[str, Any]:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        rows = [
            {"object": "embedding", "index": index, "embedding": [float(x) for x in vector]}
            for index, vector in enumerate(self.embedder.embed(texts))
        ]
        return {"object": "list", "data": rows, "model": body.get("model"), "usage": USAGE}


class Exchange:
    """One request with the means to answer it, well or badly."""

    def __init__(self, handler: BaseHTTPRequestHandler, server: OpenAIServer) -> None:
        self.handler = handler
        self.server = server
        self._has_left = False
        length = int(handler.headers.get("content-length") or 0)
        raw = handler.rfile.read(length)
        look_at_request(raw)
        self.received = Received(
            handler.command, handler.path, _lower(handler.headers), json.loads(raw or b"{}")
        )

    @property
    def body(self) -> dict[str, Any]:
        return self.received.body

    def send_json(
        self, status: int, content: object, headers: Mapping[str, str] | None = None
    ) -> None:
        self.send(status, json.dumps(content).encode(), "application/json", headers)

    def send(
        self,
        status: int,
        content: bytes,
        content_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.handler.send_response(status)
        lines = {"content-type": content_type, "content-length": str(len(content))}
        lines["connection"] = "close"
        for name, value in {**lines, **(headers or {})}.items():
            self.handler.send_header(name, value)
        self.handler.end_headers()
        self.handler.wfile.write(content)

    def begin_stream(self) -> None:
        self.handler.send_response(200)
        self.handler.send_header("content-type", "text/event-stream")
        self.handler.send_header("transfer-encoding", "chunked")
        self.handler.send_header("connection", "close")
        self.handler.end_headers()

    def send_events(self, found: Iterable[dict[str, Any] | str]) -> None:
        self.begin_stream()
        for event in found:
            self.send_event(event)
        self.end_stream()

    def send_event(self, event: dict[str, Any] | str) -> None:
        self.send_text(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n")

    def send_text(self, text: str) -> None:
        content = text.encode()
        try:
            self.handler.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
        except OSError:
            self._left()

    def end_stream(self) -> None:
        self.handler.wfile.write(b"0\r\n\r\n")

    def hung_up(self, wait_seconds: float) -> bool:
        """Whether this client went away, or the server closes."""
        if self.server.closing.is_set() or self._has_left:
            return True
        readable, _, _ = select.select([self.handler.connection], [], [], wait_seconds)
        if readable and not self._peek():
            self._left()
        return self._has_left

    def _left(self) -> None:
        self._has_left = True
        self.server.disconnected.set()

    def _peek(self) -> bytes:
        try:
            return self.handler.connection.recv(1, socket.MSG_PEEK)
        except OSError:
            return b""

    def wait_for_hang_up(self) -> None:
        while not self.hung_up(0.05):
            continue


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _handler_for(server: OpenAIServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.close_connection = True
            server.answer(Exchange(self, server))

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *_: object) -> None:
            """Tests print nothing."""

    return Handler


# ── Clients ──────────────────────────────────────────────────────────────────────────────────


def model_at(
    server: OpenAIServer, *, timeout_seconds: float = 5.0, max_retries: int = 0
) -> OpenAIChatModel:
    return OpenAIChatModel(
        server.url, "fake", api_key=KEY, timeout_seconds=timeout_seconds, max_retries=max_retries
    )


def asked(**options: Any) -> ModelRequest:
    """A request with only what the test is about."""
    return ModelRequest(**{"messages": (QUESTION,), "max_tokens": 100, **options})


def error_of(model: OpenAIChatModel, request: ModelRequest | None = None) -> tuple[ModelError, str]:
    """The error in which a reply ends, checked for the key, and the text that came before it."""
    texts: list[str] = []
    with pytest.raises(ModelError) as caught:
        _collect(model, request or asked(), texts)
    assert KEY not in str(caught.value)
    return caught.value, "".join(texts)


def _collect(model: OpenAIChatModel, request: ModelRequest, texts: list[str]) -> None:
    for delta in model.stream(request):
        texts.append(delta.text)

"""A chat model on any server that speaks the OpenAI protocol."""

import json
import re
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from email.utils import mktime_tz, parsedate_tz
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from rag.errors import (
    Busy,
    ClientGone,
    ContextTooLong,
    ModelError,
    ModelInterrupted,
    ModelUnavailable,
    SetupError,
    UnreadableReply,
)
from rag.llm.dialects import (
    RequestOptions,
    Server,
    ServerDialect,
    afforded_tokens,
    message_in,
    tokens_that_fit,
    unread_call,
)
from rag.llm.replies import ArrivingReply, BoundedReply, ServerComplaint, read_events
from rag.llm.reply_text import ReplyParser
from rag.records import ToolCall, Usage
from rag.runtime.budget import PATIENCE_SECONDS, Lane, hang_up_reason, has_hung_up, on_hang_up
from rag.seams import ChatModel, ModelDelta, ModelRequest
from rag.seams.models import ANSWER, CONNECT_SECONDS, RETRY_SECONDS, Deadline, Patience

if TYPE_CHECKING:
    from openai import OpenAI

_FINAL_CODES = ("insufficient_quota", "billing_hard_limit_reached")  # a 429 that no retry mends
_RETRIED = frozenset({408, 409, 425, 429, 500, *range(502, 505), *range(520, 525), 529})


@dataclass(frozen=True, slots=True)
class WholeReply:
    """A complete reply."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None


def complete(model: ChatModel, request: ModelRequest) -> WholeReply:
    """Request a complete reply. Raises what `ChatModel.stream` raises."""
    texts: list[str] = []
    calls: list[ToolCall] = []
    usage = None
    for delta in model.stream(request):
        if delta.discard:
            texts.clear()
        texts.append(delta.text)
        calls.extend(delta.tool_calls)
        usage = delta.usage or usage
    return WholeReply("".join(texts), tuple(calls), usage)


class OpenAIChatModel:
    """Streams chat completions. What a server refuses is left out, and remembered.

    `timeout_seconds` limits the wait for each piece of a reply, a request's own patience the whole
    reply. Time that the consumer takes does not count. `asking` are the operator's options for
    every request.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        timeout_seconds: float = ANSWER.seconds,
        max_retries: int = 2,
        asking: RequestOptions | None = None,
    ) -> None:
        if not re.match(r"https?://[^/\s]", base_url):
            raise SetupError(
                f"llm.base_url must be an address such as http://127.0.0.1:11434/v1, "
                f"not {base_url!r}."
            )
        self.name = model
        self._server = Server(base_url, model, api_key)
        self._patience = ANSWER.set_to(timeout_seconds)
        self._max_retries = max_retries
        self._lane: Lane | None = None
        self._too_long: Callable[[int | None], None] = lambda fits: None
        self._habits = ServerDialect(self._server, asking or RequestOptions())
        self._opened: OpenAI | None = None
        self._opening = threading.Lock()

    @property
    def takes_tools(self) -> bool:
        """Whether the server has not refused tools."""
        return "tools" not in self._habits.refused

    def wait_in(self, lane: Lane) -> None:
        """Make all calls wait in this lane."""
        self._lane = lane

    def when_too_long(self, tell: Callable[[int | None], None]) -> None:
        """Call `tell` with the window when messages did not fit; None if the server names none."""
        self._too_long = tell

    @contextmanager
    def _place(self, request: ModelRequest) -> Iterator[None]:
        """Hold a place in the server's lane. Raises ModelUnavailable if that takes too long."""
        if self._lane is None:
            yield
            return
        patience = request.patience or self._patience
        seconds = max(0.0, min(PATIENCE_SECONDS, patience.seconds, request.deadline.left))
        try:
            with self._lane.place(patience_seconds=seconds):
                yield
        except Busy as error:
            raise ModelUnavailable(str(error)) from error
        except ClientGone as error:
            raise ModelInterrupted(str(error)) from error

    def stream(self, request: ModelRequest) -> Iterator[ModelDelta]:
        with self._place(request):
            client = self._client()
            patience = _WaitedSeconds(self._patience, request.patience, request.deadline)
            wrote = False
            try:
                with self._open(client, request) as response:
                    events = patience.renewed_by(read_events(patience.over(response.iter_bytes())))
                    reply = self._reply_to(request)
                    ends = BoundedReply(request.max_tokens, request.deadline)
                    for delta in reply.read(ends.checked(events)):
                        ends.note(delta.text)
                        yield delta
                        wrote = True
                    self._habits.notice(reply)
            except _failures() as error:
                translated = self._translated(error, patience, wrote=wrote)
                if isinstance(translated, ContextTooLong):
                    self._too_long(tokens_that_fit(str(translated)))
                raise translated from error
            except ModelInterrupted as error:
                if has_hung_up():  # some servers end a cut stream without an error
                    raise ModelInterrupted(hang_up_reason() or "") from error
                if not (wrote or patience.got_something):
                    raise self._server.unreadable("the reply is empty") from error
                raise self._server.broken_off(str(error)) from error
            except UnreadableReply as error:
                raise self._server.unreadable(str(error)) from error

    def _reply_to(self, request: ModelRequest) -> ArrivingReply:
        tools = []
        if self._habits.asking.written_calls:
            passed_on = request.passed_on.get("tools", ())
            tools = [tool.name for tool in request.tools]
            tools += [tool["function"]["name"] for tool in passed_on]
        return ArrivingReply(ReplyParser(tools, holds=self._habits.thinks_unopened))

    def _client(self) -> "OpenAI":
        with self._opening:
            if self._opened is None:
                from openai import DefaultHttpxClient, OpenAI

                self._opened = OpenAI(
                    base_url=self._server.base_url,
                    api_key=self._server.api_key or "none",  # local servers need none
                    http_client=DefaultHttpxClient(event_hooks={"request": [_make_cuttable]}),
                    # One connection for each call, which can be cut without harm to others.
                    default_headers={"Connection": "close"},
                    max_retries=0,  # `_wait_seconds` decides what is tried again
                )
            return self._opened

    def _open(self, client: "OpenAI", request: ModelRequest) -> Any:
        """Open the reply, after as many retries and concessions as needed."""
        import openai

        tries = 0
        while True:
            body = self._habits.body(request)
            try:
                return self._sent(client, body, request)
            except openai.APIError as error:
                most = request.max_tokens
                fewer = min(afforded_tokens(error) or most, most)
                if self._habits.concede(error, body, request.insisted) or fewer < most:
                    request = replace(request, max_tokens=fewer)
                    continue
                opened = self._otherwise(client, request, body, error)
                if opened is not None:
                    return opened
                wait_seconds = _wait_seconds(error, tries)
                is_over = has_hung_up() or (wait_seconds or 0) >= request.deadline.left
                if tries >= self._max_retries or wait_seconds is None or is_over:
                    raise
                tries += 1
                pause(wait_seconds)

    def _sent(self, client: "OpenAI", body: Mapping[str, Any], request: ModelRequest) -> Any:
        from openai import Timeout

        left = request.deadline.left
        if left <= 0:
            raise TimeoutError
        seconds = min(left, shorter(self._patience, request.patience).seconds)
        # The client would validate each key of each message: a third of the work for a turn.
        as_it_is = {**body["extra_body"], "messages": body["messages"]}
        opening = client.chat.completions.with_streaming_response.create(
            **{**body, "messages": [], "extra_body": as_it_is},
            timeout=Timeout(seconds, connect=min(CONNECT_SECONDS, seconds)),
        )
        return closing(opening.__enter__())

    def _otherwise(
        self, client: "OpenAI", request: ModelRequest, body: Mapping[str, Any], refusal: Any
    ) -> Any:
        """Return the model's text that its server could not read, or try without options.

        Raises the refusal if that does not help.
        """
        import openai

        written = unread_call(refusal)
        if written:
            choice = {"message": {"content": written}, "finish_reason": "stop"}
            whole = json.dumps({"choices": [choice]}).encode()
            return nullcontext(SimpleNamespace(iter_bytes=lambda: iter([whole])))
        bare = self._habits.without_options(refusal, body, request.insisted)
        if bare is None:
            return None
        try:
            opened = self._sent(client, bare.body(request), request)
        except openai.APIError as error:
            raise refusal from error
        self._habits.refused = bare.refused
        return opened

    def _translated(
        self, error: BaseException, patience: "_WaitedSeconds", *, wrote: bool
    ) -> ModelError:
        import openai

        match error:
            case _ if has_hung_up():
                return ModelInterrupted(hang_up_reason() or "")
            case openai.APIStatusError():
                code = str(error.code or "")
                return self._server.refused(error.status_code, message_in(error), code=code)
            case ServerComplaint() if wrote:
                return self._server.broken_off(str(error))
            case ServerComplaint():
                return self._server.refused(None, str(error))
            case _ if "ConnectTimeout" in (type(error).__name__, type(error.__cause__).__name__):
                return self._server.unreachable()
            case _ if _is_timeout(error):
                over = patience.deadline.reason
                silent = self._server.silent(patience.ended_by, wrote=wrote)
                return self._server.broken_off(over) if over else silent
            case _ if wrote or patience.got_something:
                return self._server.broken_off("the connection was lost")
        return self._server.unreachable()


@dataclass(slots=True)
class _WaitedSeconds:
    """Counts the seconds spent waiting for the server, and gives up with TimeoutError."""

    between: Patience  # between two pieces with content, not comments or pings
    whole: Patience | None
    deadline: Deadline
    got_something: bool = False
    ended_by: Patience = field(init=False)  # the one that ends the wait
    _idle: float = field(default=0.0, init=False)
    _total: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.ended_by = shorter(self.between, self.whole)  # if the connection itself times out

    def over(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        while True:
            began = time.monotonic()
            piece = next(pieces, None)
            seconds = time.monotonic() - began
            self._idle += seconds
            self._total += seconds
            if self.whole is not None and self._total > self.whole.seconds:
                self.ended_by = self.whole
                raise TimeoutError
            if self._idle > self.between.seconds or self.deadline.reason:
                self.ended_by = self.between
                raise TimeoutError
            if piece is None:
                return
            self.got_something = self.got_something or bool(piece.strip())
            yield piece

    def renewed_by(self, events: Iterator[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        for event in events:
            self._idle = 0.0
            yield event


def _make_cuttable(request: Any) -> None:
    """Let a hang-up cut the connection of this request."""

    def trace(step: str, values: dict[str, Any]) -> None:
        if step in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            connected = values["return_value"].get_extra_info("socket")
            on_hang_up(lambda: _cut(connected))

    request.extensions["trace"] = trace


def _cut(connected: socket.socket) -> None:
    with suppress(OSError):  # already closed
        # Not the method of a TLS socket, which crashes the reading thread.
        socket.socket.shutdown(connected, socket.SHUT_RDWR)


def _failures() -> tuple[type[Exception], ...]:
    """Return the exceptions of the client, of its HTTP library while streaming, and ours."""
    import openai

    transports = (sys.modules.get(name) for name in ("httpx", "httpx2"))  # by client version
    errors = [module.RequestError for module in transports if module is not None]
    return (openai.OpenAIError, ssl.SSLError, TimeoutError, ServerComplaint, *errors)


def shorter(patience: Patience, other: Patience | None) -> Patience:
    """Return the one that ends a wait first."""
    return patience if other is None or patience.seconds < other.seconds else other


def _is_timeout(error: BaseException) -> bool:
    return isinstance(error, TimeoutError) or "Timeout" in type(error).__name__


def _wait_seconds(error: Any, tries: int) -> float | None:
    """Return the seconds before another try; None if another try is useless."""
    if not hasattr(error, "status_code"):
        # A lost connection can be opened again; nothing else mends where nothing listens.
        cause = type(error.__cause__).__name__  # of either HTTP library
        is_lost = cause in ("ReadError", "RemoteProtocolError", "WriteError")
        return 0.0 if is_lost and not _is_timeout(error) else None
    if error.status_code not in _RETRIED or error.code in _FINAL_CODES:
        return None
    seconds = _retry_seconds(error.response.headers)
    if seconds is None:
        return min(0.5 * 2.0**tries, RETRY_SECONDS)
    return seconds if seconds <= RETRY_SECONDS else None


def _retry_seconds(headers: Mapping[str, str]) -> float | None:
    """Return how long a server asks to wait: in milliseconds, seconds, or until a time."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        if re.fullmatch(r"\d+(\.\d+)?", headers.get(name, "")):
            return float(headers[name]) * unit
    until = parsedate_tz(headers.get("retry-after", ""))
    return max(0.0, mktime_tz(until) - time.time()) if until else None


def pause(seconds: float) -> None:
    """Wait so many seconds, or until a hang-up."""
    hung_up = threading.Event()
    on_hang_up(hung_up.set)
    hung_up.wait(seconds)

"""Break off a wait from another thread: when nobody wants an answer any more, its model is told."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any

from rag.errors import ModelUnavailable, RagError
from rag.records import ChatMessage, Usage
from rag.seams import ChatModel, ModelRequest
from rag.seams.patience import Patience

Cut = Callable[[], None]
LEFT = "The answer was stopped before its end."
STOPPED = "Stopped."  # as the person wished


class HangUp:
    """Held by the one who waits; the thread that works hears of it inside `heard_here`."""

    def __init__(self) -> None:
        self.is_over = False
        self.reason = LEFT
        self._cuts: list[Cut] = []
        self._lock = Lock()

    def now(self, reason: str | None = None) -> None:
        """Cut whatever the working thread waits for, now and later."""
        with self._lock:
            self.is_over = True
            self.reason = reason or self.reason
            cuts = list(self._cuts)
        for cut in cuts:
            cut()

    @contextmanager
    def heard_here(self) -> Iterator[None]:
        """What this thread does inside can be broken off."""
        token = _heard.set(self)
        try:
            yield
        finally:
            _heard.reset(token)

    def cuts(self, cut: Cut) -> None:
        """Call this when it is over; at once if it is. It may come when the wait has ended."""
        with self._lock:
            self._cuts.append(cut)
            is_over = self.is_over
        if is_over:
            cut()


_heard: ContextVar[HangUp | None] = ContextVar("heard", default=None)


def on_hang_up(cut: Cut) -> None:
    """Have a wait of this thread cut when nobody wants its end any more."""
    hang_up = _heard.get()
    if hang_up is not None:
        hang_up.cuts(cut)


def has_hung_up() -> bool:
    """Whether the one this thread works for has gone."""
    hang_up = _heard.get()
    return hang_up is not None and hang_up.is_over


def hang_up_reason() -> str | None:
    """Why the one this thread works for has gone; None while somebody waits."""
    hang_up = _heard.get()
    return hang_up.reason if hang_up is not None and hang_up.is_over else None


# ── Short questions to a model beside an answer: a reply soon, or none ────────────────────────────


def reply_soon(
    model: ChatModel, messages: Sequence[ChatMessage], *, max_tokens: int, patience: Patience
) -> str:
    """What it says in time without thinking; "" where it fails or takes longer."""
    said, failure = reply_in_time(model, messages, max_tokens=max_tokens, patience=patience)
    return "" if failure else said


def reply_in_time(
    model: ChatModel,
    messages: Sequence[ChatMessage],
    *,
    max_tokens: int,
    patience: Patience,
    temperature: float = 0.0,
    usage: list[Usage] | None = None,
) -> tuple[str, RagError | None]:
    """What it says in time, and why that is not all of it.

    A server that never ends its reply, or never begins, must not hold up whoever waits. Who
    hangs up waits no longer; `usage` takes what the server tells.
    """
    request = ModelRequest(
        tuple(messages), max_tokens, temperature=temperature, patience=patience, thinks=False
    )
    ended: SimpleQueue[RagError | None] = SimpleQueue()
    pieces: list[str] = []
    deadline = time.monotonic() + patience.seconds
    late = ModelUnavailable(
        f"{model.name} took longer than {patience.seconds:g} seconds. {patience.advice}"
    )

    def read() -> None:
        failure: RagError | None = ModelUnavailable(f"{model.name} failed.")
        try:
            for delta in model.stream(request):
                if usage is not None and delta.usage is not None:
                    usage.append(delta.usage)
                if delta.discard:
                    pieces.clear()
                pieces.append(delta.text)
                if time.monotonic() > deadline:
                    pieces.clear()  # half a reply is none
                    break
            failure = None if time.monotonic() <= deadline else late
        except RagError as error:
            failure = error
        finally:
            ended.put(failure)

    Thread(target=copy_context().run, args=(read,), name="short call", daemon=True).start()
    on_hang_up(lambda: ended.put(late))  # a model that cannot be cut ends by itself, unheard
    try:
        failure = ended.get(timeout=patience.seconds)
    except Empty:
        failure = late
    return "".join(pieces), failure


def json_object(reply: str) -> dict[str, Any] | None:
    """The JSON object of a reply, in whatever it is wrapped; None where there is none."""
    try:
        data = json.loads(reply[reply.find("{") : reply.rfind("}") + 1])
    except ValueError:
        return None
    return data if isinstance(data, dict) else None

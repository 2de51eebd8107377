"""Short questions to a model beside an answer: a reply soon, or none."""

import json
import time
from collections.abc import Sequence
from contextvars import copy_context
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from rag.errors import ModelUnavailable, RagError
from rag.records import ChatMessage, Usage
from rag.runtime.cancellation import on_hang_up
from rag.seams import ChatModel, ModelRequest
from rag.seams.patience import Patience


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

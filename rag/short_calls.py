"""Short questions to a model beside an answer: a reply soon, or none."""

import json
import time
from collections.abc import Sequence
from contextvars import copy_context
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from rag.errors import RagError
from rag.records import ChatMessage
from rag.seams import ChatModel, ModelRequest


def reply_soon(
    model: ChatModel, messages: Sequence[ChatMessage], *, max_tokens: int, seconds: float
) -> str:
    """What it says in so many seconds without thinking; "" where it fails or takes longer.

    A server that never ends its reply, or never begins, must not hold up whoever waits.
    """
    request = ModelRequest(
        tuple(messages), max_tokens, temperature=0.0, timeout_seconds=seconds, thinks=False
    )
    replies: SimpleQueue[str] = SimpleQueue()
    deadline = time.monotonic() + seconds

    def read() -> None:
        pieces: list[str] = []
        try:
            for delta in model.stream(request):
                if delta.discard:
                    pieces.clear()
                pieces.append(delta.text)
                if time.monotonic() > deadline:
                    pieces.clear()  # half a reply is none
                    break
        except RagError:
            pieces.clear()
        finally:
            replies.put("".join(pieces))

    Thread(target=copy_context().run, args=(read,), name="short call", daemon=True).start()
    try:
        return replies.get(timeout=seconds)
    except Empty:
        return ""


def json_object(reply: str) -> dict[str, Any] | None:
    """The JSON object of a reply, in whatever it is wrapped; None where there is none."""
    try:
        found = json.loads(reply[reply.find("{") : reply.rfind("}") + 1])
    except ValueError:
        return None
    return found if isinstance(found, dict) else None

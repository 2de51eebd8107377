"""Events of a turn as server-sent events, with pings while nothing happens."""

import json
from collections.abc import Generator, Iterator
from contextlib import closing
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from flask import Response, request
from pydantic_core import to_jsonable_python

from rag.errors import RagError
from rag.hangup import HangUp
from rag.records import (
    Cited,
    Compacted,
    Discarded,
    Event,
    Failed,
    Finished,
    Resolved,
    Sources,
    Text,
    ToolUsed,
)
from rag.web.problems import HIDDEN_DETAIL, problem_of
from rag.web.response_models import AnswerModel, as_json, sources_of

EVENT_STREAM = "text/event-stream"
PING = ": ping\n\n"
PING_SECONDS = 5.0  # a client that left is noticed when the second ping cannot be sent

LINE_BREAKS = {ord(char): f"\\u{ord(char):04x}" for char in "\x85\u2028\u2029"}
NAMES = {Resolved: "resolved", Compacted: "compaction", ToolUsed: "tool"}

Frames = Generator[str, None, None]


def wants_events() -> bool:
    """Whether the caller prefers a stream of events to one JSON document."""
    offered = ["application/json", EVENT_STREAM]
    return request.accept_mimetypes.best_match(offered) == EVENT_STREAM


def event_stream(frames: Frames, *, ping_seconds: float = PING_SECONDS) -> Response:
    """A response that sends frames as they come; no proxy shall hold them back."""
    response = Response(with_pings(frames, ping_seconds=ping_seconds), mimetype=EVENT_STREAM)
    response.headers["Cache-Control"] = "no-cache"
    response.headers["X-Accel-Buffering"] = "no"
    return response


def with_pings(frames: Frames, *, ping_seconds: float) -> Iterator[str]:
    """The frames, and a comment whenever none came for a while.

    The frames are made in a thread of their own, so that a silent model does not silence the
    pings. When the client goes away, the model they wait for is cut off, and they are closed.
    """
    queue: SimpleQueue[str | None] = SimpleQueue()
    hang_up = HangUp()
    Thread(target=_pump, args=(frames, queue, hang_up), daemon=True).start()
    try:
        while True:
            try:
                frame = queue.get(timeout=ping_seconds)
            except Empty:
                yield PING
                continue
            if frame is None:
                return
            yield frame
    finally:
        hang_up.now()


def _pump(frames: Frames, queue: "SimpleQueue[str | None]", hang_up: HangUp) -> None:
    try:
        with hang_up.heard_here(), closing(frames):
            for frame in frames:
                queue.put(frame)
                if hang_up.is_over:
                    return
    finally:
        queue.put(None)


def frame(name: str, values: dict[str, Any]) -> str:
    """One server-sent event."""
    return f"event: {name}\n{data_line(values)}"


def data_line(values: dict[str, Any]) -> str:
    """JSON on one line, also for clients that break lines where Unicode does."""
    text = json.dumps(values, ensure_ascii=False)
    return f"data: {text.translate(LINE_BREAKS)}\n\n"


def frames_of(events: Iterator[Event], *, session_id: str) -> Frames:
    """Each event as a frame."""
    with closing(to_the_end(events)) as ended:
        for event in ended:
            yield frame(*encode(event, session_id=session_id))


def to_the_end(events: Iterator[Event]) -> Generator[Event, None, None]:
    """The events; an exception becomes a last one, because the client must be told.

    Closing this closes the events, which hangs up on the model.
    """
    with closing(closable(events)) as turn:
        try:
            yield from turn
        except RagError as error:
            yield Failed(error, str(error))
        except Exception as error:  # noqa: BLE001 - the outermost edge
            yield Failed(error, HIDDEN_DETAIL)


def closable(events: Iterator[Event]) -> Generator[Event, None, None]:
    """The same events; closing it closes them."""
    yield from events


def encode(event: Event, *, session_id: str) -> tuple[str, dict[str, Any]]:
    """The name of a server-sent event, and what it says."""
    match event:
        case Text(text):
            return "delta", {"text": text}
        case Discarded(reason):
            return "discard", {"reason": reason}
        case Cited(number):
            return "cited", {"n": number}
        case Sources(sources):
            return "sources", {"sources": sources_of(sources)}
        case Finished():
            return "final", as_json(AnswerModel.finished(event, session_id=session_id))
        case Failed():
            return "error", failure(event)
        case Resolved() | Compacted() | ToolUsed():
            return NAMES[type(event)], to_jsonable_python(event)


def failure(failed: Failed) -> dict[str, Any]:
    """The problem that a failed turn ends with; its own message was made for the user."""
    problem = problem_of(failed.error, index=failed.index)
    return problem if problem["status"] == 500 else problem | {"detail": failed.message}

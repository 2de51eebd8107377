"""The events of a turn as server-sent events, with pings while nothing happens."""

import json
import re
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import chain
from typing import Any

from flask import Response, copy_current_request_context
from pydantic_core import to_jsonable_python
from werkzeug.exceptions import HTTPException

from rag.citations.markers import cited_numbers
from rag.errors import ModelInterrupted, RagError
from rag.records import (
    Cited,
    Compacted,
    Discarded,
    Event,
    Failed,
    Finished,
    Judged,
    Message,
    MessageStatus,
    Resolved,
    Sources,
    Text,
    ToolUsed,
    Waiting,
)
from rag.render.answers import LiveHtml
from rag.seams import SessionHandle, SourceRegister
from rag.web.api.schemas import AnswerModel, MessageModel, SourcesModel
from rag.web.problems import problem_of
from rag.web.turns import EVENT_STREAM, RunningTurn, failure, places_before

PING = ": ping\n\n"
PING_SECONDS = 5.0
LOOK_SECONDS = 0.2  # between two checks for text that was not rendered yet

LINE_BREAKS = {ord(char): f"\\u{ord(char):04x}" for char in "\x85\u2028\u2029"}
NAMES = {
    Resolved: "resolved",
    Compacted: "compaction",
    ToolUsed: "tool",
    Text: "delta",
    Discarded: "discard",
    Waiting: "waiting",
}  # of events whose frames hold their fields

Frames = Generator[str, None, None]


def event_stream(frames: Iterator[str]) -> Response:
    """Return a response that sends frames as they come, unbuffered by proxies."""
    response = Response(frames, mimetype=EVENT_STREAM)
    response.headers["X-Accel-Buffering"] = "no"
    return response


def frame(name: str, values: dict[str, Any]) -> str:
    """Return one server-sent event."""
    return f"event: {name}\n{data_line(values)}"


def data_line(values: dict[str, Any]) -> str:
    """Return JSON on one line, also for clients that break lines at Unicode line breaks."""
    text = json.dumps(values, ensure_ascii=False)
    return f"data: {text.translate(LINE_BREAKS)}\n\n"


def when_due(
    begin: Callable[[], Iterator[str]],
    *,
    waiting: Callable[[int], str],
    refused: Callable[[dict[str, Any]], str],
) -> Iterator[str]:
    """Return the frames of `begin` once no request waits before it; until then, how many do.

    Raises:
        ServiceUnavailable, UserError: it cannot be begun, and nothing has been sent yet.
    """
    places = places_before()
    before = next(places, None)
    if before is None:
        return begin()
    begin = copy_current_request_context(begin)

    def later() -> Iterator[str]:
        try:
            yield from map(waiting, chain([before], places))
            frames = begin()
        except (RagError, HTTPException) as error:
            yield refused(problem_of(error))
        else:
            yield from frames

    return later()


def frames_when_due(begin: Callable[[], RunningTurn], live: LiveHtml | None) -> Iterator[str]:
    """Return the frames of a turn that begins when no request waits before it."""
    return when_due(
        lambda: frames_of(begin(), live=live),
        waiting=lambda before: frame("waiting", {"before": before}),
        refused=lambda problem: frame("error", problem),
    )


def frames_of(turn: RunningTurn, *, start: int = 0, live: LiveHtml | None = None) -> Iterator[str]:
    """Yield each event of a turn as a frame, whose id says where to continue."""
    if live is not None:
        for event in turn.events[:start]:
            live.take(event)
    numbered = turn.follow(start=start, ping_seconds=LOOK_SECONDS if live else PING_SECONDS)
    events = ((f"id: {turn.index}-{turn.revision}-{place}\n", event) for place, event in numbered)
    yield from framed(events, session_id=turn.session.id, live=live)


def framed(
    events: Iterable[tuple[str, Event | None]], *, session_id: str, live: LiveHtml | None
) -> Iterator[str]:
    """Yield the events, each with its id, as frames; for a page the text as HTML."""
    spoke_at = time.monotonic()
    for event_id, event in events:
        is_text = live is not None and event is not None and live.take(event)
        change = live.change(at_once=not is_text) if live is not None else None
        is_due = live is None or time.monotonic() - spoke_at > PING_SECONDS
        if change is not None:
            yield event_id * is_text + frame("html", change)
        if event is not None and not is_text:
            yield event_id + frame(*encode(event, session_id=session_id))
        elif event is None and change is None and is_due:
            yield PING
        else:
            continue
        spoke_at = time.monotonic()


def encode(event: Event, *, session_id: str) -> tuple[str, dict[str, Any]]:
    """Return the name of the server-sent event, and its values."""
    match event:
        case Cited(number):
            return "cited", {"n": number}
        case Sources(sources):
            return "sources", SourcesModel.of(sources=sources).as_json()
        case Judged(message):
            return "judged", MessageModel.of(message).as_json()
        case Finished():
            return "final", AnswerModel.finished(event, session_id=session_id).as_json()
        case Failed():
            return "error", failure(event)
        case _:
            return NAMES[type(event)], to_jsonable_python(event)


FOLLOW_SECONDS = 0.5
AGAIN = "The answer is shown from its beginning."


def frames_again(
    session: SessionHandle,
    turn: RunningTurn | None,
    message: Message,
    last_id: str,
    *,
    live: LiveHtml | None = None,
) -> Iterator[str]:
    """Yield the frames after `last_id`; if it is unknown, all of them, to replace the earlier."""
    place: int | None = None  # of the event after `last_id`
    if turn is not None:
        match = re.fullmatch(rf"{turn.index}-{turn.revision}-([0-9]{{1,9}})", last_id)
        if match and int(match[1]) < len(turn.events):
            place = int(match[1]) + 1
    if last_id and place is None:
        yield from framed([("", Discarded(AGAIN))], session_id=session.id, live=live)
    if turn is not None:
        yield from frames_of(turn, start=place or 0, live=live)
        return
    events = (("", event) for event in _elsewhere(session, message))
    yield from framed(events, session_id=session.id, live=live)


def _elsewhere(session: SessionHandle, message: Message) -> Iterator[Event | None]:
    shown, spoke_at = "", time.monotonic()
    while message.status is MessageStatus.PENDING:
        text = session.written_so_far(message.index) or shown
        if not text.startswith(shown):
            yield Discarded(AGAIN)
            shown = ""
        if text != shown:
            yield Text(text[len(shown) :])
            shown, spoke_at = text, time.monotonic()
        elif time.monotonic() - spoke_at > PING_SECONDS:
            yield None
            spoke_at = time.monotonic()
        time.sleep(FOLLOW_SECONDS)
        message = session.message(message.index)
    yield end_of(session, message)


def end_of(session: SourceRegister, message: Message) -> Finished | Failed:
    """Return how a stored answer ended."""
    if message.status is not MessageStatus.COMPLETE:
        reason = message.error or "This answer was interrupted."
        return Failed(ModelInterrupted(reason), reason, message.index)
    numbers = sorted(set(cited_numbers(message.content)))
    return Finished(message, tuple(session.sources(numbers)))

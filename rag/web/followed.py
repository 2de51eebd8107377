"""An answer followed by somebody who comes later, perhaps to another process."""

import time
from collections.abc import Iterator

from rag.citations.markers import cited_numbers
from rag.errors import ModelInterrupted
from rag.records import Discarded, Event, Failed, Finished, Message, MessageStatus, Text
from rag.seams import SessionHandle
from rag.web.html.live import LiveHtml
from rag.web.sse import PING_SECONDS, framed, frames_of
from rag.web.turns import Turn

LOOK_SECONDS = 0.5
AGAIN = "The answer is shown from its beginning."


def frames_again(
    session: SessionHandle,
    turn: Turn | None,
    message: Message,
    seen: int,
    *,
    live: LiveHtml | None = None,
) -> Iterator[str]:
    """What comes after the events that were seen; from elsewhere the whole text so far."""
    if turn is not None and seen <= len(turn.events):
        yield from frames_of(turn, start=seen, live=live)
        return
    events = (("", event) for event in _elsewhere(session, message, is_again=seen > 0))
    yield from framed(events, session_id=session.id, live=live)


def _elsewhere(
    session: SessionHandle, message: Message, *, is_again: bool
) -> Iterator[Event | None]:
    if is_again:
        yield Discarded(AGAIN)
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
        time.sleep(LOOK_SECONDS)
        message = session.message(message.index)
    yield end_of(session, message)


def end_of(session: SessionHandle, message: Message) -> Finished | Failed:
    """How an answer ended, as it is stored."""
    if message.status is not MessageStatus.COMPLETE:
        reason = message.error or "This answer was interrupted."
        return Failed(ModelInterrupted(reason), reason, message.index)
    numbers = sorted(set(cited_numbers(message.content)))
    return Finished(message, tuple(session.sources(numbers)))

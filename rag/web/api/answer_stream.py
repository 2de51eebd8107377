"""An answer followed by somebody who comes later, perhaps to another process."""

import re
import time
from collections.abc import Iterator

from rag.citations.markers import cited_numbers
from rag.errors import ModelInterrupted
from rag.records import Discarded, Event, Failed, Finished, Message, MessageStatus, Text
from rag.render.answers import LiveHtml
from rag.seams import SessionHandle
from rag.web.api.sse import PING_SECONDS, framed, frames_of
from rag.web.turns import RunningTurn

LOOK_SECONDS = 0.5
AGAIN = "The answer is shown from its beginning."


def frames_again(
    session: SessionHandle,
    turn: RunningTurn | None,
    message: Message,
    last_id: str,
    *,
    live: LiveHtml | None = None,
) -> Iterator[str]:
    """What comes behind an event that was seen here; else all of it, in place of what was seen."""
    place = _place_behind(last_id, turn) if turn is not None else None
    if last_id and place is None:
        yield from framed([("", Discarded(AGAIN))], session_id=session.id, live=live)
    if turn is not None:
        yield from frames_of(turn, start=place or 0, live=live)
        return
    events = (("", event) for event in _elsewhere(session, message))
    yield from framed(events, session_id=session.id, live=live)


def _place_behind(last_id: str, turn: RunningTurn) -> int | None:
    """Which event follows the one of that id; None where this turn gave no such id."""
    known = re.fullmatch(rf"{turn.index}-{turn.revision}-([0-9]{{1,9}})", last_id)
    return int(known[1]) + 1 if known and int(known[1]) < len(turn.events) else None


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

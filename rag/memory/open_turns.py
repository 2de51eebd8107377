"""What is remembered of sessions between the steps of a turn, and between turns."""

from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TypeVar

from rag.memory.context import Pair, pairs_of
from rag.records import NO_PREFERENCES, ContextPreferences, Message, Role, Session, Summary
from rag.seams import OwnedSession, SessionTranscript

SYSTEM_MESSAGES = 4  # of a client that are read at most
OPEN_TURNS = 256  # whose state is remembered
REMEMBERED_SESSIONS = 1024  # whose instructions are
MOST_REMEMBERED = 20_000  # characters of instructions; longer ones are read in each turn
KeptValue = TypeVar("KeptValue")


@dataclass(frozen=True, slots=True)
class State:
    """A session as one turn finds it; bounded, however long it is."""

    session: Session
    summaries: tuple[Summary, ...]
    recent: tuple[Pair, ...]  # after the last summary
    summarises: bool
    preferences: ContextPreferences = NO_PREFERENCES  # what a model asked to see once
    matches: tuple[int, ...] = ()  # messages that its last search found
    instructions: str = ""  # the system messages with which an imported transcript begins
    window: int = 0  # of the model when the turn's context was put together first


class OpenTurns:
    """States of sessions as their open turns found them, so that a turn reads them once."""

    def __init__(self) -> None:
        self._states: dict[str, State] = {}

    def keep(self, session: OwnedSession, state: State) -> None:
        """Remember until the turn ends; of turns that never ended, the oldest is forgotten."""
        _keep(self._states, session.id, state, OPEN_TURNS)

    def forget(self, session: OwnedSession) -> State | None:
        """What was remembered, if anything."""
        return self._states.pop(session.id, None)

    def of(self, session: OwnedSession, message_count: int) -> State | None:
        """The state of the turn that ends with this many messages."""
        state = self._states.get(session.id)
        return state if state and state.session.message_count == message_count else None

    def ended(self, session: OwnedSession, added: tuple[Message, Message]) -> State | None:
        """The state with what the turn added to it."""
        state = self.forget(session)
        return state and replace(state, recent=(*state.recent, *pairs_of(added)))


class Instructions:
    """The system messages with which transcripts begin.

    They are remembered once they cannot change: when something else was said after them. Whoever
    asks has read the session before, so what is remembered of a deleted one is never shown.
    """

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, session: SessionTranscript) -> str:
        """Those of a session, in one text, as they were sent."""
        if session.id in self._known:
            return self._known[session.id]
        first = session.bare_messages(0, SYSTEM_MESSAGES)
        leading = list(takewhile(lambda message: message.role == Role.SYSTEM, first))
        text = "\n".join(message.content for message in leading)
        is_settled = len(leading) < len(first) or len(leading) == SYSTEM_MESSAGES
        if is_settled and len(text) <= MOST_REMEMBERED:
            _keep(self._known, session.id, text, REMEMBERED_SESSIONS)
        return text


def _keep(kept: dict[str, KeptValue], key: str, value: KeptValue, most: int) -> None:
    """Of what was kept, the oldest is forgotten."""
    kept.pop(key, None)
    kept[key] = value
    for oldest in list(kept)[: max(0, len(kept) - most)]:
        kept.pop(oldest, None)

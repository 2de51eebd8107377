"""Turns belong to the server: each runs to its end in a thread of its own, whoever looks on."""

import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from flask import abort, current_app

from rag.errors import ModelInterrupted, RagError
from rag.records import Discarded, Event, Failed, Finished, Judged, Message, Text, Waiting
from rag.runtime.budget import LEFT, STOPPED, Budget, HangUp, limited, telling
from rag.seams import OpenTurn, OwnedSession, SessionHandle
from rag.web.problems import HIDDEN_DETAIL, problem_of, problem_response
from rag.web.requests import hanging_up_when_left

EXTENSION = "groundnote-turns"
SECONDS_AFTER_END = 60.0  # after its end: for a page that comes back late
ENDING_SECONDS = 5.0  # that a server which ends waits for its answers
SHUT_DOWN = "The server was stopped while it wrote this answer. Ask for it again."

# Asks, and says which answer is begun.
RunTurn = Callable[[Callable[[OpenTurn], None]], Generator[Event, None, None]]


@dataclass(eq=False, slots=True)
class RunningTurn:
    """One turn while it runs and for a moment after: every event, for whoever comes."""

    session: SessionHandle
    index: int | None = None  # of the answer, once it is begun
    revision: int = 0  # which attempt at it this is
    events: list[Event] = field(default_factory=list)
    ended_at: float | None = None
    hang_up: HangUp = field(default_factory=HangUp)
    _change: threading.Condition = field(default_factory=threading.Condition)

    def note(self, begun: OpenTurn) -> None:
        """Which answer is begun."""
        with self._change:
            self.index, self.revision = begun.answer.index, begun.answer.revision
            self._change.notify_all()
        self.session.tell(self.index, "", self.stop)  # a model may be silent for long

    def run(self, events: Generator[Event, None, None]) -> None:
        """Read the events to their end; an exception becomes a last one.

        Behind an answer comes what a judge says of it, if anybody is asked; nobody waits for that.
        """
        budget = Budget(owner=self.session.owner, has_left=lambda: self.hang_up.is_over)
        with (
            self.hang_up.heard_here(),
            limited(budget),
            telling(lambda before: self._add(Waiting(before))),
            closing(to_the_end(events)) as ended,
        ):
            for event in ended:
                self._add(event)
                if self.hang_up.is_over and not isinstance(event, Finished | Failed):
                    break
        if self._answered() is None:
            reason = self.hang_up.reason
            self._add(Failed(ModelInterrupted(reason), reason, self.index))
        with self._change:
            self.ended_at = time.monotonic()
            self._change.notify_all()

    def _add(self, event: Event) -> None:
        with self._change:
            self.events.append(event)
            self._change.notify_all()
        if self.index is not None and isinstance(event, Text | Discarded):
            self.session.tell(self.index, self.text(), self.stop)

    def text(self) -> str:
        """What is written so far."""
        text = ""
        for event in self.events:
            if isinstance(event, Text):
                text += event.text
            elif isinstance(event, Discarded):
                text = ""
        return text

    def stop(self, reason: str = STOPPED) -> None:
        """End it early."""
        self.hang_up.now(reason)

    def follow(self, *, start: int = 0, ping_seconds: float) -> Iterator[tuple[int, Event | None]]:
        """Its events from one on, numbered from 0, to the last; None whenever none came for long.

        Whoever stops reading changes nothing.
        """
        position = start
        while True:
            with self._change:
                self._change.wait_for(partial(self._has, position), timeout=ping_seconds)
                fresh, is_over = self.events[position:], self.ended_at is not None
            for event in fresh:
                yield position, event
                position += 1
            if is_over and position >= len(self.events):
                return
            if not fresh:
                yield position, None

    def _has(self, position: int) -> bool:
        return len(self.events) > position or self.ended_at is not None

    def end(self, *, timeout: float | None = None) -> Finished | Failed | None:
        """How the answer ended; None if it has not in time."""
        with self._change:
            self._change.wait_for(lambda: self._answered() or self.ended_at, timeout=timeout)
        return self._answered()

    def judged(self, end: Finished, *, timeout: float) -> Finished:
        """The end with what a judge says of it, once it has, or as it is after so many seconds."""
        with self._change:
            self._change.wait_for(lambda: self._judged() or self.ended_at, timeout=timeout)
        event = self._judged()
        return end if event is None else replace(end, message=event.message)

    def _judged(self) -> Judged | None:
        return next((event for event in self.events[-1:] if isinstance(event, Judged)), None)

    def _answered(self) -> Finished | Failed | None:
        last = (event for event in self.events[-2:] if isinstance(event, Finished | Failed))
        return next(last, None)

    @contextmanager
    def stopped_when_left(self) -> Iterator[None]:
        """For a program that waits for the answer: if it leaves, the model is let go."""
        with hanging_up_when_left(self.hang_up), self.stopped_unless_ended():
            yield

    @contextmanager
    def stopped_unless_ended(self) -> Iterator[None]:
        """For a program that reads the answer as it comes: a broken stream ends it."""
        try:
            yield
        finally:
            if self.ended_at is None and self._answered() is None:
                self.hang_up.now()


class Turns:
    """The turns of this process, at most so many at once; others wait for one to end."""

    def __init__(self, most: int) -> None:
        self._room = threading.BoundedSemaphore(most)
        self._turns: list[RunningTurn] = []
        self._lock = threading.Lock()

    def start(self, session: SessionHandle, ask: RunTurn) -> RunningTurn:
        """Begin a turn. Raises what asking raises before anything is stored."""
        turn = RunningTurn(session)
        events = ask(turn.note)
        with self._lock:
            now = time.monotonic()
            self._turns = [
                turn
                for turn in self._turns
                if turn.ended_at is None or now - turn.ended_at < SECONDS_AFTER_END
            ]
            self._turns.append(turn)
        threading.Thread(target=self._run, args=(turn, events), name="turn", daemon=True).start()
        return turn

    def _run(self, turn: RunningTurn, events: Generator[Event, None, None]) -> None:
        with self._room:
            turn.run(events)

    def find(self, session: OwnedSession, answer: Message) -> RunningTurn | None:
        """The one of this process that writes, or wrote, this attempt at an answer."""
        wanted = (session.id, answer.index, answer.revision)
        with self._lock:
            results = (t for t in self._turns if (t.session.id, t.index, t.revision) == wanted)
            return next(results, None)

    def any(self) -> bool:
        """Whether one runs."""
        return bool(self._running())

    def _running(self) -> list[RunningTurn]:
        with self._lock:
            return [turn for turn in self._turns if turn.ended_at is None]

    def close(self) -> None:
        """End all, with what they have written."""
        running = self._running()
        for turn in running:
            turn.stop(SHUT_DOWN)
        deadline = time.monotonic() + ENDING_SECONDS
        for turn in running:
            turn.end(timeout=max(0.0, deadline - time.monotonic()))


def turns() -> Turns:
    """Those of this application."""
    extension = current_app.extensions[EXTENSION]
    assert isinstance(extension, Turns)
    return extension


def to_the_end(events: Generator[Event, None, None]) -> Generator[Event, None, None]:
    """The events; an exception becomes a last one, because whoever looks on must be told.

    Closing this closes the events, which hangs up on the model.
    """
    try:
        yield from events
    except RagError as error:
        yield Failed(error, str(error))
    except Exception as error:  # noqa: BLE001 - the outermost edge
        yield Failed(error, HIDDEN_DETAIL)


def finished(turn: RunningTurn) -> Finished:
    """The end of a turn, for a client that waits for it; if that leaves, the turn ends, too.

    A turn that fails is answered with its problem.
    """
    with turn.stopped_when_left():
        end = turn.end()
    if not isinstance(end, Finished):
        abort(problem_response(failure(end or Failed(ModelInterrupted(LEFT), LEFT))))
    return end


def failure(failed: Failed) -> dict[str, Any]:
    """The problem that a failed turn ends with; its own message was made for the user."""
    problem = problem_of(failed.error, index=failed.index)
    return problem if problem["status"] == 500 else problem | {"detail": failed.message}

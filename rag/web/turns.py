"""Turns, which run to their end in the server; queue, budget and compression of every request.

A request that writes an answer holds a thread for as long as its model takes. Only so many are
admitted at once; a few more wait, in fair order of their owners, and the rest are told to come back
(see `rag.runtime.budget`).

A failed write shows that the client of a stream has left. For a whole answer nothing is written
until its end, so its connection is checked meanwhile.
"""

import gzip
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from typing import Any

from flask import Flask, Response, abort, current_app, g, request

from rag.errors import ModelInterrupted, RagError
from rag.records import Discarded, Event, Failed, Finished, Judged, Message, Text, Waiting
from rag.runtime.budget import LEFT, STOPPED, Budget, HangUp, Lane, begin, limited, telling
from rag.seams import OpenTurn, OwnedSession, SessionHandle
from rag.web.access.owner import current_owner, is_cookie_caller
from rag.web.problems import HIDDEN_DETAIL, problem_of, problem_response

LANE_EXTENSION = "groundnote-lane"
SEND_BUFFER = 0.25  # share of the threads that is never used for answers
WAITING_SHARE = 0.25  # share of the threads that may hold waiting requests
EVENT_STREAM = "text/event-stream"


def limit_answers(
    app: Flask,
    endpoints: frozenset[str],
    telling: frozenset[str],
    *,
    threads: int,
    are_one: bool,
) -> None:
    """Let requests to these endpoints through the lane; a stream keeps its place to its end.

    Of several owners none has more than half of the places, so that another finds one at once. A
    stream of an endpoint in `telling` begins at once: it says itself how many wait before it.
    """
    waiting = max(1, int(WAITING_SHARE * threads))
    capacity = max(1, int((1 - SEND_BUFFER) * threads) - waiting)
    lane = Lane(capacity, waiting=waiting, share=None if are_one else capacity // 2)
    app.extensions[LANE_EXTENSION] = lane

    @app.before_request
    def enter() -> None:
        if request.endpoint in endpoints:
            g.answer_ticket = lane.join(current_owner())
            g.places_before = iter(()) if g.answer_ticket.is_in else lane.wait(g.answer_ticket)
            if not (g.answer_ticket.is_in or _is_told_bit_by_bit(telling)):
                list(g.places_before)

    @app.after_request
    def keep(response: Response) -> Response:
        goes_on = response.is_streamed and response.status_code == HTTPStatus.OK
        if goes_on and "answer_ticket" in g:
            response.call_on_close(partial(lane.leave, g.pop("answer_ticket")))
        return response

    @app.teardown_request
    def leave(_error: BaseException | None) -> None:
        if "answer_ticket" in g:  # no stream has taken the ticket over
            lane.leave(g.answer_ticket)


def places_before() -> Iterator[int]:
    """Yield how many requests wait before this one, at each change; end when its turn comes."""
    places: Iterator[int] = g.places_before
    return places


def _is_told_bit_by_bit(telling: frozenset[str]) -> bool:
    """Return whether the response is a stream: by header, by body, or for a page's form."""
    if request.endpoint not in telling:
        return False
    if request.is_json:
        return wants_events() or request.get_json().get("stream") is True
    return wants_events() or bool(request.form)


def wants_events() -> bool:
    """Return whether the caller prefers a stream of events to one JSON document."""
    offered = ["application/json", EVENT_STREAM]
    return request.accept_mimetypes.best_match(offered) == EVENT_STREAM


LOOK_SECONDS = 1.0  # longer than an answer without a model takes
DISCONNECT_KEY = "waitress.client_disconnected"
CONNECTIONS = ("gunicorn.socket", "werkzeug.socket")  # where some servers put the socket


@contextmanager
def hanging_up_when_left(hang_up: HangUp, *, look_seconds: float = LOOK_SECONDS) -> Iterator[None]:
    """Hang up once the client of this request has left, if its server can show that."""
    is_gone = disconnect_check()
    if is_gone is None:
        yield
        return
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(look_seconds):
            if is_gone():
                hang_up.now()
                return

    threading.Thread(target=look, name="leaving", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def disconnect_check() -> Callable[[], bool] | None:
    """Return a function that says whether the client has left; None if the server cannot."""
    tells: Callable[[], bool] | None = request.environ.get(DISCONNECT_KEY)
    if tells is not None:
        return tells
    results = (request.environ.get(name) for name in CONNECTIONS)
    connection = next((result for result in results if isinstance(result, socket.socket)), None)
    return None if connection is None else lambda: has_left(connection)


def has_left(connection: socket.socket) -> bool:
    """Return whether the other side has closed the connection; its data stays unread."""
    try:
        # Not the method of a TLS socket, which takes no flags.
        return not socket.socket.recv(connection, 1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def give_budgets(app: Flask) -> None:
    """Give each request a budget; the caller, if known, is the owner of the work."""

    @app.before_request
    def give() -> None:
        begin(Budget(owner=g.get("owner", ""), has_left=disconnect_check() or (lambda: False)))

    @app.teardown_request
    def end(_error: BaseException | None) -> None:
        begin(None)


LEAST_BYTES = 1_000
LEVEL = 5
TEXTS = ("text/", "application/json", "application/problem+json", "application/javascript")


def compress_text(response: Response) -> Response:
    """Compress a text where the client can read it, and tell caches so (Vary)."""
    kind = response.mimetype or ""
    if not kind.startswith(TEXTS) or kind == EVENT_STREAM:
        return response
    response.vary.add("Accept-Encoding")
    # A page for a logged-in browser holds its form's secret beside text of others, so the length
    # of the compressed page would reveal it (BREACH).
    holds_secret = kind == "text/html" and is_cookie_caller()
    is_whole = response.status_code == 200 and "Content-Encoding" not in response.headers
    is_stream = response.is_streamed and not response.direct_passthrough
    is_accepted = request.accept_encodings.quality("gzip") > 0
    if is_accepted and is_whole and not is_stream and not holds_secret:
        response.direct_passthrough = False  # a static file
        data = response.get_data()
        if len(data) >= LEAST_BYTES:
            response.set_data(gzip.compress(data, LEVEL, mtime=0))
            response.headers["Content-Encoding"] = "gzip"
            if response.headers.get("ETag"):
                response.headers["ETag"] = f"W/{response.headers['ETag'].removeprefix('W/')}"
    return response


EXTENSION = "groundnote-turns"
SECONDS_AFTER_END = 60.0  # after its end, for a page that reconnects late
ENDING_SECONDS = 5.0  # that a stopping server waits for its answers
SHUT_DOWN = "The server was stopped while it wrote this answer. Ask for it again."

# Asks a question, and calls its argument with the turn once the answer is begun.
RunTurn = Callable[[Callable[[OpenTurn], None]], Generator[Event, None, None]]


@dataclass(eq=False, slots=True)
class RunningTurn:
    """A turn while it runs and shortly after: all its events, for every reader."""

    session: SessionHandle
    index: int | None = None  # of the answer, once it is begun
    revision: int = 0  # which attempt at the answer this is
    events: list[Event] = field(default_factory=list)
    ended_at: float | None = None
    hang_up: HangUp = field(default_factory=HangUp)
    _change: threading.Condition = field(default_factory=threading.Condition)

    def note(self, begun: OpenTurn) -> None:
        """Record which answer the turn has begun."""
        with self._change:
            self.index, self.revision = begun.answer.index, begun.answer.revision
            self._change.notify_all()
        self.session.tell(self.index, "", self.stop)  # a model may be silent for long

    def run(self, events: Generator[Event, None, None]) -> None:
        """Read the events to their end; an exception becomes a last event.

        After the answer comes the judge's verdict, if a judge is configured; no reader waits for
        it.
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
        """Return the text of the answer so far."""
        text = ""
        for event in self.events:
            if isinstance(event, Text):
                text += event.text
            elif isinstance(event, Discarded):
                text = ""
        return text

    def stop(self, reason: str = STOPPED) -> None:
        """End the turn early."""
        self.hang_up.now(reason)

    def follow(self, *, start: int = 0, ping_seconds: float) -> Iterator[tuple[int, Event | None]]:
        """Yield the events with their indexes, from `start` on, to the last one.

        Yields None as event whenever none came for `ping_seconds`. A reader that stops reading
        changes nothing.
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
        """Return how the answer ended; None if it has not within `timeout` seconds."""
        with self._change:
            self._change.wait_for(lambda: self._answered() or self.ended_at, timeout=timeout)
        return self._answered()

    def judged(self, end: Finished, *, timeout: float) -> Finished:
        """Return the end with the judge's verdicts, or as it is after `timeout` seconds."""
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
    def stopped_unless_ended(self) -> Iterator[None]:
        """Stop the turn if its reader leaves before the end: a broken stream ends it."""
        try:
            yield
        finally:
            if self.ended_at is None and self._answered() is None:
                self.hang_up.now()


class Turns:
    """The turns of this process; at most `most` run at once, the others wait."""

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
        """Return this process's turn that writes, or wrote, this attempt at an answer."""
        wanted = (session.id, answer.index, answer.revision)
        with self._lock:
            results = (t for t in self._turns if (t.session.id, t.index, t.revision) == wanted)
            return next(results, None)

    def any(self) -> bool:
        """Return whether a turn is running."""
        return bool(self._running())

    def _running(self) -> list[RunningTurn]:
        with self._lock:
            return [turn for turn in self._turns if turn.ended_at is None]

    def close(self) -> None:
        """Stop all turns; what they have written is stored."""
        running = self._running()
        for turn in running:
            turn.stop(SHUT_DOWN)
        deadline = time.monotonic() + ENDING_SECONDS
        for turn in running:
            turn.end(timeout=max(0.0, deadline - time.monotonic()))


def turns() -> Turns:
    """Return the turns of this application."""
    extension: Turns = current_app.extensions[EXTENSION]
    return extension


def to_the_end(events: Generator[Event, None, None]) -> Generator[Event, None, None]:
    """Yield the events; an exception becomes a last event, so that readers learn of it.

    Closing this generator closes the events, which hangs up on the model.
    """
    try:
        yield from events
    except RagError as error:
        yield Failed(error, str(error))
    except Exception as error:  # noqa: BLE001 - the outermost edge
        yield Failed(error, HIDDEN_DETAIL)


def finished(turn: RunningTurn) -> Finished:
    """Wait for the end of a turn; if the client leaves, the turn is stopped.

    A turn that fails is answered with its problem.
    """
    with hanging_up_when_left(turn.hang_up), turn.stopped_unless_ended():
        end = turn.end()
    if not isinstance(end, Finished):
        abort(problem_response(failure(end or Failed(ModelInterrupted(LEFT), LEFT))))
    return end


def failure(failed: Failed) -> dict[str, Any]:
    """Return the problem of a failed turn; its own message was made for the user."""
    problem = problem_of(failed.error, index=failed.index)
    return problem if problem["status"] == 500 else problem | {"detail": failed.message}

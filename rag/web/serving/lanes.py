"""Answers wait for each other, so that pages never wait for answers.

A request that writes an answer holds a thread for as long as its model takes. Only so many are let
in at once; a few more wait, in fair turn of their owners, and the rest are told to come back.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus

from flask import Flask, Response, g, request
from werkzeug.exceptions import ServiceUnavailable

from rag.web.access.owner import current_owner

EXTENSION = "groundnote-lane"
PATIENCE_SECONDS = 20.0  # of a request that waits for its turn
RETRY_SECONDS = 5
HELD_BACK = 0.25  # of the threads are never given to answers
WAITING_SHARE = 0.25  # of the threads may hold requests that wait
EVENT_STREAM = "text/event-stream"


@dataclass(eq=False, slots=True)
class Ticket:
    """A place in the queue, or among those who are answered."""

    owner: str
    is_in: bool = False


class AnswerLane:
    """At most `capacity` inside; next is the first one of the owner who has the fewest inside."""

    def __init__(self, capacity: int, waiting: int) -> None:
        self.capacity = capacity
        self._most_waiting = waiting
        self._change = threading.Condition()
        self._inside: Counter[str] = Counter()
        self._queue: list[Ticket] = []

    def join(self, owner: str) -> Ticket:
        """Take a place, or one in the queue. Raises ServiceUnavailable when that is full."""
        ticket = Ticket(owner)
        with self._change:
            if len(self._queue) >= self._most_waiting and not self._has_room():
                raise _busy(len(self._queue))
            self._queue.append(ticket)
            self._admit()
        return ticket

    def wait(self, ticket: Ticket, *, patience_seconds: float = PATIENCE_SECONDS) -> Iterator[int]:
        """How many wait before it, each time that this changes, until it is let in.

        Raises ServiceUnavailable when it is not in time.
        """
        until, told = time.monotonic() + patience_seconds, -1
        while True:
            with self._change:
                self._change.wait_for(
                    lambda: ticket.is_in or self._queue.index(ticket) != told,
                    timeout=until - time.monotonic(),
                )
                if ticket.is_in:
                    return
                before = self._queue.index(ticket)
                if before == told:
                    self._queue.remove(ticket)
                    raise _busy(before)
            yield (told := before)

    def leave(self, ticket: Ticket) -> None:
        """Give the place back, or that in the queue."""
        with self._change:
            if ticket in self._queue:
                self._queue.remove(ticket)
            elif ticket.is_in:
                ticket.is_in = False
                self._inside[ticket.owner] -= 1
                self._inside += Counter()  # without those who have none inside
            self._admit()

    def _has_room(self) -> bool:
        return self._inside.total() < self.capacity

    def _admit(self) -> None:
        while self._queue and self._has_room():
            ticket = min(self._queue, key=lambda each: self._inside[each.owner])  # first of equals
            self._queue.remove(ticket)
            self._inside[ticket.owner] += 1
            ticket.is_in = True
        self._change.notify_all()


def _busy(before: int) -> ServiceUnavailable:
    return ServiceUnavailable(
        f"Many questions are being answered just now, and {before} more wait before yours. Ask "
        f"again in {RETRY_SECONDS} seconds.",
        retry_after=RETRY_SECONDS,
    )


def limit_answers(
    app: Flask, endpoints: frozenset[str], telling: frozenset[str], *, threads: int
) -> None:
    """Let requests to these endpoints through the lane; a stream keeps its place to its end.

    A stream of one that is `telling` begins at once: it says itself how many wait before it.
    """
    waiting = max(1, int(WAITING_SHARE * threads))
    lane = AnswerLane(max(1, int((1 - HELD_BACK) * threads) - waiting), waiting)
    app.extensions[EXTENSION] = lane

    @app.before_request
    def enter() -> None:
        if request.endpoint in endpoints:
            g.answer_ticket = lane.join(current_owner())
            g.places_before = lane.wait(g.answer_ticket)
            if not (request.endpoint in telling and _is_told_bit_by_bit()):
                list(g.places_before)

    @app.after_request
    def keep(response: Response) -> Response:
        goes_on = response.is_streamed and response.status_code == HTTPStatus.OK
        if goes_on and "answer_ticket" in g:
            response.call_on_close(partial(lane.leave, g.pop("answer_ticket")))
        return response

    @app.teardown_request
    def leave(_error: BaseException | None) -> None:
        if "answer_ticket" in g:  # nothing is streamed
            lane.leave(g.answer_ticket)


def places_before() -> Iterator[int]:
    """How many wait before this request, each time that changes; empty once it is its turn."""
    places: Iterator[int] = g.places_before
    return places


def _is_told_bit_by_bit() -> bool:
    """As the protocols ask for it, by a header or in the body; forms are led on by their page."""
    if request.is_json:
        return wants_events() or request.get_json().get("stream") is True
    return wants_events() or bool(request.form)


def wants_events() -> bool:
    """Whether the caller prefers a stream of events to one JSON document."""
    offered = ["application/json", EVENT_STREAM]
    return request.accept_mimetypes.best_match(offered) == EVENT_STREAM

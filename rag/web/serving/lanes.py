"""Answers wait for each other, so that pages never wait for answers.

A request that writes an answer holds a thread for as long as its model takes. Only so many are let
in at once; a few more wait, in fair turn of their owners, and the rest are told to come back.
"""

import threading
from collections import Counter
from dataclasses import dataclass
from http import HTTPStatus

from flask import Flask, Response, g, request
from werkzeug.exceptions import ServiceUnavailable

from rag.web.access.owner import current_owner

PATIENCE_SECONDS = 20.0  # of a request that waits for its turn
RETRY_SECONDS = 5
HELD_BACK = 0.25  # of the threads are never given to answers
WAITING_SHARE = 0.25  # of the threads may hold requests that wait


@dataclass(eq=False, slots=True)
class Ticket:
    """A place in the queue, or among those who are answered."""

    owner: str
    is_in: bool = False


class AnswerLane:
    """At most `capacity` inside; next is the first one of the owner who has the fewest inside."""

    def __init__(self, capacity: int, waiting: int) -> None:
        self._capacity = capacity
        self._most_waiting = waiting
        self._change = threading.Condition()
        self._inside: Counter[str] = Counter()
        self._queue: list[Ticket] = []

    def enter(self, owner: str, *, patience_seconds: float = PATIENCE_SECONDS) -> Ticket:
        """Wait for a place. Raises ServiceUnavailable when there is none to be had in time."""
        ticket = Ticket(owner)
        with self._change:
            if len(self._queue) >= self._most_waiting and not self._has_room():
                raise _busy(len(self._queue))
            self._queue.append(ticket)
            self._admit()
            self._change.wait_for(lambda: ticket.is_in, timeout=patience_seconds)
            if ticket.is_in:
                return ticket
            before = self._queue.index(ticket)
            self._queue.remove(ticket)
            raise _busy(before)

    def leave(self, ticket: Ticket) -> None:
        """Give the place back."""
        with self._change:
            self._inside[ticket.owner] -= 1
            if not self._inside[ticket.owner]:
                del self._inside[ticket.owner]
            self._admit()

    def _has_room(self) -> bool:
        return self._inside.total() < self._capacity

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


def limit_answers(app: Flask, endpoints: frozenset[str], *, threads: int) -> None:
    """Let requests to these endpoints through the lane; a stream keeps its place to its end."""
    waiting = max(1, int(WAITING_SHARE * threads))
    lane = AnswerLane(max(1, int((1 - HELD_BACK) * threads) - waiting), waiting)

    @app.before_request
    def enter() -> None:
        if request.endpoint in endpoints:
            g.answer_ticket = lane.enter(current_owner())

    @app.after_request
    def keep(response: Response) -> Response:
        goes_on = response.is_streamed and response.status_code == HTTPStatus.OK
        ticket = g.pop("answer_ticket", None) if goes_on else None
        if ticket is not None:
            response.call_on_close(lambda: lane.leave(ticket))
        return response

    @app.teardown_request
    def leave(_error: BaseException | None) -> None:
        ticket = g.pop("answer_ticket", None)  # still there where nothing is streamed
        if ticket is not None:
            lane.leave(ticket)

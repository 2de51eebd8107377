"""Answers wait for each other, so that pages never wait for answers.

A request that writes an answer holds a thread for as long as its model takes. Only so many are let
in at once; a few more wait, in fair turn of their owners, and the rest are told to come back (see
`rag.runtime.lanes`).
"""

from collections.abc import Iterator
from functools import partial
from http import HTTPStatus

from flask import Flask, Response, g, request

from rag.runtime.lanes import Lane
from rag.web.access.owner import current_owner

EXTENSION = "groundnote-lane"
HELD_BACK = 0.25  # of the threads are never given to answers
WAITING_SHARE = 0.25  # of the threads may hold requests that wait
EVENT_STREAM = "text/event-stream"


def limit_answers(
    app: Flask,
    endpoints: frozenset[str],
    telling: frozenset[str],
    *,
    threads: int,
    are_one: bool = True,
) -> None:
    """Let requests to these endpoints through the lane; a stream keeps its place to its end.

    Of several owners none has more than half of it, so that another finds a place at once.

    A stream of one that is `telling` begins at once: it says itself how many wait before it.
    """
    waiting = max(1, int(WAITING_SHARE * threads))
    capacity = max(1, int((1 - HELD_BACK) * threads) - waiting)
    lane = Lane(capacity, waiting=waiting, share=None if are_one else capacity // 2)
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

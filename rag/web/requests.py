"""Around every request: its turn, its budget, its end when the client leaves, compression.

A request that writes an answer holds a thread for as long as its model takes. Only so many are let
in at once; a few more wait, in fair turn of their owners, and the rest are told to come back (see
`rag.runtime.budget`).

A stream is told by what it cannot send any more. A whole answer has nothing to send until its end,
so its connection is looked at meanwhile.
"""

import gzip
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus

from flask import Flask, Response, g, request

from rag.runtime.budget import Budget, HangUp, Lane, begin
from rag.web.access.owner import current_owner, is_cookie_caller

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
        if "answer_ticket" in g:  # nothing is streamed
            lane.leave(g.answer_ticket)


def places_before() -> Iterator[int]:
    """How many wait before this request, each time that changes; empty once it is its turn."""
    places: Iterator[int] = g.places_before
    return places


def _is_told_bit_by_bit(telling: frozenset[str]) -> bool:
    """As the protocols ask for it, by a header or in the body; forms are led on by their page."""
    if request.endpoint not in telling:
        return False
    if request.is_json:
        return wants_events() or request.get_json().get("stream") is True
    return wants_events() or bool(request.form)


def wants_events() -> bool:
    """Whether the caller prefers a stream of events to one JSON document."""
    offered = ["application/json", EVENT_STREAM]
    return request.accept_mimetypes.best_match(offered) == EVENT_STREAM


LOOK_SECONDS = 1.0  # an answer without a model has ended by then
TOLD_BY = "waitress.client_disconnected"
CONNECTIONS = ("gunicorn.socket", "werkzeug.socket")  # where servers leave it; others do not


@contextmanager
def hanging_up_when_left(hang_up: HangUp, *, look_seconds: float = LOOK_SECONDS) -> Iterator[None]:
    """Hang up once the client of this request has gone, where its server lets us see that."""
    is_gone = way_to_tell()
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


def way_to_tell() -> Callable[[], bool] | None:
    """Says whether the client of this request has gone, where its server lets us see that."""
    tells: Callable[[], bool] | None = request.environ.get(TOLD_BY)
    if tells is not None:
        return tells
    results = (request.environ.get(name) for name in CONNECTIONS)
    connection = next((result for result in results if isinstance(result, socket.socket)), None)
    return None if connection is None else lambda: has_left(connection)


def has_left(connection: socket.socket) -> bool:
    """Whether the other side has closed; what it sent before is left to be read."""
    try:
        # Not the method of a TLS socket, which takes no flags.
        return not socket.socket.recv(connection, 1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def give_budgets(app: Flask) -> None:
    """Whoever is known by now is the owner of the work."""

    @app.before_request
    def give() -> None:
        begin(Budget(owner=g.get("owner", ""), has_left=way_to_tell() or (lambda: False)))

    @app.teardown_request
    def end(_error: BaseException | None) -> None:
        begin(None)


LEAST_BYTES = 1_000
LEVEL = 5
TEXTS = ("text/", "application/json", "application/problem+json", "application/javascript")
EVENTS = "text/event-stream"


def compress_texts(app: Flask) -> None:
    """Compress where the client can read it, and tell caches that it depends on that."""
    app.after_request(_compressed)


def _compressed(response: Response) -> Response:
    kind = response.mimetype or ""
    if not kind.startswith(TEXTS) or kind == EVENTS:
        return response
    response.vary.add("Accept-Encoding")
    if _may_be(response):
        response.direct_passthrough = False  # a static file
        data = response.get_data()
        if len(data) >= LEAST_BYTES:
            response.set_data(gzip.compress(data, LEVEL, mtime=0))
            response.headers["Content-Encoding"] = "gzip"
            if response.headers.get("ETag"):
                response.headers["ETag"] = f"W/{response.headers['ETag'].removeprefix('W/')}"
    return response


def _may_be(response: Response) -> bool:
    # A page for a browser that is logged in holds its form's secret beside words of others: how
    # long it becomes when compressed would tell of it (BREACH).
    holds_secret = response.mimetype == "text/html" and is_cookie_caller()
    is_whole = response.status_code == 200 and "Content-Encoding" not in response.headers
    is_stream = response.is_streamed and not response.direct_passthrough
    accepted = request.accept_encodings.quality("gzip") > 0
    return accepted and is_whole and not is_stream and not holds_secret

"""Notice that a client went away while its request is served.

A stream is told by what it cannot send any more. A whole answer has nothing to send until its end,
so its connection is looked at meanwhile.
"""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from flask import request

from rag.runtime.cancellation import HangUp

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
    ended = Event()

    def look() -> None:
        while not ended.wait(look_seconds):
            if is_gone():
                hang_up.now()
                return

    Thread(target=look, name="leaving", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def way_to_tell() -> Callable[[], bool] | None:
    """Says whether the client of this request has gone, where its server lets us see that."""
    told: Callable[[], bool] | None = request.environ.get(TOLD_BY)
    if told is not None:
        return told
    results = (request.environ.get(name) for name in CONNECTIONS)
    connection = next((each for each in results if isinstance(each, socket.socket)), None)
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

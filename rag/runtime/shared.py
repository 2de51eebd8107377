"""Objects of one process that other processes of the machine call, over loopback.

Both sides have to know a key: nothing is unpickled from anyone else. The socket is opened before
the processes start, so that calls wait in it while the process behind it is replaced.
"""

import logging
import secrets
import socket
import struct
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from threading import Thread
from time import sleep
from typing import Any
from urllib.parse import urlsplit

from rag.errors import RagError, SharedAway
from rag.runtime.error_log import ERRORS, log_throttled

SCHEME = "fleet://"
WAITING_CALLS = 512
HANDSHAKE_SECONDS = 5.0
LOOK_SECONDS = 0.1  # between two attempts to accept a call

log = logging.getLogger(__name__)


def open_door() -> tuple[socket.socket, str]:
    """Return the listening socket for calls, and its address with the key."""
    door = socket.create_server(("127.0.0.1", 0), backlog=WAITING_CALLS)
    return door, f"{SCHEME}{secrets.token_hex(32)}@127.0.0.1:{door.getsockname()[1]}"


def share(door: socket.socket, url: str, objects: Mapping[str, object]) -> None:
    """Answer calls of these objects until the process ends."""
    key = _key(url)
    while True:
        try:
            peer, _ = door.accept()
        except OSError as error:  # no file descriptor is left until some are closed
            log_throttled(log, "A worker waits at the door", error)
            sleep(LOOK_SECONDS)
            continue
        Thread(target=_answer, args=(peer, key, objects), daemon=True).start()


def _answer(peer: socket.socket, key: bytes, objects: Mapping[str, object]) -> None:
    lasting = peer.dup()
    lasting.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _interval(HANDSHAKE_SECONDS))
    with suppress(OSError, EOFError, AuthenticationError), lasting, _connection(peer) as connection:
        deliver_challenge(connection, key)
        answer_challenge(connection, key)
        lasting.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _interval(0))
        while True:
            name, method, *arguments = connection.recv()
            connection.send(_outcome(getattr(objects[name], method), *arguments))


def _outcome(
    method: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]
) -> tuple[bool, Any]:
    """Call the method; return whether it succeeded, and what it returned or raised."""
    try:
        return True, method(*arguments, **named)
    except RagError as error:
        return False, error
    except Exception as error:  # noqa: BLE001 - the caller's process is another one
        return False, SharedAway(ERRORS.report(error))


class SharedObject:
    """One of the objects, seen from another process; thread-safe."""

    def __init__(self, url: str, name: str) -> None:
        self._url, self._name = url, name
        self._idle: deque[Connection[Any, Any]] = deque()

    def call(self, method: str, *arguments: Any, seconds: float, **named: Any) -> Any:
        """Call the method, perhaps twice, and return its result.

        Raises what the method raises, and SharedAway if there is no answer within `seconds`.
        """
        try:
            succeeded, result = self._answer((self._name, method, arguments, named), seconds)
        except (OSError, EOFError, AuthenticationError) as error:
            raise SharedAway(
                f"The process that all workers share does not answer ({error!r}); it is started "
                "again by itself."
            ) from error
        if not succeeded:
            raise result
        return result

    def _answer(self, request: tuple[Any, ...], seconds: float) -> tuple[bool, Any]:
        with suppress(IndexError, OSError, EOFError):
            return self._exchange(self._idle.pop(), request, seconds)
        self.close()  # the other connections are to the same process, which may have been replaced
        return self._exchange(self._connected(), request, seconds)

    def _exchange(
        self, connection: "Connection[Any, Any]", request: tuple[Any, ...], seconds: float
    ) -> tuple[bool, Any]:
        try:
            connection.send(request)
            if not connection.poll(seconds):
                raise SharedAway(f"The process that all workers share is slow: {seconds:.0f} s.")
            succeeded, result = connection.recv()
        except BaseException:
            connection.close()  # or a late answer would be read as the next call's
            raise
        self._idle.append(connection)
        return succeeded, result

    def _connected(self) -> "Connection[Any, Any]":
        parts = urlsplit(self._url)
        where = (str(parts.hostname), int(parts.port or 0))
        connection = _connection(socket.create_connection(where, timeout=HANDSHAKE_SECONDS))
        if not connection.poll(HANDSHAKE_SECONDS):
            connection.close()
            raise TimeoutError("nobody is behind its door")
        answer_challenge(connection, _key(self._url))
        deliver_challenge(connection, _key(self._url))
        return connection

    def close(self) -> None:
        with suppress(IndexError):  # other threads take from it at the same time
            while True:
                self._idle.pop().close()


def _interval(seconds: float) -> bytes:
    """Return the timeout as the system's `timeval`; 0 is no timeout."""
    return struct.pack("@ll", int(seconds), 0)


def _connection(peer: socket.socket) -> "Connection[Any, Any]":
    peer.settimeout(None)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Connection(peer.detach())


def _key(url: str) -> bytes:
    return str(urlsplit(url).username).encode()

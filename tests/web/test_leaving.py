"""Whether the other side of a connection has gone is seen without reading from it."""

import socket
import threading

import pytest
from flask import Flask

from rag.runtime.budget import HangUp
from rag.web.turns import hanging_up_when_left, has_left
from tests.waiting import LONG


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    yield ours, theirs
    ours.close()
    theirs.close()


class TestAConnection:
    def test_that_is_silent_has_not_been_left(self, pair):
        ours, _ = pair

        assert not has_left(ours)

    def test_keeps_what_was_sent_over_it(self, pair):
        ours, theirs = pair
        theirs.sendall(b"more")

        assert not has_left(ours)
        assert ours.recv(10) == b"more"

    def test_that_was_closed_has_been_left(self, pair):
        ours, theirs = pair
        theirs.close()

        assert has_left(ours)

    def test_that_we_closed_has_been_left(self, pair):
        ours, _ = pair
        ours.close()

        assert has_left(ours)


@pytest.mark.parametrize("name", ["gunicorn.socket", "werkzeug.socket"])
def test_a_request_hangs_up_when_its_client_leaves(pair, name):
    ours, theirs = pair
    hang_up, cut = HangUp(), threading.Event()
    hang_up.cuts(cut.set)

    with (
        Flask("test").test_request_context(environ_overrides={name: ours}),
        hanging_up_when_left(hang_up, look_seconds=0.01),
    ):
        assert not cut.wait(0.05)
        theirs.close()

        assert cut.wait(LONG)


def test_a_server_that_shows_no_connection_changes_nothing():
    hang_up = HangUp()

    with Flask("test").test_request_context(), hanging_up_when_left(hang_up, look_seconds=0.01):
        assert not hang_up.is_over

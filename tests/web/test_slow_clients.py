"""How long a client may take for its request, and for what is there for it."""

from types import SimpleNamespace

import pytest

from rag.web import http_server
from rag.web.http_server import BODY_SECONDS, HEADER_SECONDS, UNREAD_SECONDS, Channel

NOW = 1_000_000.0
SLOWEST = http_server.BODY_BYTES_PER_SECOND


def is_overdue(*, since=None, came=0, has_head=True, unread=0, active=0.0):
    """Of a connection; times are seconds ago."""
    channel = Channel.__new__(Channel)
    channel.total_outbufs_len, channel.last_activity = unread, NOW - active
    channel.request_since = None if since is None else NOW - since
    channel.request = None if since is None else SimpleNamespace(headers_finished=has_head)
    channel.request_bytes = came
    return channel.is_overdue(NOW)


@pytest.mark.parametrize(
    ("connection", "overdue"),
    [
        pytest.param({}, False, id="nothing asked"),
        pytest.param({"since": HEADER_SECONDS - 1, "has_head": False}, False, id="a head"),
        pytest.param({"since": HEADER_SECONDS + 1, "has_head": False}, True, id="a slow head"),
        pytest.param({"since": BODY_SECONDS - 1}, False, id="a body"),
        pytest.param({"since": BODY_SECONDS + 1}, True, id="a slow body"),
        pytest.param({"since": BODY_SECONDS + 9, "came": 10 * SLOWEST}, False, id="a long body"),
        pytest.param(
            {"since": BODY_SECONDS + 11, "came": 10 * SLOWEST}, True, id="a long body, too slowly"
        ),
        pytest.param({"unread": 1, "active": UNREAD_SECONDS - 1}, False, id="reads"),
        pytest.param({"unread": 1, "active": UNREAD_SECONDS + 1}, True, id="does not read"),
    ],
)
def test_a_client_has_so_long(connection, overdue):
    assert is_overdue(**connection) is overdue

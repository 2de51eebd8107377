"""What is away is told of once a minute, whoever stumbles over it."""

import logging

from rag.calm import Calm, tell

log = logging.getLogger("calm")


def test_one_reason_is_told_once_whoever_gives_it(caplog):
    others = logging.getLogger("calm.others")
    others.addFilter(Calm())

    tell(log, "Jobs wait", "connection refused")
    tell(log, "Not everything is there", OSError("connection refused"))
    try:
        raise OSError("connection refused")
    except OSError:
        others.exception("Error reading")

    assert caplog.messages == ["Jobs wait: connection refused"]


def test_other_reasons_are_told_too_but_of_one_thing_once(caplog):
    tell(log, "Jobs wait", "connection refused")
    tell(log, "Jobs wait", "timeout")
    tell(log, "Not everything is there", "no such table")

    assert caplog.messages == [
        "Jobs wait: connection refused",
        "Not everything is there: no such table",
    ]

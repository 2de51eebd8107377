"""What is away is told of once a minute, whoever stumbles over it."""

import logging

from rag.runtime.calm import Calm, tell

log = logging.getLogger("calm")


def test_what_was_told_is_not_told_again_by_the_loggers_of_others(caplog):
    others = logging.getLogger("calm.others")
    others.addFilter(Calm())

    tell(log, "Jobs wait", "connection refused")
    try:
        raise OSError("connection refused")
    except OSError:
        others.exception("Error reading")

    assert caplog.messages == ["Jobs wait: connection refused"]


def test_two_messages_with_one_reason_are_both_told(caplog):
    full = OSError(28, "No space left on device")

    tell(log, "A change of a source could not be noted", full)
    tell(log, "An original cannot be kept", full)

    assert caplog.messages == [
        "A change of a source could not be noted: [Errno 28] No space left on device",
        "An original cannot be kept: [Errno 28] No space left on device",
    ]


def test_one_message_about_another_file_is_told_once(caplog):
    for name in ("a.pdf", "b.pdf"):
        tell(log, "An original cannot be kept", OSError(28, "No space left on device", name))

    assert caplog.messages == [
        "An original cannot be kept: [Errno 28] No space left on device: 'a.pdf'"
    ]


def test_other_reasons_are_told_too_but_of_one_thing_once(caplog):
    tell(log, "Jobs wait", "connection refused")
    tell(log, "Jobs wait", "timeout")
    tell(log, "Not everything is there", "no such table")

    assert caplog.messages == [
        "Jobs wait: connection refused",
        "Not everything is there: no such table",
    ]

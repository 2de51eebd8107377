"""What is away is told of once a minute, whoever stumbles over it."""

import logging

from rag.runtime.error_log import log_throttled

log = logging.getLogger("calm")


def test_two_messages_with_one_reason_are_both_told(caplog):
    full = OSError(28, "No space left on device")

    log_throttled(log, "A change of a source could not be noted", full)
    log_throttled(log, "An original cannot be kept", full)

    assert caplog.messages == [
        "A change of a source could not be noted: [Errno 28] No space left on device",
        "An original cannot be kept: [Errno 28] No space left on device",
    ]


def test_one_message_about_another_file_is_told_once(caplog):
    for name in ("a.pdf", "b.pdf"):
        log_throttled(
            log, "An original cannot be kept", OSError(28, "No space left on device", name)
        )

    assert caplog.messages == [
        "An original cannot be kept: [Errno 28] No space left on device: 'a.pdf'"
    ]


def test_other_reasons_are_told_too_but_of_one_thing_once(caplog):
    log_throttled(log, "Jobs wait", "connection refused")
    log_throttled(log, "Jobs wait", "timeout")
    log_throttled(log, "Not everything is there", "no such table")

    assert caplog.messages == [
        "Jobs wait: connection refused",
        "Not everything is there: no such table",
    ]

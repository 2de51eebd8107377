"""Waits name what they wait for; `LONG` is for what never comes, and nothing takes so long."""

import time

LONG = 120.0  # seconds


def until(condition, *, seconds=LONG):
    """What the condition gave when it came true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"{condition} did not come true"
        time.sleep(0.02)
    return found

"""Waits name what they wait for; `LONG` is for what never comes, and nothing takes so long."""

import time

LONG = 120.0  # seconds
SOON, AT_LAST = 0.02, 0.2  # between two looks: each may cost a server an answer


def until(condition, *, seconds=LONG):
    """What the condition gave when it came true; what takes long is looked at more rarely."""
    began = time.monotonic()
    while not (found := condition()):
        waited = time.monotonic() - began
        assert waited < seconds, f"{condition} did not come true"
        time.sleep(min(AT_LAST, SOON + waited / 20))
    return found

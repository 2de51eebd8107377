"""What is away for a while is told of once a minute, in one line, whoever stumbles over it."""

import logging
import time
from threading import Lock

A_MINUTE = 60.0

_told: dict[str, float] = {}
_lock = Lock()


def is_time_to_tell(what: str) -> bool:
    """True at most once a minute for the same thing."""
    now = time.monotonic()
    with _lock:
        if now - _told.get(what, -A_MINUTE) < A_MINUTE:
            return False
        _told[what] = now
        return True


def tell(log: logging.Logger, what: str, error: BaseException | str) -> None:
    """A warning in one line: `what` is away, and what was said of that, which is said once."""
    reason = " ".join(str(getattr(error, "orig", None) or error).split())[:300]
    if is_time_to_tell(what) and is_time_to_tell(reason):
        log.warning("%s: %s", what, reason)


class Calm(logging.Filter):
    """For a logger of others: what it says with a traceback comes without one, once a minute."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.exc_info or record.exc_info[1] is None:
            return True
        error = record.exc_info[1]
        reason = " ".join(str(error).split())[:300]
        record.msg = f"{record.getMessage()}: {reason}"
        record.args, record.exc_info, record.exc_text = (), None, None
        what = f"{record.name} {type(error).__name__}"
        return is_time_to_tell(what) and is_time_to_tell(reason)

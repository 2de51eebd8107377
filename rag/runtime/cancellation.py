"""Break off a wait from another thread: when nobody wants an answer any more, its model is told."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

Cut = Callable[[], None]
LEFT = "The answer was stopped before its end."
STOPPED = "Stopped."  # as the person wished


class HangUp:
    """Held by the one who waits; the thread that works hears of it inside `heard_here`."""

    def __init__(self) -> None:
        self.is_over = False
        self.reason = LEFT
        self._cuts: list[Cut] = []
        self._lock = Lock()

    def now(self, reason: str | None = None) -> None:
        """Cut whatever the working thread waits for, now and later."""
        with self._lock:
            self.is_over = True
            self.reason = reason or self.reason
            cuts = list(self._cuts)
        for cut in cuts:
            cut()

    @contextmanager
    def heard_here(self) -> Iterator[None]:
        """What this thread does inside can be broken off."""
        token = _heard.set(self)
        try:
            yield
        finally:
            _heard.reset(token)

    def cuts(self, cut: Cut) -> None:
        """Call this when it is over; at once if it is. It may come when the wait has ended."""
        with self._lock:
            self._cuts.append(cut)
            is_over = self.is_over
        if is_over:
            cut()


_heard: ContextVar[HangUp | None] = ContextVar("heard", default=None)


def on_hang_up(cut: Cut) -> None:
    """Have a wait of this thread cut when nobody wants its end any more."""
    hang_up = _heard.get()
    if hang_up is not None:
        hang_up.cuts(cut)


def has_hung_up() -> bool:
    """Whether the one this thread works for has gone."""
    hang_up = _heard.get()
    return hang_up is not None and hang_up.is_over


def hang_up_reason() -> str | None:
    """Why the one this thread works for has gone; None while somebody waits."""
    hang_up = _heard.get()
    return hang_up.reason if hang_up is not None and hang_up.is_over else None

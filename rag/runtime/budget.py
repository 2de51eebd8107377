"""What one request may take, asked by every loop that grows with what came.

The edge gives a budget; whoever works for the request finds it, however deep. Processor time is
that of the thread: a request that waits for others costs nothing of it.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

from rag.errors import ClientGone, OverBudget
from rag.runtime.cancellation import hang_up_reason

CPU_SECONDS = 9.0  # with what other threads do for it, such as embedding, ten
PLANNING_SECONDS = 5.0  # over the widest tables two looks at the clock lie 1.2 s apart
ITEMS_BETWEEN = 64  # looks at the clock
Paced = TypeVar("Paced")


@dataclass(slots=True)
class Budget:
    """Of one request, or of one turn; begun where it is made, in the thread that works."""

    cpu_seconds: float = CPU_SECONDS
    has_left: Callable[[], bool] = lambda: False  # whether nobody waits for it any more
    owner: str = ""  # for whom the work is
    _began: float = field(default_factory=time.thread_time)
    _items: int = 0

    @property
    def spent_seconds(self) -> float:
        return time.thread_time() - self._began

    def spend(self, items: int = 1) -> None:
        """Say that so many more are worked on.

        Raises:
            OverBudget: it took more than it may.
            Left: nobody waits for it.
        """
        before, self._items = self._items, self._items + items
        if before // ITEMS_BETWEEN != self._items // ITEMS_BETWEEN:
            self.check()

    def check(self) -> None:
        """Look at the clock now; raises what `spend` raises."""
        spent = self.spent_seconds
        if spent > self.cpu_seconds:
            raise OverBudget(
                f"This took {spent:.1f} seconds of processor time; at most {self.cpu_seconds:g} "
                "may be spent on it. Send less at once; nothing that was stored is lost."
            )
        if self.has_left():
            raise ClientGone(hang_up_reason() or "Whoever asked has gone; this was not finished.")


_current: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def limited(budget: Budget) -> Iterator[Budget]:
    """What this thread does inside is counted."""
    before = begin(budget)
    try:
        yield budget
    finally:
        begin(before)


def part_of_it(cpu_seconds: float) -> Budget:
    """A smaller one for a part of the same work, which can do without that part."""
    whole = _current.get() or Budget()
    return Budget(cpu_seconds, has_left=whole.has_left, owner=whole.owner)


@contextmanager
def planning() -> Iterator[None]:
    """Understanding a question over rows: what is known of its tables by then stays known."""
    with limited(part_of_it(PLANNING_SECONDS)):
        yield


def begin(budget: Budget | None) -> Budget | None:
    """From now on this counts, or nothing; gives what counted before."""
    before = _current.get()
    _current.set(budget)
    return before


def spend(items: int = 1) -> None:
    """See `Budget.spend`; where no request is served, nothing is counted."""
    budget = _current.get()
    if budget is not None:
        budget.spend(items)


def paced(items: Iterable[Paced], *, weight: int = 1) -> Iterator[Paced]:
    """The items, each counted as it is taken; `weight` says how many small steps one is."""
    budget = _current.get()
    if budget is None:
        yield from items
        return
    for item in items:
        budget.spend(weight)
        yield item


def current_owner() -> str:
    """For whom this thread works; "" where nobody is known."""
    budget = _current.get()
    return "" if budget is None else budget.owner

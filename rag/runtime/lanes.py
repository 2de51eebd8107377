"""Lanes: some work at once, the rest waits in fair turn of its owners.

One lane for each thing that is scarce: threads of the server, calls of a model, queries. An owner
with much to do takes a share of it, and whoever comes next is served as if second in line.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from rag.errors import Busy, ClientGone
from rag.runtime.budget import current_owner
from rag.runtime.cancellation import hang_up_reason, has_hung_up, on_hang_up

PATIENCE_SECONDS = 20.0  # of one who waits for a place
TellPlace = Callable[[int], None]  # how many wait before


@dataclass(eq=False, slots=True)
class Ticket:
    """A place in the queue, or among those inside."""

    owner: str
    is_in: bool = False


class Lane:
    """At most `capacity` inside, of one owner at most `share`.

    Next is the owner who has the fewest inside; of equals, who was let in longest ago.
    """

    def __init__(
        self, capacity: int, *, waiting: int, share: int | None = None, what: str = "questions"
    ) -> None:
        """Of those that may wait, one owner has at most half, where there is a share."""
        self.capacity = capacity
        self.share = capacity if share is None else max(1, min(share, capacity))
        self._most_waiting = waiting
        self._waiting_share = waiting if share is None else max(1, waiting // 2)
        self._what = what
        self._change = threading.Condition()
        self._inside: Counter[str] = Counter()
        self._queue: list[Ticket] = []
        self._turn = 0
        self._served: Counter[str] = Counter()  # owners, with the turn that was their last

    def join(self, owner: str) -> Ticket:
        """Take a place, or one in the queue. Raises Busy when that is full."""
        ticket = Ticket(owner)
        with self._change:
            own = sum(each.owner == owner for each in self._queue)
            is_full = len(self._queue) >= self._most_waiting or own >= self._waiting_share
            if is_full and not self._may_enter(owner):
                raise self._busy(len(self._queue))
            self._queue.append(ticket)
            self._admit()
        return ticket

    def wait(self, ticket: Ticket, *, patience_seconds: float = PATIENCE_SECONDS) -> Iterator[int]:
        """How many wait before it, each time that this changes, until it is let in.

        Raises Busy when it is not in time, Left when nobody waits for it any more.
        """
        until, told = time.monotonic() + patience_seconds, -1
        on_hang_up(self._look)
        while True:
            with self._change:
                self._change.wait_for(
                    lambda: ticket.is_in or self._queue.index(ticket) != told or has_hung_up(),
                    timeout=until - time.monotonic(),
                )
                if ticket.is_in:
                    return
                before = self._queue.index(ticket)
                if has_hung_up():
                    self._queue.remove(ticket)
                    raise ClientGone(hang_up_reason() or "Nobody waits for this any more.")
                if before == told:
                    self._queue.remove(ticket)
                    raise self._busy(before)
            yield (told := before)

    def leave(self, ticket: Ticket) -> None:
        """Give the place back, or that in the queue."""
        with self._change:
            if ticket in self._queue:
                self._queue.remove(ticket)
            elif ticket.is_in:
                ticket.is_in = False
                self._inside[ticket.owner] -= 1
                self._inside += Counter()  # without those who have none inside
            self._admit()
            if not self._inside:
                self._served.clear()  # nobody is there

    @contextmanager
    def place(self, *, patience_seconds: float = PATIENCE_SECONDS) -> Iterator[None]:
        """A place for whoever this thread works for; what is done inside needs no other.

        Raises Busy and Left.
        """
        held = _held.get()
        if id(self) in held:
            yield
            return
        ticket = self.join(current_owner())
        try:
            tell = _tell.get()
            for before in self.wait(ticket, patience_seconds=patience_seconds):
                tell(before)
            _held.set(held | {id(self)})
            yield
        finally:
            _held.set(held)
            self.leave(ticket)

    def _look(self) -> None:
        with self._change:
            self._change.notify_all()

    def _may_enter(self, owner: str) -> bool:
        return self._inside.total() < self.capacity and self._inside[owner] < self.share

    def _admit(self) -> None:
        while True:
            able = [each for each in self._queue if self._may_enter(each.owner)]
            if not able:
                break
            ticket = min(
                able, key=lambda each: (self._inside[each.owner], self._served[each.owner])
            )
            self._queue.remove(ticket)
            self._turn += 1
            self._served[ticket.owner] = self._turn
            self._inside[ticket.owner] += 1
            ticket.is_in = True
        self._change.notify_all()

    def _busy(self, before: int) -> Busy:
        return Busy(
            f"Many {self._what} are being answered just now, and {before} more wait before yours. "
            f"Ask again in {Busy.retry_seconds} seconds."
        )


_held: ContextVar[frozenset[int]] = ContextVar("held", default=frozenset())
_tell: ContextVar[TellPlace] = ContextVar("tell", default=lambda before: None)


@contextmanager
def telling(tell: TellPlace) -> Iterator[None]:
    """Have it told how many wait before what this thread does inside."""
    before = _tell.get()
    _tell.set(tell)
    try:
        yield
    finally:
        _tell.set(before)

"""What a request may use, and how its wait is ended when its client has left.

The server gives a request its budget, and all code that works for the request finds it. Processor
time is that of the thread: waiting for others costs nothing.

There is one lane for each scarce thing: threads of the server, calls of a model, queries. An owner
with many requests gets a share of the lane, and the next owner is served as if second in line.
"""

import json
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Generic, Self, TypeVar

from rag.errors import Busy, ClientGone, ModelUnavailable, OverBudget, RagError
from rag.records import ChatMessage, Usage
from rag.seams import ChatModel, ModelRequest
from rag.seams.models import Patience

Cut = Callable[[], None]
LEFT = "The answer was stopped before its end."
STOPPED = "Stopped."  # by the user


class HangUp:
    """A signal from the client's thread that it has left, for the thread inside `heard_here`."""

    def __init__(self) -> None:
        self.is_over = False
        self.reason = LEFT
        self._cuts: list[Cut] = []
        self._lock = Lock()

    def now(self, reason: str | None = None) -> None:
        """Call all registered cuts, and later ones at once, to end waits of the working thread."""
        with self._lock:
            self.is_over = True
            self.reason = reason or self.reason
            cuts = list(self._cuts)
        for cut in cuts:
            cut()

    @contextmanager
    def heard_here(self) -> Iterator[None]:
        """Let this hang-up end waits of the current thread inside the block."""
        token = _heard.set(self)
        try:
            yield
        finally:
            _heard.reset(token)

    def cuts(self, cut: Cut) -> None:
        """Register `cut` for the hang-up; if that is over, call it now. The wait may have ended."""
        with self._lock:
            self._cuts.append(cut)
            is_over = self.is_over
        if is_over:
            cut()


_heard: ContextVar[HangUp | None] = ContextVar("heard", default=None)


def on_hang_up(cut: Cut) -> None:
    """Register `cut`, which ends a wait of this thread, for a hang-up."""
    hang_up = _heard.get()
    if hang_up is not None:
        hang_up.cuts(cut)


def has_hung_up() -> bool:
    """Return whether the client of this thread's work has left."""
    hang_up = _heard.get()
    return hang_up is not None and hang_up.is_over


def hang_up_reason() -> str | None:
    """Return why the client has left; None while it waits."""
    hang_up = _heard.get()
    return hang_up.reason if hang_up is not None and hang_up.is_over else None


# ── Short questions to a model beside an answer: a reply soon, or none ────────────────────────────


def reply_soon(
    model: ChatModel, messages: Sequence[ChatMessage], *, max_tokens: int, patience: Patience
) -> str:
    """Return the model's reply, without reasoning; "" if it fails or takes too long."""
    reply, failure = reply_in_time(model, messages, max_tokens=max_tokens, patience=patience)
    return "" if failure else reply


def reply_in_time(
    model: ChatModel,
    messages: Sequence[ChatMessage],
    *,
    max_tokens: int,
    patience: Patience,
    temperature: float = 0.0,
    usage: list[Usage] | None = None,
) -> tuple[str, RagError | None]:
    """Return the reply so far, without reasoning, and the error if it is not complete.

    A server that never ends or begins its reply must not block the caller. A hang-up ends the wait;
    `usage` receives what the server reports.
    """
    request = ModelRequest(
        tuple(messages), max_tokens, temperature=temperature, patience=patience, thinks=False
    )
    ended: SimpleQueue[RagError | None] = SimpleQueue()
    pieces: list[str] = []
    deadline = time.monotonic() + patience.seconds
    late = ModelUnavailable(
        f"{model.name} took longer than {patience.seconds:g} seconds. {patience.advice}"
    )

    def read() -> None:
        failure: RagError | None = ModelUnavailable(f"{model.name} failed.")
        try:
            for delta in model.stream(request):
                if usage is not None and delta.usage is not None:
                    usage.append(delta.usage)
                if delta.discard:
                    pieces.clear()
                pieces.append(delta.text)
                if time.monotonic() > deadline:
                    pieces.clear()  # half a reply is of no use
                    break
            failure = None if time.monotonic() <= deadline else late
        except RagError as error:
            failure = error
        finally:
            ended.put(failure)

    Thread(target=copy_context().run, args=(read,), name="short call", daemon=True).start()
    on_hang_up(lambda: ended.put(late))  # a model that cannot be cut ends by itself
    try:
        failure = ended.get(timeout=patience.seconds)
    except Empty:
        failure = late
    return "".join(pieces), failure


def json_object(reply: str) -> dict[str, Any] | None:
    """Return the JSON object in a reply, whatever text is around it; None if there is none."""
    try:
        data = json.loads(reply[reply.find("{") : reply.rfind("}") + 1])
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


CPU_SECONDS = 9.0  # about ten with the work of other threads, such as embedding
PLANNING_SECONDS = 5.0  # with the widest tables the clock is checked every 1.2 s
ITEMS_BETWEEN = 64  # checks of the clock
Paced = TypeVar("Paced")


@dataclass(slots=True)
class Budget:
    """The budget of one request or turn; it starts when it is created, in the working thread."""

    cpu_seconds: float = CPU_SECONDS
    has_left: Callable[[], bool] = lambda: False  # whether the client has left
    owner: str = ""  # owner of the work
    _began: float = field(default_factory=time.thread_time)
    _items: int = 0

    @property
    def spent_seconds(self) -> float:
        return time.thread_time() - self._began

    def spend(self, items: int = 1) -> None:
        """Count so many more items of work.

        Raises:
            OverBudget: the processor time is used up.
            ClientGone: the client has left.
        """
        before, self._items = self._items, self._items + items
        if before // ITEMS_BETWEEN != self._items // ITEMS_BETWEEN:
            self.check()

    def check(self) -> None:
        """Check the clock now; raises what `spend` raises."""
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
    """Count what this thread does inside the block."""
    before = begin(budget)
    try:
        yield budget
    finally:
        begin(before)


def part_of_it(cpu_seconds: float) -> Budget:
    """Return a smaller budget for an optional part of the same work."""
    whole = _current.get() or Budget()
    return Budget(cpu_seconds, has_left=whole.has_left, owner=whole.owner)


@contextmanager
def planning() -> Iterator[None]:
    """Limit the planning of a question over rows; what is known of its tables by then stays."""
    with limited(part_of_it(PLANNING_SECONDS)):
        yield


def begin(budget: Budget | None) -> Budget | None:
    """Set this thread's budget, or none, and return the one before."""
    before = _current.get()
    _current.set(budget)
    return before


def spend(items: int = 1) -> None:
    """Count items in this thread's budget (see `Budget.spend`), if it has one."""
    budget = _current.get()
    if budget is not None:
        budget.spend(items)


def paced(items: Iterable[Paced], *, weight: int = 1) -> Iterator[Paced]:
    """Yield the items and count each in the budget, with its `weight` in small steps."""
    budget = _current.get()
    if budget is None:
        yield from items
        return
    for item in items:
        budget.spend(weight)
        yield item


def current_owner() -> str:
    """Return the owner of this thread's work; "" if unknown."""
    budget = _current.get()
    return "" if budget is None else budget.owner


PATIENCE_SECONDS = 20.0  # for a place in a lane
TellPlace = Callable[[int], None]  # called with the number that wait before


@dataclass(eq=False, slots=True)
class Ticket:
    """A place in the lane or in its queue."""

    owner: str
    is_in: bool = False


class Lane:
    """At most `capacity` tickets inside, at most `share` of them of one owner.

    The next is of the owner with the fewest inside; of equals, of the one admitted longest ago.
    """

    def __init__(
        self, capacity: int, *, waiting: int, share: int | None = None, what: str = "questions"
    ) -> None:
        """At most `waiting` tickets queue; if there is a share, half of them of one owner."""
        self.capacity = capacity
        self.share = capacity if share is None else max(1, min(share, capacity))
        self._most_waiting = waiting
        self._waiting_share = waiting if share is None else max(1, waiting // 2)
        self._what = what
        self._change = threading.Condition()
        self._inside: Counter[str] = Counter()
        self._queue: list[Ticket] = []
        self._turn = 0
        self._served: Counter[str] = Counter()  # owners, with the number of their last admission

    def join(self, owner: str) -> Ticket:
        """Take a place inside or in the queue. Raises Busy when that is full."""
        ticket = Ticket(owner)
        with self._change:
            owned = sum(waiting.owner == owner for waiting in self._queue)
            is_full = len(self._queue) >= self._most_waiting or owned >= self._waiting_share
            if is_full and not self._may_enter(owner):
                raise self._busy(len(self._queue))
            self._queue.append(ticket)
            self._admit()
        return ticket

    def wait(self, ticket: Ticket, *, patience_seconds: float = PATIENCE_SECONDS) -> Iterator[int]:
        """Yield how many wait before this ticket, at each change, until it is inside.

        Raises Busy when that takes too long, ClientGone when the client has left.
        """
        until, shown = time.monotonic() + patience_seconds, -1
        on_hang_up(self._look)
        while True:
            with self._change:
                self._change.wait_for(
                    lambda: ticket.is_in or self._queue.index(ticket) != shown or has_hung_up(),
                    timeout=until - time.monotonic(),
                )
                if ticket.is_in:
                    return
                before = self._queue.index(ticket)
                if has_hung_up():
                    self._queue.remove(ticket)
                    raise ClientGone(hang_up_reason() or "Nobody waits for this any more.")
                if before == shown:
                    self._queue.remove(ticket)
                    raise self._busy(before)
            yield (shown := before)

    def leave(self, ticket: Ticket) -> None:
        """Give back the place, inside or in the queue."""
        with self._change:
            if ticket in self._queue:
                self._queue.remove(ticket)
            elif ticket.is_in:
                ticket.is_in = False
                self._inside[ticket.owner] -= 1
                self._inside += Counter()  # drops owners with none inside
            self._admit()
            if not self._inside:
                self._served.clear()  # the lane is empty

    @contextmanager
    def place(self, *, patience_seconds: float = PATIENCE_SECONDS) -> Iterator[None]:
        """Hold a place for this thread's owner; nested uses in one thread need no other.

        Raises Busy and ClientGone.
        """
        lanes = _lanes.get()
        if id(self) in lanes:
            yield
            return
        ticket = self.join(current_owner())
        try:
            if not ticket.is_in:
                tell = _tell.get()
                for before in self.wait(ticket, patience_seconds=patience_seconds):
                    tell(before)
            _lanes.set(lanes | {id(self)})
            yield
        finally:
            _lanes.set(lanes)
            self.leave(ticket)

    def _look(self) -> None:
        with self._change:
            self._change.notify_all()

    def _may_enter(self, owner: str) -> bool:
        return self._inside.total() < self.capacity and self._inside[owner] < self.share

    def _admit(self) -> None:
        while True:
            able = [waiting for waiting in self._queue if self._may_enter(waiting.owner)]
            if not able:
                break
            ticket = min(
                able, key=lambda waiting: (self._inside[waiting.owner], self._served[waiting.owner])
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


_lanes: ContextVar[frozenset[int]] = ContextVar("held", default=frozenset())
_tell: ContextVar[TellPlace] = ContextVar("tell", default=lambda before: None)


@contextmanager
def telling(tell: TellPlace) -> Iterator[None]:
    """Call `tell` with the number that wait before, for this thread's waits inside the block."""
    before = _tell.get()
    _tell.set(tell)
    try:
        yield
    finally:
        _tell.set(before)


# ── Work on many things, some at a time, with what is done first coming first ─────────────────────

Item = TypeVar("Item")
Produced = TypeVar("Produced")
LOOK_SECONDS = 0.1  # between two checks whether the items are still wanted


def as_done(
    items: Iterable[Item],
    work: Callable[[Item], Produced],
    *,
    executor: Executor,
    at_once: int,
    patience: float | None = None,
) -> Iterator[Produced | None]:
    """Yield results in the order in which they are done; None after each `patience` seconds.

    No more than `at_once` items are taken before their results are. Raises what `work` raises.
    """
    pending: set[Future[Produced]] = set()
    rest, is_last = iter(items), False
    while True:
        while not is_last and len(pending) < at_once:
            try:
                pending.add(executor.submit(work, next(rest)))
            except StopIteration:
                is_last = True
        if not pending:
            return
        done, pending = wait(pending, timeout=patience, return_when=FIRST_COMPLETED)
        if not done:
            yield None
        for future in done:
            yield future.result()


class Prefetch(Generic[Item]):
    """Iterates over items in its own thread, at most `most` ahead of the consumer.

    At the end of the `with` that thread ends, after its current item.
    """

    def __init__(self, items: Generator[Item], *, most: int) -> None:
        self._items = items
        self._made: queue.Queue[Item | None] = queue.Queue(most)
        self._error: BaseException | None = None
        self._has_ended = False
        self._unwanted = threading.Event()
        run = copy_context().run  # with the budget and owner of this thread
        self._thread = threading.Thread(target=run, args=(self._run,), name="ahead", daemon=True)

    @property
    def is_over(self) -> bool:
        """Whether all items were taken, and no error is still to be raised."""
        return self._has_ended and self._error is None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._unwanted.set()
        self._thread.join()

    def take(self, *, patience: float) -> list[Item]:
        """Return all available items; wait up to `patience` seconds for the first.

        Raises what making them raised.
        """
        taken: list[Item] = []
        with suppress(queue.Empty):
            item = None if self._has_ended else self._made.get(timeout=patience)
            while item is not None:
                taken.append(item)
                item = self._made.get_nowait()
            self._has_ended = True
        if self._has_ended and self._error is not None and not taken:
            raise self._error
        return taken

    def _run(self) -> None:
        try:
            with closing(self._items):
                for item in self._items:
                    if not self._put(item):
                        return
        except BaseException as error:  # noqa: BLE001  (whoever takes the items raises it)
            self._error = error
        self._put(None)

    def _put(self, item: Item | None) -> bool:
        """Queue the item; return whether it was still wanted."""
        while not self._unwanted.is_set():
            try:
                self._made.put(item, timeout=LOOK_SECONDS)
            except queue.Full:
                continue
            return True
        return False

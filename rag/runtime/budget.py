"""What one request may take, and how its wait is broken off when nobody wants it any more.

The edge gives a budget; whoever works for the request finds it, however deep. Processor time is
that of the thread: a request that waits for others costs nothing of it.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar

from rag.errors import ClientGone, ModelUnavailable, OverBudget, RagError
from rag.records import ChatMessage, Usage
from rag.seams import ChatModel, ModelRequest
from rag.seams.models import Patience

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


# ── Short questions to a model beside an answer: a reply soon, or none ────────────────────────────


def reply_soon(
    model: ChatModel, messages: Sequence[ChatMessage], *, max_tokens: int, patience: Patience
) -> str:
    """What it says in time without thinking; "" where it fails or takes longer."""
    said, failure = reply_in_time(model, messages, max_tokens=max_tokens, patience=patience)
    return "" if failure else said


def reply_in_time(
    model: ChatModel,
    messages: Sequence[ChatMessage],
    *,
    max_tokens: int,
    patience: Patience,
    temperature: float = 0.0,
    usage: list[Usage] | None = None,
) -> tuple[str, RagError | None]:
    """What it says in time, and why that is not all of it.

    A server that never ends its reply, or never begins, must not hold up whoever waits. Who
    hangs up waits no longer; `usage` takes what the server tells.
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
                    pieces.clear()  # half a reply is none
                    break
            failure = None if time.monotonic() <= deadline else late
        except RagError as error:
            failure = error
        finally:
            ended.put(failure)

    Thread(target=copy_context().run, args=(read,), name="short call", daemon=True).start()
    on_hang_up(lambda: ended.put(late))  # a model that cannot be cut ends by itself, unheard
    try:
        failure = ended.get(timeout=patience.seconds)
    except Empty:
        failure = late
    return "".join(pieces), failure


def json_object(reply: str) -> dict[str, Any] | None:
    """The JSON object of a reply, in whatever it is wrapped; None where there is none."""
    try:
        data = json.loads(reply[reply.find("{") : reply.rfind("}") + 1])
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


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

"""Work on many things, some at a time, with what is done first coming first."""

import queue
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import closing, suppress
from contextvars import copy_context
from typing import Generic, Self, TypeVar

Item = TypeVar("Item")
Produced = TypeVar("Produced")
LOOK_SECONDS = 0.1  # between two looks whether what waits for room is still wanted


def as_done(
    items: Iterable[Item],
    work: Callable[[Item], Produced],
    *,
    executor: Executor,
    at_once: int,
    patience: float,
) -> Iterator[Produced | None]:
    """Results in the order in which they are done; None whenever none came for so many seconds.

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
        for each in done:
            yield each.result()


class Prefetch(Generic[Item]):
    """Goes through items in a thread of its own, no more than `most` ahead of who takes them.

    At the end of the `with` that thread is done, after the item that it was at.
    """

    def __init__(self, items: Generator[Item], *, most: int) -> None:
        self._items = items
        self._made: queue.Queue[Item | None] = queue.Queue(most)
        self._error: BaseException | None = None
        self._has_ended = False
        self._unwanted = threading.Event()
        run = copy_context().run  # it is done on the same behalf
        self._thread = threading.Thread(target=run, args=(self._run,), name="ahead", daemon=True)

    @property
    def is_over(self) -> bool:
        """Whether all were taken, and making them met no error that is still to be raised."""
        return self._has_ended and self._error is None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._unwanted.set()
        self._thread.join()

    def take(self, *, patience: float) -> list[Item]:
        """All that are there; waits so many seconds for the first. Raises what making them did."""
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
        """Whether it was wanted."""
        while not self._unwanted.is_set():
            try:
                self._made.put(item, timeout=LOOK_SECONDS)
            except queue.Full:
                continue
            return True
        return False

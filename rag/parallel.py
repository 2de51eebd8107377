"""Work on many things, some at a time, with what is done first coming first."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def as_done(
    items: Iterable[Item],
    work: Callable[[Item], Result],
    *,
    executor: Executor,
    at_once: int,
    patience: float,
) -> Iterator[Result | None]:
    """Results in the order in which they are done; None whenever none came for so many seconds.

    No more than `at_once` items are taken before their results are. Raises what `work` raises.
    """
    pending: set[Future[Result]] = set()
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

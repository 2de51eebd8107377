"""Things are worked on some at a time, and none waits for a slower one."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from rag.runtime.budget import Prefetch, as_done


@pytest.fixture
def executor():
    with ThreadPoolExecutor(8) as pool:
        yield pool


def test_everything_is_done_once(executor):
    found = as_done(range(50), lambda n: n * n, executor=executor, at_once=3, patience=60)

    assert sorted(found) == [n * n for n in range(50)]


def test_a_slow_one_delays_only_itself(executor):
    go = threading.Event()

    def work(n):
        return n if n else go.wait(60) and n

    found = as_done(range(4), work, executor=executor, at_once=2, patience=60)

    assert [next(found) for _ in range(3)] == [1, 2, 3]
    go.set()
    assert list(found) == [0]


def test_it_says_when_it_waits(executor):
    go = threading.Event()
    found = as_done([0], lambda _: go.wait(60), executor=executor, at_once=2, patience=0.001)

    assert next(found) is None
    go.set()
    assert [each for each in found if each is not None] == [True]


def test_no_more_are_taken_than_are_worked_on(executor):
    taken = []

    def items():
        for n in range(9):
            taken.append(n)
            yield n

    found = as_done(items(), lambda n: n, executor=executor, at_once=2, patience=60)

    next(found)
    assert len(taken) <= 3


def test_nothing_gives_nothing(executor):
    assert list(as_done([], print, executor=executor, at_once=2, patience=60)) == []


def test_an_error_of_the_work_is_raised(executor):
    found = as_done([0], lambda n: 1 / n, executor=executor, at_once=2, patience=60)

    with pytest.raises(ZeroDivisionError):
        list(found)


def taken(ahead):
    while not ahead.is_over:
        yield from ahead.take(patience=60)


def test_items_made_ahead_come_in_their_order():
    with Prefetch((n for n in range(100)), most=3) as ahead:
        assert list(taken(ahead)) == list(range(100))


def test_no_more_are_made_than_were_asked_for():
    made = []

    def items():
        for n in range(100):
            made.append(n)
            yield n

    with Prefetch(items(), most=3) as ahead:
        first = ahead.take(patience=60)

    assert len(made) <= len(first) + 3 + 1


def test_an_error_comes_after_what_was_made_before_it():
    def items():
        yield 1
        raise ValueError("broken")

    with Prefetch(items(), most=3) as ahead:
        found = taken(ahead)

        assert next(found) == 1
        with pytest.raises(ValueError, match="broken"):
            next(found)


def test_nothing_made_in_time_is_nothing_yet():
    go = threading.Event()

    with Prefetch((n for n in range(1) if go.wait(60)), most=3) as ahead:
        assert ahead.take(patience=0.001) == []
        go.set()
        assert list(taken(ahead)) == [0]


def test_whoever_leaves_early_ends_the_making():
    is_closed = threading.Event()

    def items():
        try:
            yield from range(100)
        finally:
            is_closed.set()

    with Prefetch(items(), most=1) as ahead:
        ahead.take(patience=60)

    assert is_closed.is_set()

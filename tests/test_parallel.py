"""Things are worked on some at a time, and none waits for a slower one."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from rag.parallel import as_done


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

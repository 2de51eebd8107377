"""Questions that wait at the same time share a batch, and none gets another's vectors."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from rag.search.embedders.batching import MOST, BatchingEmbedder
from tests.fakes import HashEmbedder
from tests.waiting import LONG


class Gate:
    """Embeds, and can be held up."""

    def __init__(self):
        self.open = threading.Event()
        self.open.set()
        self.batches = []
        self.embedder = HashEmbedder()

    def __call__(self, texts):
        self.batches.append(list(texts))
        assert self.open.wait(LONG)
        if "bad" in texts:
            raise ValueError("bad")
        return self.embedder.embed(texts)


@pytest.fixture
def gate():
    return Gate()


def asked_while_held_up(gate, together, questions):
    """What each question gets if all are asked while another one is embedded."""
    gate.open.clear()
    with ThreadPoolExecutor(len(questions) + 1) as pool:
        first = pool.submit(together, ["first"])
        while not gate.batches:
            threading.Event().wait(0.001)
        others = [pool.submit(together, question) for question in questions]
        while len(together._waiting) < len(questions):
            threading.Event().wait(0.001)
        gate.open.set()
        first.result()
        return others


def test_one_alone_goes_at_once(gate):
    assert BatchingEmbedder(gate)(["alone", "two"]).shape[0] == 2
    assert gate.batches == [["alone", "two"]]


def test_those_that_wait_go_in_one_batch_and_get_their_own(gate):
    questions = [[f"question {number}", "context"] for number in range(6)]
    answers = asked_while_held_up(gate, BatchingEmbedder(gate), questions)

    for question, answer in zip(questions, answers, strict=True):
        np.testing.assert_allclose(answer.result(), gate.embedder.embed(question))
    assert len(gate.batches) == 2
    assert sorted(gate.batches[1]) == sorted(text for each in questions for text in each)


def test_a_batch_is_no_longer_than_the_most(gate):
    questions = [[f"{number} {part}" for part in range(8)] for number in range(9)]
    for answer in asked_while_held_up(gate, BatchingEmbedder(gate), questions):
        assert len(answer.result()) == 8

    assert max(len(batch) for batch in gate.batches) <= MOST


def test_the_failure_of_one_is_no_failure_of_others(gate):
    answers = asked_while_held_up(gate, BatchingEmbedder(gate), [["good"], ["bad"], ["fine"]])

    for answer, is_bad in zip(answers, (False, True, False), strict=True):
        if is_bad:
            with pytest.raises(ValueError, match="bad"):
                answer.result()
        else:
            assert len(answer.result()) == 1

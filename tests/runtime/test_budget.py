"""What one request may take is asked by loops, wherever they are, and ends with its asker."""

import pytest

from rag.citations.markers import keep_markers
from rag.errors import ClientGone, OverBudget
from rag.runtime.budget import Budget, HangUp, begin, current_owner, limited, paced, spend


def test_a_loop_goes_on_as_long_as_it_may():
    with limited(Budget()):
        assert list(paced(range(1_000))) == list(range(1_000))


def test_a_loop_that_takes_too_long_ends_with_both_numbers():
    with (
        limited(Budget(0.05)),
        pytest.raises(OverBudget, match=r"0\.\d seconds .* at most 0\.05 may"),
    ):
        for _ in paced(range(10**12)):
            pass


def test_without_a_request_nothing_is_counted():
    begin(None)
    spend(10**9)
    assert list(paced([1, 2])) == [1, 2]
    assert current_owner() == ""


def test_nothing_goes_on_for_one_who_has_left():
    gone = HangUp()
    with limited(Budget(has_left=lambda: gone.is_over)):
        loop = paced(range(10**12))
        next(loop)
        gone.now()
        with pytest.raises(ClientGone):
            for _ in loop:
                pass


def test_what_was_counted_before_is_counted_again_behind_it():
    with limited(Budget(owner="anna")):
        with limited(Budget(owner="ben")):
            assert current_owner() == "ben"
        assert current_owner() == "anna"


@pytest.mark.parametrize(
    "work",
    [
        lambda: keep_markers("[1" * 2_000_000, lambda numbers: numbers),
    ],
)
def test_readers_of_texts_ask(work):
    with limited(Budget(0.05)), pytest.raises(OverBudget):
        work()

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.search.fuse import convex_combination, min_max, ranked

SCORES = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(-5, 50), max_size=8)


@pytest.mark.parametrize(
    ("scores", "normal"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param({"a": 3.0}, {"a": 1.0}, id="one"),
        pytest.param({"a": 2.0, "b": 2.0}, {"a": 1.0, "b": 1.0}, id="equal"),
        pytest.param({"a": 4.0, "b": 2.0, "c": 3.0}, {"a": 1.0, "b": 0.0, "c": 0.5}, id="three"),
    ],
)
def test_scores_are_moved_to_zero_and_one(scores, normal) -> None:
    assert min_max(scores) == normal


def test_what_lies_below_the_floor_goes_below_zero() -> None:
    assert min_max({"a": 3.0, "b": 1.0}, floor=2.0) == {"a": 1.0, "b": -1.0}


def test_the_weight_decides_between_the_rankings() -> None:
    first, second = {"a": 1.0, "b": 0.0}, {"a": 0.0, "b": 1.0}

    assert convex_combination(first, second, weight=0.75) == {"a": 0.75, "b": 0.25}


def test_a_chunk_that_one_ranking_lacks_counts_as_its_last() -> None:
    fused = convex_combination({"a": 0.9, "b": 0.1}, {"c": 7.0}, weight=0.5)

    assert fused == {"a": 0.5, "b": 0.0, "c": 0.5}


@settings(max_examples=60)
@given(first=SCORES, second=SCORES, weight=st.floats(0, 1))
def test_a_combination_is_over_both_and_between_zero_and_one(first, second, weight) -> None:
    fused = convex_combination(first, second, weight=weight)

    assert set(fused) == set(first) | set(second)
    assert all(-1e-9 <= score <= 1 + 1e-9 for score in fused.values())


def test_equal_scores_are_ranked_by_their_keys() -> None:
    assert ranked({"b": 1.0, "a": 1.0, "c": 2.0}) == [("c", 2.0), ("a", 1.0), ("b", 1.0)]

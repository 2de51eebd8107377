"""What is said of a question as a whole follows from nearness and words, for any model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.records import EVERYTHING, Certainty, MissingIdentifier
from rag.search.confidence import Spread, certainty, relevance

ORDER = [Certainty.NOTHING, Certainty.PERHAPS, Certainty.FOUND]
near = st.integers(-50, 150).map(lambda tenths: tenths / 10)
shares = st.integers(0, 20).map(lambda part: part / 20)


@given(near, st.none() | near, shares, st.sampled_from([0.0, 0.5, 3.0]), shares)
def test_nearer_or_with_more_words_is_never_less_certain(first, second, share, more, words) -> None:
    before = certainty(first, second, share)
    after = certainty(first + more, second, min(1.0, share + words))

    assert ORDER.index(after) >= ORDER.index(before)
    assert relevance(first + more, share) >= relevance(first, share)


def test_what_lies_far_off_is_not_in_the_documents(library) -> None:
    library.add("Lamp", "Dim the lamp in the evening.")
    retriever = library.retriever

    def said(question):
        return retriever.confidence(question, EVERYTHING)

    assert said("quarterly revenue forecast").certainty is Certainty.NOTHING
    assert said("Dim the lamp in the evening").certainty is Certainty.FOUND
    assert said("").certainty is Certainty.NOTHING
    assert said("AX-5400-B").missing == (MissingIdentifier("AX-5400-B", ()),)


def test_a_code_that_is_found_is_certain(library) -> None:
    library.add("Lamp", "Part AX-5400-B is a lamp.")
    question = "has anybody ever bothered with the thing called AX-5400-B over there"

    assert library.retriever.confidence(question, EVERYTHING).certainty is Certainty.FOUND


@pytest.mark.parametrize(("mean", "deviation"), [(0.05, 0.09), (0.78, 0.03)])
def test_models_are_measured_by_their_own_usual_cosines(mean, deviation) -> None:
    assert Spread(mean, deviation, 9).nearness(mean + 3 * deviation) == pytest.approx(3)


def test_a_small_library_is_measured_by_what_is_usual() -> None:
    usual = Spread(0.05, 0.09, 132)

    assert Spread(0.6, 0.0, 1).steadied(usual).deviation > 0.08
    assert Spread(0.2, 0.05, 10_000).steadied(usual).mean == pytest.approx(0.2, abs=0.01)

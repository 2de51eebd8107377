"""A number stands in its place if the turns cited it for what the sentence says."""

import numpy as np
import pytest

from rag.citations.binding import Evidence, binds
from rag.citations.claims import claims, statements
from rag.citations.features import features, figures_within, holds_essentials, wording

RAW = (
    "The Vega 5 weighs 240 g [1]. The Vega 5 lasts 30 hours on one charge [2]. "
    "The Nova 2 weighs 240 g [3]. The Nova 2 is not waterproof [4]. "
    "Refunds are paid within five working days [5]. "
    "The cable is braided [6], the adapter is sold separately [7] and the box is recycled [8]."
)


@pytest.mark.parametrize(
    ("sentence", "number", "bound"),
    [
        pytest.param("The Vega 5 weighs 240 g.", 1, True, id="as written"),
        pytest.param("Vega 5: weighs 240 grams", 1, True, id="other unit spelling"),
        pytest.param("Refunds are paid within 5 working days", 5, True, id="figure for a word"),
        pytest.param("The Vega 5 lasts 30 hours", 2, True, id="shortened"),
        pytest.param("The Vega 5 weighs 240 g", 3, False, id="another name"),
        pytest.param("The Vega 5 weighs 250 g", 1, False, id="another figure"),
        pytest.param("The Vega 5 lasts 30 days", 2, False, id="another unit"),
        pytest.param("The Vega 5 weighs 240 g", 2, False, id="another claim"),
        pytest.param("The Nova 2 is waterproof", 4, False, id="negation lost"),
        pytest.param("The Vega 5 Pro weighs 240 g", 1, False, id="altered name"),
        pytest.param("The Vega 5 weighs 240 g", 99, False, id="invented"),
        pytest.param("The Vega 5", 1, False, id="says nothing"),
        pytest.param("", 1, False, id="empty"),
        pytest.param("Everything is fine with the office", 5, False, id="unrelated"),
        pytest.param("the adapter is sold separately", 7, True, id="a clause of several"),
        pytest.param("the adapter is sold separately", 6, False, id="the clause before"),
        pytest.param("Vega 5 weighs 240 g [1], lasts 30 hours [2].", 2, True, id="several, right"),
        pytest.param("Vega 5 weighs 240 g [2], lasts 30 hours [1].", 2, False, id="swapped"),
        pytest.param("Vega 5 weighs 240 g and lasts 30 hours [1][2].", 1, True, id="merged"),
        pytest.param("Vega 5 weighs 240 g, lasts 30 hours [1][3].", 3, False, id="merged wrong"),
    ],
)
def test_binds_by_figures_names_negation_and_words(sentence, number, bound):
    assert binds(sentence, number, claims(RAW)) is bound


def test_a_number_that_moved_to_an_uncited_sentence_is_not_bound():
    evidence = Evidence(claims(RAW), plain=["The Vega 5 weighs 240 g in total."])
    (moved,) = statements("The Vega 5 weighs 240 g in total [1].")

    assert evidence.bound(moved) == set()


def test_of_two_claims_the_one_that_says_it_is_meant():
    evidence = Evidence(
        claims(
            "The small red lamp is for the kitchen table [1]. "
            "The small red lamp is for the bedroom table [2]."
        )
    )
    (said,) = statements("Small red lamp for the kitchen table, yes [2].")

    assert evidence.bound(said) == set()


class TestMeaning:
    RAW = "The Vega 5 lasts 30 hours on one charge [2]."

    @pytest.mark.parametrize(("cosine", "bound"), [(0.95, True), (0.5, False)])
    def test_counts_where_the_words_differ_and_the_figures_agree(self, cosine, bound):
        def embed(texts):
            other = [cosine, np.sqrt(1 - cosine**2)]
            return np.array([other] + [[1.0, 0.0]] * (len(texts) - 1), dtype=np.float32)

        sentence = "Vega 5 endurance reaches 30 hours per battery charge"

        assert not binds(sentence, 2, claims(self.RAW))
        assert binds(sentence, 2, claims(self.RAW), embed) is bound

    def test_never_outweighs_a_figure(self):
        def embed(texts):
            return np.ones((len(texts), 1), dtype=np.float32)

        assert not binds("Vega 5 endurance: 31 hours per charge", 2, claims(self.RAW), embed)


class TestFeatures:
    def test_are_figures_names_words_and_negations(self):
        seen = features("The Vega 5 costs $1,299.50 and doesn't weigh 3 kg")

        assert seen.figures == {"1299.50$", "3kg"}
        assert seen.names == {"Vega 5"}
        assert seen.words == {"cost", "weigh"}
        assert seen.negations == 1

    @pytest.mark.parametrize(
        ("some", "all_", "within"),
        [
            ({"30h"}, {"30h", "5g"}, True),
            ({"30"}, {"30h"}, True),
            ({"30h"}, {"30g"}, False),
            ({"3"}, {"30h"}, False),
            (set(), {"1"}, True),
        ],
    )
    def test_figures_agree_with_or_without_a_unit(self, some, all_, within):
        assert figures_within(frozenset(some), frozenset(all_)) is within

    def test_wording_is_the_words_alone(self):
        assert wording("It's **RED**, isn't it?") == wording("it s red isn t it")

    @pytest.mark.parametrize(
        ("text", "essential"),
        [(" (five of them)", True), (" (Vega)", True), (" (never)", True), (" (as said)", False)],
    )
    def test_essentials_are_figures_names_and_negations(self, text, essential):
        assert holds_essentials(text) is essential


@pytest.mark.parametrize("marked", ["{}.", "{}?", ": {}", "{} :", "{} . "])
def test_marks_around_a_text_make_no_difference_to_what_it_consists_of(marked: str) -> None:
    text = "The Vega 5 Pro does not weigh 240 g, v2.1"

    assert features(marked.format(text)) == features(text)

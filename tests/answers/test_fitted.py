"""The weights of cards belong to the code that computes their signs."""

from benchmarks.cards.fit import ROOMS
from benchmarks.features import fingerprint
from rag.answers.choosing import LINE_SIGNS, fitted
from rag.answers.signs import PASSAGE_SIGNS


def test_weights_were_fitted_with_the_signs_as_they_are() -> None:
    assert fitted()["features"] == fingerprint(ROOMS), (
        "Code that computes a sign of a card changed. "
        "Run `python -m benchmarks.fit --data DIR` and look at what it prints."
    )


def test_each_sign_has_a_weight() -> None:
    assert tuple(fitted()["passage"]) == PASSAGE_SIGNS
    assert tuple(fitted()["line"]) == (*LINE_SIGNS, "bias")

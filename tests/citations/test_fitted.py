"""The weights of the verdict belong to the code that computes its features."""

from benchmarks.features import fingerprint
from rag.citations.checking.case import Said
from rag.citations.checking.reading import read_source
from rag.citations.checking.silence import fitted
from rag.citations.checking.verdict import beside
from tests.citations.test_check import AERO


def test_weights_were_fitted_with_the_features_as_they_are() -> None:
    assert fitted()["features"] == fingerprint(), (
        "Code that computes a feature of the verdict changed. "
        "Run `python -m benchmarks.fit --data DIR` and look at what it prints."
    )


def test_what_the_source_speaks_of_is_less_silent_than_what_it_does_not() -> None:
    told, untold = (
        beside(Said(text), [read_source(AERO)])
        for text in (
            "Indoors the battery keeps going for long in the rain.",
            "Unicorns sing grand opera loudly at midnight.",
        )
    )

    assert told is not None
    assert untold is not None
    assert told.probability() < fitted()["silent_from"] <= untold.probability()

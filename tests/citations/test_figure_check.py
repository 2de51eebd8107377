"""A figure of a cited statement stands in its sources, or is shown as standing nowhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundnote import check

HANDBOOK = (
    "A refund takes twelve business days. The Aero 5 weighs 112 g and costs EUR 129.90. "
    "The Aero 5 Pro weighs 139 g. The screen is 154.9 mm wide. Sales were 1,187,450 units. "
    "Version 2.4.1 was released on 3 May 2026. The warranty lasts 24 months."
)
TABLE = "| Model | Weight (g) | Price |\n|---|---|---|\n| Aero 5 | 112 | EUR 1,299.00 |"


def statuses(text, *sources):
    checked = check(text, list(sources) or [HANDBOOK])
    return {text[each.start : each.end]: each.status.value for each in checked.figures}


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("It takes 99 days and costs EUR 77.30 [1].", ["99 days", "EUR 77.30"]),
        ("Within **45 minutes** it is done [1].", ["45 minutes"]),
        ("Version 2.5.3 is out since 9 June 2026 [1].", ["2.5.3", "9 June 2026"]),
        ("It grew by 63 % [1].", ["63 %"]),
        ("- Weight: 412 g [1]", ["412 g"]),
        ("| Model | Weight |\n|---|---|\n| Aero 5 | 412 g [1] |", ["412 g"]),
    ],
)
def test_an_invented_figure_is_unfound(text, figures):
    assert statuses(text) == dict.fromkeys(figures, "unfound")


@pytest.mark.parametrize(
    "text",
    [
        "A refund takes 12 business days [1].",
        "It costs 129.90 € [1].",
        "It costs about EUR 130 [1].",
        "The screen is 15.5 cm wide [1].",
        "Some 1.19 million units were sold [1].",
        "The warranty lasts two years [1].",
        "Version 2.4.1 came on 2026-05-03 [1].",
    ],
)
def test_a_figure_that_is_rounded_converted_or_spelled_otherwise_is_found(text):
    assert set(statuses(text).values()) <= {"found"}


@pytest.mark.parametrize(
    ("text", "derived"),
    [
        ("With 112 g and 139 g they weigh 251 g [1].", "251 g"),
        ("139 g is 27 g more than 112 g [1].", "27 g"),
        ("It went from 112 g to 139 g, a rise of 24 % [1].", "24 %"),
        ("20 licences at EUR 129.90 cost EUR 2,598 [1].", "EUR 2,598"),
    ],
)
def test_what_follows_from_figures_that_the_sentence_names_is_derived(text, derived):
    assert statuses(text)[derived] == "derived"


def test_a_wrong_sum_is_unfound():
    assert statuses("With 112 g and 139 g they weigh 261 g [1].")["261 g"] == "unfound"


def test_a_cell_is_found_by_the_unit_of_its_column():
    assert statuses("It weighs 112 g and costs EUR 1,299 [1].", TABLE) == {
        "112 g": "found",
        "EUR 1,299": "found",
    }


def test_every_source_of_the_sentence_is_looked_into_and_no_other():
    text = "It weighs 112 g and costs EUR 5.40 [1][2]. It costs EUR 5.40 [1]."
    found = check(text, ["It weighs 112 g.", "It costs EUR 5.40."]).figures

    assert [(each.status.value, each.number) for each in found] == [
        ("found", 1),
        ("found", 2),
        ("unfound", None),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "There are three ways [1].",
        "The second step follows [1].",
        "It has no number at all: 99 days.",
        "Run `retry 99` first [1].",
    ],
)
def test_counts_ordinals_code_and_what_cites_nothing_are_no_claims(text):
    assert statuses(text) == {}


@given(value=st.integers(13, 10**6), unit=st.sampled_from(["g", "km", "%", "EUR", "days"]))
def test_a_figure_is_found_exactly_where_its_source_says_it(value, unit):
    statement = f"It is {value} {unit} [1]."

    assert set(statuses(statement, f"We measured {value} {unit} there.").values()) == {"found"}
    assert set(statuses(statement, f"We measured {value + 7} {unit} there.").values()) == {
        "unfound"
    }

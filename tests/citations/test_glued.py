"""Brackets directly after a word become markers only where they were meant as citations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.citations.glued import find_glued, set_off
from rag.citations.markers import cited_numbers
from tests.citations.test_check import SOURCES


def meant(text: str) -> str:
    return set_off(text, find_glued(text, SOURCES))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Aero 5 weighs 1.2 kg[1].", "The Aero 5 weighs 1.2 kg [1]."),
        ("It has a range of 30 m[1], indoors.", "It has a range of 30 m [1], indoors."),
        ("Refunds are paid by bank transfer[1][2].", "Refunds are paid by bank transfer [1][2]."),
        ("The cover AC-12X fits[2]", "The cover AC-12X fits [2]"),
        (
            "It weighs 1.2 kg[1]. Return it within 14 days[2]. It does not survive rain[1].",
            "It weighs 1.2 kg [1]. Return it within 14 days [2]. It does not survive rain [1].",
        ),
        ("- The Aero 5 weighs **1.2 kg**[1]", "- The Aero 5 weighs **1.2 kg**[1]"),  # a marker
    ],
)
def test_what_its_source_carries_is_cited(text: str, expected: str) -> None:
    assert meant(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "The Aero 5 weighs 1.2 kg[7].",  # no such source
        "The Aero 5 weighs 1.2 kg[1, 7].",
        "The Aero 5 weighs 1.2 kg: `weights[1]`.",  # code
        "The Aero 5 weighs 1.2 kg, as x[1] says.",  # an index
        "The Aero 5 weighs 1.2 kg, as data.weights[1] says.",
        "The Aero 5 weighs 1.2 kg, as the_weights[1] says.",
        "The Aero 5 weighs 1.2 kg, as weights[1](x) says.",
        "The Aero 5 weighs 1.2 kg [1].",  # it is a marker already
        "",
    ],
)
def test_anything_else_stays_as_it_was(text: str) -> None:
    assert meant(text) == text


@given(st.text(alphabet="ab1 .[2],\n`_-(:*~3", max_size=60))
def test_only_blanks_are_added_and_no_citation_is_lost(text: str) -> None:
    placed = set_off(text, find_glued(text, SOURCES))

    assert placed.replace(" ", "") == text.replace(" ", "")
    assert set(cited_numbers(placed)) >= set(cited_numbers(text))
    assert set(cited_numbers(meant(text))) <= {*cited_numbers(text), *SOURCES}

"""Amounts that are spelled out."""

import pytest

from rag.language.amounts import clocks
from rag.language.figures import read_figures


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("two and a half hours", 2.5, "h"),
        ("two hours and a half", 2.5, "h"),
        ("an hour and a half", 1.5, "h"),
        ("three and a quarter years", 3.25, "year"),
        ("drei Stunden", 3.0, "h"),
    ],
)
def test_a_spelled_amount_has_its_unit_wherever_its_half_stands(text, value, unit):
    (figure,) = read_figures(f"It takes {text}.")

    assert (figure.value, figure.unit) == (value, unit)


@pytest.mark.parametrize(("said", "hour"), [("9 am", 9.0), ("12 pm", 12.0), ("1:30 pm", 13.5)])
def test_a_time_of_day_is_told_in_hours(said, hour):
    assert [each.value for each in clocks(f"The shop opens at {said}.")] == [hour]

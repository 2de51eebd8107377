"""Which questions ask over rows, by their words alone."""

import pytest

from rag.tables.asking.wording import says_rows


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many orders were there?", True),
        ("total revenue by region", True),
        ("Show me the Top 10 products", True),
        ("Which region has the max revenue?", True),
        ("And the Pro Max?", False),
        ("And the Pro?", False),
        ("how heavy is the aero 5 pro max?", False),
        ("How heavy is the Aero 5 Max?", False),
        ("Who wrote this?", False),
        ("How long does the Aero 5 last?", False),
        ("How long will its battery last on a charge?", False),
        ("What do the 5 last orders cost?", True),
    ],
)
def test_words_over_rows_are_told_from_names(question, expected):
    assert says_rows(question) is expected

"""What is long and strange is checked in time, in a text and in what it cites.

Before, each took minutes or never ended, some in one step of C. How the time grows is measured by
`python -m benchmarks.attack growth`.
"""

import time

import pytest

from rag.turns.any_text import check_text, given_sources

pytestmark = pytest.mark.slow

LONG = 12_800
MOST_SECONDS = 30.0  # ten times what the slowest takes, measured for coverage
MOTIFS = ["-", "| ", "[1-20]", "a [1] b ", "1 ", "[1]", "(1)", "a, [1]", " ", "\t", "\u00a0"]
SHORT = "The Aero 5 weighs 410 g [1]."


@pytest.mark.parametrize("motif", MOTIFS)
def test_what_is_long_and_strange_is_checked_in_time(motif):
    strange = f"It weighs{(motif * LONG)[:LONG]} 5 g [1]."
    began = time.process_time()

    check_text(strange, given_sources([(1, SHORT, "")]))
    check_text(SHORT, given_sources([(1, strange, "")]))

    assert time.process_time() - began < MOST_SECONDS

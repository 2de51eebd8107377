"""What is long and strange is checked in time, in a text and in what it cites.

Before, each took minutes or never ended, some in one step of C. How the time grows is measured by
`python -m benchmarks.attack growth`.
"""

import time

import pytest

from rag.citations.verdicts import check_text, sources_from_texts

LONG, SHORTER = 12_800, 3_200
MOST_SECONDS = {LONG: 30.0, LONG // 2: 12.0, SHORTER: 6.0}  # ten times what the slowest takes
MOTIFS = ["-", "| ", "a [1] b ", "1 ", "[1]", "a, [1]", " ", "\t", "\u00a0"]
DEAR = ["[1-20]", "(1)"]  # seconds each at full length, so that it is half of it here
HALF = LONG // 2
SHORT = "The Aero 5 weighs 410 g [1]."


@pytest.mark.parametrize(
    ("motif", "length"),
    [(motif, LONG) for motif in MOTIFS]
    + [(motif, SHORTER) for motif in DEAR]
    + [pytest.param(motif, HALF, marks=pytest.mark.slow) for motif in DEAR],
)
def test_what_is_long_and_strange_is_checked_in_time(motif, length):
    strange = f"It weighs{(motif * length)[:length]} 5 g [1]."
    began = time.process_time()

    check_text(strange, sources_from_texts([(1, SHORT, "")]))
    check_text(SHORT, sources_from_texts([(1, strange, "")]))

    assert time.process_time() - began < MOST_SECONDS[length]

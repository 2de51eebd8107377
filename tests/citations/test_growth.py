"""What is long and strange costs as much as it is long, in a text and in what it cites."""

import time

import pytest

from rag.turns.any_text import check_text, given_sources
from tests.web.hostile_server import is_steep

LENGTHS = (800, 3_200, 12_800)
MOTIFS = ["-", "| ", "[1-20]", "a [1] b ", "1 ", "[1]", "(1)", "a, [1]"]
SHORT = "The Aero 5 weighs 410 g [1]."


def strange(motif, length):
    return f"It weighs{(motif * length)[:length]} 5 g [1]."


def seconds(text, source):
    began = time.process_time()
    check_text(text, given_sources([(1, source, "")]))
    return time.process_time() - began


@pytest.mark.parametrize("motif", MOTIFS)
def test_a_text_is_checked_in_steps_of_its_length(motif):
    seconds(SHORT, SHORT)  # what is loaded late

    assert not is_steep([seconds(strange(motif, each), SHORT) for each in LENGTHS])


@pytest.mark.parametrize("motif", MOTIFS)
def test_a_source_is_read_in_steps_of_its_length(motif):
    seconds(SHORT, SHORT)

    assert not is_steep([seconds(SHORT, strange(motif, each)) for each in LENGTHS])


@pytest.mark.parametrize("blank", [" ", "\t", "\u00a0"])
def test_a_long_line_of_blanks_is_passed_at_once(blank):
    """In one step of C it held all others for minutes."""
    assert not is_steep([seconds(blank * each + "x", SHORT) for each in LENGTHS])

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.chat.evidence import units_of

PASSAGE = """Setup
First press A. Then wait. What now?
Do this:

- one thing. It
  goes on
- 2. Set out two.

| Name | Weight |
| --- | --- |
| Aero 5 | 410 g |
| Aero 7 | 510 g |

The end."""


def test_a_passage_is_read_statement_by_statement():
    told = [(unit.kind, unit.text) for unit in units_of(PASSAGE)]

    assert told == [
        ("sentence", "Setup"),
        ("sentence", "First press A."),
        ("sentence", "Then wait."),
        ("entry", "one thing. It\n  goes on"),
        ("entry", "Set out two."),
        ("row", "| Aero 5 | 410 g |"),
        ("row", "| Aero 7 | 510 g |"),
        ("sentence", "The end."),
    ]


def test_a_statement_knows_what_stands_above_it():
    told = {unit.text: unit.above for unit in units_of(PASSAGE)}

    assert told["Set out two."] == "Do this:"
    assert told["| Aero 5 | 410 g |"] == "| Name | Weight |"


@pytest.mark.parametrize("text", ["What now?", "Do this:", "    code a\n\n    b"])
def test_questions_leads_and_code_state_nothing(text):
    assert text.split("\n")[0] not in [unit.text for unit in units_of(text)]


@given(st.text(alphabet="ab .?:|-*1\n \t#", max_size=80))
def test_every_unit_is_a_stretch_of_its_passage(passage):
    units = list(units_of(passage))

    assert all(passage[unit.start : unit.end] == unit.text for unit in units)
    assert all(one.end <= other.start for one, other in pairwise(units))

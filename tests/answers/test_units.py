from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rag.answers.units import Kind, units_of

PASSAGE = """Setup
First press A. Then wait. What now?
Do this:

- one thing
  that goes on
- two:

    code a

    code b

| Name | Weight |
| --- | --- |
| Aero 5 | 410 g |
| Aero 7 | 510 g |

The end."""


def test_a_passage_is_read_unit_by_unit():
    told = [(unit.kind, unit.text) for unit in units_of(PASSAGE)]

    assert told == [
        (Kind.TITLE, "Setup"),
        (Kind.SENTENCE, "First press A."),
        (Kind.SENTENCE, "Then wait."),
        (Kind.SENTENCE, "What now?"),
        (Kind.LEAD, "Do this:"),
        (Kind.ENTRY, "one thing\n  that goes on"),
        (Kind.ENTRY, "two:"),
        (Kind.CODE, "    code a\n\n    code b"),
        (Kind.ROW, "| Aero 5 | 410 g |"),
        (Kind.ROW, "| Aero 7 | 510 g |"),
        (Kind.SENTENCE, "The end."),
    ]


def test_a_unit_knows_what_stands_above_it():
    entry, row = units_of(PASSAGE)[5], units_of(PASSAGE)[8]

    assert entry.above == "Setup › Do this:"
    assert row.above.endswith("Name | Weight")


def test_questions_titles_and_leads_state_nothing():
    stated = [unit.text for unit in units_of(PASSAGE) if unit.is_statement]

    assert not {"Setup", "What now?", "Do this:"} & set(stated)


@given(st.text(alphabet="ab .?:|-*1\n \t#", max_size=80))
def test_every_unit_is_a_stretch_of_its_passage(passage):
    units = units_of(passage)

    assert all(passage[unit.start : unit.end] == unit.text for unit in units)
    assert all(one.end <= other.start for one, other in pairwise(units))

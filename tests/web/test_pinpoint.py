"""The places of a passage that say what an answer cites it for."""

from datetime import UTC, datetime

import pytest

from rag.records import Message, MessageStatus, Role
from rag.render.statements import places_of, statements_in

TABLE = "| Model | Weight |\n| --- | --- |\n| Aero 5 | 410 g |\n| Aero 5 Pro | 620 g |"
PROSE = "The lid has seven screws. Wait 5 minutes before you open it. The fan is grey."


def said(passage, *clauses):
    return [passage[place.start : place.end] for place in places_of(passage, clauses)]


@pytest.mark.parametrize(
    ("passage", "clause", "expected"),
    [
        pytest.param(TABLE, "The Aero 5 weighs 410 g.", ["| Aero 5 | 410 g |"], id="a row"),
        pytest.param(PROSE, "One must wait 5 minutes.", [PROSE[26:60]], id="other words"),
        pytest.param(
            PROSE,
            "It has seven screws and a grey fan.",
            ["The lid has seven screws.", "The fan is grey."],
            id="two places",
        ),
        pytest.param(PROSE, "Bread is baked at 220 degrees.", [], id="nothing of it"),
        pytest.param(PROSE, "The lid.", [], id="one word only"),
        pytest.param("", "The lid has seven screws.", [], id="no passage"),
    ],
)
def test_a_statement_is_found_where_it_stands(passage, clause, expected):
    assert said(passage, clause) == expected


def test_the_head_of_a_table_is_no_place():
    assert said(TABLE, "Model and weight.") == []


def test_each_marker_stands_for_its_own_clause():
    text = "It weighs 410 grams [1], and its lid has seven screws [1][2]."
    now = datetime.now(UTC)
    message = Message(1, 0, Role.ASSISTANT, text, MessageStatus.COMPLETE, now)

    def clauses(number, start=None):
        return [statement.text for statement in statements_in(message, number, start)]

    assert clauses(1, text.index("[1]")) == ["It weighs 410 grams"]
    assert clauses(2) == ["its lid has seven screws"]
    assert len(clauses(1)) == 2
    assert clauses(3) == []

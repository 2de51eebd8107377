"""What `[n]` stands for."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.citations.markers import cited_numbers
from rag.citations.statements import read_statements


def parts(text: str) -> list[tuple[tuple[int, ...], str]]:
    return [
        (part.numbers, text[part.start : part.end])
        for statement in read_statements(text)
        for part in statement.parts
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The lamp weighs 5 kg [1].", [((1,), "The lamp weighs 5 kg")]),
        ("The lamp weighs 5 kg. [1]", [((1,), "The lamp weighs 5 kg.")]),
        ("The lamp weighs 5 kg.\n[1]", [((1,), "The lamp weighs 5 kg.")]),
        ("The lamp weighs 5 kg [1][2].", [((1, 2), "The lamp weighs 5 kg")]),
        ("The lamp weighs 5 kg [1] and [2].", [((1, 2), "The lamp weighs 5 kg")]),
        (
            "The lamp is bright [1] and the stand is heavy [2].",
            [((1,), "The lamp is bright"), ((2,), "the stand is heavy")],
        ),
        (
            "According to [1], the lamp is red; according to [2], it is blue.",
            [((1,), "the lamp is red;"), ((2,), "it is blue.")],
        ),
        (
            "[1] says the lamp is red, [2] says it is blue.",
            [((1,), "says the lamp is red,"), ((2,), "says it is blue.")],
        ),
        (
            "[1] says the lamp is red, but the box is blue [2].",
            [((1,), "says the lamp is red"), ((2,), "but the box is blue")],
        ),
        ("According to [1], the lamp is red [1].", [((1,), "the lamp is red")]),
        (
            "Laut [1] ist die Lampe rot, laut [2] ist sie blau.",
            [((1,), "ist die Lampe rot,"), ((2,), "ist sie blau.")],
        ),
        (
            "It may be sold [1], but only indoors.",
            [((1,), "It may be sold [1], but only indoors.")],
        ),
        ("| lamp | mass |\n|---|---|\n| L1 | 5 kg [1] |", [((1,), "L1 | 5 kg")]),
        (
            "| lamp | mass | watts |\n|---|---|---|\n| L1 | 5 kg [1] | 7 W [2] |",
            [((1,), "L1 | 5 kg"), ((2,), "7 W")],
        ),
        ("| lamp | mass | from |\n|---|---|---|\n| L1 | 5 kg | [1] |", [((1,), "L1 | 5 kg |")]),
        (
            "| lamp | mass [1] |\n|---|---|\n| L1 | 5 kg |",
            [((1,), "lamp | mass"), ((1,), "5 kg")],
        ),
        ("Limits [1]:\n- 5 bar\n- 60 °C", [((1,), "5 bar"), ((1,), "60 °C")]),
        ("Limits:\n- 5 bar [1]\n- 60 °C [2]", [((1,), "5 bar"), ((2,), "60 °C")]),
        ("```\nx [1]\n```", []),
        ("    x = y [1]", []),
    ],
)
def test_words_that_a_number_stands_for(text: str, expected: list[object]) -> None:
    assert parts(text) == expected


@pytest.mark.parametrize(
    ("text", "states"),
    [
        ("The lamp weighs 5 kg.", True),
        ("Here are the limits:", False),
        ("If you need more light, take another lamp.", False),
        ("If you need more light, take another lamp [1].", True),
        ("The documents do not say how heavy it is.", False),
        ("Is the lamp heavy?", False),
        ("# The lamp and its stand", False),
    ],
)
def test_what_states_something(text: str, states: bool) -> None:
    assert [statement.states for statement in read_statements(text)] == [states]


WORDS = st.sampled_from(
    [
        "The lamp weighs 5 kg",
        "[1]",
        "[2]",
        "[3]",
        " ",
        ". ",
        ", ",
        "? No",
        ": ",
        "\n- ",
        "\n\n",
        "\n",
        " but ",
        "according to ",
        "says ",
        "; ",
        "```\n",
        "    ",
        "\n## ",
        "\n> ",
        "**",
        "水泵很安全。",
        "\n",
        " a ",
        " b ",
        "",
    ]
)


@given(st.lists(WORDS, max_size=20).map("".join))
@settings(max_examples=300)
def test_parts_share_no_word_and_lie_in_their_statement(text: str) -> None:
    before = 0
    for statement in read_statements(text):
        assert statement.start <= statement.end
        assert statement.start >= before or statement.kind == "code"
        before = statement.end
        at = statement.start
        for part in statement.parts:
            assert at <= part.start < part.end <= statement.end
            at = part.end
        assert set(statement.numbers) <= set(cited_numbers(text))

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.answers.passages import (
    LONGEST_PIECE,
    MOST_CODE_LINES,
    PIECES_PER_SOURCE,
    Kind,
    pieces_of,
    row_text,
)
from rag.citations.markers import find_markers
from rag.records import Source


def read(passage, *, text=None, title="Manual", headings=("Setup",)):
    source = Source(3, "c", "d", "n", title, "", headings, text or passage, passage, "")
    return pieces_of(source)


class TestPieces:
    def test_are_sentences_in_reading_order_below_their_headings(self):
        pieces = read("Press the button. The light turns green.")

        assert [piece.text for piece in pieces] == ["Press the button.", "The light turns green."]
        assert [piece.position for piece in pieces] == [0, 1]
        assert {piece.context for piece in pieces} == {"Manual › Setup"}
        assert {piece.heading for piece in pieces} == {"Setup"}
        assert [piece.leads for piece in pieces] == [True, False]

    def test_know_whether_they_belong_to_the_chunk(self):
        pieces = read("Before it. The chunk itself. After it.", text="The chunk itself.")

        assert [piece.in_chunk for piece in pieces] == [False, True, False]

    @pytest.mark.parametrize(
        "passage",
        [
            pytest.param("# Reset\nPress the button.", id="marked"),
            pytest.param("Reset of the device\n\nPress the button.", id="a short line"),
        ],
    )
    def test_are_not_made_of_titles(self, passage):
        (piece,) = read(passage)

        assert piece.text == "Press the button."
        assert "Reset" in piece.context

    def test_are_made_of_short_lines_that_follow_each_other(self):
        pieces = read("Last order 28 February\nSecurity updates until 31 March\nSpare parts 2029")

        assert [piece.text for piece in pieces] == [
            "Last order 28 February",
            "Security updates until 31 March",
            "Spare parts 2029",
        ]

    @pytest.mark.parametrize(
        ("passage", "texts"),
        [
            pytest.param("The Aero 5 weighs 9 g", ["The Aero 5 weighs 9 g"], id="alone"),
            pytest.param(
                "Warranty: two years\n\nWeight: 9 g\n\nSupport is in Malmo",
                ["Warranty: two years", "Weight: 9 g", "Support is in Malmo"],
                id="notes",
            ),
            pytest.param(
                "Press it.\n\nIt weighs 9 g", ["Press it.", "It weighs 9 g"], id="at the end"
            ),
            pytest.param("Safety\n\nPower\n\nPull the plug.", ["Pull the plug."], id="titles"),
            pytest.param("Weights of 2026\n\n- 9 g", ["9 g"], id="a list below"),
        ],
    )
    def test_are_made_of_short_lines_that_stand_above_nothing(self, passage, texts):
        assert [piece.text for piece in read(passage)] == texts

    def test_of_wrapped_lines_are_whole_sentences(self):
        (piece,) = read("Two of them at\nopposite walls are better.")

        assert piece.text == "Two of them at opposite walls are better."

    def test_of_rows_without_a_header_borrow_that_of_the_next_part_of_the_table(self):
        passage = "| Aero 4 | 99 EUR |\n\n| Product | Price |\n| --- | --- |\n| Aero 5 | 129 EUR |"

        assert [piece.text for piece in read(passage)] == [
            "Aero 4 — Price: 99 EUR",
            "Aero 5 — Price: 129 EUR",
        ]

    def test_of_code_that_nothing_introduces_are_left_out(self):
        pieces = read("Run this now.\n```\npip install x\n```\nThen restart it.")

        assert [piece.text for piece in pieces] == ["Run this now.", "Then restart it."]

    @pytest.mark.parametrize(
        "passage",
        [
            pytest.param(
                "Run this:\n\n    pip install x\n\n      -q\n\nThen restart.", id="set in"
            ),
            pytest.param(
                "- 1. Run this:\n\n    pip install x\n\n      -q\n\nThen restart.", id="entry"
            ),
            pytest.param(
                "Run this:\n```sh\npip install x\n\n  -q\n```\nThen restart.", id="fenced"
            ),
        ],
    )
    def test_of_code_are_the_words_that_introduce_it(self, passage):
        pieces = read(passage)

        assert [piece.text for piece in pieces] == ["Run this:", "Then restart."]
        assert [piece.code for piece in pieces] == ["pip install x\n\n  -q", ""]

    def test_of_long_code_hold_its_beginning(self):
        (piece,) = read("Set:\n\n" + "\n".join(f"    key_{n}: {n}" for n in range(50)))

        assert piece.code.startswith("key_0: 0\nkey_1: 1\n")
        assert piece.code.endswith("\n…")
        assert piece.code.count("\n") == MOST_CODE_LINES

    def test_of_prose_that_is_set_in_are_sentences(self):
        passage = "    Keep the case shut while the lamp is hot,\n    for it burns. Wait ten min."

        texts = [" ".join(piece.text.split()) for piece in read(passage)]

        assert texts == [
            "Keep the case shut while the lamp is hot, for it burns.",
            "Wait ten min.",
        ]

    def test_of_what_is_set_in_below_an_entry_belong_to_it(self):
        pieces = read("- Press the button\n    for ten seconds.\n- Wait.")

        assert [piece.text for piece in pieces if piece.kind is Kind.ENTRY] == [
            "Press the button for ten seconds.",
            "Wait.",
        ]

    def test_are_no_bare_addresses(self):
        (piece,) = read("https://example.test/a?b=c\n\nSee https://example.test/d for more.")

        assert piece.text == "See https://example.test/d for more."

    def test_of_text_without_full_stops_are_cut(self):
        pieces = read("word " * (LONGEST_PIECE * 2 + 5))

        assert len(pieces) == 3
        assert pieces[0].text.endswith(" …")
        assert pieces[1].text.startswith("… ")

    def test_of_an_endless_source_are_bounded(self):
        assert len(read("A sentence is here. " * 5_000)) == PIECES_PER_SOURCE

    @given(st.text(alphabet="ab1 .:|-#*`\n[]()", max_size=200))
    @settings(max_examples=100, deadline=None)
    def test_of_any_text_hold_no_marker(self, passage):
        for piece in read(passage):
            assert piece.text.strip()
            assert find_markers(piece.text) == []


class TestTables:
    TABLE = "| Model | Price |\n|---|---|\n| A \\| B | 5 EUR |\n| C | |\n"

    def test_are_read_row_by_row(self):
        pieces = read(self.TABLE)

        assert [piece.text for piece in pieces] == ["A | B — Price: 5 EUR", "C"]
        assert {piece.kind for piece in pieces} == {Kind.ROW}

    def test_without_a_header_give_their_cells(self):
        assert [piece.text for piece in read("| A | 5 EUR |")] == ["A; 5 EUR"]

    @pytest.mark.parametrize(
        ("header", "row", "text"),
        [
            (["Name", "Price"], ["A", "5"], "A — Price: 5"),
            (["", "Price"], ["", "5"], "Price: 5"),
            (["Name", "", "Note"], ["A", "5", "Note"], "A — 5; Note"),
            (["Name"], ["A"], "A"),
            ([], ["A", "", "5"], "A; 5"),
        ],
    )
    def test_name_each_cell_by_its_column(self, header, row, text):
        assert row_text(header, row) == text


class TestLists:
    def test_are_a_whole_and_its_entries(self):
        whole, first, second = read("Colours:\n\n- red\n  like fire\n- blue")

        assert whole.text == "Colours:\n- red like fire\n- blue"
        assert whole.kind is Kind.LIST
        assert [first.text, second.text] == ["red like fire", "blue"]
        assert first.context.endswith("Colours")

    def test_of_steps_are_only_a_whole(self):
        (steps,) = read("To reset:\n1. Press it.\n2) Wait.")

        assert steps.text == "To reset:\n1. Press it.\n2. Wait."
        assert steps.kind is Kind.STEPS

    def test_of_steps_may_have_a_bullet_before_the_number(self):
        (steps,) = read("- 1. Press it.\n- 2. Wait.")

        assert steps.text == "1. Press it.\n2. Wait."

    def test_that_are_long_are_only_their_entries(self):
        pieces = read("\n".join(f"- entry number {n} says a lot more" for n in range(40)))

        assert {piece.kind for piece in pieces} == {Kind.ENTRY}

"""Rows as text in which every piece can be understood alone."""

from rag.documents.tables import clean_rows, spread, table_parts


class TestTableParts:
    def test_of_nothing_are_none(self):
        assert list(table_parts([])) == []

    def test_of_a_short_table_are_one_pipe_table(self):
        rows = [["A", "B"], ["1", "x|y"]]

        assert list(table_parts(rows)) == ["| A | B |\n| --- | --- |\n| 1 | x\\|y |"]

    def test_of_a_long_table_each_begin_with_the_header(self):
        rows = [["Product", "Note"], *([f"Aero {n}", "some words about it"] for n in range(40))]

        parts = list(table_parts(rows))

        assert len(parts) > 2
        assert all(part.startswith("| Product | Note |\n| --- | --- |\n| Aero") for part in parts)
        assert sum(part.count("| Aero") for part in parts) == 40

    def test_of_wide_rows_are_records(self):
        long = "many words that describe the thing " * 10
        rows = [["Product", "First", "Second", ""], ["Aero 5", long, "", "loose"]]

        assert list(table_parts(rows)) == [f"- Product: Aero 5; First: {long}; loose"]

    def test_of_one_column_are_plain_lines(self):
        assert list(table_parts([["Notes"], ["one"], ["two"]])) == ["Notes\none\ntwo"]

    def test_of_a_header_alone_are_one_line(self):
        assert list(table_parts([["A", "", "B"]])) == ["A ; B"]


class TestCleanRows:
    def test_makes_rows_equal_and_drops_what_is_empty(self):
        assert clean_rows([["a\nb", "", "c"], ["", "", ""], ["1"]]) == [["a b", "c"], ["1", ""]]


def test_a_cell_over_columns_and_rows_stands_once_in_each_row():
    rows = [[("A", 1, 1), ("B", 1, 1), ("C", 1, 1)], [("x", 1, 1), ("wide", 2, 2)], [("y", 1, 1)]]

    assert spread(rows)[1:] == [["x", "wide", ""], ["y", "wide", ""]]

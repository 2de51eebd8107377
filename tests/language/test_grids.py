"""Where a grid's tables begin: one finder for the text of sheets and for tables that are asked."""

import pytest

from rag.language.grids import grids, headed, joined_name, totals


def names(*rows):
    found = next(grids([(at, list(row)) for at, row in enumerate(rows, start=1)]), None)
    return found and found.names


@pytest.mark.parametrize(
    ("first", "below"),
    [
        (("Region", "2025 Plan", "2026 Plan"), ("North", "450", "512")),
        (("Size", "10 mm", "12 mm"), ("Dry", "20", "35")),
        (("City", "2023", "2024"), ("Rome", "4", "5")),
        (("Part", "Torque", "Pitch"), ("K-1", "20", "1.5")),
    ],
)
def test_a_header_may_begin_with_figures(first, below):
    assert names(first, below, below) == first


@pytest.mark.parametrize(
    "first",
    [("A", "450", "12"), ("North", "10 mm", "12 mm"), ("1.2.2024", "4", "5"), ("A", "12 %", "3 %")],
)
def test_a_first_row_that_says_what_those_below_say_is_no_header(first):
    assert names(first, first, first) == ("Column 1", "Column 2", "Column 3")


def test_a_first_row_with_signs_of_money_is_no_header():
    found = names(("Due in 2025", "$100", "$90"), ("Due in 2026", "80", "70"))

    assert found == ("Column 1", "Column 2", "Column 3")


def test_what_only_notes_something_below_a_table_is_no_row():
    rows = [["Part", "Torque", "Pitch"], ["K-1", "20", "1"], ["K-2", "30", "2"]]
    note = ["Measured dry, at 20 degrees", "", ""]

    (found,) = grids([*enumerate(rows, start=1), (5, note)])

    assert len(found.rows) == 2


def test_tables_side_by_side_are_two():
    rows = [["Part", "Torque", "", "City", "Beds"], ["K-1", "20", "", "Rome", "4"]]

    assert [found.names for found in grids([*enumerate([*rows, rows[1]], start=1)])] == [
        ("Part", "Torque"),
        ("City", "Beds"),
    ]


def test_a_blank_column_within_a_table_parts_nothing():
    assert names(("Part", "", "Torque"), ("K-1", "", "20"), ("K-2", "", "30")) == ("Part", "Torque")


def test_names_over_groups_of_columns_belong_to_each_of_them():
    found = names(
        ("", "Dry", "", "Oiled", ""), ("Size", "Low", "High", "Low", "High"), ("M8", *"1234")
    )

    assert found == ("Size", "Dry Low", "Dry High", "Oiled Low", "Oiled High")


def test_one_table_in_a_text_is_headed_by_the_same_finder():
    assert headed([["Size", "10 mm"], ["Dry", "20"]]) == ([["Size", "10 mm"], ["Dry", "20"]], True)
    bare = [["A", "1", "2"], ["B", "3", "4"]]
    assert headed(bare) == (bare, False)
    assert headed([["Model", "Weight"], ["", "kg"], ["X1", "12"]]) == (
        [["Model", "Weight"], ["", "kg"], ["X1", "12"]],
        True,
    )
    units = [["Model", "Weight", "Length"], ["", "kg", "mm"], ["X1", "12", "300"]]
    assert headed(units) == ([["Model", "Weight (kg)", "Length (mm)"], units[2]], True)


def test_a_row_of_units_belongs_to_the_header():
    found = names(("Model", "Weight", "Length"), ("", "kg", "mm"), ("X1", "12", "300"))

    assert found == ("Model", "Weight (kg)", "Length (mm)")


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        (("Torque (Nm)", "dry"), "Torque (Nm) dry"),
        (("Sales", "Sales"), "Sales"),
        (("Net sales", "sales 2025"), "Net sales 2025"),
        (("", "Size"), "Size"),
    ],
)
def test_a_name_in_several_rows_has_no_word_twice(parts, name):
    assert joined_name(parts) == name


def test_a_header_that_is_repeated_is_no_row():
    head, row = ["Part", "Torque"], ["K-1", "20"]

    (found,) = grids([(1, head), (2, row), (3, head), (4, row)])

    assert [number for number, _row in found.rows] == [2, 4]


@pytest.mark.parametrize(
    "label", ["Total", "Kiel total", "Subtotal Kiel", "Zwischensumme", "Summe Bonn", "Total Lyon"]
)
def test_a_row_that_adds_up_others_says_so_before_or_behind(label):
    assert totals([("Jan", "10"), ("Feb", "20"), (label, "30")]) == [False, False, True]


def test_of_many_rows_that_say_so_only_those_count_that_add_up():
    rows = [("Total assets", "90"), ("Total debts", "40"), ("Total staff", "7"), ("Cash", "5")]

    assert totals([*rows, ("Total", "142")]) == [False, False, False, False, True]


FRUIT = [("Mele", "10"), ("Pere", "12"), ("Frutta", "22"), ("Pane", "9"), ("Totale", "31")]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (FRUIT, [False, False, True, False, True]),  # of a block, and of all
        ([*zip("ABCDE", ("10", "12", "9", "17", "30"), strict=True), ("Razem", "78")],
         [False] * 5 + [True]),
        ([("Elma", "A", "10"), ("Armut", "B", "5"), ("Ekmek", "C", "9"), ("Toplam", "", "24")],
         [False, False, False, True]),
        ([("Huur", "1000"), ("Licht", "200"), ("Totaal", "1200")], [False, False, True]),
        ([("Norte", "10"), ("Sur", "12"), ("Suma parcial", "22"), ("Este", "9"), ("Oeste", "11"),
          ("Suma parcial", "20")], [False, False, True, False, False, True]),
        ([("北京", "10"), ("上海", "12"), ("小计", "22"), ("广州", "9"), ("Total", "31")],
         [False, False, True, False, True]),
        ([], []),
    ],
)  # fmt: skip
def test_what_adds_up_others_is_a_total_in_any_language(rows, expected):
    assert totals(rows) == expected


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([("A", "10"), ("B", "20"), ("C", "30"), ("D", "45")], "one sum, not the last"),
        ([("A", "10"), ("B", "20"), ("C", "30")], "the sum of two"),
        ([("A", "1"), ("B", "2"), ("C", "3"), ("D", "6")], "small figures"),
        ([("A", "x", "10"), ("B", "y", "5"), ("C", "z", "9"), ("D", "w", "24")],
         "as much text as others"),
        ([("", ""), ("A", "10"), ("", "")], "blank rows"),
        ([*zip("ABCD", ("12", "14", "17", "19"), ("50", "50", "100", "100"), strict=True)],
         "a figure beside it is no sum, and what is said twice is none"),
        ([*zip("ABCDE", ("12", "12", "24", "24", "36"), strict=True)], "round figures, rising"),
        ([*zip("ABCDEFGH", ("25", "15", "40", "10", "30", "20", "60", "35"), strict=True)],
         "parts that add up, and no whole"),
        ([("Java", "10"), ("Sumatra", "10"), ("Summer", "10"), ("Toto", "30")],
         "names that begin as totals do"),
        ([("Sigma Rosso", "Etna", "500"), ("Somma Bianco", "Vesuvio", "500"),
          ("Zeta", "Puglia", "50"), ("Gamma", "Alba", "12")], "one equal row above"),
        ([("Excess", "500"), ("Sum insured", "500"), ("Term", "7")], "a label of its own"),
        ([("Tycoon", "20"), ("Racer", "30"), ("Totalmania", "50"), ("Golf", "7")], "one word"),
        ([("Ada", "200"), ("Bo", "301"), ("Summa Cum", "500"), ("Cy", "7")], "nearly a sum"),
        ([("Ada", "3", "20"), ("Bo", "4", "30"), ("Summa Cum", "9", "50"), ("Cy", "1", "7")],
         "a sum in one column of two"),
        ([("Ada", "2"), ("Bo", "3"), ("Summa Cum", "5"), ("Cy", "7")], "a small sum by chance"),
        ([*zip("ABCD", ("300", "-200", "100", "100"), strict=True)], "changes up and down"),
    ],
)  # fmt: skip
def test_what_may_be_a_sum_by_chance_is_a_row_like_any_other(rows, why):
    assert not any(totals(rows))


@pytest.mark.parametrize(
    ("rows", "has_header"),
    [
        ([("Length", "2.4 m"), ("Weight", "18 kg"), ("Colour", "grey")], False),
        ([("New Year", "January 1"), ("Labor Day", "First Monday"), ("Noël", "25 déc.")], False),
        ([("Neujahr", "1. Januar"), ("Weihnachten", "25. Dezember")], False),
        ([("Monday", "9:00–17:00"), ("Tuesday", "9:00–12:00"), ("Sunday", "closed")], False),
        ([("Holiday", "Date"), ("New Year", "January 1"), ("Christmas", "December 25")], True),
        ([("Region", "March"), ("Kiel", "450"), ("Bonn", "380")], True),
        ([("Length (m)", "2.4"), ("Weight (kg)", "18"), ("Colour", "grey")], False),
        ([("North", "41"), ("South", "12")], False),
        ([("Property", "Value"), ("Length", "2.4 m"), ("Weight", "18 kg")], True),
        ([("Item", "31 Dec 2025", "31 Dec 2024"), ("Cash", "5", "6"), ("Debt", "7", "8")], True),
        ([("Crew", "1", "2", "3"), ("Quay", "14", "$ —", "9"), ("Yard", "8", "7", "5")], True),
        ([("Quay", "14", "$ —", "9"), ("Yard", "8", "7", "5")], False),
        ([("Country", "2019"), ("Togo", "5"), ("Peru", "6")], True),
        ([("Grade", "10 mm"), ("Dry", "31"), ("Oiled", "22")], True),
    ],
)
def test_names_with_their_values_have_no_header(rows, has_header):
    assert headed(rows)[1] is has_header

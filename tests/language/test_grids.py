"""Where a grid's tables begin: one finder for the text of sheets and for tables that are asked."""

import pytest

from rag.language.grids import grids, joined_name, totals


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


def test_a_row_of_units_belongs_to_the_header():
    found = names(("Model", "Weight", "Length"), ("", "kg", "mm"), ("X1", "12", "300"))

    assert found == ("Model", "Weight (kg)", "Length (mm)")


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        (("Torque (Nm)", "dry"), "Torque dry (Nm)"),
        (("Torque", "oiled (Nm)"), "Torque oiled (Nm)"),
        (("Sales", "Sales"), "Sales"),
        (("Costs (EUR)", "2025"), "Costs 2025 (EUR)"),
        (("", "Size"), "Size"),
        (("Range (2025)", "low"), "Range (2025) low"),
    ],
)
def test_a_name_in_several_rows_keeps_its_unit_at_the_end(parts, name):
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

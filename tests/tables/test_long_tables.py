"""What a table's length decides is how it is read, and nothing of what is read."""

import csv
import io

import pytest

from rag.records import RawTable
from rag.tables.typed_tables import SHORT, typed_tables

SPELLINGS = [
    *("01067", "0301234567", "00", "-01", "-007", "00.5", "01.02", "0049.1"),
    *("0", "-0", "0.0", "-0.0", "5", "+5", "1e5", "1E-3", ".5", "-.5", "5.", "-", ".", "-."),
    *("0.5", "1.5", "1.50", "0.125", "1,5", "nan", "inf", "1_000", "\u0661"),
    *("1" * length for length in (15, 16, 18, 19, 20)),
    *(str(2**63 - 1), str(2**63), str(-(2**63) - 1), "1234567890123456.5"),
]


def column_of(cells, count):
    written = io.StringIO()
    rows = [
        ["Key", "Value"],
        *([f"S-{row_number}", cells[row_number % len(cells)]] for row_number in range(count)),
    ]
    csv.writer(written, lineterminator="\n").writerows(
        [row_number, *row] for row_number, row in enumerate(rows, 1)
    )
    (table,) = typed_tables(RawTable("t", "t", written.getvalue(), 2, count + 1))
    return table.columns[1]


@pytest.mark.parametrize("others", [(), ("4109",), ("1.5",), ("",)], ids=str)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_long_table_has_the_types_of_a_short_one(spelling, others):
    short, long = (column_of([spelling, *others], count) for count in (60, SHORT + 200))

    assert long.type is short.type

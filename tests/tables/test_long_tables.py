"""What a table's length decides is how it is read, and nothing of what is read."""

import csv
import io

import pytest

from rag.documents.files import IncomingFile
from rag.records import RawTable
from rag.runtime.progress import Stage
from rag.tables import typed_tables as typed_tables_module
from rag.tables.typed_tables import SHORT, typed_tables
from tests.applications import application_over

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


def with_long_cell(lines):
    cell = "\n".join(["0123456789" * 10] * lines)
    rows = [f"S-{row_number},{row_number}" for row_number in range(1_500)]
    return "\n".join(["Key,Note", *rows[:700], f'S-x,"{cell}"', *rows[700:]]) + "\n"


def raw_with(cell):
    rows = "".join(f"{row_number},S-{row_number},{row_number}\n" for row_number in range(2, 1_500))
    return RawTable("t", "t", f'1,Key,Note\n{rows}1500,S-x,"{cell}"\n', 2, 1_500)


@pytest.mark.parametrize("lines", [100, 25_000, 100_000])
def test_a_cell_of_many_lines_is_read(lines):
    (table,) = typed_tables(raw_with("\n".join(['""' + "x" * 98] * lines)))

    assert table.row_count == 1_499


def test_what_the_database_refuses_is_a_fault_without_the_rows(monkeypatch):
    monkeypatch.setattr(typed_tables_module, "LONGEST_ROW", 2**21)

    with pytest.raises(ValueError, match=r"^the database refuses the rows \(\w+\)$"):
        list(typed_tables(raw_with("\n".join(["x" * 99] * 50_000))))


def test_a_table_that_cannot_be_read_stops_no_later_file(tmp_path, monkeypatch):
    texts = {"long.csv": with_long_cell(25_000), "note.md": "# Note\n\nThe Aero weighs 5 kg.\n"}
    files = [IncomingFile.from_bytes(name, text.encode()) for name, text in texts.items()]
    monkeypatch.setattr(typed_tables_module, "LONGEST_ROW", 2**21)

    with application_over(tmp_path, {}) as application:
        reports = list(application.ingestion.ingest(files))

    ends = {report.name: report.stage for report in reports if report.is_final}
    assert ends == {"long.csv": Stage.FAILED, "note.md": Stage.FINISHED}

"""Tables as people really keep them."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rag.documents.files import IncomingFile
from rag.documents.limits import LoadLimits
from rag.documents.readers.registry import load
from rag.documents.tables import raw_table
from rag.errors import TooLarge
from rag.records import EVERYTHING, ColumnType
from rag.settings import Settings
from rag.tables.plan import MOST_COLUMNS
from rag.tables.typed_tables import typed_tables
from rag.wiring.components import load_limits
from tests import applications
from tests.applications import application_of
from tests.documents import office_files


def tables_of(name, data):
    parsed = load(name, data if isinstance(data, bytes) else data.encode(), limits=LoadLimits())
    return [stored(typed) for raw in parsed.tables for typed in typed_tables(raw)]


@cache
def database():
    """Opening one takes longer than reading a file."""
    return duckdb.connect()


def stored(typed):
    """The table with what its file holds."""
    with TemporaryDirectory() as folder, database().cursor() as cursor:
        path = Path(folder) / "rows.parquet"
        typed.write(path)
        found = cursor.execute("FROM read_parquet(?)", [str(path)])
        columns = map(list, zip(*found.fetchall(), strict=True))
        data = dict(zip([each[0] for each in found.description], columns, strict=True))
    return SimpleNamespace(columns=typed.columns, row_count=typed.row_count, data=data)


def only(name, data):
    (typed,) = tables_of(name, data)
    return typed


def in_a_gigabyte(settings):
    return replace(load_limits(settings), max_memory_bytes=1_024 << 20)


def values(typed, at):
    return typed.data[f"c{at}"]


@settings(deadline=None)  # a file is written and read for each
@given(st.lists(st.lists(st.text(), min_size=2, max_size=3), min_size=2, max_size=4))
@example([["Name", "Price"], ["A \rsecond line", "1"], ['"', ","]])
def test_whatever_stands_in_a_cell_the_rows_can_be_read(rows):
    raw = raw_table("a", "", list(enumerate(rows, 1)))

    assert all(stored(typed).row_count < len(rows) + 1 for typed in typed_tables(raw))


def kinds(typed):
    return [(column.name, column.type.value, column.unit) for column in typed.columns]


class TestCells:
    @pytest.mark.parametrize(
        ("cells", "expected"),
        [
            (["1.234,56", "12,50", "7"], [1234.56, 12.5, 7]),
            (["1,234.56", "12.50", "7"], [1234.56, 12.5, 7]),
            (["1.234,56", "1,234.56", "9"], [1234.56, 1234.56, 9]),
            (["1,234", "2,345.5", "1,000"], [1234, 2345.5, 1000]),
            (["1.234", "12,5", "2.000"], [1234, 12.5, 2000]),
            (["€ 12.00", "€3.50", "(4.00)"], [12, 3.5, -4]),
            (["12.00 EUR", "3.50 EUR", "-4.00 EUR"], [12, 3.5, -4]),
            (["12%", "3.5 %", "-1%"], [12, 3.5, -1]),
            (["59.51 m", "62.86 m", "60 m"], [59.51, 62.86, 60]),
            (["1 234", "12\u00a0345", "7"], [1234, 12345, 7]),
            (["12.345 €", "1.200 €", "950 €"], [12345, 1200, 950]),
            (["12.345", "1.2", "950"], [12.345, 1.2, 950]),
            (["n/a", "5", "–"], [None, 5, None]),
            (["1st", "2nd", "11th"], [1, 2, 11]),
        ],
    )
    def test_become_numbers_by_either_convention(self, cells, expected):
        rows = "\n".join(f'{at}x,"{cell}"' for at, cell in enumerate(cells))

        typed = only("a.csv", f"Name,Figure\n{rows}\n")

        assert typed.columns[1].type is ColumnType.NUMBER
        assert values(typed, 1) == pytest.approx(expected)

    @pytest.mark.parametrize(
        ("cells", "expected"),
        [
            (["13/04/2025", "01/02/2025"], ["2025-04-13", "2025-02-01"]),
            (["04/13/2025", "02/01/2025"], ["2025-04-13", "2025-02-01"]),
            (["2025-04-13", "2025-02-01"], ["2025-04-13", "2025-02-01"]),
            (["13.4.2025", "1.2.25"], ["2025-04-13", "2025-02-01"]),
            (["April 13, 2025", "1 February 2025"], ["2025-04-13", "2025-02-01"]),
        ],
    )
    def test_become_dates_in_any_order(self, cells, expected):
        rows = "\n".join(f'{at}x,"{cell}"' for at, cell in enumerate(cells))

        typed = only("a.csv", f"Name,Day\n{rows}\n")

        assert [value.isoformat() for value in values(typed, 1)] == expected

    def test_of_an_open_order_of_day_and_month_are_marked(self):
        typed = only("a.csv", "Name,Day\na,03/04/2025\nb,05/06/2025\n")

        assert "day before month" in typed.columns[1].note

    def test_of_days_beside_moments_are_moments(self):
        typed = only("a.csv", "Name,Seen\na,2025-01-02 00:00\nb,2025-01-02 13:30\nc,2025-01-03\n")

        assert [value.isoformat(" ") for value in values(typed, 1)] == [
            "2025-01-02 00:00:00", "2025-01-02 13:30:00", "2025-01-03 00:00:00",
        ]  # fmt: skip

    def test_of_codes_stay_texts(self):
        typed = only("a.csv", "Name,Zip\na,00501\nb,10115\n")

        assert values(typed, 1) == ["00501", "10115"]

    def test_of_mixed_kinds_stay_texts(self):
        typed = only("a.csv", "Name,Note\na,5\nb,five\nc,about 6\nd,7 or 8\n")

        assert typed.columns[1].type is ColumnType.TEXT

    def test_that_look_like_formulas_are_texts(self):
        typed = only("a.csv", "Name,Value\n=cmd(),1\n@SUM(A1),2\n")

        assert values(typed, 0) == ["=cmd()", "@SUM(A1)"]


class TestFiles:
    @pytest.mark.parametrize(
        "data",
        [
            "\ufeffName;Price\nA;1,50\nB;2,50\n".encode(),
            b"Name\tPrice\nA\t1.50\nB\t2.50\n",
            "Name,Price\nA,1.50\nB,2.50\n".encode("utf-16"),
            b"Name|Price\r\nA|1.50\r\nB|2.50\r\n",
        ],
    )
    def test_of_any_encoding_and_separator_are_the_same_table(self, data):
        typed = only("a.csv", data)

        assert kinds(typed) == [("Name", "text", ""), ("Price", "number", "")]
        assert values(typed, 1) == [1.5, 2.5]

    def test_may_be_ragged_and_have_line_breaks_in_cells(self):
        typed = only("a.csv", 'Name,Note,Price\nA,"two\nlines",1\nB\nC,x,3,extra\n')

        assert typed.row_count == 3
        assert values(typed, 2) == [1, None, 3]

    def test_of_a_page_may_have_a_carriage_return_in_a_cell(self):
        typed = only("a.md", "| Test | By |\n|-|-|\n| Skip &#13;link | WAVE |\n| Zoom | hand |\n")

        assert values(typed, 0) == ["Skip \nlink", "Zoom"]

    def test_may_repeat_and_leave_out_headers(self):
        typed = only("a.csv", "Name,Price,Price,\nA,1,2,x\nB,3,4,y\n")

        names = [column.name for column in typed.columns]
        assert names == ["Name", "Price", "Price (2)", "Column 4"]

    def test_may_have_their_header_in_a_later_row(self):
        text = "Price list 2026\n\nPrices in EUR\nName,Price,Stock\nA,1.5,3\nB,2.5,4\n"

        typed = only("a.csv", text)

        assert [column.name for column in typed.columns] == ["Name", "Price", "Stock"]
        assert typed.data["row"] == [5, 6]

    def test_may_have_hundreds_of_columns(self):
        header = ",".join(f"c{i}" for i in range(MOST_COLUMNS))
        row = ",".join(str(i) for i in range(MOST_COLUMNS))

        typed = only("a.csv", f"{header}\n{row}\n{row}\n")

        assert len(typed.columns) == MOST_COLUMNS

    def test_may_hold_sql_in_names_and_cells(self):
        typed = only("a.csv", '"x""; DROP TABLE data; --",n\n"\'); DELETE FROM t",1\nb,2\n')

        assert typed.columns[0].name == 'x"; DROP TABLE data; --'

    def test_totals_are_kept_out_of_the_rows(self):
        typed = only("a.csv", "Name,Price\nA,1\nB,2\nTotal,3\n")

        assert typed.row_count == 2
        assert typed.data["is_total"] == [False, False, True]

    def test_footnotes_below_a_gap_are_no_rows(self):
        text = "Pier,Berths,Q1\nNorth,40,82\nWest,18,37\n\na: without showers,,\nb: by day,,\n"

        assert only("a.csv", text).data["row"] == [2, 3]

    def test_a_sparse_line_above_the_header_says_what_its_columns_belong_to(self):
        text = "Pier,Berths,,Income,,\n,All,Let,Q1,Q2,Master\nNorth,40,33,82,15,Lunde\n" * 2

        names = [each.name for each in only("a.csv", text[: len(text) // 2]).columns]

        assert names == [
            "Pier", "Berths All", "Berths Let", "Income Q1", "Income Q2", "Income Master",
        ]  # fmt: skip

    def test_what_could_not_be_read_as_a_value_is_told(self):
        rows = "".join(f"Club {fee},£{fee}\n" for fee in range(9))

        fee = only("a.csv", f"Club,Fee\n{rows}Choir,free\n").columns[1]

        assert fee.note == "“free” could not be read as a value and counts nowhere"

    def test_several_tables_on_a_sheet_are_several(self):
        rows = [
            ["Name", "Price"], ["A", 1], ["B", 2], [], ["City", "People"], ["Rome", 3], ["Oslo", 4],
        ]  # fmt: skip
        typed = tables_of("a.xlsx", office_files.xlsx({"Sheet": rows}))

        assert [[c.name for c in t.columns] for t in typed] == [
            ["Name", "Price"],
            ["City", "People"],
        ]

    def test_of_too_many_cells_are_refused(self):
        with pytest.raises(TooLarge):
            load("a.csv", b"a,b\n" * 20, limits=LoadLimits(max_cells=10))

    def test_long_ones_are_read_alike(self):
        rows = "".join(
            f'P{i},"{i * 1000:,}.50",2025-01-{i % 28 + 1:02}\n' for i in range(1, 21_000)
        )

        typed = only("a.csv", "Name,Price,Day\n" + rows)

        assert [column.type.value for column in typed.columns] == ["text", "number", "date"]
        assert values(typed, 1)[:2] == [1000.5, 2000.5]
        assert typed.row_count == 20_999

    @pytest.mark.parametrize("count", [50_000, pytest.param(150_000, marks=pytest.mark.slow)])
    def test_of_many_rows_are_read_at_once(self, count):
        rows = "".join(f"P{i % 100},{i}\n" for i in range(count))

        typed = only("a.csv", "Name,Units\n" + rows)

        assert typed.row_count == count
        assert values(typed, 1)[-1] == count - 1

    def test_of_one_huge_field_are_refused_like_any_file_over_the_limit(self):
        """A gigabyte has more bytes than a file may have; here the limit is lower instead."""
        with pytest.raises(TooLarge):
            load("a.csv", b'Name\n"' + b"x" * 30_000 + b'"\n', limits=LoadLimits(max_bytes=20_000))

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("most_mb", "has_mb", "reason"),
        [(50, 51, "limit"), (2_000, 342, "MiB of memory")],
        ids=["limit of a file", "limit of memory"],
    )
    def test_of_a_field_that_is_too_long_are_refused_and_the_next_file_is_read(
        self, tmp_path, monkeypatch, most_mb, has_mb, reason
    ):
        """A third of the reading process's memory, as a gigabyte is of what it has by default."""
        monkeypatch.setattr(applications, "load_limits", in_a_gigabyte)
        path = tmp_path / "huge.csv"
        with path.open("wb") as file:
            file.write(b'Name,Note\nA,"')
            for _ in range(has_mb):
                file.write(b"x" * 1_048_576)
            file.write(b'"\n')
        settings = {"data_dir": tmp_path / "data", "documents": {"max_file_mb": most_mb}}
        application = application_of(Settings.model_validate(settings))
        small = IncomingFile.from_bytes("small.csv", b"Name,Units\nA,1\nB,2\n")

        reports = application.ingestion.ingest(
            [IncomingFile.from_path(path, name="huge.csv"), small]
        )
        ended = {each.name: each for each in reports}
        (table,) = application.tables.tables(EVERYTHING)
        application.stop()

        assert "huge.csv" in ended["huge.csv"].reason
        assert reason in ended["huge.csv"].reason
        assert (table.document_name, table.row_count) == ("small.csv", 2)

    def test_of_one_long_field_are_read(self):
        typed = only("a.csv", f'Name,Note,Price\nA,"{"x" * 1_000_000}",1\nB,y,2\n')

        assert values(typed, 2) == [1, 2]

    def test_of_formulas_without_results_leave_these_cells_of_figures_blank(self):
        prices = [[f"N{at}", at] for at in range(20)]
        data = office_files.xlsx({"Sum": [["Name", "Price"], *prices, ["A", "=B2*2"]]})

        typed = only("a.xlsx", data)

        assert kinds(typed) == [("Name", "text", ""), ("Price", "number", "")]
        assert values(typed, 1) == [*range(20), None]
        report = load("a.xlsx", data, limits=LoadLimits()).report
        assert report.left_out == ("sheet Sum: 1 formula without a stored result (B22)",)

    def test_of_a_short_column_with_one_formula_stay_figures_that_nobody_adds_up(self, tmp_path):
        rows = [["Name", "Price", "Stock"], ["A", 100, 4], ["B", 200, 9], ["C", "=B2*1.19", 3]]
        application = application_of(Settings(data_dir=tmp_path))
        data = office_files.xlsx({"Sum": rows})
        list(application.ingestion.ingest([IncomingFile.from_bytes("a.xlsx", data)]))
        questions = ("What is the total price?", "Which name has the highest price?")
        price, most, stock = (
            application.table_answers.library.understand(question, EVERYTHING)[0]
            for question in (*questions, "What is the total stock?")
        )
        (table,) = application.tables.tables(EVERYTHING)
        application.stop()

        assert [each.is_sure for each in (price, most, stock)] == [False, False, True]
        assert (table.columns[1].type, table.columns[1].missing) == (ColumnType.NUMBER, 1)
        assert table.columns[1].note == (
            "the file holds no result of “=B2*1.19”, so it is missing here"
        )

    def test_of_a_long_column_are_not_added_up_either_where_no_example_is_a_formula(self, tmp_path):
        rows = [["Name", "Price"], *([f"N{at}", at + 100] for at in range(60)), ["Z", "=B2*2"]]
        application = application_of(Settings(data_dir=tmp_path))
        data = office_files.xlsx({"Sum": rows})
        list(application.ingestion.ingest([IncomingFile.from_bytes("a.xlsx", data)]))
        total, *_rest = application.table_answers.library.understand(
            "What is the total price?", EVERYTHING
        )
        application.stop()

        assert not total.is_sure

    @pytest.mark.parametrize("lengths", [(1.234, 2.5, 10.125, 7.0), (1.234, 10.125, 7.0)])
    def test_are_figures_of_the_file_where_it_holds_them_as_such(self, lengths):
        rows = [["Name", "Length"], *(["ABCD"[at], length] for at, length in enumerate(lengths))]
        records = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]

        for typed in (
            only("a.xlsx", office_files.xlsx({"S": rows})),
            only("a.json", json.dumps(records)),
        ):
            assert values(typed, 1) == list(lengths)

    def test_that_somebody_wrote_as_texts_are_none_of_the_file(self):
        rows = [["Name", "Length"], ["A", "1.234"], ["B", "2.345"]]

        assert kinds(only("a.xlsx", office_files.xlsx({"S": rows})))[1] == ("Length", "text", "")

    def test_of_nothing_but_formulas_are_texts_and_told(self):
        sheet = [["Name", "Price", "Stock"], ["A", "=1+1", 2], ["B", "=B2*2", 3], ["C", "=B3", 4]]
        data = office_files.xlsx({"Sum": sheet})

        typed = only("a.xlsx", data)

        assert [column.type.value for column in typed.columns] == ["text", "text", "number"]
        assert values(typed, 1) == ["=1+1", "=B2*2", "=B3"]
        assert values(typed, 2) == [2, 3, 4]
        report = load("a.xlsx", data, limits=LoadLimits()).report
        assert report.left_out == ("sheet Sum: 3 formulas without a stored result (B2, B3, B4)",)

"""A plan is bounded by name before anything is made of it, and its SQL grows as it does."""

from contextlib import suppress
from dataclasses import replace
from itertools import count
from time import process_time

import pytest

from rag.errors import OverBudget, TooLarge
from rag.records import EVERYTHING, ColumnType, RawTable, Table, TableColumn
from rag.runtime import budget
from rag.runtime.budget import planning, spend
from rag.tables.engine import Sql
from rag.tables.plan import DEEPEST, MOST, MOST_COLUMNS, Filter, Op, Order, TablePlan, plan_from
from rag.tables.typed_tables import typed_tables
from tests.applications import app_of, application_over

COLUMNS = tuple(TableColumn(f"C{at}", ColumnType.NUMBER) for at in range(5))
TABLE = Table("t", "d", "d.csv", "D", 0, "D", "", 10, COLUMNS)
CONDITION = {"column": "C1", "op": "above", "values": [1]}


def nested(depth):
    plan = {"table": "t"}
    for _ in range(depth):
        plan = {"table": "t", "among": plan}
    return plan


def test_a_table_that_is_called_as_its_document_is_shown_once():
    prices = replace(TABLE, name="prices", document_title="Prices 2026")

    assert prices.label == "Prices 2026"
    assert replace(prices, document_title="Handbook").label == "prices (Handbook)"


def test_columns_that_put_rows_in_order_are_compared():
    plan = TablePlan("t", (Filter("C1", Op.IS, (1,)),), order=(Order("C2"),))

    assert plan.compared == {"C2"}


class TestWhatOnePlanMayHold:
    @pytest.mark.parametrize(
        ("name", "held"),
        [
            ("filters", [CONDITION] * 300),
            ("group", ["C1"] * 20_000),
            ("measures", [{"kind": "count"}] * 100),
            ("order", [{"by": "C1"}] * 100),
            ("columns", ["C1"] * 20_000),
            ("each", ["C1"] * 100),
        ],
    )
    def test_more_is_refused_by_its_name_with_both_numbers(self, name, held):
        with pytest.raises(TooLarge, match=rf"{len(held):,} {name}; at most {MOST[name]:,} are"):
            plan_from({"table": "t", name: held})

    def test_values_of_one_condition_are_counted(self):
        condition = CONDITION | {"op": "is", "values": list(range(20_000))}

        with pytest.raises(TooLarge, match="20,000 values; at most 1,000"):
            plan_from({"table": "t", "filters": [condition]})

    def test_values_of_all_conditions_are_counted_together(self):
        condition = CONDITION | {"op": "is", "values": list(range(1_000))}

        with pytest.raises(TooLarge, match="more than 3,000 entries"):
            plan_from({"table": "t", "filters": [condition] * 5})

    @pytest.mark.parametrize("depth", [DEEPEST, 900])
    def test_nesting_has_an_end(self, depth):
        with pytest.raises(TooLarge, match="nested deeper"):
            plan_from(nested(depth))

    def test_a_long_text_is_refused(self):
        with pytest.raises(TooLarge, match=r"1,000,000 characters; at most 2,000"):
            plan_from({"table": "t", "filters": [CONDITION | {"values": ["x" * 1_000_000]}]})

    def test_a_full_plan_is_taken(self):
        plan = plan_from({"filters": [CONDITION] * 50, "group": ["C1"] * 8} | nested(3))

        assert len(plan.filters) == 50


def test_a_grid_that_is_far_too_wide_is_no_table():
    def grid(width):
        cells = ",".join(["1", *map(str, range(width))])
        names = ",".join(["1", *(f"C{at}" for at in range(width))])
        return RawTable("wide", "wide", f"{names}\n{cells}\n{cells}\n", width, 3)

    assert len(list(typed_tables(grid(300)))) == 1
    assert list(typed_tables(grid(30_000))) == []


class TestItsSql:
    @pytest.mark.parametrize("count", [300, 2_000])
    def test_is_written_however_many_conditions_there_are(self, count):
        plan = TablePlan("t", tuple(Filter("C1", Op.MORE, (at,)) for at in range(count)))

        assert Sql(TABLE).query(plan).sql(dialect="duckdb").count(" > ") == count

    @pytest.mark.slow
    def test_costs_as_much_for_each_condition_of_many_as_of_few(self):
        def seconds(count):
            conditions = tuple(Filter("C1", Op.HAS, (str(at), "x")) for at in range(count))
            began = process_time()
            Sql(TABLE).query(TablePlan("t", conditions)).sql(dialect="duckdb")
            return process_time() - began

        seconds(100)
        few, many = min(seconds(200) for _ in range(3)), min(seconds(3_200) for _ in range(2))

        assert many < 16 * 3 * few

    def test_of_a_search_in_rows_looks_at_each_column_once(self):
        written = Sql(TABLE).stretch(0, 10, " ".join(map(str, range(50)))).sql(dialect="duckdb")

        assert written.count("CONTAINS(") == 50


HARD = "[1]" * 600  # each figure stands in every column


def wide(width):
    names = ",".join(f"Part {at}" for at in range(width))
    rows = "\n".join(",".join(f"{at * row} of {row}" for at in range(width)) for row in range(30))
    return f"{names}\n{rows}\n"


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    files = {f"wide-{at}.csv": wide(MOST_COLUMNS) for at in range(2)}
    with application_over(tmp_path_factory.mktemp("data"), files) as made:
        yield made


@pytest.mark.slow
class TestTheWidestTable:
    def test_is_shown_searched_and_known_by_its_values(self, application):
        library = application.table_answers.library
        table = library.store.tables(EVERYTHING)[0]

        assert len(table.columns) == MOST_COLUMNS
        assert len(library.rows(table, 0, 20).rows) == 20
        assert len(library.rows(table, 0, 20, "3 of 3").rows) > 0
        assert len(library.rows(table, 0, 20, "nothing such").rows) == 0
        assert library.words(table).names

    def test_is_planned_over_in_a_few_seconds_whatever_is_asked(self, application):
        began = process_time()
        with suppress(OverBudget), planning():
            application.table_answers.library.understand(HARD, EVERYTHING)

        assert process_time() - began < 10


class TestPlanningThatTakesTooLong:
    QUESTION = "What is the price of the Aero 5?"

    @pytest.fixture
    def client(self, tmp_path, monkeypatch):
        def endless(*_asked, **_options):
            for _ in count():
                spend()

        files = {"prices.csv": "Product,Price\nAero 5,100\nAero 6,200\n"}
        monkeypatch.setattr(budget, "PLANNING_SECONDS", 0.05)
        with application_over(tmp_path, files) as application:
            monkeypatch.setattr(application.table_answers.library, "understand", endless)
            yield app_of(application).test_client()

    def test_is_refused_where_a_table_was_asked(self, client):
        told = client.post("/api/v1/tables/query", json={"question": self.QUESTION})

        assert told.status_code == 413
        assert "at most 0.05" in told.get_json()["detail"]

    def test_leaves_a_question_in_a_conversation_to_the_passages(self, client):
        session = client.post("/api/v1/sessions", json={}).get_json()["id"]
        path = f"/api/v1/sessions/{session}/messages"

        told = client.post(path, json={"content": self.QUESTION})

        assert told.status_code == 200
        assert "Aero 5" in told.get_json()["content"]

"""With a model: it plans, the table gives the figures."""

import json
from dataclasses import fields

import pytest

from rag.documents.files import IncomingFile
from rag.errors import ModelUnavailable
from rag.records import EVERYTHING
from rag.settings import Settings
from rag.tables.answers import TableAnswers
from rag.tables.library import RULES, ModelPlanner
from rag.tables.plan import Filter, Key, Measure, Order, Step, TablePlan
from tests.applications import application_of
from tests.fakes import ScriptedModel

SALES = "Product,Region,Revenue\nAero 5,North,100\nAero 6,South,200\nAero 7,South,50\n"
QUESTION = "Which region flourished with the most Revenue?"
PLAN = {
    "group": [{"column": "Region"}],
    "measures": [{"kind": "sum", "column": "Revenue"}],
    "order": [{"by": "measure 1", "descending": True}],
    "limit": 1,
}


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    application = application_of(Settings(data_dir=tmp_path_factory.mktemp("data")))
    list(application.ingestion.ingest([IncomingFile.from_bytes("sales.csv", SALES.encode())]))
    yield application
    application.stop()


@pytest.fixture
def asked(application):
    def asked(*replies):
        model = ScriptedModel(*replies)
        library = application.table_answers.library
        answers = TableAnswers(library, ModelPlanner(model, library).result)
        return answers.ask(QUESTION, EVERYTHING), model

    return asked


def reply(**given):
    return json.dumps({"table": "T1", **given})


class TestAModelThatPlans:
    @pytest.mark.parametrize("kind", [TablePlan, Filter, Key, Measure, Order, Step])
    def test_is_told_of_every_field_of_a_plan(self, kind):
        assert [each.name for each in fields(kind) if f'"{each.name}"' not in RULES] == []

    def test_may_use_those_that_are_rarely_needed(self, asked):
        inner = {"column": "Revenue", "op": "above", "value": 100}
        two = {"group": ["Region"], "measures": [{"kind": "sum", "column": "Revenue"}], "limit": 1,
               "filters": [{"column": "measure 1", "op": "above", "values": [150]}]}  # fmt: skip
        plan = {"filters": [inner], "columns": ["Product"], "among": two}

        assert asked(reply(plan=plan))[0].rows == (("Aero 6",),)

    def test_gets_its_figures_from_the_table(self, asked):
        result, model = asked(f"Sure:\n```json\n{reply(plan=PLAN)}\n```")

        assert result.rows == (("South", 250),)
        assert '"Revenue" (number)' in model.requests[0].messages[-1].content

    def test_may_write_sql_where_a_plan_cannot_say_it(self, asked):
        gap = 'max("Revenue") - min("Revenue")'
        sql = f'SELECT "Region", {gap} FROM rows GROUP BY 1 ORDER BY 1'

        assert asked(reply(sql=sql))[0].rows == (("North", 0), ("South", 150))

    @pytest.mark.parametrize(
        ("sql", "behind", "of_each"),
        [
            ('SELECT sum("Revenue") FROM rows WHERE "Revenue" > 60', (2, 3), [()]),
            ('SELECT "Region", sum(1) FROM rows GROUP BY 1 ORDER BY 1', (2, 3, 4), [(2,), (3, 4)]),
            ('SELECT "Region" AS r, 1 FROM rows GROUP BY r ORDER BY r', (2, 3, 4), [(2,), (3, 4)]),
            ('SELECT "Product" FROM rows ORDER BY "Revenue" DESC LIMIT 1', (3,), [()]),
            ('WITH b AS (SELECT * FROM rows WHERE "Revenue" < 201 AND "Region" = \'South\') '
             'SELECT max("Revenue") FROM b',
             (3, 4), [()]),
            ('SELECT max(a."Revenue" - b."Revenue") FROM rows a JOIN rows b ON a."Region" = '
             'b."Region" AND a."Product" < b."Product"', (3, 4), [()]),
        ],
    )  # fmt: skip
    def test_shows_the_rows_behind_its_figures(self, application, asked, sql, behind, of_each):
        result, _ = asked(reply(sql=sql))

        library = application.table_answers.library
        assert result.used == behind
        assert [
            library.rows_behind(result, at, EVERYTHING) for at in range(len(result.rows))
        ] == of_each

    @pytest.mark.parametrize(
        "wrong",
        [
            '{"table": "T1", "plan": {"colu',
            reply(plan={"columns": ["No such column"]}),
            reply(sql="SELECT * FROM read_csv('/etc/passwd')"),
            reply(sql="SELECT * FROM data"),
            reply(sql="ATTACH 'x'"),
            json.dumps({"table": "T9", "plan": PLAN}),
        ],
    )
    def test_is_told_its_error_once(self, asked, wrong):
        result, model = asked(wrong, reply(plan=PLAN))

        assert result.rows == (("South", 250),)
        assert "cannot be run" in model.requests[1].messages[-1].content

    @pytest.mark.parametrize("reply", ["No table says that.", ModelUnavailable("down")])
    def test_that_gives_no_object_is_asked_once_and_done_without(self, application, reply):
        model = ScriptedModel(reply)
        library = application.table_answers.library

        planned = ModelPlanner(model, library).result(
            "sum of it", library.likely("Revenue", EVERYTHING)
        )

        assert planned is None
        assert len(model.requests) == 1

    def test_reads_even_what_words_are_sure_of(self, application):
        model = ScriptedModel(reply(plan={"measures": [{"kind": "max", "column": "Revenue"}]}))
        library = application.table_answers.library
        answers = TableAnswers(library, ModelPlanner(model, library).result)

        assert answers.ask("total revenue", EVERYTHING).rows == ((200,),)


def test_the_tool_computes_and_gives_a_number_to_cite(application):
    session = application.store.create("ada")

    text = application.table_answers.describe(session, "sum of Revenue by Region")

    assert "| South | 250 |" in text
    assert "[1]" in text
    assert session.read().source_count == 1

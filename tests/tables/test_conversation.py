"""Questions over rows and what follows them, end to end and without a model."""

import json
import random
from collections import defaultdict
from dataclasses import replace

import pytest

from rag.documents.files import IncomingFile
from rag.records import Answer, MessageStatus, Resolution, SourceState, Verdict
from rag.settings import Settings
from rag.tables.answers import TableAnswers
from rag.tables.library import ModelPlanner
from rag.tables.result import result_from
from tests.applications import application_of
from tests.fakes import ScriptedModel

HANDBOOK = "# Handbook\n\nEverybody has 28 days of leave. The office opens at nine.\n"


def make_rows(count):
    chance = random.Random(count)
    return [
        (
            f"Aero {chance.randint(1, 30)}",
            chance.choice(["North", "South", "East", "West"]),
            f"Q{chance.randint(1, 4)}",
            chance.choice([2024, 2025]),
            chance.randint(1, 50),
            chance.randint(100, 99_999) / 100,
        )
        for _ in range(count)
    ]


@pytest.fixture(scope="module", params=[20, pytest.param(5_000, marks=pytest.mark.slow)])
def sales(request, tmp_path_factory):
    application = application_of(Settings(data_dir=tmp_path_factory.mktemp("data")))
    rows = make_rows(request.param)
    lines = ["Product,Region,Quarter,Year,Units,Revenue", *(",".join(map(str, r)) for r in rows)]
    files = [("sales.csv", "\n".join(lines)), ("handbook.md", HANDBOOK)]
    for report in application.ingestion.ingest(
        IncomingFile.from_bytes(name, text.encode()) for name, text in files
    ):
        assert report.stage != "failed", report.reason
    yield application, rows
    application.stop()


@pytest.fixture
def asked(sales):
    application, _ = sales
    session = application.store.create("ada")

    def asked(question):
        *_, finished = application.assistant.ask(session, question)
        number = finished.message.answer.result
        return finished.message, number and result_from(session.result(number))

    return asked


def summed(rows, *keys, of=5):
    totals = defaultdict(float)
    for row in rows:
        totals[tuple(row[key] for key in keys)] += row[of]
    return totals


def highest(totals, count):
    ranked = sorted(totals.items(), key=lambda pair: (-round(pair[1], 6), pair[0]))[:count]
    return [(*key, pytest.approx(total)) for key, total in ranked]


class TestTheConversation:
    def test_top_ten_is_offered_then_another_quarter_then_by_region_then_a_chart(
        self, sales, asked
    ):
        rows = sales[1]

        message, first = asked("Top 10 products in Q3")
        offers = [each.label for each in message.answer.offers]
        assert first is None
        label = "Add up Revenue for each Product with Quarter Q3, highest first, the first 10"
        assert label in offers

        _, first = asked(label)
        assert list(first.rows) == highest(summed([r for r in rows if r[2] == "Q3"], 0), 10)

        _, second = asked("What about Q4?")
        q4 = [r for r in rows if r[2] == "Q4"]
        assert list(second.rows) == highest(summed(q4, 0), 10)

        _, third = asked("Show me by region")
        assert list(third.rows) == highest(summed(q4, 0, 1), 10)

        _, fourth = asked("as a chart")
        assert (fourth.rows, fourth.chart) == (third.rows, "auto")

    def test_a_model_reads_the_first_question_and_code_computes_it_and_what_follows(self, sales):
        application, rows = sales
        plan = {
            "filters": [{"column": "Quarter", "op": "is", "values": ["Q3"]}],
            "group": [{"column": "Product"}],
            "measures": [{"kind": "sum", "column": "Revenue"}],
            "order": [{"by": "measure 1", "descending": True}],
            "limit": 10,
        }
        model = ScriptedModel(json.dumps({"table": "T1", "plan": plan}))
        library = application.table_answers.library
        answers = TableAnswers(library, ModelPlanner(model, library).result)
        session = application.store.create("ada")

        def computed(question, earlier=""):
            turn = session.begin(question)
            resolution = Resolution(question, False, "unchanged", earlier=earlier)
            direct = answers.answer(session, question, resolution)
            answer = Answer(direct.text, result=direct.result)
            done = MessageStatus.COMPLETE
            session.finish(replace(turn.answer, content=direct.text, status=done, answer=answer))
            return list(result_from(session.result(direct.result)).rows)

        assert computed("Top 10 products in Q3") == highest(
            summed([r for r in rows if r[2] == "Q3"], 0), 10
        )
        q4 = [r for r in rows if r[2] == "Q4"]
        assert computed("What about Q4?", "Top 10 products in Q3") == highest(summed(q4, 0), 10)
        by_region = computed("Show me by region", "What about Q4?")
        assert by_region == highest(summed(q4, 0, 1), 10)
        assert len(model.requests) == 1

    @pytest.mark.parametrize(
        ("sql", "is_computed"),
        [
            ('SELECT sum("Revenue") FROM rows', True),
            ('SELECT sum("Year") FROM rows', False),
            ('SELECT avg(y) FROM (SELECT "Year" AS y FROM rows)', False),
            ('SELECT sum(CASE WHEN "Year" = 2025 THEN "Units" ELSE 0 END) FROM rows', True),
            ('SELECT max("Year") FROM rows', True),
        ],
    )
    def test_a_models_query_adds_up_no_more_than_words_may(self, sales, sql, is_computed):
        application, _ = sales
        model = ScriptedModel(json.dumps({"table": "T1", "sql": sql}))
        library = application.table_answers.library
        answers = TableAnswers(library, ModelPlanner(model, library).result)
        question = "What is the total number of all years of sales?"

        direct = answers.answer(
            application.store.create("ada"), question, Resolution(question, False, "unchanged")
        )

        assert (direct is not None and direct.result is not None) is is_computed

    def test_conditions_come_and_go(self, sales, asked):
        rows = [r for r in sales[1] if r[3] == 2025]

        def total(some):
            return pytest.approx(sum(r[5] for r in some))

        assert asked("total revenue in 2025")[1].rows[0][0] == total(rows)
        north = [r for r in rows if r[1] == "North"]
        assert asked("only North")[1].rows[0][0] == total(north)
        south = [r for r in rows if r[1] == "South"]
        assert asked("and South?")[1].rows[0][0] == total(south)

    def test_a_question_of_the_handbook_is_left_to_the_writer(self, asked):
        message, result = asked("How many days of leave does everybody have?")

        assert result is None
        assert "28 days" in message.content

    @pytest.mark.parametrize("question", ["And the Pro Max?", "And the refurbished ones?"])
    def test_a_name_that_the_table_does_not_hold_is_no_change_of_it(self, asked, question):
        asked("total units in Q3")

        assert asked(question)[1] is None

    def test_a_fragment_follows_a_table_only_directly(self, asked):
        asked("total revenue in Q3")
        asked("How many days of leave does everybody have?")

        assert asked("And Q4?")[1] is None

    @pytest.mark.parametrize(
        "question",
        [
            "How heavy is the Aero 5 Pro Max?",
            "how heavy is the aero 5 pro max?",
            "What is the revenue of Aero 5 Max?",
            "Which region is Aero 5 in?",
        ],
    )
    def test_a_question_without_a_word_over_rows_is_left_to_the_writer(self, asked, question):
        message, result = asked(question)

        assert result is None
        assert message.answer.model != "tables"


class TestTheResult:
    def test_is_a_source_with_a_number_for_life(self, sales, asked):
        first = asked("total revenue in Q1")[0]
        asked("total revenue in Q2")
        again = asked("total revenue in Q1")[0]

        assert first.answer.result == again.answer.result
        assert f"[{first.answer.result}]" in first.content
        assert {each.verdict for each in first.answer.citations} == {Verdict.COMPUTED}

    def test_keeps_the_rows_it_is_made_of(self, sales, asked):
        _, result = asked("total units in Q2 2024")

        wanted = [at for at, r in enumerate(sales[1], start=2) if r[2:4] == ("Q2", 2024)]
        assert list(result.used) == wanted[:1000]
        assert result.rows == ((sum(sales[1][at - 2][4] for at in wanted),),)

    def test_a_word_that_could_change_it_is_said(self, asked):
        message, result = asked("total revenue by region of refurbished goods in Q1")

        assert result is None or "refurbished" in message.content

    def test_is_current_when_it_was_just_computed(self, sales):
        application, _ = sales
        session = application.store.create("ada")

        *events, _ = application.assistant.ask(session, "total revenue in Q3")

        states = [each.state for e in events for each in getattr(e, "sources", ())]
        assert set(states) == {SourceState.CURRENT}

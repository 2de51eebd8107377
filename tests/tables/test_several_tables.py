"""Questions where more than one table has a say."""

import pytest

from rag.tables.running.result import result_from
from tests.applications import application_over

FILES = {
    "orders.csv": "Order,Client,Amount,Ordered\n"
    + "".join(f"O{i},Client {i % 7},{50 + 3 * i},2025-{i % 12 + 1:02}-05\n" for i in range(60)),
    "clients.csv": "Client,Land,Sector\n"
    + "".join(
        f"Client {i},{('Norway', 'Chile')[i % 2]},{('mining', 'fishing')[i % 2]}\n"
        for i in range(7)
    ),
    "repairs.csv": "Repair,Site,Quarter,Cost\n"
    + "".join(f"R{i},{('Elm', 'Oak')[i % 2]},Q{i % 4 + 1},{100 + i}\n" for i in range(40)),
    "journeys.csv": "Journey,City,Day,Cost\n"
    + "".join(
        f"J{i},{('Lyon', 'Graz')[i % 2]},2025-{i % 12 + 1:02}-11,{200 + i}\n" for i in range(40)
    ),
}


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    with application_over(tmp_path_factory.mktemp("data"), FILES) as application:
        yield application


@pytest.fixture
def asked(application):
    session = application.store.create("me")

    def asked(question):
        *_, end = application.assistant.ask(session, question)
        number = end.message.answer.result
        return end.message, result_from(session.result(number)) if number else None

    return asked


@pytest.mark.parametrize(
    "question", ["total amount by land", "total amount by sector", "average amount in Norway"]
)
def test_one_that_needs_the_rows_of_two_gives_no_figure(asked, question):
    assert asked(question)[1] is None


def test_one_that_fits_two_alike_asks_which_is_meant(asked):
    message, result = asked("Average cost in the first quarter")

    assert result is None
    assert "Which one do you mean?" in message.content
    assert asked("the journeys")[1].table_name == "journeys"


def test_one_that_names_a_table_is_asked_of_it(asked):
    assert asked("Average cost of the repairs in the first quarter")[1].table_name == "repairs"


def test_a_picture_of_another_table_keeps_no_condition_of_this_one(asked):
    asked("Total cost of repairs in Q1 by site")

    _, result = asked("journeys by city as a chart")

    assert result.table_name == "journeys"
    assert result.plan["filters"] == []
    assert result.chart == "auto"


def test_a_column_before_a_time_is_no_verb_of_it(asked):
    _, result = asked("Cost of journeys by city in 2025")

    assert "sum of Cost by City" in result.words
    assert not any("City" in note or "city" in note for note in result.notes)

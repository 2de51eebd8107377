"""What is taken for what, where a question leaves it open: said, and said again while it holds."""

import pytest

from rag.documents.files import IncomingFile
from rag.settings import Settings
from rag.tables.running.result import result_from
from tests.applications import application_of

DISHES = """Dish;Kind;Price;Sold;Outages;Result
Soup;starter;4,00 €;10;1;7
Rolls;starter;9,00 €;30;0;8
Cod;main;19,00 €;20;4;9
Steak;main;29,00 €;40;2;5
Curry;main;14,00 €;50;0;6
"""


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    application = application_of(Settings(data_dir=tmp_path_factory.mktemp("data")))
    list(application.ingestion.ingest([IncomingFile.from_bytes("dishes.csv", DISHES.encode())]))
    yield application
    application.stop()


@pytest.fixture
def asked(application):
    session = application.store.create("me")

    def asked(question):
        *_, end = application.assistant.ask(session, question)
        return result_from(session.result(end.message.answer.result))

    return asked


def test_what_was_done_is_added_up_and_the_assumption_stays(asked):
    first = asked("How many dishes were sold?")
    then = asked("only starter")

    assert (first.rows, then.rows) == (((150,),), ((40,),))
    assert first.notes == then.notes == ("I added up Sold.",)


def test_the_best_of_no_figure_is_not_claimed(application):
    session = application.store.create("me")

    *_, end = application.assistant.ask(session, "best kind of Soup, Cod and Steak")

    assert end.message.answer.result is None


def test_outages_are_no_age(asked):
    assert asked("Which kind had the fewest outages?").rows == (("starter", 1),)


def test_instead_asks_of_all_rows(asked):
    assert len(asked("The two most expensive dishes").rows) == 2

    assert [row[0] for row in asked("the cheapest instead").rows] == ["Soup", "Rolls"]


def test_a_column_that_is_called_result_points_at_nothing(application):
    session = application.store.create("me")
    list(application.assistant.ask(session, "Which dishes cost between 10 and 20 euros?"))

    *_, end = application.assistant.ask(session, "What is the result of Steak?")

    assert "No row" not in end.message.content
    assert "Steak" in end.message.content


def test_the_highest_of_each_is_said_where_nothing_is_added_up(asked):
    assert asked("Top 2 kinds by price").notes == (
        "I took the max of Price of each: it is not added up.",
    )

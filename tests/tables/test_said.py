"""What is said of one figure: the figure, and the rows that it is of."""

import pytest

from rag.documents.files import IncomingFile
from rag.records import EVERYTHING
from rag.settings import Settings
from rag.tables.plan import plan_from
from rag.tables.result import describe_result
from tests.applications import application_of

BOOKINGS = """Booking,Date,Channel,Price EUR,Paid
B001,2026-06-01,web,118.00,yes
B002,2026-08-01,walk-in,14.00,no
B003,2026-08-02,web,105.00,no
B004,2026-08-05,fair [2],26.00,yes
"""


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    application = application_of(Settings(data_dir=tmp_path_factory.mktemp("data")))
    list(application.ingestion.ingest([IncomingFile.from_bytes("bookings.csv", BOOKINGS.encode())]))
    yield application
    application.stop()


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How many bookings were not paid?", "There are **2** rows where Paid is no."),
        ("How many web bookings in August?",
         "There is **1** row where Channel is web and month of Date is August."),
        ("How many bookings are there?", "There are **4** rows in bookings."),
        ("Total price of paid bookings", "The total Price where Paid is yes is **€144.00**."),
        ("How many different channels are there?", "The number of different Channel is **3**."),
    ],
)  # fmt: skip
def test_a_figure_is_said_with_its_conditions(application, question, text):
    session = application.store.create("me")

    *_, end = application.assistant.ask(session, question)

    assert end.message.content == f"{text} [1]"


def test_a_value_cannot_pass_for_a_citation(application):
    library = application.table_answers.library
    (table,) = application.tables.tables(EVERYTHING)
    plan = {
        "filters": [{"column": "Channel", "value": "fair [2]"}],
        "measures": [{"kind": "count"}],
    }

    text = describe_result(library.run(table, plan_from(plan)), "[1]")

    assert text == r"There is **1** row where Channel is fair \[2\]. [1]"


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Which booking is the cheapest?", "**B002** is the cheapest, at €14.00."),
        ("Which booking is the most expensive in August?",
         "**B003** is the most expensive where month of Date is August, at €105.00."),
        ("Which walk-in booking is the cheapest?",
         "**B002** is the cheapest among walk-in, at €14.00."),
        ("Welche Booking ist die billigste?", "**B002** ist am billigsten: €14.00."),
        ("Wie viele Bookings gibt es?", "Es sind **4** Zeilen in bookings."),
    ],
)  # fmt: skip
def test_a_result_begins_with_a_sentence_in_the_language_of_its_question(
    application, question, text
):
    session = application.store.create("me")

    *_, end = application.assistant.ask(session, question)

    assert end.message.content.startswith(f"{text} [1]")

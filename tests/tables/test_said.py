"""What is said of one figure: the figure, and the rows that it is of."""

import pytest

from rag.documents.files import IncomingFile
from rag.records import EVERYTHING
from rag.settings import Settings
from rag.tables.plan import plan_from
from rag.tables.running.result import said
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
        ("How many bookings were not paid?", "Paid = no: **2** rows"),
        ("How many web bookings in August?", "Channel = web, month of Date = August: **1** row"),
        ("How many bookings are there?", "Bookings: **4** rows"),
        ("Total price of paid bookings", "Paid = yes, sum of Price EUR: **€144.00**"),
        ("How many different channels are there?", "Number of different Channel: **3**"),
    ],
)  # fmt: skip
def test_a_figure_is_said_with_its_conditions(application, question, text):
    session = application.store.create("me")

    *_, end = application.assistant.ask(session, question)

    assert end.message.content == f"{text} [1]"


def test_a_value_cannot_pass_for_a_citation(application):
    library = application.asked.library
    (table,) = application.tables.tables(EVERYTHING)
    plan = {
        "filters": [{"column": "Channel", "value": "fair [2]"}],
        "measures": [{"kind": "count"}],
    }

    text = said(library.run(table, plan_from(plan)), "[1]")

    assert text == r"Channel = fair \[2\]: **1** row [1]"

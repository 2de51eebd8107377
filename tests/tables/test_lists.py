"""Rows that a question lists by a condition; figures of one row, which nothing adds up."""

import pytest

from rag.documents.files import IncomingFile
from rag.settings import Settings
from tests.applications import application_of

BOATS = """Boat;Type;Seats;Licence needed;Low season per day;Weekly discount;Harbour
Kormoran;motor boat;6;yes;140,00 €;10 %;Malchow
Eisvogel;motor boat;4;no;95,00 €;10 %;Malchow
Seeadler;houseboat;8;yes;260,00 €;15 %;Robel
Graugans;yacht;6;yes;150,00 €;10 %;Robel
Teichhuhn;canoe;2;no;25,00 €;;Robel
"""
RULES = "# Boats\n\nWhich licence is needed is said on each boat. Houseboats sleep in Malchow.\n"


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    application = application_of(Settings(data_dir=tmp_path_factory.mktemp("data")))
    files = {"boat-hire.csv": BOATS, "rules.md": RULES}
    list(
        application.ingestion.ingest(
            [IncomingFile.from_bytes(name, text.encode()) for name, text in files.items()]
        )
    )
    yield application
    application.stop()


def told(application, question):
    session = application.store.create("me")
    *_, end = application.assistant.ask(session, question)
    return end.message


@pytest.mark.parametrize(
    ("question", "boats"),
    [
        ("Which boats need no licence?", ["Eisvogel", "Teichhuhn"]),
        ("Which boats need a licence?", ["Kormoran", "Seeadler", "Graugans"]),
        ("Which boats do not need a licence?", ["Eisvogel", "Teichhuhn"]),
        ("List all boats without a licence", ["Eisvogel", "Teichhuhn"]),
        ("Which boats are in Malchow?", ["Kormoran", "Eisvogel"]),
        ("Which boats have 6 seats?", ["Kormoran", "Graugans"]),
    ],
)
def test_the_rows_of_a_condition_are_listed(application, question, boats):
    message = told(application, question)

    assert message.answer.result is not None
    lines = message.content.splitlines()[4:]
    assert [line.strip("| ") for line in lines] == boats


@pytest.mark.parametrize(
    "question",
    [
        "How much is a week on the Seeadler in low season?",
        "Which rules are there?",
        "Which boats sleep in Malchow?",
        "Which licence is needed?",
    ],
)
def test_what_a_text_says_is_not_listed(application, question):
    assert told(application, question).answer.result is None


@pytest.mark.parametrize(
    ("question", "boats"),
    [
        ("Which two boats have the most seats?", ["Seeadler", "Kormoran"]),
        ("Which 3 boats have the most seats?", ["Seeadler", "Kormoran", "Graugans"]),
        ("Which boat has the most seats?", ["Seeadler"]),
    ],
)
def test_as_many_rows_are_listed_as_are_asked_for(application, question, boats):
    lines = told(application, question).content.splitlines()

    assert [line.split("|")[1].strip() for line in lines if line.startswith("|")][2:] == boats

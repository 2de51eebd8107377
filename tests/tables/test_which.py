"""Where several tables fit, the one that the reply names answers what was asked."""

from pathlib import Path

import pytest

from rag.documents.files import IncomingFile
from rag.settings import Settings
from tests.applications import application_of

COMPANY = Path(__file__).parents[2] / "data" / "library" / "company"


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    application = application_of(Settings(data_dir=tmp_path_factory.mktemp("data")))
    files = [COMPANY / "price-list-2026.xlsx", COMPANY / "price-list-2026.csv"]
    list(
        application.ingestion.ingest(IncomingFile.from_bytes(f.name, f.read_bytes()) for f in files)
    )
    yield application
    application.stop()


@pytest.fixture
def asked(application):
    session = application.store.create("me")

    def asked(question):
        *_, finished = application.assistant.ask(session, question)
        return finished.message

    return asked


@pytest.mark.parametrize(
    ("reply", "product"),
    [
        ("Audio", "Cantoro Duo"),
        ("the audio one", "Cantoro Duo"),
        ("Audio, please.", "Cantoro Duo"),
        ("Networking", "Kontor 24 PoE+"),
    ],
)  # fmt: skip
def test_the_reply_chooses(asked, reply, product):
    assert "Which one do you mean?" in asked("Top 1 product by price?").content

    answer = asked(reply)

    assert answer.answer.result is not None
    assert product in answer.content


def test_what_follows_leans_on_the_table_that_was_chosen(asked):
    asked("Top 3 products by price?")
    asked("Audio")

    answer = asked("and the cheapest 2?")

    assert "Audio" in (answer.resolved_query or "")


@pytest.mark.parametrize("reply", ["price list", "the Aero 5", "How do I reset it?", "which", ""])
def test_what_names_none_or_several_chooses_nothing(asked, reply):
    asked("Top 1 product by price?")

    answer = asked(reply or "?")

    assert answer.answer.result is None


def test_a_name_chooses_nothing_where_nothing_was_asked(asked):
    assert asked("Audio").answer.result is None

"""Prices of the sample library: it holds them twice, beside siblings, spare parts and bundles."""

from pathlib import Path

import pytest

from rag.documents.files import IncomingFile
from rag.records import EVERYTHING
from rag.settings import Settings
from tests.applications import application_of

LIBRARY = Path(__file__).parents[2] / "data" / "library"
FILES = (
    "company/price-list-2026.csv",
    "company/price-list-2026.xlsx",
    "networking/kontor-service-manual.pdf",
    "audio/cantoro-speakers.md",
    "company/support-handbook.md",
    "networking/nornhem-app-guide.md",
    "networking/office-planning-guide.pdf",  # has a column Router and no prices
)


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    application = application_of(Settings(data_dir=tmp_path_factory.mktemp("data")))
    files = [IncomingFile.from_path(LIBRARY / name, name=name) for name in FILES]
    list(application.ingestion.ingest(files))
    yield application
    application.stop()


def told(application, question):
    session = application.store.create("somebody")
    list(application.assistant.ask(session, question))
    return session.recent(1)[0].content


@pytest.mark.parametrize(
    ("question", "figure"),
    [
        pytest.param("How much does the Cantoro One cost?", "€149.00", id="not its sibling's"),
        pytest.param("How much does the Cantoro One+ cost?", "€199.00", id="sign by sign"),
        pytest.param("how much is the kontor 24 poe?", "€389.00", id="a sign left out"),
        pytest.param("How much does the Lofthav Mesh cost?", "€109.00", id="no trade mark"),
        pytest.param("How much does the adapter 12 V, 4 A cost?", "€23.00", id="signs inside"),
        pytest.param("How much do all speakers cost together?", "€1,015.00", id="a sum"),
        pytest.param("What is the number of speakers?", "**5** rows", id="words of no table"),
    ],
)
def test_one_figure_is_given_at_once(application, question, figure):
    content = told(application, question)

    assert figure in content
    assert len(content.splitlines()) == 1


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        pytest.param(
            "How much do the Aero 5 and the Aero 5 Pro cost?",
            ["Aero 5 | €129.00", "Aero 5 Pro | €199.00"],
            id="two products",
        ),
        pytest.param("How much are the speakers?", ["One | €149.00", "One+ | €199.00"], id="kind"),
    ],
)
def test_prices_are_not_added_up_unless_asked(application, question, rows):
    content = told(application, question)

    assert all(row in content for row in rows)
    assert "328" not in content
    assert "1,015" not in content


@pytest.mark.parametrize(
    ("question", "product"),
    [
        pytest.param("What is the cheapest router?", "Aero 5 Mini | €59.00", id="of a kind"),
        pytest.param("Which is the most expensive speaker?", "Cantoro Duo | €329.00", id="dearest"),
    ],
)
def test_the_end_of_prices_is_taken_where_prices_are(application, question, product):
    assert product in told(application, question)


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("How much does the Cantoro One cost, and how heavy is it?", id="two parts"),
        pytest.param("How much does the Cantoro One weigh?", id="a verb of no column"),
        pytest.param("How much do the Aero 5 and the Aero 5 Pro hold?", id="of several"),
        pytest.param("How much is the weight of the Aero 5?", id="a noun after all"),
        pytest.param("How much current does the Cantoro One take?", id="a noun of no column"),
        pytest.param("What is the newest firmware?", id="versions are no numbers"),
    ],
)
def test_what_no_table_says_alone_is_left_to_the_writer(application, question):
    found = application.asked._of_the_talk(question, [], EVERYTHING)

    assert found is None or not found.text

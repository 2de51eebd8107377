"""After files were added: what they are, what they share, and what can be asked of them."""

import io

import pytest

from rag.documents.files import IncomingFile
from rag.settings import Settings
from tests.applications import app_of, application_of
from tests.browser.paged_application import Page
from tests.waiting import until

BODY = "Use a soft cloth and lukewarm water, never a solvent, and let every part dry. " * 4
HEAD = "---\nproducts: [Nimbus 7]\n---\n"
CONTENTS = f"## Table of contents\n\n{BODY}\n\n"
FILES = {
    "p12.md": f"{HEAD}# Nimbus 7 manual\n\n{CONTENTS}"
    f"## Cleaning the filter\n\nThe filter of the Nimbus 7 is cleaned monthly. {BODY}",
    "faq.md": f"{HEAD}# Questions\n\n{CONTENTS}"
    "## How long does the battery of the Nimbus 7 last?\n\n"
    "The battery of the Nimbus 7 lasts eleven hours when it is used at full brightness.",
    "prices.csv": "product,price_eur\nNimbus 7,120\nNimbus 7 Pro,190\nNimbus 7 Max,240\n",
}


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    application = application_of(Settings(data_dir=tmp_path_factory.mktemp("added")))
    yield application
    application.stop()


@pytest.fixture(scope="module")
def page(application):
    files = [IncomingFile(name, lambda _, t=text: t.encode()) for name, text in FILES.items()]
    list(application.ingestion.ingest(files))
    return Page(app_of(application).test_client().get("/documents/added"))


def test_says_what_came_in_with_its_headings(page):
    told = page.text("#what ~ ul")

    assert "Nimbus 7 manual" in told
    assert "Cleaning the filter" in told
    assert "CSV" in told


def test_says_what_they_share(page):
    assert "Nimbus 7 stands in" in page.text("[aria-labelledby=together]")


def test_offers_questions_that_were_tried_and_never_a_heading_that_many_have(page, application):
    offered = [each.text().strip() for each in page.all(".starters button")]

    assert "How long does the battery of the Nimbus 7 last?" in offered
    assert "Nimbus 7 manual: Cleaning the filter" in offered
    assert not any("Table of contents" in each for each in offered)


def test_shows_the_columns_of_a_table_and_offers_what_is_computed_from_it(page, application):
    assert "price_eur" in page.text("section table")
    (offer,) = page.all(".offers .offer")
    assert offer.text() == "Which product has the highest price_eur?"
    session = application.store.create("local")
    end = list(application.assistant.ask(session, offer.text()))[-1]
    assert "Nimbus 7 Max" in end.message.content


def test_an_empty_library_has_nothing_to_show(tmp_path):
    application = application_of(Settings(data_dir=tmp_path))
    assert app_of(application).test_client().get("/documents/added").status_code == 303
    application.stop()


def test_is_of_the_last_upload_alone(application):
    application.start()
    client = app_of(application).test_client()
    for name in ("early.md", "late.md"):
        data = {"file": (io.BytesIO(f"# {name}\n\nSome words.".encode()), name)}
        [job] = client.post("/api/v1/documents", data=data).get_json()["jobs"]
        until(lambda job=job: client.get(f"/api/v1/jobs/{job['id']}").get_json()["state"] == "done")

    page = Page(client.get("/documents/added"))

    assert "late.md" in page.text("#what ~ ul")
    assert "early.md" not in page.text("#what ~ ul")

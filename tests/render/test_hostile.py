"""What a document says of itself, and what a report repeats, runs no script and asks no server."""

import io

import pytest
from reportlab.pdfgen.canvas import Canvas
from selectolax.lexbor import LexborHTMLParser

from rag.documents.files import IncomingFile
from rag.regression.report import Check, CitedSource, PlayedTurn, Replay, as_page
from rag.settings import Settings
from tests.applications import app_of, application_of
from tests.render.attacks import KINDS
from tests.render.readers import harms

FORMS = [form for kind in ("pictures", "tags", "links") for form in KINDS[kind]]


def live_in(html):
    """What of a page of ours would ask another server or run what we did not write."""
    for node in LexborHTMLParser(html).root.traverse():
        names = [name for name in node.attributes if name.startswith("on")]
        address = node.attributes.get("src") or node.attributes.get("href") or ""
        is_foreign = "evil" in address and node.tag != "a"
        if names or is_foreign or address.lower().startswith(("javascript:", "data:text")):
            return node.html[:200]
        if node.tag == "script" and not node.attributes.get("src") and "alert(" in node.text():
            return node.html[:200]
    return ""


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """Over a library of one PDF whose metadata and text attack, for each form."""
    application = application_of(Settings(data_dir=tmp_path_factory.mktemp("pdf")))
    files = []
    for number, form in enumerate(FORMS):
        out = io.BytesIO()
        canvas = Canvas(out)
        canvas.setTitle(f'Zorbium {number} "> {form}')
        canvas.setAuthor(f'"><img src=x onerror=alert(1)> {form}')
        canvas.setSubject(form)
        canvas.setKeywords([form, "<script>alert(1)</script>"])
        canvas.drawString(72, 720, f"Zorbium number {number} melts at {number}0 degrees.")
        canvas.save()
        files.append(IncomingFile.from_bytes(f"zorbium {number}.pdf", out.getvalue()))
    list(application.ingestion.ingest(files))
    yield app_of(application).test_client()
    application.stop()


class TestMetadataOfAPdf:
    def test_on_every_page(self, client):
        documents = client.get("/api/v1/documents?limit=1000").get_json()["documents"]
        pages = ["/documents", *(f"/documents/{each['id']}" for each in documents)]

        assert len(documents) == len(FORMS)
        assert {path: found for path in pages if (found := live_in(client.get(path).text))} == {}

    def test_in_answers_and_exports(self, client):
        session = client.post("/api/v1/sessions", json={}).get_json()["id"]
        at = f"/api/v1/sessions/{session}"
        for question in ("What is Zorbium?", "Which documents do you have?", "Zorbium number 3?"):
            told = client.post(f"{at}/messages", json={"content": question}).get_json()
            assert harms(told["content"]) == {}

        assert harms(client.get(f"{at}/export").text) == {}
        assert live_in(client.get(f"/sessions/{session}").text) == ""


def test_a_report_of_conversations():
    def played(number, form):
        cited = CitedSource(1, form, form, "supported")
        check = Check(number, form, held=False, got=form)
        return PlayedTurn(number, form, form, form, form, (cited,), form, (form,), 5, (check,))

    turns = tuple(played(number, form) for number, form in enumerate(FORMS, start=1))
    page = as_page([Replay(form, f"{form}.json", turns, form) for form in FORMS[:3]])
    tags = {node.tag for node in LexborHTMLParser(page).root.traverse()}

    assert live_in(page) == ""
    assert not tags & {
        "script",
        "img",
        "iframe",
        "object",
        "video",
        "form",
        "base",
        "link",
        "input",
    }

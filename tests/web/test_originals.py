"""Originals over HTTP: whoever may read a document may open its file, and nobody else."""

import io

import pytest
from reportlab.pdfgen.canvas import Canvas

from rag.settings import Settings
from tests.applications import app_of, application_of

TOKENS = {"token-of-anna": "anna", "token-of-ben": "ben"}
PAGE = b"<title>Bad</title><script>alert(1)</script><p>The Aero 5 hums softly at night.</p>"


def printed(text="The Nimbus weighs 940 g."):
    """A PDF of one page."""
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.drawString(72, 700, text)
    canvas.save()
    return file.getvalue()


@pytest.fixture
def application(tmp_path):
    auth = {"mode": "tokens", "tokens": TOKENS, "managers": ["anna"]}
    application = application_of(Settings(data_dir=tmp_path, auth=auth))
    yield application
    application.stop()


class Caller:
    """Somebody with a token."""

    def __init__(self, application, name):
        self.client = app_of(application).test_client()
        self.application = application
        self.headers = {"Authorization": f"Bearer token-of-{name}"}

    def get(self, url, **headers):
        return self.client.get(url, headers=self.headers | headers)

    def post(self, url, body):
        return self.client.post(url, json=body, headers=self.headers).get_json()

    def upload(self, name, data, collection=""):
        form = {"file": (io.BytesIO(data), name)} | (
            {"collection": collection} if collection else {}
        )
        self.client.post("/api/v1/documents", data=form, headers=self.headers)
        self.application.jobs.run_waiting()
        listed = self.get("/api/v1/documents").get_json()["documents"]
        return next(each["id"] for each in listed if each["name"] == name)


@pytest.fixture
def anna(application):
    return Caller(application, "anna")


@pytest.fixture
def ben(application):
    return Caller(application, "ben")


def paths(document_id):
    return f"/api/v1/documents/{document_id}/original", f"/documents/{document_id}/original"


def test_are_what_was_uploaded(anna):
    data = printed()
    program, page = map(anna.get, paths(anna.upload("a folder/nimbus.pdf", data)))

    assert program.data == page.data == data
    assert program.headers["Content-Disposition"] == "attachment; filename=nimbus.pdf"
    assert page.headers["Content-Disposition"] == "inline; filename=nimbus.pdf"
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
    for each in (program, page):
        assert each.headers["X-Content-Type-Options"] == "nosniff"


def test_can_be_read_in_parts(anna):
    data = printed()

    part = anna.get(paths(anna.upload("nimbus.pdf", data))[0], Range="bytes=0-7")

    assert (part.status_code, part.data) == (206, data[:8])


def test_that_could_hold_scripts_are_never_shown(anna):
    for each in map(anna.get, paths(anna.upload("bad.html", PAGE))):
        assert each.data == PAGE
        assert each.headers["Content-Disposition"].startswith("attachment")
        assert "script-src" not in each.headers["Content-Security-Policy"]


def test_of_the_same_content_open_to_somebody_do_not_open_others(anna, ben):
    """It is kept once, but asked for by document."""
    mine = anna.post("/api/v1/collections", {"name": "Mine"})["id"]
    hidden = anna.upload("hidden.pdf", printed(), mine)
    open_to_all = ben.upload("open.pdf", printed())

    assert ben.get(paths(open_to_all)[0]).status_code == 200
    assert ben.get(paths(hidden)[0]).status_code == 404


def test_that_were_not_kept_are_told_of(anna, application):
    document_id = anna.upload("nimbus.pdf", printed())
    for path in (application.settings.data_dir / "originals").rglob("*"):
        if path.is_file():
            path.unlink()

    refused = anna.get(paths(document_id)[0])
    page = anna.get(f"/documents/{document_id}").get_data(as_text=True)

    assert refused.status_code == 404
    assert "Ingest the file again" in refused.get_json()["detail"]
    assert "Open the original" not in page
    assert "Download it" not in page


def test_are_linked_to_from_their_documents(anna):
    document_id = anna.upload("nimbus.pdf", printed())

    page = anna.get(f"/documents/{document_id}").get_data(as_text=True)

    assert f'href="/documents/{document_id}/original#page=1"' in page
    assert f'href="/documents/{document_id}/original?download=1" download' in page

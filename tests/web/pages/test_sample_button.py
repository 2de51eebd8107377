"""An empty library can be tried with the sample documents."""

import re

from tests.applications import app_of
from tests.web.fake_application import FakeApplication


def test_an_empty_library_offers_the_sample_and_takes_it(settings, engine):
    application = FakeApplication(settings, engine)
    client = app_of(application).test_client()
    page, first_page = client.get("/documents").text, client.get("/").text
    token = re.search(r'name="csrf_token" value="([^"]+)"', page)

    answer = client.post(
        "/documents/sample", data={"csrf_token": token[1]} if token else {}, follow_redirects=True
    )

    assert "Try it with the sample documents" in page
    assert 'action="/documents/sample"' in first_page
    assert answer.status_code == 200
    taken = [job.subject for job in application.jobs.jobs()]
    assert "company/support-handbook.md" in taken
    assert len(taken) > 20


def test_a_library_with_documents_does_not(client):
    assert "sample documents" not in client.get("/documents").text
    assert "sample documents" not in client.get("/").text

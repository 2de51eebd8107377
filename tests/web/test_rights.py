"""Whose documents one may change, where callers are told apart."""

import io

import pytest

from rag.settings import Settings
from tests.applications import app_of, application_of

TOKENS = {"token-of-anna": "anna", "token-of-ben": "ben", "token-of-cleo": "cleo"}


@pytest.fixture
def application(tmp_path):
    auth = {"mode": "tokens", "tokens": TOKENS, "admins": ["cleo"]}
    application = application_of(Settings(data_dir=tmp_path, auth=auth))
    yield application
    application.stop()


@pytest.fixture
def client(application):
    return app_of(application).test_client()


def bearer(name):
    return {"Authorization": f"Bearer token-of-{name}"}


@pytest.fixture
def upload(application, client):
    """Somebody uploads a file; returns how its job ended."""

    def send(name, text, *, by):
        form = {"file": (io.BytesIO(text.encode()), name)}
        queued = client.post("/api/v1/documents", data=form, headers=bearer(by)).get_json()
        application.jobs.run_waiting()
        job_id = queued["jobs"][0]["id"]
        return client.get(f"/api/v1/jobs/{job_id}", headers=bearer(by)).get_json()

    return send


@pytest.fixture
def document(client, upload):
    """A document of Anna's."""
    upload("prices.md", "# Prices\n\nThe Aero 5 costs EUR 129.", by="anna")
    return client.get("/api/v1/documents", headers=bearer("anna")).get_json()["documents"][0]


class TestDocumentsOfOthers:
    def test_are_read_by_everybody(self, client, document):
        url = f"/api/v1/documents/{document['id']}"

        assert client.get(url, headers=bearer("ben")).status_code == 200

    def test_are_not_deleted(self, client, document):
        url = f"/api/v1/documents/{document['id']}"

        refused = client.delete(url, headers=bearer("ben"))

        assert refused.status_code == 403
        assert "was not added by you" in refused.get_json()["detail"]
        assert client.get(url, headers=bearer("anna")).status_code == 200

    def test_are_not_replaced_by_a_file_of_their_name(self, client, document, upload):
        job = upload("prices.md", "# Prices\n\nThe Aero 5 costs EUR 1.", by="ben")

        assert job["state"] == "failed"
        assert "somebody else's" in job["error"]
        url = f"/api/v1/documents/{document['id']}"
        now = client.get(url, headers=bearer("ben")).get_json()
        assert now["content_hash"] == document["content_hash"]

    def test_show_no_way_to_delete_them(self, client, document):
        page = client.get("/documents", headers=bearer("ben")).get_data(as_text=True)

        assert "prices.md" in page
        assert "Delete prices.md" not in page

    def test_of_the_operator_are_no_callers_to_change(self, application, client):
        application.jobs.submit_ingest("manual.md", b"# Manual\n\nText.")
        application.jobs.run_waiting()
        (found,) = client.get("/api/v1/documents", headers=bearer("anna")).get_json()["documents"]

        refused = client.delete(f"/api/v1/documents/{found['id']}", headers=bearer("anna"))

        assert refused.status_code == 403


def test_ones_own_documents_are_replaced_and_deleted(client, document, upload):
    job = upload("prices.md", "# Prices\n\nThe Aero 5 costs EUR 119.", by="anna")
    deleted = client.delete(f"/api/v1/documents/{document['id']}", headers=bearer("anna"))

    assert job["state"] == "done"
    assert deleted.status_code == 204


def test_an_administrator_changes_them_all_and_they_stay_whose_they_were(client, document, upload):
    job = upload("prices.md", "# Prices\n\nThe Aero 5 costs EUR 119.", by="cleo")
    url = f"/api/v1/documents/{document['id']}"

    assert job["state"] == "done"
    assert client.delete(url, headers=bearer("anna")).status_code == 204


def test_nobody_is_told_of_the_uploads_of_others(client, document):
    assert client.get("/api/v1/jobs", headers=bearer("ben")).get_json()["jobs"] == []
    (job,) = client.get("/api/v1/jobs", headers=bearer("anna")).get_json()["jobs"]
    assert client.get(f"/api/v1/jobs/{job['id']}", headers=bearer("ben")).status_code == 404

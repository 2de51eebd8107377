"""Whose documents one may change, where callers are told apart."""

import pytest


@pytest.fixture
def upload(world):
    """Somebody uploads a file to where all may add some; returns how its job ended."""

    def send(name, text, *, by):
        job_id = world.upload(by, name, text, "1")
        return world.call("GET", f"/api/v1/jobs/{job_id}", by=by).get_json()

    return send


@pytest.fixture
def document(world, upload):
    """A document of Anna's."""
    upload("prices.md", "# Prices\n\nThe Aero 5 costs EUR 129.", by="anna")
    return named(world, "prices.md")


def named(world, name):
    return next(each for each in world.documents("anna") if each["name"] == name)


class TestDocumentsOfOthers:
    def test_are_not_deleted(self, world, document):
        url = f"/api/v1/documents/{document['id']}"

        refused = world.call("DELETE", url, by="ben")

        assert refused.status_code == 403
        assert "was not added by you" in refused.get_json()["detail"]
        assert world.call("GET", url, by="anna").status_code == 200

    def test_are_not_replaced_by_a_file_of_their_name(self, world, document, upload):
        job = upload("prices.md", "# Prices\n\nThe Aero 5 costs EUR 1.", by="ben")

        assert job["state"] == "failed"
        assert "somebody else's" in job["error"]
        url = f"/api/v1/documents/{document['id']}"
        now = world.call("GET", url, by="ben").get_json()
        assert now["content_hash"] == document["content_hash"]

    def test_show_no_way_to_delete_them(self, world, document):
        page = world.call("GET", "/documents", by="ben").get_data(as_text=True)

        assert "prices.md" in page
        assert "Delete prices.md" not in page

    def test_of_the_operator_are_no_callers_to_change(self, world):
        world.application.jobs.submit_ingest("manual.md", b"# Manual\n\nText.")
        world.application.jobs.run_waiting()
        found = named(world, "manual.md")

        refused = world.call("DELETE", f"/api/v1/documents/{found['id']}", by="anna")

        assert refused.status_code == 403


def test_ones_own_documents_are_replaced_and_deleted(world, document, upload):
    job = upload("prices.md", "# Prices\n\nThe Aero 5 costs EUR 119.", by="anna")
    deleted = world.call("DELETE", f"/api/v1/documents/{document['id']}", by="anna")

    assert job["state"] == "done"
    assert deleted.status_code == 204


def test_an_administrator_changes_them_all_and_they_stay_whose_they_were(world, document, upload):
    job = upload("prices.md", "# Prices\n\nThe Aero 5 costs EUR 119.", by="root")
    url = f"/api/v1/documents/{document['id']}"

    assert job["state"] == "done"
    assert world.call("DELETE", url, by="anna").status_code == 204

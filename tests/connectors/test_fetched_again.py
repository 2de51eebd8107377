"""Originals that are not kept are read from their source again, for who asks for one."""

import zipfile

import pytest

from tests.applications import app_of
from tests.connectors.conftest import Office
from tests.connectors.remote.site import Site, running
from tests.connectors.test_secrets import PAGE

TEXT = "# Aero 5\n\nThe Aero 5 weighs 120 g.\n"


@pytest.fixture
def office(tmp_path):
    """Of an application that keeps no originals."""
    private = {"private_hosts": ["127.0.0.1"]}
    made = Office(tmp_path, documents={"keep_originals": False}, sources=private)
    yield made
    made.app.stop()


def original(office, name):
    (document_id,) = [each for key, each in office.ids().items() if key == name]
    client = app_of(office.app).test_client()
    assert "/original" in client.get(f"/documents/{document_id}").get_data(as_text=True)
    return client.get(f"/api/v1/documents/{document_id}/original")


def told(answer):
    return answer.status_code, answer.get_json()["detail"]


def test_of_a_folder(office):
    office.write("manuals/a.md", TEXT)
    office.write("b.md", "# Other\n\nAnother one.\n")
    office.add()

    answer = original(office, "manuals/a.md")

    assert answer.get_data(as_text=True) == TEXT
    assert answer.headers["Content-Disposition"].startswith("attachment")


def test_of_an_archive_in_it(office):
    with zipfile.ZipFile(office.folder / "box.zip", "w") as archive:
        archive.writestr("a.md", TEXT)
    office.age("box.zip")
    office.add()

    assert original(office, "box.zip/a.md").get_data(as_text=True) == TEXT


def _changes(office):
    office.write("a.md", TEXT.replace("120", "130"))


def _goes(office):
    office.delete("a.md")


def _is_away(office):
    office.folder.rename(office.folder.with_name("elsewhere"))


def _may_not_be_read(office):
    office.book.table.change(office.source.id, is_operators=False)


@pytest.mark.parametrize(
    ("happens", "status", "said"),
    [
        (_changes, 409, "changed at its source since it was read"),
        (_goes, 404, "a.md is not at its source any more."),
        (_is_away, 502, "it is not there"),
        (_may_not_be_read, 403, "sources.folders"),
    ],
)
def test_that_cannot_be_had_as_it_was_is_told_and_not_given(office, happens, status, said):
    office.write("a.md", TEXT)
    office.add()
    happens(office)

    found, detail = told(original(office, "a.md"))

    assert found == status
    assert said in detail


def test_of_a_page_of_the_web_asks_for_that_page_alone(office):
    with running(Site()) as site:
        site["/docs/"] = PAGE.format("First", '<a href="second">more</a>')
        site["/docs/second"] = PAGE.format("Second", "")
        office.add(address=f"{site.url}/docs/")
        site.asked.clear()

        answer = original(office, "second.html")

        assert b"Second is told here" in answer.get_data()
        assert [path for path, _status in site.asked] == ["/docs/second"]


def test_that_was_put_in_by_hand_is_not_looked_for(office):
    from rag.documents.files import IncomingFile

    list(office.app.ingestion.ingest([IncomingFile.from_bytes("by hand.md", TEXT.encode())]))
    (document_id,) = office.ids().values()
    client = app_of(office.app).test_client()

    assert told(client.get(f"/api/v1/documents/{document_id}/original"))[0] == 404
    assert "/original" not in client.get(f"/documents/{document_id}").get_data(as_text=True)

"""Collections on pages, with plain forms."""

import io

import pytest

from rag.settings import Settings
from tests.applications import app_of, application_of


@pytest.fixture
def client(tmp_path):
    tokens = {"a": "anna", "b": "ben"}
    auth = {"mode": "tokens", "tokens": tokens, "managers": ["anna"]}
    application = application_of(Settings(data_dir=tmp_path, auth=auth))
    client = app_of(application).test_client()
    client.jobs = application.jobs
    yield client
    application.stop()


def get(client, url, *, by="a"):
    return client.get(url, headers={"Authorization": f"Bearer {by}"})


def post(client, url, *, by="a", **form):
    return client.post(url, data=form, headers={"Authorization": f"Bearer {by}"})


@pytest.fixture
def collection(client):
    """Where the page of a new collection of Anna's lies."""
    made = post(client, "/collections", name="Handbooks")
    assert made.status_code == 303
    return made.location


def added(client, collection, name):
    place = collection.rsplit("/", 1)[1]
    file = (io.BytesIO(f"# {name}\n\nText of {name}.".encode()), name)
    assert post(client, f"/documents?collection={place}", file=file).status_code == 303
    client.jobs.run_waiting()
    return place


def test_a_collection_is_made_and_shown_beside_the_library(client, collection):
    page = get(client, "/documents").text

    assert "Handbooks" in page
    assert "Handbooks" not in get(client, "/documents", by="b").text
    assert get(client, collection, by="b").status_code == 404


def test_only_managers_are_offered_to_make_one(client):
    assert "New collection" in get(client, "/documents").text
    assert "New collection" not in get(client, "/documents", by="b").text
    assert post(client, "/collections", by="b", name="Mine").status_code == 403


def test_what_is_added_beside_it_is_in_it(client, collection):
    place = added(client, collection, "leave.md")

    assert "leave.md" in get(client, f"/documents?collection={place}").text
    assert "leave.md" not in get(client, "/documents?collection=1").text
    assert "leave.md" not in get(client, "/documents", by="b").text


def test_members_are_given_rights_and_lose_them(client, collection):
    place = added(client, collection, "leave.md")
    form = {"name": "Handbooks", "everybody": "none"}
    given = post(client, collection, new_member="ben", new_right="read", **form)

    assert given.status_code == 303
    assert "leave.md" in get(client, f"/documents?collection={place}", by="b").text
    assert "ben" not in get(client, collection, by="b").text  # members are told who manages alone

    post(client, collection, **form, **{"member:ben": "none"})
    assert get(client, collection, by="b").status_code == 404


def test_documents_are_moved_and_deleted_together(client, collection):
    place = added(client, collection, "leave.md")
    added(client, collection, "pay.md")
    listed = get(client, f"/api/v1/documents?collection={place}").get_json()["documents"]
    ids = [each["id"] for each in listed]

    moved = post(client, "/documents/chosen", document=ids, act="move", to="1", place=place)
    assert moved.status_code == 303
    assert "leave.md" in get(client, "/documents", by="b").text

    post(client, "/documents/chosen", document=ids[:1], act="delete", to="1", place="")
    assert "leave.md" not in get(client, "/documents").text
    assert "pay.md" in get(client, "/documents").text


def test_an_empty_one_is_deleted(client, collection):
    assert post(client, f"{collection}/delete").status_code == 303
    assert get(client, collection).status_code == 404


def test_where_everybody_is_one_the_only_collection_is_unseen(tmp_path):
    application = application_of(Settings(data_dir=tmp_path))
    try:
        assert "Collections" not in app_of(application).test_client().get("/documents").text
    finally:
        application.stop()

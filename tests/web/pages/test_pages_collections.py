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

    shown = get(client, f"/documents?collection={place}").text
    assert "leave.md" in shown
    assert "1 in Handbooks" in shown
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


def test_many_are_deleted_after_asking_and_all_or_none(client, collection):
    place = added(client, collection, "leave.md")
    added(client, "/collections/1", "weather.md")
    post(client, collection, name="Handbooks", everybody="add")
    listed = get(client, "/api/v1/documents").get_json()["documents"]
    ids = [each["id"] for each in listed]

    asked = post(client, "/documents/chosen", document=ids, act="ask", place=place).text
    refused = post(client, "/documents/chosen", by="b", document=ids, act="delete")

    assert "Delete these 2 documents?" in asked
    assert "weather.md" in asked
    assert refused.status_code == 403
    assert len(get(client, "/api/v1/documents").get_json()["documents"]) == 2
    post(client, "/documents/chosen", document=ids, act="delete")
    assert get(client, "/api/v1/documents").get_json()["documents"] == []


def test_nothing_ticked_is_said(client):
    assert "Tick one or more" in post(client, "/documents/chosen", act="ask").text


def test_documents_are_listed_in_the_wanted_order(client, collection):
    added(client, "/collections/1", "b.md")
    added(client, "/collections/1", "a-long-name.md")
    added(client, "/collections/1", "c.md")

    def shown(order):
        page = get(client, f"/documents?order={order}").text
        return sorted(("b.md", "a-long-name.md", "c.md"), key=page.index)

    assert shown("name") == ["a-long-name.md", "b.md", "c.md"]
    assert shown("newest")[0] == "c.md"
    assert shown("largest")[0] == "a-long-name.md"
    assert shown("no such order") == shown("name")


def test_an_empty_one_is_deleted(client, collection):
    assert post(client, f"{collection}/delete").status_code == 303
    assert get(client, collection).status_code == 404


def test_where_everybody_is_one_the_only_collection_is_unseen(tmp_path):
    application = application_of(Settings(data_dir=tmp_path))
    try:
        client = app_of(application).test_client()
        assert "Collections" not in client.get("/documents").text
        made = application.collections.create("", "Handbooks")
        assert "Members" not in client.get(f"/collections/{made.id}").text
        kept = client.post(f"/collections/{made.id}", data={"name": "Books", "everybody": "none"})
        assert kept.status_code == 303
    finally:
        application.stop()


class TestWhatAConversationAsks:
    @pytest.fixture
    def library(self, client, collection):
        """Two collections with a document each; returns the one of Anna's."""
        place = added(client, collection, "leave.md")
        added(client, "/collections/1", "weather.md")
        return place

    def asked(self, client, url, **form):
        answer = post(client, url, content="What does the text say?", choose="1", **form)
        assert answer.status_code == 303
        return answer.location.partition("#")[0]

    def sources(self, client, session):
        found = get(client, f"/api/v1{session}/sources").get_json()["sources"]
        return {each["document"] for each in found}

    def test_is_offered_in_one_line_before_and_after_the_first_question(self, client, library):
        assert "Asks <b>all 2 collections</b>" in get(client, "/").text

        session = self.asked(client, "/ask", collection=library)

        assert "Asks <b>Handbooks</b>" in get(client, session).text

    def test_is_all_where_nothing_or_everything_is_ticked(self, client, library):
        for ticked in ([], [library, "1"]):
            session = self.asked(client, "/ask", collection=ticked)

            assert "Asks <b>all 2 collections</b>" in get(client, session).text
            assert self.sources(client, session) == {"leave.md", "weather.md"}

    def test_is_what_is_found_and_can_be_changed_later(self, client, library):
        session = self.asked(client, "/ask", collection=library)
        assert self.sources(client, session) == {"leave.md"}

        self.asked(client, f"{session}/ask", collection="1")

        assert self.sources(client, session) == {"leave.md", "weather.md"}
        assert "Asks <b>Library</b>" in get(client, session).text

    def test_is_kept_by_questions_that_do_not_say(self, client, library):
        session = self.asked(client, "/ask", collection=library)
        post(client, f"{session}/ask", content="And the weather?")

        assert self.sources(client, session) == {"leave.md"}

    def test_is_never_what_one_may_not_read(self, client, library):
        refused = post(client, "/ask", by="b", content="What?", choose="1", collection=library)

        assert refused.status_code == 404
        assert "Handbooks" not in refused.text

    def test_is_nothing_once_the_right_is_gone(self, client, library, collection):
        form = {"name": "Handbooks", "everybody": "none"}
        post(client, collection, new_member="ben", new_right="read", **form)
        post(client, "/collections", name="Beside")
        answer = post(client, "/ask", by="b", content="text?", choose="1", collection=library)
        session = answer.location.partition("#")[0]
        post(client, collection, **form, **{"member:ben": "none"})

        assert "Handbooks" not in get(client, session, by="b").text

    def test_is_no_question_with_one_collection(self, client):
        assert "data-choice" not in get(client, "/", by="b").text

"""Questions about the library itself, through every door: with a model configured, and without."""

import pytest

from rag.settings import Settings
from tests.applications import app_of, application_of
from tests.model_application import World

QUESTIONS = [
    pytest.param("What is in the library?", "The library holds 1 document", id="contents"),
    pytest.param("Welche Dokumente gibt es?", "In der Bibliothek: 1 Dokument", id="german"),
    pytest.param("Which documents mention the Aero 5 Pro?", "1 document mentions", id="mentions"),
    pytest.param("Wo wird der Aero 5 Pro erwähnt?", "1 Dokument erwähnt", id="german-mentions"),
    pytest.param("Summarise the Aero 5 manual", "in its own words and order:", id="summary"),
]
ORDINARY = [
    "How much does the Aero 5 weigh?",
    "What does the manual say about the battery of the Aero 5?",
    "Is there a document that I need for a repair?",
    "Wie schwer ist der Aero 5?",
]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World(tmp_path_factory.mktemp("data")) as world:
        yield world


@pytest.mark.parametrize(("question", "begins"), QUESTIONS)
class TestWithAModel:
    def test_the_api_answers_without_asking_it(self, world, question, begins):
        answer = world.ask(question)

        assert begins in answer["content"]
        assert (world.server.requests, answer["declined"]) == ([], False)

    def test_so_does_a_stream(self, world, question, begins):
        events = world.stream(question)

        assert events[-1][0] == "final"
        assert begins in events[-1][1]["content"]
        assert world.server.requests == []

    def test_so_does_the_openai_protocol(self, world, question, begins):
        world.server.requests.clear()
        for path, body in (
            ("chat/completions", {"messages": [{"role": "user", "content": question}]}),
            ("responses", {"input": question}),
        ):
            reply = world.client.post(f"/v1/{path}", json={"model": "groundnote", **body})

            assert reply.status_code == 200, reply.get_json()
            assert begins in str(reply.get_json())
        assert world.server.requests == []


@pytest.mark.parametrize("question", ORDINARY)
def test_an_ordinary_question_is_the_model_s(world, question):
    world.ask(question, "The Aero 5 weighs 120 g [1].")

    assert world.server.requests


@pytest.mark.parametrize(
    ("question", "told"),
    [("What is in the library?", "is empty"), ("Welche Dokumente gibt es?", "ist leer")],
)
def test_of_an_empty_library_it_says_so(tmp_path, question, told):
    application = application_of(Settings(data_dir=tmp_path))
    client = app_of(application).test_client()
    session = client.post("/api/v1/sessions", json={}).get_json()["id"]

    answer = client.post(f"/api/v1/sessions/{session}/messages", json={"content": question})

    assert told in answer.get_json()["content"]
    application.stop()

"""What Open WebUI and LibreChat ask by themselves is no question of a person."""

import json

import pytest

from tests.model_application import World, calling
from tests.openai_server import failure, reply
from tests.web.conftest import events_of

CHAT = "/v1/chat/completions"
HISTORY = """
### Chat History:
<chat_history>
USER: How heavy is the Aero 5?
ASSISTANT: It weighs 120 g [1].
</chat_history>"""
TITLE = '### Task:\nGenerate a title.\n### Output:\nJSON format: { "title": "yours" }' + HISTORY
TAGS = '### Task:\nGenerate tags.\n### Output:\nJSON format: { "tags": ["tag1", "tag2"] }' + HISTORY
NEXT = '### Task:\nSuggest questions.\n### Output:\nJSON format: { "follow_ups": ["?"] }' + HISTORY
QUERIES = '### Task:\nAnalyze the chat.\n### Output:\n{\n  "queries": ["query1"]\n}' + HISTORY
TYPED = '### Task:\nContinue.\n5. If unsure, return: `{ "text": "" }`.' + HISTORY
LIBRECHAT = (
    "Provide a concise, 5-word-or-less title for the conversation, using its same language.\n\n"
    "Conversation:\nUser: How heavy is the Aero 5?\nAI: It weighs 120 g [1]."
)
STRUCTURED = (
    "Analyze this conversation and provide:\n1. The detected language of the conversation\n"
    "2. A title\n\nUser: How heavy is the Aero 5?\nAI: It weighs 120 g [1]."
)
CHOOSING = [
    {"role": "system", "content": 'Available Tools: []\n\nAnswer with {\n "tool_calls": []\n}'},
    {"role": "user", "content": "Query: How heavy?"},
]
EMPTY = [
    (TITLE, {"title": "How heavy is the Aero 5?"}),
    (TAGS, {"tags": []}),
    (NEXT, {"follow_ups": []}),
    (QUERIES, {"queries": []}),
    (TYPED, {"text": ""}),
    (CHOOSING, {"tool_calls": []}),
    (LIBRECHAT, "How heavy is the Aero 5?"),
    (STRUCTURED, "How heavy is the Aero 5?"),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World(tmp_path_factory.mktemp("data")) as world:
        yield world


def asked(client, prompt, **options):
    messages = prompt if isinstance(prompt, list) else [{"role": "user", "content": prompt}]
    return client.post(CHAT, json={"model": "groundnote", "messages": messages, **options})


def sessions(client):
    return client.get("/api/v1/sessions").get_json()["sessions"]


class TestWithoutModel:
    @pytest.mark.parametrize(("prompt", "expected"), EMPTY)
    def test_the_answer_has_the_wanted_form(self, client, application, prompt, expected):
        told = asked(client, prompt).get_json()["choices"][0]["message"]["content"]

        assert (told if isinstance(expected, str) else json.loads(told)) == expected
        assert sessions(client) == []
        assert application.retriever.asked == []

    def test_it_can_be_streamed(self, client):
        told = [text for _, text in events_of(asked(client, TAGS, stream=True))]

        assert told[-1] == "[DONE]"
        assert json.loads(told[0])["choices"][0]["delta"]["content"] == '{"tags": []}'

    def test_a_pipeline_may_name_the_task(self, client):
        asked(client, "Whatever a template says.", metadata={"task": "title_generation"})

        assert sessions(client) == []

    @pytest.mark.parametrize(
        "question",
        [
            "Provide a title for the Aero 5",
            "### Task:\nRespond to the question from this.\n<context>…</context>\nHow heavy?",
            "Generate tags for <chat_history>",
        ],
    )
    def test_questions_of_people_are_none(self, client, question):
        assert asked(client, question).get_json()["session_id"]
        assert len(sessions(client)) == 1

    def test_a_question_within_a_conversation_of_ours_is_none(self, client):
        question = {"role": "user", "content": "How much does the Aero 5 weigh?"}
        first = asked(client, [question]).get_json()
        said = [question, first["choices"][0]["message"]]

        again = asked(client, [*said, {"role": "user", "content": TITLE}]).get_json()

        assert again["session_id"] == first["session_id"]


class TestWithModel:
    def test_it_goes_to_the_model_alone(self, world):
        world._behave([reply('{"follow_ups": ["And [1]?", "And [47] the Pro?"], "n": [1, 2]}')])
        before = len(sessions(world.client))
        told = asked(world.client, NEXT).get_json()["choices"][0]["message"]["content"]

        assert json.loads(told) == {"follow_ups": ["And?", "And the Pro?"], "n": [1, 2]}
        (request,) = world.server.requests
        assert [each["content"] for each in request.body["messages"]] == [NEXT]
        assert len(sessions(world.client)) == before

    def test_its_forms_are_passed_on(self, world):
        """LibreChat wants titles as calls of a tool."""
        world._behave([calling(("title", {"title": "Weight"}))])
        tools = [{"type": "function", "function": {"name": "title", "parameters": {}}}]
        completion = asked(world.client, STRUCTURED, tools=tools, tool_choice="required").get_json()

        (call,) = completion["choices"][0]["message"]["tool_calls"]
        assert json.loads(call["function"]["arguments"]) == {"title": "Weight"}
        assert world.server.requests[0].body["tool_choice"] == "required"

    @pytest.mark.parametrize(
        "broken", [failure(500, "down"), reply('{"tags": ["a', finish="length")]
    )
    def test_a_model_that_fails_costs_nobody_anything(self, world, broken):
        world._behave([broken])
        told = asked(world.client, TAGS).get_json()["choices"][0]["message"]["content"]

        assert json.loads(told) == {"tags": []}


RESPONSES = "/v1/responses"


def responded(client, prompt, **options):
    return client.post(RESPONSES, json={"model": "groundnote", "input": prompt, **options})


class TestInResponses:
    """The other protocol knows the same tasks."""

    @pytest.mark.parametrize(("prompt", "expected"), EMPTY)
    def test_the_answer_has_the_wanted_form(self, client, application, prompt, expected):
        response = responded(client, prompt).get_json()
        told = response["output"][0]["content"][0]["text"]

        assert (told if isinstance(expected, str) else json.loads(told)) == expected
        assert (response["object"], response["status"]) == ("response", "completed")
        assert "session_id" not in response
        assert sessions(client) == []
        assert application.retriever.asked == []

    def test_it_can_be_streamed(self, client):
        events = [
            (kind, json.loads(text))
            for kind, text in events_of(responded(client, TAGS, stream=True))
        ]
        names = [kind for kind, _ in events]

        assert names[0] == "response.created"
        assert names[-1] == "response.completed"
        told = [event["delta"] for kind, event in events if kind == "response.output_text.delta"]
        assert told == ['{"tags": []}']
        assert [event["sequence_number"] for _, event in events] == list(range(len(events)))
        assert sessions(client) == []

    def test_a_pipeline_may_name_the_task(self, client):
        responded(client, "Whatever a template says.", metadata={"task": "title_generation"})

        assert sessions(client) == []

    def test_a_question_that_goes_on_is_none(self, client):
        first = responded(client, "How much does the Aero 5 weigh?").get_json()

        again = responded(client, TITLE, previous_response_id=first["id"]).get_json()
        said = [{"role": "user", "content": "How much does the Aero 5 weigh?"}, *first["output"]]
        other = responded(client, [*said, {"role": "user", "content": TITLE}]).get_json()

        assert again["session_id"] == first["session_id"]
        assert other["session_id"]

    def test_nothing_goes_on_from_a_task(self, client):
        task = responded(client, TAGS).get_json()

        assert client.get(f"{RESPONSES}/{task['id']}").status_code == 404
        assert responded(client, "And?", previous_response_id=task["id"]).status_code == 404

    def test_it_goes_to_the_model_alone(self, world):
        world._behave([reply("Weight [1] of it")])
        before = len(sessions(world.client))
        response = responded(world.client, "How are you?", model="groundnote-plain").get_json()

        assert response["output"][0]["content"][0]["text"] == "Weight of it"
        (request,) = world.server.requests
        assert [each["content"] for each in request.body["messages"]] == ["How are you?"]
        assert len(sessions(world.client)) == before

    def test_its_forms_are_passed_on(self, world):
        world._behave([calling(("title", {"title": "Weight"}))])
        tools = [{"type": "function", "name": "title", "parameters": {}}]
        response = responded(world.client, STRUCTURED, tools=tools, tool_choice="required")

        (call,) = response.get_json()["output"]
        assert (call["type"], json.loads(call["arguments"])) == (
            "function_call",
            {"title": "Weight"},
        )

"""What a judge says travels to every client that can wait for it."""

import json

import pytest

from rag.records import Verdict
from tests.web.conftest import events_of
from tests.web.test_openai_api import chat, chunks_of


@pytest.fixture
def judged(application):
    application.assistant.judged = Verdict.CONTRADICTED


def ask(client, session_id, **more):
    url = f"/api/v1/sessions/{session_id}/messages"
    return client.post(url, json={"content": "How heavy?", **more}).get_json()


@pytest.mark.usefixtures("judged")
def test_a_post_may_wait_for_the_judge(client, session_id):
    answer = ask(client, session_id, wait_for_judge=10)

    assert answer["judging"] == "done"
    (citation,) = answer["citations"]
    assert (citation["verdict"], citation["by"]) == ("contradicted", "judge")


def test_without_a_judge_nobody_waits(client, session_id):
    answer = ask(client, session_id, wait_for_judge=600)

    assert answer["judging"] == "off"
    assert [each["by"] for each in answer["citations"]] == ["words"]


@pytest.mark.parametrize("seconds", [-1, 601, "long"])
def test_a_wait_without_end_is_refused(client, session_id, seconds):
    url = f"/api/v1/sessions/{session_id}/messages"

    refused = client.post(url, json={"content": "How heavy?", "wait_for_judge": seconds})

    assert refused.status_code in (400, 422)
    assert "wait_for_judge" in json.dumps(refused.get_json())


@pytest.mark.usefixtures("judged")
def test_a_stream_ends_with_its_text_unless_the_client_waits(client):
    *_, closing = chunks_of(chat(client, "How heavy?", stream=True))

    assert closing["choices"][0]["finish_reason"] == "stop"
    assert closing["judging"] == "pending"
    assert closing["sources"][0]["document"] == "manual.md"


@pytest.mark.usefixtures("judged")
def test_a_stream_of_the_chat_protocol_may_wait_for_the_judgement(client):
    *_, closing, last = chunks_of(chat(client, "How heavy?", stream=True, wait_for_judge=10))

    assert [each["choices"][0]["finish_reason"] for each in (closing, last)] == ["stop", "stop"]
    assert (closing["judging"], last["judging"]) == ("pending", "done")
    assert last["choices"][0]["delta"] == {}
    assert last["citations"][0]["verdict"] == "contradicted"
    assert last["notices"] == ["1 statement is not what the cited source says: see `citations`."]
    assert last["unsourced"] == []


@pytest.mark.usefixtures("judged")
@pytest.mark.parametrize(("seconds", "judging"), [(None, "pending"), (10, "done")])
def test_the_last_event_of_a_response_holds_the_judgement_for_who_waits(client, seconds, judging):
    asked = {"model": "groundnote", "input": "How heavy?", "stream": True}
    streamed = client.post("/v1/responses", json={**asked, "wait_for_judge": seconds})

    name, told = events_of(streamed)[-1]
    assert name == "response.completed"
    assert json.loads(told)["response"]["judging"] == judging


@pytest.mark.usefixtures("judged")
@pytest.mark.parametrize("more", [{}, {"model": "groundnote-links"}, {"wait_for_judge": 5}])
@pytest.mark.parametrize("counts", [None, False, True])
def test_only_the_count_of_tokens_is_a_chunk_without_a_choice_and_only_where_it_is_wanted(
    client, more, counts
):
    options = {} if counts is None else {"stream_options": {"include_usage": counts}}
    chunks = chunks_of(chat(client, "How heavy?", stream=True, **options, **more))

    empty = [each for each in chunks if not each["choices"]]
    assert [sorted(each) for each in empty] == [
        ["choices", "created", "id", "model", "object", "usage"]
    ] * bool(counts)


@pytest.mark.usefixtures("judged")
def test_a_completion_may_wait_for_it_and_so_may_a_response(client):
    body = chat(client, "How heavy?", wait_for_judge=10).get_json()
    response = client.post(
        "/v1/responses", json={"model": "groundnote", "input": "How heavy?", "wait_for_judge": 10}
    ).get_json()

    assert body["citations"][0]["verdict"] == "contradicted"
    assert response["citations"][0]["verdict"] == "contradicted"

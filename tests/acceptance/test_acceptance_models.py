"""A model server in every kind of trouble, seen from the API and the page."""

import json
import logging

import pytest

from tests.openai_server import KEY, OpenAIServer, cut, drop, endless, failure, hang, page, reply

QUESTION = "How much does the Aero 5 weigh?"
GOOD = reply("The Aero 5 weighs 120 g [1].")
FAULTS = [
    pytest.param(failure(401, f"Incorrect API key provided: {KEY}"), "key", id="401"),
    pytest.param(failure(429, "Rate limit reached"), "try again|wait|busy|many", id="429"),
    pytest.param(failure(500, "internal error"), "", id="500"),
    pytest.param(page("{broken", content_type="application/json"), "", id="invalid JSON"),
    pytest.param(page(f"<html>proxy {KEY}</html>", status=502), "", id="a proxy's page"),
    pytest.param(drop(), "", id="connection dropped"),
    pytest.param(hang(), "", id="hanging"),
    pytest.param(hang("The Aero 5 "), "", id="hanging in the middle"),
    pytest.param(cut("The Aero 5 "), "", id="cut in the middle"),
]


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.DEBUG)
    return caplog


@pytest.mark.parametrize(
    ("fault", "words", "streamed"),
    [
        *(pytest.param(*each.values, False, id=f"{each.id}, JSON") for each in FAULTS),
        *(pytest.param(*each.values, True, id=f"{each.id}, events") for each in FAULTS[-3:]),
    ],
)
def test_a_failing_model_is_explained_the_question_kept_and_the_next_answered(
    with_model, log, capfd, fault, words, streamed
):
    with OpenAIServer(fault, GOOD) as server:
        library = with_model(server, timeout_seconds=0.4)
        session_id = library.session()
        if streamed:
            _, events = library.stream(session_id, QUESTION)
            name, answer = events[-1]
            assert name == "final"
        else:
            answer = library.ask(session_id, QUESTION)
        kept = library.get(f"/sessions/{session_id}/messages")["messages"]
        conversation = library.page(f"/sessions/{session_id}")
        again = library.post(f"/sessions/{session_id}/messages/1/regenerate", json={}).get_json()

    (notice,) = answer["notices"]
    assert notice["kind"] == "without_model"
    assert any(word in notice["text"].lower() for word in words.split("|"))
    assert len(notice["text"]) > 30
    assert "120 g" in answer["content"]
    assert answer["citations"]
    assert [(each["role"], each["content"]) for each in kept][:1] == [("user", QUESTION)]
    assert (kept[1]["status"], kept[1]["notices"]) == ("complete", [notice])
    assert "Ask the model again" in conversation.get_data(as_text=True)
    assert (again["content"], again["notices"]) == ("The Aero 5 weighs 120 g [1].", [])
    said = json.dumps([answer, kept]) + conversation.get_data(as_text=True)
    assert KEY not in said + log.text + "".join(capfd.readouterr())


def test_an_absent_server_is_named_and_the_question_can_be_tried_again(with_model):
    with OpenAIServer(GOOD) as server:
        library = with_model(server)
    session_id = library.session()

    answer = library.ask(session_id, QUESTION)

    assert server.url.split("/v1")[0] in answer["notices"][0]["text"]
    kept = library.get(f"/sessions/{session_id}/messages")["messages"]
    assert [each["role"] for each in kept] == ["user", "assistant"]
    assert library.post("/search", json={"query": QUESTION}).get_json()["hits"]


def test_an_answer_that_broke_off_after_a_citation_is_kept_as_it_is_and_says_so(with_model):
    with OpenAIServer(cut("The Aero 5 weighs 120 g [1]. The Aero "), GOOD) as server:
        library = with_model(server)
        session_id = library.session()
        answer = library.ask(session_id, QUESTION)
        kept = library.get(f"/sessions/{session_id}/messages/1")
        shown = library.page(f"/sessions/{session_id}").get_data(as_text=True)
        again = library.post(f"/sessions/{session_id}/messages/1/regenerate", json={}).get_json()

    assert kept["status"] == "complete"
    assert kept["content"].startswith("The Aero 5 weighs 120 g [1].")
    assert kept["content"] == answer["content"]
    (notice,) = kept["notices"]
    assert notice["kind"] == "cut"
    assert "broke off" in notice["text"]
    assert "data-go-on" in shown
    assert (again["content"], again["notices"]) == ("The Aero 5 weighs 120 g [1].", [])


def test_an_answer_that_may_not_be_longer_is_marked_and_can_go_on(with_model):
    cut_off = reply("The Aero 5 weighs 120 g [1]. The Pro", finish="length")
    with OpenAIServer(cut_off, reply("The Pro weighs 140 g [1].")) as server:
        library = with_model(server)
        session_id = library.session()
        answer = library.ask(session_id, QUESTION)
        shown = library.page(f"/sessions/{session_id}").get_data(as_text=True)
        more = library.ask(session_id, "Go on.")

    assert [notice["kind"] for notice in answer["notices"]] == ["cut"]
    assert "data-go-on" in shown
    assert more["resolved_query"] == QUESTION
    assert {source["n"] for source in more["sources"]} <= {
        source["n"] for source in answer["sources"]
    }


def test_a_model_that_repeats_itself_is_stopped_and_the_repetitions_go(with_model):
    with OpenAIServer(endless("The Aero 5 weighs 120 g [1]. ")) as server:
        library = with_model(server, timeout_seconds=30)
        answer = library.ask(library.session(), QUESTION)

    assert [notice["kind"] for notice in answer["notices"]] == ["loop"]
    assert answer["content"] == "The Aero 5 weighs 120 g [1]."


def test_an_answer_that_failed_can_be_regenerated(with_model):
    with OpenAIServer(failure(500, "internal error"), GOOD) as server:
        library = with_model(server)
        session_id = library.session()
        library.post(f"/sessions/{session_id}/messages", json={"content": QUESTION})

        again = library.post(f"/sessions/{session_id}/messages/1/regenerate", json={}).get_json()

    assert again["content"] == "The Aero 5 weighs 120 g [1]."
    assert again["index"] == 1
    assert library.get(f"/sessions/{session_id}/messages")["total"] == 2


def test_a_model_that_only_fails_to_summarise_is_replaced_in_sight(with_model, monkeypatch):
    monkeypatch.setenv("GROUNDNOTE_SUMMARIZATION_SETTINGS__THREAD", "true")
    with OpenAIServer(GOOD, GOOD, GOOD, GOOD, failure(500, "internal error")) as server:
        library = with_model(server)
        session_id = library.session(context_config={"recent_message_count": 2})
        for _ in range(4):
            library.ask(session_id, QUESTION)
        made = library.post(f"/sessions/{session_id}/compact", json={}).get_json()

    assert made["compacted"] is True
    report = made["report"]
    assert report["citations_kept"] == report["citations_required"] == 1
    assert report["names_kept"] == report["names_required"] > 0
    assert report["problems"]
    assert KEY not in json.dumps(made)

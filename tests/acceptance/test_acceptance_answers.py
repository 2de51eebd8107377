"""The shape of answers and of their streams, as programs rely on it."""

from itertools import groupby

import pytest

from tests.acceptance.conftest import installed

ANSWER = {
    "index", "role", "content", "citations", "sources", "resolved_query", "is_followup", "context",
    "usage",
}  # fmt: skip
WEIGHT = "How much does the Aero 5 weigh?"


def test_an_answer_has_the_documented_shape(library):
    session_id = library.session()

    answer = library.ask(session_id, WEIGHT)

    assert answer.keys() >= ANSWER
    assert (answer["index"], answer["role"], answer["is_followup"]) == (1, "assistant", False)
    assert answer["resolved_query"] == WEIGHT
    assert answer["citations"]
    for each in answer["citations"]:
        marker = answer["content"][each["start"] : each["end"]]
        assert marker == f"[{each['n']}]"
    assert {each["n"] for each in answer["citations"]} == {each["n"] for each in answer["sources"]}
    assert answer["context"]["tokens"] <= answer["context"]["budget"]


def test_a_follow_up_shows_what_was_searched_for(library):
    session_id = library.session()
    library.ask(session_id, WEIGHT)

    answer = library.ask(session_id, "And the Pro?")

    assert answer["is_followup"] is True
    assert answer["resolved_query"] == f"{WEIGHT} And the Pro?"  # no title is called Aero 5 Pro
    assert "140 g" in answer["content"]
    assert "And the Pro?" in library.page(f"/sessions/{session_id}").get_data(as_text=True)


def test_events_come_in_the_documented_order_and_no_proxy_may_keep_them(library):
    session_id = library.session()

    response, events = library.stream(session_id, WEIGHT)

    names = [name for name, _ in groupby(name for name, _ in events)]
    assert names[:2] == ["resolved", "sources"]
    assert names[-1] == "final"
    assert set(names) <= {"resolved", "compaction", "sources", "delta", "cited", "tool", "final"}
    assert [name for name, _ in events].count("final") == 1
    assert response.mimetype == "text/event-stream"
    assert response.headers["X-Accel-Buffering"] == "no"
    final = events[-1][1]
    assert final.keys() >= ANSWER
    shown = {n for name, each in events if name == "cited" for n in [each["n"]]}
    assert shown <= {each["n"] for each in final["citations"]}
    assert "".join(each["text"] for name, each in events if name == "delta") == final["content"]


@pytest.mark.parametrize("question", ["What is the capital of France?", "zzz qqq xxx"])
def test_of_what_the_documents_do_not_answer_nothing_is_claimed(library, question):
    session_id = library.session()

    answer = library.ask(session_id, question)

    assert answer["declined"] is True
    assert answer["content"].startswith("The documents do not seem to answer this.")


def test_a_question_that_names_a_source_gets_it_and_an_unknown_number_is_said(library):
    session_id = library.session()
    first = library.ask(session_id, WEIGHT)
    number = first["citations"][0]["n"]

    again = library.ask(session_id, f"Tell me more about [{number}]")
    unknown = library.ask(session_id, "Tell me more about [99]")

    assert {each["n"] for each in again["citations"]} == {number}
    assert "no source number 99" in unknown["content"]
    assert "[99]" not in unknown["content"]


@pytest.mark.parametrize("mode", ["single", "proxy"])
def test_logging_out_is_no_error_where_there_is_no_login(tmp_path, mode):
    with installed(tmp_path / "home", auth={"mode": mode}) as library:
        response = library.client.post("/logout", headers={"X-Forwarded-User": "anna"})

        assert (response.status_code, response.location) == (303, "/")


def test_a_server_is_ready_once_its_model_is_loaded(library):
    assert library.client.get("/readyz").status_code == 503

    library.application.warm_up()

    assert library.client.get("/readyz").get_json()["status"] == "ready"

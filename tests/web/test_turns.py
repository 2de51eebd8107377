"""A turn runs to its end whoever looks on, is followed from anywhere, and ends early on Stop."""

import json
import threading
import time
from dataclasses import replace

import pytest

from rag.records import MessageStatus, Text
from rag.runtime.budget import hang_up_reason
from rag.web.turns import EXTENSION, RunningTurn, Turns
from tests.waiting import LONG, until
from tests.web.conftest import events_of

STREAM = {"Accept": "text/event-stream"}
QUESTION = {"content": "How heavy is the Aero 5?"}


@pytest.fixture
def gate(application):
    """The fake assistant waits before each word until this is set."""
    application.assistant.wait = threading.Event()
    yield application.assistant.wait
    application.assistant.wait.set()


def started(client, session_id):
    """A stream that was opened, and left once the answer had begun."""
    response = client.post(
        f"/api/v1/sessions/{session_id}/messages", json=QUESTION, headers=STREAM, buffered=False
    )
    first = next(response.response)
    response.close()
    return first


def ended(client, session_id, index=1):
    url = f"/api/v1/sessions/{session_id}/messages/{index}"
    until(lambda: client.get(url).get_json()["status"] != "pending")
    return client.get(url).get_json()


def followed(client, session_id, index=1, **headers):
    url = f"/api/v1/sessions/{session_id}/messages/{index}/events"
    response = client.get(url, headers=headers)
    assert response.status_code == 200
    return events_of(response)


def ids_of(response):
    frames = [frame for frame in response.get_data(as_text=True).split("\n\n") if frame]
    return [frame.splitlines()[0].removeprefix("id: ") for frame in frames]


def test_each_event_says_where_it_stands(client, session_id):
    response = client.post(f"/api/v1/sessions/{session_id}/messages", json=QUESTION, headers=STREAM)

    ids = ids_of(response)
    assert ids == [f"1-0-{number}" for number in range(len(ids))]


def test_a_stream_that_is_left_changes_nothing(client, session_id, application, gate):
    started(client, session_id)
    gate.set()

    assert ended(client, session_id)["content"] == "It weighs 120 g [1]."
    assert application.assistant.hung_up == 0


def test_who_comes_back_reads_on_from_what_was_seen(client, session_id, gate):
    started(client, session_id)
    gate.set()
    ended(client, session_id)

    whole = followed(client, session_id)
    rest = followed(client, session_id, **{"Last-Event-ID": "1-0-2"})

    assert [name for name, _ in whole][:2] == ["resolved", "sources"]
    assert rest == whole[3:]
    assert rest[-1][0] == "final"


def test_who_saw_events_of_an_earlier_attempt_is_shown_all_of_the_new_one(client, session_id):
    url = f"/api/v1/sessions/{session_id}/messages"
    seen = ids_of(client.post(url, json=QUESTION, headers=STREAM))
    client.post(f"{url}/1/regenerate", headers=STREAM).get_data()

    whole = followed(client, session_id)
    for last_id in (seen[2], seen[-1]):
        first, *rest = followed(client, session_id, **{"Last-Event-ID": last_id})

        assert first[0] == "discard"
        assert rest == whole


def test_an_attempt_that_another_process_makes_is_not_taken_for_the_one_made_here(
    client, session_id, asked, application
):
    session = application.store.open(session_id, owner="local")
    again = session.begin_again(1).answer
    session.finish(replace(again, status=MessageStatus.COMPLETE, content="It is light."))

    (event,) = followed(client, session_id)

    assert (event[0], json.loads(event[1])["content"]) == ("final", "It is light.")


def test_an_answer_of_long_ago_is_its_end(client, session_id, asked, app):
    app.extensions[EXTENSION] = Turns(4)  # another process, or the same one later

    (event,) = followed(client, session_id)

    name, told = event[0], json.loads(event[1])
    assert (name, told["content"], told["sources"][0]["n"]) == ("final", asked["content"], 1)


def test_a_question_has_no_events(client, session_id, asked):
    response = client.get(f"/api/v1/sessions/{session_id}/messages/0/events")

    assert response.status_code == 404


def test_stop_ends_the_answer_as_the_person_wished(client, session_id, gate, application):
    started(client, session_id)
    response = client.post(f"/api/v1/sessions/{session_id}/messages/1/stop")
    gate.set()

    assert response.status_code == 202
    name, told = followed(client, session_id)[-1]
    assert (name, json.loads(told)["detail"]) == ("error", "Stopped.")


@pytest.mark.slow
def test_stop_reaches_another_process_while_its_model_is_silent(app, client, session_id, gate):
    started(client, session_id)
    (turn,) = app.extensions[EXTENSION]._turns
    app.extensions[EXTENSION] = Turns(4)  # where the request to stop arrives

    response = client.post(f"/api/v1/sessions/{session_id}/messages/1/stop")
    until(lambda: turn.hang_up.is_over)
    gate.set()

    assert response.status_code == 202
    assert turn.end().message == "Stopped."


@pytest.mark.parametrize(
    "seen", ["1-0-" + "9" * 5000, "1-0-٣", "1-2", "1-0-999", "9-0-1", "-1-2", "x"]
)
def test_who_saw_what_never_was_is_shown_the_answer(client, session_id, asked, seen):
    events = followed(client, session_id, **{"Last-Event-ID": seen.encode().decode("latin-1")})

    assert [name for name, _ in events][-1] == "final"


def test_stop_of_an_answer_that_has_ended_changes_nothing(client, session_id, asked):
    response = client.post(f"/api/v1/sessions/{session_id}/messages/1/stop")

    assert (response.status_code, response.get_json()["status"]) == (202, "complete")


@pytest.mark.slow
def test_another_process_shows_what_is_written_and_passes_the_stop_on(
    app, client, session_id, application
):
    session = application.store.open(session_id, owner="local")
    turn = session.begin("How heavy is it?")
    stopped = threading.Event()

    def stop():
        if not stopped.is_set():
            stopped.set()
            written = {"content": "It weighs", "error": "Stopped."}
            session.finish(replace(turn.answer, status=MessageStatus.INTERRUPTED, **written))

    session.tell(1, "It weighs", stop)
    until(lambda: session.written_so_far(1) is not None)
    client.post(f"/api/v1/sessions/{session_id}/messages/1/stop")
    events = followed(client, session_id)

    assert stopped.is_set()
    assert json.loads(events[0][1]) == {"text": "It weighs"}
    assert json.loads(events[-1][1])["detail"] == "Stopped."


def test_at_most_so_many_turns_run_at_once():
    turns, inside, most = Turns(2), [], []

    def ask(_session):
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.02)
        inside.pop()
        yield Text("a")

    class Session:
        id, owner = "s", "anna"

    begun = [turns.start(Session(), ask) for _ in range(6)]
    for turn in begun:
        turn.end(timeout=LONG)

    assert max(most) == 2


def test_a_server_that_ends_says_so_in_its_answers():
    turns, reasons = Turns(2), []

    def ask(_session):
        yield Text("a")
        while hang_up_reason() is None:
            time.sleep(0.01)
        reasons.append(hang_up_reason())
        yield Text("b")

    class Session:
        id, owner = "s", "anna"

    turn: RunningTurn = turns.start(Session(), ask)
    turns.close()

    assert "server was stopped" in reasons[0]
    assert "server was stopped" in turn.end().message

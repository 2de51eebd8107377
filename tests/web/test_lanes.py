"""Answers wait for each other in fair turn, and pages do not wait for answers."""

import threading

import pytest
from werkzeug.exceptions import ServiceUnavailable

from rag.web import ANSWERING, create_app
from rag.web.serving.lanes import AnswerLane
from tests.deployment.conftest import until


class Asker:
    """Somebody who waits for a place in a thread of their own."""

    def __init__(self, lane, owner):
        self._lane, self._owner = lane, owner
        self.ticket = None
        self.refusal = None
        self._thread = threading.Thread(target=self._enter, daemon=True)
        self._thread.start()

    def _enter(self):
        try:
            self.ticket = self._lane.enter(self._owner, patience_seconds=30)
        except ServiceUnavailable as error:
            self.refusal = error


class TestAnswerLane:
    def test_lets_in_as_many_as_fit(self):
        lane = AnswerLane(2, 0)

        lane.enter("anna")
        second = lane.enter("anna")
        with pytest.raises(ServiceUnavailable, match="0 more wait before yours") as refused:
            lane.enter("anna")
        lane.leave(second)

        assert refused.value.retry_after == 5
        assert lane.enter("anna").is_in

    def test_lets_the_owner_with_the_fewest_in_first(self):
        lane = AnswerLane(2, 4)
        tickets = [lane.enter("anna"), lane.enter("anna")]
        annas = Asker(lane, "anna")
        until(lambda: len(lane._queue) == 1)
        bens = Asker(lane, "ben")
        until(lambda: len(lane._queue) == 2)

        lane.leave(tickets.pop())
        until(lambda: bens.ticket)
        assert annas.ticket is None

        lane.leave(tickets.pop())
        until(lambda: annas.ticket)

    def test_says_how_many_wait_before_when_patience_ends(self):
        lane = AnswerLane(1, 2)
        lane.enter("anna")
        Asker(lane, "anna")
        until(lambda: len(lane._queue) == 1)

        with pytest.raises(ServiceUnavailable, match="1 more wait before yours"):
            lane.enter("anna", patience_seconds=0.01)

    def test_gives_the_place_of_one_who_gave_up_to_the_next(self):
        lane = AnswerLane(1, 2)
        ticket = lane.enter("anna")
        with pytest.raises(ServiceUnavailable):
            lane.enter("ben", patience_seconds=0.01)

        lane.leave(ticket)

        assert lane.enter("cleo", patience_seconds=0.01).is_in


def test_every_route_that_answers_is_limited(app):
    assert set(app.view_functions) >= ANSWERING


def test_a_refused_question_leaves_no_place_taken(application, settings, session_id):
    web = settings.web.model_copy(update={"threads": 4})
    application.settings = settings.model_copy(update={"web": web})
    client = create_app(application).test_client()
    url = f"/api/v1/sessions/{session_id}/messages"

    for _ in range(10):
        assert client.post(url, json={"content": " "}).status_code == 422
        asked = client.post("/api/v1/sessions/none/messages", json={"content": "a"})
        assert asked.status_code == 404
    assert client.post(url, json={"content": "How heavy is it?"}).status_code == 200


def test_whoever_follows_an_answer_holds_a_place_too():
    assert {"messages.follow", "responses.respond"} <= ANSWERING

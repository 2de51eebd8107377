"""With a model: three turns, strict parsing, a time limit; any failure falls back to the rules."""

import json
import threading

import pytest

from rag.chat.follow_ups.model import read_reply
from rag.chat.follow_ups.resolution import FollowUps
from rag.errors import ContextTooLong, ModelInterrupted, ModelUnavailable, UnreadableReply
from rag.records import EVERYTHING
from rag.seams.patience import Patience
from tests.fakes import ScriptedModel

HISTORY = [("Top 10 products in Q3", "Here they are [1].")]


def reply(question):
    return json.dumps({"question": question})


def resolve(model, question="What about Q4?", history=HISTORY, **options):
    return FollowUps(model=model, **options).resolve(question, history, EVERYTHING)


def test_the_models_question_is_taken():
    resolution = resolve(ScriptedModel(reply("Which ten products sold best in Q4?")))

    assert resolution.query == "Which ten products sold best in Q4?"
    assert resolution.dense_query == resolution.lexical_query == resolution.query
    assert resolution.before.said[0][0] == "Top 10 products in Q3"
    assert (resolution.method, resolution.is_followup) == ("model", True)


def test_a_question_that_the_model_repeats_stands_alone():
    resolution = resolve(ScriptedModel(reply("What is a refund?")), "What is a refund?")

    assert resolution.query == "What is a refund?"
    assert (resolution.method, resolution.is_followup) == ("unchanged", False)


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(ModelUnavailable("down"), id="unavailable"),
        pytest.param(ContextTooLong("too long"), id="too-long"),
        pytest.param(UnreadableReply("html"), id="unreadable"),
        pytest.param(['{"question": "Top', ModelInterrupted("gone")], id="interrupted"),
        pytest.param("", id="empty"),
        pytest.param("Top 10 products in Q4", id="no-json"),
        pytest.param('{"question": ""}', id="empty-question"),
        pytest.param('{"question": 4}', id="no-text"),
        pytest.param('["Top 10 products in Q4"]', id="a-list"),
        pytest.param('{"question": "Top", "answer": "Aero"}', id="more-than-asked-for"),
        pytest.param(reply("Top\n10"), id="two-lines"),
        pytest.param(reply("word " * 200), id="essay"),
        pytest.param(reply("What does [7] say about Q4?"), id="invented-number"),
    ],
)
def test_any_failure_falls_back_to_the_rules(failure):
    resolution = resolve(ScriptedModel(failure))

    assert resolution.query == "Top 10 products in Q4"
    assert resolution.method == "rules"


class Stuck:
    """A model that never answers."""

    name = "stuck"

    def __init__(self):
        self.release = threading.Event()

    def stream(self, request):
        self.release.wait(30)
        yield from ()


def test_a_model_that_never_answers_is_not_waited_for():
    model = Stuck()

    resolution = resolve(model, patience=Patience(0.05))

    model.release.set()
    assert resolution.query == "Top 10 products in Q4"
    assert resolution.method == "rules"


def test_the_model_sees_the_last_three_turns_and_its_time_limit():
    model = ScriptedModel(reply("Top 10 products in Q4"))
    history = [(f"Question {n}", f"Answer {n} " + "x" * 2000) for n in range(6)]

    resolve(model, history=history, patience=Patience(4))

    request = model.requests[0]
    shown = request.messages[-1].content
    assert "Question 2" not in shown
    assert all(f"Question {n}" in shown and f"Answer {n}" in shown for n in (3, 4, 5))
    assert len(shown) < 3000
    assert request.patience.seconds == 4


@pytest.mark.parametrize(
    ("question", "history"),
    [
        pytest.param("What about Q4?", [], id="first-question"),
        pytest.param(" ", HISTORY, id="blank"),
    ],
)
def test_the_model_is_not_asked_where_there_is_nothing_to_resolve(question, history):
    model = ScriptedModel()

    assert resolve(model, question, history).method == "unchanged"
    assert model.requests == []


def test_numbers_of_sources_survive_the_model():
    model = ScriptedModel(reply("What does [3] say about the warranty of the Aero 5?"))

    resolution = resolve(model, "What does [3] say about it?")

    assert resolution.source_numbers == (3,)
    assert "[3]" in resolution.query
    assert "[3]" not in resolution.dense_query


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(reply(" Top 10 in Q4 "), id="spaces"),
        pytest.param("```json\n" + reply("Top 10 in Q4") + "\n```", id="fence"),
    ],
)
def test_a_reply_may_be_wrapped(text):
    assert read_reply(text, "Q4?") == "Top 10 in Q4"

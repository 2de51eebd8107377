"""With a model: three turns, strict parsing, a time limit; any failure falls back to the rules."""

import json
import threading

import pytest

from rag.chat.follow_ups import FollowUps, LastTurn, read_reply
from rag.errors import ContextTooLong, ModelInterrupted, ModelUnavailable, UnreadableReply
from rag.records import EVERYTHING
from rag.seams.models import Patience
from tests.fakes import ScriptedModel

HISTORY = [("How heavy is the Aero 5?", "200 g [1].")]
RENAMED = "How heavy is the Aero 7?"


def reply(question):
    return json.dumps({"question": question})


def resolve(model, question="And the Aero 7?", history=HISTORY, **options):
    """A name alone is a follow-up without a search."""
    followups = FollowUps(model=model, lexicon=lambda readable: ("Aero 5", "Aero 7"), **options)
    topic = history[-1][0] if history else ""
    return followups.resolve(question, LastTurn(topic, turns=tuple(history)), EVERYTHING)


def test_the_models_question_is_taken():
    resolution = resolve(ScriptedModel(reply("What does the Aero 7 weigh?")))

    assert resolution.query == "What does the Aero 7 weigh?"
    assert resolution.searched == resolution.query
    assert resolution.before.texts[0][0] == "How heavy is the Aero 5?"
    assert (resolution.method, resolution.is_followup) == ("model", True)


def test_a_question_that_the_model_repeats_stands_alone():
    resolution = resolve(ScriptedModel(reply("And the Aero 7?")))

    assert resolution.query == "And the Aero 7?"
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

    assert resolution.query == RENAMED
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
    assert resolution.query == RENAMED
    assert resolution.method == "rules"


def test_the_model_sees_the_last_three_turns_and_its_time_limit():
    model = ScriptedModel(reply(RENAMED))
    history = [(f"Question {n} on the Aero 5", f"Answer {n} " + "x" * 2000) for n in range(6)]

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


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(reply(" Top 10 in Q4 "), id="spaces"),
        pytest.param("```json\n" + reply("Top 10 in Q4") + "\n```", id="fence"),
    ],
)
def test_a_reply_may_be_wrapped(text):
    assert read_reply(text, "Q4?") == "Top 10 in Q4"

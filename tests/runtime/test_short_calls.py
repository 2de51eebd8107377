"""A model is asked something short beside an answer: nobody waits longer for it than was said."""

import threading

import pytest

from rag.errors import ModelInterrupted
from rag.records import ChatMessage, Role
from rag.runtime import budget
from rag.runtime.budget import json_object, reply_soon
from rag.seams import ModelDelta
from rag.seams.models import Patience
from tests.fakes import ScriptedModel
from tests.waiting import LONG

ASKED = [ChatMessage(Role.USER, "Which?")]


class Dripping:
    """A model that says a letter whenever it is let, and never ends."""

    name = "dripping"

    def __init__(self):
        self.may_go_on = threading.Event()

    def stream(self, request):
        yield ModelDelta("{")
        self.may_go_on.wait(LONG)
        while True:
            yield ModelDelta("x")


def soon(model, seconds=5.0):
    return reply_soon(model, ASKED, max_tokens=50, patience=Patience(seconds))


def test_a_reply_is_asked_for_without_thoughts_and_in_time():
    model = ScriptedModel('{"a": 1}')

    assert soon(model) == '{"a": 1}'
    (request,) = model.requests
    assert (request.max_tokens, request.patience.seconds, request.thinks) == (50, 5.0, False)


def test_a_reply_that_never_ends_is_no_reply():
    model = Dripping()

    assert soon(model, 0.05) == ""
    model.may_go_on.set()  # and its thread ends, for the time is over


def test_half_a_reply_is_none_however_late_its_thread_began(monkeypatch):
    model = Dripping()
    model.may_go_on.set()
    monkeypatch.setattr(budget.Thread, "start", lambda thread: thread.run())  # and is over

    assert soon(model, 0.001) == ""


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(['{"a"', ModelInterrupted("gone")], id="broken off"),
        pytest.param(ModelInterrupted("gone"), id="none"),
    ],
)
def test_a_reply_that_fails_is_no_reply(reply):
    assert soon(ScriptedModel(reply)) == ""


def test_what_is_taken_back_is_no_part_of_a_reply():
    class Careful:
        name = "careful"

        def stream(self, request):
            yield ModelDelta("thoughts")
            yield ModelDelta("{}", discard=True)

    assert soon(Careful()) == "{}"


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Here it is:\n```json\n{"a": 1}\n```', {"a": 1}),
        ('{"a": {"b": 2}} I hope that helps.', {"a": {"b": 2}}),
        ('["a"]', None),
        ("no object", None),
        ('{"a": 1', None),
        ("}{", None),
        ("", None),
    ],
)
def test_an_object_is_read_in_whatever_it_is_wrapped(reply, found):
    assert json_object(reply) == found

"""A wait is cut from another thread, whether it began before or after."""

import threading

import pytest

from rag.errors import ModelInterrupted
from rag.runtime.budget import HangUp, has_hung_up, on_hang_up
from rag.web.pages import conversations
from tests.model_application import World
from tests.openai_server import (
    OpenAIServer,
    asked,
    deltas,
    endless,
    hang,
    model_at,
    reply,
    slowly,
)
from tests.waiting import LONG, until


def test_cuts_what_was_begun_and_what_is_begun_later():
    hang_up, cut = HangUp(), []

    with hang_up.heard_here():
        on_hang_up(lambda: cut.append("before"))
        assert not has_hung_up()
        hang_up.now()
        on_hang_up(lambda: cut.append("after"))
        assert has_hung_up()

    assert cut == ["before", "after"]


def test_is_heard_by_the_thread_that_works_for_it_alone():
    hang_up, cut = HangUp(), []
    hang_up.now()

    on_hang_up(lambda: cut.append("stranger"))

    assert (cut, has_hung_up()) == ([], False)


@pytest.mark.parametrize(
    "behaviour", [hang(), hang("Refunds "), endless()], ids=["silent", "middle", "endless"]
)
def test_ends_the_call_of_a_model_whatever_it_does(behaviour):
    hang_up, ended = HangUp(), []

    def ask(model):
        with hang_up.heard_here():
            try:
                list(model.stream(asked()))
            except ModelInterrupted as error:
                ended.append(str(error))

    with OpenAIServer(behaviour) as server:
        working = threading.Thread(
            target=ask, args=[model_at(server, timeout_seconds=600, max_retries=3)]
        )
        working.start()
        while not server.requests:
            working.join(0.01)
        hang_up.now()
        working.join(LONG)

        assert ended == ["The answer was stopped before its end."]
        assert len(server.requests) == 1


def test_is_told_as_it_was_where_the_server_ends_its_stream_in_good_order():
    """Some close the stream of a call that is cut as if they had said all."""
    hang_up = HangUp()

    def stopped_at_once(server):
        for _delta in model_at(server).stream(asked()):
            hang_up.now("Stopped.")

    with (
        OpenAIServer(deltas({"content": "Two"}, finish=None, done=False)) as server,
        hang_up.heard_here(),
        pytest.raises(ModelInterrupted, match=r"^Stopped\.$"),
    ):
        stopped_at_once(server)


def test_disturbs_no_call_that_nobody_left():
    hang_up = HangUp()

    with OpenAIServer(reply("Two weeks.")) as server, hang_up.heard_here():
        model = model_at(server)
        texts = ["".join(delta.text for delta in model.stream(asked())) for _ in range(2)]

    hang_up.now()
    assert texts == ["Two weeks."] * 2


@pytest.mark.slow
def test_a_form_without_scripts_leaves_a_slow_model_its_time(tmp_path, monkeypatch):
    monkeypatch.setattr(conversations, "FORM_SECONDS", 0.1)
    said = "The Aero 5 weighs 120 g [1]."
    with World(tmp_path) as world:
        world.server.behaviours[:] = [slowly(said, seconds_a_word=0.3)]  # longer than forms wait
        form = {"content": "How heavy is the Aero 5?"}
        page = world.client.post(f"/sessions/{world.session_id}/ask", data=form)
        pending = last_message(world)
        until(lambda: last_message(world)["status"] != "pending")
        answer = last_message(world)

    assert (page.status_code, pending["status"]) == (303, "pending")
    assert (answer["status"], answer["content"].strip(), answer["notices"]) == (
        "complete",
        said,
        [],
    )


def last_message(world):
    return world.client.get(world.at("/messages")).get_json()["messages"][-1]

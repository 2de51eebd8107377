"""What a model cannot take, or has no time for, is answered from the documents, with the reason."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from rag.records import ContextConfig
from tests.applications import application_of
from tests.deployment.conftest import until
from tests.model_application import World
from tests.openai_server import hang, reply

LONG = "How heavy is the Aero 5? " + "I have read the whole manual twice. " * 500


def ask(world, content="How heavy is the Aero 5?"):
    session_id = world.client.post("/api/v1/sessions", json={}).get_json()["id"]
    return world.client.post(f"/api/v1/sessions/{session_id}/messages", json={"content": content})


class TestAQuestionLongerThanTheWindow:
    def test_gets_the_passages_and_the_reason(self, tmp_path):
        with World(tmp_path, context_window=2_000) as world:
            answered = ask(world, LONG)

        answer = answered.get_json()
        assert answered.status_code == 200
        assert answer["card"]
        (notice,) = answer["notices"]
        assert "The question needs" in notice["text"]
        assert world.server.requests == []

    def test_is_nothing_where_no_model_reads_it(self, tmp_path):
        with World(tmp_path) as world:
            settings = world.application.settings.model_copy(
                update={"llm": type(world.application.settings.llm)()}
            )
        application = application_of(settings)
        session = application.store.create("local", title="", config=ContextConfig())

        *_, end = application.assistant.ask(session, LONG)

        assert end.message.answer.card is not None
        assert end.message.answer.notices == ()
        application.stop()


class TestAModelThatIsBusy:
    @pytest.mark.slow
    def test_is_not_waited_for_without_end(self, tmp_path, monkeypatch):
        """One call at once, which hangs; the next question has its passages after its patience."""
        monkeypatch.setattr("rag.llm.openai_compatible.PATIENCE_SECONDS", 0.2)
        with (
            World(tmp_path, calls_at_once=1, timeout_seconds=5) as world,
            ThreadPoolExecutor() as pool,
        ):
            world.server.behaviours[:] = [hang()]
            first = pool.submit(ask, world)
            until(lambda: world.server.requests)
            second = ask(world).get_json()
            first.result()

        assert second["card"]
        assert "Many questions are being answered just now" in second["notices"][0]["text"]
        assert len(world.server.requests) == 1


class TestAVeryLongPast:
    def test_is_read_in_the_background_and_the_answer_does_not_wait(self, tmp_path, monkeypatch):
        monkeypatch.setattr("rag.chat.context.SUMMARY_SECONDS", 0.0)
        said = [("user", "How heavy is part {}?"), ("assistant", "Part {} weighs {} g [1]. " * 9)]
        messages = [
            {"role": role, "content": text.format(*[at] * 18)}
            for at in range(150)
            for role, text in said
        ]
        with World(tmp_path, context_window=4_000) as world:
            session_id = world.client.post("/api/v1/sessions", json={}).get_json()["id"]
            url = f"/api/v1/sessions/{session_id}"
            world.client.post(f"{url}/import", json={"messages": messages})
            world.server.behaviours[:] = [reply("It weighs 120 g [1].")] * 2
            answered = world.client.post(f"{url}/messages", json={"content": "How heavy is it?"})
            before = world.client.get(f"{url}/summaries").get_json()["summaries"]
            world.application.jobs.run_waiting()
            after = world.client.get(f"{url}/summaries").get_json()["summaries"]

        assert answered.status_code == 200
        assert (len(before), len(after)) == (0, 1)

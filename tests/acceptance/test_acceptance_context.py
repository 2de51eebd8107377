"""What a model is shown of a session: settings, statistics, summaries and their end."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from rag.db import sessions, writing
from rag.settings import load_settings
from tests.acceptance.conftest import MANUAL, Installation, installed
from tests.openai_server import OpenAIServer, reply
from tests.waiting import LONG

WEIGHT = "How much does the Aero 5 weigh?"


def talk(library, session_id, turns):
    for turn in range(turns):
        library.ask(session_id, WEIGHT if turn % 2 else "How long does the battery last?")


def test_the_statistics_say_what_was_kept_of_what(library):
    session_id = library.session(context_config={"recent_message_count": 2})
    talk(library, session_id, 5)
    fresh = library.get(f"/sessions/{session_id}/context")["stats"]
    library.post(f"/sessions/{session_id}/compact", json={}, status=200)

    context = library.get(f"/sessions/{session_id}/context")

    stats = context["stats"]
    assert (fresh["is_compressed"], stats["is_compressed"]) == (False, True)
    assert fresh["original_messages"] == stats["original_messages"] == 10
    assert stats["messages"] == len(context["messages"]) < fresh["messages"]
    assert 0 < stats["tokens"] <= stats["budget"]
    assert stats["kept"]["citations"] == stats["kept"]["citations_required"] > 0
    assert stats["kept"]["names"] == stats["kept"]["names_required"] > 0
    system = [each["content"] for each in context["messages"] if each["role"] == "system"]
    assert len(system) == 1
    assert "\n\nPrevious conversation summary:\n" in system[0]


def test_forgetting_leaves_every_message_and_every_number(library):
    session_id = library.session(context_config={"recent_message_count": 2})
    talk(library, session_id, 4)
    library.post(f"/sessions/{session_id}/compact", json={}, status=200)
    said, numbers = library.get(f"/sessions/{session_id}/messages"), library.numbers(session_id)

    forgotten = library.client.delete(f"/api/v1/sessions/{session_id}/context").get_json()

    assert forgotten["forgotten"] == 1
    assert library.get(f"/sessions/{session_id}/context")["stats"]["is_compressed"] is False
    assert library.get(f"/sessions/{session_id}/messages") == said
    assert library.numbers(session_id) == numbers


def test_a_compaction_that_ends_after_forgetting_is_dropped(with_model, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()

    def summarise(exchange):
        begun.set()
        go_on.wait(LONG)
        reply("The Aero 5 weighs 120 g [1].")(exchange)

    answer = reply("The Aero 5 weighs 120 g [1].")
    with OpenAIServer(*[answer] * 4, summarise) as server:
        monkeypatch.setenv("GROUNDNOTE_SUMMARIZATION_SETTINGS__THREAD", "true")
        library = with_model(server, timeout_seconds=20)
        session_id = library.session(context_config={"recent_message_count": 2})
        for _ in range(4):
            library.ask(session_id, WEIGHT)
        path = f"/api/v1/sessions/{session_id}"
        other = library.app.test_client()
        compaction = threading.Thread(target=lambda: other.post(f"{path}/compact"))
        compaction.start()
        assert begun.wait(LONG)
        library.client.delete(f"{path}/context")
        go_on.set()
        compaction.join(LONG)

        assert not compaction.is_alive()
        assert library.get(f"/sessions/{session_id}/summaries")["summaries"] == []
        assert library.get(f"/sessions/{session_id}/messages")["total"] == 8


class TestConfigurationOfASession:
    def test_is_set_and_read_over_api_and_page(self, library):
        session_id = library.session(context_config={"compression_strategy": "sliding_window"})
        changed = {"recent_message_count": 4, "max_tokens": 3000, "enabled": False}

        library.client.put(f"/api/v1/sessions/{session_id}", json={"context_config": changed})
        page = library.page(f"/sessions/{session_id}/settings").get_data(as_text=True)

        config = library.get(f"/sessions/{session_id}")["context_config"]
        assert config == {"compression_strategy": "sliding_window", "share": [], **changed}
        assert 'value="3000"' in page
        assert 'value="4"' in page
        assert library.get(f"/sessions/{session_id}/context")["stats"]["window"] == 3000

    def test_sliding_window_sends_the_last_messages_and_summarises_nothing(self, library):
        session_id = library.session(
            context_config={"compression_strategy": "sliding_window", "recent_message_count": 4}
        )
        talk(library, session_id, 5)

        context = library.get(f"/sessions/{session_id}/context")

        spoken = [each for each in context["messages"] if each["role"] != "system"]
        assert len(spoken) == 4
        assert library.get(f"/sessions/{session_id}/summaries")["summaries"] == []

    def test_switched_off_never_summarises_by_itself_and_still_fits(self, library):
        session_id = library.session(context_config={"enabled": False, "max_tokens": 1500})
        talk(library, session_id, 24)
        library.application.jobs.run_waiting()

        stats = library.get(f"/sessions/{session_id}/context")["stats"]
        assert stats["tokens"] <= stats["budget"]
        assert library.get(f"/sessions/{session_id}/summaries")["summaries"] == []

    def test_of_one_session_means_nothing_to_another(self, library):
        library.session(context_config={"recent_message_count": 2})

        other = library.session()

        assert library.get(f"/sessions/{other}")["context_config"]["recent_message_count"] == 10


def test_switched_off_summaries_of_the_settings_hold_for_new_sessions(tmp_path):
    with installed(tmp_path / "home", summarization_settings={"enabled": False}) as library:
        library.add("aero.md", MANUAL)
        session_id = library.session(context_config={"max_tokens": 1500})
        talk(library, session_id, 24)
        library.application.jobs.run_waiting()

        assert library.get(f"/sessions/{session_id}/summaries")["summaries"] == []
        stats = library.get(f"/sessions/{session_id}/context")["stats"]
        assert stats["summarized_messages"] == 0
        assert stats["tokens"] <= stats["budget"]


@pytest.mark.parametrize(("pairs", "messages"), [("3", 6), ("0", 0)])
def test_context_message_pairs_is_honoured(tmp_path, monkeypatch, pairs, messages):
    monkeypatch.setenv("CONTEXT_MESSAGE_PAIRS", pairs)
    file = tmp_path / "settings.json"
    file.write_text("{}")
    context = load_settings(file).context

    with installed(tmp_path / "home", context=context) as library:
        session_id = library.session()

        config = library.get(f"/sessions/{session_id}")["context_config"]
    assert config["recent_message_count"] == messages


def test_sessions_unused_for_longer_than_their_time_are_gone_after_a_start(tmp_path):
    library = Installation(tmp_path / "home", sessions={"ttl_hours": 24})
    library.add("aero.md", MANUAL)
    old, young = library.session(), library.session()
    for session_id in (old, young):
        library.ask(session_id, WEIGHT)
    with writing(library.application.engine) as connection:
        long_ago = datetime.now(UTC) - timedelta(hours=25)
        connection.execute(
            update(sessions).where(sessions.c.id == old).values(last_used_at=long_ago)
        )

    library.restart()
    library.application.start()

    try:
        library.get(f"/sessions/{old}", status=404)
        library.get(f"/sessions/{old}/sources", status=404)
        assert library.get(f"/sessions/{young}/messages")["total"] == 2
        found = library.get("/search/messages?q=weigh")["found"]
        assert {each["session_id"] for each in found} == {young}
    finally:
        library.close()

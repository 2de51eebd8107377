"""Conversations are replayed as they are written: over restarts, other documents, recordings."""

import json
import re

import pytest

from rag.cli.evaluate import ConversationChoice, regress
from rag.errors import UserError
from rag.records import ChatMessage, Role
from rag.regression import replay as libraries
from rag.regression.replay import (
    Libraries,
    RecordedModel,
    Recorder,
    Replayer,
    ReplayOptions,
    files_of,
    recording_of,
)
from rag.seams import ModelRequest
from rag.settings import Settings
from tests.fakes import HashEmbedder, ScriptedModel
from tests.regression.scripts import BROUGHT, HOW_LONG, replaying, written

ROOT = libraries.PACKAGE
SAME = {"same_number_as": {"turn": 1, "source": "refunds.md"}}
REQUEST = ModelRequest((ChatMessage(Role.USER, "hi"),), max_tokens=9)


def replayed(replayer, place, *turns, **more):
    replay = replayer.replay(written(place, list(turns), **more))
    assert replay.error == ""
    assert [(c.turn, c.expectation, c.got) for c in replay.failures] == []
    return replay


def test_an_answer_is_written_anew(replayer, place):
    turns = replayed(replayer, place, HOW_LONG, {"regenerate": True, "says": ["five"]} | SAME).turns

    assert [turn.action for turn in turns] == ["ask", "regenerate"]


def test_a_question_that_cannot_be_asked_is_told_with_its_place(replayer, place):
    replay = replayer.replay(written(place, [HOW_LONG, {"ask": "x" * 300_000}]))

    assert re.search(
        r"line \d+, turn 2, \"ask\": The question has 300,000 characters", replay.error
    )


def test_a_setting_holds_from_its_turn_on(replayer, place):
    changed = {"settings": {"max_tokens": 1500}}

    turns = replayed(replayer, place, HOW_LONG, changed, HOW_LONG | SAME).turns

    assert turns[1].said == "max_tokens: 1500"


def test_documents_that_are_added_and_removed_change_no_other_conversation(replayer, place):
    added = {"name": "lamps.md", "text": "# Lamps\n\nThe lamp burns 90 hours."}
    lamp = {"ask": "How long does the lamp burn?"}

    replayed(
        replayer,
        place,
        HOW_LONG,
        {"add": added},
        lamp | {"cites": ["lamps.md"], "says": ["90 hours"]},
        {"remove": "lamps.md"},
        lamp | {"says_not": ["90 hours"]},
    )

    replayed(replayer, place, lamp | {"says_not": ["90 hours"]})


@pytest.mark.parametrize(
    ("turn", "told"),
    [({"remove": "x.md"}, "no document 'x.md'"), ({"add": {"name": "a", "file": "no"}}, "no file")],
)
def test_documents_that_are_not_there_are_errors_of_the_file(replayer, place, turn, told):
    assert told in replayer.replay(written(place, [HOW_LONG, turn])).error


@pytest.mark.slow
def test_a_new_process_knows_what_was_stored_and_nothing_else(replayer, place):
    restart = {"restart": True}
    turns = [BROUGHT, HOW_LONG, restart, {"ask": "And from abroad?", "says": ["nine"]}, restart]
    last = {"compress": True, "keeps_sources_of": [1, 2]}

    replay = replayed(replayer, place, *turns, HOW_LONG | {"says": ["five"]}, last)

    assert [turn.number for turn in replay.turns] == list(range(1, 8))


def test_the_same_file_gives_the_same_ten_times(replayer, place):
    recalls = [{"ask": "How wide is the gate?", "turn": 1, "words": "3.2 m wide"}]
    compress = {"compress": True, "keeps_sources_of": [1], "recalls": recalls}
    path = written(place, [BROUGHT, HOW_LONG, {"ask": "And from abroad?"}, compress, HOW_LONG])

    outcomes = [replayer.replay(path).outcome for _ in range(10)]

    assert all(outcome == outcomes[0] for outcome in outcomes)


def test_a_library_is_ingested_once_for_all_runs(place, monkeypatch):
    path = written(place, [HOW_LONG])
    with replaying(place) as first:
        assert first.replay(path).error == ""
    monkeypatch.setattr(Libraries, "_ingest", lambda *given: pytest.fail("ingested again"))

    with replaying(place) as second:
        assert second.replay(path).error == ""
        (place / "documents" / "new.md").write_text("# New\n\nText.")
        settings = Settings(data_dir=place / "var")
        names = {Libraries(settings, HashEmbedder())._name(place / "documents")}
        (place / "documents" / "new.md").unlink()
        names.add(Libraries(settings, HashEmbedder())._name(place / "documents"))
        assert len(names) == 2


def test_a_library_is_named_by_the_code_that_reads(monkeypatch, tmp_path):
    """A folder that is not there any more would be passed over in silence."""
    monkeypatch.setattr(libraries, "PACKAGE", tmp_path)
    names = {libraries._digest_of_code()}
    for folder in libraries.READS:
        assert (ROOT / folder).is_dir()
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "code.py").write_text("changed = True")
        names.add(libraries._digest_of_code())

    assert len(names) == 1 + len(libraries.READS)


def test_without_compaction_nothing_is_summarised(place):
    path = written(place, [BROUGHT, HOW_LONG, {"compress": True}, HOW_LONG])

    with replaying(place, ReplayOptions(compacts=False)) as replayer:
        replay = replayer.replay(path)

    assert replay.passed
    assert all(not turn.summary for turn in replay.turns)


class TestRecordings:
    def test_are_given_again_through_the_gate(self, place):
        turns = [
            BROUGHT,
            {"ask": "How wide is the gate?", "says": ["3.2 m wide"], "says_not": ["99"]},
        ]
        path = written(place, turns, "gate.json")
        reply = {"text": "The gate is 3.2 m wide [1][99]."}
        recording_of(path).write_text(json.dumps({"version": 1, "turns": {"2": [reply]}}))

        with replaying(place) as replayer:
            replay = replayer.replay(path)

        assert replay.passed
        assert replay.turns[1].answer == "The gate is 3.2 m wide [1]."

    def test_hold_what_a_model_said_and_in_which_turn(self, tmp_path):
        recorder = Recorder(ScriptedModel("Five days [1].", "Nine days [2]."))
        for turn in (1, 4):
            recorder.turn = turn
            list(recorder.stream(REQUEST))
        recorder.save(tmp_path / "a.recorded.json")

        recorded = RecordedModel(tmp_path / "a.recorded.json")
        recorded.turn = 4

        assert "".join(d.text for d in recorded.stream(REQUEST)) == "Nine days [2]."
        with pytest.raises(UserError, match="1 replies for turn 4; one more was asked for"):
            list(recorded.stream(REQUEST))

    def test_that_are_wanted_must_be_there(self, place):
        path = written(place, [HOW_LONG], "none.json")

        with replaying(place, ReplayOptions("recorded")) as replayer:
            assert "no recording" in replayer.replay(path).error

    def test_need_a_model_to_be_made(self, place):
        path = written(place, [HOW_LONG], "none.json")

        with replaying(place, ReplayOptions(records=True)) as replayer:
            assert "no model to record" in replayer.replay(path).error


def test_a_folder_stands_for_its_conversations_without_their_recordings(tmp_path):
    for name in ("b.json", "a.yaml", "a.recorded.json", "notes.md"):
        (tmp_path / name).write_text("")

    assert [path.name for path in files_of([tmp_path])] == ["a.yaml", "b.json"]


def test_a_replayer_over_no_documents_says_so(tmp_path):
    (tmp_path / "documents").mkdir()
    settings = Settings(data_dir=tmp_path / "var")

    with Replayer(settings, Libraries(settings, HashEmbedder())) as replayer:
        assert "holds no documents" in replayer.replay(written(tmp_path, [HOW_LONG])).error


def test_a_question_is_edited_in_a_branch_and_numbers_stay(replayer, place):
    other = {"ask": "How much does the Nimbus 7 Pro weigh?"}
    edit = HOW_LONG | {"edit": 2, "cites": ["refunds.md"]} | SAME

    turns = replayed(replayer, place, HOW_LONG, other, edit, {"regenerate": True} | SAME).turns

    assert [turn.action for turn in turns] == ["ask", "ask", "ask", "regenerate"]


def test_only_what_was_asked_before_can_be_edited(replayer, place):
    replay = replayer.replay(written(place, [HOW_LONG, HOW_LONG | {"edit": 4}]))

    assert "turn 4 asked nothing before this one" in replay.error


def test_conversations_that_nobody_has_are_no_run_that_passes(place):
    path = written(place, [HOW_LONG], "refunds.json")
    choice = ConversationChoice((path,), title_words="no such talk")

    with pytest.raises(UserError, match="No conversation is called 'no such talk'"):
        list(regress(Settings(data_dir=place / "var"), choice))

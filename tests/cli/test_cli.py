"""The command line as a person and a program use it, with the real embedding model."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from rag.cli import main
from rag.wiring.listeners import running_server, write_address
from tests.openai_server import OpenAIServer, failure
from tests.waiting import LONG, until

ROOT = Path(__file__).parents[2]
DOCUMENT = """# Refunds

Refunds take five working days after the parcel arrives at the warehouse.

## Abroad

Refunds to customers abroad take twelve working days.
"""


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "refunds.md").write_text(DOCUMENT)
    return folder


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("GROUNDNOTE_DATA_DIR", str(tmp_path / "var"))
    runner = CliRunner()
    return lambda *arguments, **kwargs: runner.invoke(main, [*map(str, arguments)], **kwargs)


class TestWithoutAModel:
    def test_wrong_usage_ends_with_2(self, run):
        assert run("ingest").exit_code == 2
        assert run("fly").exit_code == 2
        assert run("serve", "--port", "99999").exit_code == 2

    def test_wrong_settings_end_with_1_and_name_the_key(self, run, tmp_path):
        wrong = tmp_path / "wrong.json"
        wrong.write_text('{"webb": {}}')

        result = run("--settings", wrong, "sessions")

        assert result.exit_code == 1
        assert "webb is not a setting" in result.output
        assert "Traceback" not in result.output

    def test_sessions_of_a_new_library_are_none(self, run):
        result = run("sessions", "--json")

        assert (result.exit_code, json.loads(result.output)) == (0, [])

    def test_an_unknown_session_is_an_error(self, run):
        result = run("sessions", "--delete", "nobody")

        assert result.exit_code == 1
        assert "no session 'nobody'" in result.output

    def test_a_script_that_is_none_is_named_with_its_place(self, run, tmp_path):
        script = tmp_path / "script.json"
        script.write_text('{"title": "x", "documents": "d", "turns": [{"aks": "?"}]}')

        result = run("regress", script)

        assert result.exit_code == 2
        assert "line 1, turn 1: a turn needs one of ask" in result.output

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b'{"id": "a"}', 'line 1, "question": this key is missing'),
            (b'{"id": ', "line 1: not JSON"),
            (b"\n\n", "holds no question"),
            (b"\xff\xfe", "is not text in UTF-8"),
        ],
    )
    def test_questions_that_are_none_are_named_with_their_place(
        self, run, tmp_path, folder, content, message
    ):
        questions = tmp_path / "questions.jsonl"
        questions.write_bytes(content)

        result = run("eval", questions, folder)

        assert result.exit_code == 1
        assert message in result.output
        assert "errors.pydantic.dev" not in result.output

    def test_a_folder_without_anything_to_test_is_no_success(self, run, tmp_path):
        (tmp_path / "empty").mkdir()
        (tmp_path / "questions.jsonl").write_text('{"id": "a", "question": "How heavy?"}')

        replayed = run("regress", tmp_path / "empty")
        measured = run("eval", tmp_path / "questions.jsonl", tmp_path / "empty")

        assert (replayed.exit_code, measured.exit_code) == (1, 1)
        assert "holds no .json or .yaml file" in replayed.output
        assert "holds no documents" in measured.output

    def test_a_server_that_died_without_a_word_is_not_taken_for_running(self, tmp_path):
        write_address(tmp_path, "http://127.0.0.1:1")
        address = json.loads((tmp_path / "server.json").read_text())
        assert running_server(tmp_path) == "http://127.0.0.1:1"

        (tmp_path / "server.json").write_text(json.dumps(address | {"pid": 2**22 + 1}))
        assert running_server(tmp_path) is None

    def test_a_process_with_the_number_of_a_dead_server_is_not_taken_for_it(self, tmp_path):
        write_address(tmp_path, "http://127.0.0.1:1")
        (tmp_path / "chroma").mkdir()
        (tmp_path / "chroma" / "in_use_by.json").write_text(json.dumps({"pid": os.getpid()}))

        assert running_server(tmp_path) is None


def test_what_is_written_is_for_nobody_else(run, tmp_path, monkeypatch):
    monkeypatch.setenv("GROUNDNOTE_DATA_DIR", str(tmp_path / "data"))
    before = os.umask(0o022)
    try:
        run("sessions")
    finally:
        os.umask(before)

    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "data" / "groundnote.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
class TestWithTheModel:
    def test_ingests_then_answers_with_a_citation(self, run, folder):
        ingested = run("ingest", folder, "--json")
        unchanged = run("ingest", folder)
        asked = run("ask", "How long do refunds from abroad take?")
        answer = json.loads(run("ask", "How long do refunds take?", "--json").output)

        assert json.loads(ingested.stdout)["ingested"] == 1
        assert "1 unchanged" in unchanged.output
        assert "twelve working days [1]" in asked.output
        assert "[1] refunds.md § Abroad" in asked.output
        assert answer["citations"][0]["verdict"] == "supported"

    def test_a_file_that_cannot_be_read_counts_as_failure_and_stops_no_other(self, run, folder):
        (folder / "broken.pdf").write_bytes(b"%PDF-1.7 nothing more")

        result = run("ingest", folder, folder / "missing.md", "--json")

        counts = json.loads(result.stdout)
        assert result.exit_code == 1
        assert counts["ingested"] == 1
        assert {failed["document"] for failed in counts["failed"]} == {"broken.pdf", "missing.md"}

    def test_once_does_nothing_the_second_time(self, run, folder):
        run("ingest", "--once", folder)
        (folder / "later.md").write_text("# Later\n\nThis came later.")

        again = run("ingest", "--once", folder)

        assert (again.exit_code, again.output) == (0, "These were read before; nothing was done.\n")
        assert "1 files ingested" in run("ingest", folder).output

    def test_once_reads_what_comes_into_an_empty_folder(self, run, folder):
        (folder / "refunds.md").unlink()
        run("ingest", "--once", folder)
        (folder / "later.md").write_text("# Later\n\nThis came later.")

        assert "1 files ingested" in run("ingest", "--once", folder).output

    def test_whoever_asks_is_told_of_a_wrong_setting_itself(self, run, folder, monkeypatch):
        run("ingest", folder)
        monkeypatch.setenv("GROUNDNOTE_EMBEDDING__MODEL", "no-such-model")

        result = run("ask", "How long do refunds take?")

        assert result.exit_code == 1
        assert "no-such-model" in result.output
        assert "Traceback" not in result.output

    def test_the_library_tells_of_itself(self, run, folder):
        run("ingest", folder)

        assert "holds 1 document" in run("ask", "What is in the library?").output
        assert "1 Dokument erwähnt" in run("ask", "Welche Dokumente erwähnen Refunds?").output

    def test_a_chat_goes_on_in_its_session(self, run, folder):
        run("ingest", folder)

        result = run("chat", input="How long do refunds take?\nAnd how long is that?\n\n")

        assert "five working days" in result.output
        assert "searched for: How long do refunds take? And how long is that?" in result.output
        (session,) = json.loads(run("sessions", "--json").output)
        assert session["messages"] == 4
        assert session["title"] in run("sessions").output

    def test_a_chat_is_kept_as_a_test_that_passes(self, run, folder):
        run("ingest", folder)
        kept = folder.parent / "kept.conversation.json"

        said = run("chat", input=f"How long do refunds take?\n/keep {kept}\n/keep {kept}\n\n")
        result = run("regress", kept)

        assert "Kept as" in said.output
        assert "is there already" in said.output
        assert json.loads(kept.read_text())["turns"][0]["ask"] == "How long do refunds take?"
        assert result.exit_code == 0

    def test_a_chat_survives_whatever_an_error_says(self, run, folder):
        with OpenAIServer(failure(400, "Bad template: [/INST] [bold [red")) as server:
            environment = {
                "GROUNDNOTE_LLM__BASE_URL": server.url,
                "GROUNDNOTE_LLM__MODEL": "[/INST]",
            }
            (folder / "[bold [INST].md").write_text("# Refunds\n\nA refund [/b] takes five days.")
            run("ingest", folder)
            result = run("chat", input="How long do refunds take?\nWhy?\n\n", env=environment)

        assert result.exit_code == 0, result.output
        assert result.output.count("[/INST] [bold [red") == 2

    def test_reindex_and_doctor_leave_everything_well(self, run, folder):
        run("ingest", folder)

        assert run("reindex").exit_code == 0
        result = run("doctor", "--json")

        assert result.exit_code == 0
        findings = {finding["subject"]: finding for finding in json.loads(result.output)}
        assert all(finding["is_ok"] for finding in findings.values())
        assert findings["indexes"]["detail"] == "2 chunks, with vectors and words"
        assert "ok" in run("doctor").output

    def test_reread_reads_what_is_kept_although_nothing_changed(self, run, folder, tmp_path):
        run("ingest", folder)
        with closing(sqlite3.connect(tmp_path / "var" / "groundnote.db")) as database, database:
            database.execute("DELETE FROM chunks WHERE text LIKE '%five%'")

        assert "1 unchanged" in run("ingest", folder).output
        assert "five working days" not in run("ask", "How long do refunds take?").output
        assert "1 files ingested" in run("reread", "--all").output
        assert "five working days" in run("ask", "How long do refunds take?").output

    def test_reread_says_what_was_not_kept(self, run, folder, tmp_path):
        run("ingest", folder)
        shutil.rmtree(tmp_path / "var" / "originals")

        assert "1 documents have no kept file" in run("reread", "--all").output
        assert "five working days" in run("ask", "How long do refunds take?").output

    def test_regress_writes_reports_and_sets_runs_beside_each_other(self, run, folder, tmp_path):
        place = folder.parent
        for name, words in (("right", "five"), ("wrong", "seven")):
            turns = [{"ask": "How long do refunds take?", "says": [words]}]
            script = {"title": f"It says {words}", "documents": "documents", "turns": turns}
            (place / f"{name}.json").write_text(json.dumps(script))

        both = run("regress", place / "right.json", place / "wrong.json", "--json")
        reports = tmp_path / "reports"
        reports.mkdir()
        (reports / "before.json").write_text(both.stdout)
        html, junit = reports / "report.html", reports / "report.xml"
        outputs = ("--html", html, "--junit", junit, "--compare", reports / "before.json")
        one = run("regress", place, "-k", "right", "--pair", "--repeat", 2, *outputs)

        assert (both.exit_code, one.exit_code) == (1, 0)
        assert "It says five" in html.read_text()
        assert 'failures="0"' in junit.read_text()
        assert "answers changed" in one.output
        assert "beside the earlier run" in one.output


@pytest.mark.slow
class TestBesideAServer:
    @pytest.fixture
    def server(self, tmp_path, run, folder):
        """`groundnote serve` in a process of its own, on a port of its own."""
        run("ingest", folder)
        process = subprocess.Popen(
            [sys.executable, "-m", "rag.cli", "serve", "--port", "0"],
            cwd=ROOT,
            env={**os.environ, "GROUNDNOTE_DATA_DIR": str(tmp_path / "var")},
            stdout=subprocess.PIPE,
            text=True,
        )
        line = process.stdout.readline()
        yield line.split()[-1]
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=LONG)

    def test_commands_hand_over_to_the_server_that_holds_the_index(
        self, server, run, folder, tmp_path
    ):
        assert server.startswith("http://127.0.0.1:")
        (folder / "warranty.md").write_text("# Warranty\n\nThe warranty lasts thirty months.")

        ingested = run("ingest", folder, "--json")
        asked = run("ask", "How long does the warranty last?")
        refused = run("reindex")

        counts = json.loads(ingested.stdout)
        assert (counts["failed"], ingested.exit_code) == ([], 0)
        assert (counts["ingested"], counts["unchanged"], counts["chunks"]) == (1, 1, 1)
        assert "thirty months" in asked.output
        assert "warranty.md" in asked.output
        assert "holds the index" in refused.output
        assert run("doctor").exit_code == 0

    def test_a_broken_file_is_reported_by_name(self, server, run, folder):
        (folder / "broken.pdf").write_bytes(b"%PDF-1.7 nothing more")

        result = run("ingest", folder, "--json")

        (failed,) = json.loads(result.stdout)["failed"]
        assert result.exit_code == 1
        assert failed["document"] == "broken.pdf"

    def test_the_address_goes_with_the_server(self, server, tmp_path):
        data = tmp_path / "var"
        assert running_server(data) == server

        os.kill(json.loads((data / "server.json").read_text())["pid"], signal.SIGTERM)

        until(lambda: running_server(data) is None)

"""`groundnote source`, as a person and a program use it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from rag.cli import main
from rag.wiring.listeners import running_server
from tests.fakes import HashEmbedder
from tests.prepared import prepare
from tests.waiting import LONG, until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "manuals"
    made.mkdir()
    (made / "aero.md").write_text("# Aero 5\n\nThe Aero 5 weighs 120 g.\n")
    (made / "notes.txt").write_text("Nothing of interest.\n")
    return made


@pytest.fixture
def run(tmp_path, monkeypatch):
    data = tmp_path / "var"
    prepare(data / "groundnote.db")
    monkeypatch.setenv("GROUNDNOTE_DATA_DIR", str(data))
    monkeypatch.setattr("rag.wiring.application.open_embedder", lambda settings: HashEmbedder())

    def invoke(*arguments):
        return CliRunner().invoke(main, ["source", *map(str, arguments)])

    return invoke


def told(result):
    return json.loads(result.stdout)


def test_a_folder_is_added_looked_at_and_listed(run, folder):
    added = run("add", folder, "--every", "1h", "--include", "*.md", "--json")

    assert added.exit_code == 0, added.output
    (source,) = told(added)
    assert (source["state"], source["every"], source["include"]) == ("idle", 3600, ["*.md"])
    assert source["counts"]["new"] == 1
    assert told(run("list", "--json"))[0]["id"] == source["id"]
    assert "idle" in run("list").stdout
    assert "looked at every 1h" in run("list").stdout
    assert str(folder) in run("list").stdout


def test_removals_wait_for_a_yes_and_can_be_undone(run, folder):
    run("add", folder)
    for file in folder.iterdir():
        file.unlink()

    waiting = run("sync", folder)
    assert waiting.exit_code == 1
    assert "groundnote source confirm" in waiting.stdout

    confirmed = run("confirm", folder, "--json")
    assert (confirmed.exit_code, told(confirmed)[0]["counts"]["removed"]) == (0, 2)
    undone = run("undo", folder, "--json")
    assert (undone.exit_code, told(undone)[0]["counts"]["new"]) == (0, 2)


def test_removals_that_wait_can_be_declined(run, folder):
    run("add", folder)
    for file in folder.iterdir():
        file.unlink()
    run("sync", folder)

    assert run("decline", folder).exit_code == 0
    again = run("sync", folder, "--json")
    assert (again.exit_code, told(again)[0]["pending_count"]) == (0, 0)
    assert told(again)[0]["counts"]["removed"] == 0


def test_a_source_goes_with_its_documents(run, folder):
    run("add", folder)

    assert run("remove", folder).exit_code == 0
    assert told(run("list", "--json")) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("add", "/nowhere/at/all"), "There is no folder"),
        (("add", "nothing://x"), "is no kind of source"),
        (("add", ".", "--every", "soon"), "is no time"),
        (("add", ".", "--every", "5s"), "too short"),
        (("sync", "/nowhere/at/all"), "There is no source"),
    ],
)
def test_what_is_wrong_is_said(run, arguments, says):
    result = run(*arguments)

    assert result.exit_code in (1, 2)
    assert says in result.output
    assert "Traceback" not in result.output


def test_beside_a_server_the_server_does_it(tmp_path, folder):
    """The index belongs to one process: this one is asked through the database."""
    data = tmp_path / "served"
    environment = os.environ | {
        "GROUNDNOTE_DATA_DIR": str(data),
        "PORT": "0",
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "rag.cli"]
    with subprocess.Popen([*command, "serve"], env=environment, cwd=ROOT) as server:
        try:
            until(lambda: running_server(data))
            done = subprocess.run(
                [*command, "source", "add", str(folder), "--watch", "--json"],
                env=environment,
                cwd=ROOT,
                capture_output=True,
                timeout=LONG,
                check=False,
            )
        finally:
            server.terminate()

    assert done.returncode == 0, done.stderr.decode()
    (source,) = json.loads(done.stdout)
    seen = source["counts"]["new"] + source["counts"]["unchanged"]  # it may have looked twice
    assert (source["state"], seen) == ("idle", 2)

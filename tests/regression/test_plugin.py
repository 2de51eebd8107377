"""Conversations are tests of any project's pytest, and cost nothing where there are none."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.regression.scripts import HOW_LONG, documents_in, written

ROOT = Path(__file__).parents[2]


# What else is installed here and takes seconds to load, for nothing.
WITHOUT = ("cacheprovider", "langsmith_plugin", "schemathesis", "anyio")


def run_pytest(folder, *options):
    """Another project's tests, in a process of their own."""
    command = [sys.executable, "-m", "pytest", *(f"-pno:{name}" for name in WITHOUT)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "GROUNDNOTE_DATA_DIR": str(folder / "var")}
    env.pop("PYTEST_ADDOPTS", None)
    return subprocess.run(
        [*command, *options], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def test_nothing_of_ours_is_loaded_before_a_conversation_is_run():
    code = (
        "import sys, pytest; before = set(sys.modules); import rag.regression.plugin;"
        "print(*(set(sys.modules) - before))"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}

    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )

    assert set(done.stdout.split()) <= {"rag", "rag.regression", "rag.regression.plugin"}


def test_other_files_are_left_alone(tmp_path):
    (tmp_path / "test_x.py").write_text("def test_x(): pass\n")
    (tmp_path / "data.json").write_text("{}")

    done = run_pytest(tmp_path)

    assert "1 passed" in done.stdout


@pytest.mark.slow
def test_a_file_that_is_none_fails_with_its_line(tmp_path):
    (tmp_path / "talk.conversation.yaml").write_text(
        "title: x\ndocuments: d\nturns:\n  - asks: a\n"
    )

    done = run_pytest(tmp_path)

    assert done.returncode == 1
    assert "line 4, turn 1: a turn needs one of ask" in done.stdout
    assert "Traceback" not in done.stdout


@pytest.mark.slow
def test_a_conversation_passes_or_tells_what_did_not_hold(tmp_path):
    documents_in(tmp_path / "documents")
    written(tmp_path, [HOW_LONG | {"says": ["five"]}], "right.conversation.json")
    written(tmp_path, [HOW_LONG | {"says": ["six"]}], "wrong.conversation.json")

    done = run_pytest(tmp_path, "--groundnote-model", "none")

    assert "1 failed, 1 passed" in done.stdout
    assert "expected: says 'six'" in done.stdout
    assert "[1]       refunds.md" in done.stdout
    assert json.loads((tmp_path / "wrong.conversation.json").read_text())["title"] == "T"

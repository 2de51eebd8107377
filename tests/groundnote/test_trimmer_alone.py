"""`groundnote-trimmer`: the trimmer as a distribution of its own, with hardly any dependency."""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FRAMEWORKS = Path(sys.prefix) / "frameworks" / "bin" / "python"  # has what it needs, and not us
TRIMS = """
import json, sys
from groundnote_trimmer import HistoryTrimmer

messages = []
for turn in range(1, 61):
    messages.append({"role": "user", "content": f"How heavy is the part {turn}?"})
    weight = f"The part {turn} weighs {100 + turn} g [{turn}]. It was measured twice."
    messages.append({"role": "assistant", "content": weight})
messages.append({"role": "user", "content": "How heavy is the part 2?"})
trimmed = HistoryTrimmer(max_tokens=700, products=["Aero 5"]).trim(messages)
whole = " ".join(message["content"] for message in trimmed.messages)
ours = sorted(name for name in sys.modules if name.split(".")[0] in ("rag", "groundnote"))
print(json.dumps([trimmed.was_trimmed, "[60]" in whole, ours]))
"""


@pytest.mark.slow
def test_trims_where_nothing_else_of_ours_is_installed(tmp_path):
    if not FRAMEWORKS.exists():
        pytest.skip("its dependencies are not installed: make clients")
    project, installed = tmp_path / "project", tmp_path / "installed"
    runpy.run_path(str(ROOT / "packaging" / "trimmer.py"))["write_project"](project)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    put = [*pip, "install", "--no-deps", "--no-build-isolation", "--target", installed, project]
    subprocess.run(list(map(str, put)), check=True)

    told = subprocess.run(
        [FRAMEWORKS, "-c", TRIMS],
        env={**os.environ, "PYTHONPATH": str(installed)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert json.loads(told.stdout) == [True, True, []]


def test_needs_no_more_than_it_says():
    made = runpy.run_path(str(ROOT / "packaging" / "trimmer.py"))
    modules = made["modules_from"]("rag")

    assert len(made["NEEDED"]) <= 6
    assert not [name for name in modules if name.split(".")[1:2] in (["web"], ["wiring"], ["llm"])]

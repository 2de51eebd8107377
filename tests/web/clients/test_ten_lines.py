"""The loop that every tutorial shows, in three languages: it takes the text and nothing else."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rag.records import Verdict

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
ANSWER = "It weighs 120 g [1]."
PROGRAMS = {
    "Python": (sys.executable, "ten_lines.py"),
    "JavaScript": ("node", "ten_lines.mjs"),
    "Go": ("go", "run", "ten_lines.go"),
}


@pytest.mark.parametrize("language", PROGRAMS)
@pytest.mark.parametrize("judged", [None, Verdict.CONTRADICTED])
def test_the_usual_loop_ends_well_whether_a_judge_is_asked_or_not(
    live, application, language, judged
):
    application.assistant.judged = judged
    program, *script = PROGRAMS[language]
    is_there = language != "JavaScript" or (HERE / "node_modules").exists()
    if not (is_there and shutil.which(program)):
        pytest.skip(f"{program} is not installed")

    done = subprocess.run(
        [program, *script, f"{live.url}/v1", "How heavy?"],
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, ANSWER), done.stderr[-2000:]

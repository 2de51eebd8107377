"""What is installed apart by `make clients`: clients and frameworks of other houses."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

OURS = Path(__file__).parents[1]
NODE = Path(__file__).parent / "web" / "clients"  # its modules lie beside the scripts
QUIET = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_AGENTS_DISABLE_TRACING": "1"}


def told_by(environment, script, *arguments, sees_us=False):
    """The JSON that a script of an environment prints last; skips where that is not installed."""
    if environment == "node":
        program, needed = "node", NODE / "node_modules"
    else:
        program = needed = Path(sys.prefix) / environment / "bin" / "python"
    if not (needed.exists() and shutil.which(program)):
        pytest.skip(f"{environment} is not installed: make clients")
    done = subprocess.run(
        [*map(str, (program, script)), *arguments],
        cwd=Path(script).parent,
        env=os.environ | QUIET | ({"PYTHONPATH": str(OURS)} if sees_us else {}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])

"""`groundnote demo` serves the sample library to whoever has nothing else yet."""

import json
import os
import re
import subprocess
import sys
import urllib.request

import pytest


@pytest.mark.slow
def test_answers_from_the_sample_library_and_leaves_ones_own_alone(tmp_path):
    environment = {**os.environ, "GROUNDNOTE_DATA_DIR": str(tmp_path)}
    command = [sys.executable, "-u", "-m", "rag.cli", "demo", "--port", "0"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as running:
        try:
            found = None
            while found is None:  # the process tells where it listens, or ends
                line = running.stdout.readline()
                assert line, "the command ended before it was ready"
                found = re.search(r"http://127\.0\.0\.1:\d+", line)
            with urllib.request.urlopen(f"{found[0]}/api/v1/documents") as answer:
                documents = json.load(answer)["documents"]
        finally:
            running.terminate()

    assert "company/support-handbook.md" in [each["name"] for each in documents]
    assert [each.name for each in tmp_path.iterdir()] == ["demo"]

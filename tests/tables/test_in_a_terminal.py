"""A question over rows, asked in a terminal."""

import os
import subprocess
import sys

import pytest

from tests.openai_server import OpenAIServer


@pytest.mark.slow
def test_nothing_is_said_beside_the_answer(tmp_path):
    prices = tmp_path / "prices.csv"
    prices.write_text("Lamp,Price\nAster,12\nBega,30\n")
    own = {"GROUNDNOTE_DATA_DIR": str(tmp_path / "data"), "GROUNDNOTE_EMBEDDING__MODEL": "tiny"}

    def run(*words):
        command = [sys.executable, "-m", "rag.cli", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment)

    with OpenAIServer() as embeddings:  # so that no process has to load a real model
        environment = os.environ | own | {"GROUNDNOTE_EMBEDDING__BASE_URL": embeddings.url}
        run("ingest", str(prices))
        answered = run("ask", "What is the total price?")

    assert "42" in answered.stdout
    assert answered.stderr == ""  # such as what DuckDB prints of objects that nobody let go

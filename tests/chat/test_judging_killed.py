"""A check whose process is killed does not stay pending."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rag.records import Judging
from rag.settings import Settings
from rag.wiring.application import build
from tests.fakes import HashEmbedder

ROOT = Path(__file__).parents[2]
LONG = 60

KILLED = """
import sys, time
from dataclasses import replace
from pathlib import Path
from rag.documents.files import IncomingFile
from rag.settings import Settings
from rag.chat.answers import Answering, Checks
from rag.wiring.application import build
from tests.fakes import HashEmbedder, ScriptedModel
from rag.chat.draft import ModelWriter

class Slow:
    name = "slow"
    def judge(self, statements):
        print("judging", flush=True)
        time.sleep(60)

application = build(Settings(data_dir=Path(sys.argv[1])), embedder=HashEmbedder())
text = b"# Nimbus 1\\n\\nThe Nimbus 1 weighs 7 kg and is sold in three colours."
list(application.ingestion.ingest([IncomingFile.from_bytes("n.md", text)]))
model = ScriptedModel(lambda request: "It is rather light for a lamp of that size [1].")
assistant = application.assistant
assistant._answering = Answering(ModelWriter(model), checks=Checks(judge=Slow()))
session = application.store.create("ada")
print(session.id, flush=True)
list(assistant.ask(session, "How heavy is the Nimbus 1?"))
"""


@pytest.mark.slow
def test_a_check_that_was_killed_is_ended_at_the_next_start(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "var")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    session_id = process.stdout.readline().strip()
    assert process.stdout.readline().strip() == "judging"
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=LONG)

    again = build(Settings(data_dir=tmp_path / "var"), embedder=HashEmbedder())
    session = again.store.open(session_id, owner="ada")
    before = session.message(1).answer
    assert before is not None
    assert before.judging is Judging.PENDING
    assert again.store.give_up_judging() == 0  # another process may be at it
    again.start()
    after = session.message(1).answer
    again.stop()

    assert after is not None
    assert after.judging is Judging.FAILED
    assert after.judging_failure.startswith("The check failed:")
    assert (after.text, after.citations) == (before.text, before.citations)

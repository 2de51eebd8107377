"""Backup and restore, with the very commands of the documentation."""

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from io import BytesIO
from itertools import count
from textwrap import dedent

import pytest

from rag.operations import compare
from rag.settings import Settings
from rag.web import create_app
from rag.wiring.application import build
from tests.conftest import postgres_database
from tests.deployment.conftest import ROOT, until

DATABASES = ("sqlite", "postgresql")
MANUAL = (
    b"# Aero 5 manual\n\n## Weight\n\nThe Aero 5 weighs 120 g.\n\n## Battery\n\nIt lasts 30 hours."
)
PRICES = b"product,price\nAero 5,79\nAero 5 Pro,129\n"


def commands():
    """The blocks of the page's section: a backup, its restore, and what goes on then."""
    section = (ROOT / "docs" / "operate.md").read_text().split("## Backup, restore, upgrade\n")[1]
    section = section.split("\n## ")[0]
    return [dedent(block) for block in section.split("\n\n") if block.startswith("    ")]


@pytest.fixture(params=DATABASES)
def place(request, tmp_path, embeddings, monkeypatch):
    """Settings of a library in `var` of a folder, and the shell commands that keep it."""
    monkeypatch.chdir(tmp_path)
    variables = {
        "GROUNDNOTE_EMBEDDING__BASE_URL": embeddings.url,
        "GROUNDNOTE_EMBEDDING__MODEL": "tiny",
        "GROUNDNOTE_DATA_DIR": str(tmp_path / "var"),
    }
    with ExitStack() as stack:
        if request.param == "postgresql":
            number = count()

            def database():
                name = f"upkeep_{os.getpid()}_{next(number)}"
                return stack.enter_context(postgres_database(name, like="template0"))

            variables["GROUNDNOTE_SESSIONS__DATABASE_URL"] = database()
            yield Place(tmp_path, variables, database)
        else:
            yield Place(tmp_path, variables)


class Place:
    def __init__(self, folder, variables, database=None):
        self.folder, self.variables, self._database = folder, variables, database

    @property
    def settings(self):
        return Settings(
            data_dir=self.variables["GROUNDNOTE_DATA_DIR"],
            embedding={
                "base_url": self.variables["GROUNDNOTE_EMBEDDING__BASE_URL"],
                "model": "tiny",
            },
            sessions={"database_url": self.variables.get("GROUNDNOTE_SESSIONS__DATABASE_URL")},
        )

    def open(self):
        return build(self.settings)

    def backup(self):
        self._run(commands()[0])

    def restore(self):
        """Into an empty folder and an empty database, each time."""
        self.variables["GROUNDNOTE_DATA_DIR"] = str(self.folder / "restored")
        shutil.rmtree(self.folder / "restored", ignore_errors=True)
        if self._database is not None:
            self.variables["GROUNDNOTE_SESSIONS__DATABASE_URL"] = self._database()
        for command in commands()[1:]:
            self._run(command)

    def _run(self, script):
        ours = f'set -e\ngroundnote() {{ "{sys.executable}" -m rag.cli "$@"; }}\n'
        environment = os.environ | self.variables | {"PYTHONPATH": str(ROOT)}
        script = script.replace("/backups/", f"{self.folder}/")
        done = subprocess.run(
            ["bash", "-c", ours + script],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def everything(client, session_id):
    """What a person sees of a conversation and the library."""
    at = f"/api/v1/sessions/{session_id}"
    return [
        client.get(path).get_json()
        for path in (f"{at}/messages", f"{at}/sources", f"{at}/summaries", "/api/v1/documents")
    ]


def ask(client, session_id, question):
    asked = {"content": question}
    answer = client.post(f"/api/v1/sessions/{session_id}/messages", json=asked)
    assert answer.status_code == 200, answer.get_json()
    return answer.get_json()["content"]


def test_a_backup_of_a_running_library_comes_back_whole(place):
    application = place.open()
    client = create_app(application).test_client()
    for name, content in (("aero.md", MANUAL), ("prices.csv", PRICES)):
        client.post("/api/v1/documents", data={"file": [(BytesIO(content), name)]})
    application.jobs.run_waiting()
    session_id = client.post("/api/v1/sessions", json={}).get_json()["id"]
    ask(client, session_id, "How much does the Aero 5 weigh?")
    sent = client.post(
        "/api/v1/documents", data={"file": [(BytesIO(b"# New\n\nIt hums."), "new.md")]}
    )
    job = sent.get_json()["jobs"][0]["id"]
    before = everything(client, session_id)

    place.backup()

    for document in client.get("/api/v1/documents").get_json()["documents"]:
        client.delete(f"/api/v1/documents/{document['id']}")
    client.delete(f"/api/v1/sessions/{session_id}")
    application.stop()
    for _ in range(2):
        place.restore()
        application = place.open()
        client = create_app(application).test_client()
        assert everything(client, session_id) == before
        application.repair()
        assert compare(application.engine, application.index).is_whole
        assert application.without_original(reads=True) == {}
        assert "120 g" in ask(client, session_id, "How much does the Aero 5 weigh?")
        assert "129" in ask(client, session_id, "What is the highest price in prices?")
        application.jobs.start()
        until(lambda client=client: client.get(f"/api/v1/jobs/{job}").get_json()["state"] == "done")
        application.stop()

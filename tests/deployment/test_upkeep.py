"""Backup, restore, upgrade and roll-back, with the very commands of the documentation."""

import base64
import json
import os
import subprocess
import sys
from datetime import datetime
from io import BytesIO
from pathlib import Path
from textwrap import dedent

import pytest
from alembic import command, op
from alembic.config import Config
from sqlalchemy import MetaData, insert, text

from rag.database import MIGRATIONS, migrate, newest_revision, open_engine, reading, writing
from rag.errors import SetupError
from rag.records import EVERYTHING
from rag.settings import Settings
from rag.storage import compare
from rag.web import create_app
from rag.wiring.building import build
from tests.conftest import postgres_database
from tests.deployment.conftest import ROOT, until
from tests.fakes import HashEmbedder

DATABASES = ("sqlite", "postgresql")
MANUAL = (
    b"# Aero 5 manual\n\n## Weight\n\nThe Aero 5 weighs 120 g.\n\n## Battery\n\nIt lasts 30 hours."
)
PRICES = b"product,price\nAero 5,79\nAero 5 Pro,129\n"
WRITTEN = Path(__file__).with_name("early_rows.json")  # rows that an early version wrote
EARLY = "0002"
BOOL = {"is_embedded", "is_fold", "is_active"}


def commands():
    """The blocks of the page's section: backup and restore, of SQLite and of PostgreSQL each."""
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
    if request.param == "sqlite":
        yield Place(variables, *commands()[0::2])
        return
    with postgres_database(f"upkeep_{os.getpid()}") as url:
        files, dump, put_back, restore = commands()
        keep = "\n".join(line for line in files.splitlines() if "sqlite3" not in line)
        put_back = put_back.replace("cp backup/groundnote.db var/\n", "")
        before, reindex = put_back.rsplit("\n", 1)
        variables["GROUNDNOTE_SESSIONS__DATABASE_URL"] = url
        yield Place(variables, f"{keep}\n{dump}", f"{before}\n{restore}\n{reindex}")


class Place:
    def __init__(self, variables, backup, restore):
        self.variables, self._backup, self._restore = variables, backup, restore
        self.settings = Settings(
            data_dir=variables["GROUNDNOTE_DATA_DIR"],
            embedding={
                "base_url": variables["GROUNDNOTE_EMBEDDING__BASE_URL"],
                "model": "tiny",
            },
            sessions={"database_url": variables.get("GROUNDNOTE_SESSIONS__DATABASE_URL")},
        )

    def open(self):
        return build(self.settings)

    def backup(self):
        self._run(self._backup)

    def restore(self):
        self._run(self._restore)

    def _run(self, script):
        ours = f'set -e\ngroundnote() {{ "{sys.executable}" -m rag.cli "$@"; }}\n'
        environment = os.environ | self.variables | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            ["bash", "-c", ours + script], env=environment, capture_output=True, text=True
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
    for _ in range(2):  # what is restored can be restored over
        place.restore()
        application = place.open()
        client = create_app(application).test_client()
        assert everything(client, session_id) == before
        assert compare(application.engine, application.index.chunk_ids()).is_whole
        assert "120 g" in ask(client, session_id, "How much does the Aero 5 weigh?")
        assert "129" in ask(client, session_id, "What is the highest price in prices?")
        application.jobs.start()
        until(lambda client=client: client.get(f"/api/v1/jobs/{job}").get_json()["state"] == "done")
        application.stop()


# ── Upgrade and roll-back ────────────────────────────────────────────────────────────────────


def at_early_schema(url):
    """A database as an early version left it."""
    engine = open_engine(url)
    upgrade(engine, EARLY)
    known = MetaData()
    known.reflect(engine)
    with writing(engine) as connection:
        for name, rows in json.loads(WRITTEN.read_text()).items():
            table = known.tables[name]
            connection.execute(
                insert(table), [{k: _value(k, v) for k, v in r.items()} for r in rows]
            )
            if engine.dialect.name == "postgresql" and "row" in table.c:
                highest = f"(SELECT max(row) FROM {name})"
                connection.execute(text(f"SELECT setval('{name}_row_seq', {highest})"))
    return engine


def _value(key, value):
    if isinstance(value, dict) and "base64" in value:
        return base64.b64decode(value["base64"])
    if isinstance(value, dict) and "moment" in value:
        return datetime.fromisoformat(value["moment"])
    return bool(value) if key in BOOL else value


def upgrade(engine, revision):
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with writing(engine, follows_keys=False) as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)


def revision_of(engine):
    with reading(engine) as connection:
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one()


def said(engine):
    with reading(engine) as connection:
        rows = connection.execute(text("SELECT content FROM messages ORDER BY row"))
        return [row.content for row in rows]


@pytest.fixture(params=DATABASES)
def old_url(request, tmp_path):
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/var/groundnote.db"
        return
    with postgres_database(f"upgrade_{os.getpid()}") as url:
        yield url


def test_a_library_of_an_early_version_is_whole_after_the_upgrade(old_url, tmp_path):
    at_early_schema(old_url).dispose()
    written = json.loads(WRITTEN.read_text())
    session_id = written["sessions"][0]["id"]

    settings = Settings(data_dir=tmp_path / "var", sessions={"database_url": old_url})
    application = build(settings, embedder=HashEmbedder())
    client = create_app(application).test_client()
    messages, sources, summaries, listed = everything(client, session_id)

    assert revision_of(application.engine) == newest_revision()
    kept = [(each["index"], each["content"], each["status"]) for each in messages["messages"]]
    assert kept == [(row["index"], row["content"], row["status"]) for row in written["messages"]]
    told = [(each["n"], each["text"], each["state"]) for each in sources["sources"]]
    assert told == [(row["number"], row["text"], "current") for row in written["sources"]]
    assert summaries["summaries"] == []  # they are derived, and made again
    assert {each["name"] for each in listed["documents"]} == {"aero.md", "prices.csv"}
    with_word = application.documents.page(EVERYTHING, limit=9, words="PRICES").documents
    assert [each.name for each in with_word] == ["prices.csv"]
    assert application.repair().missing_vectors  # the folder of vectors was left behind
    assert compare(application.engine, application.index.chunk_ids()).is_whole
    assert [hit.chunk.document_name for hit in application.retriever.search("battery", EVERYTHING)]
    found = client.get(f"/api/v1/sessions/{session_id}/search?q=battery").get_json()
    assert found["total"] > 0, found
    assert "[2]" in ask(client, session_id, "How long does the battery of the Aero 5 last?")
    application.stop()


def test_each_step_of_the_upgrade_keeps_what_was_said(old_url):
    engine = at_early_schema(old_url)
    before = said(engine)

    for revision in range(int(EARLY) + 1, int(newest_revision()) + 1):
        upgrade(engine, f"{revision:04}")
        assert said(engine) == before
    engine.dispose()


def test_an_upgrade_that_fails_leaves_the_database_as_it_was(old_url, monkeypatch):
    engine = at_early_schema(old_url)
    before = said(engine)

    def fail(*_arguments, **_more):
        raise OSError("No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(op, "create_index", fail)
        with pytest.raises(OSError, match="No space"):
            migrate(engine)

    assert (revision_of(engine), said(engine)) == (EARLY, before)
    migrate(engine)
    assert (revision_of(engine), said(engine)) == (newest_revision(), before)
    engine.dispose()


def test_an_older_version_refuses_the_database_of_a_newer_one(old_url, tmp_path):
    engine = open_engine(old_url)
    migrate(engine)
    with writing(engine) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()

    settings = Settings(data_dir=tmp_path / "var", sessions={"database_url": old_url})
    with pytest.raises(SetupError, match="a newer version of Groundnote may have used it"):
        build(settings, embedder=HashEmbedder())

"""Killed while it migrates, or while a summary is written: nothing is lost, and it goes on."""

import subprocess
import sys

import pytest

from rag.db import migrate, newest_revision, open_engine, revisions, writing
from rag.db.audit_trail import AuditTrail
from rag.db.engine import revision_of, upgrade
from rag.settings import Settings
from tests.applications import app_of, application_of

pytestmark = pytest.mark.slow
MIGRATES = """
import os, signal, sys
from sqlalchemy import event
from rag.db import migrate, open_engine
engine, left = open_engine(sys.argv[1]), [int(sys.argv[2])]
@event.listens_for(engine, "before_cursor_execute")
def _killed(*_given):
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
migrate(engine)
"""
SUMMARISES = """
import os, signal, sys
from pathlib import Path
from sqlalchemy import event
from rag.settings import Settings
from tests.applications import app_of, application_of
application = application_of(Settings(data_dir=Path(sys.argv[1])))
left = [int(sys.argv[3])]
@event.listens_for(application.engine, "before_cursor_execute")
def _killed(_connection, _cursor, statement, *_given):
    if statement.startswith(("INSERT", "UPDATE", "DELETE")):
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
app_of(application).test_client().post(f"/api/v1/sessions/{sys.argv[2]}/compact")
application.jobs.run_waiting()
application.stop()
"""


def run(code, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, check=False
    )
    return done.returncode


@pytest.mark.parametrize("statement", [2, 9, 14])
def test_a_migration_is_whole_or_did_not_happen(tmp_path, statement):
    url = f"sqlite:///{tmp_path / 'g.db'}"
    first = open_engine(url)
    with writing(first, follows_keys=False) as connection:
        upgrade(connection, revisions()[0])
    AuditTrail(first).add("login", owner="anna")
    first.dispose()

    killed = run(MIGRATES, url, statement)
    engine = open_engine(url)
    assert killed == -9
    assert revision_of(engine) == revisions()[0]
    migrate(engine)

    assert revision_of(engine) == newest_revision()
    assert [each.owner for each in AuditTrail(engine).entries()] == ["anna"]


def test_a_summary_that_was_killed_costs_no_turn(tmp_path):
    said = [
        {"role": role, "content": f"{word} {n}: the Aero {n} weighs {n}20 g. " * 40}
        for n in range(1, 13)
        for role, word in (("user", "Question"), ("assistant", "Answer"))
    ]
    application = application_of(Settings(data_dir=tmp_path))
    client = app_of(application).test_client()
    session = client.post("/api/v1/sessions", json={}).get_json()["id"]
    client.post(f"/api/v1/sessions/{session}/import", json={"messages": said})
    application.stop()

    codes = [run(SUMMARISES, tmp_path, session, write) for write in (1, 2)]
    application = application_of(Settings(data_dir=tmp_path))
    client = app_of(application).test_client()
    kept = client.get(f"/api/v1/sessions/{session}/messages").get_json()["messages"]
    compacted = client.post(f"/api/v1/sessions/{session}/compact")
    application.jobs.run_waiting()
    application.stop()

    assert codes[0] == -9
    assert [each["content"] for each in kept] == [each["content"] for each in said]
    assert compacted.status_code < 300

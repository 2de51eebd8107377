"""A library that commit a7c3b94 wrote opens as it was left: each row, each field, each job.

What is stored is read by the names it was stored under, and what came later has defaults: a name
that is changed on the way would be lost in silence. `make_library.py` tells what is in it.
"""

import base64
import json
import os
import tarfile
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import MetaData, select

from rag.records import EVERYTHING, JobState
from rag.sessions.rows import details_of, message_from
from rag.settings import Settings
from rag.web import create_app
from rag.wiring.application import build
from rag.wiring.stores import open_database
from tests.conftest import postgres_database
from tests.fakes import HashEmbedder
from tests.waiting import LONG, until

HERE = Path(__file__).parent
SLOW = pytest.mark.slow
# Not compared: what a process counts, and how long it claims something.
FLEETING = {"measurements", "embedding_claims"}


class Library:
    """An unpacked copy, as it was expected to be read."""

    def __init__(self, folder, url=None):
        kind = "postgresql" if url else "sqlite"
        with tarfile.open(HERE / f"{kind}.tar.xz") as packed:
            packed.extractall(folder, filter="data")
        if url:
            with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
                connection.execute((folder / "library.sql").read_text(encoding="utf-8"))
        self.expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
        self.owner = self.expected["owner"]
        self.settings = {
            "data_dir": folder / "var",
            "sources": {"folders": [str(folder / "notes")]},
            "sessions": {"database_url": url} if url else {},
        }
        self.engine = open_database(Settings(**self.settings))

    def rows(self, name):
        """All columns of now, in the order of the key, without the migration's own entry."""
        found = MetaData()
        found.reflect(self.engine, only=[name])
        table = found.tables[name]
        with self.engine.connect() as connection:
            query = select(table).order_by(*table.primary_key.columns)
            return [
                {key: plain(value) for key, value in row._mapping.items()}
                for row in connection.execute(query)
                if (name, row._mapping.get("action")) != ("audit", "database.migrated")
            ]


def plain(value):
    """As JSON has it."""
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return moment.astimezone(UTC).isoformat()
    if isinstance(value, bytes | memoryview):
        return "base64:" + base64.b64encode(bytes(value)).decode()
    return value


def lost(expected, now, place=""):
    """Where something that was there is not there, or is another thing now; more may be there."""
    if isinstance(expected, dict) and isinstance(now, dict):
        return [
            line
            for key, value in expected.items()
            for line in (
                lost(value, now[key], f"{place}.{key}")
                if key in now
                else [f"{place}.{key} is gone"]
            )
        ]
    if isinstance(expected, list) and isinstance(now, list):
        if len(expected) != len(now):
            return [f"{place} has {len(now)} of {len(expected)}"]
        pairs = enumerate(zip(expected, now, strict=True))
        return [line for index, pair in pairs for line in lost(*pair, f"{place}[{index}]")]
    return [] if expected == now else [f"{place} is {now!r}, was {expected!r}"]


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=SLOW)])
def library(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    with ExitStack() as stack:
        url = None
        if request.param == "postgresql":
            url = stack.enter_context(postgres_database(f"upgrade_{os.getpid()}"))
        library = Library(folder, url)
        yield library
        library.engine.dispose()


def test_every_row_is_what_it_was(library):
    rows = library.expected["rows"]
    assert sum(map(len, rows.values())) > 150

    assert [
        line
        for name, expected in rows.items()
        if name not in FLEETING
        for line in lost(expected, library.rows(name), name)
    ] == []


def test_an_answer_that_is_stored_again_keeps_every_field(library):
    found = MetaData()
    found.reflect(library.engine, only=["messages"])
    with library.engine.connect() as connection:
        rows = connection.execute(select(found.tables["messages"])).all()
    assert any((row.details.get("answer") or {}).get("rounds") for row in rows)

    assert [
        line
        for row in rows
        for line in lost(
            row.details,
            json.loads(json.dumps(details_of(message_from(row)))),
            f"{row.session_id}/{row.index}",
        )
    ] == []


def test_the_api_answers_as_it_did(library):
    application = build(Settings(**library.settings), embedder=HashEmbedder())
    client = create_app(application).test_client()
    try:
        assert [
            line
            for path, expected in library.expected["answers"].items()
            for line in lost(expected, client.get(path).get_json(), path)
        ] == []
    finally:
        application.stop()


@pytest.mark.slow
def test_what_was_begun_is_ended_and_what_was_known_is_found(library):
    """Last, because it goes on from there: jobs, answers, clients, questions."""
    application = build(Settings(**library.settings))
    client = create_app(application).test_client()
    session = "/api/v1/sessions"
    try:
        application.start()
        for job in library.expected["in_flight"].values():
            until(
                lambda job=job: application.jobs.job(job).state is JobState.DONE,
                seconds=LONG,
            )
        names = {each.name for each in application.documents.documents(EVERYTHING)}
        assert {"waiting.md", "begun.md", "handbook.md", "hours.md"} <= names

        (endings,) = [
            each["id"]
            for each in client.get(session).get_json()["sessions"]
            if each["title"] == "Endings"
        ]
        messages = client.get(f"{session}/{endings}/messages").get_json()["messages"]
        assert [each["status"] for each in messages if each["status"] == "pending"] == []

        new = client.post(session, json={}).get_json()["id"]
        body = {"content": "How many steps does the lighthouse have?"}
        answer = client.post(f"{session}/{new}/messages", json=body).get_json()
        assert "217" in answer["content"]
        assert answer["citations"]
    finally:
        application.stop()

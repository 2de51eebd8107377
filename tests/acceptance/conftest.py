"""A whole installation on a temporary folder; only the embedding model is a fake."""

import json
import shutil
from contextlib import contextmanager
from io import BytesIO

import pytest

from rag.settings import Settings
from tests.applications import app_of, application_of

MANUAL = b"""# Aero 5 manual

## Weight

The Aero 5 weighs 120 g. The Aero 5 Pro weighs 140 g.

## Battery

The battery of the Aero 5 lasts 30 hours at medium volume.

## Price

The Aero 5 costs 99 EUR and the Aero 5 Pro costs 149 EUR.
"""
HTML = {"Accept": "text/html"}


class Installation:
    """The application as its users meet it: over HTTP."""

    def __init__(self, folder, **sections):
        self.folder = folder
        self.settings = Settings(data_dir=folder, **sections)
        self.open()

    def open(self):
        self.application = application_of(self.settings)
        self.app = app_of(self.application)
        self.client = self.app.test_client()

    def close(self):
        self.application.stop()

    def restart(self):
        self.close()
        self.open()

    def get(self, path, status=200):
        response = self.client.get(f"/api/v1{path}")
        assert response.status_code == status, response.get_data(as_text=True)
        return response.get_json()

    def post(self, path, json=None, status=None, **options):
        response = self.client.post(f"/api/v1{path}", json=json, **options)
        assert status in (None, response.status_code), response.get_data(as_text=True)
        return response

    def page(self, path, form=None):
        """The HTML of a page, a form's redirect followed."""
        send = self.client.get if form is None else self.client.post
        given = {} if form is None else {"data": form}
        return send(path, headers=HTML, follow_redirects=True, **given)

    def upload(self, name, content):
        """The job of one file, when it has ended."""
        queued = self.post("/documents", data={"file": [(BytesIO(content), name)]}, status=202)
        self.application.jobs.run_waiting()
        return self.get(f"/jobs/{queued.get_json()['jobs'][0]['id']}")

    def add(self, name, content):
        """The id of a document that can be read."""
        job = self.upload(name, content)
        assert job["state"] == "done", job
        found = self.get("/documents")["documents"]
        return next(document["id"] for document in found if document["name"] == name)

    def session(self, **body):
        return self.post("/sessions", json=body, status=201).get_json()["id"]

    def ask(self, session_id, question, status=200):
        path = f"/sessions/{session_id}/messages"
        return self.post(path, json={"content": question}, status=status).get_json()

    def stream(self, session_id, question):
        """The response of a streamed answer, and its events: (name, content)."""
        response = self.post(
            f"/sessions/{session_id}/messages",
            json={"content": question},
            headers={"Accept": "text/event-stream"},
        )
        frames = response.get_data(as_text=True).split("\n\n")
        fields = [dict(line.split(": ", 1) for line in frame.splitlines()) for frame in frames]
        events = [(each["event"], json.loads(each["data"])) for each in fields if "event" in each]
        return response, events

    def numbers(self, session_id):
        """Which number stands for which chunk."""
        sources = self.get(f"/sessions/{session_id}/sources")["sources"]
        return {source["chunk_id"]: source["n"] for source in sources}


@contextmanager
def installed(folder, **sections):
    installation = Installation(folder, **sections)
    try:
        yield installation
    finally:
        installation.close()


@pytest.fixture
def installation(tmp_path):
    with installed(tmp_path / "home") as made:
        yield made


@pytest.fixture(scope="session")
def with_manual(tmp_path_factory):
    """The data of an installation with one manual, to be copied."""
    home = tmp_path_factory.mktemp("with_manual") / "home"
    with installed(home) as made:
        made.add("manuals/aero.md", MANUAL)
    return home


@pytest.fixture(scope="module")
def shared(tmp_path_factory, with_manual):
    """The same, for tests that leave it as they found it, but for sessions of their own."""
    home = tmp_path_factory.mktemp("shared") / "home"
    shutil.copytree(with_manual, home)
    with installed(home) as made:
        yield made


@pytest.fixture
def library(tmp_path, with_manual):
    """An installation with one manual."""
    shutil.copytree(with_manual, tmp_path / "home")
    with installed(tmp_path / "home") as made:
        yield made


def settings_for(server, **llm):
    """Of an installation whose model is this server."""
    wanted = {
        "base_url": server.url, "model": "fake", "max_retries": 0, "timeout_seconds": 2,
        "tools": False, **llm,
    }  # fmt: skip
    return {"llm": wanted, "follow_up": {"use_model": False}}


@pytest.fixture
def with_model(tmp_path, with_manual, monkeypatch):
    """An installation whose model is a scripted server."""
    opened = []

    def install(server, **llm):
        monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-1234567890")
        if not opened:
            shutil.copytree(with_manual, tmp_path / "home")
        made = Installation(tmp_path / "home", **settings_for(server, **llm))
        opened.append(made)
        return made

    yield install
    for made in opened:
        made.close()

"""Clients of the web app over a fake application."""

from types import SimpleNamespace

import pytest

from rag.settings import Settings
from tests.applications import app_of, served
from tests.web.fake_application import FakeApplication
from tests.web.two_owners import World


@pytest.fixture
def settings(tmp_path):
    return Settings(data_dir=tmp_path)


@pytest.fixture
def token_settings(tmp_path):
    tokens = {"token-of-anna": "anna", "token-of-ben": "ben"}
    return Settings(data_dir=tmp_path, auth={"mode": "tokens", "tokens": tokens})


@pytest.fixture
def application(settings, engine):
    return FakeApplication(settings, engine).with_library()


@pytest.fixture
def app(application):
    return app_of(application)


@pytest.fixture
def client(app):
    return app.test_client()


@pytest.fixture
def session_id(client):
    return client.post("/api/v1/sessions", json={}).get_json()["id"]


@pytest.fixture
def asked(client, session_id):
    """The first answer of a session."""
    url = f"/api/v1/sessions/{session_id}/messages"
    response = client.post(url, json={"content": "How heavy is the Aero 5?"})
    assert response.status_code == 200
    return response.get_json()


@pytest.fixture
def live(app):
    """A server on loopback with threads."""
    with served(app) as url:
        yield SimpleNamespace(url=url, app=app)


@pytest.fixture
def token_app(token_settings, engine):
    """Where Anna and Ben are told apart by their tokens."""
    return app_of(FakeApplication(token_settings, engine).with_library())


# ── Two owners ───────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """The same server without and with documents of somebody else."""
    made = [World(tmp_path_factory.mktemp("world"), with_ben=each) for each in (False, True)]
    yield made
    for world in made:
        world.application.stop()


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """Stopped, to be copied."""
    made = World(tmp_path_factory.mktemp("first") / "home", with_ben=True)
    made.application.stop()
    return made


@pytest.fixture
def world(tmp_path, first):
    made = first.copied(tmp_path / "home")
    yield made
    made.application.stop()


def events_of(response):
    """The server-sent events of a response: (name, JSON text)."""
    events = []
    for frame in response.get_data(as_text=True).split("\n\n"):
        fields = dict(line.split(": ", 1) for line in frame.splitlines() if line[0] != ":")
        if fields:
            events.append((fields.get("event", ""), fields["data"]))
    return events

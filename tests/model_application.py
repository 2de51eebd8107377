"""The whole application with a library, before a real server that stands in for a model."""

import atexit
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path

from rag.documents.files import IncomingFile
from rag.settings import Settings
from tests.applications import app_of, application_of
from tests.openai_server import OpenAIServer, deltas
from tests.web.conftest import events_of

MANUAL = b"""# Aero 5 manual

## Weight

The Aero 5 weighs 120 g. The Aero 5 Pro weighs 140 g.

## Battery

The battery of the Aero 5 lasts 30 hours at medium volume.
"""
STREAM = {"Accept": "text/event-stream"}


@cache
def with_manual():
    """The data of an application with the manual, to be copied."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    application = application_of(Settings(data_dir=folder))
    list(application.ingestion.ingest([IncomingFile.from_bytes("aero.md", MANUAL)]))
    application.stop()
    return folder


class World:
    """An application with a library, a client, a session, and the server that thinks for it."""

    def __init__(self, folder, **llm):
        self.server = OpenAIServer()
        self.folder, self.llm = folder, {"model": "fake", "max_retries": 0, **llm}

    def __enter__(self):
        self.server.__enter__()
        settings = Settings(
            data_dir=self.folder,
            llm={"base_url": self.server.url, **self.llm},
            follow_up={"use_model": False},
            checks={"model": "off"},
        )
        shutil.copytree(with_manual(), self.folder, dirs_exist_ok=True)
        self.application = application_of(settings)
        self.client = app_of(self.application).test_client()
        self.session_id = self.client.post("/api/v1/sessions", json={}).get_json()["id"]
        return self

    def __exit__(self, *error):
        self.application.stop()
        self.server.__exit__(*error)

    def at(self, path):
        return f"/api/v1/sessions/{self.session_id}{path}"

    def told(self, *pairs):
        """Bring turns along."""
        messages = [
            {"role": role, "content": content}
            for pair in pairs
            for role, content in zip(("user", "assistant"), pair, strict=True)
        ]
        assert self.client.post(self.at("/import"), json={"messages": messages}).status_code < 300

    def stream(self, question, *behaviours):
        """The events of an answer; each behaviour answers one call of the model."""
        self._behave(behaviours)
        response = self.client.post(
            self.at("/messages"), json={"content": question}, headers=STREAM
        )
        return [(name, json.loads(text)) for name, text in events_of(response)]

    def ask(self, question, *behaviours):
        """The finished answer, without a stream."""
        self._behave(behaviours)
        response = self.client.post(self.at("/messages"), json={"content": question})
        assert response.status_code == 200, response.get_json()
        return response.get_json()

    def _behave(self, behaviours):
        self.server.behaviours[:] = behaviours
        self.server.requests.clear()

    def results(self, request=-1):
        """What the model read of its tool calls."""
        messages = self.server.requests[request].body["messages"]
        return [message["content"] for message in messages if message["role"] == "tool"]


def calling(*calls, text=""):
    """A streamed reply that calls tools, their arguments split over many deltas."""
    pieces = [{"content": text}] if text else []
    split = [
        json.dumps(arguments) if isinstance(arguments, dict) else arguments
        for _, arguments in calls
    ]
    for index, (name, _) in enumerate(calls):
        function = {"name": name, "arguments": ""}
        pieces.append(_piece(index, function, id=f"call_{index}", type="function"))
    for start in range(0, max(map(len, split)), 3):
        pieces += [
            _piece(index, {"arguments": arguments[start : start + 3]})
            for index, arguments in enumerate(split)
            if arguments[start : start + 3]
        ]
    return deltas(*pieces, finish="tool_calls")


def _piece(index, function, **more):
    return {"tool_calls": [{"index": index, "function": function, **more}]}


def of(events, wanted):
    return [event for name, event in events if name == wanted]


def final(events):
    assert [name for name, _ in events].count("final") == 1, events
    return of(events, "final")[0]

"""Talk to the server that already holds the index, over its own API."""

import json
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any

from rag.errors import RagError

TOKEN_VARIABLE = "GROUNDNOTE_TOKEN"
POLL_SECONDS = 0.3

Told = tuple[str, dict[str, Any]]  # the name of a server-sent event, and what it says


class RefusedByServer(RagError):
    """The running server answered with an error; the message is its own."""


class RemoteServer:
    """A Groundnote server on this machine."""

    def __init__(self, url: str) -> None:
        import httpx

        token = os.environ.get(TOKEN_VARIABLE)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(
            base_url=f"{url}/api/v1", headers=headers, timeout=httpx.Timeout(30, read=None)
        )

    def close(self) -> None:
        self._http.close()

    def upload(self, name: str, data: bytes) -> str:
        """Hand one file over; returns the id of its job."""
        answer = self._call("POST", "/documents", files=[("file", (name, data))])
        for refused in answer.get("refused", []):
            raise RefusedByServer(f"{refused['document']}: {refused['reason']}")
        return str(answer["jobs"][0]["id"])

    def finished_job(self, job_id: str) -> dict[str, Any]:
        """Wait for a job's end."""
        while True:
            job = self._call("GET", f"/jobs/{job_id}")
            if job["state"] in ("done", "failed"):
                return job
            time.sleep(POLL_SECONDS)

    def create_session(self) -> str:
        return str(self._call("POST", "/sessions", json={})["id"])

    def ask(self, session_id: str, question: str) -> Iterator[Told]:
        """The events of one turn as the server sends them."""
        with self._http.stream(
            "POST",
            f"/sessions/{session_id}/messages",
            json={"content": question},
            headers={"Accept": "text/event-stream"},
        ) as response:
            if response.is_error:
                response.read()
                raise RefusedByServer(_detail(response))
            yield from read_events(response.iter_lines())

    def _call(self, method: str, path: str, **kwargs: Any) -> dict[str, Any]:
        response = self._http.request(method, path, **kwargs)
        if response.is_error:
            raise RefusedByServer(_detail(response))
        answer: dict[str, Any] = response.json()
        return answer


def read_events(lines: Iterator[str]) -> Iterator[Told]:
    """Server-sent events; comments and unknown fields are passed over."""
    name, told = "", list[str]()
    for line in lines:
        if line.startswith("event:"):
            name = line.removeprefix("event:").strip()
        elif line.startswith("data:"):
            told.append(line.removeprefix("data:").strip())
        elif not line and told:
            yield name, json.loads("\n".join(told))
            name, told = "", []


def _detail(response: Any) -> str:
    try:
        return str(response.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return f"The server answered {response.status_code} {response.reason_phrase}."


def upload_all(server: RemoteServer, files: Sequence[tuple[str, bytes]]) -> Iterator[Any]:
    """Hand files over and wait for each: (name, None) or (name, reason it failed)."""
    waiting: list[tuple[str, str]] = []
    for name, content in files:
        try:
            waiting.append((name, server.upload(name, content)))
        except RefusedByServer as error:
            yield name, str(error)
    for name, job_id in waiting:
        yield name, server.finished_job(job_id)["error"]

"""`groundnote serve --workers N`: several processes, one address, nothing lost with one of them."""

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.deployment.conftest import DEADLINE, until
from tests.openai_server import OpenAIServer, hang, slowly


@pytest.fixture
def shared_variables(shared):
    settings = shared()
    return {
        "GROUNDNOTE_DATA_DIR": str(settings.data_dir),
        "GROUNDNOTE_SESSIONS__DATABASE_URL": settings.database_url,
        "GROUNDNOTE_RETRIEVAL__CHROMA_URL": settings.retrieval.chroma_url,
        "GROUNDNOTE_RETRIEVAL__CHROMA_COLLECTION": settings.retrieval.chroma_collection,
        "GROUNDNOTE_JOBS__URL": settings.jobs.url,
        "GROUNDNOTE_WEB__PORT": "0",
    }


def children(pid):
    return {int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


def test_a_server_without_job_threads_needs_others_that_do_them(groundnote):
    process = groundnote("serve", "--port", 0, GROUNDNOTE_JOBS__WORKERS="0")

    assert process.wait() == 1
    assert process.said().startswith(
        "Error: A server that leaves jobs to others (jobs.workers is 0)"
    )


def test_a_server_that_only_serves_leaves_jobs_to_workers(groundnote, shared_variables, web):
    url = groundnote("serve", **shared_variables, GROUNDNOTE_JOBS__WORKERS="0").url()
    document = {"file": ("handbook.md", "# Refunds\n\nA refund takes five days.")}
    job = web.post(f"{url}/api/v1/documents", files=document).json()["jobs"][0]["id"]
    time.sleep(3)
    assert web.get(f"{url}/api/v1/jobs/{job}").json()["state"] == "queued"

    own = {"GROUNDNOTE_DATA_DIR": shared_variables["GROUNDNOTE_DATA_DIR"] + "-worker"}
    groundnote("worker", **shared_variables | own)

    until(lambda: web.get(f"{url}/api/v1/jobs/{job}").json()["state"] == "done")


def test_a_dead_worker_is_replaced_and_a_killed_server_leaves_none(
    groundnote, shared_variables, web
):
    server = groundnote("serve", "--workers", 2, **shared_variables)
    url = server.url()
    supervisor = server.process.pid
    first = until(lambda: len(found := children(supervisor)) == 3 and found)
    until(lambda: web.get(f"{url}/readyz").status_code == 200)

    os.kill(max(first), signal.SIGKILL)
    now = until(lambda: len(found := children(supervisor)) == 3 and found != first and found)
    assert len(now & first) == 2
    for _ in range(10):
        assert web.get(f"{url}/healthz").status_code == 200

    os.kill(supervisor, signal.SIGKILL)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in now))


@pytest.fixture
def model():
    words = " ".join(f"word{n}" for n in range(30))
    with OpenAIServer(slowly(words, seconds_a_word=0.1)) as server:
        yield server


class Asking:
    """A client that waits for a whole answer."""

    def __init__(self, url, session_id):
        self.answer = None
        self._thread = threading.Thread(target=self._ask, args=(url, session_id))
        self._thread.start()

    def _ask(self, url, session_id):
        asked = {"content": "How long do refunds take?"}
        path = f"{url}/api/v1/sessions/{session_id}/messages"
        self.answer = httpx.post(path, json=asked, timeout=DEADLINE)

    def end(self):
        self._thread.join()
        return self.answer


def new_session(web, url):
    """In a library that is not empty: of an empty one nothing is asked."""
    document = {"file": ("handbook.md", "# Refunds\n\nA refund takes five days.")}
    sent = web.post(f"{url}/api/v1/documents", files=document).json()["jobs"][0]["id"]
    until(lambda: web.get(f"{url}/api/v1/jobs/{sent}").json()["state"] == "done")
    return web.post(f"{url}/api/v1/sessions", json={}).json()["id"]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_server_that_ends_finishes_the_answers_it_writes(
    workers, groundnote, shared_variables, web, model
):
    spoken = {"GROUNDNOTE_LLM__BASE_URL": model.url, "GROUNDNOTE_LLM__MODEL": "fake"}
    server = groundnote("serve", "--workers", workers, **shared_variables, **spoken)
    url = server.url()
    asking = Asking(url, new_session(web, url))
    until(lambda: model.requests)

    status = server.end(signal.SIGTERM)

    answer = asking.end()
    assert status == 0, server.said()
    assert answer.status_code == 200, answer.text
    assert answer.json()["content"].endswith("word29")
    assert "Traceback" not in server.said()


def test_an_answer_whose_process_was_killed_is_found_by_another_and_can_be_asked_again(
    groundnote, shared_variables, web, model
):
    spoken = {"GROUNDNOTE_LLM__BASE_URL": model.url, "GROUNDNOTE_LLM__MODEL": "fake"}
    slow = OpenAIServer(hang("Refunds take "))
    with slow:
        dying = groundnote(
            "serve",
            **shared_variables,
            GROUNDNOTE_LLM__BASE_URL=slow.url,
            GROUNDNOTE_LLM__MODEL="fake",
        )
        living = groundnote(
            "serve",
            **shared_variables
            | spoken
            | {"GROUNDNOTE_DATA_DIR": shared_variables["GROUNDNOTE_DATA_DIR"] + "-2"},
        )
        url = living.url()
        session_id = new_session(web, url)
        threading.Thread(target=_ignored, args=(dying.url(), session_id), daemon=True).start()
        until(lambda: slow.requests)
        path = f"{url}/api/v1/sessions/{session_id}/messages"
        time.sleep(3)  # its first words are written down within a second
        assert web.get(path).json()["messages"][-1]["status"] == "pending"
        killed_at = time.monotonic()
        dying.kill_all()

    until(lambda: web.get(path).json()["messages"][-1]["status"] == "interrupted", seconds=60)
    assert time.monotonic() - killed_at < 60
    left = web.get(path).json()["messages"][-1]
    assert left["content"] == "Refunds take"
    assert "Ask for it again" in left["error"]
    again = web.post(f"{path}/{left['index']}/regenerate")
    assert again.status_code == 200, again.text
    assert again.json()["content"].endswith("word29")


def _ignored(url, session_id):
    with suppress(httpx.HTTPError):
        asked = {"content": "How long do refunds take?"}
        httpx.post(f"{url}/api/v1/sessions/{session_id}/messages", json=asked, timeout=DEADLINE)

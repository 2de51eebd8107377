"""`groundnote serve --workers 2` on one machine: no Redis, no Chroma server, no PostgreSQL.

One worker is halted where the other shall be the one that answers.
"""

import json
import os
import signal
import socket
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from rag.search.index_lock import holder_of
from tests.deployment.conftest import DEADLINE, running_groundnote, until
from tests.openai_server import OpenAIServer, slowly

HANDBOOK = {"file": ("handbook.md", "# Refunds\n\nA refund takes five days.")}
TOKENS = {"GROUNDNOTE_AUTH__MODE": "tokens", "GROUNDNOTE_AUTH__TOKENS": '{"ana": "a-long-secret"}'}


@pytest.fixture
def model():
    words = " ".join(f"word{n}" for n in range(200))
    with OpenAIServer(slowly(words, seconds_a_word=0.1)) as server:
        yield server


class Fleet:
    """A server of two workers, and the process that they share."""

    def __init__(self, run, data, variables):
        """`run` begins a process of ours."""
        own = {"GROUNDNOTE_WEB__PORT": "0", "GROUNDNOTE_DATA_DIR": str(data)} | variables
        self.data, self.run = data, lambda *words: run(*words, **own)
        self.server = self.run("serve", "--workers", 2)
        self.pid, self.url = self.server.process.pid, self.server.url()
        self.workers = self.children(3)[1:]
        until(lambda: self.get("/readyz").status_code == 200)

    @property
    def shared(self):
        """The process that is no worker; after it was killed, another."""
        (shared,) = set(self.children(3)) - set(self.workers)
        return shared

    def children(self, count):
        """By the order in which they began."""
        path = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        return until(
            lambda: len(found := sorted(map(int, path.read_text().split()))) == count and found
        )

    @contextmanager
    def only(self, worker):
        """What is asked meanwhile, this one answers."""
        others = [pid for pid in self.workers if pid != self.workers[worker]]
        for pid in others:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in others:
                os.kill(pid, signal.SIGCONT)

    def get(self, path, **options):
        return httpx.get(f"{self.url}{path}", timeout=DEADLINE, **options)

    def post(self, path, **options):
        return httpx.post(f"{self.url}{path}", timeout=DEADLINE, **options)

    def upload(self, files):
        job = self.post("/api/v1/documents", files=files).json()["jobs"][0]["id"]
        until(lambda: self.get(f"/api/v1/jobs/{job}").json()["state"] == "done")

    def hits(self, query):
        return self.search(query).json()["hits"]

    def search(self, query):
        return self.post("/api/v1/search", json={"query": query, "limit": 3})

    def new_session(self):
        return self.post("/api/v1/sessions", json={}).json()["id"]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """A fleet with these settings; it goes on from test to test until one ends it."""
    folder, known = tmp_path_factory.mktemp("fleets"), {}

    def fleet(**variables):
        names = tuple(variables)
        if names not in known or known[names].server.process.poll() is not None:
            known[names] = Fleet(run, folder / f"var-{'-'.join(names)}", variables)
        return known[names]

    with OpenAIServer() as embeddings, running_groundnote(folder, embeddings) as run:
        yield fleet


def is_alive(pid):
    with suppress(OSError):
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    return False


def test_what_one_worker_takes_in_the_other_finds_and_cites(fleet):
    both = fleet()
    with both.only(0):
        both.upload(HANDBOOK)
        session = both.new_session()
        assert [hit["document"] for hit in both.hits("refund")] == ["handbook.md"]

    with both.only(1):
        assert [hit["document"] for hit in both.hits("money back")] == ["handbook.md"]
        asked = {"content": "How long does a refund take?"}
        answer = both.post(f"/api/v1/sessions/{session}/messages", json=asked).json()
        assert answer["citations"][0]["n"] == 1
        document = both.get("/api/v1/documents").json()["documents"][0]["id"]
        httpx.delete(f"{both.url}/api/v1/documents/{document}", timeout=DEADLINE)

    with both.only(0):
        until(lambda: both.hits("refund") == [])


def test_an_answer_is_followed_and_stopped_at_the_other_worker(fleet, model):
    spoken = {"GROUNDNOTE_LLM__BASE_URL": model.url, "GROUNDNOTE_LLM__MODEL": "fake"}
    both = fleet(**spoken)
    both.upload(HANDBOOK)
    path = f"/api/v1/sessions/{both.new_session()}/messages"
    with both.only(0):
        threading.Thread(target=_ask_and_leave, args=(both, path)).start()
        until(lambda: model.requests)

    with both.only(1):
        seen = both.get(path).json()["messages"][-1]
        assert seen["status"] == "pending"
        until(lambda: both.post(f"{path}/{seen['index']}/stop").status_code == 202)

    until(lambda: both.get(path).json()["messages"][-1]["status"] == "interrupted")
    assert not both.get(path).json()["messages"][-1]["content"].endswith("word199")


def test_wrong_tokens_are_counted_by_all_workers_together(fleet):
    both = fleet(**TOKENS)
    wrong = {"headers": {"Authorization": "Bearer no-such-token"}}
    with both.only(0):
        assert {both.get("/api/v1/documents", **wrong).status_code for _ in range(10)} == {401}

    with both.only(1):
        assert both.get("/api/v1/documents", **wrong).status_code == 429


def test_the_process_that_they_share_is_replaced_and_answers_again(fleet):
    both = fleet()
    both.upload(HANDBOOK)

    killed = both.shared

    os.kill(killed, signal.SIGKILL)
    answer = both.search("refund")
    assert answer.is_success or answer.json()["type"].endswith(":index-away"), answer.text

    until(lambda: killed not in both.children(3))
    until(lambda: both.get("/readyz").json()["status"] == "ready")
    for worker in (0, 1):
        with both.only(worker):
            assert both.hits("money back")


def test_a_killed_server_leaves_no_process_and_no_lock(fleet):
    both = fleet()
    processes = both.children(3)

    os.kill(both.pid, signal.SIGKILL)

    until(lambda: not any(map(is_alive, processes)))
    until(lambda: holder_of(both.data / "chroma") is None)  # a dying process lets go of it late
    with socket.create_server(("127.0.0.1", int(both.url.rpartition(":")[2]))):
        pass


def test_a_server_that_ends_leaves_nothing_and_others_are_told_of_it_meanwhile(fleet, tmp_path):
    both = fleet()
    processes = both.children(3)
    assert holder_of(both.data / "chroma") == both.pid
    assert json.loads((both.data / "server.json").read_text())["pid"] == both.pid
    beside = tmp_path / "beside.md"
    beside.write_text("# Beside\n\nHanded over to the server.")
    assert both.run("ingest", beside).wait() == 0
    second = both.run("serve", "--port", 0)
    assert second.wait() == 1
    assert both.url in second.said()

    assert both.server.end() == 0

    assert not any(map(is_alive, processes))
    assert holder_of(both.data / "chroma") is None
    assert "Error" not in both.server.said()


def _ask_and_leave(fleet, path):
    with suppress(httpx.HTTPError):
        fleet.post(path, json={"content": "How long do refunds take?"})

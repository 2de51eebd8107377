"""Groundnote as it is deployed: processes of its own, servers beside it."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

import rag.wiring.answers  # noqa: F401  # pytest compiles it, which is for one thread at a time
from rag.search.vectors import ChromaIndex
from rag.settings import RetrievalSettings, Settings
from rag.wiring.application import build
from tests.canary import SEED, SEEDS, folders
from tests.fakes import HashEmbedder
from tests.openai_server import OpenAIServer
from tests.waiting import LONG, until

ROOT = Path(__file__).parents[2]
DEADLINE = LONG


def pytest_collection_modifyitems(items):
    here = str(Path(__file__).parent)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.slow)


def server_url(variable):
    url = os.environ.get(variable)
    if not url:
        pytest.skip(f"{variable} names no server")
    return url


@pytest.fixture
def shared(tmp_path, postgres_of_its_own):
    """Settings of several hosts: PostgreSQL, a Chroma server and Redis, one folder per host.

    Each test has a collection of its own: what another left is none of its vectors.
    """
    chroma_url = server_url("GROUNDNOTE_TEST_CHROMA_URL")
    queue = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 16  # Redis has so many
    redis_url = f"{server_url('GROUNDNOTE_TEST_REDIS_URL').rpartition('/')[0]}/{queue}"
    url = postgres_of_its_own.url.render_as_string(hide_password=False)
    retrieval = RetrievalSettings(chroma_url=chroma_url, chroma_collection=f"test-{uuid4().hex}")
    index = ChromaIndex("any", url=chroma_url, collection=retrieval.chroma_collection)

    def settings(host="host-1", **changes):
        return Settings(
            data_dir=tmp_path / host,
            sessions={"database_url": url},
            retrieval=retrieval,
            jobs={"url": redis_url},
            **changes,
        )

    yield settings
    index.clear()
    index.close()


@pytest.fixture
def built():
    """Builds applications, and stops them at the end."""
    applications = []

    def build_one(settings):
        applications.append(build(settings, embedder=HashEmbedder()))
        return applications[-1]

    yield build_one
    for application in applications:
        application.stop()


@dataclass
class Process:
    """`groundnote …` in a process of its own."""

    process: subprocess.Popen
    log: Path

    def end(self, number=signal.SIGTERM):
        """Its exit status."""
        self.process.send_signal(number)
        return self.process.wait(timeout=DEADLINE)

    def kill_all(self):
        """As a machine that loses power: the process and its children at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=DEADLINE)

    def wait(self):
        return self.process.wait(timeout=DEADLINE)

    def said(self):
        return self.log.read_text()

    def url(self):
        """Where the server is, once it serves."""

        def announced():
            assert self.process.poll() is None, self.said()
            return "is ready at " in self.said()

        until(announced)
        return self.said().split("is ready at ")[1].split()[0]


@pytest.fixture
def embeddings():
    """An embedding server, so that no process has to load a real model."""
    with OpenAIServer() as server:
        yield server


@contextmanager
def running_groundnote(folder, embeddings):
    """Runs `groundnote …` on a library in this folder; kills what is left at the end."""
    started = []
    own = {
        "GROUNDNOTE_DATA_DIR": str(folder / "var"),
        "GROUNDNOTE_EMBEDDING__BASE_URL": embeddings.url,
        "GROUNDNOTE_EMBEDDING__MODEL": "tiny",
        "GROUNDNOTE_DOCUMENTS__READER_API_KEY": SEEDS["documents.reader_api_key"],
        "GROUNDNOTE_SOURCES__PASSWORDS": json.dumps({"canary": SEED}),
    }
    folders.append(folder)  # its logs and its data are looked through at the end

    def run(*arguments, **variables):
        log = folder / f"log-{len(started)}.txt"
        with log.open("w") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "rag.cli", *map(str, arguments)],
                cwd=ROOT,
                env=os.environ | own | variables,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        started.append(Process(process, log))
        return started[-1]

    yield run
    for each in started:
        if each.process.poll() is None:
            each.kill_all()


@pytest.fixture
def groundnote(tmp_path, embeddings):
    """Runs `groundnote …` on a library of this test's own."""
    with running_groundnote(tmp_path, embeddings) as run:
        yield run


@pytest.fixture
def library(tmp_path, embeddings):
    """Opens the library that `groundnote` works on."""

    def open_library():
        embedding = {"base_url": embeddings.url, "model": "tiny"}
        return build(Settings(data_dir=tmp_path / "var", embedding=embedding))

    return open_library


@pytest.fixture
def web():
    """An HTTP client that waits long."""
    with httpx.Client(timeout=DEADLINE) as client:
        yield client

"""`groundnote doctor` names what is wrong and what to do, and never breaks itself."""

import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys

import pytest

from rag.cli.doctor import examine
from rag.search.vectors import ChromaIndex
from rag.settings import Settings
from rag.wiring.application import build
from tests.fakes import HashEmbedder
from tests.openai_server import OpenAIServer, failure, page

pytestmark = pytest.mark.slow


@pytest.fixture
def models():
    """A server for embeddings and chat, so that no real model is loaded."""
    with OpenAIServer() as server:
        yield server


@pytest.fixture
def settings(tmp_path, models):
    return lambda **changes: Settings(
        **{
            "data_dir": tmp_path / "var",
            "embedding": {"base_url": models.url, "model": "tiny"},
            **changes,
        }
    )


def wrong(settings):
    return {each.subject: each.detail for each in examine(settings) if not each.is_ok}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_finds_nothing_wrong_with_a_new_library(settings, models):
    findings = list(examine(settings(llm={"base_url": models.url, "model": "fake"})))

    assert [each.detail for each in findings if not each.is_ok] == []
    assert "'Hello from the server.'" in findings[-1].detail


def test_names_a_data_folder_that_cannot_be_written(settings, tmp_path):
    (tmp_path / "file").write_text("not a folder")

    found = wrong(settings(data_dir=tmp_path / "file" / "var"))

    assert "GROUNDNOTE_DATA_DIR" in found["data folder"]
    assert "embedding model" not in found


def test_names_a_full_disk(settings, monkeypatch):
    usage = shutil.disk_usage("/")._replace(free=1024)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)

    found = wrong(settings())

    assert "0 MiB left" in found["data folder"]
    assert "nothing that is stored is lost" in found["data folder"]


def test_names_a_disk_that_can_only_be_read_and_advises_nothing_that_destroys(
    settings, monkeypatch
):
    build(settings()).stop()
    with monkeypatch.context() as context:
        context.setattr(os, "access", lambda path, mode: False)
        found = wrong(settings())

    assert "can only be read just now" in found["data folder"]
    assert not [told for told in found.values() if "delete" in told.lower()]


def test_names_an_embedding_model_that_is_not_there(settings):
    found = wrong(settings(embedding={"model": "no/such-model"}))

    assert "no/such-model" in found["embedding model"]
    assert "embedding.model" in found["embedding model"]


def test_names_an_index_that_another_model_built(settings, tmp_path):
    index = ChromaIndex("another", directory=tmp_path / "var" / "chroma")
    index.add(["a"], HashEmbedder().embed(["text"]), ["1"])
    index.close()

    found = wrong(settings())

    assert "'another'" in found["indexes"]
    assert "groundnote reindex" in found["indexes"]


def test_names_an_index_that_lacks_chunks(settings):
    application = build(settings())
    try:
        application.jobs.submit_ingest("a.md", b"# A\n\nSome text.")
        application.jobs.run_waiting()
        application.index.clear()
    finally:
        application.stop()

    found = wrong(settings())

    assert found["indexes"].startswith("1 of 1 chunks have no vector")
    assert "groundnote doctor --repair" in found["indexes"]


def test_looks_at_a_library_as_it_was_left_without_loading_what_answers(tmp_path, models):
    environment = os.environ | {
        "GROUNDNOTE_DATA_DIR": str(tmp_path),
        "GROUNDNOTE_EMBEDDING__BASE_URL": models.url,
        "GROUNDNOTE_EMBEDDING__MODEL": "tiny",
    }
    application = build(
        Settings(data_dir=tmp_path, embedding={"base_url": models.url, "model": "tiny"})
    )
    application.jobs.submit_ingest("a.md", b"# A\n\nSome text.")
    application.jobs.run_waiting()
    application.stop()
    code = """
import sys
from rag.cli.doctor import examine
from rag.settings import load_settings
print([each.detail for each in examine(load_settings(None)) if each.subject == "indexes"])
heavy = {"chromadb", "openvino", "torch", "flask", "duckdb", "alembic", "rich"}
print(heavy & set(sys.modules))
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)

    assert done.stdout.splitlines() == ["['1 chunks, with vectors and words']", "set()"]


def test_names_an_index_that_another_process_holds(settings, tmp_path):
    folder = tmp_path / "var" / "chroma"
    folder.mkdir(parents=True)
    (folder / "in_use_by.json").write_text(json.dumps({"pid": 4711}))
    holder = (folder / "in_use_by.json").open()
    fcntl.flock(holder, fcntl.LOCK_EX)

    found = wrong(settings())

    assert "4711" in found["indexes"]
    holder.close()


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (failure(401, "no such key"), ["key"]),
        (failure(404, "model 'fake' not found"), ["fake"]),
        (page("<html>Sign in</html>"), ["llm.base_url"]),
    ],
    ids=["key", "model", "proxy"],
)
def test_names_what_the_model_server_refuses(settings, behaviour, words):
    with OpenAIServer(behaviour) as server:
        found = wrong(settings(llm={"base_url": server.url, "model": "fake"}))

    assert all(word in found["language model"] for word in words)


def test_names_servers_that_are_not_there(settings):
    nowhere = f"127.0.0.1:{free_port()}"
    changes = {
        "llm": {"base_url": f"http://{nowhere}/v1", "model": "fake"},
        "jobs": {"url": f"redis://{nowhere}/0"},
        "retrieval": {"chroma_url": f"http://{nowhere}"},
        "sessions": {"database_url": f"postgresql://u:secret@{nowhere}/db"},
    }

    found = wrong(settings(**changes))

    assert "llm.base_url" in found["language model"]
    assert "jobs.url" in found["job queue"]
    assert "retrieval.chroma_url" in found["indexes"]
    assert "sessions.database_url" in found["database"]
    assert "secret" not in "".join(found.values())


@pytest.mark.parametrize(
    ("labels", "is_ok"),
    [
        ({"0": "entailment", "1": "contradiction"}, True),
        ({"0": "yes", "1": "no"}, False),
        (None, False),
    ],
    ids=["a-judge", "other-labels", "missing"],
)
def test_tells_whether_a_judge_on_disk_can_be_used(settings, tmp_path, labels, is_ok):
    folder = tmp_path / "judge"
    if labels is not None:
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps({"id2label": labels}))

    found = examine(settings(checks={"nli_model": folder}))
    finding = next(each for each in found if each.subject == "judge")

    assert finding.is_ok is is_ok
    assert str(folder) in finding.detail

"""`kill -9` at any moment: what is started again ends as if nothing had happened."""

import threading
from collections import Counter

import pytest
from sqlalchemy import select

from rag.db import chunks, documents, reading
from tests.deployment.conftest import DEADLINE, until
from tests.openai_server import OpenAIServer

FILES = 30
PART = "Part {part} of file {file} weighs {part}{file} grams and fits the housing. "


@pytest.fixture
def gate():
    """Closed, it keeps embeddings waiting."""
    gate = threading.Event()
    yield gate
    gate.set()


@pytest.fixture
def embeddings(gate):
    class Gated(OpenAIServer):
        def _embeddings(self, body):
            gate.wait(DEADLINE)
            return super()._embeddings(body)

    with Gated() as server:
        yield server


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "documents"
    folder.mkdir()
    for file in range(FILES):
        parts = [f"## Part {n}\n\n" + PART.format(part=n, file=file) * 12 for n in range(8)]
        (folder / f"file-{file}.md").write_text(f"# File {file}\n\n" + "\n\n".join(parts))
    return folder


def assert_whole(library, names):
    application = library()
    try:
        with reading(application.engine) as connection:
            rows = connection.execute(select(chunks.c.id, chunks.c.document_id)).all()
            expected = dict(
                connection.execute(select(documents.c.id, documents.c.chunk_count)).all()
            )
            known = list(connection.execute(select(documents.c.name)).scalars())
        assert sorted(known) == sorted(names)
        assert Counter(row.document_id for row in rows) == expected
        assert application.index.chunk_ids() == {row.id for row in rows}
    finally:
        application.stop()


def test_an_ingest_that_is_killed_again_and_again_is_finished_by_the_last(
    groundnote, embeddings, gate, folder, library
):
    for kill_after in (1, 3):  # requests for vectors
        seen = len(embeddings.other_requests)
        killed = groundnote("ingest", folder)
        until(lambda seen=seen, n=kill_after: len(embeddings.other_requests) >= seen + n)
        killed.kill_all()
        gate.set()

    last, unchanged = groundnote("ingest", folder), None
    assert last.wait() == 0, last.said()
    unchanged = groundnote("ingest", folder)

    assert unchanged.wait() == 0
    assert f"{FILES} unchanged" in unchanged.said()
    assert_whole(library, [f"file-{file}.md" for file in range(FILES)])


def test_uploads_that_waited_in_a_killed_server_are_ingested_by_the_next(
    groundnote, embeddings, gate, folder, library, web
):
    server = groundnote("serve", "--port", "0")
    names = [f"file-{file}.md" for file in range(4)]
    sent = [("file", (name, (folder / name).read_bytes())) for name in names]
    answer = web.post(f"{server.url()}/api/v1/documents", files=sent).json()
    until(lambda: embeddings.other_requests)
    server.kill_all()
    gate.set()

    again = groundnote("serve", "--port", "0")
    url = again.url()

    for job in answer["jobs"]:
        until(lambda id=job["id"]: web.get(f"{url}/api/v1/jobs/{id}").json()["state"] == "done")
    assert again.end() == 0
    assert_whole(library, names)


def test_a_server_that_is_stopped_in_the_middle_of_an_ingest_goes_on_with_it_later(
    groundnote, embeddings, gate, folder, library, web, tmp_path
):
    server = groundnote("serve", "--port", "0")
    sent = [("file", ("file-1.md", (folder / "file-1.md").read_bytes()))]
    job = web.post(f"{server.url()}/api/v1/documents", files=sent).json()["jobs"][0]
    until(lambda: embeddings.other_requests)

    assert server.end() == 0
    assert not (tmp_path / "var" / "server.json").exists()
    gate.set()
    again = groundnote("serve", "--port", "0")

    url = f"{again.url()}/api/v1/jobs/{job['id']}"
    until(lambda: web.get(url).json()["state"] == "done")
    assert again.end() == 0
    assert_whole(library, ["file-1.md"])

"""Uploads that meet each other or a full disk; the index stays equal to the database."""

import errno
from io import BytesIO

import pytest

from rag.jobs.queue import QueueStopped
from rag.records import EVERYTHING, JobState
from rag.settings import Settings
from rag.web import create_app
from tests.deployment.conftest import until

TEXT = "# Part {n}\n\nThe part with the number {n} weighs {n} grams.\n"


@pytest.fixture
def application(tmp_path, built):
    return built(Settings(data_dir=tmp_path / "var"))


@pytest.fixture
def client(application):
    return create_app(application).test_client()


def upload(client, *files):
    sent = [(BytesIO(content.encode()), name) for name, content in files]
    answer = client.post("/api/v1/documents", data={"file": sent})
    assert answer.status_code == 202
    return [job["id"] for job in answer.get_json()["jobs"]]


def all_ended(application, job_ids):
    unfinished = {JobState.QUEUED, JobState.RUNNING}
    until(lambda: not any(application.jobs.job(each).state in unfinished for each in job_ids))
    return [application.jobs.job(each) for each in job_ids]


def texts(application):
    """The chunks of the library; the index must hold them and no others."""
    hits = application.retriever.search("part number weighs grams", EVERYTHING, limit=50)
    count = sum(document.chunk_count for document in application.documents.documents(EVERYTHING))
    assert len(application.index.chunk_ids()) == count
    return sorted(hit.chunk.text for hit in hits)


def test_of_two_uploads_of_one_name_the_later_stays(application, client):
    versions = [TEXT.format(n=n) * (40 if n == 1 else 1) for n in (1, 2, 3, 2)]
    job_ids = [upload(client, ("part.md", version))[0] for version in versions]

    application.start()

    assert [job.error for job in all_ended(application, job_ids)] == [None] * 4
    (only,) = texts(application)
    assert "number 2" in only


def test_thirty_files_at_once_all_come_in(application, client):
    application.start()

    job_ids = upload(client, *((f"part-{n}.md", TEXT.format(n=n)) for n in range(30)))

    assert {job.state for job in all_ended(application, job_ids)} == {JobState.DONE}
    assert len(application.documents.documents(EVERYTHING)) == 30
    assert len(application.index.chunk_ids()) == 30


def test_a_document_deleted_while_its_next_version_comes_in_leaves_no_remains(application, client):
    application.start()
    all_ended(application, upload(client, ("part.md", TEXT.format(n=1) * 40)))
    (document,) = application.documents.documents(EVERYTHING)

    job_ids = upload(client, ("part.md", TEXT.format(n=2) * 40))
    deleted = client.delete(f"/api/v1/documents/{document.id}")

    assert deleted.status_code == 204
    (job,) = all_ended(application, job_ids)
    assert job.error is None
    assert all("number 2" in text for text in texts(application))


def test_an_upload_without_its_file_says_so(application, client, tmp_path):
    (job_id,) = upload(client, ("part.md", TEXT.format(n=1)))
    (tmp_path / "var" / "uploads" / job_id).unlink()

    application.start()

    (job,) = all_ended(application, [job_id])
    assert job.error == "part.md: the upload did not arrive whole. Send the file again."


def test_an_upload_for_which_the_disk_has_no_room_fails_its_job(
    application, client, monkeypatch, tmp_path
):
    def no_room(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("rag.db.blobs.os.fsync", no_room)
    (job_id,) = upload(client, ("part.md", TEXT.format(n=1)))

    job = client.get(f"/api/v1/jobs/{job_id}").get_json()
    assert job["state"] == "failed"
    assert "part.md could not be kept (No space left on device)" in job["error"]
    assert not list((tmp_path / "var" / "uploads").iterdir())  # a full disk needs the room


def test_an_ended_upload_leaves_no_file(application, client, tmp_path):
    job_ids = upload(client, ("part.md", TEXT.format(n=1)), ("broken.pdf", "%PDF-1.7 no more"))

    application.start()

    all_ended(application, job_ids)
    until(lambda: not list((tmp_path / "var" / "uploads").iterdir()))


def test_what_a_killed_server_left_of_ended_uploads_goes_at_the_next_start(
    application, client, tmp_path
):
    """It was killed after a job was written down as done, or while a file was written."""
    ended, waits = upload(client, ("part.md", TEXT.format(n=1)), ("next.md", TEXT.format(n=2)))
    uploads = tmp_path / "var" / "uploads"
    application.jobs._queue.table.set(ended, state=JobState.DONE.value)
    (uploads / "0123.part").write_bytes(b"half a fi")
    kept = (uploads / waits).read_bytes()

    application.jobs._sweep()

    assert [each.name for each in uploads.iterdir()] == [waits]
    assert (uploads / waits).read_bytes() == kept
    application.start()
    assert [job.state for job in all_ended(application, [waits])] == [JobState.DONE]
    until(lambda: not list(uploads.iterdir()))


def test_a_server_sweeps_at_its_start(application, client, tmp_path):
    uploads = tmp_path / "var" / "uploads"
    uploads.mkdir(parents=True)
    (uploads / "0123456789abcdef").write_bytes(b"of a job that has long been forgotten")

    application.start()

    until(lambda: not list(uploads.iterdir()))


def killed_after(monkeypatch, target, name):
    """The process goes once this is done, and nothing of the job is written down any more."""
    done = getattr(target, name)

    def kill(*args):
        done(*args)
        monkeypatch.setattr(target, name, done)
        raise QueueStopped

    monkeypatch.setattr(target, name, kill)


@pytest.mark.parametrize("kills", [["replace_all"], ["replace_all", "note_arrival"], ["forget"]])
@pytest.mark.parametrize("change", ["moved", "deleted"])
def test_an_upload_that_is_done_again_brings_nothing_back(
    application, client, change, kills, monkeypatch
):
    """Servers were killed when the text had come in, but its job was not written down as done."""
    (job_id,) = upload(client, ("part.md", TEXT.format(n=1)))
    table = application.jobs._queue.table
    for name in kills:
        if name == "forget":
            monkeypatch.setattr(application.jobs._uploads, name, lambda upload_id: None)
        else:
            killed_after(monkeypatch, application.documents, name)
        application.jobs.run_waiting()
        table.set(job_id, state=JobState.QUEUED.value)
    (document,) = application.documents.documents(EVERYTHING)
    if change == "deleted":
        client.delete(f"/api/v1/documents/{document.id}")
    else:
        made = application.collections.create("", "Elsewhere")
        client.put(f"/api/v1/documents/{document.id}", json={"collection": made.id})

    application.start()

    assert [job.state for job in all_ended(application, [job_id])] == [JobState.DONE]
    left = application.documents.documents(EVERYTHING)
    assert [each.id for each in left] == ([document.id] if change == "moved" else [])

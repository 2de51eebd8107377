"""PostgreSQL, a Chroma server and Redis under one or two hosts."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import BytesIO

from rag.jobs import queue as jobs
from rag.records import EVERYTHING, JobState, MessageStatus
from rag.web import create_app
from tests.deployment.conftest import until

MANUAL = b"""# Aero 5 manual

## Weight

The Aero 5 weighs 120 g. The Aero 5 Pro weighs 140 g.

## Battery

The battery of the Aero 5 lasts 30 hours at medium volume.
"""


def upload(client, name, content):
    answer = client.post("/api/v1/documents", data={"file": [(BytesIO(content), name)]})
    assert answer.status_code == 202
    return answer.get_json()["jobs"][0]["id"]


def job(client, job_id):
    return client.get(f"/api/v1/jobs/{job_id}").get_json()


def ended(client, job_id):
    until(lambda: job(client, job_id)["state"] in ("done", "failed"))
    return job(client, job_id)


def new_session(client):
    return client.post("/api/v1/sessions", json={}).get_json()["id"]


def ask(client, session_id, question):
    answer = client.post(f"/api/v1/sessions/{session_id}/messages", json={"content": question})
    assert answer.status_code == 200, answer.get_json()
    return answer.get_json()


def found(client, query):
    hits = client.post("/api/v1/search", json={"query": query}).get_json()["hits"]
    return [hit["document"] for hit in hits]


def test_a_document_goes_through_its_whole_life_and_numbers_outlive_the_process(shared, built):
    application = built(shared())
    application.start()
    client = create_app(application).test_client()
    session_id = new_session(client)

    assert ended(client, upload(client, "aero.md", MANUAL))["error"] is None
    first = ask(client, session_id, "How much does the Aero 5 weigh?")
    assert "120 g" in first["content"]
    number = first["citations"][0]["n"]
    source_url = f"/api/v1/sessions/{session_id}/sources/{number}"
    before = client.get(source_url).get_json()
    application.stop()

    restarted = create_app(built(shared())).test_client()
    again = ask(restarted, session_id, "How much does the Aero 5 weigh?")

    assert number in [citation["n"] for citation in again["citations"]]
    assert restarted.get(source_url).get_json() == before
    (document,) = restarted.get("/api/v1/documents").get_json()["documents"]
    assert restarted.delete(f"/api/v1/documents/{document['id']}").status_code == 204
    gone = restarted.get(source_url).get_json()
    assert (gone["state"], gone["text"]) == ("deleted", before["text"])
    assert found(restarted, "Aero 5 weight") == []


def test_two_hosts_share_documents_uploads_and_sessions(shared, built):
    one, two = built(shared("host-1")), built(shared("host-2"))
    here, there = create_app(one).test_client(), create_app(two).test_client()
    job_id = upload(here, "aero.md", MANUAL)

    two.start()  # only the other host works, and gets the file that was sent here

    assert ended(here, job_id)["error"] is None
    assert "aero.md" in found(there, "battery of the Aero 5")
    session_id = new_session(here)
    questions = ["How much does the Aero 5 weigh?", "How long does the battery last?"]
    with ThreadPoolExecutor(6) as pool:
        clients = [create_app(each).test_client() for each in (one, two) * 3]
        asked = [pool.submit(ask, c, session_id, questions[i % 2]) for i, c in enumerate(clients)]
        answers = [each.result() for each in asked]

    messages = there.get(f"/api/v1/sessions/{session_id}/messages").get_json()["messages"]
    assert [message["index"] for message in messages] == list(range(12))
    assert all(q["turn"] == a["turn"] for q, a in zip(messages[::2], messages[1::2], strict=True))
    sources = here.get(f"/api/v1/sessions/{session_id}/sources").get_json()["sources"]
    assert [source["n"] for source in sources] == list(range(1, len(sources) + 1))
    assert len({source["chunk_id"] for source in sources}) == len(sources)
    by_number = {source["n"]: source["chunk_id"] for source in sources}
    for answer in answers:
        for citation in answer["citations"]:
            assert citation["n"] in by_number


def test_a_host_takes_up_what_a_dead_one_began(shared, built, monkeypatch):
    monkeypatch.setattr(jobs, "BEAT_SECONDS", 0.1)
    monkeypatch.setattr(jobs, "ABANDONED_AFTER", timedelta(seconds=1))
    dead, alive = built(shared("host-1")), built(shared("host-2"))
    job = dead.jobs.submit_ingest("aero.md", MANUAL)
    dead.jobs._queue.table.claim(job.id)  # and died in the middle

    alive.start()

    until(lambda: alive.jobs.job(job.id).state is JobState.DONE)
    assert len(alive.index.chunk_ids()) == alive.documents.documents(EVERYTHING)[0].chunk_count


def test_a_host_that_starts_leaves_answers_alone_that_another_writes(shared, built):
    one, two = built(shared("host-1")), built(shared("host-2"))
    session = one.store.create("local")
    turn = session.begin("How much does the Aero 5 weigh?")

    two.start()

    assert session.message(turn.answer.index).status is MessageStatus.PENDING


def test_every_file_opens_on_every_host_also_when_the_one_that_read_it_is_gone(
    shared, built, tmp_path
):
    documents = {"originals_url": str(tmp_path / "originals-of-all")}
    one, two = (built(shared(host, documents=documents)) for host in ("host-1", "host-2"))
    here, there = create_app(one).test_client(), create_app(two).test_client()
    job_id = upload(here, "aero.md", MANUAL)
    two.start()
    assert ended(here, job_id)["error"] is None
    (document,) = here.get("/api/v1/documents").get_json()["documents"]
    original = f"/api/v1/documents/{document['id']}/original"
    assert here.get(original).data == there.get(original).data == MANUAL

    two.stop()

    assert here.get(original).data == MANUAL
    assert one.without_original(reads=True) == {}


def test_files_that_only_one_host_keeps_are_told_by_the_others(shared, built):
    one, two = built(shared("host-1")), built(shared("host-2"))
    here = create_app(one).test_client()
    job_id = upload(here, "aero.md", MANUAL)
    two.start()
    assert ended(here, job_id)["error"] is None

    assert two.without_original() == {}
    assert list(one.without_original().values()) == ["aero.md"]
    assert one.ready()["originals"] is False

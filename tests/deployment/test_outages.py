"""Servers of others go away for a while, and come back: nothing is lost, nothing waits for us."""

import threading
import time
from contextlib import suppress

import httpx
import pytest
from redis import Redis as Forgetful

from tests.deployment.conftest import running_groundnote, until
from tests.deployment.servers import Chroma, Postgres, Redis, free_port, listens
from tests.openai_server import OpenAIServer, slowly

HANDBOOK = "# Handbook\n\n## Refunds\n\nA refund takes five days after the parcel came back."
LEFT_OUT = ("Traceback", "  File ")


class Embeddings:
    """An embedding server that can be away."""

    def __init__(self):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self.server = None

    def start(self):
        self.server = OpenAIServer(port=self.port).__enter__()
        return self

    def stop(self):
        if self.server is not None:
            self.server.__exit__()
            self.server = None


class Servers:
    """Those of others, which all tests share; each finds them as they were started."""

    def __init__(self, folder):
        self.database, self.redis = Postgres(folder).start(), Redis(folder).start()
        self.chroma, self.embeddings = Chroma(folder).start(), Embeddings()
        self.variables = {
            "GROUNDNOTE_WEB__PORT": "0",
            "GROUNDNOTE_SESSIONS__DATABASE_URL": self.database.url,
            "GROUNDNOTE_JOBS__URL": self.redis.url,
            "GROUNDNOTE_RETRIEVAL__CHROMA_URL": self.chroma.url,
            "GROUNDNOTE_DOCUMENTS__ORIGINALS_URL": str(folder / "originals"),
        }

    def all_run(self):
        for each in (self.database, self.redis, self.chroma):
            if listens(each.port):
                each.thaw()
            else:
                each.start()
        if self.embeddings.server is None:
            self.embeddings.start()

    def end(self):
        for each in (self.embeddings, self.chroma, self.redis):
            each.stop()
        self.database.remove()


@pytest.fixture(scope="module")
def all_servers(tmp_path_factory):
    servers = Servers(tmp_path_factory.mktemp("servers"))
    yield servers
    servers.end()


@pytest.fixture
def servers(all_servers):
    all_servers.all_run()
    return all_servers


@pytest.fixture
def chroma(servers):
    return servers.chroma


@pytest.fixture
def redis(servers):
    return servers.redis


@pytest.fixture
def database(servers):
    return servers.database


@pytest.fixture
def embeddings(servers):
    return servers.embeddings


@pytest.fixture
def serve(groundnote, servers, web):
    """Starts a server of this test's own over all of them."""

    def start():
        process = groundnote("serve", **servers.variables)
        return Served(process, process.url(), web)

    return start


@pytest.fixture(scope="module")
def kept(tmp_path_factory, all_servers):
    """Servers over all of them, by their settings, that go on from test to test."""
    known = {}
    folder = tmp_path_factory.mktemp("kept")
    with running_groundnote(folder, all_servers.embeddings) as run:

        def server(**variables):
            place = tuple(variables)
            if place not in known or known[place].process.poll() is not None:
                own = {"GROUNDNOTE_DATA_DIR": str(folder / f"var-{len(known)}")}
                known[place] = run("serve", **all_servers.variables, **own, **variables)
            return known[place]

        yield server


@pytest.fixture
def serving(servers, kept, web):
    """A server that goes on from test to test, and holds one document."""

    def serving(**variables):
        process = kept(**variables)
        served = Served(process, process.url(), web)
        until(lambda: served.ready()["status"] == "ready")
        served.keep_only_the_handbook()
        served.tells_anew()
        return served

    return serving


@pytest.fixture
def served(serving):
    return serving()


class Served:
    """What a person does with a server."""

    def __init__(self, process, url, web):
        self.process, self.url, self.web = process, url, web
        self.told = process.said().index("is ready at")

    def ready(self):
        return self.web.get(f"{self.url}/readyz").json()

    def upload(self, name, content):
        sent = self.web.post(f"{self.url}/api/v1/documents", files={"file": (name, content)})
        assert sent.status_code == 202, sent.text
        return sent.json()["jobs"][0]["id"]

    def job(self, job_id):
        return self.web.get(f"{self.url}/api/v1/jobs/{job_id}").json()

    def ended(self, job_id, *, seconds=60.0):
        until(lambda: self.job(job_id)["state"] in ("done", "failed"), seconds=seconds)
        assert self.job(job_id)["state"] == "done", self.job(job_id)

    def keep_only_the_handbook(self):
        path = f"{self.url}/api/v1/documents"
        there = self.web.get(path).json()["documents"]
        for each in there:
            if each["name"] != "handbook.md":
                assert self.web.delete(f"{path}/{each['id']}").status_code == 204
        if not any(each["name"] == "handbook.md" for each in there):
            self.ended(self.upload("handbook.md", HANDBOOK))

    def tells_anew(self):
        """What was said before is none of this test's."""
        self.told = len(self.process.said())

    def ask(self, question="How long does a refund take?"):
        session = self.web.post(f"{self.url}/api/v1/sessions", json={}).json()["id"]
        path = f"{self.url}/api/v1/sessions/{session}/messages"
        return self.web.post(path, json={"content": question})

    def answer(self):
        answer = self.ask()
        assert answer.status_code == 200, answer.text
        assert "five days" in answer.json()["content"]
        return [notice["kind"] for notice in answer.json()["notices"]]

    def said(self):
        return self.process.said()[self.told :]

    def is_calm(self, *, lines):
        said = self.said()
        assert not any(each in said for each in LEFT_OUT), said
        assert len(said.splitlines()) <= lines, said


def test_a_server_that_starts_before_the_others_is_ready_when_they_are(
    serve, redis, chroma, embeddings
):
    """It comes first: the library is empty, and no other server takes the upload."""
    for each in (redis, chroma, embeddings):
        each.stop()
    served = serve()
    until(lambda: served.ready()["status"] == "degraded")
    waiting = served.upload("handbook.md", HANDBOOK)

    for each in (redis, chroma, embeddings):
        each.start()

    served.ended(waiting)
    until(lambda: served.ready()["status"] == "ready")
    assert served.answer() == []
    served.is_calm(lines=20)


def test_without_the_vector_index_words_answer_and_uploads_wait(served, chroma):
    assert served.answer() == []

    chroma.stop()

    assert served.answer() == ["words_alone"]
    ready = served.ready()
    assert (ready["status"], ready["checks"]["index"]) == ("degraded", False)
    waiting = served.upload("prices.md", "# Prices\n\nThe lamp costs 20 EUR.")
    until(lambda: "tried again" in (served.job(waiting)["error"] or ""), seconds=20)
    assert served.job(waiting)["state"] in ("queued", "running")

    chroma.start()

    served.ended(waiting)
    until(lambda: served.ready()["status"] == "ready")
    assert served.answer() == []
    served.is_calm(lines=12)


def test_an_index_that_lost_everything_is_filled_again(served, chroma):
    chroma.stop()
    chroma.lose_everything()
    chroma.start()

    assert served.ready()["checks"]["index"] is False
    until(lambda: served.ready()["checks"]["index"])
    assert served.answer() == []
    assert "The vector index is rebuilt: it holds 0 of" in served.said()
    served.is_calm(lines=12)


def test_without_the_embedding_server_words_answer_and_uploads_wait(served, embeddings):
    embeddings.stop()

    assert served.answer() == ["words_alone"]
    ready = served.ready()
    assert (ready["status"], ready["checks"]["embedding_model"]) == ("degraded", False)
    waiting = served.upload("prices.md", "# Prices\n\nThe lamp costs 20 EUR.")
    until(lambda: "tried again" in (served.job(waiting)["error"] or ""))

    embeddings.start()

    served.ended(waiting)
    until(lambda: served.ready()["status"] == "ready")
    assert served.answer() == []
    served.is_calm(lines=12)


def test_nobody_waits_for_a_vector_index_that_says_nothing(served, serve, chroma):
    chroma.freeze()

    assert served.answer() == ["words_alone"]
    assert serve().answer() == ["words_alone"]  # one that has never met it
    assert served.ready()["checks"]["index"] is False
    waiting = served.upload("prices.md", "# Prices\n\nThe lamp costs 20 EUR.")

    chroma.thaw()

    served.ended(waiting)
    assert served.answer() == []
    served.is_calm(lines=12)


def test_nobody_waits_for_an_embedding_server_that_says_nothing(served, embeddings, monkeypatch):
    answering, over = embeddings.server.embedder.embed, threading.Event()

    def say_nothing(texts):
        over.wait(60)
        return answering(texts)

    monkeypatch.setattr(embeddings.server.embedder, "embed", say_nothing)

    assert served.answer() == ["words_alone"]
    assert served.ready()["checks"]["embedding_model"] is False

    over.set()

    until(lambda: served.answer() == [])
    served.is_calm(lines=12)


def test_an_upload_waits_no_longer_than_a_queue_that_says_nothing(served, redis):
    redis.freeze()

    waiting = served.upload("prices.md", "# Prices\n\nThe lamp costs 20 EUR.")
    assert served.answer() == []
    assert served.ready()["checks"]["queue"] is False

    redis.thaw()

    served.ended(waiting, seconds=20)
    until(lambda: served.ready()["status"] == "ready")
    served.is_calm(lines=12)


def test_what_a_queue_was_made_to_forget_is_done(served, redis, embeddings):
    embeddings.stop()  # so that jobs stay in the queue
    waiting = [served.upload(f"part-{n}.md", f"# Part {n}\n\nIt weighs {n} g.") for n in range(3)]
    Forgetful.from_url(redis.url).flushall()
    embeddings.start()

    for each in waiting:
        served.ended(each)


def test_servers_that_come_back_in_another_order_with_an_empty_index_are_all_used_again(
    served, database, redis, chroma, embeddings
):
    for each in (chroma, database, embeddings, redis):
        each.stop()
    for each in (embeddings, redis, database):
        each.start()
    until(lambda: _words_answer(served))
    chroma.lose_everything()
    chroma.start()

    until(lambda: served.ready()["status"] == "ready")
    served.ended(served.upload("prices.md", "# Prices\n\nThe lamp costs 20 EUR."))
    assert served.answer() == []
    served.is_calm(lines=20)


def _words_answer(served):
    with suppress(AssertionError, httpx.HTTPError, KeyError):
        return served.answer() == ["words_alone"]
    return False


def test_an_upload_that_was_taken_runs_soon_after_the_queue_is_back(served, redis):
    redis.stop()

    waiting = served.upload("prices.md", "# Prices\n\nThe lamp costs 20 EUR.")
    assert served.answer() == []
    assert served.ready()["checks"]["queue"] is False

    redis.start()

    served.ended(waiting, seconds=20)
    until(lambda: served.ready()["status"] == "ready")
    served.is_calm(lines=12)


def test_what_a_queue_forgot_in_its_restart_is_done(served, redis, embeddings):
    embeddings.stop()  # so that jobs stay in the queue
    waiting = [served.upload(f"part-{n}.md", f"# Part {n}\n\nIt weighs {n} g.") for n in range(6)]
    redis.stop()
    redis.start()
    embeddings.start()

    for each in waiting:
        served.ended(each)


def test_without_the_database_everything_is_refused_with_the_reason(served, database):
    database.stop()

    refused = served.web.post(f"{served.url}/api/v1/sessions", json={})
    assert refused.status_code == 503
    assert "database cannot be reached" in refused.json()["detail"]
    not_ready = served.web.get(f"{served.url}/readyz")
    away = [name for name, is_there in not_ready.json()["checks"].items() if not is_there]
    assert (not_ready.status_code, away) == (503, ["database"])
    assert served.web.get(f"{served.url}/healthz").status_code == 200
    page = served.web.get(served.url, headers={"Accept": "text/html"})
    assert page.status_code == 503

    database.start()

    until(lambda: _answers(served))
    until(lambda: served.ready()["status"] == "ready")
    served.ended(served.upload("prices.md", "# Prices\n\nThe lamp costs 20 EUR."))
    served.is_calm(lines=20)


def _answers(served):
    with suppress(AssertionError, httpx.HTTPError, KeyError):
        return served.answer() == []
    return False


# ── In the middle of an answer ───────────────────────────────────────────────────────────────

# It speaks of what the handbook says, so that it stands.
WORDS = "A refund takes five days: " + " ".join(f"word{n}" for n in range(60))
AWAY_SECONDS = 3.0  # longer than what is left of the answer


@pytest.fixture(scope="module")
def model():
    """It takes six seconds for an answer."""
    with OpenAIServer(slowly(WORDS, seconds_a_word=0.1)) as model:
        yield model


@pytest.fixture
def writing(serving, model):
    """A server with this model, and a session that waits for an answer of it."""
    served = serving(GROUNDNOTE_LLM__BASE_URL=model.url, GROUNDNOTE_LLM__MODEL="fake")
    return Writing(served, model)


class Writing:
    """Answers that are being written."""

    def __init__(self, served, model):
        self.served, self.model = served, model
        sessions = f"{served.url}/api/v1/sessions"
        self.path = f"{sessions}/{served.web.post(sessions, json={}).json()['id']}/messages"
        self.told = []
        self._thread = threading.Thread(target=self._ask)

    def begin(self):
        """Ask, and look on until the model writes."""
        self._thread.start()
        until(lambda: "event: delta" in self.told)

    def _ask(self):
        asked = {"json": {"content": "How long does a refund take?"}, "timeout": 60}
        events = {"headers": {"Accept": "text/event-stream"}}
        with suppress(httpx.HTTPError), httpx.stream("POST", self.path, **asked, **events) as reply:
            self.told += iter(reply.iter_lines())

    def end(self):
        self._thread.join(timeout=90)
        return [line for line in self.told if line.startswith("event: ")][-1]

    def stored(self):
        """The answer as it is stored, once it has ended."""

        def ended():
            with suppress(httpx.HTTPError, KeyError):
                last = self.served.web.get(self.path).json()["messages"][-1]
                return last if last["status"] != "pending" else None

        return until(ended)


@pytest.mark.parametrize("name", ["database", "redis", "chroma"])
def test_a_restart_in_the_middle_of_an_answer_loses_nothing_of_it(name, writing, request):
    writing.begin()

    server = request.getfixturevalue(name)
    server.stop()
    server.start()

    assert writing.end() == "event: final"
    answer = writing.stored()
    assert (answer["status"], answer["content"]) == ("complete", WORDS)
    writing.served.is_calm(lines=12)


def test_an_answer_that_ends_while_the_database_is_away_is_there_when_it_is_back(writing, database):
    writing.begin()
    until(lambda: any("word45" in line for line in writing.told))

    database.stop()
    until(lambda: any("word59" in line for line in writing.told))
    time.sleep(AWAY_SECONDS)
    database.start()

    assert writing.end() == "event: final"
    assert writing.stored()["content"] == WORDS
    again = writing.served.web.post(f"{writing.path}/1/regenerate")
    assert again.json()["content"] == WORDS, again.text
    writing.served.is_calm(lines=12)

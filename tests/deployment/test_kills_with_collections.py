"""`kill -9` while documents come, move and go in three collections."""

import json
import random
import shutil
import threading
import time
from collections import Counter
from itertools import chain, repeat

import click
import httpx
import numpy as np
from sqlalchemy import select

from rag.db import chunks, documents, reading, tables
from rag.operations import compare
from rag.records import Readable
from tests.deployment.conftest import DEADLINE, until

MOMENTS = (1, 2, 5, 9, 15)  # changes that a server acknowledged before it is killed
TOKENS = {"token-of-anna": "anna", "token-of-ben": "ben"}
ANNA, BEN = ({"Authorization": f"Bearer {token}"} for token in TOKENS)
VARIABLES = {"GROUNDNOTE_AUTH__MODE": "tokens", "GROUNDNOTE_AUTH__TOKENS": json.dumps(TOKENS)}
VARIABLES |= {"GROUNDNOTE_AUTH__MANAGERS": '["anna"]'}
TEXT = "Part,Grams\n" + "".join(f"zq{{number}},{{number}}{row}\n" for row in range(1, 30))


class Owner:
    """Changes the library until its server is gone, and remembers where each file may be."""

    def __init__(self, collections):
        self.collections = collections
        self.possible = {}  # by name: collections, None for deleted; one, if it was acknowledged
        self.acknowledged = Counter()
        self._chance = random.Random(7)

    def work(self, url):
        with httpx.Client(base_url=url, headers=ANNA, timeout=DEADLINE) as web:
            try:
                while True:
                    self._upload(web)
                    self._upload(web)
                    self._change(web, "PUT")
                    self._change(web, "DELETE")
            except httpx.TransportError:
                return

    def _upload(self, web):
        name = f"part-{len(self.possible)}.csv"
        place = self._chance.choice(self.collections)
        data = TEXT.format(number=len(self.possible)).encode()
        self.possible[name] = {None, place}
        sent = web.post("/api/v1/documents", files={"file": (name, data)}, data=at(place))
        assert sent.status_code == 202, sent.text
        self._acknowledge("POST", name, place)

    def _change(self, web, method):
        known = web.get("/api/v1/documents", params={"limit": 1000}).json()["documents"]
        if len(known) < 3:
            return
        document = self._chance.choice(known)
        name, place = document["name"], document["collection_id"]
        goal = None
        if method == "PUT":
            goal = self._chance.choice([each for each in self.collections if each != place])
        self.possible[name] = {place, goal}
        url = f"/api/v1/documents/{document['id']}"
        done = web.request(method, url, json=at(goal) if goal else None)
        assert done.status_code in (200, 204), done.text
        self._acknowledge(method, name, goal)

    def _acknowledge(self, method, name, place):
        self.possible[name] = {place}
        self.acknowledged[method] += 1


def kill_while_changed(server, url, owner, moment):
    enough = owner.acknowledged.total() + moment
    worker = threading.Thread(target=owner.work, args=(url,))
    worker.start()
    until(lambda: owner.acknowledged.total() >= enough or not worker.is_alive())
    assert worker.is_alive(), "the owner works until the server is gone"
    server.kill_all()
    worker.join(DEADLINE)


def at(place):
    return {"collection": place}


def collections_of(url):
    """Three collections of Anna's; Ben may read the second."""
    made = [
        httpx.post(f"{url}/api/v1/collections", json={"name": name}, headers=ANNA).json()["id"]
        for name in ("One", "Two", "Three")
    ]
    members = {"members": {"ben": "read"}}
    httpx.put(f"{url}/api/v1/collections/{made[1]}", json=members, headers=ANNA).raise_for_status()
    return made


def are_jobs_over(url, possible):
    """None waits or runs, and none failed but of a file whose arrival was never acknowledged."""
    jobs = httpx.get(f"{url}/api/v1/jobs", headers=ANNA).json()["jobs"]
    failed = {job["document"]: job["error"] for job in jobs if job["state"] == "failed"}
    assert not {name: error for name, error in failed.items() if len(possible[name]) == 1}
    return not any(job["state"] in ("queued", "running") for job in jobs)


def told_to_ben(url):
    """The names of all files that any list or search names to Ben."""
    with httpx.Client(base_url=f"{url}/api/v1", headers=BEN, timeout=DEADLINE) as web:
        listed = web.get("/documents", params={"limit": 1000}).json()["documents"]
        query = {"query": "grams of the part zq1", "limit": 50}
        found = web.post("/search", json=query).json()["hits"]
        shown = web.get("/tables").json()["tables"]
    names = {each["name"] for each in listed}
    assert {hit["document"] for hit in found} <= names
    assert {each["document_id"] for each in shown} <= {each["id"] for each in listed}
    return names, len(found)


def assert_whole(application, folder, possible):
    """Every file once, where it was put, in database, words, vectors and tables."""
    with reading(application.engine) as connection:
        rows = connection.execute(select(documents)).all()
        parts = connection.execute(select(chunks)).all()
        shown = connection.execute(select(tables.c.id, tables.c.document_id)).all()
    places = {row.id: row.collection_id for row in rows}
    names = Counter(row.name for row in rows)
    found = {row.name: row.collection_id for row in rows}
    assert set(names.values()) == {1}
    wrong = {
        name: (found.get(name), expected)
        for name, expected in possible.items()
        if found.get(name) not in expected
    }
    assert not wrong
    assert found.keys() <= possible.keys()
    assert Counter(part.document_id for part in parts) == {row.id: row.chunk_count for row in rows}
    assert all(part.collection_id == places[part.document_id] for part in parts)
    assert Counter(table.document_id for table in shown) == Counter(places.keys())
    assert {file.stem for file in folder.glob("tables/*.parquet")} >= {each.id for each in shown}
    assert compare(application.engine, application.index).is_whole
    assert_indexed(application, parts)


def assert_indexed(application, parts):
    """Vectors and words find each chunk in its collection, and nowhere else."""
    some = np.ones((1, application.embedder.embed(["a"]).shape[1]), dtype=np.float32)
    for place in {part.collection_id for part in parts}:
        readable = Readable(frozenset([place]))
        here = {part.id for part in parts if part.collection_id == place}
        [near] = application.index.nearest(some, readable, limit=10_000)
        hits = application.retriever.by_words("grams", readable, limit=1000)
        assert sorted(chunk_id for chunk_id, _ in near) == sorted(here)
        assert {hit.chunk.document_id for hit in hits} == {
            part.document_id for part in parts if part.id in here
        }


def test_nothing_that_was_acknowledged_is_lost_doubled_or_shown_to_others(
    groundnote, library, tmp_path
):
    owner, moments = None, chain(MOMENTS, repeat(MOMENTS[-1]))
    for killed, moment in enumerate(moments):
        if killed >= len(MOMENTS) and len(owner.acknowledged) == 3:
            break
        server = groundnote("serve", "--port", "0", **VARIABLES)
        url = server.url()
        owner = owner or Owner(collections_of(url))
        kill_while_changed(server, url, owner, moment)
    click.echo(f"\nacknowledged: {dict(owner.acknowledged)}")
    server = groundnote("serve", "--port", "0", **VARIABLES)
    url = server.url()
    until(lambda: are_jobs_over(url, owner.possible))

    names, found = told_to_ben(url)
    seconds = revoked(url, owner.collections[1])
    assert server.end() == 0

    two = owner.collections[1]
    assert names == {name for name in names if two in owner.possible[name]}
    assert names >= {name for name, places in owner.possible.items() if places == {two}}
    assert found
    click.echo(f"a revocation took effect after {seconds * 1000:.0f} ms")
    application = library()
    try:
        assert_whole(application, tmp_path / "var", owner.possible)
    finally:
        application.stop()
    assert_repaired(groundnote, library, tmp_path / "var")


def revoked(url, collection):
    """Seconds from the request that takes Ben's right away until nothing is told to him."""
    with httpx.Client(base_url=url, timeout=DEADLINE) as web:
        begun = time.perf_counter()
        body = {"members": {}}
        web.put(f"/api/v1/collections/{collection}", json=body, headers=ANNA).raise_for_status()
        until(lambda: told_to_ben(url) == (set(), 0))
        return time.perf_counter() - begun


def assert_repaired(groundnote, library, folder):
    """`doctor --repair` brings all vectors back."""
    shutil.rmtree(folder / "chroma")
    begun = time.perf_counter()
    doctor = groundnote("doctor", "--repair", **VARIABLES)
    doctor.wait()
    click.echo(f"doctor --repair took {time.perf_counter() - begun:.1f} s")
    application = library()
    try:
        found = compare(application.engine, application.index)
    finally:
        application.stop()
    assert found.is_whole, doctor.said()
    click.echo(f"it made the vectors of {found.chunks} chunks")

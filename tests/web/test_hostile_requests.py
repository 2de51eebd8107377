"""Every text and every list that /openapi.json tells of, filled with what is hostile.

Each is answered or refused, soon, and what it costs grows as it does. `python -m
tests.web.test_hostile_requests` tries every kind at full length, which takes some minutes.
"""

import re
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import pytest

from tests.applications import app_of, application_over
from tests.web.hostile import (
    DEPTH,
    KINDS,
    LISTED,
    Place,
    as_text,
    body_with,
    nested,
    places,
)

ROWS = (f"Aero {i},{'North' if i % 2 else 'South'},Q{i % 4 + 1},{i}.50\n" for i in range(500))
FILES = {
    "sales.csv": "Product,Region,Quarter,Revenue\n" + "".join(ROWS),
    "manual.md": "# Manual\n\nThe Aero 5 weighs 120 g. It is black.\n\nRefunds take five days.\n",
}
MOST_SECONDS = 10.0  # of processor time for one request
MEGABYTE = 1_000_000
SHORT = 50_000  # what fits into an address
TRIED = 3  # kinds for each text, other ones for the next
MARK = "@@"


class Server:
    """A whole application with a conversation, a document and a table."""

    def __init__(self, application):
        self.client = app_of(application).test_client()
        self.described = self.client.get("/openapi.json").get_json()
        session = self.client.post("/api/v1/sessions", json={}).get_json()["id"]
        self.ask(session)
        (document, *_) = self.client.get("/api/v1/documents").get_json()["documents"]
        (table,) = self.client.get("/api/v1/tables").get_json()["tables"]
        self.known = {
            "session_id": session, "document_id": document["id"], "table_id": table["id"],
            "index": "1", "n": "1", "collection_id": "1", "model_id": "groundnote",
        }  # fmt: skip

    def ask(self, session):
        said = {"content": "revenue by region"}
        assert (
            self.client.post(f"/api/v1/sessions/{session}/messages", json=said).status_code == 200
        )

    def places(self):
        """Without those that delete what the others need."""
        return [each for each in places(self.described) if each.method != "delete"]

    def send(self, place: Place, value, *, raw=None):
        """The status, and the seconds of processor time that it took."""
        own = {place.name[0]: value} if place.where == "path" else {}
        path = re.sub(
            r"\{(\w+)\}", lambda m: own.get(m[1]) or self.known.get(m[1], "x"), place.path
        )
        sent = {}
        if place.where == "query":
            sent["query_string"] = {place.name[0]: value}
        elif place.where == "body":
            body = raw if raw is not None else as_text(body_with(place, value, self.described))
            sent = {"data": body, "content_type": "application/json"}
        began = time.process_time()
        response = self.client.open(path, method=place.method.upper(), **sent)
        response.get_data()
        return response.status_code, time.process_time() - began

    def nested(self, place, depth):
        """Lists in each other there: Python's own writer would refuse."""
        raw = as_text(body_with(place, MARK, self.described)).replace(f'"{MARK}"', nested(depth))
        return self.send(place, None, raw=raw)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with application_over(tmp_path_factory.mktemp("data"), FILES) as application:
        yield Server(application)


def length_for(place):
    return SHORT if place.where in ("path", "query") else MEGABYTE


def badly_served(server, wanted):
    """What was not answered or refused, or took too long."""
    found = []
    for place, kind, value in wanted:
        status, seconds = server.send(place, value)
        if status >= 500 or seconds > MOST_SECONDS:
            found.append(f"{place} {kind}: {status} in {seconds:.1f} s")
    return found


def texts(server, kinds_each):
    """Some kinds for each text; all of them come up."""
    kinds = list(KINDS.items())
    for at, place in enumerate(each for each in server.places() if not each.is_list):
        for step in range(kinds_each):
            kind, make = kinds[(at * kinds_each + step) % len(kinds)]
            yield place, kind, make(length_for(place))


def lists(server):
    for place in server.places():
        if place.is_list:
            yield place, f"{LISTED} entries", [place.of if place.of is not None else "x"] * LISTED
            yield place, f"{LISTED} keys", {f"k{at}": at for at in range(LISTED)}


@pytest.mark.slow
def test_a_megabyte_of_anything_is_answered_or_refused(server):
    assert badly_served(server, texts(server, TRIED)) == []


def test_lists_of_anything_are_answered_or_refused(server):
    assert badly_served(server, lists(server)) == []


@pytest.mark.parametrize("depth", [DEPTH // 4, DEPTH, 100 * DEPTH])
def test_depths_are_refused(server, depth):
    listed = [each for each in server.places() if each.where == "body"]

    statuses = {str(each): server.nested(each, depth)[0] for each in listed}

    assert [each for each, status in statuses.items() if not 400 <= status < 500] == []


GROWING = {
    "a question": ("post", "/api/v1/sessions/{session_id}/messages", "content", 20_000),
    "a question to the tables": ("post", "/api/v1/tables/query", "question", 1_000),
    "an import": ("post", "/api/v1/sessions/{session_id}/import", "messages.0.content", 320_000),
}


@pytest.mark.slow
@pytest.mark.parametrize("which", GROWING)
def test_what_a_text_costs_grows_as_it_does(server, which):
    method, path, name, longest = GROWING[which]
    place = Place(method, path, "body", tuple(name.split(".")), False)
    steep = {}
    for kind, make in KINDS.items():
        costs = [seconds_for(server, place, make(longest // part)) for part in (16, 4, 1)]
        if costs[-1] > 0.5 and costs[-1] > 16 * 2.5 * max(costs[0], 0.01):
            steep[kind] = costs
    assert steep == {}


def seconds_for(server, place, text):
    if "session_id" in place.path:  # what was said before would count as well
        server.known["session_id"] = server.client.post("/api/v1/sessions", json={}).get_json()[
            "id"
        ]
    status, seconds = server.send(place, text)
    assert status < 500
    return seconds


def main():
    """Every kind for every text, at full length: the slowest of each call."""
    slowest = defaultdict(lambda: (0.0, "", 0))
    with tempfile.TemporaryDirectory() as folder, application_over(Path(folder), FILES) as made:
        server = Server(made)
        wanted = [*texts(server, len(KINDS)), *lists(server)]
        for place, kind, value in wanted:
            status, seconds = server.send(place, value)
            slowest[str(place)] = max(slowest[str(place)], (seconds, kind, status))
    for place, (seconds, kind, status) in sorted(slowest.items(), key=lambda each: -each[1][0]):
        print(f"{seconds:6.2f} s  {status}  {kind:20} {place}")  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())

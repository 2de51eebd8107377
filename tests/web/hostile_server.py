"""A whole application in this process that takes hostile requests and says what each cost."""

import re
import time
from collections.abc import Iterable, Sequence
from typing import Any

from rag.wiring.application import Application
from tests.applications import app_of
from tests.web.hostile import MARK, Place, as_text, body_with, nested, places

ROWS = (f"Aero {i},{'North' if i % 2 else 'South'},Q{i % 4 + 1},{i}.50\n" for i in range(500))
SALES = "Product,Region,Quarter,Revenue\n" + "".join(ROWS)
FILES = {
    "sales.csv": SALES,
    "manual.md": "# Manual\n\nThe Aero 5 weighs 120 g. It is black.\n\nRefunds take five days.\n",
}
SAID = [
    {"role": "user", "content": "How much does it weigh?"},
    {"role": "assistant", "content": "It weighs 120 g [1]."},
]
SOURCES = [{"n": 1, "text": "The Aero 5 weighs 120 g.", "document": "manual.md"}]
CALM_SECONDS = 0.02  # without work, and what a request left behind is done
SMALL_SECONDS = 0.05  # less tells nothing of growth
STEEP = 1.5  # times as much as what it grew by, and it does not grow as its text does
PARTS = (16, 4, 1)


class Server:
    """With a conversation, a document and a table."""

    def __init__(self, application: Application) -> None:
        self.client = app_of(application).test_client()
        self.described = self.client.get("/openapi.json").get_json()
        documents = self.client.get("/api/v1/documents").get_json()["documents"]
        (table,) = self.client.get("/api/v1/tables").get_json()["tables"]
        self.known = {
            "document_id": documents[0]["id"], "table_id": table["id"], "index": "1", "n": "1",
            "collection_id": "1", "model_id": "groundnote",
        }  # fmt: skip
        self.begin_session()

    def begin_session(self) -> None:
        """Another conversation, of two messages; what others said is forgotten."""
        listed = self.client.get("/api/v1/sessions?limit=100").get_json()["sessions"]
        for each in listed:
            self.client.delete(f"/api/v1/sessions/{each['id']}")
        made = self.client.post("/api/v1/sessions", json={}).get_json()["id"]
        brought = {"messages": SAID, "sources": SOURCES}
        answer = self.client.post(f"/api/v1/sessions/{made}/import", json=brought)
        assert answer.status_code == 201, answer.get_json()
        self.known["session_id"] = made

    def places(self) -> list[Place]:
        """Without those that delete what the others need."""
        return [each for each in places(self.described) if each.method != "delete"]

    def send(self, place: Place, value: Any, *, raw: str | None = None) -> tuple[int, float]:
        """The status, and the seconds of processor time until all is calm again."""
        own = {place.name[0]: value} if place.where == "path" else {}
        path = re.sub(
            r"\{(\w+)\}", lambda m: own.get(m[1]) or self.known.get(m[1], "x"), place.path
        )
        sent: dict[str, Any] = {}
        if place.where == "query":
            sent["query_string"] = {place.name[0]: value}
        elif place.where == "body":
            body = raw if raw is not None else as_text(body_with(place, value, self.described))
            sent = {"data": body, "content_type": "application/json"}
        began = time.process_time()
        response = self.client.open(path, method=place.method.upper(), **sent)
        response.get_data()
        return response.status_code, calm() - began

    def nested(self, place: Place, depth: int) -> tuple[int, float]:
        """Lists in each other there: Python's own writer would refuse."""
        raw = as_text(body_with(place, MARK, self.described)).replace(f'"{MARK}"', nested(depth))
        return self.send(place, None, raw=raw)

    def growth(self, place: Place, values: Iterable[Any]) -> list[float]:
        """What each of these costs; what was said before would count as well."""
        costs = []
        for value in values:
            if place.method != "get":
                self.begin_session()
                calm()
            status, seconds = self.send(place, value)
            assert status < 500, f"{place}: {status}"
            costs.append(seconds)
        return costs


def is_steep(costs: Sequence[float]) -> bool:
    """Whether the costs of a sixteenth, a quarter and the whole grow faster than these."""
    one, four, whole = costs
    if whole < SMALL_SECONDS:
        return False
    return whole > 16 * STEEP * one or whole > 4 * STEEP * four > 4 * STEEP * SMALL_SECONDS


def calm() -> float:
    """Wait until nothing works any more; the seconds of processor time used by then."""
    used, before = time.process_time(), -1.0
    while used - before > CALM_SECONDS / 10:
        before = used
        time.sleep(CALM_SECONDS)
        used = time.process_time()
    return used

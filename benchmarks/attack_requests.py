"""Every text and every list of /openapi.json with what is hostile, sent to a server that runs."""

import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
import httpx

from benchmarks.served import (
    ATTACKER,
    Looks,
    caller,
    groundnote,
    model,
    processor_seconds,
    spread,
    until,
    watched_health,
)
from tests.web.hostile import (
    DEPTH,
    KINDS,
    LISTED,
    MARK,
    MEGABYTE,
    SHORT,
    Place,
    as_text,
    body_with,
    nested,
    places,
)
from tests.web.hostile_server import SALES

SESSIONS_LAST = 40  # requests: a conversation would grow
SLOWEST = 12  # are shown


@dataclass(frozen=True, slots=True)
class Cost:
    """What one request took."""

    what: str
    status: int
    seconds: float  # of processor time of the server
    began: float
    ended: float


@dataclass
class Sender:
    """Sends hostile values, one after the other, and looks at what each cost."""

    client: httpx.Client
    pid: int
    described: dict[str, Any] = field(init=False)
    known: dict[str, str] = field(init=False)
    costs: list[Cost] = field(default_factory=list)

    def __post_init__(self) -> None:
        """A table, a document and a conversation for those that name one."""
        sent = self.client.post("/api/v1/documents", files={"file": ("sales.csv", SALES)})
        job = sent.raise_for_status().json()["jobs"][0]["id"]
        until(lambda: self.client.get(f"/api/v1/jobs/{job}").json()["state"] == "done")
        self.described = self.client.get("/openapi.json").json()
        documents = self.client.get("/api/v1/documents").json()["documents"]
        tables = self.client.get("/api/v1/tables").json()["tables"]
        self.known = {"document_id": documents[0]["id"], "table_id": tables[0]["id"], "index": "1",
                      "n": "1", "collection_id": "1", "model_id": "groundnote"}  # fmt: skip
        self.begin_session()

    def begin_session(self) -> None:
        made = self.client.post("/api/v1/sessions", json={}).raise_for_status().json()
        self.known["session_id"] = made["id"]
        said = {"content": "revenue by region"}
        self.client.post(f"/api/v1/sessions/{made['id']}/messages", json=said)

    def places(self) -> list[Place]:
        """Without those that delete what the others need."""
        return [each for each in places(self.described) if each.method != "delete"]

    def send(self, what: str, place: Place, value: Any, *, depth: int = 0) -> Cost:
        said = quote(value, safe="")[:SHORT] if place.where in ("path", "query") else ""
        own = {place.name[0]: said} if place.where == "path" else {}
        path = re.sub(
            r"\{(\w+)\}", lambda m: own.get(m[1]) or self.known.get(m[1], "x"), place.path
        )
        sent: dict[str, Any] = {}
        if place.where == "query":
            path += f"?{place.name[0]}={said}"
        elif place.where == "body":
            body = as_text(body_with(place, MARK if depth else value, self.described))
            body = body.replace(f'"{MARK}"', str(nested(depth))) if depth else body
            sent = {"content": body.encode(), "headers": {"Content-Type": "application/json"}}
        before, began = processor_seconds(self.pid), time.monotonic()
        try:
            status = self.client.request(place.method.upper(), path, **sent).status_code
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            status = 0
            what += f" ({type(error).__name__})"
        ended = time.monotonic()
        spent = processor_seconds(self.pid) - before
        self.costs.append(Cost(f"{place} {what}", status, spent, began, ended))
        if len(self.costs) % SESSIONS_LAST == 0:
            self.begin_session()
        return self.costs[-1]


@contextmanager
def attacked() -> Iterator[tuple[Sender, str]]:
    """A server of its own, and its address."""
    with (
        tempfile.TemporaryDirectory() as folder,
        model() as model_url,
        groundnote(Path(folder), model_url) as (url, pid),
        caller(url, ATTACKER) as client,
    ):
        yield Sender(client, pid), url


def all_requests(sender: Sender) -> list[tuple[str, Place, Any, int]]:
    """Every kind, list and depth for every place, in an order that is no order."""
    wanted: list[tuple[str, Place, Any, int]] = []
    for place in sender.places():
        if place.is_list:
            held = place.of if place.of is not None else "x"
            wanted.append((f"{LISTED} entries", place, [held] * LISTED, 0))
            wanted.append((f"{LISTED} keys", place, {f"k{at}": at for at in range(LISTED)}, 0))
        else:
            wanted += [(kind, place, kind, 0) for kind in KINDS]
        if place.where == "body":
            wanted.append((f"depth {DEPTH}", place, None, DEPTH))
    random.Random(0).shuffle(wanted)
    return wanted


def show(sender: Sender, looks: Looks, quiet: Looks) -> None:
    """What was answered, what it cost, and what others noticed."""
    costs = sender.costs
    classes = Counter(f"{cost.status // 100}xx" if cost.status else "none" for cost in costs)
    click.echo(f"requests {len(costs)}: {dict(classes)}")
    click.echo(f"processor: {spread([cost.seconds for cost in costs])}")
    for when, seen in (("before", quiet), ("meanwhile", looks)):
        times, waits = [each[1] for each in seen], [each[2] for each in seen]
        click.echo(f"/healthz {when}: {spread(times)}, {len(seen)} looks; "
                   f"late because of the machine: {spread(waits)}")  # fmt: skip
    bad = [cost for cost in costs if cost.status >= 500 or not cost.status]
    for cost in bad[:SLOWEST]:
        click.echo(f"NOT ANSWERED {cost.status} {cost.what}")
    for cost in sorted(costs, key=lambda each: -each.seconds)[:SLOWEST]:
        click.echo(f"{cost.seconds:6.2f} s  {cost.status}  {cost.what}")
    for began, took, late in sorted(looks, key=lambda each: -each[1])[:SLOWEST]:
        during = [c.what for c in costs if c.began < began + took and c.ended > began]
        so = f"/healthz {took * 1000:5.0f} ms, asked {late * 1000:.0f} ms late"
        click.echo(f"{so}, while {'; '.join(during) or 'nothing'}")


@click.command()
@click.option("--minutes", default=8.0, show_default=True, help="after which no more are sent")
def requests(minutes: float) -> None:
    """A megabyte, 20,000 entries and depth in each text and list."""
    with attacked() as (sender, url):
        with watched_health(url) as quiet:
            time.sleep(10)
        end = time.monotonic() + minutes * 60
        wanted = all_requests(sender)
        with watched_health(url) as looks:
            for what, place, value, depth in wanted:
                if time.monotonic() > end:
                    break
                longest = MEGABYTE if place.where == "body" else SHORT
                made = KINDS[value](longest) if isinstance(value, str) else value
                sender.send(what, place, made, depth=depth)
        click.echo(f"of {len(wanted)} that there are")
        show(sender, looks, quiet)

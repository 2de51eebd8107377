"""A server that strangers try to silence, and what its users notice of it.

    python -m benchmarks.attack [--seconds 30]
    python -m benchmarks.attack requests [--minutes 8]
    python -m benchmarks.attack growth [--minutes 60] [--only /check]
    python -m benchmarks.attack shares [--questions 200] [--files 500]

On loopback, against a server of its own over the sample library with a model that hangs whenever it
is asked to: 80 uploads and 80 heads of requests that never end, 80 streams that nobody reads and
150 questions to the hanging model, all from one owner. Meanwhile another owner looks at the health,
opens a page and asks a question that the model answers at once. Printed are the times before,
during and after, and the memory of the server. At last a crowd of 100 owners asks at once; each is
answered, or told to wait.

`requests` sends what is hostile in every text and list of /openapi.json; `growth` the longest that
is taken there and parts of it, to an application in its own process, by processor time; `shares`
many questions and files of one owner beside a few of another's.
"""

import json
import socket
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import click
import httpx

from benchmarks.attack_growth import growth
from benchmarks.attack_requests import requests
from benchmarks.attack_shares import shares
from benchmarks.served import (
    ATTACKER,
    CROWD,
    HANGING,
    USER,
    caller,
    groundnote,
    memory,
    model,
)

EVERY_SECONDS = 0.25
UPLOADS, HEADS, STREAMS, ASKERS = 80, 80, 80, 150
HEALTHY = "How long does a refund take?"


def attack(url: str) -> list[socket.socket]:
    """Connections that are held open, and neither end nor read anything."""
    held: list[socket.socket] = []
    address = urlsplit(url)

    def send(text: str) -> None:
        held.append(socket.create_connection((address.hostname, address.port), timeout=10))
        held[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        held[-1].sendall(text.encode())

    head = f"Host: {address.netloc}\r\nAuthorization: Bearer {ATTACKER}\r\n"
    with caller(url, ATTACKER) as client:
        ids = [client.post("/api/v1/sessions", json={}).json()["id"] for _ in range(20)]
    for _ in range(UPLOADS):
        kind = "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 5000000\r\n\r\n--x"
        send(f"POST /api/v1/documents HTTP/1.1\r\n{head}{kind}")
    for _ in range(HEADS):
        send(f"GET / HTTP/1.1\r\n{head}X-Slow: ")
    for number in range(STREAMS + ASKERS):
        content = HEALTHY if number < STREAMS else HANGING
        body = json.dumps({"content": content})
        kind = "text/event-stream" if number % 2 else "application/json"
        send(
            f"POST /api/v1/sessions/{ids[number % len(ids)]}/messages HTTP/1.1\r\n{head}"
            f"Accept: {kind}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}"
        )
    return held


def watched(client: httpx.Client, seconds: float) -> dict[str, list[float | None]]:
    """Milliseconds of each request of a user, None for a failed one."""
    session = client.post("/api/v1/sessions", json={}).json()["id"]
    asked = f"/api/v1/sessions/{session}/messages"
    found: dict[str, list[float | None]] = {"/healthz": [], "page": [], "question": []}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found["/healthz"].append(timed(lambda: client.get("/healthz")))
        found["page"].append(timed(lambda: client.get("/documents")))
        found["question"].append(timed(lambda: client.post(asked, json={"content": HEALTHY})))
        time.sleep(EVERY_SECONDS)
    return found


def timed(call: Callable[[], httpx.Response]) -> float | None:
    """Milliseconds of a call; None where it failed."""
    began = time.monotonic()
    try:
        return (time.monotonic() - began) * 1000 if call().status_code == 200 else None
    except httpx.HTTPError:
        return None


def show(when: str, found: dict[str, list[float | None]], mib: int) -> None:
    """Print a line for each thing."""
    for what, times in found.items():
        good = [each for each in times if each is not None]
        p95 = statistics.quantiles(good, n=20)[-1] if len(good) > 1 else float("nan")
        median = statistics.median(good) if good else float("nan")
        click.echo(f"{when:8} {what:9} {len(good):4}/{len(times):<4} p50 {median:6.0f} ms  "
                   f"p95 {p95:6.0f} ms  {mib:5} MiB")  # fmt: skip


def crowd(url: str) -> Counter[str]:
    """What became of one question of each, all asked at once."""

    def ask(token: str) -> str:
        with caller(url, token) as client:
            session = client.post("/api/v1/sessions", json={}).json()["id"]
            start.wait()
            reply = client.post(f"/api/v1/sessions/{session}/messages", json={"content": HEALTHY})
        told = reply.status_code == 503 and "Retry-After" in reply.headers
        return "told to wait" if told else str(reply.status_code)

    start = threading.Barrier(len(CROWD))
    with ThreadPoolExecutor(len(CROWD)) as pool:
        return Counter(pool.map(ask, CROWD))


def connections(seconds: float) -> None:
    """Before, during, after."""
    with (
        tempfile.TemporaryDirectory() as folder,
        model() as model_url,
        groundnote(Path(folder), model_url) as (url, pid),
        caller(url, USER) as user,
    ):
        watched(user, 3)
        show("before", watched(user, seconds / 3), memory(pid))
        held = attack(url)
        try:
            show("during", watched(user, seconds), memory(pid))
        finally:
            for each in held:
                with closing(each):
                    pass
        time.sleep(5)
        show("after", watched(user, seconds / 3), memory(pid))
        click.echo(f"crowd    {dict(crowd(url))}  {memory(pid):5} MiB")


@click.group(invoke_without_command=True)
@click.option("--seconds", default=30.0, show_default=True, help="of each of the three parts")
@click.pass_context
def main(context: click.Context, seconds: float) -> None:
    """See above."""
    if context.invoked_subcommand is None:
        connections(seconds)


for command in (requests, growth, shares):
    main.add_command(command)

if __name__ == "__main__":
    main()

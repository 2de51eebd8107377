"""A server that strangers try to silence, and what its users notice of it.

    python -m benchmarks.attack [--seconds 30]

On loopback, against a server of its own over the sample library with a model that hangs whenever it
is asked to: 40 uploads and 40 heads of requests that never end, 50 streams that nobody reads and
200 questions to the hanging model, all from one owner. Meanwhile another owner looks at the health,
opens a page and asks a question that the model answers at once. Printed are the times before,
during and after, and the memory of the server. At last a crowd of 100 owners asks at once; each is
answered, or told to wait.
"""

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import click
import httpx

ROOT = Path(__file__).parents[1]
READY_SECONDS = 120
EVERY_SECONDS = 0.25
UPLOADS, HEADS, STREAMS, ASKERS = 40, 40, 50, 200
CROWD = [f"{number:040}" for number in range(100)]  # their tokens
HEALTHY = "How long does a refund take?"
HANGING = "Hang, please."


class Model(BaseHTTPRequestHandler):
    """Answers at once; a question to hang is never answered."""

    def do_GET(self) -> None:
        self.send_error(404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        if HANGING in body:
            time.sleep(600)
        delta = {"choices": [{"delta": {"content": "Within five business days [1]."}}]}
        end = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
        for event in (json.dumps(delta), json.dumps(end), "[DONE]"):
            self.wfile.write(f"data: {event}\n\n".encode())

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@contextmanager
def model() -> Iterator[str]:
    """A model's server: its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()


@contextmanager
def groundnote(folder: Path, model_url: str) -> Iterator[tuple[str, int]]:
    """A running server: its address and its process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = os.environ | {
        "GROUNDNOTE_DATA_DIR": str(folder),
        "GROUNDNOTE_LLM__BASE_URL": model_url,
        "GROUNDNOTE_LLM__MODEL": "fake",
        "GROUNDNOTE_AUTH__MODE": "tokens",
        "GROUNDNOTE_AUTH__TOKENS": json.dumps(
            {"a" * 40: "attacker", "u" * 40: "user"} | {token: token for token in CROWD}
        ),
        "PORT": str(port),
    }
    command = [sys.executable, "-m", "rag.cli"]
    subprocess.run([*command, "ingest", "data/library"], env=environment, cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    process = subprocess.Popen([*command, "serve"], env=environment, cwd=ROOT,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    try:
        until(lambda: httpx.get(f"{url}/readyz", timeout=5).status_code == 200)
        yield url, process.pid
    finally:
        process.terminate()
        process.wait()


def until(condition: Callable[[], bool]) -> None:
    """Wait for a server."""
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end:
        try:
            if condition():
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.1)
    raise SystemExit("The server did not get ready.")


def caller(url: str, token: str) -> httpx.Client:
    """Somebody with a token."""
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60)


def attack(url: str) -> list[socket.socket]:
    """Connections that are held open, and neither end nor read anything."""
    held: list[socket.socket] = []
    address = urlsplit(url)

    def send(text: str) -> None:
        held.append(socket.create_connection((address.hostname, address.port), timeout=10))
        held[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        held[-1].sendall(text.encode())

    head = f"Host: {address.netloc}\r\nAuthorization: Bearer {'a' * 40}\r\n"
    with caller(url, "a" * 40) as client:
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


def memory(pid: int) -> int:
    """MiB that the process holds now."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) >> 10


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


@click.command()
@click.option("--seconds", default=30.0, show_default=True, help="of each of the three parts")
def main(seconds: float) -> None:
    """Before, during, after."""
    with (
        tempfile.TemporaryDirectory() as folder,
        model() as model_url,
        groundnote(Path(folder), model_url) as (url, pid),
        caller(url, "u" * 40) as user,
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


if __name__ == "__main__":
    main()

"""A served application of its own on loopback, and what its users notice of it."""

import json
import multiprocessing
import os
import queue
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[1]
READY_SECONDS = 120
LOOK_EVERY_SECONDS = 0.05
CROWD = [f"{number:040}" for number in range(100)]  # their tokens
ATTACKER, USER = "a" * 40, "u" * 40
HANGING, SLOW = "Hang, please.", "Slowly, please."
SLOW_SECONDS = 3.0
# When, how many seconds the answer took, and how much later than meant it was asked: so late is the
# machine itself, as others use it.
Looks = list[tuple[float, float, float]]


class Model(BaseHTTPRequestHandler):
    """Answers at once, or slowly; a question to hang is never answered."""

    def do_GET(self) -> None:
        self.send_error(404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        if HANGING in body:
            time.sleep(600)
        if SLOW in body:
            time.sleep(SLOW_SECONDS)
        delta = {"choices": [{"delta": {"content": "Within five business days [1]."}}]}
        end = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
        with suppress(BrokenPipeError):
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
            {ATTACKER: "attacker", USER: "user"} | {token: token for token in CROWD}
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
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=120)


def memory(pid: int) -> int:
    """MiB that the process holds now."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) >> 10


def processor_seconds(pid: int) -> float:
    """What the process and those that it started have used."""
    children: dict[int, list[int]] = {}
    used: dict[int, float] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rsplit(")", 1)[1].split()
            number = int(stat.parent.name)
            children.setdefault(int(fields[1]), []).append(number)
            used[number] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    counted, total = [pid], 0.0
    while counted:
        number = counted.pop()
        total += used.get(number, 0.0)
        counted += children.get(number, [])
    return total


def _look(url: str, over: Any, told: Any) -> None:
    looks: Looks = []
    with httpx.Client(base_url=url, timeout=60) as client:
        meant = time.monotonic() + LOOK_EVERY_SECONDS
        while not over.wait(max(0.0, meant - time.monotonic())):
            began = time.monotonic()
            client.get("/healthz").raise_for_status()
            looks.append((began, time.monotonic() - began, began - meant))
            meant = time.monotonic() + LOOK_EVERY_SECONDS
    told.put(looks)


@contextmanager
def watched_health(url: str) -> Iterator[Looks]:
    """Another process asks for /healthz without a pause; what it saw is there at the end."""
    spawn = multiprocessing.get_context("spawn")
    over, told, looks = spawn.Event(), spawn.Queue(), Looks()
    process = spawn.Process(target=_look, args=(url, over, told))
    process.start()
    try:
        yield looks
    finally:
        over.set()
        with suppress(queue.Empty):
            looks += told.get(timeout=READY_SECONDS)
        process.join()


def spread(seconds: Sequence[float]) -> str:
    """Half of them, nineteen of twenty and the longest, in milliseconds."""
    if len(seconds) < 2:
        return f"{len(seconds)} only"
    half, most = statistics.median(seconds), statistics.quantiles(seconds, n=20)[-1]
    return f"p50 {half * 1000:.0f}, p95 {most * 1000:.0f}, max {max(seconds) * 1000:.0f} ms"

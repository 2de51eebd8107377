"""How much faster do several processes ingest than one, with an embedding server elsewhere?

    python -m benchmarks.ingest [--processes 4] [--files 120] [--chunks 16] [--rounds 2]

PostgreSQL, Redis and Chroma of its own on loopback; `groundnote worker` in one process and in
several, in turn. The embedding server takes its time as one far away does, and next to none of the
processor's.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from uuid import uuid4

import click
import numpy as np

from rag.records import JobState
from rag.settings import load_settings
from rag.wiring.application import Application, build
from tests.deployment.servers import Chroma, Postgres, Redis

ROOT = Path(__file__).parents[1]
REQUEST_SECONDS, TEXT_SECONDS = 0.15, 0.002
PATIENCE_SECONDS = 600.0
TICKS = os.sysconf("SC_CLK_TCK")
VECTORS = [
    json.dumps(row.tolist()) for row in np.random.default_rng(1).normal(size=(64, 384)).round(6)
]


class FarAway(BaseHTTPRequestHandler):
    """Answers /v1/embeddings after a while, with any vectors."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
        time.sleep(REQUEST_SECONDS + TEXT_SECONDS * len(asked))
        rows = ",".join(
            f'{{"object":"embedding","index":{n},"embedding":{VECTORS[n % len(VECTORS)]}}}'
            for n in range(len(asked))
        )
        body = f'{{"object":"list","model":"far","data":[{rows}]}}'.encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def file_of(chunks: int) -> bytes:
    """A manual that nobody has seen, of so many chunks."""
    own = uuid4().hex
    parts = (f"## Part {n}\n\n" + f"Part {n} of {own} weighs {n} g. " * 8 for n in range(chunks))
    return "\n\n".join([f"# Manual {own}", *parts]).encode()


def ingest(application: Application, files: int, chunks: int) -> float:
    """Chunks a second, from the first file that is sent to the last that can be found."""
    before = application.documents.embedded_count()
    began = time.monotonic()
    sent = [
        application.jobs.submit_ingest(f"{uuid4().hex}.md", file_of(chunks)) for _ in range(files)
    ]
    for job in sent:
        while (state := application.jobs.job(job.id).state) is not JobState.DONE:
            assert state is not JobState.FAILED, application.jobs.job(job.id)
            assert time.monotonic() - began < PATIENCE_SECONDS, job
            time.sleep(0.1)
    seconds = time.monotonic() - began
    return (application.documents.embedded_count() - before) / seconds


@contextmanager
def working(processes: int) -> Iterator[None]:
    """So many `groundnote worker` meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        started = [
            subprocess.Popen(
                [sys.executable, "-m", "rag.cli", "worker"],
                env=os.environ | {"GROUNDNOTE_DATA_DIR": f"{folder}/{number}"},
                cwd=ROOT,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for number in range(processes)
        ]
        try:
            yield
        finally:
            for each in started:
                each.kill()
                each.wait()


def processor_seconds() -> dict[str, float]:
    """Of what this process started, by the program's name, those that ended left out."""
    told: dict[int, tuple[int, str, float]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            begun, _, rest = stat.read_text().rpartition(")")
            fields = rest.split()
            name = stat.with_name("cmdline").read_text().replace("\0", " ")
            spent = (int(fields[11]) + int(fields[12])) / TICKS
            told[int(begun.split()[0])] = (int(fields[1]), _kind(name), spent)
    sums: dict[str, float] = {}
    for pid, (_, kind, spent) in told.items():
        if _is_ours(pid, told):
            sums[kind] = sums.get(kind, 0.0) + spent
    return sums


def _kind(command: str) -> str:
    kinds = ("worker", "postgres", "redis", "chroma")
    return next((kind for kind in kinds if kind in command), "other")


def _is_ours(pid: int, told: Mapping[int, tuple[int, str, float]]) -> bool:
    while pid in told:
        pid = told[pid][0]
        if pid == os.getpid():
            return True
    return False


def round_of(application: Application, processes: int, files: int, chunks: int) -> float:
    """One row; the processes have loaded all they need before the clock runs."""
    with working(processes):
        ingest(application, 4 * processes, chunks)
        before = processor_seconds()
        speed = ingest(application, files, chunks)
        spent = {kind: value - before.get(kind, 0) for kind, value in processor_seconds().items()}
    of_each = ", ".join(f"{kind} {value:.1f}" for kind, value in sorted(spent.items()) if value > 1)
    print(f"{processes:>9} {speed:>14.1f}  {of_each}", flush=True)
    return speed


@click.command()
@click.option("--processes", default=4, show_default=True)
@click.option("--files", default=120, show_default=True)
@click.option("--chunks", default=16, show_default=True)
@click.option("--rounds", default=2, show_default=True)
def main(processes: int, files: int, chunks: int, rounds: int) -> None:
    """Print chunks a second of one process and of several, and how many times as fast those are."""
    with tempfile.TemporaryDirectory(prefix="groundnote-ingest-") as folder:
        far = ThreadingHTTPServer(("127.0.0.1", 0), FarAway)
        threading.Thread(target=far.serve_forever, daemon=True).start()
        postgres, *others = servers = (
            Postgres(Path(folder)),
            Redis(Path(folder)),
            Chroma(Path(folder)),
        )
        try:
            database, queue, vectors = (server.start().url for server in servers)
            at = {
                "SESSIONS__DATABASE_URL": database,
                "JOBS__URL": queue,
                "RETRIEVAL__CHROMA_URL": vectors,
                "TABLES__URL": f"{folder}/tables",
                "EMBEDDING__BASE_URL": f"http://127.0.0.1:{far.server_port}/v1",
                "EMBEDDING__MODEL": "far",
                "DATA_DIR": f"{folder}/own",
            }
            os.environ |= {f"GROUNDNOTE_{key}": value for key, value in at.items()}
            application = build(load_settings())
            print(f"{'processes':>9} {'chunks/second':>14}  processor seconds")
            speeds: dict[int, list[float]] = {1: [], processes: []}
            for _ in range(rounds):
                for count, of_count in speeds.items():
                    of_count.append(round_of(application, count, files, chunks))
            application.stop()
            one, several = map(statistics.median, speeds.values())
            print(f"{processes} processes are {several / one:.2f} times as fast as one")
        finally:
            for server in others:
                server.stop()
            postgres.remove()


if __name__ == "__main__":
    main()

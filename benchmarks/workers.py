"""Answers for a second of processor time, of one process and of several that share an index.

    python -m benchmarks.workers [--answers 200] [--clients 8] [--workers 1 --workers 2]

Each serves the sample library without a model. Everybody asks in a session of their own. What the
clients take is not counted: processor time is that of the server and all its processes.
"""

import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
import httpx

from benchmarks.served import ROOT, until

QUESTIONS = (
    "How long does a refund take?",
    "What does the warranty cover?",
    "How do I reset the router?",
    "Which plan has the most storage?",
)
TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(pid: int) -> float:
    """Of a process and its children, dead ones included."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS + sum(map(processor_seconds, map(int, children)))


def resident(pid: int) -> int:
    """MiB of a process and its children that no other has."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    own = sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))
    return (own >> 10) + sum(map(resident, map(int, children)))


def ask(url: str, questions: range) -> None:
    """One after the other, in a session."""
    with httpx.Client(base_url=f"{url}/api/v1", timeout=120) as client:
        session = client.post("/sessions", json={}).json()["id"]
        for number in questions:
            asked = {"content": QUESTIONS[number % len(QUESTIONS)]}
            client.post(f"/sessions/{session}/messages", json=asked).raise_for_status()


def measure(folder: Path, workers: int, answers: int, clients: int) -> None:
    """Serve, ask, and print a row."""
    own = {"GROUNDNOTE_DATA_DIR": str(folder), "PORT": "0"}
    command = [sys.executable, "-m", "rag.cli", "serve", "--workers", str(workers)]
    process = subprocess.Popen(
        command, env=os.environ | own, cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        url = str(process.stdout and process.stdout.readline()).split()[-1]
        until(lambda: httpx.get(f"{url}/readyz", timeout=5).json()["status"] == "ready")
        time.sleep(5)  # for what is loaded after the first look
        share = answers // clients
        with ThreadPoolExecutor(clients) as pool:
            list(pool.map(lambda _: ask(url, range(workers * 4)), range(clients)))  # warm
            before, began = processor_seconds(process.pid), time.monotonic()
            list(pool.map(lambda _: ask(url, range(share)), range(clients)))
            cpu = processor_seconds(process.pid) - before
            seconds = time.monotonic() - began
        click.echo(
            f"{workers:>7} {share * clients / cpu:>16.2f} {share * clients / seconds:>17.2f} "
            f"{resident(process.pid):>10}"
        )
    finally:
        process.terminate()
        process.wait()


@click.command()
@click.option("--answers", default=200, show_default=True)
@click.option("--clients", default=8, show_default=True)
@click.option("--workers", multiple=True, type=int, default=(1, 2), show_default=True)
def main(answers: int, clients: int, workers: tuple[int, ...]) -> None:
    """Print a row for each number of workers."""
    click.echo("workers  answers / CPU s  answers / clock s  MiB alone")
    with tempfile.TemporaryDirectory() as folder:
        ingest = [sys.executable, "-m", "rag.cli", "ingest", "data/library"]
        own = os.environ | {"GROUNDNOTE_DATA_DIR": folder}
        subprocess.run(ingest, env=own, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        for number in workers:
            measure(Path(folder), number, answers, clients)


if __name__ == "__main__":
    main()

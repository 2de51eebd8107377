"""How long commands and a server take to begin, and what a server holds.

    python -m benchmarks.start [--data-dir DIR] [--rounds 3] [--drop]

`--drop`: from three files of ten pages, sent to a server that has just begun over nothing, to the
first answer that cites each of them, and to the end of their jobs.

Processor time counts where others use the machine; the clock tells only when it is quiet. DIR holds
a library already (`groundnote ingest`); without one a small library is made first.
"""

import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, sleep

import click
import httpx

COMMANDS = (("--help",), ("sessions",), ("doctor",))
LIBRARY = Path(__file__).parents[1] / "data" / "library"
TICKS = os.sysconf("SC_CLK_TCK")
ASKED = (
    "How long do refunds take?",
    "How do I reset the Aero 5?",
    "What does the Aero 5 Pro weigh?",
)


def groundnote(*arguments: str) -> list[str]:
    """The command of this interpreter's environment."""
    return [sys.executable, "-m", "rag.cli", *arguments]


def command(arguments: tuple[str, ...], environment: dict[str, str]) -> tuple[float, float]:
    """Seconds of the clock and of the processor of one command."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    subprocess.run(groundnote(*arguments), env=environment, check=True, capture_output=True)
    took, after = perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def processor(pid: int) -> float:
    """Seconds that a running process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory(pid: int) -> tuple[float, float]:
    """MiB that a process and its children hold: what is shared by its part, and wholly in each."""
    held = {"Pss:": 0, "Rss:": 0}
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for each in (str(pid), *children):
        rows = Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()
        for kind in held:
            held[kind] += next(int(row.split()[1]) for row in rows if row.startswith(kind))
    return held["Pss:"] / 1024, held["Rss:"] / 1024


def answers(client: httpx.Client, path: str) -> bool:
    """Whether the server answers this with 200 already."""
    try:
        return client.get(path).status_code == 200
    except httpx.HTTPError:
        return False


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def server(environment: dict[str, str]) -> dict[str, tuple[float, float]]:
    """Seconds (clock, processor) until a server has begun, and MiB that it holds then."""
    port = free_port()
    began = perf_counter()
    running = subprocess.Popen(
        groundnote("serve", "--port", str(port)),
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    found: dict[str, tuple[float, float]] = {}
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)

    def when(name: str, happened: Callable[[], bool]) -> None:
        while not happened():
            if running.poll() is not None:
                raise click.ClickException("The server ended.")
            sleep(0.05)  # each look costs the server some milliseconds
        found[name] = (perf_counter() - began, processor(running.pid))

    try:
        when("/healthz", lambda: answers(client, "/healthz"))
        when("the page", lambda: answers(client, "/"))
        when("ready", lambda: answers(client, "/readyz"))
        sleep(3)
        found["PSS, RSS at rest"] = memory(running.pid)
        session = client.post("/api/v1/sessions", json={}).json()["id"]
        for question in ASKED * 5:
            address = f"/api/v1/sessions/{session}/messages"
            client.post(address, json={"content": question}).raise_for_status()
        found["after answers"] = memory(running.pid)
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait()
    return found


def ten_pages(number: int) -> bytes:
    """A manual of ten pages as PDF; its fact stands on the last."""
    from tests.documents.office_files import pdf

    line = "Section {} of part {} tells how the machine is set up, kept clean, moved and stored."
    pages = [
        [(f"Chapter {page} of manual {number}", 16, True)]
        + [line.format(row, page * number) for row in range(40)]
        for page in range(1, 10)
    ]
    fact = f"The Orbit {number} weighs {number}40 grams without its stand."
    last = [(f"Weight of the Orbit {number}", 16, True), fact]
    return pdf([*pages, last], title=f"Orbit {number}")


def first_drop(environment: dict[str, str]) -> dict[str, tuple[float, float]]:
    """Seconds (clock, processor) from a drop to cited answers."""
    port = free_port()
    running = subprocess.Popen(
        groundnote("serve", "--port", str(port)),
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)
    results: dict[str, tuple[float, float]] = {}
    try:
        while not answers(client, "/readyz"):
            sleep(0.05)
        files = [("file", (f"orbit-{n}.pdf", ten_pages(n), "application/pdf")) for n in (1, 2, 3)]
        began, used = perf_counter(), processor(running.pid)

        def note(name: str) -> None:
            results[name] = (perf_counter() - began, processor(running.pid) - used)

        jobs = client.post("/api/v1/documents", files=files).json()["jobs"]
        for n in (1, 2, 3):
            while not cites(client, f"How much does the Orbit {n} weigh?", f"{n}40 grams"):
                sleep(1)  # each question costs the server some work
            note(f"file {n} is cited")
        while any(is_on_its_way(client, job["id"]) for job in jobs):
            sleep(0.1)
        note("all are done")
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait()
    return results


def cites(client: httpx.Client, question: str, fact: str) -> bool:
    """Whether an answer says this with a number."""
    session = client.post("/api/v1/sessions", json={}).json()["id"]
    asked = client.post(f"/api/v1/sessions/{session}/messages", json={"content": question})
    answer = asked.json()
    return bool(answer.get("citations")) and fact in answer["content"]


def is_on_its_way(client: httpx.Client, job_id: str) -> bool:
    """Whether an upload is not done yet."""
    return client.get(f"/api/v1/jobs/{job_id}").json()["state"] in ("queued", "running")


@click.command()
@click.option("--data-dir", type=click.Path(path_type=Path), help="A library that is there.")
@click.option("--rounds", default=3, show_default=True)
@click.option("--drop", is_flag=True, help="Files dropped on an empty server alone.")
def main(data_dir: Path | None, rounds: int, drop: bool) -> None:
    """Print medians over the rounds."""
    if drop:
        drops = []
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as place:
                drops.append(first_drop(dict(os.environ) | {"GROUNDNOTE_DATA_DIR": place}))
        for name in drops[0]:
            show(name, [each[name] for each in drops])
        return
    with tempfile.TemporaryDirectory() as place:
        environment = dict(os.environ) | {"GROUNDNOTE_DATA_DIR": str(data_dir or place)}
        if data_dir is None:
            command(("ingest", str(LIBRARY)), environment)
        print(f"{'what':>20} {'clock':>8} {'CPU s':>8}")
        for arguments in COMMANDS:
            rows = [command(arguments, environment) for _ in range(rounds)]
            show(" ".join(arguments), rows)
        served = [server(environment) for _ in range(rounds)]
        for name in served[0]:
            show(name, [each[name] for each in served])


def show(name: str, rows: list[tuple[float, float]]) -> None:
    """One row."""
    clock, used = (statistics.median(row[i] for row in rows) for i in (0, 1))
    print(f"{name:>20} {clock:>8.2f} {used:>8.2f}", flush=True)


if __name__ == "__main__":
    main()

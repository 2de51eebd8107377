"""A server on SQLite that is killed again and again: is anything lost that it acknowledged?

    python -m benchmarks.kills [--kills 21] [--clients 4] [--seed 0]

On loopback. Clients ask, upload and have conversations summarised without a pause; after a random
time the server and all that it started are killed (SIGKILL) and started again on the same folder.
At last every answer that was acknowledged is read again, every upload has to be found by a word
that is in no other, nothing may be pending, and `groundnote doctor` may find nothing.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import click
import httpx

from benchmarks.served import ROOT, model, until
from tests.deployment.servers import free_port

LIVES_SECONDS = (0.2, 6.0)  # after it was ready
LATER_SECONDS = 120.0  # in which uploads are read, and nothing is pending any more


@dataclass
class Acknowledged:
    """What clients were told, and how often they were not served."""

    answers: dict[tuple[str, int], str] = field(default_factory=dict)
    uploads: set[str] = field(default_factory=set)  # a word that is in no other file
    told: Counter[str] = field(default_factory=Counter)


def started(folder: Path, model_url: str, port: int) -> "subprocess.Popen[bytes]":
    """A server in a process group of its own, ready."""
    environment = os.environ | {
        "GROUNDNOTE_DATA_DIR": str(folder),
        "GROUNDNOTE_LLM__BASE_URL": model_url,
        "GROUNDNOTE_LLM__MODEL": "fake",
    }
    command = [sys.executable, "-m", "rag.cli", "serve", "--port", str(port)]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            command, env=environment, cwd=ROOT, stdout=log, stderr=log, start_new_session=True
        )
    until(lambda: httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=5).status_code == 200)
    return process


def work(number: int, url: str, over: threading.Event, known: Acknowledged) -> None:
    """One client: a new conversation of five questions, a file, a summary; then the next."""
    turn = 0
    with httpx.Client(base_url=f"{url}/api/v1", timeout=30) as client:
        while not over.is_set():
            turn += 1
            try:
                session = client.post("/sessions", json={}).raise_for_status().json()["id"]
                for at in range(5):
                    said = {"content": f"How long does refund {number}.{turn}.{at} take?"}
                    answer = client.post(f"/sessions/{session}/messages", json=said)
                    message = answer.raise_for_status().json()
                    known.answers[session, message["index"]] = message["content"]
                word = f"zebrafish{number}q{turn}q{os.urandom(3).hex()}"
                file = {"file": (f"{word}.md", f"# {word}\n\nThe {word} weighs {turn} g.\n")}
                client.post("/documents", files=file).raise_for_status()
                known.uploads.add(word)
                client.post(f"/sessions/{session}/compact").raise_for_status()
                known.told["rounds"] += 1
            except httpx.HTTPStatusError as error:
                known.told[str(error.response.status_code)] += 1
                time.sleep(0.2)
            except httpx.HTTPError:
                known.told["not there"] += 1
                time.sleep(0.1)


def looked_up(url: str, known: Acknowledged) -> None:
    """Print what is not as it was acknowledged."""
    with httpx.Client(base_url=f"{url}/api/v1", timeout=30) as client:
        end = time.monotonic() + LATER_SECONDS
        missing = set(known.uploads)
        while missing and time.monotonic() < end:
            listed = client.get("/documents", params={"limit": 1000}).json()["documents"]
            missing -= {each["name"].removesuffix(".md") for each in listed}
            time.sleep(0.5)
        there: dict[tuple[str, int], str] = {}
        pending = 0
        for session in {session for session, _ in known.answers}:
            for each in client.get(f"/sessions/{session}/messages").json()["messages"]:
                there[session, each["index"]] = each["content"]
                pending += each["status"] == "pending"
        lost = sum(there.get(at) != content for at, content in known.answers.items())
        unfound = sum(
            word not in client.post("/search", json={"query": word}).text
            for word in known.uploads - missing
        )
    click.echo(f"| acknowledged answers, lost or altered | {len(known.answers)}, {lost} |")
    click.echo(f"| uploads taken, not read, not found | {len(known.uploads)}, {len(missing)}, "
               f"{unfound} |\n| pending | {pending} |\n| told | {dict(known.told)} |")  # fmt: skip


@click.command()
@click.option("--kills", default=21, show_default=True)
@click.option("--clients", default=4, show_default=True)
@click.option("--seed", default=0, show_default=True)
def main(kills: int, clients: int, seed: int) -> None:
    """Kill it so often, then look."""
    random.seed(seed)
    known, over, port = Acknowledged(), threading.Event(), free_port()
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as name, model() as model_url:
        folder = Path(name)
        process = started(folder, model_url, port)
        threads = [threading.Thread(target=work, args=(number, url, over, known))
                   for number in range(clients)]  # fmt: skip
        for thread in threads:
            thread.start()
        for _ in range(kills):
            time.sleep(random.uniform(*LIVES_SECONDS))
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process = started(folder, model_url, port)
        time.sleep(LIVES_SECONDS[1])
        over.set()
        for thread in threads:
            thread.join()
        looked_up(url, known)
        process.terminate()
        process.wait()
        log = (folder / "log").read_text()
        click.echo(f"| kills, tracebacks in the log | {kills}, {log.count('Traceback')} |")
        environment = os.environ | {"GROUNDNOTE_DATA_DIR": name}
        doctor = subprocess.run([sys.executable, "-m", "rag.cli", "doctor"], env=environment,
                                cwd=ROOT, capture_output=True, text=True)  # fmt: skip
        click.echo(f"| doctor ends with | {doctor.returncode} |\n{doctor.stdout[-1500:]}")


if __name__ == "__main__":
    main()

"""Many sessions at once, and then servers that go away under load: is an acknowledged answer lost?

    python -m benchmarks.load [--sessions 200] [--clients 12] [--seconds 20]

On loopback, with a PostgreSQL, a Redis, a Chroma, a model and an embedding server of its own, two
processes that serve and one that does jobs. First all sessions ask at the same moment. Then so many
clients ask without a pause, one more uploads files, and each server is stopped for so many seconds,
a process that serves and the one that does jobs are killed. A client that is told to wait (503)
waits and asks again. At last every answer that was acknowledged is read again, from the server that
is left.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import httpx

from tests.deployment.servers import Chroma, Postgres, Redis, Server, free_port
from tests.openai_server import Exchange, OpenAIServer, delta_event

ROOT = Path(__file__).parents[1]
PATIENCE_SECONDS = 120.0
PENDING_SECONDS = 60.0  # after which no answer may be pending
BETWEEN_SECONDS = 5.0  # while everything is there
HANDBOOK = "# Handbook\n\n## Refunds\n\nA refund takes five days after the parcel came back."
QUESTION = "How long does a refund take, asks number {number}?"
WORD_SECONDS = 0.02
Answer = tuple[str, int, str]  # session, index, content


def say_who_asked(exchange: Exchange) -> None:
    """A model whose every answer is another one, word by word."""
    (number, *_) = re.findall(r"asks number (\d+)", exchange.body["messages"][-1]["content"]) or "0"
    exchange.begin_stream()
    for word in f"Number {number}: a refund takes five days [1]. ".split(" "):
        exchange.send_event(delta_event({"content": f"{word} "}))
        if exchange.hung_up(WORD_SECONDS):
            return
    exchange.send_event(delta_event({}, "stop"))
    exchange.send_event("[DONE]")
    exchange.end_stream()


class Thinking:
    """A server of models that can be away."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self._server: OpenAIServer | None = None

    def start(self) -> None:
        self._server = OpenAIServer(say_who_asked, port=self.port).__enter__()

    def stop(self) -> None:
        if self._server is not None:
            self._server.__exit__()
            self._server = None


@dataclass
class Fleet:
    """Everything that runs."""

    folder: Path
    servers: dict[str, Server | Thinking] = field(default_factory=dict)
    ours: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    url: str = ""

    def start(self) -> None:
        self.servers = {
            "PostgreSQL": Postgres(self.folder),
            "Redis": Redis(self.folder),
            "Chroma": Chroma(self.folder),
            "the model": Thinking(),
            "the embedding server": Thinking(),
        }
        for server in self.servers.values():
            server.start()
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.run("serve", "--workers", "2", "--port", str(port))
        self.run("worker")
        until(lambda: self._status() == "ready")

    def run(self, command: str, *arguments: str) -> None:
        at = {name: server.url for name, server in self.servers.items()}
        ours = {
            "DATA_DIR": str(self.folder / command),
            "SESSIONS__DATABASE_URL": at["PostgreSQL"],
            "JOBS__URL": at["Redis"],
            "RETRIEVAL__CHROMA_URL": at["Chroma"],
            "TABLES__URL": str(self.folder / "tables"),
            "LLM__BASE_URL": at["the model"],
            "LLM__MODEL": "fake",
            "CHECKS__MODEL": "off",
            "EMBEDDING__BASE_URL": at["the embedding server"],
            "EMBEDDING__MODEL": "tiny",
        }
        with (self.folder / f"{command}.log").open("ab") as log:
            self.ours[command] = subprocess.Popen(
                [sys.executable, "-m", "rag.cli", command, *arguments],
                env=os.environ | {f"GROUNDNOTE_{key}": value for key, value in ours.items()},
                cwd=ROOT,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def stop(self) -> None:
        for process in self.ours.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        for server in self.servers.values():
            server.remove() if isinstance(server, Postgres) else server.stop()

    def kill_a_server(self) -> None:
        """One of those that serve; the one above them starts another."""
        above = self.ours["serve"].pid
        children = Path(f"/proc/{above}/task/{above}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)

    def kill_the_worker(self) -> None:
        self.ours["worker"].kill()
        self.ours["worker"].wait()
        self.run("worker")

    def said(self) -> str:
        return "".join(path.read_text() for path in sorted(self.folder.glob("*.log")))

    def _status(self) -> str:
        try:
            return str(httpx.get(f"{self.url}/readyz", timeout=10).json()["status"])
        except httpx.HTTPError:
            return ""


@dataclass
class Report:
    """What clients were told, and what became of it."""

    answers: list[Answer] = field(default_factory=list)
    uploads: list[str] = field(default_factory=list)
    told: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)  # what nobody may be told
    lost: list[Answer] = field(default_factory=list)
    pending: int = 0
    undone: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def refused(self, problem: dict[str, Any]) -> None:
        """A refusal must be one that says why, and that it is worth to try again."""
        self.told[str(problem.get("status"))] += 1
        if problem.get("status") not in (502, 503, 504) or not problem.get("detail"):
            self.wrong.append(json.dumps(problem)[:300])


class Client:
    """Asks in a session of its own."""

    numbers = iter(range(10**9))

    def __init__(self, url: str, report: Report) -> None:
        self._at, self._report = f"{url}/api/v1", report
        self._http = httpx.Client(timeout=PATIENCE_SECONDS)
        self.session = ""

    def begin(self) -> bool:
        """Whether there is a session now."""
        with self._watched():
            made = self._http.post(f"{self._at}/sessions", json={})
            if made.status_code == 201:
                self.session = made.json()["id"]
            else:
                self._report.refused(_problem(made))
        return bool(self.session)

    def ask(self) -> bool:
        """Whether an answer was acknowledged."""
        if not (self.session or self.begin()):
            return False
        number, began = next(self.numbers), time.monotonic()
        content = QUESTION.format(number=number)
        accept = {"Accept": "text/event-stream" if number % 2 else "application/json"}
        path = f"{self._at}/sessions/{self.session}/messages"
        with self._watched():
            told = self._http.post(path, json={"content": content}, headers=accept)
            answer = _answer(told) if told.status_code == 200 else _problem(told)
            if "content" in answer:
                self._report.answers.append((self.session, answer["index"], answer["content"]))
                self._report.told["answered"] += 1
                self._report.seconds.append(time.monotonic() - began)
                return True
            self._report.refused(answer)
        return False

    def upload(self) -> None:
        number = next(self.numbers)
        text = f"# Part {number}\n\nPart {number} weighs {number} grams."
        with self._watched():
            sent = self._http.post(
                f"{self._at}/documents", files={"file": (f"part-{number}.md", text)}
            )
            if sent.status_code == 202:
                self._report.uploads += [job["id"] for job in sent.json()["jobs"]]
            else:
                self._report.refused(_problem(sent))

    @contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except httpx.HTTPError:  # its process was killed
            self._report.told["connection lost"] += 1


def _answer(told: httpx.Response) -> dict[str, Any]:
    """The last event of a stream, or the document; a stream may just end, if its process did."""
    if "event-stream" not in told.headers["content-type"]:
        return dict(told.json())
    named = re.findall(r"event: (final|error)\ndata: (.*)\n", told.text)
    if not named:
        raise httpx.RemoteProtocolError("the stream ended")
    return dict(json.loads(named[-1][1]))


def _problem(told: httpx.Response) -> dict[str, Any]:
    try:
        return {"status": told.status_code, **told.json()}
    except ValueError:
        return {"status": told.status_code, "said": told.text[:200]}


def until(condition: Callable[[], object], *, seconds: float = PATIENCE_SECONDS) -> None:
    """Raises TimeoutError."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(condition)
        time.sleep(0.2)


def all_at_once(fleet: Fleet, report: Report, sessions: int) -> None:
    """Every session asks at the same moment, and again as long as it is told to wait."""
    clients = [Client(fleet.url, report) for _ in range(sessions)]
    ready = threading.Barrier(sessions)

    def ask(client: Client) -> None:
        while not client.begin():
            time.sleep(1)
        ready.wait()
        while not client.ask():
            time.sleep(1)

    threads = [threading.Thread(target=ask, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@contextmanager
def under_load(fleet: Fleet, report: Report, clients: int) -> Iterator[None]:
    """Questions without a pause, and a file now and then."""
    over = threading.Event()

    def ask() -> None:
        client = Client(fleet.url, report)
        while not over.is_set():
            if not client.ask():
                over.wait(0.5)

    def upload() -> None:
        client = Client(fleet.url, report)
        while not over.wait(1.0):
            client.upload()

    threads = [threading.Thread(target=ask) for _ in range(clients)]
    threads.append(threading.Thread(target=upload))
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def take_away(fleet: Fleet, seconds: float, between: float, tell: Callable[[str], None]) -> None:
    """Each server for a while, and the processes of ours for good."""
    for name, server in fleet.servers.items():
        tell(f"without {name}")
        server.stop()
        time.sleep(seconds)
        server.start()
        time.sleep(between)
    tell("a server and the worker killed")
    fleet.kill_a_server()
    fleet.kill_the_worker()
    time.sleep(between)


def look_again(fleet: Fleet, report: Report) -> None:
    """Is every acknowledged answer there, none pending, every upload done?"""
    with httpx.Client(timeout=PATIENCE_SECONDS, base_url=f"{fleet.url}/api/v1") as web:
        stored = _stored(web, report)
        for answer in report.answers:
            session, index, content = answer
            kept = {message["index"]: message for message in stored[session]}.get(index)
            if kept is None or (kept["content"], kept["status"]) != (content, "complete"):
                report.lost.append(answer)
        undone = set(report.uploads)

        def are_done() -> bool:
            for job in list(undone):
                if web.get(f"/jobs/{job}").json()["state"] == "done":
                    undone.discard(job)
            return not undone

        with suppress(TimeoutError):
            until(are_done, seconds=5 * PENDING_SECONDS)
        report.undone = sorted(undone)


def _stored(web: httpx.Client, report: Report) -> dict[str, list[dict[str, Any]]]:
    """All messages, once none is pending or the patience is over."""
    sessions = {session for session, _, _ in report.answers}
    end = time.monotonic() + PENDING_SECONDS
    while True:
        stored = {
            session: web.get(
                f"/sessions/{session}/messages", params={"start": 0, "end": 10_000}
            ).json()["messages"]
            for session in sessions
        }
        each = (message for told in stored.values() for message in told)
        report.pending = sum(message["status"] == "pending" for message in each)
        if not report.pending or time.monotonic() > end:
            return stored
        time.sleep(2)


def load(
    *,
    sessions: int,
    clients: int,
    seconds: float,
    tell: Callable[[str], None],
    between: float = BETWEEN_SECONDS,
) -> tuple[Report, str]:
    """The whole, and what our processes logged."""
    with tempfile.TemporaryDirectory(prefix="groundnote-load-") as folder:
        fleet, report = Fleet(Path(folder)), Report()
        try:
            fleet.start()
            handbook = {"file": ("handbook.md", HANDBOOK)}
            sent = httpx.post(f"{fleet.url}/api/v1/documents", files=handbook, timeout=60).json()
            report.uploads.append(sent["jobs"][0]["id"])
            at = f"{fleet.url}/api/v1/jobs/{report.uploads[0]}"
            until(lambda: httpx.get(at).json()["state"] == "done")
            tell(f"{sessions} sessions at once")
            all_at_once(fleet, report, sessions)
            with under_load(fleet, report, clients):
                take_away(fleet, seconds, between, tell)
            tell("looking again")
            look_again(fleet, report)
            return report, fleet.said()
        finally:
            fleet.stop()


@click.command()
@click.option("--sessions", default=200, show_default=True)
@click.option("--clients", default=12, show_default=True)
@click.option("--seconds", default=20.0, show_default=True)
def main(sessions: int, clients: int, seconds: float) -> None:
    """See above."""
    report, log = load(sessions=sessions, clients=clients, seconds=seconds, tell=print)
    times = sorted(report.seconds)
    p50, p95 = times[len(times) // 2], times[len(times) * 95 // 100]
    print(f"| acknowledged answers | {len(report.answers)} |")
    print(f"| … lost or altered | {len(report.lost)} |")
    print(f"| … seconds, p50 and p95 | {p50:.2f}, {p95:.2f} |")
    print(f"| pending after {PENDING_SECONDS:.0f} s | {report.pending} |")
    print(f"| uploads taken, not done | {len(report.uploads)}, {len(report.undone)} |")
    print(f"| told | {dict(report.told)} |")
    print(f"| errors without a reason | {len(report.wrong)} |")
    print(f"| lines of log, tracebacks | {len(log.splitlines())}, {log.count('Traceback')} |")
    for each in report.wrong[:10]:
        print(each)


if __name__ == "__main__":
    main()

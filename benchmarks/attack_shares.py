"""Many questions and files of one owner, and the few of another beside them."""

import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import click
import httpx

from benchmarks.served import (
    ATTACKER,
    SLOW,
    SLOW_SECONDS,
    USER,
    caller,
    groundnote,
    model,
    spread,
    until,
    watched_health,
)

QUESTION = "How long does a refund take? " + SLOW
OF_ANOTHER = 6  # questions
FILES_AT_ONCE = 50
PART = "Part {part} of file {file} weighs {part}{file} grams and fits the housing. "


def ask(url: str, token: str) -> tuple[str, float]:
    """What became of a question, and the seconds that it took."""
    with caller(url, token) as client:
        session = client.post("/api/v1/sessions", json={}).json()["id"]
        began = time.monotonic()
        reply = client.post(f"/api/v1/sessions/{session}/messages", json={"content": QUESTION})
    took = time.monotonic() - began
    if reply.status_code != 200:
        return str(reply.status_code), took
    said = reply.json()
    return ("answered by the model" if said["model"] else "its passages shown"), took


def file(number: int, parts: int = 2) -> tuple[str, str]:
    """A small handbook."""
    text = [f"## Part {n}\n\n" + PART.format(part=n, file=number) * 12 for n in range(parts)]
    return f"file-{number}.md", f"# File {number}\n\n" + "\n\n".join(text)


def upload(client: httpx.Client, files: list[tuple[str, str]]) -> list[str]:
    """The jobs that read them."""
    sent = client.post("/api/v1/documents", files=[("file", each) for each in files])
    return [job["id"] for job in sent.raise_for_status().json()["jobs"]]


@contextmanager
def busy(
    url: str, questions: int, files: int
) -> Iterator[tuple[list[Future[tuple[str, float]]], list[str]]]:
    """One owner has so much to do."""
    with caller(url, ATTACKER) as client, ThreadPoolExecutor(max(questions, 1)) as pool:
        jobs: list[str] = []
        for at in range(0, files, FILES_AT_ONCE):
            jobs += upload(client, [file(n) for n in range(at, min(at + FILES_AT_ONCE, files))])
        asked = [pool.submit(ask, url, ATTACKER) for _ in range(questions)]
        time.sleep(2)
        yield asked, jobs


def done(client: httpx.Client, jobs: list[str]) -> int:
    """How many of these are."""
    return sum(client.get(f"/api/v1/jobs/{job}").json()["state"] == "done" for job in jobs)


@click.command()
@click.option("--questions", default=200, show_default=True)
@click.option("--files", default=500, show_default=True)
def shares(questions: int, files: int) -> None:
    """Six questions and a file of another owner beside them."""
    with (
        tempfile.TemporaryDirectory() as folder,
        model() as model_url,
        groundnote(Path(folder), model_url) as (url, _),
        caller(url, USER) as user,
        caller(url, ATTACKER) as attacker,
    ):
        click.echo(f"alone: {ask(url, USER)}, the model takes {SLOW_SECONDS:g} s")
        with watched_health(url) as looks, busy(url, questions, files) as (asked, jobs):
            began = time.monotonic()
            (own,) = upload(user, [file(files)])
            taken = time.monotonic() - began
            with ThreadPoolExecutor(1) as pool:
                replies = pool.submit(lambda: [ask(url, USER) for _ in range(OF_ANOTHER)])
                until(lambda: done(user, [own]) == 1)
                read = time.monotonic() - began
                before = done(attacker, jobs)
                click.echo(f"file taken after {taken:.1f} s, read after {read:.1f} s, "
                           f"{before} of {len(jobs)} of the other's before it")  # fmt: skip
                for what, took in replies.result():
                    click.echo(f"question: {what} in {took:.1f} s")
            told = [each.result() for each in asked]
        click.echo(f"the many: {dict(Counter(what for what, _ in told))}")
        click.echo(f"/healthz: {spread([took for _, took, _ in looks])}")

"""Time from question to first event, first words and end, with a model that answers at once.

    python -m benchmarks.turn --data DIR [--sizes 1000,20000] [--questions 60] [--neighbours 4]

The embedding model, Chroma, SQLite, the gate and the checks are real; only the language model is
scripted. The last row of a size is the processor's time for a whole turn without a model: cards,
checks, follow-ups and summaries included. Also prints the peak memory of the process.
"""

import gc
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import click
import numpy as np

from benchmarks.corpora import data_option, packaged, rows_of
from rag.chat.answers import Answering
from rag.chat.assistant import Assistant, TurnLimits
from rag.chat.draft import ModelWriter
from rag.documents.files import IncomingFile
from rag.records import EVERYTHING, Text
from rag.seams import ModelDelta, ModelRequest
from rag.settings import Settings
from rag.wiring.application import Application, build

SECTIONS_PER_FILE = 20
SPIN = "while True: pass"
SAID = "Open the settings [1] and tap the entry that you want to change [2]."


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    """Processes that never wait."""
    running = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


class InstantModel:
    """Answers at once, with two citations."""

    name = "instant"

    def stream(self, request: ModelRequest) -> Iterator[ModelDelta]:
        for word in SAID.split():
            yield ModelDelta(text=word + " ")


def sections(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Product, heading and text: phone manuals first, then the pages of a cloud's documentation."""
    for row in rows_of(folder / "samsung_manuals" / "corpus.jsonl.gz"):
        yield row["product"], row["title"], row["text"]
    for row in rows_of(folder / "mtrag" / "corpus_cloud.jsonl.gz"):
        yield "Cloud", row.get("title", ""), row["text"]


def library(folder: Path, size: int) -> Iterator[IncomingFile]:
    """Markdown files of some sections each, enough for about `size` chunks."""
    chunks = 0
    for number, group in enumerate(batched(sections(folder), SECTIONS_PER_FILE)):
        product = group[0][0]
        chunks += sum(1 + len(text.split()) // 90 for _product, _title, text in group)
        body = "\n\n".join(f"## {title}\n\n{text}" for _product, title, text in group)
        yield IncomingFile.from_bytes(f"{product}-{number}.md", f"# {product}\n\n{body}".encode())
        if chunks >= size:
            return


def batched(values: Iterator[Any], size: int) -> Iterator[list[Any]]:
    """Lists of `size` values; the last may be shorter."""
    while group := list(islice(values, size)):
        yield group


def questions(folder: Path, count: int) -> list[str]:
    """The first questions about phones and televisions."""
    rows = list(rows_of(folder / "emanual" / "dev" / "queries.jsonl"))
    return [row["text"] for row in rows[:count]]


def measure(application: Application, asked: list[str]) -> dict[str, np.ndarray]:
    """Seconds to the first event, the first words and the end, one row a question."""
    own = application.assistant
    writer = ModelWriter(InstantModel())
    answering = Answering(writer)
    own._memory._rules = replace(own._memory._rules, is_read=True)  # the application has no model
    assistant = Assistant(
        application.retriever, own._followups, own._memory, answering, limits=TurnLimits()
    )
    session = application.store.create("benchmark")
    session.configure(replace(session.read().config, enabled=False))
    times: dict[str, list[float]] = {"first event": [], "first words": [], "end": []}
    for question in asked:
        began = perf_counter()
        seen: dict[str, float] = {}
        for event in assistant.ask(session, question):
            now = perf_counter() - began
            seen.setdefault("first event", now)
            if isinstance(event, Text):
                seen.setdefault("first words", now)
            seen["end"] = now
        for key, value in seen.items():
            times[key].append(value)
    return {key: np.array(values) * 1000 for key, values in times.items()}


def without_a_model(application: Application, asked: list[str]) -> np.ndarray:
    """Milliseconds of the processor for each turn of one conversation."""
    session = application.store.create("benchmark")
    took = []
    for question in asked:
        began = process_time()
        for _ in application.assistant.ask(session, question):
            pass
        took.append(process_time() - began)
    return np.array(took) * 1000


@click.command()
@data_option
@click.option("--sizes", default="1000,20000", show_default=True)
@click.option("--questions", "question_count", default=60, show_default=True)
@click.option("--neighbours", "count", default=0, help="Processes that burn a core each.")
def main(data: Path, sizes: str, question_count: int, count: int) -> None:
    """Print percentiles for each size of library."""
    embedder = packaged()
    embedder.embed(["warm"])
    asked = questions(data, question_count)
    print(f"{'chunks':>7} {'until':>12} {'p50 ms':>8} {'p95 ms':>8}")
    for size in map(int, sizes.split(",")):
        with tempfile.TemporaryDirectory() as place:
            application = build(Settings(data_dir=Path(place)), embedder=embedder)
            for _ in application.ingestion.ingest(library(data, size)):
                pass
            application.prepare_answers()
            gc.collect()
            gc.freeze()  # as a server does
            chunks = sum(d.chunk_count for d in application.documents.documents(EVERYTHING))
            half = len(asked) // 2  # each question once: its vector is remembered
            with neighbours(count):
                rows = measure(application, asked[:half])
            rows["CPU of turn"] = without_a_model(application, asked[half:])
            for until, values in rows.items():
                p50, p95 = np.percentile(values, [50, 95])
                print(f"{chunks:>7} {until:>12} {p50:>8.1f} {p95:>8.1f}")
            application.stop()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:.0f} MiB")


if __name__ == "__main__":
    main()

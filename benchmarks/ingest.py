"""Chunks per second of a whole ingest, beside the bare embedding model on the same texts.

    python -m benchmarks.ingest --data DIR [--documents 300]

The bare model is measured twice: as sentence-transformers encodes a list of texts by itself, and
as our embedder does, which makes better batches. The same weights in the same precision, in turn,
several times, in one process: the ratios count, not the speed of the machine. The share of
processor time is steadier than that of the clock where other work runs beside.
"""

import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

import click

from benchmarks.corpora import data_option, rows_of
from rag.documents.files import IncomingFile
from rag.retrieval.embed import LocalEmbedder
from rag.settings import Settings
from rag.wiring import Application, build


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds by the clock, and of processor time."""

    clock: float
    cpu: float


def took(call: Callable[[], object]) -> Took:
    """How long a call takes."""
    began, cpu_began = perf_counter(), process_time()
    call()
    return Took(perf_counter() - began, process_time() - cpu_began)


def ingest(application: Application, files: list[IncomingFile]) -> None:
    """All files into the application's library."""
    for _ in application.ingestion.ingest(files):
        pass


def embedded_texts(application: Application) -> list[str]:
    """What the ingest had to embed."""
    batches = application.documents.all_chunks()
    return [chunk.embedded_text for batch in batches for chunk in batch]


@click.command()
@data_option
@click.option("--documents", default=300, show_default=True)
@click.option("--rounds", default=3, show_default=True)
def main(data: Path, documents: int, rounds: int) -> None:
    """Print the shares of the bare model's speed that a whole ingest reaches."""
    rows = list(rows_of(data / "doc_sites" / "meshtastic.jsonl"))
    files = [
        IncomingFile.from_bytes(row["path"].replace("/", "-"), row["text"].encode())
        for row in rows[:documents]
    ]
    embedder = LocalEmbedder()
    embedder.embed(["warm"])
    baselines: dict[str, Callable[[list[str]], object]] = {
        "sentence-transformers": lambda texts: embedder._loaded.encode(
            texts, show_progress_bar=False
        ),
        "our embedder": embedder.embed,
    }
    shares: dict[str, list[Took]] = {name: [] for name in baselines}
    print(f"{'round':>5} {'chunks':>7} {'what':>22} {'chunks/s':>9} {'share':>7} {'of CPU':>7}")
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            application = build(Settings(data_dir=Path(folder)), embedder=embedder)
            whole = took(lambda app=application: ingest(app, files))
            texts = embedded_texts(application)
            application.stop()
        print(f"{number + 1:>5} {len(texts):>7} {'ingest':>22} {len(texts) / whole.clock:>9.1f}")
        for name, embed in baselines.items():
            bare = took(lambda embed=embed, texts=texts: embed(texts))
            share = Took(bare.clock / whole.clock, bare.cpu / whole.cpu)
            shares[name].append(share)
            print(
                f"{number + 1:>5} {len(texts):>7} {name:>22} {len(texts) / bare.clock:>9.1f} "
                f"{share.clock:>7.0%} {share.cpu:>7.0%}"
            )
    for name, found in shares.items():
        clock = statistics.median(share.clock for share in found)
        cpu = statistics.median(share.cpu for share in found)
        print(f"median share of {name}: {clock:.0%} of the clock, {cpu:.0%} of processor time")


if __name__ == "__main__":
    main()

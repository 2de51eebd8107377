"""Chunks per second of a whole ingest, beside the bare embedding model on the same texts.

    python -m benchmarks.ingest --data DIR [--documents 300]

Both run in turn, several times, in one process; the ratio counts, not the speed of the machine.
The share of processor time is steadier than that of the clock where other work runs beside.
"""

import statistics
import tempfile
from pathlib import Path
from time import perf_counter, process_time

import click

from benchmarks.corpora import data_option, rows_of
from rag.documents.files import IncomingFile
from rag.retrieval.embed import LocalEmbedder
from rag.settings import Settings
from rag.wiring import build


@click.command()
@data_option
@click.option("--documents", default=300, show_default=True)
@click.option("--rounds", default=3, show_default=True)
def main(data: Path, documents: int, rounds: int) -> None:
    """Print the share of the bare model's speed that a whole ingest reaches."""
    rows = list(rows_of(data / "doc_sites" / "meshtastic.jsonl"))
    files = [
        IncomingFile.from_bytes(row["path"].replace("/", "-"), row["text"].encode())
        for row in rows[:documents]
    ]
    embedder = LocalEmbedder()
    embedder.embed(["warm"])
    ratios, cpu_ratios = [], []
    print(f"{'round':>5} {'chunks':>7} {'ingest/s':>9} {'bare/s':>9} {'share':>7} {'of CPU':>7}")
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            application = build(Settings(data_dir=Path(folder)), embedder=embedder)
            began, cpu_began = perf_counter(), process_time()
            for _ in application.ingestion.ingest(files):
                pass
            ingest_seconds, ingest_cpu = perf_counter() - began, process_time() - cpu_began
            texts = [
                chunk.embedded_text
                for batch in application.documents.all_chunks()
                for chunk in batch
            ]
            application.stop()
        began, cpu_began = perf_counter(), process_time()
        embedder.embed(texts)
        bare_seconds, bare_cpu = perf_counter() - began, process_time() - cpu_began
        ratios.append(bare_seconds / ingest_seconds)
        cpu_ratios.append(bare_cpu / ingest_cpu)
        print(
            f"{number + 1:>5} {len(texts):>7} {len(texts) / ingest_seconds:>9.1f} "
            f"{len(texts) / bare_seconds:>9.1f} {ratios[-1]:>7.0%} {cpu_ratios[-1]:>7.0%}"
        )
    of_clock, of_cpu = statistics.median(ratios), statistics.median(cpu_ratios)
    print(f"median share {of_clock:.0%} of the clock, {of_cpu:.0%} of processor time")


if __name__ == "__main__":
    main()

"""Groundnote beside other retrieval libraries, quiet and with neighbours that burn a core each.

    python -m benchmarks.busy --data DIR [--peers PYTHON] [--files 300] [--rounds 1]

PYTHON is an interpreter that has txtai, langchain-chroma, langchain-huggingface and llama-index
(with its Chroma and Hugging Face parts) besides what Groundnote needs; without it only Groundnote
is measured. All read the same manuals with the same weights, one after the other; the ratios count.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from benchmarks.corpora import data_option, rows_of
from benchmarks.peers import PRODUCTS
from benchmarks.turn import neighbours, questions

COLUMNS = ("ready", "ready_cpu", "files", "files_cpu", "p50", "p95", "cpu", "memory")
HEADS = ("ready s", "CPU s", "files/s", "files/CPU s", "query p50", "p95 ms", "CPU ms", "MiB")


def write_files(data: Path, folder: Path, count: int) -> None:
    """Sections of manuals, a file each."""
    rows = rows_of(data / "samsung_manuals" / "corpus.jsonl.gz")
    for number, row in zip(range(count), rows, strict=False):
        text = f"# {row['product']}\n\n## {row['title']}\n\n{row['text']}\n"
        (folder / f"section-{number:05}.md").write_text(text, encoding="utf-8")


def one(python: str, name: str, folder: Path, asked: Path) -> dict[str, float]:
    """The figures of a product in a process of its own."""
    command = [python, "-m", "benchmarks.peers", name, str(folder), str(asked)]
    known = os.environ | {"HF_HUB_OFFLINE": "1", "ANONYMIZED_TELEMETRY": "False"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=known)
    if done.returncode:
        raise click.ClickException(f"{name}: {done.stderr.strip()[-400:]}")
    figures: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


@click.command()
@data_option
@click.option("--peers", help="An interpreter that has the other libraries.")
@click.option("--files", default=300, show_default=True)
@click.option("--question-count", default=40, show_default=True)
@click.option("--rounds", default=1, show_default=True)
def main(data: Path, peers: str | None, files: int, question_count: int, rounds: int) -> None:
    """Print a table: medians over the rounds."""
    names = list(PRODUCTS) if peers else ["groundnote"]
    with tempfile.TemporaryDirectory() as place:
        folder, asked = Path(place) / "files", Path(place) / "questions.json"
        folder.mkdir()
        write_files(data, folder, files)
        asked.write_text(json.dumps(questions(data, question_count)), encoding="utf-8")
        one(sys.executable, "groundnote", folder, asked)  # the model is converted once
        print(f"{'neighbours':>10} {'product':>11} " + " ".join(f"{h:>11}" for h in HEADS))
        for count in (0, 2):
            with neighbours(count):
                found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
                for _ in range(rounds):
                    for name in names:
                        python = sys.executable if name == "groundnote" else str(peers)
                        found[name].append(one(python, name, folder, asked))
            for name, rows in found.items():
                medians = [statistics.median(row[column] for row in rows) for column in COLUMNS]
                print(f"{count:>10} {name:>11} " + " ".join(f"{m:>11.2f}" for m in medians))


if __name__ == "__main__":
    main()

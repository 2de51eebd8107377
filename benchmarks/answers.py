"""Extractive answers against people's: wording, first citation, and when to decline.

    python -m benchmarks.answers [--data DIR] [--sample N] [--cache DIR] [--more]

Manuals (`emanual`, `anthropic_docs`) are searched as an installation would. For declining, each
question comes with the passage it was judged with (`clapnq`, `inscit`), or, where nothing answers
it, with what retrieval finds (`mtrag`). Only development parts are read. Nearly all of the time
goes into embedding pieces; `--cache` keeps their vectors, so that a changed writer is measured in
a minute.
"""

import hashlib
import random
import re
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from benchmarks.corpora import Entry, data_option, judged, rows_of
from benchmarks.retrieval import Installation
from rag.answers.extractive import ExtractiveWriter
from rag.citations.markers import cited_numbers
from rag.records import Hit, Source
from rag.retrieval.embed import LocalEmbedder
from rag.seams import Embedder, Matrix, WriteRequest

SOURCES = 8
_MARKER = re.compile(r"\[\d+\]")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its sources, and whether they answer it."""

    question: str
    sources: tuple[Source, ...]
    relevance: Mapping[int, float]
    answerable: bool = True


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of one question of a manual."""

    f1: float
    cites_gold: bool
    declined: bool


class KnownTexts:
    """An embedder that remembers each text's vector, in a folder if one is named.

    Other than whole batches, texts are met again after a change of what is embedded together.
    """

    def __init__(self, embedder: Embedder, folder: Path | None) -> None:
        self._embedder = embedder
        self._path = folder / "vectors.npz" if folder else None
        self._vectors: dict[str, Matrix] = {}
        self._is_new = False
        self.name, self.dimensions = embedder.name, embedder.dimensions
        self.max_tokens = embedder.max_tokens
        self.count_tokens = embedder.count_tokens
        if self._path and self._path.exists():
            with np.load(self._path) as kept:
                self._vectors = dict(zip(kept["keys"].tolist(), kept["vectors"], strict=True))

    def embed(self, texts: Sequence[str]) -> Matrix:
        keys = [self._key(text) for text in texts]
        missing = {k: t for k, t in zip(keys, texts, strict=True) if k not in self._vectors}
        if missing:
            found = self._embedder.embed(list(missing.values()))
            self._vectors.update(zip(missing, found, strict=True))
            self._is_new = True
        return np.array([self._vectors[key] for key in keys], dtype=np.float32)

    def _key(self, text: str) -> str:
        return hashlib.sha256(f"{self.name}\0{text}".encode("utf-8", "replace")).hexdigest()[:32]

    def save(self) -> None:
        """Write what is known, if anything is new."""
        if self._path and self._is_new:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            vectors = np.array(list(self._vectors.values()), dtype=np.float32)
            np.savez(self._path, keys=list(self._vectors), vectors=vectors)
            self._is_new = False


def source_of(number: int, hit: Hit) -> Source:
    """A hit as a session would register it."""
    chunk = hit.chunk
    return Source(
        number=number,
        chunk_id=chunk.id,
        document_id=chunk.document_id,
        document_name=chunk.document_name,
        document_title=chunk.document_title,
        locator=chunk.locator,
        heading_path=chunk.heading_path,
        text=chunk.text,
        passage=hit.passage,
        content_hash="",
    )


def asked_with(question: str, hits: Sequence[Hit], *, answerable: bool = True) -> Asked:
    """A question with what retrieval found for it."""
    sources = tuple(source_of(number, hit) for number, hit in enumerate(hits, start=1))
    relevance = {number: hit.relevance for number, hit in enumerate(hits, start=1)}
    return Asked(question, sources, relevance, answerable)


def given(question: str, passages: Iterable[tuple[str, str]], *, answerable: bool) -> Asked:
    """A question with passages (title, text) that people judged."""
    sources = tuple(
        Source(number, f"c{number}", title, title, title, "", (), text, text, "")
        for number, (title, text) in enumerate(passages, start=1)
    )
    return Asked(question, sources, {}, answerable)


def answer_of(writer: ExtractiveWriter, asked: Asked) -> str:
    """The whole answer."""
    request = WriteRequest(asked.question, asked.sources, (), 1_000, relevance=asked.relevance)
    return "".join(delta.text for delta in writer.write(request))


# ── Manuals ──────────────────────────────────────────────────────────────────────────────────


def manual(data: Path, name: str, embedder: Embedder, sample: int) -> list[Judged]:
    """Every question of a set (or a sample), searched and answered."""
    corpus = judged(data, name)
    answers = {row["id"]: row["answer"] for row in rows_of(data / name / "dev" / "queries.jsonl")}
    writer = ExtractiveWriter(embedder)
    with tempfile.TemporaryDirectory() as folder:
        place = Installation(Path(folder), embedder)
        place.ingest(corpus.entries)
        found = []
        for query in _sampled(sorted(corpus.queries), sample):
            hits = place.retriever.search(corpus.queries[query], limit=SOURCES)
            asked = asked_with(corpus.queries[query], hits)
            text = answer_of(writer, asked)
            found.append(
                Judged(
                    token_f1(text, answers[query]),
                    _first_cited(text, asked) in corpus.judgments.get(query, {}),
                    writer.declined(text),
                )
            )
        place.index.close()
    return found


def _sampled(keys: Sequence[str], size: int) -> list[str]:
    if not size or size >= len(keys):
        return list(keys)
    return random.Random(7).sample(keys, size)


def _first_cited(text: str, asked: Asked) -> str:
    numbers = cited_numbers(text)
    documents = {source.number: source.document_name for source in asked.sources}
    return documents.get(numbers[0], "") if numbers else ""


def token_f1(one: str, other: str) -> float:
    """Agreement of two texts as bags of words, markers left out."""
    bags = [Counter(re.findall(r"[^\W_]+", _MARKER.sub("", text.lower()))) for text in (one, other)]
    shared = sum((bags[0] & bags[1]).values())
    return 2 * shared / sum(map(Counter.total, bags)) if shared else 0.0


# ── Declining ────────────────────────────────────────────────────────────────────────────────


def clapnq(data: Path) -> Iterator[Asked]:
    """Questions with one passage each, half of them about the subject but without the answer."""
    for row in rows_of(data / "clapnq" / "dev" / "answers.jsonl"):
        passages = [(p["title"], " ".join(p["sentences"])) for p in row["passages"]]
        yield given(row["text"], passages, answerable=row["answerable"])


def inscit(data: Path) -> Iterator[Asked]:
    """First turns with the passages that people answered from, and with those of another."""
    texts = {row["id"]: row for row in rows_of(data / "inscit" / "corpus.jsonl")}
    turns = [row for row in rows_of(data / "inscit" / "dev" / "turns.jsonl") if row["turn"] == 1]
    evidence = [_evidence(turn, texts) for turn in turns]
    for place, turn in enumerate(turns):
        other = evidence[(place + 1) % len(turns)]
        for passages, answerable in ((evidence[place], True), (other, False)):
            if passages:
                yield given(turn["question"], passages, answerable=answerable)


def _evidence(turn: Mapping[str, list], texts: Mapping[str, Mapping]) -> list[tuple[str, str]]:
    names = {name for label in turn["labels"] for name in label["evidence"] if name in texts}
    return [(texts[name]["title"], texts[name]["text"]) for name in sorted(names)[:SOURCES]]


def mtrag(data: Path, embedder: Embedder, sample: int) -> Iterator[Asked]:
    """Last turns without an answer in the library, with a tenth of it to be found."""
    folder = data / "mtrag"
    for domain in ("cloud", "clapnq"):
        rows = [
            row for row in rows_of(folder / "dev" / "un_tasks.jsonl") if row["domain"] == domain
        ]
        wanted = {key for row in rows for key in row["qrels"]}
        entries = [
            Entry(str(row["id"]), row.get("title", ""), row["text"])
            for row in rows_of(folder / f"corpus_{domain}.jsonl.gz")
        ]
        kept = [entry for entry in entries if entry.id in wanted]
        kept += random.Random(7).sample(entries, min(sample, len(entries)))
        with tempfile.TemporaryDirectory() as place:
            found = Installation(Path(place), embedder)
            found.ingest({entry.id: entry for entry in kept}.values())
            for row in rows:
                if row["answerability"] in ("ANSWERABLE", "UNANSWERABLE"):
                    hits = found.retriever.search(row["question"], limit=SOURCES)
                    answerable = row["answerability"] == "ANSWERABLE"
                    yield asked_with(row["question"], hits, answerable=answerable)


@dataclass(frozen=True, slots=True)
class Decisions:
    """How often a writer answered what is answerable, and declined what is not."""

    answered: float
    declined: float
    count: int

    @property
    def balanced(self) -> float:
        return (self.answered + self.declined) / 2


def decisions(writer: ExtractiveWriter, questions: Iterable[Asked]) -> Decisions:
    """The two shares over some questions."""
    rights: dict[bool, list[bool]] = {True: [], False: []}
    for asked in questions:
        declined = writer.declined(answer_of(writer, asked))
        rights[asked.answerable].append(declined != asked.answerable)
    shares = [statistics.mean(rights[kind]) if rights[kind] else 0.0 for kind in (True, False)]
    return Decisions(shares[0], shares[1], sum(map(len, rights.values())))


@click.command()
@data_option
@click.option("--sample", default=0, help="So many questions of each manual; 0 for all.")
@click.option("--more", is_flag=True, help="Also inscit and mtrag.")
@click.option("--cache", type=click.Path(path_type=Path), help="Keep vectors here between runs.")
def main(data: Path, sample: int, more: bool, cache: Path | None) -> None:
    """Measure the extractive writer on public sets."""
    embedder = KnownTexts(LocalEmbedder(), cache)
    print(f"{'manual':16}{'questions':>10}{'F1':>8}{'first cited':>13}{'declined':>10}")
    for name in ("emanual", "anthropic_docs"):
        found = manual(data, name, embedder, sample)
        embedder.save()
        shares = [
            statistics.mean(values)
            for values in zip(*((j.f1, j.cites_gold, j.declined) for j in found), strict=True)
        ]
        row = f"{name:16}{len(found):10}{shares[0]:8.3f}{shares[1]:13.3f}{shares[2]:10.3f}"
        print(row, flush=True)

    print(f"\n{'decisions':16}{'questions':>10}{'answered':>10}{'declined':>10}{'balanced':>10}")
    sets = {"clapnq": clapnq(data)}
    if more:
        sets |= {"inscit": inscit(data), "mtrag": mtrag(data, embedder, 2_000)}
    for name, questions in sets.items():
        made = decisions(ExtractiveWriter(embedder), questions)
        embedder.save()
        print(
            f"{name:16}{made.count:10}{made.answered:10.3f}{made.declined:10.3f}"
            f"{made.balanced:10.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()

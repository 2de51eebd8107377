"""nDCG@10 of words alone, vectors alone, three lines of arithmetic and ours, on public sets.

Everything is the real thing: chunks as an ingest cuts them, SQLite's FTS5 or PostgreSQL's text
search, Chroma, the packaged embedding models. A judged document scores as its best chunk; copies
that we show once are found with the one that is shown.
`--check` fails where ours is below the best of these
by more than chance. `--latency` times searches instead.
"""

import hashlib
import re
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import numpy as np
from ir_measures import RR, Measure, Qrel, ScoredDoc, iter_calc, nDCG
from sqlalchemy import create_engine, make_url, text

from benchmarks.baselines import BASELINES, DEPTH, Baselines, compared, falls_behind
from benchmarks.corpora import (
    Corpus,
    Entry,
    chunks_of,
    data_option,
    distractors,
    judged,
    known_items,
    multilingual,
    packaged,
    sampled,
    section_of,
    xquad,
)
from rag.db import migrate, open_engine
from rag.documents.chunking import document_id_for
from rag.documents.store import SqlDocumentStore
from rag.documents.store_rows import StoredDocument
from rag.records import DEFAULT_COLLECTION, EVERYTHING, Chunk, Document
from rag.seams import Embedder, Matrix
from rag.search.hybrid import HybridRetriever
from rag.search.lexical import LexicalIndex
from rag.search.multilingual import MultilingualVectors
from rag.search.vectors import ChromaIndex

SETS = ("emanual", "anthropic_docs", "cranfield", "scifact", "nfcorpus")
EXTRA = ("xquad-en-en", "xquad-de-en", "xquad-zh-zh", "zigbee_devices", "emanual+siblings")
SYSTEMS = (*BASELINES, "ours")
AT_ONCE = 64  # texts of a file in the cache, as the second model embeds them
OTHERS = 300  # documents beside those that are judged for a sample of questions


class CachingEmbedder:
    """Vectors kept in a folder between runs; what is new goes to the real model.

    Some at a time, so that a run that was ended has not lost what it had.
    """

    def __init__(self, embedder: Embedder, folder: Path | None) -> None:
        self._embedder = embedder
        self.folder = folder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def embed(self, texts: Sequence[str]) -> Matrix:
        if self.folder is None or len(texts) < 2:
            return self._embedder.embed(texts)
        self.folder.mkdir(parents=True, exist_ok=True)
        starts = range(0, len(texts), AT_ONCE)
        return np.concatenate([self._part(texts[start : start + AT_ONCE]) for start in starts])

    def _part(self, texts: Sequence[str]) -> Matrix:
        key = hashlib.sha256("\0".join((self.name, *texts)).encode("utf-8", "replace"))
        path = self.folder / f"{key.hexdigest()[:32]}.npy"
        if not path.exists():
            np.save(path, self._embedder.embed(texts))
        vectors: Matrix = np.load(path)
        return vectors


class Installation:
    """A corpus in a fresh database and vector index, as an ingest leaves them."""

    def __init__(self, folder: Path, embedder: Embedder, database_url: str | None = None) -> None:
        engine = open_engine(database_url or f"sqlite:///{folder / 'bench.db'}")
        migrate(engine)
        self.embedder = embedder
        self.engine = engine
        self.store = SqlDocumentStore(engine)
        self.lexical = LexicalIndex(engine)
        self.index = ChromaIndex(embedder.name, directory=folder / "chroma")
        cache = embedder.folder if isinstance(embedder, CachingEmbedder) else None
        self.second = MultilingualVectors(engine, CachingEmbedder(multilingual(), cache))
        self.copies: dict[str, list[str]] = {}  # chunks that are shown once, by their words
        parts = embedder, self.index, self.lexical, self.store
        self.retriever = HybridRetriever(*parts, second=self.second)

    def ingest(self, entries: Iterable[Entry], collection_id: str = DEFAULT_COLLECTION) -> int:
        """Store the entries and index their chunks; returns how many chunks."""
        stored = [
            _document(entry, chunks_of(entry, self.embedder), collection_id) for entry in entries
        ]
        self.store.replace_all(stored)
        chunks = [chunk for document in stored for chunk in document.chunks]
        for chunk in chunks:
            self.copies.setdefault(_words(chunk), []).append(chunk.id)
        vectors = self.embedder.embed([chunk.embedded_text for chunk in chunks])
        self.index.add([chunk.id for chunk in chunks], vectors, [collection_id] * len(chunks))
        for _ in self.second.make_missing():
            pass
        return len(chunks)

    def rankings(self, query: str) -> dict[str, list[tuple[str, float]]]:
        """Judged documents by each system, best first."""
        plain = Baselines(self.embedder, self.index, self.lexical, self.second).rankings(query)
        ours = [
            (chunk_id, hit.score)
            for hit in self.retriever.search(query, EVERYTHING, limit=DEPTH)
            for chunk_id in self.copies[_words(hit.chunk)]
        ]
        found = (*plain.values(), ours)
        chunks = self.store.chunks([key for ranking in found for key, _ in ranking], EVERYTHING)
        best = [by_document(ranking, chunks) for ranking in found]
        return dict(zip(SYSTEMS, best, strict=True))


def _words(chunk: Chunk) -> str:
    return " ".join(re.findall(r"\w+", f"{chunk.heading}\n{chunk.text}".casefold()))


def _document(entry: Entry, chunks: Sequence[Chunk], collection_id: str) -> StoredDocument:
    title = entry.product or entry.title
    now = datetime.now(UTC)
    own_id = document_id_for(entry.id)  # ids of the sets are of any length
    record = Document(
        own_id,
        entry.id,
        title,
        "text/plain",
        "",
        len(entry.text),
        len(chunks),
        now,
        collection_id=collection_id,
    )
    own = [replace(chunk, document_id=own_id) for chunk in chunks]
    return StoredDocument(record, [section_of(entry)], own)


def by_document(
    ranking: Iterable[tuple[str, float]], chunks: dict[str, Chunk]
) -> list[tuple[str, float]]:
    """Documents in the order of their best chunks; the score is the rank's, ties cannot be."""
    documents = dict.fromkeys(chunks[key].document_name for key, _ in ranking if key in chunks)
    return [(document, 1.0 / (place + 1)) for place, document in enumerate(documents)]


@contextmanager
def database_of_its_own(server: str | None) -> Iterator[str | None]:
    """The URL of a new database on a PostgreSQL server, dropped at the end; None for SQLite."""
    if server is None:
        yield None
        return
    url = make_url(server).set(drivername="postgresql+psycopg")
    name = f"groundnote_bench_{uuid.uuid4().hex}"
    admin = create_engine(url, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
        try:
            yield url.set(database=name).render_as_string(hide_password=False)
        finally:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    admin.dispose()


def measured(
    corpus: Corpus,
    others: Iterable[Entry],
    measure: Measure,
    *,
    cache: Path | None,
    postgres: str | None,
) -> dict[str, dict[str, float]]:
    """Each system's figure for each of the queries."""
    runs: dict[str, list[ScoredDoc]] = {system: [] for system in SYSTEMS}
    with tempfile.TemporaryDirectory() as folder, database_of_its_own(postgres) as database_url:
        embedder = CachingEmbedder(packaged(), cache)
        place = Installation(Path(folder), embedder, database_url)
        place.ingest([*corpus.entries, *others])
        for query, asked in corpus.queries.items():
            for system, ranking in place.rankings(asked).items():
                runs[system].extend(ScoredDoc(query, *pair) for pair in ranking)
        place.index.close()
    qrels = [
        Qrel(query, entry, grade)
        for query, grades in corpus.judgments.items()
        for entry, grade in grades.items()
    ]
    return {
        system: {each.query_id: each.value for each in iter_calc([measure], qrels, run)}
        for system, run in runs.items()
    }


def corpus_of(data: Path, name: str) -> tuple[Corpus, Sequence[Entry], Measure]:
    """A set by name, with what else lies in the library and how it is measured.

    `scifact:100`: a hundred of its questions, over their documents and 300 others.
    """
    name, _, questions = name.partition(":")
    corpus, others, measure = _whole(data, name)
    return sampled(corpus, int(questions), OTHERS) if questions else corpus, others, measure


def _whole(data: Path, name: str) -> tuple[Corpus, Sequence[Entry], Measure]:
    if name.startswith("xquad-"):
        _, asked, written = name.split("-")
        return xquad(data, asked=asked, written=written), (), nDCG @ 10
    if name == "zigbee_devices":
        return known_items(data), (), RR @ 10
    if name == "emanual+siblings":
        return judged(data, "emanual"), distractors(data), nDCG @ 10
    return judged(data, name), (), nDCG @ 10


def latencies(data: Path, cache: Path | None, sizes: Sequence[int]) -> None:
    """Print the time of one search, the query's embedding included, by the number of chunks."""
    queries = list(judged(data, "emanual").queries.values())[:100]
    everything = [*judged(data, "emanual").entries, *distractors(data)]
    everything += [entry for name in SETS[3:] for entry in judged(data, name).entries]
    embedder = CachingEmbedder(packaged(), cache)
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            place = Installation(Path(folder), embedder)
            count = place.ingest(_entries_for(everything, size, embedder))
            times = []
            for query in queries:
                begun = time.perf_counter()
                place.retriever.search(query, EVERYTHING)
                times.append(1000 * (time.perf_counter() - begun))
            place.index.close()
        p50, p95 = np.percentile(times[5:], [50, 95])
        print(f"{count:>7} chunks: p50 {p50:6.1f} ms, p95 {p95:6.1f} ms")


def _entries_for(entries: Iterable[Entry], size: int, embedder: Embedder) -> list[Entry]:
    taken, count = [], 0
    for entry in entries:
        if count >= size:
            break
        taken.append(entry)
        count += len(chunks_of(entry, embedder))
    return taken


@click.command()
@data_option
@click.option(
    "--set",
    "names",
    multiple=True,
    help=f"One, or several; default: the five. Also {EXTRA}; scifact:99 takes 99 questions.",
)
@click.option("--cache", type=click.Path(path_type=Path), help="Keep vectors here between runs.")
@click.option("--check", is_flag=True, help="Fail where ours is surely below another.")
@click.option("--latency", is_flag=True, help="Time searches over 1 000 and 20 000 chunks.")
@click.option("--postgres", help="Search in a new database on this server instead of SQLite.")
def main(
    data: Path,
    names: tuple[str, ...],
    cache: Path | None,
    check: bool,
    latency: bool,
    postgres: str | None,
) -> None:
    """Compare ways to search on public sets."""
    if latency:
        latencies(data, cache, (1_000, 20_000))
        return
    behind: list[str] = []
    print(f"{'set':<18}{'measure':<9}" + "".join(f"{system:>9}" for system in SYSTEMS))
    for name in names or SETS:
        corpus, others, measure = corpus_of(data, name)
        scores = measured(corpus, others, measure, cache=cache, postgres=postgres)
        means = {system: float(np.mean(list(scores[system].values()))) for system in SYSTEMS}
        row = "".join(f"{means[system]:>9.3f}" for system in SYSTEMS)
        others_less = "; ".join(
            "{} {:+.3f} [{:+.3f}, {:+.3f}]".format(
                system, *compared(scores["ours"], scores[system])
            )
            for system in BASELINES
        )
        print(f"{name:<18}{measure!s:<9}{row}   ours less {others_less}", flush=True)
        best = max(SYSTEMS[:-1], key=lambda system: means[system])
        if falls_behind(scores["ours"], scores[best]):
            behind.append(f"{name}: {best}")
    if check and behind:
        raise click.ClickException(f"ours is below: {', '.join(behind)}")


if __name__ == "__main__":
    main()

"""What grows with the library: time and memory at 1k, 20k, 200k chunks and more.

    python -m benchmarks.scale [--sizes 1000,20000,200000] [--place DIR [--filled]] [--rough]
    python -m benchmarks.scale --words [--sizes N] [--postgres URL]

Texts are generated with the word frequencies of a language (Zipf) and a vocabulary that grows with
them; vectors are random around the centres of topics, so no model is needed and no time is spent
in one. Database, word index and Chroma are real.
"""

import resource
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time, sleep

import click
import numpy as np

from benchmarks.retrieval import database_of_its_own
from rag.db import migrate, open_engine
from rag.documents.store import SqlDocumentStore
from rag.documents.store_rows import StoredDocument
from rag.records import EVERYTHING, Chunk, Document, Section
from rag.seams import Matrix
from rag.search.lexical import LexicalIndex
from rag.search.vectors import HNSW
from rag.sessions.store import SqlSession
from rag.settings import Settings
from rag.web import create_app
from rag.wiring.application import Application, build

DIMENSIONS = 384
PER_DOCUMENT = 100
WORDS = 90
TOPICS = 400
SYLLABLES = ("ba", "co", "di", "fe", "gu", "ha", "ki", "lo", "mu", "ne", "pa", "ri", "so", "tu")
QUERIES = 40
ROUGH = 40  # candidates for a vector's neighbours when it is added, in place of 200


class TopicEmbedder:
    """Vectors near the topic that a text names in its first word; needs no model."""

    name = "topics"
    dimensions = DIMENSIONS
    max_tokens = 256

    def __init__(self) -> None:
        self._centres = np.random.default_rng(1).normal(size=(TOPICS, DIMENSIONS))

    def count_tokens(self, texts: list[str]) -> list[int]:
        return [len(text.split()) + 2 for text in texts]

    def embed(self, texts: list[str]) -> Matrix:
        seeds = [sum(map(ord, text)) * 31 + len(text) for text in texts]
        noise = np.stack([np.random.default_rng(s).normal(size=DIMENSIONS) for s in seeds])
        rows = self._centres[[seed % TOPICS for seed in seeds]] + noise
        unit: Matrix = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return unit


def word(number: int) -> str:
    """A word that can be said; few numbers give short ones."""
    said = ""
    while True:
        said += SYLLABLES[number % len(SYLLABLES)]
        number //= len(SYLLABLES)
        if number == 0:
            return said


def texts(count: int, seed: int) -> Iterator[str]:
    """Sentences whose words are as often as words are."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        ranks = np.minimum(random.zipf(1.3, size=WORDS), 10_000_000)
        words = [word(int(rank)) for rank in ranks]
        halves = " ".join(words[: WORDS // 2]), " ".join(words[WORDS // 2 :])
        yield f"{halves[0].capitalize()}. {halves[1].capitalize()}."


def documents(count: int, *, first: int) -> Iterator[StoredDocument]:
    """So many chunks in documents of a hundred."""
    for number in range(first, first + count // PER_DOCUMENT):
        key = f"d{number:08}"
        parts = list(texts(PER_DOCUMENT, number))
        sections, chunks = [], []
        for place, part in enumerate(parts):
            where = f"§ {place}"
            sections.append(Section(place, (f"Part {place}",), where, part))
            about = (key, f"{key}.md", f"Manual {number}", place, place, (f"Part {place}",), where)
            chunks.append(Chunk(f"{key}-{place}", *about, part, 0, len(part)))
        size = sum(map(len, parts))
        head = (key, f"{key}.md", f"Manual {number}", "text/markdown", key, size, len(chunks))
        yield StoredDocument(Document(*head, datetime.now(UTC), ()), sections, chunks)


def add(application: Application, made: Iterator[StoredDocument]) -> None:
    """As an ingest stores and indexes them."""
    while batch := list(islice(made, 10)):
        application.documents.replace_all(batch)
    application.ingestion.synchronise()


def timed(act: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds of the clock and of the processor."""
    clock, processor = perf_counter(), process_time()
    act()
    return (perf_counter() - clock) * 1000, (process_time() - processor) * 1000


def memory() -> float:
    """MiB of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def show(size: int, what: str, took: tuple[float, float]) -> None:
    """One row."""
    print(f"{size:>9} {what:>32} {took[0]:>10.1f} {took[1]:>10.1f} {memory():>8.0f}", flush=True)


def first_search(application: Application, question: str) -> None:
    """With what it begins beside itself: the words of a large library are read."""
    application.retriever.search(question, EVERYTHING)
    wait_for_words(application.retriever._lexical)


def wait_for_words(lexical: LexicalIndex) -> None:
    """Until a thread that reads the library's words is done."""
    sleep(0.1)
    while lexical._reading.locked():
        sleep(0.1)


def percentiles(size: int, what: str, acts: Iterable[Callable[[], object]]) -> None:
    """Two rows."""
    rows = np.array([timed(act) for act in acts])
    show(size, f"{what} p50", tuple(np.percentile(rows, 50, axis=0)))
    show(size, f"{what} p95", tuple(np.percentile(rows, 95, axis=0)))


def whole_turn(application: Application, session: SqlSession, question: str) -> None:
    """Until its last event; without a model."""
    for _ in application.assistant.ask(session, question):
        pass


def fill(place: Path, size: int) -> None:
    """A new library."""
    shutil.rmtree(place, ignore_errors=True)
    application = build(Settings(data_dir=place), embedder=TopicEmbedder())
    show(size, "fill", timed(lambda: add(application, documents(size, first=0))))
    application.stop()


def measure(place: Path, size: int) -> None:
    """All rows of one size but the filling."""
    opened: list[Application] = []
    settings, embedder = Settings(data_dir=place), TopicEmbedder()
    show(size, "open", timed(lambda: opened.append(build(settings, embedder=embedder))))
    [application] = opened
    show(size, "ready", timed(application.warm_up))
    questions = [" ".join(text.split()[3:11]) for text in texts(2 * QUERIES, size + 1)]
    show(size, "first search, words known", timed(lambda: first_search(application, questions[0])))
    search, session = application.retriever.search, application.store.create("benchmark")
    percentiles(size, "search", [partial(search, q, EVERYTHING) for q in questions[:QUERIES]])
    asked = [partial(whole_turn, application, session, q) for q in questions[QUERIES:]]
    percentiles(size, "turn without a model", asked)
    get = create_app(application).test_client().get
    for what, address in pages(size).items():
        get(address)
        show(size, what, timed(partial(get, address)))
    first = size // PER_DOCUMENT + 1
    made = list(documents(1000, first=first))
    show(size, "add 1,000 chunks", timed(lambda: add(application, iter(made))))

    def remove() -> None:
        for number in range(first, first + 1000 // PER_DOCUMENT):
            application.ingestion.delete(f"d{number:08}")

    show(size, "remove 1,000 chunks", timed(remove))
    application.stop()
    used = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
    print(f"{size:>9} {'on disk, MiB':>32} {used / 2**20:>10.0f}")


def pages(size: int) -> dict[str, str]:
    """Addresses by what is shown there."""
    last = size // PER_DOCUMENT - 1
    return {
        "page of documents": "/documents",
        "last page of documents": f"/documents?offset={last}",
        "documents with a word": f"/documents?q=d{last:08}",
        "page of a new conversation": "/",
    }


def asked() -> dict[str, list[str]]:
    """Queries by what their words are like; words of small rank are in nearly every chunk."""
    random = np.random.default_rng(5)

    def words(low: int, high: int, count: int) -> list[str]:
        ranks = random.choice(np.arange(low, high), size=count, replace=False)
        return [word(int(rank)) for rank in ranks]

    return {
        "eight words of a text": [" ".join(each.split()[3:11]) for each in texts(QUERIES, 421_001)],
        "three ordinary words": [" ".join(words(8, 120, 3)) for _ in range(QUERIES)],
        "three very common words": [" ".join(words(1, 12, 3)) for _ in range(QUERIES)],
        "a rare word and five": [
            " ".join([*words(3_000, 90_000, 1), *words(1, 40, 5)]) for _ in range(QUERIES)
        ],
    }


def measure_words(database_url: str, size: int) -> None:
    """Search and coverage by words alone; of a server's work the clock tells only."""
    engine = open_engine(database_url)
    migrate(engine)
    store = SqlDocumentStore(engine)
    stored = documents(size, first=0)
    while batch := list(islice(stored, 20)):
        store.replace_all(batch)
    lexical = LexicalIndex(engine)
    lexical.search("words", EVERYTHING, limit=1)
    wait_for_words(lexical)

    def search(query: str) -> None:
        found = lexical.search(query, EVERYTHING, limit=100)
        lexical.coverage(query, EVERYTHING, [chunk_id for chunk_id, _ in found[:16]])

    for what, queries in asked().items():
        rows = np.array([timed(lambda q=q: search(q)) for q in queries])
        show(size, f"{what}, p50", tuple(np.percentile(rows, 50, axis=0)))
        show(size, "p95", tuple(np.percentile(rows, 95, axis=0)))


@click.command()
@click.option("--sizes", default="1000,20000", show_default=True)
@click.option("--place", type=click.Path(path_type=Path), help="Where to keep the library.")
@click.option("--filled", is_flag=True, help="The library is there.")
@click.option("--rough", is_flag=True, help="Fill with a rougher graph of vectors, in a quarter.")
@click.option("--words", is_flag=True, help="The word index alone.")
@click.option("--postgres", help="Words in a new database on this server instead of SQLite.")
def main(
    sizes: str, place: Path | None, filled: bool, rough: bool, words: bool, postgres: str | None
) -> None:
    """Print milliseconds by the clock and of the processor, and MiB."""
    if rough:
        HNSW["ef_construction"] = ROUGH
    print(f"{'chunks':>9} {'what':>32} {'ms':>10} {'CPU ms':>10} {'MiB':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for size in map(int, sizes.split(",")):
            if words:
                with database_of_its_own(postgres) as url:
                    measure_words(url or f"sqlite:///{folder}/{size}.db", size)
                continue
            library = (place or Path(folder)) / str(size)
            if not filled:
                fill(library, size)
            measure(library, size)


if __name__ == "__main__":
    main()

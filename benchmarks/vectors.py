"""What a search costs where some collections may be read: vectors in memory beside Chroma's graph.

    python -m benchmarks.vectors [--sizes 2000,60000] [--postgresql URL] [--base FILE.npy]
    python -m benchmarks.vectors --postgresql URL --real FILE.npy [--data FOLDER] [--most 100000]

Vectors are made, in clouds as those of texts are, around random points or around the rows of a file
(vectors of real passages); processor time is what is told, of all threads and of PostgreSQL.
With a URL of an empty database with pgvector, its graph is measured instead. `--real`: passages of
the public sets, embedded once into the file (it goes on where it was), and nDCG@10 of their
questions.
"""

import argparse
import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from ir_measures import Qrel, ScoredDoc, calc_aggregate, nDCG
from sqlalchemy import Engine, create_engine, make_url, text

from benchmarks.corpora import Corpus, Entry, data_dir, judged, packaged, rows_of
from rag.records import EVERYTHING, Readable
from rag.search import vectors as module
from rag.search.pgvector import _GRAPH, PgVectorIndex
from rag.search.vectors import ChromaIndex

COLLECTIONS = 100
READABLE = (1, 10, 50, 95)  # of 100
DIMENSIONS = 384
QUERIES = 20
LIMIT = 10
JUDGED = ("emanual", "anthropic_docs", "cranfield", "scifact", "nfcorpus")
WORDS = 28  # of a real passage: a hundred thousand of a hundred words take two hours to embed
DEEP = 100  # passages, of which the entries are taken
FEW = 3  # vectors of a collection that has fewer than are asked for
MAINTENANCE = "4GB"
SIZES = (
    "SELECT pg_size_pretty(pg_table_size('chunk_vectors')), "
    "pg_size_pretty(pg_relation_size('chunk_vectors_graph'))"
)


def made(size: int, rng: Any, base: Any = None) -> Any:
    """Unit vectors around a thousand points, or around real ones as far off as those are apart."""
    centres = rng.normal(size=(1_000, DIMENSIONS)).astype(np.float32) if base is None else base
    rows = centres[rng.integers(0, len(centres), size)]
    rows = rows + rng.normal(scale=centres.std(), size=rows.shape).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def timed(index: Any, queries: Any, permitted: Any) -> tuple[float, list[set[str]]]:
    """Milliseconds of processor time a query, and what each found."""
    began = time.process_time()
    found = [index.nearest(query[None], permitted, limit=LIMIT)[0] for query in queries]
    spent = (time.process_time() - began) / len(queries) * 1000
    return spent, [{key for key, _ in each} for each in found]


def recall(found: list[set[str]], expected: list[set[str]]) -> float:
    """The part of what is nearest that was found."""
    return float(np.mean([len(f & e) / len(e) for f, e in zip(found, expected, strict=True)]))


def measure(size: int, folder: Any) -> None:
    """One line for each share of readable collections."""
    rng = np.random.default_rng(1)
    rows, queries = made(size, rng), made(QUERIES, rng)
    ids = [f"{row:08}" for row in range(size)]
    places = [str(row % COLLECTIONS) for row in range(size)]
    index = ChromaIndex("made", directory=folder)
    began = time.process_time()
    for start in range(0, size, 5_000):
        part = slice(start, start + 5_000)
        index.add(ids[part], rows[part], places[part])
    print(f"# {size}: built in {time.process_time() - began:.0f} s of processor time")
    of_place = np.array([int(place) for place in places])
    for share in READABLE:
        permitted = Readable(frozenset(str(place) for place in range(share)))
        readable = np.flatnonzero(of_place < share)
        cosines = rows[readable] @ queries.T
        best = [readable[np.argsort(-column)[:LIMIT]] for column in cosines.T]
        expected = [{ids[row] for row in each} for each in best]
        with patch.object(index._exact, "_most", 0):
            graph = timed(index, queries[:5], permitted)
        index._exact._waited_for = size  # read at once: it is not the reading that is measured
        began = time.process_time()
        index.nearest(queries[:1], permitted, limit=LIMIT)
        read = time.process_time() - began
        exact = timed(index, queries, permitted)
        memory = sum(each.halves.nbytes for each in index._exact._vectors.values()) / 2**20
        print(
            f"| {size:,} | {share} % | {exact[0]:.1f} | {recall(exact[1], expected):.3f} | "
            f"{graph[0]:.1f} | {recall(graph[1], expected[:5]):.3f} | {memory:.0f} | {read:.1f} |"
        )
    index.close()


def postgresql(size: int, url: str, base: Any) -> None:
    """One line for each share; the graph is made of all rows together, as an index is made anew."""
    rng = np.random.default_rng(1)
    rows, queries = made(size, rng, base), made(QUERIES, rng, base)
    places = rng.integers(0, 1_000, size)
    places[:FEW] = 1_000  # fewer than are asked for
    index, engine, backend = filled(url, rows, places)
    for share in (0, 1, 50, 500, 950, 1_001):
        is_readable = places < share if share else places == 1_000
        names = [f"{place:04}" for place in (range(share) if share else [1_000])]
        readable = np.flatnonzero(is_readable)
        permitted = EVERYTHING if share > 1_000 else Readable(frozenset(names))
        best = exactly(rows, queries, readable)
        began = seconds_of(backend)
        spent, found = timed(index, queries, permitted)
        spent += (seconds_of(backend) - began) / len(queries) * 1_000
        reached = recall(found, [{f"{row:08}" for row in each} for each in best])
        fewest = min(map(len, found))
        print(
            f"| {size:,} | {len(readable) / size:.4%} | {spent:.1f} | {reached:.3f} | {fewest} |",
            flush=True,
        )
    engine.dispose()


def passages(data: Path) -> Iterator[tuple[str, str, str]]:
    """Set, entry and text of a sentence or two, as they stand in the judged sets and two more."""
    of_sets = ((name, entry) for name in JUDGED for entry in judged(data, name).entries)
    others = (
        (part, Entry(str(row["id"]), row.get("title", ""), row["text"]))
        for part in ("clapnq", "cloud")
        for row in rows_of(data / f"mtrag/corpus_{part}.jsonl.gz")
    )
    seen = set[str]()
    for name, entry in chain(of_sets, others):
        for piece in pieces(f"{entry.title}.\n\n{entry.text}"):
            if piece not in seen:
                seen.add(piece)
                yield name, entry.id, piece


def pieces(content: str) -> Iterator[str]:
    """Sentences together, up to so many words; a long one is cut."""
    held: list[str] = []
    for sentence in re.split(r"(?<=[.!?])\s+|\n\n+", content):
        words = sentence.split()
        if held and len(held) + len(words) > WORDS:
            yield " ".join(held)
            held = []
        while len(words) > WORDS + 8:
            yield " ".join(words[:WORDS])
            words = words[WORDS:]
        held += words
    if held:
        yield " ".join(held)


def embedded(texts: list[str], file: Path) -> Any:
    """Their vectors in half precision; those that the file has are read."""
    before = np.load(file) if file.exists() else np.empty((0, DIMENSIONS), np.float16)
    parts, model = [before[: len(texts)]], packaged()
    for start in range(len(before), len(texts), 1_024):
        parts.append(model.embed(texts[start : start + 1_024]).astype(np.float16))
        np.save(file, np.concatenate(parts))
    return np.concatenate(parts).astype(np.float32)


def graded(url: str, data: Path, file: Path, most: int) -> None:
    """nDCG@10 of each set's questions over all passages, and over its own collection's."""
    rows = list(islice(passages(data), most))
    vectors = embedded([text for _, _, text in rows], file)
    names = [name for name, _, _ in rows]
    places = np.array([JUDGED.index(name) if name in JUDGED else len(JUDGED) for name in names])
    index, engine, _ = filled(url, vectors, places)
    print(
        "| set | questions | readable | exact | pgvector | recall@10 |\n|---|---|---|---|---|---|"
    )
    for place, name in enumerate(JUDGED):
        corpus = judged(data, name)
        asked = packaged().embed(list(corpus.queries.values()))
        own = Readable(frozenset({f"{place:04}"}))
        for permitted, readable in (
            (EVERYTHING, np.arange(len(rows))),
            (own, np.flatnonzero(places == place)),
        ):
            best = exactly(vectors, asked, readable, limit=DEEP)
            found = [index.nearest(each[None], permitted, limit=DEEP)[0] for each in asked]
            keys = [[int(key) for key, _ in each] for each in found]
            reached = recall([{*each[:LIMIT]} for each in keys], [{*each[:LIMIT]} for each in best])
            exact, ours = (ndcg(corpus, rows, each) for each in (best, keys))
            print(
                f"| {name} | {len(asked)} | {len(readable):,} | {exact:.3f} | {ours:.3f} | "
                f"{reached:.3f} |",
                flush=True,
            )
    engine.dispose()


def ndcg(corpus: Corpus, rows: Any, found: Iterable[Iterable[int]]) -> float:
    """An entry stands where its nearest passage does."""
    run = [
        ScoredDoc(query, entry, -float(rank))
        for query, nearest in zip(corpus.queries, found, strict=True)
        for rank, entry in enumerate(dict.fromkeys(":".join(rows[row][:2]) for row in nearest))
    ]
    grades = [
        Qrel(query, f"{corpus.name}:{entry}", grade)
        for query, judgments in corpus.judgments.items()
        for entry, grade in judgments.items()
    ]
    return float(calc_aggregate([nDCG @ 10], grades, run)[nDCG @ 10])


def exactly(rows: Any, queries: Any, readable: Any, *, limit: int = LIMIT) -> list[Any]:
    """The nearest rows of each query, nearest first, by comparing with each."""
    parts = np.array_split(readable, 1 + len(readable) // 50_000)
    cosines = np.concatenate(
        [rows[part].astype(np.float16).astype(np.float32) @ queries.T for part in parts]
    )
    return [readable[np.argsort(-column)[:limit]] for column in cosines.T]


def filled(url: str, rows: Any, places: Any) -> tuple[PgVectorIndex, Engine, int]:
    """An index of these rows, its engine, and the server's process that it talks with."""
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"), pool_size=1)
    index = PgVectorIndex("made", engine)
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE IF EXISTS chunk_vectors, chunks CASCADE"))
        connection.execute(text("CREATE TABLE chunks (id varchar(40) PRIMARY KEY)"))
        backend = int(connection.scalar(text("SELECT pg_backend_pid()")) or 0)
    index._create(DIMENSIONS)
    began = time.monotonic()
    with engine.begin() as connection:
        for statement in (
            "ALTER TABLE chunk_vectors DROP CONSTRAINT chunk_vectors_chunk_id_fkey",
            "DROP INDEX chunk_vectors_graph",
        ):
            connection.execute(text(statement))
        cursor: Any = connection.connection.cursor()
        with cursor.copy("COPY chunk_vectors FROM STDIN (FORMAT BINARY)") as copied:
            copied.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
            for start in range(0, len(rows), 10_000):
                part = slice(start, start + 10_000)
                copied.write(tuples(start, rows[part], places[part]))
            copied.write(b"\xff\xff")
    print(f"# {len(rows):,} written in {time.monotonic() - began:.0f} s", flush=True)
    began, spent = time.monotonic(), seconds_of(backend)
    with engine.begin() as connection:
        connection.execute(text(f"SET LOCAL maintenance_work_mem = '{MAINTENANCE}'"))
        connection.execute(text(_GRAPH.format("chunk_vectors")))
        sizes = connection.execute(text(SIZES)).one()
    spent = seconds_of(backend) - spent
    print(
        f"# graph in {time.monotonic() - began:.0f} s, of which the leading process worked "
        f"{spent:.0f}; table {sizes[0]}, graph {sizes[1]}, maintenance_work_mem {MAINTENANCE}",
        flush=True,
    )
    with engine.begin() as connection:
        connection.execute(text("ANALYZE chunk_vectors"))
    return index, engine, backend


def tuples(first: int, rows: Any, places: Any) -> bytes:
    """Rows as COPY takes them in binary: formatting numbers would take longer than the graph."""
    fields = [("count", ">i2"), ("a", ">i4"), ("id", "S8"), ("b", ">i4"), ("place", "S4")]
    fields += [("c", ">i4"), ("dimensions", ">i2"), ("unused", ">i2")]
    form = np.dtype([*fields, ("vector", ">f2", (DIMENSIONS,))])
    table = np.zeros(len(rows), form)
    table["count"], table["a"], table["b"] = 3, 8, 4
    table["c"], table["dimensions"] = 4 + 2 * DIMENSIONS, DIMENSIONS
    table["id"] = [f"{first + row:08}" for row in range(len(rows))]
    table["place"] = [f"{place:04}" for place in places]
    table["vector"] = rows
    return table.tobytes()


def seconds_of(process: int) -> float:
    """Of processor time that a process of this machine has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="2000,60000")
    parser.add_argument("--postgresql", default="")
    parser.add_argument("--base", type=Path)
    parser.add_argument("--real", type=Path)
    parser.add_argument("--data", type=Path, default=data_dir())
    parser.add_argument("--most", type=int, default=100_000)
    given = parser.parse_args()
    if given.real:
        graded(given.postgresql, given.data, given.real, given.most)
        return
    base = np.load(given.base).astype(np.float32) if given.base else None
    sizes = [int(each) for each in given.sizes.split(",")]
    if given.postgresql:
        print("| vectors | readable | ms | recall@10 | fewest hits |")
        print("|---|---|---|---|---|")
        for size in sizes:
            postgresql(size, given.postgresql, base)
        return
    print("| vectors | readable | in memory, ms | recall | Chroma, ms | recall | MiB | read, s |")
    print("|---|---|---|---|---|---|---|---|")
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder, patch.object(module, "MOST_OF_ALL", 0):
            measure(size, Path(folder))


if __name__ == "__main__":
    main()

"""What a search costs where some collections may be read: vectors in memory beside Chroma's graph.

    python -m benchmarks.vectors [--sizes 2000,60000] [--postgresql URL] [--base FILE.npy]

Vectors are made, in clouds as those of texts are, around random points or around the rows of a file
(vectors of real passages); processor time is what is told, of all threads and of PostgreSQL.
With a URL of an empty database with pgvector, its graph is measured instead.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from sqlalchemy import create_engine, make_url, text

from rag.records import EVERYTHING, Readable
from rag.search import vectors as module
from rag.search.pgvector import _GRAPH, PgVectorIndex, _text
from rag.search.vectors import ChromaIndex

COLLECTIONS = 100
READABLE = (1, 10, 50, 95)  # of 100
DIMENSIONS = 384
QUERIES = 20
LIMIT = 10


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
        memory = sum(each.halves.nbytes for each in index._exact._held.values()) / 2**20
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
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"), pool_size=1)
    index = PgVectorIndex("made", engine)
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE IF EXISTS chunk_vectors, chunks CASCADE"))
        connection.execute(text("CREATE TABLE chunks (id varchar(40) PRIMARY KEY)"))
        backend = int(connection.scalar(text("SELECT pg_backend_pid()")))
    index._create(DIMENSIONS)
    began = time.monotonic()
    with engine.begin() as connection:
        for statement in (
            "ALTER TABLE chunk_vectors DROP CONSTRAINT chunk_vectors_chunk_id_fkey",
            "DROP INDEX chunk_vectors_graph",
            "SET LOCAL maintenance_work_mem = '1500MB'",
        ):
            connection.execute(text(statement))
        with connection.connection.cursor().copy("COPY chunk_vectors FROM STDIN") as copied:
            for number, row in enumerate(rows):
                copied.write_row((f"{number:08}", f"{places[number]:04}", _text(row)))
        connection.execute(text(_GRAPH))
        connection.execute(text("ANALYZE chunk_vectors"))
    print(f"# {size:,}: written and its graph made in {time.monotonic() - began:.0f} s", flush=True)
    halves = rows.astype(np.float16)
    for share in (1, 50, 500, 950, 1_000):
        readable = np.flatnonzero(places < share)
        cosines = np.concatenate(
            [part.astype(np.float32) @ queries.T for part in np.array_split(halves[readable], 20)]
        )
        best = [readable[np.argsort(-column)[:LIMIT]] for column in cosines.T]
        permitted = Readable(frozenset(f"{place:04}" for place in range(share)))
        permitted = EVERYTHING if share == 1_000 else permitted
        began = seconds_of(backend)
        spent, found = timed(index, queries, permitted)
        spent += (seconds_of(backend) - began) / len(queries) * 1_000
        reached = recall(found, [{f"{row:08}" for row in each} for each in best])
        fewest = min(map(len, found))
        print(
            f"| {size:,} | {share / 10:g} % | {spent:.1f} | {reached:.3f} | {fewest} |", flush=True
        )
    engine.dispose()


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
    given = parser.parse_args()
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

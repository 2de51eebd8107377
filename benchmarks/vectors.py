"""What a search costs where some collections may be read: vectors in memory beside Chroma's graph.

    python -m benchmarks.vectors [--sizes 2000,60000]

Vectors are made, in clusters as those of texts are; processor time is what is told, of all threads.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from rag.records import Readable
from rag.search import vectors as module
from rag.search.vectors import ChromaIndex

COLLECTIONS = 100
READABLE = (1, 10, 50, 95)  # of 100
DIMENSIONS = 384
QUERIES = 20
LIMIT = 10


def made(size: int, rng: Any) -> Any:
    """Unit vectors around a thousand points."""
    centres = rng.normal(size=(1_000, DIMENSIONS)).astype(np.float32)
    rows = centres[rng.integers(0, 1_000, size)]
    rows += rng.normal(size=rows.shape).astype(np.float32)
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


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="2000,60000")
    sizes = [int(each) for each in parser.parse_args().sizes.split(",")]
    print("| vectors | readable | in memory, ms | recall | Chroma, ms | recall | MiB | read, s |")
    print("|---|---|---|---|---|---|---|---|")
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder, patch.object(module, "MOST_OF_ALL", 0):
            measure(size, Path(folder))


if __name__ == "__main__":
    main()

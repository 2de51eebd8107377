"""Searching one of 200 collections beside searching the same documents in a library of their own.

    python -m benchmarks.collections [--set emanual] [--cache DIR]

nDCG@10 and CPU time of a search (its query's embedding left out) with the same queries: the set's
documents alone; as one collection beside 199 others, which are dealt sections of other sets; for
who may read three, and all of these; and in the crowded library without a filter. What a search
takes for a word that only others' documents hold is told beside that for a word that none holds.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click
import numpy as np
from ir_measures import Qrel, ScoredDoc, calc_aggregate, nDCG

from benchmarks.corpora import Corpus, Entry, data_option, distractors, judged, packaged
from benchmarks.retrieval import CachingEmbedder, Installation, by_document
from rag.documents.collections import Collections
from rag.records import EVERYTHING, Readable
from rag.seams import Matrix

COLLECTIONS = 200
OTHERS = ("cranfield", "emanual")
QUERIES = 100
GUESSED = 200  # words for each kind of the timing
DEPTH = 100


class Remembering:
    """Embeds each text once: what is timed is the search."""

    def __init__(self, embedder: CachingEmbedder) -> None:
        self._embedder = embedder
        self._known: dict[str, np.ndarray] = {}
        self.name, self.dimensions = embedder.name, embedder.dimensions
        self.max_tokens, self.count_tokens = embedder.max_tokens, embedder.count_tokens

    def embed(self, texts: Sequence[str]) -> Matrix:
        if len(texts) > 1:
            return self._embedder.embed(texts)
        if texts[0] not in self._known:
            self._known[texts[0]] = self._embedder.embed(texts)
        return self._known[texts[0]]


@dataclass(frozen=True, slots=True)
class Library:
    """Somewhere to search, and what was measured there."""

    name: str
    place: Installation
    readable: Readable
    ours: list[ScoredDoc] = field(default_factory=list)
    words: list[ScoredDoc] = field(default_factory=list)
    times: list[float] = field(default_factory=list)  # CPU ms of each search

    def search(self, asked: str) -> float:
        return _cpu(lambda: self.place.retriever.search(asked, self.readable, limit=10))

    def judge(self, query: str, asked: str) -> None:
        """Keep what is found, for nDCG."""
        found = self.place.lexical.search(asked, self.readable, limit=DEPTH)
        chunks = self.place.store.chunks([key for key, _ in found], self.readable)
        deep = self.place.retriever.search(asked, self.readable, limit=DEPTH)
        known = {hit.chunk.id: hit.chunk for hit in deep}
        ranking = [(hit.chunk.id, hit.score) for hit in deep]
        self.ours.extend(ScoredDoc(query, *pair) for pair in by_document(ranking, known))
        self.words.extend(ScoredDoc(query, *pair) for pair in by_document(found, chunks))


def measure(libraries: Sequence[Library], corpus: Corpus) -> None:
    """Ask each the same, in turn, so that all have the same share of a loaded machine."""
    asking = dict(list(corpus.queries.items())[:QUERIES])
    for query, asked in asking.items():  # what is kept between searches is read here
        for library in libraries:
            library.judge(query, asked)
    for asked in asking.values():
        for library in libraries:
            library.times.append(library.search(asked))
    qrels = [
        Qrel(query, entry, grade)
        for query, grades in corpus.judgments.items()
        if query in asking
        for entry, grade in grades.items()
    ]
    at_ten, alone = nDCG @ 10, np.median(libraries[0].times)
    for each in libraries:
        ours, words = (
            calc_aggregate([at_ten], qrels, run)[at_ten] for run in (each.ours, each.words)
        )
        spent = float(np.median(each.times))
        print(
            f"{each.name:<26}{ours:>7.4f}{words:>7.4f}{spent:>8.1f}{spent / alone:>7.2f}",
            flush=True,
        )


def crowded(place: Installation, corpus: Corpus, others: Sequence[Entry]) -> list[str]:
    """The set as one collection among many; returns their ids, that one's first."""
    collections = Collections(place.engine)
    ids = [collections.create("bench", f"Number {n}").id for n in range(COLLECTIONS)]
    place.ingest(corpus.entries, ids[0])
    for at, collection_id in enumerate(ids[1:]):
        place.ingest(others[at :: COLLECTIONS - 1], collection_id)
    return ids


def guess(place: Installation, readable: Readable) -> None:
    """CPU time of a search for a word that others' documents hold, beside an unknown one's.

    Pairs are asked in turn. Were there no difference, either of a pair could be the dearer one: by
    how many of such worlds the mean difference would be as large.
    """
    own = place.lexical
    with place.engine.connect() as connection:
        held = own._words.vocabulary(connection)  # of everybody
    theirs = [word for word in held if word.isalpha() and len(word) > 4]
    theirs = [word for word in theirs if not own.holding(word, readable, limit=1)]
    pairs = [(word, word[::-1]) for word in theirs if word[::-1] not in held][:GUESSED]
    apart = []
    for theirs_, nobodys in pairs:
        spent = [
            _cpu(lambda w=w: own.search(w, readable, limit=10)) for w in (theirs_, nobodys) * 5
        ]
        apart.append(float(np.median(spent[::2]) - np.median(spent[1::2])))
    signs = np.random.default_rng(1).choice([-1, 1], size=(10_000, len(apart)))
    chance = np.mean(np.abs(signs @ apart) >= abs(np.sum(apart)))
    print(
        f"{len(apart)} words of others, each beside one of nobody: {1000 * np.mean(apart):+.1f} µs "
        f"of CPU, by chance in {100 * chance:.0f} %",
        flush=True,
    )


def _cpu(act: Callable[[], object]) -> float:
    begun = time.process_time()
    act()
    return 1000 * (time.process_time() - begun)


@click.command()
@data_option
@click.option("--set", "names", multiple=True, default=("emanual",), help="Sets to search.")
@click.option("--cache", type=click.Path(path_type=Path), help="Keep vectors here between runs.")
def main(data: Path, names: tuple[str, ...], cache: Path | None) -> None:
    """Compare a collection among many with the same documents alone."""
    for name in names:
        print(f"{name:<26}{'ours':>7}{'words':>7}{'CPU ms':>8}{'':>7}")
        corpus = judged(data, name)
        others = [*distractors(data)]  # sections of manuals of sibling products
        others += [e for each in OTHERS if each != name for e in judged(data, each).entries]
        with tempfile.TemporaryDirectory() as folder:
            roots = [Path(folder) / each for each in ("alone", "crowd")]
            for root in roots:
                root.mkdir()
            embedder = Remembering(CachingEmbedder(packaged(), cache))
            alone, crowd = (Installation(root, embedder) for root in roots)
            alone.ingest(corpus.entries)
            ids = crowded(crowd, corpus, others)
            only = Readable(frozenset(ids[:1]))
            measure(
                [
                    Library("alone", alone, EVERYTHING),
                    Library("its only collection", alone, Readable(frozenset({"1"}))),
                    Library(f"1 of {COLLECTIONS} collections", crowd, only),
                    Library(f"3 of {COLLECTIONS} collections", crowd, Readable(frozenset(ids[:3]))),
                    Library("each of them", crowd, Readable(frozenset(ids))),
                    Library("everything, crowded", crowd, EVERYTHING),
                ],
                corpus,
            )
            guess(crowd, only)
            alone.index.close()
            crowd.index.close()


if __name__ == "__main__":
    main()

"""Searching one of 200 collections beside searching the same documents in a library of their own.

    python -m benchmarks.collections [--set emanual] [--cache DIR]

nDCG@10 and CPU time of a search (its query's embedding left out) with the same queries: the set's
documents alone; as one collection beside 199 others, which are dealt sections of other sets; and,
for what it would cost otherwise, in the whole crowded library. What a search takes for a word that
only others' documents hold is told beside that for a word that none holds.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import click
import numpy as np
from ir_measures import Qrel, ScoredDoc, calc_aggregate, nDCG

from benchmarks.corpora import Corpus, Entry, data_option, distractors, judged, packaged
from benchmarks.retrieval import CachingEmbedder, Installation, by_document
from rag.documents.storing.collections import Collections
from rag.records import EVERYTHING, Within
from rag.seams import Matrix

COLLECTIONS = 200
OTHERS = ("cranfield", "emanual")
ROUNDS = 2
QUERIES = 100
GUESSED = 40  # words for each kind of the timing
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


def measured(place: Installation, corpus: Corpus, within: Within) -> tuple[float, float, float]:
    """nDCG@10 of ours and of words alone, and the median CPU time of a search in ms."""
    ours, words, times = [], [], []
    asking = dict(list(corpus.queries.items())[:QUERIES])
    for turn in range(ROUNDS):
        for query, asked in asking.items():
            begun = time.process_time()
            hits = place.retriever.search(asked, within, limit=10)
            if turn:  # the first round reads what is kept afterwards
                times.append(1000 * (time.process_time() - begun))
                continue
            found = place.lexical.search(asked, within, limit=DEPTH)
            chunks = place.store.chunks([key for key, _ in found], within)
            deep = place.retriever.search(asked, within, limit=DEPTH)
            known = {hit.chunk.id: hit.chunk for hit in [*hits, *deep]}
            ranking = [(hit.chunk.id, hit.score) for hit in deep]
            ours += [ScoredDoc(query, *pair) for pair in by_document(ranking, known)]
            words += [ScoredDoc(query, *pair) for pair in by_document(found, chunks)]
    qrels = [
        Qrel(query, entry, grade)
        for query, grades in corpus.judgments.items()
        if query in asking
        for entry, grade in grades.items()
    ]
    measure = nDCG @ 10
    return (
        calc_aggregate([measure], qrels, ours)[measure],
        calc_aggregate([measure], qrels, words)[measure],
        float(np.median(times)),
    )


def crowded(place: Installation, corpus: Corpus, others: Sequence[Entry]) -> Within:
    """The set as one collection among many; returns that one."""
    collections = Collections(place.engine)
    ids = [collections.create("bench", f"Number {n}").id for n in range(COLLECTIONS)]
    place.ingest(corpus.entries, ids[0])
    for at, collection_id in enumerate(ids[1:]):
        place.ingest(others[at :: COLLECTIONS - 1], collection_id)
    return Within(frozenset({ids[0]}))


def guessing(place: Installation, within: Within) -> tuple[float, float]:
    """Median CPU ms of a search for a word that others' documents hold, and for an unknown one."""
    own = place.lexical
    with place.engine.connect() as connection:
        held = own._words.vocabulary(connection)  # of everybody
    theirs = [word for word in held if word.isalpha() and len(word) > 4]
    theirs = [word for word in theirs if not own.holding(word, within, limit=1)][:GUESSED]
    unknown = [word[::-1] for word in theirs if word[::-1] not in held]

    spent: list[list[float]] = [[], []]
    for _ in range(ROUNDS):  # in turn, so that what is read by the one is not counted for it alone
        for pair in zip(theirs, unknown, strict=False):
            for kind, word in enumerate(pair):
                spent[kind].append(_cpu(lambda w=word: own.search(w, within, limit=10)))
    of_others, of_nobody = (float(np.median(each)) for each in spent)
    return of_others, of_nobody


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
    print(f"{'set':<16}{'library':<26}{'ours':>7}{'words':>7}{'CPU ms':>8}")
    for name in names:
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
            within = crowded(crowd, corpus, others)
            rows = {
                "alone": measured(alone, corpus, EVERYTHING),
                "its only collection": measured(alone, corpus, Within(frozenset({"1"}))),
                f"1 of {COLLECTIONS} collections": measured(crowd, corpus, within),
                f"all {COLLECTIONS} collections": measured(crowd, corpus, EVERYTHING),
            }
            for library, (ours, words, spent) in rows.items():
                print(f"{name:<16}{library:<26}{ours:>7.4f}{words:>7.4f}{spent:>8.1f}", flush=True)
            theirs, unknown = guessing(crowd, within)
            print(
                f"{name:<16}a word of others' {theirs:.2f}, of nobody's {unknown:.2f} CPU ms",
                flush=True,
            )
            alone.index.close()
            crowd.index.close()


if __name__ == "__main__":
    main()

"""What resolving follow-ups gains, without a model.

Own folders in three languages: whether the next answer shows what is asked for, and whether
questions that another document answers are taken for follow-ups. With `mtrag`: Recall@10 of the
hybrid retrieval with the raw question, with ours, and with the set's own rewrite.
"""

import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import click
import numpy as np

from benchmarks.corpora import rows_of
from benchmarks.retrieval import CachingEmbedder
from benchmarks.wordings import FOLDERS
from rag.chat.follow_ups import FollowUps, LastTurn
from rag.db import migrate, open_engine
from rag.documents.store import SqlDocumentStore
from rag.documents.store_rows import StoredDocument
from rag.records import EVERYTHING, Chunk, Document, Finished, Resolution, Section
from rag.regression.replay import Libraries
from rag.regression.report import ending
from rag.seams import Embedder, Matrix
from rag.search.embedders.local import LocalEmbedder
from rag.search.hybrid import HybridRetriever
from rag.search.lexical import LexicalIndex
from rag.settings import Settings
from rag.wiring.application import Application

DOMAINS = ("cloud", "clapnq")
HERE = Path(__file__).parent
OWN = {
    **FOLDERS,
    "francais": HERE / "follow_ups" / "francais",
}
FOREIGN = ("agency", "startup")  # folders of DIR: see benchmarks/README.md
STEPS = (3, 7)  # behind which question of the folder another one is put
LIMIT = 10
KEPT_TURNS = 10
Turns = list[tuple[str, str]]


@dataclass(frozen=True)
class Query:
    """A judged question in its conversation."""

    id: str
    text: str
    rewrite: str
    history: Turns


class PassageIndex:
    """Nearest passages by all their vectors: exact, and quick enough for some ten thousand."""

    def __init__(self, ids: Sequence[str], vectors: Matrix) -> None:
        self._ids = list(ids)
        self._rows = dict(zip(ids, vectors, strict=True))
        self._vectors = vectors

    def vectors(self, chunk_ids: Sequence[str]) -> dict[str, np.ndarray]:
        return {key: self._rows[key] for key in chunk_ids if key in self._rows}

    def nearest(
        self, vectors: Matrix, readable: object = None, *, limit: int
    ) -> list[list[tuple[str, float]]]:
        found = []
        for scores in (self._vectors @ vectors.T).T:
            best = np.argsort(-scores)[:limit]
            found.append([(self._ids[place], float(scores[place])) for place in best])
        return found


class OneByOne:
    """An embedder that remembers questions: three ways of asking share many of them."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, np.ndarray] = {}

    def embed(self, texts: Sequence[str]) -> Matrix:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known |= zip(new, self._embedder.embed(new), strict=True)
        return np.stack([self._known[text] for text in texts])


# ── Retrieval ────────────────────────────────────────────────────────────────────────────────


def retrieval(
    data: Path, domains: Sequence[str], cache: Path | None, sample: int, *, with_answers: bool
) -> None:
    """The table of recalls, one line for each set and the mean."""
    said = answers_by_question(data) if with_answers else {}
    means = []
    for domain in domains:
        queries = list(queries_of(data, domain, said))
        judgments = judgments_of(data / "mtrag" / "dev" / domain / "qrels.tsv")
        with tempfile.TemporaryDirectory() as folder:
            retriever = installed(Path(folder), cache, _sampled(data, domain, judgments, sample))
            means.append(recalls(retriever, queries, judgments))
        print(line(domain, means[-1]), flush=True)
    print(line("mean", [float(np.mean(column)) for column in zip(*means, strict=True)]))


def line(name: str, recalls: Sequence[float]) -> str:
    """Recalls, and how far ours comes on the way from raw to rewrite."""
    raw, ours, rewrite = recalls
    gap = (ours - raw) / (rewrite - raw) if rewrite > raw else float("nan")
    return f"{name:8}{raw:8.3f}{ours:8.3f}{rewrite:9.3f}{gap:9.0%}"


def recalls(
    retriever: HybridRetriever, queries: Sequence[Query], judgments: Mapping[str, set[str]]
) -> list[float]:
    """Mean Recall@10 of the raw question, of ours and of the rewrite."""
    ways: tuple[Callable[[Query], Resolution], ...] = (
        lambda query: Resolution(query.text, False, "raw", query.text),
        lambda query: FollowUps().resolve(query.text, last_of(query.history), EVERYTHING),
        lambda query: Resolution(query.rewrite, True, "rewrite", query.rewrite),
    )
    judged = [query for query in queries if judgments.get(query.id)]
    found = [[recall(retriever, way(q), judgments[q.id]) for way in ways] for q in judged]
    return [float(np.mean(column)) for column in zip(*found, strict=True)]


def last_of(history: Turns) -> LastTurn:
    """The turn before; what answered it is no document of the set."""
    return LastTurn(history[-1][0], turns=tuple(history)) if history else LastTurn()


def recall(retriever: HybridRetriever, resolution: Resolution, wanted: set[str]) -> float:
    """The share of the wanted passages among the first ten hits."""
    hits = retriever.search(
        resolution.searched or resolution.query,
        EVERYTHING,
        before=resolution.before,
        limit=LIMIT,
    )
    return len(wanted & {hit.chunk.id for hit in hits}) / len(wanted)


def _sampled(
    data: Path, domain: str, judgments: Mapping[str, set[str]], sample: int
) -> list[dict[str, Any]]:
    """All passages of a set, or the judged ones and enough others, the same each time."""
    rows = list(rows_of(data / "mtrag" / f"corpus_{domain}.jsonl.gz"))
    if not sample:
        return rows
    wanted = set().union(*judgments.values())
    others = [row for row in rows if row["id"] not in wanted]
    drawn = Random(0).sample(others, min(len(others), max(0, sample - len(wanted))))
    return [row for row in rows if row["id"] in wanted] + drawn


def installed(
    folder: Path, cache: Path | None, rows: Sequence[Mapping[str, Any]]
) -> HybridRetriever:
    """Passages in a fresh database, each one chunk, with their vectors beside it."""
    engine = open_engine(f"sqlite:///{folder / 'bench.db'}")
    migrate(engine)
    store = SqlDocumentStore(engine)
    stored = [document_of(row) for row in rows]
    store.replace_all(stored)
    chunks = [chunk for document in stored for chunk in document.chunks]
    embedder = CachingEmbedder(LocalEmbedder(), cache)
    vectors = embedder.embed([chunk.embedded_text for chunk in chunks])
    index = PassageIndex([chunk.id for chunk in chunks], vectors)
    return HybridRetriever(OneByOne(embedder), index, LexicalIndex(engine), store)


def document_of(row: Mapping[str, Any]) -> StoredDocument:
    """A passage of the set as a document of one chunk."""
    key, title, text = row["id"], row["title"], row["text"]
    chunk = Chunk(key, key, key, title, 0, 0, (), "", text, 0, len(text))
    now = datetime.now(UTC)
    record = Document(key, key, title, "text/plain", "", len(text), 1, now)
    return StoredDocument(record, [Section(0, (), "", text)], [chunk])


def queries_of(data: Path, domain: str, said: Mapping[str, str]) -> Iterator[Query]:
    """The judged questions, each with the turns before it."""
    for row in rows_of(data / "mtrag" / "dev" / domain / "queries.jsonl"):
        history = [(asked, said.get(asked.strip(), "")) for asked in row["earlier_user_turns"]]
        yield Query(row["id"], row["text"], row["rewrite"], history[-KEPT_TURNS:])


def answers_by_question(data: Path) -> dict[str, str]:
    """Answers of the set's conversations."""
    said: dict[str, str] = {}
    for row in rows_of(data / "mtrag" / "dev" / "conversations.jsonl"):
        for asked, answer in turns_of(row["turns"]):
            said[asked.strip()] = answer
    return said


def judgments_of(path: Path) -> dict[str, set[str]]:
    """The passages that answer, by query."""
    wanted: dict[str, set[str]] = {}
    for row in path.read_text(encoding="utf-8").splitlines()[1:]:
        query, passage, grade = row.split("\t")
        if int(grade) > 0:
            wanted.setdefault(query, set()).add(passage)
    return wanted


# ── Own folders ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Pair:
    """A question and the next one; `value` is what the answer to it must show, "" off topic."""

    language: str
    first: str
    then: str
    value: str


def pairs_of(folder: str, *, is_held_out: bool) -> Iterator[Pair]:
    """Follow-ups of a folder, and questions that have nothing to do with the one before.

    Held out are pairs that were written after the bounds were chosen.
    """
    name = "foreign" if folder in FOREIGN else "held_out" if is_held_out else "pairs"
    pairs = rows_of(HERE / "follow_ups" / f"{name}.jsonl")
    asked = [row for row in pairs if row["folder"] == folder]
    yield from (Pair(r["language"], r["first"], r["then"], r["value"]) for r in asked)
    facts = [row for row in rows_of(HERE / "wordings.jsonl") if row["folder"] == folder]
    alone = [] if is_held_out else [(row["wordings"][0], row["wordings"][2]) for row in facts]
    alone += dict.fromkeys((row["first"], row["first"]) for row in asked)
    for place, (first, _) in enumerate(alone):
        for step in STEPS:
            yield Pair("off topic", first, alone[(place + step) % len(alone)][1], "")


def folders_of(folders: Mapping[str, Path], *, is_held_out: bool = False, is_verbose: bool) -> None:
    """Whether the next answer shows it, first or at all, and which questions were joined."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    with tempfile.TemporaryDirectory() as place:
        libraries = Libraries(Settings(data_dir=Path(place)))
        for name, folder in folders.items():
            with libraries.copied(folder) as data, libraries.opened(data) as application:
                for pair in pairs_of(name, is_held_out=is_held_out):
                    counted = outcome(application, pair)
                    counts[pair.language] += counted
                    if is_verbose:
                        print(dict(counted), pair, file=sys.stderr)
    print("language      pairs  shown  first  joined")
    for language, count in counts.items():
        shares = [count[each] / count["pairs"] for each in ("shown", "first", "joined")]
        print(f"{language:12}{count['pairs']:7}" + "".join(f"{share:7.2f}" for share in shares))


def outcome(application: Application, pair: Pair) -> Counter[str]:
    """What became of one pair; off topic is what is answered by another document alone."""
    session = application.store.create("bench")
    ending(application.assistant.ask(session, pair.first))
    end = ending(application.assistant.ask(session, pair.then))
    if not isinstance(end, Finished) or end.message.answer is None:
        return Counter(pairs=1)
    card = end.message.answer.card
    passages = [f"{each.heading}\n{each.text}" for each in card.open] if card else []
    said = card.lead if card else end.message.content
    has = re.compile(pair.value, re.IGNORECASE).search
    if not pair.value and _document(application, pair.first) == _document(application, pair.then):
        return Counter()
    return Counter(
        pairs=1,
        shown=bool(has("\n".join([said, *passages]))),
        first=bool(has(said or "".join(passages[:1]))),
        joined=end.message.is_followup,
    )


def _document(application: Application, question: str) -> str:
    hits = application.retriever.search(question, EVERYTHING, limit=1)
    return hits[0].chunk.document_id if hits else ""


def turns_of(messages: Sequence[Mapping[str, Any]]) -> Turns:
    """Questions with their answers, "" where the set has none."""
    turns: Turns = []
    for message in messages:
        if message["role"] == "user":
            turns.append((message["text"], ""))
        elif turns:
            turns[-1] = (turns[-1][0], message["text"])
    return turns


@click.command(help=__doc__)
@click.option(
    "--data", type=click.Path(path_type=Path), help="Where `mtrag` is; none: own folders alone."
)
@click.option("--cache", type=click.Path(path_type=Path), help="Keep vectors here between runs.")
@click.option("--answers/--no-answers", default=True, help="Whether history holds the answers.")
@click.option("--domain", "domains", multiple=True, default=DOMAINS, help="Sets of mtrag.")
@click.option("--sample", type=int, default=0, help="Search among so many passages of each.")
@click.option("--folder", "folders", multiple=True, default=tuple(OWN), help="Own folders.")
@click.option(
    "--foreign", type=click.Path(path_type=Path), help="Where the handbooks of others are; alone."
)
@click.option("--held-out", is_flag=True, help="The pairs on which nothing was chosen.")
@click.option("--verbose", is_flag=True, help="What became of each pair.")
def main(
    data: Path | None,
    foreign: Path | None,
    folders: Sequence[str],
    *,
    held_out: bool,
    verbose: bool,
    **mtrag: Any,
) -> None:
    """Print both tables."""
    if foreign is not None:
        folders_of({name: foreign / name for name in FOREIGN}, is_verbose=verbose)
        return
    own = {name: OWN[name] for name in folders}
    folders_of(own, is_held_out=held_out, is_verbose=verbose)
    if data is not None:
        print("\nRecall@10    raw    ours  rewrite   of gap")
        retrieval(
            data,
            mtrag["domains"],
            mtrag["cache"],
            mtrag["sample"],
            with_answers=mtrag["answers"],
        )


if __name__ == "__main__":
    main()

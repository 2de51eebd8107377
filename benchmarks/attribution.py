"""How well the support check tells right citations from wrong ones.

Two questions: are two swapped citations of one answer noticed, and does the check agree with
experts on claims whose support they judged? Each is asked with words alone and with the packaged
embedding model.

    python -m benchmarks.attribution --data DIR [--limit N] [--lexical-only]
"""

import argparse
import gzip
import json
import os
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from rag.citations.markers import find_markers, keep_markers
from rag.citations.stating import states_something
from rag.citations.support import SupportChecker
from rag.records import Source
from rag.retrieval.embed import LocalEmbedder
from rag.text.sentences import split_sentences

DISTRACTORS = 4  # other sections that the writer was shown
LONGEST = 2_000  # characters of a passage, about what a model is shown of a chunk's surroundings


@dataclass(frozen=True, slots=True)
class Case:
    """A statement citing one of the sources that were shown; `right` is what is to be found out."""

    statement: str
    sources: Mapping[int, Source]
    cited: int
    right: bool


def rows(path: Path) -> list[dict[str, Any]]:
    """The lines of a JSON Lines file, packed or not."""
    if path.suffix == ".gz":
        return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    return [json.loads(line) for line in path.read_text().splitlines()]


def as_source(number: int, title: str, passage: str) -> Source:
    """A passage as the register would keep it."""
    return Source(
        number=number,
        chunk_id=str(number),
        document_id="d",
        document_name=title,
        document_title=title,
        locator="",
        heading_path=(),
        text=passage[:LONGEST],
        passage=passage[:LONGEST],
        content_hash="",
    )


# ── Swapped citations ────────────────────────────────────────────────────────────────────────


def swapped(folder: Path, *, extracted: bool) -> Iterator[Case]:
    """Two answers side by side, each sentence citing its section, then the other's."""
    chance = random.Random(7)
    corpus = {row["id"]: row for row in rows(folder / "corpus.jsonl")}
    gold: dict[str, str] = {}
    for line in (folder / "dev" / "qrels.tsv").read_text().splitlines()[1:]:
        query, section, _ = line.split("\t")
        gold.setdefault(query, section)
    questions = [q for q in rows(folder / "dev" / "queries.jsonl") if q["id"] in gold]
    for one, other in zip(questions, questions[1:] + questions[:1], strict=True):
        first, second = corpus[gold[one["id"]]], corpus[gold[other["id"]]]
        if first["id"] == second["id"]:
            continue
        text = first["text"] if extracted else one["answer"]
        shown = [first, second, *chance.sample(list(corpus.values()), DISTRACTORS)]
        yield from _both_ways(_one_or_two(text, chance), shown)


def _one_or_two(text: str, chance: random.Random) -> list[str]:
    sentences = [text[span.start : span.end] for span in split_sentences(text[:LONGEST])]
    telling = [s for s in sentences if len(s.split()) >= 6 and states_something(s)]
    return chance.sample(telling, min(2, len(telling)))


def _both_ways(statements: Sequence[str], shown: Sequence[Mapping[str, str]]) -> Iterator[Case]:
    sources = {n: as_source(n, row["title"], row["text"]) for n, row in enumerate(shown, start=1)}
    for statement in statements:
        yield Case(statement, sources, 1, right=True)
        yield Case(statement, sources, 2, right=False)


def altered(cases: Iterator[Case]) -> Iterator[Case]:
    """Right citations of sentences with a figure, and the same sentences with another figure."""
    for case in cases:
        figures = re.findall(r"(?<![\w.])\d+(?![\w.]*\w)", case.statement)
        if case.right and figures:
            yield case
            other = str(int(figures[-1]) * 2 + 3)
            yield replace(case, statement=case.statement.replace(figures[-1], other), right=False)


def demonstrations(path: Path) -> Iterator[Case]:
    """Answers whose authors set the markers themselves; swapped with the answer's next number."""
    for row in rows(path):
        documents = enumerate(row["documents"], start=1)
        sources = {n: as_source(n, d["title"], d["text"]) for n, d in documents}
        for span in split_sentences(row["answer"]):
            sentence = row["answer"][span.start : span.end]
            numbers = {n for marker in find_markers(sentence) for n in marker.numbers}
            others = sorted(set(sources) - numbers)
            if len(numbers) == 1 and others and numbers <= set(sources):
                statement = keep_markers(sentence, lambda _: False).text
                yield Case(statement, sources, numbers.pop(), right=True)
                yield Case(statement, sources, random.Random(statement).choice(others), right=False)


# ── Experts' judgments ───────────────────────────────────────────────────────────────────────


def expertqa(path: Path) -> Iterator[Case]:
    """Complete support against missing or incomplete support, where there is a text to read."""
    for row in rows(path):
        for claim in row["claims"]:
            if claim["support"] in ("Complete", "Incomplete", "Missing") and claim["evidence"]:
                passages = [text.partition("\n\n")[2] or text for text in claim["evidence"]]
                sources = {1: as_source(1, "", "\n\n".join(passages))}
                statement = keep_markers(claim["text"], lambda _: False).text
                yield Case(statement, sources, 1, right=claim["support"] == "Complete")


def wice(path: Path) -> Iterator[Case]:
    """Supported against not supported, in the passage of the page nearest in its words."""
    for row in rows(path):
        if row["label"] == "partially_supported":
            continue
        evidence = row["evidence"]
        said = set(row["claim"].lower().split())
        at = max(range(len(evidence)), key=lambda i: len(said & set(evidence[i].lower().split())))
        passage = "\n\n".join(evidence[max(0, at - 5) : at + 10])
        yield Case(row["claim"], {1: as_source(1, "", passage)}, 1, row["label"] == "supported")


def scifact(folder: Path) -> Iterator[Case]:
    """Supported claims against those that the cited abstract contradicts or does not carry."""
    corpus = {row["id"]: row for row in rows(folder / "corpus.jsonl.gz")}
    for row in rows(folder / "dev" / "claims.jsonl"):
        for cited in row["cited"]:
            label = row["evidence"].get(cited, {}).get("label")
            source = as_source(1, corpus[cited]["title"], corpus[cited]["text"])
            yield Case(row["text"], {1: source}, 1, right=label == "SUPPORT")


# ── Measures ─────────────────────────────────────────────────────────────────────────────────


def auc(right: Sequence[float], wrong: Sequence[float]) -> float:
    """The share of pairs in which the right citation scores higher; ties count half."""
    a, b = np.array(right)[:, None], np.array(wrong)[None, :]
    return float((a > b).mean() + (a == b).mean() / 2)


def balanced_accuracy(cases: Sequence[Case], passed: Sequence[bool]) -> float:
    """The mean of the shares of right and of wrong citations that were told as such."""
    verdicts = list(zip(cases, passed, strict=True))
    kept = [p for case, p in verdicts if case.right]
    flagged = [not p for case, p in verdicts if not case.right]
    return float(np.mean(kept) + np.mean(flagged)) / 2


def measure(cases: Sequence[Case], checker: SupportChecker) -> tuple[float, float, float]:
    """AUC, balanced accuracy at the checker's own threshold, milliseconds per case."""
    scores: list[float] = []
    passed: list[bool] = []
    started = time.perf_counter()
    for case in cases:
        checked = checker.check(f"{case.statement.rstrip()} [{case.cited}]", case.sources)
        citations = checked.citations
        scores.append(citations[-1].score or 0.0 if citations else 0.0)
        passed.append(bool(citations) and not citations[-1].verdict.is_warning)
    spent = (time.perf_counter() - started) / len(cases) * 1000
    right = [s for s, case in zip(scores, cases, strict=True) if case.right]
    wrong = [s for s, case in zip(scores, cases, strict=True) if not case.right]
    return auc(right, wrong), balanced_accuracy(cases, passed), spent


def attributed(cases: Sequence[Case], checker: SupportChecker) -> tuple[float, float, float]:
    """Of uncited sentences: the share that is given a source, of these the share that is given
    the right one, and the share that is given one when the right one was not shown."""
    right = [case for case in cases if case.right]
    given = [checker.attribute(case.statement, case.sources).citations for case in right]
    placed = [(c[0].number, case.cited) for c, case in zip(given, right, strict=True) if c]
    without = [{n: s for n, s in c.sources.items() if n != c.cited} for c in right]
    wrongly = [
        bool(checker.attribute(case.statement, others).citations)
        for case, others in zip(right, without, strict=True)
    ]
    share = len(placed) / len(right)
    return share, float(np.mean([a == b for a, b in placed])), float(np.mean(wrongly))


def sets(data: Path) -> dict[str, Callable[[], Iterator[Case]]]:
    """What is measured, by name."""
    manuals, docs = data / "emanual", data / "anthropic_docs"
    return {
        "swap emanual answers": lambda: swapped(manuals, extracted=False),
        "swap emanual sentences": lambda: swapped(manuals, extracted=True),
        "swap anthropic_docs answers": lambda: swapped(docs, extracted=False),
        "swap anthropic_docs sentences": lambda: swapped(docs, extracted=True),
        "altered figures": lambda: altered(
            chain(
                demonstrations(data / "cited_answers" / "alce_demos.jsonl"),
                swapped(docs, extracted=True),
                swapped(manuals, extracted=True),
                swapped(manuals, extracted=False),
            )
        ),
        "swap alce_demos": lambda: demonstrations(data / "cited_answers" / "alce_demos.jsonl"),
        "experts expertqa": lambda: expertqa(data / "expertqa" / "dev" / "answers.jsonl.gz"),
        "experts wice": lambda: wice(data / "wice" / "dev" / "claims.jsonl.gz"),
        "experts scifact": lambda: scifact(data / "scifact"),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    beside = Path(__file__).parents[2] / "shared" / "data"
    parser.add_argument(
        "--data", type=Path, default=Path(os.environ.get("GROUNDNOTE_BENCH_DATA", beside))
    )
    parser.add_argument("--limit", type=int, default=300, help="cases per set")
    parser.add_argument("--lexical-only", action="store_true")
    options = parser.parse_args()
    checkers = {"words": SupportChecker(None)}
    if not options.lexical_only:
        checkers["words + embedding"] = SupportChecker(LocalEmbedder())
    print(
        f"{'set':32}{'cases':>6}  {'check':20}{'AUC':>7}{'bal. acc.':>11}{'ms/case':>9}"
        f"{'placed':>9}{'correct':>9}{'placed w/o':>11}"
    )
    for name, read in sets(options.data).items():
        cases = list(read())
        random.Random(1).shuffle(cases)
        cases = cases[: options.limit]
        for label, checker in checkers.items():
            area, accuracy, spent = measure(cases, checker)
            line = f"{name:32}{len(cases):>6}  {label:20}{area:7.3f}{accuracy:11.3f}{spent:9.1f}"
            if name.startswith("swap"):
                placed, correct, wrongly = attributed(cases, checker)
                line += f"{placed:9.2f}{correct:9.2f}{wrongly:11.2f}"
            print(line)


if __name__ == "__main__":
    main()

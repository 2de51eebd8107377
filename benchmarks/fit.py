"""Fit the weights of the verdict, or of cards, and print how they do on each set without it.

python -m benchmarks.fit --data DIR [--cards] [--cache DIR] [--dry]
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import click
import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.cards.fit import fit_cards, of_sets
from benchmarks.corpora import data_option
from benchmarks.features import fingerprint
from benchmarks.verdict import DISHONEST, DISTORTED, OTHERS, answers, kind_of
from benchmarks.verdict_sets import RIGHT, SETS, WRONG, Case, sentences
from rag.citations.checking.case import Said
from rag.citations.checking.reading import read_source
from rag.citations.checking.silence import Silence
from rag.citations.checking.verdict import beside
from rag.citations.markers import cited_numbers, keep_markers

TARGET = Path(__file__).parents[1] / "rag" / "citations" / "checking" / "weights.json"
OF_CARDS = Path(__file__).parents[1] / "rag" / "answers" / "weights.json"
OWN = Path(__file__).parent / "statements.jsonl"
# Wrong ones that nobody judged: another section's answer, and what was made up.
MADE_WRONG = ("emanual", "anthropic_docs", "own")
MOST_FALSE = 0.015  # of the right statements of any set
NAMES = [each.name for each in fields(Silence)]


@dataclass(frozen=True, slots=True)
class Row:
    """One statement beside its source."""

    of: str  # the set
    is_wrong: bool
    is_dev: bool
    silence: Silence | None  # None where a figure or code decides that the source speaks of it


def rows(data: Path) -> list[Row]:
    """All statements that are known to be right, or to cite what does not speak of them."""
    fitted = [name for name in SETS if not name.startswith("unseen")]
    found = [row for name in fitted for row in _of_set(name, SETS[name](data))]
    return found + list(_own())


def _of_set(name: str, cases: Iterable[Case]) -> list[Row]:
    parts = (
        part
        for case in cases
        if case.kind in (RIGHT, WRONG)
        for part in (sentences(case) if name in MADE_WRONG else [case])
    )
    return [
        Row(name, p.kind == WRONG, p.is_dev, beside(Said(p.text), [read_source(p.source)]))
        for p in parts
    ]


def _own() -> list[Row]:
    found: list[Row] = []
    for answer in answers(OWN):
        for start, end, label, style in answer.rows:
            text = answer.text[start:end]
            cited = [answer.sources[n] for n in set(cited_numbers(text)) if n in answer.sources]
            kind = kind_of(label, style)
            if len(cited) != 1 or kind == DISTORTED or (kind == DISHONEST and style not in OTHERS):
                continue
            said = Said(keep_markers(text, lambda _: False).text.strip(" |\n-"))
            judged = beside(said, [read_source(cited[0])])
            found.append(Row("own", kind == DISHONEST, True, judged))
    return found


def fit(rows: Sequence[Row]) -> dict[str, float]:
    """Weights by name: each set counts by the root of its size."""
    used = [r for r in rows if r.silence and (not r.is_wrong or r.of in MADE_WRONG)]
    counted: dict[tuple[str, bool], int] = defaultdict(int)
    for row in used:
        counted[row.of, row.is_wrong] += 1
    model = LogisticRegression(C=3, max_iter=2000).fit(
        np.array([astuple(r.silence) for r in used if r.silence]),
        [row.is_wrong for row in used],
        sample_weight=[10 / counted[row.of, row.is_wrong] ** 0.5 for row in used],
    )
    found = dict(zip(NAMES, (round(float(each), 3) for each in model.coef_[0]), strict=True))
    return {**found, "bias": round(float(model.intercept_[0]), 3)}


def probability(weights: dict[str, float], row: Row) -> float:
    """As the verdict computes it."""
    if row.silence is None:
        return 0.0
    told = sum(weights[name] * each for name, each in zip(NAMES, astuple(row.silence), strict=True))
    return float(1 / (1 + np.exp(-told - weights["bias"])))


def threshold(weights: dict[str, float], rows: Sequence[Row]) -> float:
    """From where at most so many right statements of any set are warned of."""
    by_set: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if not row.is_wrong:
            by_set[row.of].append(probability(weights, row))
    most = max(float(np.quantile(each, 1 - MOST_FALSE)) for each in by_set.values())
    return round(min(0.99, most + 0.001), 3)


def shares(weights: dict[str, float], start: float, rows: Sequence[Row]) -> str:
    """How many of each set are warned of: right ones, wrong ones."""
    told = []
    for kind in (False, True):
        own = [probability(weights, row) >= start for row in rows if row.is_wrong is kind]
        told.append(f"{100 * sum(own) / max(1, len(own)):5.1f} % of {len(own):4}")
    return "   ".join(told)


@click.command()
@data_option
@click.option("--cards", is_flag=True, help="The weights of answer cards.")
@click.option("--cache", type=click.Path(path_type=Path), help="Keep vectors here between runs.")
@click.option("--dry", is_flag=True, help="Print only; write nothing.")
def main(data: Path, cards: bool, cache: Path | None, dry: bool) -> None:
    """Write the weights, and print them with what they do held out."""
    written = fit_cards(of_sets(data, cache)) if cards else fit_verdict(data)
    told = json.dumps(written, indent=1)
    print(told)
    if not dry:
        (OF_CARDS if cards else TARGET).write_text(told + "\n", encoding="utf-8")


def fit_verdict(data: Path) -> dict[str, object]:
    """The weights of the verdict."""
    every = rows(data)
    dev = [row for row in every if row.is_dev]
    weights = fit(dev)
    start = threshold(weights, dev)
    print("off subject            right warned        wrong warned")
    for name in dict.fromkeys(row.of for row in every):
        own = [row for row in every if row.of == name]
        rest = [row for row in dev if row.of != name]
        without = fit(rest)
        print(f"{name:15} dev    {shares(weights, start, [r for r in own if r.is_dev])}")
        print(f"{'':15} held   {shares(weights, start, [r for r in own if not r.is_dev])}")
        print(f"{'':15} unseen {shares(without, threshold(without, rest), own)}")
    return {"features": fingerprint(), "silence": weights, "silent_from": start}


if __name__ == "__main__":
    main()

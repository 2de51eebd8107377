"""Fit the weights of a card, and try them on each set of questions when fitted on the others.

Called by `python -m benchmarks.fit`. The first passage is a conditional logit over the
candidates of a question, whether a line stands above it a logistic regression. Nothing is ever
fitted on the sets of `UNFITTED`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from benchmarks.cards.searching import Found, KnownTexts, searched
from benchmarks.cards.sets import QuestionSet, Wanted, sets_of
from benchmarks.corpora import packaged
from benchmarks.features import fingerprint
from rag.answers.choosing import (
    LINE_SIGNS,
    SURE,
    WEAK,
    chosen_in,
    fitted,
    in_order,
    line_signs,
    may_stand_above,
)
from rag.answers.quoting import line_of
from rag.answers.signs import PASSAGE_SIGNS, Asked, Passage, log_odds, passage_signs
from rag.text.names import Lexicon

FITTED = (
    "sample", "emanual", "anthropic_docs", "flask", "meshtastic", "sec10q", "xquad-en", "xquad-de",
    "chunking",
)  # fmt: skip
UNFITTED = ("zmk", "prometheus", "samsung", "own", "mixed", "trades")
ROOMS = {"rag.answers": ("signs", "choosing", "units", "wanted", "words", "quoting")}
MOST = 300  # questions of a set
STRANGERS = 6  # questions of each other set that are put to a library
LANGUAGES = ("xquad-de",)  # whose questions are strangers to no other set: words tell too easily
SHOWN = 4
Vector = NDArray[np.float64]
Row = tuple[tuple[float, ...], bool]  # signs, and whether it is right


@dataclass(frozen=True, slots=True)
class Case:
    """The candidates of one question, one row of signs each, and which of them are right."""

    signs: Vector
    right: Vector


@dataclass(slots=True)
class Cases:
    """What one set says."""

    passages: list[Case]
    lines: list[Row | None]  # None where none could stand above
    relevance: list[tuple[float, bool]]  # the highest, and whether the library can answer


def cases(found: Sequence[Found]) -> Cases:
    """All that can be learned from the questions of a set; ordered by the weights as they are."""
    told = Cases([], [], [])
    for each in found:
        asked = Asked.of(each.request.question, Lexicon(each.names))
        passages = [Passage.of(source, each.request.relevance) for source in each.request.sources]
        if not passages:
            continue
        ordered = in_order(asked, passages)
        highest = max(passage.relevance for passage in ordered[:SHOWN])
        told.relevance.append((highest, each.wanted.answerable))
        if each.wanted.answerable:
            told.passages.append(_passage_case(each, asked, passages))
            told.lines.append(_line_case(each, asked, ordered))
    return told


def _passage_case(found: Found, asked: Asked, passages: Sequence[Passage]) -> Case:
    right = [found.wanted.is_shown_by(each.text, each.source.document_name) for each in passages]
    return Case(np.array(passage_signs(asked, passages)), np.array(right, float))


def _line_case(found: Found, asked: Asked, ordered: Sequence[Passage]) -> Row | None:
    best = chosen_in(asked, ordered[:SHOWN])[0]
    if best.key is None or not may_stand_above(asked, best):
        return None
    right = found.wanted.is_told_by(line_of(best.key), best.passage.source.document_name)
    return line_signs(asked, ordered, best), right


# ── Fitting ──────────────────────────────────────────────────────────────────────────────────


def conditional_logit(some: Sequence[Case], *, steps: int = 150) -> Vector:
    """Weights that make the right candidates likely among those of their question."""
    told = [case for case in some if 0 < case.right.sum() < len(case.right)]
    scale = np.vstack([case.signs for case in told]).std(axis=0) + 1e-9
    weights = np.zeros(len(scale))
    for _ in range(steps):
        slope = -weights
        for case in told:
            signs = case.signs / scale
            likely = np.exp(signs @ weights - (signs @ weights).max())
            likely /= likely.sum()
            among = likely * case.right
            slope += (among / among.sum() - likely) @ signs
        weights += 1.5 * slope / len(told)
    fitted_weights: Vector = weights / scale
    return fitted_weights


def logistic(some: Sequence[Row]) -> Vector:
    """Weights, the constant behind them."""
    from sklearn.linear_model import LogisticRegression  # slow to load, and `ROOMS` needs none

    model = LogisticRegression(max_iter=2000).fit(
        [row[0] for row in some], [row[1] for row in some]
    )
    return np.append(model.coef_[0], model.intercept_[0])


def first_right(some: Sequence[Case], weights: Sequence[float] | Vector) -> float:
    """How often the likeliest candidate is right."""
    return float(np.mean([case.right[np.argmax(case.signs @ np.array(weights))] for case in some]))


def share(rows: Sequence[Row | None], weights: Vector, start: float, *, right: bool) -> float:
    """Of all questions: those above the start that are right, or that are wrong."""
    told = [
        row is not None
        and row[1] is right
        and np.array(row[0]) @ weights[:-1] + weights[-1] >= start
        for row in rows
    ]
    return float(np.mean(told))


def weak(own: Cases, *, answerable: bool) -> float:
    """The share of questions, answerable ones or strangers, of which nothing is claimed."""
    return float(np.mean([each < WEAK for each, can in own.relevance if can is answerable]))


def fit(some: Sequence[Cases]) -> dict[str, Vector]:
    """All weights of a card."""
    return {
        "passage": conditional_logit([case for each in some for case in each.passages]),
        "line": logistic([row for each in some for row in each.lines if row is not None]),
    }


def named(weights: dict[str, Vector]) -> dict[str, dict[str, float]]:
    """As they are written."""
    names = {"passage": PASSAGE_SIGNS, "line": (*LINE_SIGNS, "bias")}
    return {
        of: {n: round(float(w), 3) for n, w in zip(names[of], weights[of], strict=True)}
        for of in names
    }


# ── The table ────────────────────────────────────────────────────────────────────────────────

HEADS = ("search", "fitted", "in it", "line", "wrong", "weak", "strangers")


def line(name: str, own: Cases, without: dict[str, Vector], all_of_them: dict[str, Vector]) -> str:
    """Of one set: the first passage of the search and of weights fitted without it, and with it."""
    sure = log_odds(SURE)
    figures = (
        first_right(own.passages, [1.0] + [0.0] * (len(PASSAGE_SIGNS) - 1)),
        first_right(own.passages, without["passage"]),
        first_right(own.passages, all_of_them["passage"]),
        share(own.lines, without["line"], sure, right=True),
        share(own.lines, without["line"], sure, right=False),
        weak(own, answerable=True),
        weak(own, answerable=False),
    )
    return f"{name:16}{len(own.passages):5}" + "".join(f"{each:10.3f}" for each in figures)


def of_sets(data: Path, cache: Path | None) -> dict[str, list[Found]]:
    """The questions of all sets, each with some of the others' that its library cannot answer."""
    embedder = KnownTexts(packaged(), cache)
    sets = {name: sets_of(data)[name]() for name in (*FITTED, *UNFITTED)}
    return {
        name: list(searched(_cut(own), embedder, _strangers(name, sets)))
        for name, own in sets.items()
    }


def _cut(own: QuestionSet) -> QuestionSet:
    return replace(own, questions=own.questions[:MOST])


def _strangers(name: str, sets: Mapping[str, QuestionSet]) -> list[Wanted]:
    draw = Random(name)
    return [
        replace(wanted, answerable=False)
        for other, those in sets.items()
        if other not in (name, *LANGUAGES)
        for wanted in draw.sample(those.questions, STRANGERS)
    ]


def fit_cards(found: dict[str, list[Found]]) -> dict[str, object]:
    """Print how the weights do held out, and return them as they are written."""
    by_set: dict[str, Cases] = {}
    for _ in range(2):  # the line is about the first passages by the fitted weights
        by_set = {name: cases(some) for name, some in found.items()}
        weights = fit([by_set[name] for name in FITTED])
        fitted().update(named(weights))
    print(f"{'set':16}{'n':>5}" + "".join(f"{head:>10}" for head in HEADS))
    for name, own in by_set.items():
        others = [by_set[other] for other in FITTED if other != name]
        print(line(name, own, fit(others), weights), flush=True)
    return {"features": fingerprint(ROOMS), **named(weights)}

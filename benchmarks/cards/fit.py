"""Fit the rules of a card on some sets of questions, and try them on the one that was left out.

    python -m benchmarks.cards.fit [--data DIR] [--cache DIR] [--set NAME …]

Prints the weights that `rag/answers/choosing.py` holds. The first passage and the marked unit are
conditional logits over the candidates of a question; whether the line above is shown is a logistic
regression over what is known of the marked unit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.cards.searching import Found, KnownTexts, searched
from benchmarks.cards.sets import sets_of
from benchmarks.corpora import data_option
from rag.answers import choosing
from rag.answers.choosing import (
    LINE_SIGNS,
    PASSAGE_WEIGHTS,
    UNIT_WEIGHTS,
    chosen_in,
    in_order,
    line_signs,
    may_be_marked,
    may_stand_above,
)
from rag.answers.quoting import line_of
from rag.answers.signs import (
    PASSAGE_SIGNS,
    UNIT_SIGNS,
    Asked,
    Passage,
    passage_signs,
    unit_signs,
    weights_of,
)
from rag.retrieval.embed import LocalEmbedder
from rag.text.names import Lexicon

FITTED = ("xquad-en", "emanual", "anthropic_docs", "sample")
THRESHOLDS = (0.6, 0.7, 0.75, 0.8, 0.85, 0.9)
Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Case:
    """The candidates of one question, one row of signs each, and which of them are right."""

    signs: NDArray[np.float64]
    right: NDArray[np.float64]


def read(found: Found) -> tuple[Asked, list[Passage]]:
    """The question and its passages, as a card reads them."""
    asked = Asked.of(found.request.question, Lexicon(found.names))
    return asked, [Passage.of(each, found.request.relevance) for each in found.request.sources]


def passage_case(found: Found) -> Case:
    """Which of the passages holds the answer."""
    asked, passages = read(found)
    right = [found.wanted.is_shown_by(each.text, each.source.document_name) for each in passages]
    return Case(np.array(passage_signs(asked, passages)), np.array(right, float))


def unit_case(found: Found) -> Case:
    """Which unit of the first passage answers."""
    asked, passages = read(found)
    first = in_order(asked, passages)[0]
    rows = unit_signs(asked, first, weights_of(asked, passages))
    kept = [at for at, unit in enumerate(first.units) if may_be_marked(asked, unit)]
    right = [
        found.wanted.is_told_by(line_of(first.units[at]), first.source.document_name) for at in kept
    ]
    return Case(np.array([rows[at] for at in kept]), np.array(right, float))


def line_case(found: Found) -> Case | None:
    """Whether the marked unit answers; None where no line could stand above."""
    asked, passages = read(found)
    ordered = in_order(asked, passages)
    best = chosen_in(asked, ordered[:4])[0]
    if not may_stand_above(asked, best) or best.key is None:
        return None
    line = line_of(best.key)
    right = found.wanted.is_told_by(line, best.passage.source.document_name)
    return Case(np.array([line_signs(asked, ordered, best)]), np.array([right], float))


def conditional_logit(cases: Sequence[Case], *, steps: int = 300, penalty: float = 1.0) -> Vector:
    """Weights that make the right candidates likely among those of their question."""
    told = [case for case in cases if 0 < case.right.sum() < len(case.right)]
    scale = np.vstack([case.signs for case in told]).std(axis=0) + 1e-9
    weights = np.zeros(len(scale))
    for _ in range(steps):
        slope = -penalty * weights
        for case in told:
            signs = case.signs / scale
            likely = np.exp(signs @ weights - (signs @ weights).max())
            likely /= likely.sum()
            among = likely * case.right
            slope += (among / among.sum() - likely) @ signs
        weights += 1.5 * slope / len(told)
    fitted: Vector = weights / scale
    return fitted


def logistic(cases: Sequence[Case], *, penalty: float = 1.0) -> tuple[Vector, float]:
    """Weights and bias, by Newton's method."""
    signs = np.vstack([case.signs for case in cases])
    right = np.concatenate([case.right for case in cases])
    mean, scale = signs.mean(axis=0), signs.std(axis=0) + 1e-9
    rows = np.hstack([(signs - mean) / scale, np.ones((len(signs), 1))])
    weights = np.zeros(rows.shape[1])
    ridge = penalty * np.eye(len(weights))
    ridge[-1, -1] = 0.0
    for _ in range(50):
        likely = 1 / (1 + np.exp(-rows @ weights))
        curve = rows.T @ (rows * (likely * (1 - likely))[:, None]) + ridge
        weights += np.linalg.solve(curve, rows.T @ (right - likely) - ridge @ weights)
    return weights[:-1] / scale, float(weights[-1] - (weights[:-1] * mean / scale).sum())


def first_right(cases: Sequence[Case], weights: Sequence[float] | Vector) -> float:
    """How often the likeliest candidate is right."""
    weights = np.array(weights)
    told = [case for case in cases if len(case.right)]
    chosen = [case.right[np.argmax(case.signs @ weights)] for case in told]
    return float(np.sum(chosen)) / max(1, len(cases))


def show_lines(name: str, cases: Sequence[Case | None], weights: Vector, bias: float) -> None:
    """Right and wrong lines by threshold, as shares of all questions."""
    told = [case for case in cases if case is not None]
    sure = np.array([1 / (1 + np.exp(-(case.signs[0] @ weights + bias))) for case in told])
    right = np.array([case.right[0] for case in told])
    cells = [
        f"{((sure >= t) & (right == 1)).sum() / len(cases):.3f}/"
        f"{((sure >= t) & (right == 0)).sum() / len(cases):.3f}"
        for t in THRESHOLDS
    ]
    print(f"  {name:16}" + "  ".join(cells), flush=True)


def left_out(
    title: str, signs: Sequence[str], by_set: dict[str, list[Case]], today: Sequence[float]
) -> Vector:
    """Fit on all but one set, try on that one; then on all."""
    print(f"\n{title}: fitted on the others, today's weights")
    for name, cases in by_set.items():
        others = [case for other, more in by_set.items() if other != name for case in more]
        held_out = first_right(cases, conditional_logit(others))
        print(f"  {name:16}{held_out:8.3f}{first_right(cases, today):8.3f}", flush=True)
    fitted = conditional_logit([case for cases in by_set.values() for case in cases])
    print("  " + ", ".join(f"{n} {w:.2f}" for n, w in zip(signs, fitted, strict=True)))
    return fitted


def fit_lines(by_set: dict[str, list[Case | None]]) -> None:
    """Whether the marked unit is shown as the line above, set by set and for all."""
    print(f"\nline above, right/wrong of all questions, by threshold {THRESHOLDS}")
    for name, cases in by_set.items():
        others = [c for other, more in by_set.items() if other != name for c in more if c]
        show_lines(name, cases, *logistic(others))
    weights, bias = logistic([case for cases in by_set.values() for case in cases if case])
    told = ", ".join(f"{n} {w:.2f}" for n, w in zip(LINE_SIGNS, weights, strict=True))
    print(f"  {told}; bias {bias:.2f}")


def cases_by_set(
    found: dict[str, list[Found]], of: Callable[[Found], Case]
) -> dict[str, list[Case]]:
    """The cases of each set."""
    return {name: [of(each) for each in questions] for name, questions in found.items()}


@click.command()
@data_option
@click.option("--set", "names", multiple=True, default=FITTED)
@click.option("--cache", type=click.Path(path_type=Path), help="Keep vectors here between runs.")
def main(data: Path, names: tuple[str, ...], cache: Path | None) -> None:
    """Fit and try the rules."""
    embedder = KnownTexts(LocalEmbedder(), cache)
    found = {}
    for name in names:
        questions = searched(sets_of(data)[name](), embedder)
        found[name] = [each for each in questions if each.request.sources]
    left_out("first passage", PASSAGE_SIGNS, cases_by_set(found, passage_case), PASSAGE_WEIGHTS)
    left_out("marked unit", UNIT_SIGNS, cases_by_set(found, unit_case), UNIT_WEIGHTS)
    fit_lines({name: [line_case(each) for each in each_set] for name, each_set in found.items()})
    print(f"today: {choosing.LINE_WEIGHTS}, bias {choosing.LINE_BIAS}")


if __name__ == "__main__":
    main()

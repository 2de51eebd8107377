"""Fit the choice of what a pronoun stands for, and say how it does on what it was not fitted on.

A mention is what was meant where the question that a person made whole has all its words and the
question as it was asked has not. Prints the weights of `rag.followups.pronouns`.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import click
import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.corpora import data_option, rows_of
from benchmarks.followup import TEXTS, turns_of, words_of
from rag.followups.names import NO_NAMES
from rag.followups.pronouns import KINDS, PRONOUN, Turn, candidates

MODELS = ("person", "it", "they")
KEPT_TURNS = 10
Choice = tuple[str, str, np.ndarray, np.ndarray]  # conversation, model, signs, which were meant


def choices(data: Path, name: str) -> Iterator[Choice]:
    """Each pronoun of a set that a person replaced by something said before."""
    for row in rows_of(data / name / "dev" / "rewrites.jsonl"):
        asked, whole = set(words_of(row["question"])), set(words_of(row["rewrite"]))
        past = [Turn(*turn) for turn in turns_of(row["history"])[-KEPT_TURNS:]]
        found = PRONOUN.search(row["question"])
        if not past or not found or found[1].lower() in whole:
            continue
        kind = KINDS.get(found[1].lower(), "they")
        rated = candidates(kind, past, NO_NAMES)
        words = [set(words_of(each.mention.text)) for each in rated]
        meant = np.array([bool(each) and each <= whole and not each & asked for each in words])
        if rated and meant.any():
            signs = np.array([each.signs for each in rated])
            yield str(row["conversation"]), kind, signs, meant


def fitted(some: Sequence[Choice], model: str) -> np.ndarray:
    """The weights, the constant among the signs."""
    own = [choice for choice in some if choice[1] == model]
    signs = np.vstack([choice[2] for choice in own])
    meant = np.concatenate([choice[3] for choice in own])
    regression = LogisticRegression(fit_intercept=False, max_iter=2000).fit(signs, meant)
    return np.asarray(regression.coef_[0])


def right(some: Sequence[Choice], model: str, weights: np.ndarray) -> float:
    """How often the first choice was meant."""
    own = [choice for choice in some if choice[1] == model]
    return float(np.mean([meant[np.argmax(signs @ weights)] for _c, _m, signs, meant in own]))


def newest(some: Sequence[Choice], model: str) -> float:
    """The same for the choice of what was named last."""
    return float(np.mean([meant[0] for _c, own, _s, meant in some if own == model]))


def is_held_out(conversation: str) -> bool:
    """Half of the conversations, the same in each run."""
    return sha256(conversation.encode()).digest()[0] % 2 == 0


@click.command(help=__doc__)
@data_option
def main(data: Path) -> None:
    """Print accuracies held out, and the weights of all."""
    by_set = {name: list(choices(data, name)) for name in TEXTS}
    everything = [choice for some in by_set.values() for choice in some]
    fit = [choice for choice in everything if not is_held_out(choice[0])]
    test = [choice for choice in everything if is_held_out(choice[0])]
    print(
        f"{'model':8}{'choices':>8}{'newest':>8}{'held out':>10}"
        + "".join(f"  to {n}" for n in TEXTS)
    )
    for model in MODELS:
        count = sum(choice[1] == model for choice in test)
        row = f"{model:8}{count:8}{newest(test, model):8.3f}"
        row += f"{right(test, model, fitted(fit, model)):10.3f}"
        for name in TEXTS:
            others = [c for other, some in by_set.items() if other != name for c in some]
            row += f"{right(by_set[name], model, fitted(others, model)):9.3f}"
        print(row)
    for model in MODELS:
        print(f'"{model}": ({", ".join(f"{w:.2f}" for w in fitted(everything, model))}),')


if __name__ == "__main__":
    main()

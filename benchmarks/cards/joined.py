"""Whether each part of a joined question begins with a passage that answers it.

    python -m benchmarks.cards.joined [--data DIR] [--cache DIR] [--set NAME …]

Two questions to one document are put as one. Shares are of all parts: those whose first passage
answers, those for which the whole question's first passage does, and those with an answer among
all that was found.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from random import Random

import click

from benchmarks.cards.searching import Found, KnownTexts, searched
from benchmarks.cards.sets import Wanted, sets_of
from benchmarks.corpora import data_option, packaged
from rag.answers.card import card_of
from rag.answers.parts import parts_of
from rag.records import Source

MEASURED = ("sample", "emanual", "anthropic_docs", "mixed", "own", "trades")
MOST = 75  # pairs of a set
COLUMNS = ("first", "whole", "found")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one part; the fields are the columns."""

    first: bool
    whole: bool
    found: bool


def pairs(questions: Sequence[Wanted]) -> list[tuple[Wanted, Wanted]]:
    """Of each document its questions two by two, in a random order that repeats."""
    asked = [each for each in questions if each.answerable and each.question.endswith("?")]
    chosen = Random(1)
    told = []
    for _, group in groupby(sorted(asked, key=lambda each: each.group), lambda each: each.group):
        shuffled = list(group)
        chosen.shuffle(shuffled)
        told += zip(shuffled[::2], shuffled[1::2], strict=False)
    chosen.shuffle(told)
    return told[:MOST]


def outcomes(found: Found, both: Sequence[Wanted]) -> Iterator[Outcome]:
    """One for each part; none where the question was not taken apart."""
    card = card_of(found.request, found.names, lambda name: None)
    sources = {source.number: source for source in found.request.sources}
    if len(parts_of(found.request.question, found.names)) != len(both) or not card.parts:
        return
    for number, wanted in enumerate(both):
        part = card.parts[min(number, len(card.parts) - 1)]  # one passage may answer both
        yield Outcome(
            first=_answers(wanted, sources[part.passages[0].number]),
            whole=_answers(wanted, found.request.sources[0]),
            found=any(_answers(wanted, each) for each in found.request.sources),
        )


def _answers(wanted: Wanted, source: Source) -> bool:
    return wanted.is_shown_by(source.passage, source.document_name)


@click.command()
@data_option
@click.option("--cache", type=click.Path(path_type=Path), help="Keep vectors here between runs.")
@click.option("--set", "names", multiple=True, type=click.Choice(MEASURED), default=MEASURED)
def main(data: Path, cache: Path | None, names: Sequence[str]) -> None:
    """Print a row for each set."""
    embedder = KnownTexts(packaged(), cache)
    print(f"{'set':<16}{'parts':>7}" + "".join(f"{column:>8}" for column in COLUMNS))
    for name in names:
        questions = sets_of(data)[name]()
        joined = {f"{a.question} {b.question}": (a, b) for a, b in pairs(questions.questions)}
        asked = replace(questions, questions=tuple(Wanted(each, "") for each in joined))
        rows = [
            row
            for found in searched(asked, embedder)
            for row in outcomes(found, joined[found.request.question])
        ]
        shares = [sum(getattr(row, each) for row in rows) / len(rows) for each in COLUMNS]
        print(f"{name:<16}{len(rows):>7}" + "".join(f"{share:>8.3f}" for share in shares))


if __name__ == "__main__":
    main()

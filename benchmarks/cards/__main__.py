"""What an answer card shows, beside the best passage of a plain BM25 and of our own search.

    python -m benchmarks.cards [--data DIR] [--cache DIR] [--set NAME …] [--wrong]

All three passages are read in the same neighbourhood, over the same chunks, in one run. Shares are
of all questions of a set; `wrong` counts lines above that do not answer, `weak` the cards that
claim nothing. No weight was fitted on the last six sets. Of clapnq each question comes with the
passage it was judged with; half of them are not answered by it.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks.cards.fit import UNFITTED
from benchmarks.cards.searching import Found, KnownTexts, given, searched
from benchmarks.cards.sets import given_passages, sets_of
from benchmarks.corpora import data_option, packaged
from rag.answers.card import card_of
from rag.records import Card, Source

MEASURED = ("sample", "emanual", "anthropic_docs", "flask", "meshtastic", "sec10q", *UNFITTED)
DEFINED = "declined: nothing is shown. weak: passages under “Closest passages”; shown counts them."
COLUMNS = ("plain", "ours", "line", "wrong", "first", "shown", "weak", "declined")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one question; the fields are the columns."""

    plain: bool  # BM25's first passage answers
    ours: bool  # the first passage of our search does
    line: bool  # the line above does
    wrong: bool  # there is one, and it does not
    first: bool  # the first passage of the card does
    shown: bool  # some passage of the card does
    weak: bool
    declined: bool


def outcome(found: Found) -> Outcome:
    """The card of one question, judged."""
    card = card_of(found.request, found.names, lambda name: None)
    by_number = {source.number: source for source in found.request.sources}
    lines = _lines(found, card, by_number)
    firsts = [part.passages[0].number for part in card.parts]
    shown = [each.number for part in card.parts for each in part.passages]
    best = found.request.sources[:1]
    return Outcome(
        plain=found.plain is not None and _answers(found, [found.plain]),
        ours=_answers(found, best),
        line=any(lines),
        wrong=not all(lines),
        first=_answers(found, [by_number[number] for number in firsts]),
        shown=_answers(found, [by_number[number] for number in shown]),
        weak=bool(card.parts) and all(part.is_weak for part in card.parts),
        declined=not card.parts,
    )


def _lines(found: Found, card: Card, by_number: dict[int, Source]) -> list[bool]:
    told = [(part.line, by_number[part.passages[0].number]) for part in card.parts if part.line]
    return [found.wanted.is_told_by(line, source.document_name) for line, source in told]


def _answers(found: Found, sources: Iterable[Source]) -> bool:
    return any(found.wanted.is_shown_by(each.passage, each.document_name) for each in sources)


def row(name: str, outcomes: Sequence[Outcome]) -> list[float]:
    """Print a line of the table; returns its figures."""
    shares = [statistics.mean(getattr(each, column) for each in outcomes) for column in COLUMNS]
    print(f"{name:18}{len(outcomes):5}" + "".join(f"{share:10.3f}" for share in shares), flush=True)
    return shares


@click.command()
@data_option
@click.option("--set", "names", multiple=True, default=MEASURED)
@click.option("--cache", type=click.Path(path_type=Path), help="Keep vectors here between runs.")
@click.option("--wrong", is_flag=True, help="Print the questions with a wrong line above.")
def main(data: Path, names: tuple[str, ...], cache: Path | None, wrong: bool) -> None:
    """Measure answer cards."""
    embedder = KnownTexts(packaged(), cache)
    print(f"{'set':18}{'n':>5}" + "".join(f"{column:>10}" for column in COLUMNS))
    rows = []
    for name in names:
        found = list(searched(sets_of(data)[name](), embedder))
        outcomes = [outcome(each) for each in found]
        rows.append(row(name, outcomes))
        if wrong:
            _show_wrong(found, outcomes)
    if len(rows) > 1:
        means = [statistics.mean(column) for column in zip(*rows, strict=True)]
        print(f"{'mean':23}" + "".join(f"{mean:10.3f}" for mean in means))
    passages = [given(each) for each in given_passages(data)]
    for title, answerable in (("clapnq answered", True), ("clapnq unanswered", False)):
        of_kind = [each for each in passages if each.wanted.answerable is answerable]
        row(title, [outcome(each) for each in of_kind])
    print(DEFINED)


def _show_wrong(found: Sequence[Found], outcomes: Sequence[Outcome]) -> None:
    for each, came in zip(found, outcomes, strict=True):
        if came.wrong:
            card = card_of(each.request, each.names, lambda name: None)
            lines = " / ".join(part.line for part in card.parts if part.line)
            print(f"    {each.wanted.question} → {lines}")


if __name__ == "__main__":
    main()

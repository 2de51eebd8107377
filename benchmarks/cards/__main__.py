"""What an answer card shows, beside the first three passages of a plain BM25 and of our search.

    python -m benchmarks.cards [--data DIR] [--cache DIR] [--set NAME …]

All passages are read in the same neighbourhood, over the same chunks, in one run. Shares are of all
questions of a set; `marked` is of those whose first passage answers, where the words that answer
are known. `weak` cards begin with saying that the documents hardly answer, and fold everything:
`shown` does not count them.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks.cards.searching import Found, KnownTexts, searched
from benchmarks.cards.sets import sets_of
from benchmarks.corpora import data_option, packaged
from rag.chat.card import card_of
from rag.records import QuotedPassage, Source
from rag.records.answers import OPEN

MEASURED = (
    "sample", "emanual", "anthropic_docs", "flask", "meshtastic", "sec10q", "zmk", "prometheus",
    "samsung", "own", "mixed", "trades",
)  # fmt: skip
COLUMNS = ("plain", "search", "shown", "first", "marked", "weak")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one question; the fields are the columns."""

    plain: bool  # one of BM25's first three passages answers
    search: bool  # one of our search's does
    shown: bool  # one of the card's open passages does
    first: bool  # the first of them does
    marked: bool | None  # … and what is marked in it; None where that cannot be told
    weak: bool


def outcome(found: Found, embedder: KnownTexts) -> Outcome:
    """The card of one question, judged."""
    card = card_of(found.request, embedder.embed)
    by_number = {source.number: source for source in found.request.sources}
    shown = [_answers(found, [by_number[each.number]]) for each in card.open]
    return Outcome(
        plain=_answers(found, found.plain[:OPEN]),
        search=_answers(found, found.request.sources[:OPEN]),
        shown=any(shown),
        first=any(shown[:1]),
        marked=_is_marked(found, card.open[0]) if any(shown[:1]) else None,
        weak=card.is_weak,
    )


def _answers(found: Found, sources: Iterable[Source]) -> bool:
    return any(found.wanted.is_shown_by(each.passage, each.document_name) for each in sources)


def _is_marked(found: Found, passage: QuotedPassage) -> bool | None:
    if not found.wanted.words:
        return None
    marked = " ".join(passage.text[start:end] for start, end in passage.marked)
    return found.wanted.holds_a_word(marked)


def row(name: str, outcomes: Sequence[Outcome]) -> list[float]:
    """Print a line of the table; returns its figures."""
    shares = [_share(outcomes, column) for column in COLUMNS]
    print(f"{name:18}{len(outcomes):5}" + "".join(f"{share:10.3f}" for share in shares), flush=True)
    return shares


def _share(outcomes: Sequence[Outcome], column: str) -> float:
    told = [getattr(each, column) for each in outcomes]
    known = [each for each in told if each is not None]
    return statistics.mean(known) if known else float("nan")


@click.command()
@data_option
@click.option("--set", "names", multiple=True, default=MEASURED)
@click.option("--cache", type=click.Path(path_type=Path), help="Keep vectors here between runs.")
def main(data: Path, names: tuple[str, ...], cache: Path | None) -> None:
    """Measure answer cards."""
    embedder = KnownTexts(packaged(), cache)
    print(f"{'set':18}{'n':>5}" + "".join(f"{column:>10}" for column in COLUMNS))
    for name in names:
        found = searched(sets_of(data)[name](), embedder)
        row(name, [outcome(each, embedder) for each in found])


if __name__ == "__main__":
    main()

"""One fact asked in five wordings: what a person sees first, and whether all wordings agree.

python -m benchmarks.wordings [--folder sample mixed trades unseen] [--told] [--models DIR]

The facts and wordings (`wordings.jsonl`) were written from the documents, before how answers are
made was looked at. Beside the product stands the plainest thing: the first three passages that the
search finds, open, nothing said.
"""

import argparse
import json
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rag.records import EVERYTHING, Finished
from rag.records.answers import OPEN
from rag.regression.replay import Libraries
from rag.regression.report import ending
from rag.settings import Settings
from rag.wiring.application import Application

HERE = Path(__file__).parent
FOLDERS = {
    "sample": HERE.parent / "data" / "library",
    **{name: HERE / "cards" / name for name in ("mixed", "trades", "unseen")},
}
HEAD = (
    "| folder | wordings | said | … wrong | facts that agree | first right (plain) "
    "| opened right (plain) | median characters | s/question |"
)


@dataclass(frozen=True, slots=True)
class Fact:
    """What is asked for, and what says it."""

    name: str
    value: re.Pattern[str]
    denied: str  # a figure that other documents give for the same; "" for none
    wordings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """What one wording gave."""

    wording: str
    said: str  # before the passages: a lead, a figure that was computed
    first: str  # what is read first
    opened: str  # all that is read without a click
    is_right: bool  # of what was said
    is_first: bool
    is_opened: bool
    is_told: bool  # where documents disagree: that the lead has both
    is_base: bool  # the plain first passage has it
    is_base_opened: bool


def facts_of(folder: str) -> Iterator[Fact]:
    """Those of one folder."""
    for line in (HERE / "wordings.jsonl").read_text("utf-8").splitlines():
        told = json.loads(line)
        if told["folder"] == folder:
            value = re.compile(told["value"], re.IGNORECASE)
            yield Fact(told["fact"], value, told.get("denied", ""), tuple(told["wordings"]))


def seen(application: Application, fact: Fact, wording: str) -> Seen:
    """Ask in a conversation of its own; and look at what the search alone finds."""
    session = application.store.create("bench")
    end = ending(application.assistant.ask(session, wording))
    said, passages = "", list[str]()
    if isinstance(end, Finished) and end.message.answer is not None:
        answer = end.message.answer
        said = answer.card.lead if answer.card else answer.text
        shown = answer.card.open if answer.card else ()
        passages = [f"{each.heading}\n{each.text}" for each in shown]
    said = re.sub(r"\[\d+\]", "", said)
    hits = application.retriever.search(wording, EVERYTHING, limit=OPEN)
    plain = [f"{each.chunk.document_title}\n{each.passage}" for each in hits]
    first, opened = said or "".join(passages[:1]), "\n\n".join([said, *passages])
    is_told = not fact.denied or fact.denied in said
    has = fact.value.search
    return Seen(
        wording,
        said,
        first,
        opened,
        bool(has(said)),
        bool(has(first)),
        bool(has(opened)),
        is_told,
        bool(has("".join(plain[:1]))),
        bool(has("\n\n".join(plain))),
    )


def agree(found: list[Seen]) -> bool:
    """Whether all wordings in which something is said say the right value, with what denies it."""
    return all(each.is_right and each.is_told for each in found if each.said)


def main() -> None:
    """Each folder in a library of its own."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--folder", nargs="*", default=list(FOLDERS))
    asked.add_argument("--models", type=Path)
    asked.add_argument("--told", action="store_true")
    wanted = asked.parse_args()
    print(HEAD)
    for folder in wanted.folder:
        with tempfile.TemporaryDirectory() as place:
            embedding = {"cache_dir": wanted.models} if wanted.models else {}
            settings = Settings(data_dir=Path(place), embedding=embedding)
            libraries = Libraries(settings)
            with libraries.copied(FOLDERS[folder]) as data, libraries.opened(data) as application:
                report(folder, application, is_told=wanted.told)


def report(folder: str, application: Application, *, is_told: bool) -> None:
    """One row of the table."""
    found: dict[str, list[Seen]] = defaultdict(list)
    application.retriever.search("warm up", EVERYTHING, limit=1)
    began = time.process_time()
    for fact in facts_of(folder):
        for wording in fact.wordings:
            one = seen(application, fact, wording)
            found[fact.name].append(one)
            if is_told:
                grade = ("SAID" if one.is_right else "WRONG" if one.said else "-") + (
                    " first" if one.is_first else " opened" if one.is_opened else " MISSED"
                )
                print(f"{grade}: {wording!r}: {' '.join(one.first.split())[:200]}", file=sys.stderr)
    spent = time.process_time() - began
    every = [each for those in found.values() for each in those]
    share = [
        sum(bool(each.said) for each in every),
        sum(bool(each.said) and not each.is_right for each in every),
    ]
    lengths = sorted(len(each.opened) for each in every)
    print(
        f"| {folder} | {len(every)} | {share[0] / len(every):.2f} | {share[1]} | "
        f"{sum(map(agree, found.values()))} of {len(found)} | "
        f"{_mean(each.is_first for each in every):.2f} ({_mean(e.is_base for e in every):.2f}) | "
        f"{_mean(each.is_opened for each in every):.2f} "
        f"({_mean(e.is_base_opened for e in every):.2f}) | "
        f"{lengths[len(lengths) // 2]:,} | {spent / len(every):.2f} |"
    )


def _mean(values: Iterator[bool]) -> float:
    told = list(values)
    return sum(told) / max(1, len(told))


if __name__ == "__main__":
    main()

"""Questions in an asker's words over public folders of tables that nobody tuned for.

python -m benchmarks.tables_asked --data DIR [--part PART] [--told] [--library DIR]
DIR holds a folder for each part, with the files that `strangers/asked.md` names.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag.documents.files import IncomingFile
from rag.errors import RagError
from rag.records import EVERYTHING, Message
from rag.settings import Settings
from rag.tables.library import TableLibrary
from rag.tables.plan import Choice
from rag.tables.result import TableResult, result_from
from rag.wiring.application import Application, build

QUESTIONS = Path(__file__).parent / "strangers" / "asked.jsonl"
PARTS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh")
NEAR = 0.002  # of a figure: what rounding for people changes
Asked = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one question."""

    question: str
    can_say: bool  # whether one table can answer it
    grade: str
    text: str


def outcomes(folder: Path, asked: Sequence[Asked], library: Path | None) -> Iterator[Outcome]:
    """Each question in a conversation of its own, after the one it follows."""
    with tempfile.TemporaryDirectory() as data:
        application = build(Settings(data_dir=library or Path(data)))
        try:
            incoming = [
                IncomingFile.from_path(path, name=str(path.relative_to(folder)))
                for path in sorted(folder.rglob("*"))
                if path.is_file() and not application.tables.ids(EVERYTHING)
            ]
            for report in application.ingestion.ingest(incoming):
                if report.error is not None:
                    print(report.name, report.reason, file=sys.stderr)
            for each in asked:
                yield _outcome(application, each)
        finally:
            application.stop()


def _outcome(application: Application, asked: Asked) -> Outcome:
    session = application.store.create("bench")
    for question in filter(None, (asked["after"], asked["question"])):
        *_, end = application.assistant.ask(session, question)
    number = end.message.answer and end.message.answer.result
    stored = number and session.result(number)
    found = result_from(stored) if stored else None
    can_say = bool(asked["accept"])
    text = end.message.content
    if found is None:
        return Outcome(
            asked["question"], can_say, _unclaimed(application, asked, end.message), text
        )
    is_right = can_say and is_answer(found, asked["accept"])
    return Outcome(asked["question"], can_say, "right" if is_right else "wrong", text)


def _unclaimed(application: Application, asked: Asked, message: Message) -> str:
    """Passages, or buttons: whether one of these computes an accepted answer."""
    if not (message.answer and message.answer.offers):
        return "shown"
    library, question = application.table_answers.library, asked["question"]
    offered = application.table_answers.offered(question, library.understand(question, EVERYTHING))
    results = [_run(library, choice) for choice in offered]
    is_right = any(result and is_answer(result, asked["accept"]) for result in results)
    return "offered right" if is_right else "offered"


def _run(library: TableLibrary, choice: Choice) -> TableResult | None:
    with suppress(RagError):
        return library.run(choice.table, choice.plan)
    return None


def is_answer(result: TableResult, accepted: Sequence[Any]) -> bool:
    """Whether the first row, or all that is shown, is one of the accepted answers."""
    cells = list(result.rows[0]) if result.rows else []
    return any(_same(cell, each) for cell in cells for each in accepted)


def _same(got: Any, wanted: Any) -> bool:
    if isinstance(wanted, int | float):
        try:
            figure = float(str(got).replace(",", ""))
        except ValueError:
            return str(wanted) in str(got).split()
        return abs(figure - wanted) <= NEAR * max(1.0, abs(wanted))
    return str(got).strip().casefold().startswith(str(wanted).casefold())


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--part", choices=PARTS, default=PARTS[0])
    parser.add_argument("--told", action="store_true", help="print what became of each")
    parser.add_argument("--library", type=Path, help="kept there, to ask it again")
    given = parser.parse_args()
    lines = QUESTIONS.read_text("utf-8").splitlines()
    asked = [each for each in map(json.loads, lines) if each["part"] == given.part]
    began = time.process_time()
    counts: Counter[tuple[bool, str]] = Counter()
    for each in outcomes(given.data / given.part, asked, given.library):
        counts[each.can_say, each.grade] += 1
        if given.told:
            said = " ".join(each.text.split())[:160]
            print(f"{each.grade:8}{'' if each.can_say else '(none) '}{each.question!r}: {said}")
    report(counts, len(asked))
    print(f"{time.process_time() - began:.0f} s of CPU")


def report(counts: Counter[tuple[bool, str]], asked: int) -> None:
    """Shares of the questions that one table can answer, of the others, and of the claims."""
    for can_say, name in ((True, "one table can answer"), (False, "no table can answer")):
        total = sum(count for key, count in counts.items() if key[0] is can_say)
        for grade in ("right", "wrong", "offered right", "offered", "shown"):
            count = counts[can_say, grade]
            print(f"| {name} | {grade} | {count} of {total} | {count / max(1, total):.1%} |")
    wrong = sum(count for key, count in counts.items() if key[1] == "wrong")
    claims = wrong + counts[True, "right"]
    print(f"| wrong claims | {wrong} of {claims} claims | {wrong / max(1, claims):.1%} |")
    print(f"| silently wrong | {wrong} of {asked} questions | {wrong / asked:.1%} |")


if __name__ == "__main__":
    main()

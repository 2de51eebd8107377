"""Whether invented figures are shown as standing nowhere, and honest ones are not.

    python -m benchmarks.figures --data DIR

Claims of WiCE that its annotators call supported, with the sentences of the page that support
them: their figures are honest (a few stand only in the date of the page, which is not cited). The
same claims with each number in digits replaced by another are invented; some of these stand in the
source by chance. A row for each number of figures that a source holds.

Then sentences of encyclopedia pages (`mtrag`) that hold an amount
with a unit: the amount rounded, in another unit, or two of one unit added up and both named
(honest); and the same with another number (invented).
"""

import argparse
import gzip
import json
import random
import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from groundnote import check
from rag.language.figures import read_figures
from rag.language.sentences import split_sentences

BOUNDS = (5, 20, 80)


def claims(folder: Path) -> list[tuple[str, str]]:
    """Supported claims with a page's evidence."""
    found = []
    for path in sorted(folder.rglob("claims.jsonl.gz")):
        for line in gzip.decompress(path.read_bytes()).decode().splitlines():
            row = json.loads(line)
            if row["label"] == "supported":
                chosen = sorted({at for each in row["supporting_sentence_sets"] for at in each})
                evidence = " ".join(row["evidence"][at] for at in chosen)
                found.append((row["claim"].strip().rstrip("."), evidence))
    return found


def invented(claim: str, source: str, chance: random.Random) -> str:
    """The claim with every number in digits replaced by one that stands nowhere in it."""
    return re.sub(r"\d+", lambda found: _another(found[0], chance), claim)


def _another(number: str, chance: random.Random) -> str:
    """Another of as many digits; of a year the century stays, so that it still reads as one."""
    kept = 2 if re.fullmatch(r"(19|20)\d\d", number) else 0
    others = (
        chance.choice([d for d in "123456789" if d != letter]) if letter.isdigit() else letter
        for letter in number[kept:]
    )
    return number[:kept] + "".join(others)


def count(rows: list[tuple[str, str]]) -> dict[int, list[int]]:
    """Figures, and those that were shown as unfound, by how many the source holds at most."""
    counts: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for claim, source in rows:
        held = len(read_figures(source))
        bound = next((each for each in BOUNDS if held <= each), 10**6)
        marks = [
            mark
            for mark in check(f"{claim} [1].", [source]).figures
            if any(map(str.isdecimal, claim[mark.start : mark.end]))
        ]
        counts[bound][0] += len(marks)
        counts[bound][1] += sum(mark.status.value == "unfound" for mark in marks)
    return counts


# ── Worked out ───────────────────────────────────────────────────────────────────────────────

OTHER_UNITS = {  # in which an amount is told besides, and how many of its own that has
    "month": ("years", 12),
    "year": ("months", 1 / 12),
    "week": ("days", 1 / 7),
    "day": ("weeks", 7),
    "h": ("minutes", 1 / 60),
    "min": ("hours", 60),
    "s": ("minutes", 60),
    "m": ("km", 1000),
    "km": ("m", 1 / 1000),
    "cm": ("mm", 1 / 10),
    "mm": ("cm", 10),
    "g": ("kg", 1000),
    "kg": ("g", 1 / 1000),
    "gb": ("MB", 1 / 1000),
}
MOST = 100  # statements of each kind
MOST_SAID = 10**7  # larger numbers are written in words


@dataclass(frozen=True, slots=True)
class WorkedOut:
    """A statement around a number that follows from its source."""

    before: str
    number: str
    behind: str
    source: str

    def with_number(self, number: str) -> bool:
        """Whether a figure of the statement is shown as unfound."""
        marks = check(f"{self.before}{number}{self.behind} [1].", [self.source]).figures
        return any(mark.status.value == "unfound" for mark in marks)


def worked_out(sentences: list[str]) -> dict[str, list[WorkedOut]]:
    """Statements by how their figure was worked out, as many as are wanted of each."""
    made: dict[str, list[WorkedOut]] = defaultdict(list)
    for text in sentences:
        amounts = [
            f for f in read_figures(text) if f.unit and not f.upper and 0 < f.value < MOST_SAID
        ]
        for figure in amounts[:1]:
            before, behind = text[: figure.start], text[figure.end :]
            unit, size = OTHER_UNITS.get(figure.unit, ("", 1))
            value = round(figure.value / size, 6)
            if unit and value >= 1 and value == round(value, 1):
                made["in another unit"].append(
                    WorkedOut(before, _written(value), f" {unit}{behind}", text)
                )
            tens = 10 ** max(0, len(str(int(figure.value))) - 2)
            value = round(figure.value / tens) * tens
            if value != figure.value and value >= 10:
                unit = re.sub(r"[\d.,\s]", "", text[figure.start : figure.end])
                made["rounded"].append(
                    WorkedOut(f"{before}about ", _written(value), f" {unit}{behind}", text)
                )
        for one, other in pairwise(amounts):
            if one.unit == other.unit and one.value != other.value:
                first, second = (text[each.start : each.end] for each in (one, other))
                unit = re.sub(r"[\d.,]", "", second).strip()
                total = _written(one.value + other.value)
                made["added up"].append(
                    WorkedOut(f"{first} and {second} are ", total, f" {unit} in all", text)
                )
    return {kind: statements[:MOST] for kind, statements in made.items()}


def _written(value: float) -> str:
    return f"{value:.0f}" if value == round(value) else f"{round(value, 6)}"


def sentences_of(folder: Path) -> list[str]:
    """Sentences with an amount, each once, the same in every run."""
    packed = (folder / "mtrag" / "corpus_clapnq.jsonl.gz").read_bytes()
    texts = [json.loads(line)["text"] for line in gzip.decompress(packed).decode().splitlines()]
    found = dict.fromkeys(
        " ".join(text[start:end].split()).rstrip(".")
        for text in texts
        for start, end in split_sentences(text)
        if end - start < 300 and re.search(r"\d", text[start:end])
    )
    return sorted(found, key=lambda text: random.Random(text).random())


def report_worked(data: Path) -> None:
    """A row for each kind: in how many statements a figure is shown as unfound."""
    chance = random.Random(1)
    print("\n| worked out | statements | honest, shown as unfound | invented, shown as unfound |")
    print("|---|---|---|---|")
    for kind, rows in worked_out(sentences_of(data)).items():
        honest = [row for row in rows if row.with_number(row.number)]
        lies = [row for row in rows if row.with_number(_another(row.number, chance))]
        print(f"| {kind} | {len(rows)} | {len(honest)} | {len(lies)} |")
        for row in honest:
            print(f"shown: {row.before}{row.number}{row.behind}", file=sys.stderr)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    data = parser.parse_args().data
    honest = claims(data / "wice")
    chance = random.Random(0)
    lies = [(invented(claim, source, chance), source) for claim, source in honest]
    print("| figures in the source | honest | shown as unfound | invented | shown as unfound |")
    print("|---|---|---|---|---|")
    of_honest, of_lies = count(honest), count(lies)
    for bound in sorted(of_honest | of_lies):
        told, told_lies = of_honest[bound], of_lies[bound]
        label = f"at most {bound}" if bound < 10**6 else "more"
        print(f"| {label} | {told[0]} | {told[1]} | {told_lies[0]} | {told_lies[1]} |")
    report_worked(data)


if __name__ == "__main__":
    main()

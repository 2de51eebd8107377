"""Whether invented figures are shown as standing nowhere, and honest ones are not.

    python -m benchmarks.figures --data DIR

Claims of WiCE that its annotators call supported, with the sentences of the page that support
them: their figures are honest (a few stand only in the date of the page, which is not cited). The
same claims with each number in digits replaced by another are invented; some of these stand in the
source by chance. A row for each number of figures that a source holds.
"""

import argparse
import gzip
import json
import random
import re
from collections import defaultdict
from pathlib import Path

from groundnote import check
from rag.language.figures import read_figures

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
    others = (chance.choice([d for d in "123456789" if d != letter]) for letter in number[kept:])
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


if __name__ == "__main__":
    main()

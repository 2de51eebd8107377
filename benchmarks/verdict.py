"""How often statements are warned of: honest ones, distorted ones, and those without ground.

python -m benchmarks.verdict [--cases FILE…] [--data DIR] [--show]
"""

import argparse
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.verdict_sets import print_table
from rag.citations.check import Checked, check
from rag.citations.register import as_source
from rag.documents.chunk import cut
from rag.documents.limits import LoadLimits
from rag.documents.load import load
from rag.records import Chunk, Hit, Section, Source, Verdict
from rag.retrieval.passages import neighbourhood

LIBRARY = Path(__file__).parents[1] / "data" / "library"
HONEST, DISTORTED, DISHONEST = "honest", "distorted", "other dishonest"
OTHERS = {"fabrication", "uncited fabrication", "wrong citation"}


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its sources, and what is known of each of its statements."""

    text: str
    sources: Mapping[int, Source]
    rows: tuple[tuple[int, int, str, str], ...]  # start, end, label, style


@cache
def library() -> tuple[tuple[Chunk, Section], ...]:
    """All chunks of the sample library with their sections."""
    found: list[tuple[Chunk, Section]] = []
    for path in sorted(each for each in LIBRARY.rglob("*") if each.is_file()):
        name = str(path.relative_to(LIBRARY))
        parsed = load(name, path.read_bytes(), limits=LoadLimits())
        chunks = cut(
            name,
            name,
            parsed.title,
            parsed.sections,
            count_tokens=lambda texts: [len(text) // 4 for text in texts],
            max_tokens=256,
        )
        found += [(chunk, parsed.sections[chunk.section_index]) for chunk in chunks]
    return tuple(found)


def found_by(phrase: str, number: int, question: str = "") -> Source:
    """The source that holds a phrase, as the register keeps it; of several the question's."""
    plain = " ".join(phrase.split())
    found = [each for each in library() if plain in " ".join(each[0].text.split())]
    if not found:
        raise LookupError(phrase)
    asked = set(re.findall(r"\w{4,}", question.lower()))
    near = [len(asked & set(re.findall(r"\w{4,}", c.embedded_text.lower()))) for c, _ in found]
    return source_of(*found[near.index(max(near))], number)


def source_of(chunk: Chunk, section: Section, number: int) -> Source:
    """A chunk in its neighbourhood."""
    start, end = neighbourhood(section.text, chunk.start, chunk.end)
    return as_source(Hit(chunk, 1.0, section.text[start:end], start, end), number)


def written(given: Mapping[str, str], number: int) -> Source:
    """A source whose text stands in the file of cases."""
    return Source(
        number=number,
        chunk_id=given["text"],
        document_id=given["title"],
        document_name=given["title"],
        document_title=given["title"],
        locator="",
        heading_path=tuple(filter(None, [given.get("heading", "")])),
        text=given["text"],
        passage=given["text"],
        content_hash="",
    )


def answers(path: Path) -> Iterator[Answer]:
    """The answers of a file; dishonest statements stand alone, so that each is judged by itself."""
    for line in path.read_text().splitlines():
        case = json.loads(line)
        sources = {
            letter: found_by(given, at, case["question"])
            if isinstance(given, str)
            else written(given, at)
            for at, (letter, given) in enumerate(sorted(case["sources"].items()), start=1)
        }
        sources["z"] = another(case, len(sources) + 1)
        honest = [row for row in case["rows"] if row["label"] != "D"]
        if honest:
            yield assembled(honest, sources)
        for row in case["rows"]:
            if row["label"] == "D":
                yield assembled([row], sources)


def another(case: Mapping[str, Any], number: int) -> Source:
    """A shown source that does not carry the statements: the next best by words."""
    asked = set(re.findall(r"\w{4,}", case["question"].lower()))
    phrases = [given for given in case["sources"].values() if isinstance(given, str)]
    if case.get("z"):
        return found_by(case["z"], number)
    best, most = None, -1
    for chunk, section in library():
        text = " ".join(chunk.text.split())
        near = len(asked & set(re.findall(r"\w{4,}", text.lower())))
        passage = source_of(chunk, section, number).passage if near > most else ""
        if near > most and not any(p in " ".join(passage.split()) for p in phrases):
            best, most = (chunk, section), near
    assert best is not None
    return source_of(*best, number)


def assembled(rows: Sequence[Mapping[str, str]], sources: Mapping[str, Source]) -> Answer:
    """One answer of these statements."""
    text, placed = "", []
    for row in rows:
        said = row["text"]
        for letter, source in sources.items():
            said = said.replace("{" + letter + "}", f"[{source.number}]")
        placed.append((len(text), len(text) + len(said), row["label"], row["style"]))
        text += said
    return Answer(text, {s.number: s for s in sources.values()}, tuple(placed))


def kind_of(label: str, style: str) -> str:
    """Under which head a statement is counted."""
    if label != "D":
        return HONEST
    return DISHONEST if style in OTHERS else DISTORTED


def warnings_in(checked: Checked, start: int, end: int) -> list[str]:
    """What is said against the statement at this place; "" where nothing is."""
    found = [
        f"{c.verdict}: {c.reason}"
        for c in checked.citations
        if start <= c.start < end and c.verdict.is_warning
    ]
    return found + ["unsourced" for u in checked.unsourced if start <= u.start < end]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, nargs="+", default=[])
    parser.add_argument("--data", type=Path, help="folder of the public sets")
    parser.add_argument("--show", action="store_true", help="print what went wrong")
    asked = parser.parse_args()
    if asked.data:
        print_table(asked.data)
    for path in asked.cases:
        counted: Counter[tuple[str, bool]] = Counter()
        styles: dict[tuple[str, str], list[bool]] = defaultdict(list)
        left = 0  # dishonest ones that a judge who is always right would not be asked about
        for answer in answers(path):
            checked = check(answer.text, answer.sources)
            for start, end, label, style in answer.rows:
                warned = warnings_in(checked, start, end)
                kind = kind_of(label, style)
                counted[kind, bool(warned)] += 1
                own = [c.verdict for c in checked.citations if start <= c.start < end]
                left += label == "D" and not warned and Verdict.OPEN not in own
                styles[kind, style].append(bool(warned))
                if asked.show and bool(warned) != (label == "D"):
                    verdicts = [
                        c.verdict.value for c in checked.citations if start <= c.start < end
                    ]
                    print(
                        label, style, "|", answer.text[start:end].strip(), "|", warned or verdicts
                    )
        print(path.name)
        for kind in (HONEST, DISTORTED, DISHONEST):
            yes, no = counted[kind, True], counted[kind, False]
            print(
                f"  {kind:16} warned {yes:3} of {yes + no:3}  {100 * yes / max(1, yes + no):.1f} %"
            )
        print(f"  dishonest, and neither warned of nor open: {left}")
        for (kind, style), found in sorted(styles.items()):
            print(f"      {kind:16} {style:28} {sum(found)} of {len(found)}")


if __name__ == "__main__":
    main()

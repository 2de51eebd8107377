"""How often statements are warned of, honest or not, and whether added numbers are right.

python -m benchmarks.verdict [--cases [FILE…]] [--numbers FILE…] [--data DIR] [--embed] [--show]
"""

import argparse
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.corpora import packaged
from benchmarks.verdict_sets import ANSWERED, RIGHT, SETS, WRONG, print_table, sentences
from rag.chat.decision import weakness
from rag.citations.markers import cited_numbers, keep_markers
from rag.citations.register import as_source
from rag.citations.verdicts import CheckedText, attribute, check
from rag.documents.chunking import cut
from rag.documents.limits import LoadLimits
from rag.documents.readers.registry import load
from rag.language.sentences import read_windows
from rag.records import Answer as Told
from rag.records import Chunk, Hit, Section, Source, Verdict
from rag.seams import Embedder
from rag.seams.models import JudgeVerdict, OpenStatement
from rag.search.passages import neighbourhood

CASES = Path(__file__).parent / "verdicts"
LIBRARY = Path(__file__).parents[1] / "data" / "library"
HONEST, DISTORTED, DISHONEST = "honest", "distorted", "other dishonest"
OTHERS = {"fabrication", "uncited fabrication", "wrong citation"}


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its sources, and what is known of each of its statements."""

    text: str
    sources: Mapping[int, Source]
    rows: tuple[tuple[int, int, str, str], ...]  # start, end, label, style
    question: str = ""


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


def brings_sources(path: Path) -> bool:
    """Others name what a public set holds, or are read in a way of their own."""
    with path.open() as file:
        first = json.loads(file.readline())
        return "sources" in first and "label" in first["rows"][0]


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
            yield replace(assembled(honest, sources), question=case["question"])
        for row in case["rows"]:
            if row["label"] == "D":
                yield replace(assembled([row], sources), question=case["question"])


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


def warnings_in(checked: CheckedText, start: int, end: int) -> list[str]:
    """What is said against the statement at this place; "" where nothing is."""
    found = [
        f"{c.verdict}: {c.reason}"
        for c in checked.citations
        if start <= c.start < end and c.verdict.is_warning
    ]
    return found + ["unsourced" for u in checked.unsourced if start <= u.start < end]


# ── Attribution ──────────────────────────────────────────────────────────────────────────────

Unnumbered = tuple[str, Mapping[int, Source], frozenset[int]]  # with the numbers that are right


def of_cases(path: Path) -> Iterator[Unnumbered]:
    """Each statement of a file alone; what merely cites wrongly belongs to the other sources."""
    for answer in answers(path):
        for start, end, label, style in answer.rows:
            said = answer.text[start:end]
            cited = frozenset(cited_numbers(said))
            right = cited if label != "D" else frozenset[int]()
            if style == "wrong citation":
                right = frozenset(answer.sources) - cited
            yield keep_markers(said, lambda _: False), answer.sources, right


def of_set(data: Path, name: str, *, dev: bool) -> Iterator[Unnumbered]:
    """Each right sentence beside its own source and that of another question."""
    told = [case for case in SETS[name](data) if case.is_dev is dev]
    pairs = zip(
        (case for case in told if case.kind == RIGHT),
        (case for case in told if case.kind == WRONG),
        strict=True,
    )
    for own, other in pairs:
        sources = {1: own.source, 2: replace(other.source, number=2)}
        for sentence in sentences(own):
            yield sentence.text, sources, frozenset([1])


def print_attributed(name: str, statements: Iterator[Unnumbered], *, every: bool) -> None:
    """How many numbers are added where they belong; each to be looked at where `every`."""
    right = added = to_add = 0
    for text, sources, own in statements:
        found = attribute(text, sources)
        numbers = {each.number for each in found.citations}
        to_add += bool(own)
        added += len(numbers)
        right += len(numbers & own)
        if every and numbers:
            told = " ".join(f"[{n}] {sources[n].passage[:200]!r}" for n in sorted(numbers))
            print(f"  {'right' if numbers <= own else 'WRONG'} {found.text.strip()} | {told}")
    print(f"  {name}: {added} numbers added, {right} of them right, to {to_add} that have a source")


# ── Answers of no use ────────────────────────────────────────────────────────────────────────


def print_set_aside(paths: Sequence[Path], embedder: Embedder | None) -> None:
    """How often good answers, and answers to other questions, give way to the passages."""
    every = [
        each for path in paths for each in answers(path) if kind_of(*each.rows[0][2:]) == HONEST
    ]
    good = other = 0
    for at, answer in enumerate(every):
        wrong = re.sub(r"\[\d+\]", "[1]", every[(7 * at + 13) % len(every)].text)
        good += bool(reason_for(answer.text, answer, embedder))
        other += bool(reason_for(wrong, answer, embedder))
    print(f"set aside: {good} of {len(every)} good answers, {other} of as many to other questions")


def reason_for(text: str, asked: Answer, embedder: Embedder | None) -> str:
    """Why a text would be set aside as the answer to a question."""
    done = attribute(text, asked.sources)
    checked = check(done.text, asked.sources, embedder=embedder)
    said = Told(done.text, checked.citations, checked.unsourced)
    return weakness(asked.question, said, asked.sources, (), embedder)


# ── Each number for itself ───────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Row:
    """A statement, and of each of its numbers whether it is honest there."""

    family: str
    text: str
    labels: str  # H or D for each number in order
    sources: Mapping[int, Source]


def rows_of_numbers(path: Path) -> Iterator[Row]:
    """The statements of a file in which each number has a label."""
    for line in path.read_text().splitlines():
        case = json.loads(line)
        numbers = {letter: at for at, letter in enumerate(sorted(case["sources"]), start=1)}
        sources = {n: written(case["sources"][letter], n) for letter, n in numbers.items()}
        for row in case["rows"]:
            text = row["text"]
            for letter, number in numbers.items():
                text = text.replace("{" + letter + "}", f"[{number}]")
            yield Row(row["family"], text, row["labels"], sources)


class Knowing:
    """A judge that is always right: what can be had of one at most."""

    name = "knowing"

    def __init__(self, row: Row) -> None:
        self._honest = dict(zip(cited_numbers(row.text), row.labels, strict=False))

    def judge(self, statements: Sequence[OpenStatement]) -> Sequence[JudgeVerdict | None]:
        right, wrong = JudgeVerdict(Verdict.SUPPORTED), JudgeVerdict(Verdict.OFF_SUBJECT)
        return [right if self._honest[each.number] == "H" else wrong for each in statements]


def cosine(said: str, source: Source, embedder: Embedder) -> float:
    """The plain baseline: of the statement and the nearest sentence of its source."""
    windows = [each.text[:250] for each in read_windows(source.passage) if each.kind != "cell"]
    own, *vectors = embedder.embed([keep_markers(said, lambda _: False), *windows])
    return max(float(each @ own) for each in vectors)


def print_numbers(path: Path, embedder: Embedder | None, *, every: bool) -> None:
    """What each number is shown as, by family: by words, by a perfect judge, by plain cosine."""
    by_words: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    judged: Counter[str] = Counter()
    near: dict[str, list[float]] = defaultdict(list)
    for row in rows_of_numbers(path):
        citations = check(row.text, row.sources, embedder=embedder).citations
        after = check(row.text, row.sources, Knowing(row), embedder=embedder).citations
        for citation, final, label in zip(citations, after, row.labels, strict=True):
            shown = shown_as(citation.verdict)
            by_words[label, row.family][shown] += 1
            judged[label + shown_as(final.verdict)] += 1
            if embedder is not None:
                near[label].append(cosine(row.text, row.sources[citation.number], embedder))
            if every and shown == ("warned" if label == "H" else "supported"):
                print(label, row.family, "|", row.text, "|", citation.verdict, citation.reason)
    print(path.name)
    for (label, family), found in sorted(by_words.items()):
        told = ", ".join(f"{n} {shown}" for shown, n in sorted(found.items()))
        print(f"  {'honest' if label == 'H' else 'dishonest':10} {family:12} {told}")
    for label, name in (("H", "honest"), ("D", "dishonest")):
        total = sum((e for (own, _), e in by_words.items() if own == label), Counter[str]())
        print(f"  {name}: by words {dict(total)} of {total.total()}")
        print(
            f"  {name}: by a perfect judge {judged[label + 'supported']} supported, "
            f"{judged[label + 'warned']} warned"
        )
    for least in (0.3, 0.4, 0.5) if near else ():
        false, right = (sum(each < least for each in near[label]) for label in "HD")
        print(f"  plain cosine below {least}: {right} dishonest, {false} honest")


def shown_as(verdict: Verdict) -> str:
    """What a reader sees."""
    return "supported" if verdict.is_certain else "warned" if verdict.is_warning else "open"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, nargs="*", help="all that bring their own sources")
    parser.add_argument("--numbers", type=Path, nargs="+", default=[])
    parser.add_argument("--data", type=Path, help="folder of the public sets")
    parser.add_argument("--embed", action="store_true", help="with the packaged embedding model")
    parser.add_argument("--show", action="store_true", help="print what went wrong")
    asked = parser.parse_args()
    embedder = packaged() if asked.embed else None
    if asked.data:
        print_table(asked.data, embedder)
        for name, is_dev in product(ANSWERED, (True, False)):
            told = of_set(asked.data, name, dev=is_dev)
            print_attributed(f"{name}, {'dev' if is_dev else 'held out'}", told, every=asked.show)
    given = [path for path in asked.cases or () if not brings_sources(path)]
    if given:
        parser.error(f"{given[0]} is over a public set: leave --cases out and give --data")
    every = filter(brings_sources, sorted(CASES.glob("*.jsonl")))
    for path in asked.numbers:
        print_numbers(path, embedder, every=asked.show)
    paths = [] if asked.cases is None else asked.cases or list(every)
    if paths:
        print_set_aside(paths, embedder)
    for path in paths:
        print_cases(path, embedder, every=asked.show)
        print_attributed(path.name, of_cases(path), every=asked.show)


def print_cases(path: Path, embedder: Embedder | None, *, every: bool) -> None:
    """How often each kind of statement is warned of; with `every`, which were judged wrongly."""
    counted: Counter[tuple[str, bool]] = Counter()
    styles: dict[tuple[str, str], list[bool]] = defaultdict(list)
    left = 0  # dishonest ones that a judge who is always right would not be asked about
    for answer in answers(path):
        checked = check(answer.text, answer.sources, embedder=embedder)
        for start, end, label, style in answer.rows:
            warned = warnings_in(checked, start, end)
            kind = kind_of(label, style)
            counted[kind, bool(warned)] += 1
            own = [c.verdict for c in checked.citations if start <= c.start < end]
            left += label == "D" and not warned and Verdict.OPEN not in own
            styles[kind, style].append(bool(warned))
            if every and bool(warned) != (label == "D"):
                verdicts = [c.verdict.value for c in checked.citations if start <= c.start < end]
                print(label, style, "|", answer.text[start:end].strip(), "|", warned or verdicts)
    print(path.name)
    for kind in (HONEST, DISTORTED, DISHONEST):
        yes, no = counted[kind, True], counted[kind, False]
        print(f"  {kind:16} warned {yes:3} of {yes + no:3}  {100 * yes / max(1, yes + no):.1f} %")
    print(f"  dishonest, and neither warned of nor open: {left}")
    for (kind, style), found in sorted(styles.items()):
        print(f"      {kind:16} {style:28} {sum(found)} of {len(found)}")


if __name__ == "__main__":
    main()

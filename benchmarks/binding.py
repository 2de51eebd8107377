"""How well binding tells a number in its place from one that moved: python -m benchmarks.binding

Data: cited answers of `ragqa_arena` and `expertqa`. A pair is right when the sentence is the
cited one, shortened, or revised by an expert; it is wrong when the number comes from another
sentence of the same answer, or when a figure or a negation was changed.
"""

import argparse
import gzip
import json
import os
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from rag.citations.binding import SIMILARITY, Embed, Evidence
from rag.citations.claims import Claim, statements, without_markers
from rag.summaries.shorten import telegram, trim_sentence

DEFAULT = Path(__file__).parents[2] / "shared" / "data"


@dataclass(frozen=True)
class Case:
    """Whether `number` stands rightly after `sentence`, given the claims of the answer."""

    kind: str
    claims: tuple[Claim, ...]
    sentence: str
    number: int
    is_right: bool


def answers(data: Path) -> Iterator[tuple[str, str]]:
    """Answers with their revisions ("" for none)."""
    for path in sorted((data / "cited_answers").glob("ragqa*.jsonl")):
        for line in path.read_text().splitlines():
            yield json.loads(line)["answer"], ""
    for path in sorted((data / "expertqa" / "dev").glob("*.gz")):
        with gzip.open(path, "rt") as lines:
            for line in lines:
                record = json.loads(line)
                yield record["answer"], record.get("answer_revised_by_expert") or ""


def cases_of(answer: str, revised: str, chance: random.Random) -> Iterator[Case]:
    """The cases of one answer."""
    found = [statement for statement in statements(answer) if statement.claims]
    claims = tuple(claim for statement in found for claim in statement.claims)
    revisions = [without_markers(statement.text) for statement in statements(revised)]
    for statement in found:
        plain = without_markers(statement.text)
        number = statement.numbers[0]
        if len(plain) < 20 or len(plain) > 500:
            continue
        yield Case("as written", claims, plain, number, True)
        yield Case("trimmed", claims, trim_sentence(plain), number, True)
        yield Case("telegram", claims, telegram(trim_sentence(plain)), number, True)
        for revision in revisions:
            if 0.6 < SequenceMatcher(None, plain, revision).ratio() < 0.97:
                yield Case("revised", claims, revision, number, True)
                break
        others = [n for other in found for n in other.numbers if n not in statement.numbers]
        if others:
            moved = chance.choice(others)
            yield Case("moved", claims, plain, moved, False)
            yield Case("moved, telegram", claims, telegram(trim_sentence(plain)), moved, False)
        altered = re.sub(r"\d+", lambda match: str(int(match[0]) + 7), plain, count=1)
        if altered != plain:
            yield Case("another figure", claims, altered, number, False)
        if " is " in plain and " not " not in plain:
            yield Case("negated", claims, plain.replace(" is ", " is not ", 1), number, False)


def share_bound(cases: list[Case], embed: Embed | None, similarity: float) -> float:
    """How many of the cases are taken as bound."""
    bound = 0
    for case in cases:
        evidence = Evidence(case.claims, embed=embed, similarity=similarity)
        bound += evidence.binds(Claim(case.sentence, (case.number,), 0, 0), case.number)
    return bound / max(1, len(cases))


def table(cases: list[Case], ways: list[tuple[str, Embed | None, float]]) -> None:
    """Shares taken as bound, by kind; precision and recall over all."""
    kinds = list(dict.fromkeys(case.kind for case in cases))
    print(f"{'kind':<18}{'cases':>7}" + "".join(f"{name:>16}" for name, _, _ in ways))
    for kind in kinds:
        own = [case for case in cases if case.kind == kind]
        shares = [share_bound(own, embed, least) for _, embed, least in ways]
        print(f"{kind:<18}{len(own):>7}" + "".join(f"{share:>16.1%}" for share in shares))
    for name, embed, least in ways:
        right = [case for case in cases if case.is_right]
        wrong = [case for case in cases if not case.is_right]
        kept, taken = share_bound(right, embed, least), share_bound(wrong, embed, least)
        hits, misses = kept * len(right), taken * len(wrong)
        precision = hits / max(1, hits + misses)
        print(f"{name:<18} precision {precision:.3f}, recall {kept:.3f}")


def cached(embed: Embed) -> Embed:
    """Each text is embedded once for all thresholds."""
    import numpy as np

    known: dict[str, object] = {}

    def look_up(texts: object) -> object:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known.update(zip(new, embed(new), strict=True))
        return np.stack([known[text] for text in texts])

    return look_up


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = os.environ.get("GROUNDNOTE_BENCH_DATA", DEFAULT)
    parser.add_argument("--data", type=Path, default=default)
    parser.add_argument("--answers", type=int, default=300)
    parser.add_argument("--lexical", action="store_true", help="without the embedding model")
    chosen = parser.parse_args()
    chance = random.Random(1)
    every = list(answers(chosen.data))
    sample = chance.sample(every, min(chosen.answers, len(every)))
    cases = [case for answer, revised in sample for case in cases_of(answer, revised, chance)]
    ways: list[tuple[str, Embed | None, float]] = [("words", None, 0.0)]
    if not chosen.lexical:
        from rag.retrieval.embed import LocalEmbedder

        embed = cached(LocalEmbedder().embed)
        ways += [(f"cosine {t:.2f}", embed, t) for t in (0.6, SIMILARITY, 0.8, 0.88)]
    table(cases, ways)


if __name__ == "__main__":
    main()

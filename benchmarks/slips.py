"""Questions with one typing error, and German ones whose words the text joins or parts.

    python -m benchmarks.slips --data DIR [--cache DIR]

Each beside the same question as it would stand without: how many find a right passage in the
first three. `compounds.jsonl` is ours; the typing errors are made, always the same, in the longest
word of small letters of questions of a public set: two letters swapped, one left out, one another.
"""

import json
import random
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from benchmarks.corpora import Entry, data_option, judged, packaged
from benchmarks.retrieval import CachingEmbedder, Installation
from rag.records import EVERYTHING

COMPOUNDS = Path(__file__).parent / "compounds.jsonl"
EACH, QUESTIONS = 5, 60  # each fifth question of the set, so many
FEWEST_LETTERS = 5
SHOWN = 3


def typed(question: str, seed: int) -> str:
    """The question with one slip; as it is where no word is long enough."""
    chance = random.Random(seed)
    words = [word.strip("?.,!") for word in question.split()]
    words = [word for word in words if word.isalpha() and word.islower()]
    longest = max(words, key=len, default="")
    if len(longest) < FEWEST_LETTERS:
        return question
    at, kind = chance.randrange(1, len(longest) - 1), chance.randrange(3)
    first, second = longest[at], longest[at + 1]
    slips = (second + first, second, chance.choice("abcdefghijklmnopqrstuvwxyz") + second)
    return question.replace(longest, longest[:at] + slips[kind] + longest[at + 2 :], 1)


def found(place: Installation, questions: Sequence[str], right: Sequence[Mapping[str, int]]) -> int:
    """How many have a right document in the first three."""
    return sum(
        any(
            hit.chunk.document_name in names
            for hit in place.retriever.search(question, EVERYTHING, limit=SHOWN)
        )
        for question, names in zip(questions, right, strict=True)
    )


def compare(
    name: str,
    entries: Sequence[Entry],
    pairs: Sequence[tuple[str, str]],
    right: Sequence[Mapping[str, int]],
    embedder: CachingEmbedder,
) -> None:
    """Print both columns for pairs of a plain question and the other one."""
    with tempfile.TemporaryDirectory() as folder:
        place = Installation(Path(folder), embedder)
        place.ingest(entries)
        plain, other = (found(place, list(column), right) for column in zip(*pairs, strict=True))
        place.index.close()
    print(f"{name:<12}{len(pairs):>4} questions  as they are {plain:>3}  so {other:>3}", flush=True)


@click.command()
@data_option
@click.option("--cache", type=click.Path(path_type=Path), help="Keep vectors here between runs.")
def main(data: Path, cache: Path | None) -> None:
    """Measure."""
    embedder = CachingEmbedder(packaged(), cache)
    rows = [json.loads(line) for line in COMPOUNDS.read_text(encoding="utf-8").splitlines()]
    entries = [Entry(f"d{at}", f"Seite {at}", row["text"]) for at, row in enumerate(rows)]
    pairs = [(row["clean"], row["question"]) for row in rows]
    compare("compounds", entries, pairs, [{f"d{at}": 1} for at in range(len(rows))], embedder)
    corpus = judged(data, "emanual")
    every = [key for key in corpus.queries if key in corpus.judgments][::EACH]
    asked = {
        key: (corpus.queries[key], typed(corpus.queries[key], at)) for at, key in enumerate(every)
    }
    keys = [key for key, (text, other) in asked.items() if text != other][:QUESTIONS]
    pairs = [asked[key] for key in keys]
    compare("slips", corpus.entries, pairs, [corpus.judgments[key] for key in keys], embedder)


if __name__ == "__main__":
    main()

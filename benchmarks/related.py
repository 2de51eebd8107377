"""Write the list of English words that mean about the same, as the packaged embedder sees it.

Each line is a stem and the stems nearest to it. The check of citations reads the list instead of
embedding anything: a word of a statement counts as held where the source has a near one.

    python -m benchmarks.related [--near 0.62]
"""

import argparse
import re
from pathlib import Path

import numpy as np

from rag.language.words import ENGLISH, STOP_WORDS, stem
from rag.search.embedders.local import LocalEmbedder

TARGET = Path(__file__).parents[1] / "rag" / "language" / "languages" / "en_related.txt"
MOST = 10  # neighbours of a stem
OPPOSITES = {frozenset(map(stem, pair)) for pair in ENGLISH.groups["opposites"]}


def vocabulary(embedder: LocalEmbedder) -> list[str]:
    """The whole words of the model's own vocabulary: common ones, and few."""
    known = embedder.tokenizer.get_vocab()
    return sorted(w for w in known if re.fullmatch("[a-z]{3,}", w) and w not in STOP_WORDS)


def near(words: list[str], vectors: np.ndarray, threshold: float) -> dict[str, dict[str, float]]:
    """Stems to the stems of near words, with the greatest cosine of any pair of their words."""
    found: dict[str, dict[str, float]] = {}
    stems = [stem(word) for word in words]
    for at in range(0, len(words), 512):
        cosines = vectors[at : at + 512] @ vectors.T
        for row, column in np.argwhere(cosines >= threshold):
            one, other = stems[at + row], stems[column]
            if one != other and frozenset((one, other)) not in OPPOSITES:
                known = found.setdefault(one, {})
                known[other] = max(known.get(other, 0.0), float(cosines[row, column]))
    return found


def main() -> None:
    """Write the list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--near", type=float, default=0.62, help="cosine from which words are near")
    asked = parser.parse_args()
    embedder = LocalEmbedder()
    words = vocabulary(embedder)
    found = near(words, embedder.embed(words), asked.near)
    lines = []
    for one, others in sorted(found.items()):
        best = sorted(others, key=lambda other: (-others[other], other))[:MOST]
        lines.append(" ".join([one, *best]))
    TARGET.write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} stems, {sum(line.count(' ') for line in lines)} pairs in {TARGET.name}")


if __name__ == "__main__":
    main()

"""Find the statements that a summary no longer holds and that answer a question.

By words (BM25 over stems, the question of the same turn included), and by meaning where there is
an embedder. Adding a statement costs the same however many there are.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import nlargest
from typing import Any

import snowballstemmer

from rag.seams import TokenCounter
from rag.summaries.required import Line

Embed = Callable[[Sequence[str]], Any]  # one row for each text, of length 1
_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*")
_STEMMER = snowballstemmer.stemmer("english")
QUESTION_WEIGHT = 0.4  # of a word that stands in the question only
SATURATION, LENGTH_SHARE = 1.2, 0.6  # BM25's k1 and b
USUAL_LENGTH = 14  # words of a statement
COMMON_SHARE = 0.25  # of the statements: a word in more of them tells nothing, if others do
MOST_WORDS = 24
WORDS_WEIGHT = 0.5  # the rest is meaning


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    return str(_STEMMER.stemWord(word.casefold().replace("’", "'").removesuffix("'s")))


def stems(text: str) -> list[str]:
    """The stems of the words of a text, in order."""
    return [_stem(word) for word in _WORD.findall(text)]


@dataclass(slots=True)
class RecallIndex:
    """The statements of the turns that are summarised, by their words."""

    embed: Embed | None = None
    lines: list[Line] = field(default_factory=list)
    postings: dict[str, dict[int, float]] = field(default_factory=dict)  # word: line: weight
    shapes: dict[str, list[int]] = field(default_factory=dict)  # figures apart: lines
    vectors: list[Any] = field(default_factory=list)

    def copy(self) -> "RecallIndex":
        postings = {word: dict(lines) for word, lines in self.postings.items()}
        shapes = {shape: list(lines) for shape, lines in self.shapes.items()}
        return RecallIndex(
            self.embed,
            list(self.lines),
            postings,
            shapes,
            list(self.vectors),
        )

    def add(self, lines: Iterable[Line], question: str) -> None:
        """Statements of one answer, and the question that it replies to."""
        asked = Counter(stems(question[:400]))
        for line in lines:
            number = len(self.lines)
            said = Counter(stems(f"{line.lead_in} {line.text}"))
            self.lines.append(line)
            length = 1 - LENGTH_SHARE + LENGTH_SHARE * said.total() / USUAL_LENGTH
            for word in {**asked, **said}:
                frequency = said[word] or QUESTION_WEIGHT
                weight = frequency * (SATURATION + 1) / (frequency + SATURATION * length)
                self.postings.setdefault(word, {})[number] = weight
            self.shapes.setdefault(_shape(line), []).append(number)

    def best(self, question: str, *, limit: int) -> list[Line]:
        """The statements that bear most on a question, best first.

        Each comes with those that say the same with another figure.
        """
        scores = self._by_words(question)
        if self.embed is not None:
            scores = self._with_meaning(question, scores)
        found: dict[str, Line] = {}
        for _, number in nlargest(limit, zip(scores.values(), scores, strict=True)):
            for alike in reversed(self.shapes[_shape(self.lines[number])][-3:]):
                found.setdefault(self.lines[alike].words, self.lines[alike])
            if len(found) >= limit:
                break
        return list(found.values())

    def _by_words(self, question: str) -> dict[int, float]:
        words = dict.fromkeys(stems(question))
        known = sorted(
            (w for w in words if w in self.postings), key=lambda w: len(self.postings[w])
        )
        most = max(20, int(COMMON_SHARE * len(self.lines)))
        telling = [word for word in known if len(self.postings[word]) <= most] or known
        scores: dict[int, float] = {}
        for word in telling[:MOST_WORDS]:
            found = self.postings[word]
            rarity = math.log(1 + (len(self.lines) - len(found) + 0.5) / (len(found) + 0.5))
            for number, weight in found.items():
                scores[number] = scores.get(number, 0.0) + rarity * weight
        return scores

    def _with_meaning(self, question: str, by_words: dict[int, float]) -> dict[int, float]:
        import numpy as np

        assert self.embed is not None, "only called with an embedder"
        new = self.lines[len(self.vectors) :]
        if new:
            self.vectors += list(np.asarray(self.embed([_embedded(line) for line in new])))
        if not self.vectors:
            return by_words
        asked = np.asarray(self.embed([question]))[0]
        near = np.asarray(self.vectors) @ asked
        most = max(by_words.values(), default=0.0) or 1.0
        return {
            number: WORDS_WEIGHT * by_words.get(number, 0.0) / most
            + (1 - WORDS_WEIGHT) * max(0.0, float(meaning))
            for number, meaning in enumerate(near)
        }


def _shape(line: Line) -> str:
    """The words without figures: the same for statements that differ in nothing else."""
    return re.sub(r"\d", "", line.words)


def _embedded(line: Line) -> str:
    return f"{line.lead_in} {line.text}".strip()


# ── What the question is given ───────────────────────────────────────────────────────────────

RECALLED = (
    "Earlier statements of this conversation that bear on the question, the newest first; where "
    "two differ, the newer one holds:"
)
MOST_RECALLED = 12
JOINED_TOKENS = 3  # that a text put before another may take more


def recalled_text(
    index: RecallIndex, question: str, shown: Collection[str], *, room: int, count: TokenCounter
) -> str:
    """The statements to put before a question, or ""; `shown` are the words of those in sight."""
    left = room - count(f"{RECALLED}\n") - JOINED_TOKENS
    if left <= 0 or not index.lines:
        return ""
    kept: list[Line] = []
    for line in index.best(question, limit=MOST_RECALLED):
        cost = line.tokens + line.lead_in_tokens
        if line.words not in shown and cost <= left:
            kept.append(line)
            left -= cost
    if not kept:
        return ""
    kept.sort(key=lambda line: line.place, reverse=True)
    said = [part for line in kept for part in (line.lead_in, line.text) if part]
    return "\n".join([RECALLED, *said])

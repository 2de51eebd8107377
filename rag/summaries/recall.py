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

    def copy(self, *, before: int) -> "RecallIndex":
        """The same index of the messages before one."""
        kept = [line for line in self.lines if line.message < before]
        postings = {
            word: {number: weight for number, weight in found.items() if number < len(kept)}
            for word, found in self.postings.items()
        }
        shapes = {
            shape: [number for number in numbers if number < len(kept)]
            for shape, numbers in self.shapes.items()
        }
        return RecallIndex(self.embed, kept, postings, shapes, self.vectors[: len(kept)])

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

    def best(self, question: str, *, before: int, limit: int) -> list[Line]:
        """The statements of the messages before one that bear most on a question, best first.

        Each comes with those that say the same with another figure.
        """
        scores = self._by_words(question)
        if self.embed is not None:
            scores = self._with_meaning(question, scores)
        found: dict[str, Line] = {}
        for _, number in nlargest(3 * limit, zip(scores.values(), scores, strict=True)):
            alike = [self.lines[each] for each in self.shapes[_shape(self.lines[number])]]
            for line in [line for line in alike if line.message < before][:-4:-1]:
                found.setdefault(line.words, line)
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
    index: RecallIndex,
    question: str,
    shown: Collection[Line],
    *,
    before: int,
    room: int,
    count: TokenCounter,
) -> str:
    """The statements to put before a question, or ""; `shown` are those in sight already."""
    in_sight = {line.words for line in shown}
    left = room - count(f"{RECALLED}\n") - JOINED_TOKENS
    if left <= 0 or not index.lines:
        return ""
    kept: list[Line] = []
    for line in index.best(question, before=before, limit=MOST_RECALLED):
        cost = line.tokens + line.lead_in_tokens
        if line.words not in in_sight and cost <= left:
            kept.append(line)
            left -= cost
    if not kept:
        return ""
    kept.sort(key=lambda line: line.place, reverse=True)
    said = [part for line in kept for part in (line.lead_in, line.text) if part]
    return "\n".join([RECALLED, *said])

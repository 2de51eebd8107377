"""What was said earlier and bears on a question: BM25 over paragraphs, and meaning where it can.

A paragraph is found by its own words and those of the question that it answers; what was said just
before and after it counts a little, since people do not name a thing twice. Adding a paragraph
costs the same however many there are; of a word that very many hold, the newest are looked at.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import nlargest
from itertools import pairwise
from typing import Any

from rag.language.languages import ENGLISH, Language
from rag.language.synonyms import canonical, related
from rag.language.words import UNSPACED, language_of, stem, tokens
from rag.memory.paragraphs import Paragraph

Embed = Callable[[Sequence[str]], Any]  # one row for each text, of length 1
SATURATION, LENGTH_SHARE = 1.2, 0.75  # BM25's k1 and b
ASKED_WEIGHT = 0.5  # of the words of the question that a paragraph answers
RELATED_WEIGHT = 0.3  # of words of about the same meaning
NEAR = ((-1, 0.25), (-2, 0.2), (1, 0.15), (2, 0.1))  # messages around one, and what they tell of it
MOST_TELLING = 200  # messages that tell of those around them
MOST_WORDS = 24  # of a question
MOST_HOLDERS = 2_000  # of one word that are looked at
LONGEST_QUESTION = 1_000  # characters of one that are read
MEANING_WEIGHT = 0.45


@dataclass(slots=True)
class Index:
    """The paragraphs of one conversation by their words, oldest first."""

    paragraphs: list[Paragraph] = field(default_factory=list)
    lengths: array[float] = field(default_factory=lambda: array("f"))
    words: list[tuple[str, ...]] = field(default_factory=list)
    holders: dict[str, array[int]] = field(default_factory=dict)  # word: paragraphs
    counts: dict[str, array[float]] = field(default_factory=dict)  # how often each says it
    of_message: dict[int, range] = field(default_factory=dict)
    total: float = 0.0  # of the lengths

    def add(self, paragraphs: Sequence[Paragraph], question: str = "") -> None:
        """Those of the next message, and the question that it answers."""
        first = len(self.paragraphs)
        if not paragraphs:
            return
        language = language_of(" ".join(each.text for each in paragraphs)[:4000])
        asked = Counter(telling(question[:LONGEST_QUESTION], language))
        for number, paragraph in enumerate(paragraphs, start=first):
            own = Counter(telling(f"{paragraph.setting} {paragraph.text}", language))
            length = float(own.total())
            for word in own.keys() | asked.keys():
                count = own[word] + ASKED_WEIGHT * (word in asked)
                self.holders.setdefault(word, array("L")).append(number)
                self.counts.setdefault(word, array("f")).append(count)
            self.words.append((*own.keys(), *(word for word in asked if word not in own)))
            self.lengths.append(length)
            self.total += length
        self.paragraphs += paragraphs
        self.of_message[paragraphs[0].message] = range(first, len(self.paragraphs))

    def cut(self, message: int) -> None:
        """Forget the paragraphs of this message and of all after it."""
        while self.paragraphs and self.paragraphs[-1].message >= message:
            gone = self.paragraphs.pop()
            self.of_message.pop(gone.message, None)
            self.total -= self.lengths.pop()
            for word in self.words.pop():
                self.holders[word].pop()
                self.counts[word].pop()
                if not self.holders[word]:
                    del self.holders[word], self.counts[word]

    def until(self, message: int) -> int:
        """How many paragraphs there are before a message."""
        return bisect_left(self.paragraphs, message, key=lambda each: each.message)

    def best(
        self, question: str, *, before: int, meanings: Mapping[int, float] | None = None
    ) -> list[int]:
        """The paragraphs of messages before one that bear on a question at all, best first."""
        scores = self._by_words(question)
        if meanings:
            scores = _fused(scores, meanings)
        scores = self._with_near(scores)
        results = [
            (score, at) for at, score in scores.items() if self.paragraphs[at].message < before
        ]
        return [at for _, at in sorted(results, reverse=True)]

    def _by_words(self, question: str) -> dict[int, float]:
        every, scores = len(self.paragraphs), dict[int, float]()
        base = SATURATION * (1 - LENGTH_SHARE)
        slope = SATURATION * LENGTH_SHARE * every / (self.total or 1.0)
        for word, weight in self._weights(question[:LONGEST_QUESTION]).items():
            holders, counts, held = self.holders[word], self.counts[word], len(self.holders[word])
            rarity = weight * math.log(1 + (every - held + 0.5) / (held + 0.5)) * (SATURATION + 1)
            for at, count in zip(holders[-MOST_HOLDERS:], counts[-MOST_HOLDERS:], strict=True):
                told = rarity * count / (count + base + slope * self.lengths[at])
                scores[at] = scores.get(at, 0.0) + told
        return scores

    def _weights(self, question: str) -> dict[str, float]:
        """The words of a question that were said, and others of about the same meaning."""
        languages = dict.fromkeys([language_of(question), ENGLISH])  # what was said may be English
        own = dict.fromkeys(word for language in languages for word in telling(question, language))
        weights: dict[str, float] = {}
        for word in list(own)[:MOST_WORDS]:
            near = [other for other in related(word) if other in self.holders]
            for other in near:
                weight = RELATED_WEIGHT / math.sqrt(len(near))
                weights[other] = max(weights.get(other, 0.0), weight)
        rarest = sorted(weights, key=lambda word: (len(self.holders[word]), word))[:MOST_WORDS]
        weights = {word: weights[word] for word in rarest}
        weights |= {word: 1.0 for word in list(own)[:MOST_WORDS] if word in self.holders}
        return weights

    def _with_near(self, scores: dict[int, float]) -> dict[int, float]:
        """With what is told by the messages around each."""
        best: dict[int, float] = {}
        for at, score in scores.items():
            message = self.paragraphs[at].message
            best[message] = max(best.get(message, 0.0), score)
        around = dict[int, float]()
        for message in nlargest(MOST_TELLING, best, key=best.__getitem__):
            for step, weight in NEAR:
                for at in self.of_message.get(message - step, ()):
                    around[at] = around.get(at, 0.0) + weight * best[message]
        return {at: scores.get(at, 0.0) + around.get(at, 0.0) for at in scores.keys() | around}


def _fused(scores: dict[int, float], meanings: Mapping[int, float]) -> dict[int, float]:
    """Words and meaning, each by its own best."""
    most, nearest = max(scores.values(), default=1.0), max(meanings.values())
    return {
        at: (1 - MEANING_WEIGHT) * scores.get(at, 0.0) / most
        + MEANING_WEIGHT * meanings.get(at, 0.0) / nearest
        for at in scores.keys() | meanings.keys()
    }


@lru_cache(maxsize=1024)
def telling(text: str, language: Language) -> tuple[str, ...]:
    """What is looked up of a text: stems of its words, synonyms as one, and its figures."""
    found: list[str] = []
    for token in tokens(text):
        lowered = token.lowered
        if UNSPACED.search(lowered):
            found += (one + other for one, other in pairwise(lowered))
        elif lowered.partition("'")[0] not in language.function_words:
            found.append(canonical(stem(lowered, language.code)))
    return tuple(found)

"""What was said earlier and bears on a question: BM25 over paragraphs, and meaning where it can.

A paragraph is found by its own words and those of the question that it answers; what was said just
before and after it counts a little, since people do not name a thing twice. Adding a paragraph
costs the same however many there are; of a word that very many hold, the newest are looked at.
"""

from __future__ import annotations

import math
import sys
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any, Protocol

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
MOST_HOLDERS = 400  # of one word that are looked at, besides those that hold a rarer one
MOST_RANKED = 500  # paragraphs: more than any room takes
MOST_OLDER = 100  # paragraphs not held here whose meaning is looked at, by their words
PLACES = 1 << 20  # of paragraphs in one message
REST = PLACES - 1
LONGEST_QUESTION = 1_000  # characters of one that are read
MEANING_WEIGHT = 0.45
# Older messages to look at as well in; paragraphs with their nearness out.
Meanings = Callable[[Sequence[int]], Mapping[int, float]]


@dataclass(slots=True)
class Postings:
    """Where a word is said, oldest first: how often there, and the words of that paragraph."""

    positions: array[int] = field(default_factory=lambda: array("Q"))
    counts: array[float] = field(default_factory=lambda: array("f"))
    lengths: array[float] = field(default_factory=lambda: array("f"))
    holders: int = 0  # paragraphs that say it, where not all of them are here

    def packed(self) -> bytes:
        """As bytes, little-endian."""
        return b"".join(_in_order(part).tobytes() for part in self._parts)

    @classmethod
    def unpacked(cls, blocks: Sequence[bytes], holders: int) -> Postings:
        """Of what was packed, oldest first."""
        postings = cls(holders=holders)
        for block in blocks:
            count, start = len(block) // BYTES, 0
            for part in postings._parts:
                fresh = array(part.typecode)
                fresh.frombytes(block[start : start + count * part.itemsize])
                part.extend(_in_order(fresh))
                start += count * part.itemsize
        return postings

    @property
    def _parts(self) -> tuple[array[Any], ...]:
        return self.positions, self.counts, self.lengths

    def cut(self, first: int, end: int) -> Postings:
        """Those of the messages `[first, end)`."""
        low, high = (bisect_left(self.positions, end * PLACES) for end in (first, end))
        return Postings(
            self.positions[low:high], self.counts[low:high], self.lengths[low:high], high - low
        )

    def looked_at(self, paragraphs: Set[int]) -> list[int]:
        """The places of the newest, and of these paragraphs where more say it."""
        count = len(self.positions)
        first = max(0, count - MOST_HOLDERS)
        older = sorted(paragraphs & set(self.positions[:first])) if first else ()
        return [*(bisect_left(self.positions, place) for place in older), *range(first, count)]


BYTES = 16  # of a paragraph in packed postings


def _in_order(part: array[Any]) -> array[Any]:
    """In the other order of bytes where the machine is big-endian."""
    if sys.byteorder == "big":
        part = array(part.typecode, part)
        part.byteswap()
    return part


class OlderParagraphs(Protocol):
    """The paragraphs of messages that are not held in memory, by an index elsewhere."""

    def size(self) -> tuple[int, float]:
        """How many there are, and how many words all of them have."""

    def postings(self, words: Sequence[str]) -> Mapping[str, Postings]:
        """Of each word that is said in any the newest."""


@dataclass(slots=True)
class Index:
    """The paragraphs of one conversation by their words.

    The position of a paragraph is its message and its place in it.
    """

    older: OlderParagraphs | None = None
    words: dict[str, Postings] = field(default_factory=dict)
    sizes: dict[int, tuple[int, float]] = field(default_factory=dict)  # of messages
    count: int = 0
    total: float = 0.0  # of the lengths

    def add(self, message: int, paragraphs: Sequence[Paragraph], question: str = "") -> None:
        """Those of the next message, and the question that it answers."""
        if not paragraphs:
            return
        language = language_of(" ".join(paragraph.text for paragraph in paragraphs)[:4000])
        asked = Counter(telling(question[:LONGEST_QUESTION], language))
        whole = 0.0
        for place, paragraph in enumerate(paragraphs):
            words = Counter(telling(f"{paragraph.setting} {paragraph.text}", language))
            length = float(words.total())
            for word in words.keys() | asked.keys():
                count = words[word] + ASKED_WEIGHT * (word in asked)
                self._put(word, message, place, count, length)
            for number in (*paragraph.numbers, *paragraph.behind):
                self._put(number_word(number), message, place, 1.0, length)
            whole += length
        self.sizes[message] = (len(paragraphs), whole)
        self.count, self.total = self.count + len(paragraphs), self.total + whole

    def _put(self, word: str, message: int, place: int, count: float, length: float) -> None:
        postings = self.words.setdefault(word, Postings())
        postings.positions.append(message * PLACES + place)
        postings.counts.append(count)
        postings.lengths.append(length)
        postings.holders += 1

    def keep(self, first: int, end: int) -> None:
        """Forget the paragraphs of all messages but `[first, end)`."""
        self.words = self._cut(first, end)
        self.sizes = {m: size for m, size in self.sizes.items() if first <= m < end}
        self.count = sum(count for count, _ in self.sizes.values())
        self.total = sum(length for _, length in self.sizes.values())

    def block(self, first: int, end: int) -> dict[str, bytes]:
        """The words of these messages, packed."""
        return {word: part.packed() for word, part in self._cut(first, end).items()}

    def _cut(self, first: int, end: int) -> dict[str, Postings]:
        parts = ((word, postings.cut(first, end)) for word, postings in self.words.items())
        return {word: part for word, part in parts if part.holders}

    def holding(self, numbers: Sequence[int]) -> list[list[int]]:
        """The positions of paragraphs with each number, oldest first."""
        words = list(map(number_word, numbers))
        older = self.older.postings(words) if self.older and words else {}
        parts = ((older.get(word), self.words.get(word)) for word in words)
        return [[p for part in both if part for p in part.positions] for both in parts]

    def best(self, question: str, *, before: int, meanings: Meanings | None = None) -> list[int]:
        """The paragraphs of messages before one that bear on a question at all, best first.

        Place `REST` of a message stands for all of it that is not there by itself.
        """
        scores = self._by_words(question)
        near = meanings(self._oldest_first(scores)) if meanings else {}
        if near:
            scores = _fused(scores, near)
        scores = _with_near(scores)
        results = [(score, place) for place, score in scores.items() if place < before * PLACES]
        return [place for _, place in sorted(results, reverse=True)[:MOST_RANKED]]

    def _oldest_first(self, scores: Mapping[int, float]) -> list[int]:
        """The messages not held here that say most of a question's words, oldest first."""
        older = [place for place in scores if place < min(self.sizes, default=0) * PLACES]
        best = sorted(older, key=scores.__getitem__, reverse=True)[:MOST_OLDER]
        return sorted({place // PLACES for place in best})

    def _by_words(self, question: str) -> dict[int, float]:
        weights, postings = self._weighed(question[:LONGEST_QUESTION])
        older, total = self.older.size() if self.older else (0, 0.0)
        size, scores = self.count + older, dict[int, float]()
        base = SATURATION * (1 - LENGTH_SHARE)
        slope = SATURATION * LENGTH_SHARE * size / (self.total + total or 1.0)
        holders = {w: min(size, sum(p.holders for p in parts)) for w, parts in postings.items()}
        for word in sorted(weights, key=lambda word: (holders[word], word)):
            rarity = math.log(1 + (size - holders[word] + 0.5) / (holders[word] + 0.5))
            rarity *= weights[word] * (SATURATION + 1)
            for part in postings[word]:
                for index in part.looked_at(scores.keys()):
                    place, count = part.positions[index], part.counts[index]
                    score = rarity * count / (count + base + slope * part.lengths[index])
                    scores[place] = scores.get(place, 0.0) + score
        return scores

    def _weighed(self, question: str) -> tuple[dict[str, float], dict[str, list[Postings]]]:
        """The words of a question that were said, and others of about the same meaning.

        With what says them, the newest part first.
        """
        languages = dict.fromkeys([language_of(question), ENGLISH])  # what was said may be English
        stems = dict.fromkeys(word for lang in languages for word in telling(question, lang))
        words = list(stems)[:MOST_WORDS]
        near = [related(word) for word in words]
        sought = list(dict.fromkeys(chain(words, *near)))
        older = self.older.postings(sought) if self.older else {}
        postings = {
            word: [part for part in (self.words.get(word), older.get(word)) if part]
            for word in sought
        }
        postings = {word: parts for word, parts in postings.items() if parts}
        weights: dict[str, float] = {}
        for others in near:
            there = [other for other in others if other in postings]
            for other in there:
                weight = RELATED_WEIGHT / math.sqrt(len(there))
                weights[other] = max(weights.get(other, 0.0), weight)
        rarest = sorted(weights, key=lambda word: (sum(p.holders for p in postings[word]), word))
        weights = {word: weights[word] for word in rarest[:MOST_WORDS]}
        weights |= {word: 1.0 for word in words if word in postings}
        return weights, postings


def _with_near(scores: dict[int, float]) -> dict[int, float]:
    """With what is told by the messages around each."""
    best: dict[int, float] = {}
    for place, score in scores.items():
        message = place // PLACES
        best[message] = max(best.get(message, 0.0), score)
    around = dict[int, float]()
    for message in sorted(best, key=best.__getitem__, reverse=True)[:MOST_TELLING]:
        for step, weight in NEAR:
            if message >= step:
                near = message - step
                around[near] = around.get(near, 0.0) + weight * best[message]
    rest = {message * PLACES + REST: score for message, score in around.items()}
    return rest | {p: score + around.get(p // PLACES, 0.0) for p, score in scores.items()}


def number_word(number: int) -> str:
    """Under which the paragraphs with a number are found; no text says it."""
    return f"[{number}]"


def _fused(scores: dict[int, float], meanings: Mapping[int, float]) -> dict[int, float]:
    """Words and meaning, each by its own best."""
    most, nearest = max(scores.values(), default=1.0), max(meanings.values())
    return {
        place: (1 - MEANING_WEIGHT) * scores.get(place, 0.0) / most
        + MEANING_WEIGHT * meanings.get(place, 0.0) / nearest
        for place in scores.keys() | meanings.keys()
    }


@lru_cache(maxsize=1024)
def telling(text: str, language: Language) -> tuple[str, ...]:
    """What is looked up of a text: stems of its words, synonyms as one, and its figures."""
    words: list[str] = []
    for token in tokens(text):
        lowered = token.lowered
        if UNSPACED.search(lowered):
            words += (one + other for one, other in pairwise(lowered))
        elif lowered.partition("'")[0] not in language.function_words:
            words.append(canonical(stem(lowered, language.code)))
    return tuple(words)

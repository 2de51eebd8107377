"""Find earlier paragraphs that bear on a question: BM25, and vectors where a model makes them.

A paragraph is found by its own words and those of the question that it answers; what was said just
before and after it counts a little, since people do not name a thing twice. Adding a paragraph
costs the same however many there are; of a word that very many hold, the newest are looked at.

A short message is one paragraph. A longer one is cut between its paragraphs, lists, tables and
blocks of code; what is too long itself between entries, rows, lines or sentences. Each part knows
what it cannot be understood without: its headings, the line that leads in, the head of its table,
the entries that it stands under.
"""

from __future__ import annotations

import math
import re
import sys
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any, Protocol

from rag.citations.grammar import Marker
from rag.citations.markers import cited_numbers, find_markers, neutralise
from rag.language.sentences import LineKind, Sentence, leads_in, read_sentences
from rag.language.words import (
    ENGLISH,
    UNSPACED,
    Language,
    canonical,
    language_of,
    related,
    stem,
    tokens,
)
from rag.seams import TokenCounter

USUAL = 600  # bytes of UTF-8, some 150 tokens: as much is one paragraph
LONGEST = 900  # what is longer is cut
MOST_SETTING = 400  # characters of one line that stands over others
_STRETCH = re.compile(r".{1,4000}(?:\s|\Z)|.{1,4000}", re.DOTALL)  # of what has no end
_UNDERLINE = re.compile(r"=+|-{2,}")
_BOLD = re.compile(r"(\*\*|__)[^*_\n]{1,80}\1[ \t]*[:：]?")
_FENCE = re.compile(r"^[ \t>]*(?:`{3,}|~{3,})", re.MULTILINE)
_FENCES = re.compile(r"\A[ \t>]*(?:`{3,}|~{3,}).*\n?|\n?[ \t>]*(?:`{3,}|~{3,})[ \t]*\Z")
_NAME = re.compile(r"^[\s#*_:：>]+|[\s#*_:：>=-]+$")  # what is no part of a heading's name
_BETWEEN = re.compile(r"[\s.!?,;:。*_)\]]*")
_BOLD_LEVEL, _LEADING, _TEXT, _ENTRY = 7, 8, 9, 10  # below headings; what leads in; no heading
_TABLE = ("head", "row", "rule")


@dataclass(frozen=True, eq=False, slots=True)
class Paragraph:
    """A stretch of a message, word for word, with the lines without which it is not understood."""

    message: int
    text: str
    setting: str = ""  # lines that stand before it
    numbers: tuple[int, ...] = ()  # in it, or in its setting
    behind: tuple[int, ...] = ()  # at the end of what it is a part of, where it has none itself
    tokens: int = 0  # of all that is shown of it

    @property
    def with_setting(self) -> str:
        """The text to send: setting, paragraph, closing numbers; it ends with a line break."""
        marks = "".join(f"[{number}]" for number in self.behind)
        lines = (self.setting, self.text, f"(… {marks})" if marks else "")
        return "".join(f"{line}\n" for line in lines if line)


def read_paragraphs(
    message: int, text: str, count: TokenCounter, markers: Sequence[Marker] | None = None
) -> list[Paragraph]:
    """Return the paragraphs of a message in canonical spelling; `markers` are those that count."""
    markers = find_markers(text) if markers is None else markers
    everywhere = {number for marker in markers for number in marker.numbers}
    paragraphs: list[Paragraph] = []
    for part in _parts(text):
        words, setting = part.text(text), part.setting
        inside = [marker for marker in markers if part.start <= marker.start < part.end]
        # What reads otherwise alone than in its place cites nothing.
        if not set(cited_numbers(words)) <= {n for marker in inside for n in marker.numbers}:
            words = neutralise(words)
        if not set(cited_numbers(setting)) <= everywhere:
            setting = neutralise(setting)
        numbers = tuple(cited_numbers(f"{setting}\n{words}"))
        behind = () if numbers else _behind(text, part, markers)
        paragraph = Paragraph(message, words, setting, numbers, behind)
        paragraphs.append(replace(paragraph, tokens=count(paragraph.with_setting)))
    return paragraphs


def _behind(text: str, part: _ParagraphPart, markers: Sequence[Marker]) -> tuple[int, ...]:
    """Return the numbers at the end of a paragraph, or else of the message, if it has no others."""
    for start, end in (part.whole, (0, len(text))):
        inside = [marker for marker in markers if start <= marker.start < end]
        ends = [marker.end for marker in inside]
        starts = [*(marker.start for marker in inside[1:]), len(text[:end].rstrip())]
        if inside:
            closing = all(_BETWEEN.fullmatch(text[a:b]) for a, b in zip(ends, starts, strict=True))
            return tuple(dict.fromkeys(n for marker in inside for n in marker.numbers if closing))
    return ()


# ── Where a message is cut ───────────────────────────────────────────────────────────────────

_Over = tuple[int, int, str]  # a line that others stand under: its level, where it begins, itself


@dataclass(slots=True)
class _ParagraphPart:
    """The stretch `text[start:end]` of a message; `whole` is the span of its block."""

    start: int
    end: int
    kind: LineKind
    over: tuple[_Over, ...]
    whole: tuple[int, int]
    is_over: bool = False  # nothing but lines that others stand under

    @property
    def setting(self) -> str:
        names = (_NAME.sub("", line) for level, _, line in self.over if level < _LEADING)
        leading = (line.rstrip() for level, _, line in self.over if level >= _LEADING)
        return "\n".join(filter(None, (" › ".join(filter(None, names)), *leading)))

    def text(self, message: str) -> str:
        """Return the text of the part; code gets a fence of its own that nothing in it closes."""
        words = message[self.start : self.end].strip("\n").rstrip()
        if self.kind != "code":
            return words
        bare = _FENCES.sub("", words)
        fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", bare))])
        return f"{fence}\n{bare}\n{fence}" if bare else ""


def size(text: str) -> int:
    """Return the bytes of a text in UTF-8, which estimate its tokens in any script."""
    return len(text.encode("utf-8", "replace"))


def _parts(text: str) -> list[_ParagraphPart]:
    is_open = len(_FENCE.findall(text)) % 2 == 1 or text[:1] in " \t"
    whole = (0, len(text))
    if size(text) <= USUAL and not is_open:
        return [_ParagraphPart(*whole, "sentence", (), whole)] if text.strip() else []
    over: list[_Over] = []
    parts: list[_ParagraphPart] = []
    for block in _blocks(text):
        level = _heading_level(text, block)
        over = [head for head in over if head[0] < level]
        for part in _cut(text, block, tuple(over)):
            part.is_over = level < _TEXT
            _put(text, parts, part)
        over = [head for head in over if head[0] < _LEADING]  # what leads in leads to one block
        if level < _TEXT:
            line = text[block[0].start : block[-1].end]
            over.append((level, _begin(text, block[0]), line[:MOST_SETTING]))
    return parts


def _put(text: str, parts: list[_ParagraphPart], part: _ParagraphPart) -> None:
    """Join a part with the last one if both fit; drop a heading before the first part below it."""
    last = parts[-1] if parts else part
    is_cut = last.whole == part.whole
    is_under = part.over[: len(last.over)] == last.over
    fits = is_under and size(text[last.start : part.end]) <= USUAL and not part.is_over
    if last is not part and fits and (is_cut or "code" not in (last.kind, part.kind)):
        last.whole = last.whole if is_cut else (last.start, part.end)
        last.end, last.is_over = part.end, False
    elif last.is_over and last.start in [start for _, start, _ in part.over]:
        parts[-1] = part
    else:
        parts.append(part)


def _blocks(text: str) -> Iterator[list[Sentence]]:
    """Yield paragraphs, lists, tables and code blocks; a heading is a block of its own."""
    block: list[Sentence] = []
    for sentence in read_sentences(text):
        if block and not _belongs_to_block(text, block, sentence):
            yield block
            block = []
        block.append(sentence)
    if block:
        yield block


def _belongs_to_block(text: str, block: list[Sentence], unit: Sentence) -> bool:
    """Whether a sentence, entry, row or line belongs to a block."""
    kind, gap = block[0].kind, text[block[-1].end : unit.start]
    is_next = gap.count("\n") <= 1
    if kind == "entry":
        is_indented = gap.endswith((" ", "\t"))
        return unit.kind == "entry" or is_indented or (is_next and unit.kind == "sentence")
    if kind in _TABLE or kind == "code":
        return unit.kind == "code" if kind == "code" else unit.kind in _TABLE and is_next
    words = text[block[0].start : block[-1].end]
    if unit.kind == "rule":
        is_line = kind == "sentence" and "\n" not in words
        return is_next and is_line and bool(_UNDERLINE.fullmatch(text, unit.start, unit.end))
    is_bold = _BOLD.fullmatch(words) or _BOLD.fullmatch(text, unit.start, unit.end)
    return is_next and not is_bold and kind == unit.kind == "sentence" and block[-1].kind == kind


def _heading_level(text: str, block: list[Sentence]) -> int:
    """Return the level of a heading or a lead-in; `_TEXT` for any other block."""
    words = text[block[0].start : block[-1].end]
    if block[0].kind == "heading":
        bare = words.lstrip(" \t>")
        return len(bare) - len(bare.lstrip("#"))
    if block[0].kind != "sentence":
        return _TEXT
    if block[-1].kind == "rule":
        return 1 if words.endswith("=") else 2
    leads = _LEADING if leads_in(words) and len(words) <= MOST_SETTING else _TEXT
    return _BOLD_LEVEL if _BOLD.fullmatch(words) else leads


def _cut(text: str, block: list[Sentence], over: tuple[_Over, ...]) -> Iterator[_ParagraphPart]:
    """Yield a block whole, or cut it into pieces under its table's head or its upper entries."""
    whole, kind = (_begin(text, block[0]), block[-1].end), block[0].kind
    if size(text[slice(*whole)]) <= LONGEST:
        yield _ParagraphPart(*whole, kind, over, whole)
        return
    above: list[_Over] = []
    for group in _groups(block):
        start, end, first = _begin(text, group[0]), group[-1].end, group[0]
        level = _ENTRY + first.start - start
        if first.kind == "entry":
            above = [head for head in above if head[0] < level]
        spans = [(start, end)]
        if size(text[start:end]) > LONGEST:
            every = (_STRETCH.finditer(text, sentence.start, sentence.end) for sentence in group)
            spans = [stretche.span() for stretches in every for stretche in stretches]
        for a, b in spans:
            yield _ParagraphPart(a, b, kind, (*over, *above), whole)
        if first.kind in ("entry", "head"):
            line = text[start : first.end if first.kind == "entry" else end]
            above.append((level, start, line[:MOST_SETTING]))


def _groups(block: list[Sentence]) -> list[list[Sentence]]:
    """Group entries with their continuation and a table's head with its rule; else one by one."""
    groups: list[list[Sentence]] = []
    for sentence in block:
        begins = sentence.kind != "rule"
        if block[0].kind == "entry":
            begins = sentence.kind == "entry" and sentence.begins
        if begins or not groups:
            groups.append([])
        groups[-1].append(sentence)
    return groups


def _begin(text: str, unit: Sentence) -> int:
    """Return the start of the unit's line if only space stands before it, else of the unit."""
    start = text.rfind("\n", 0, unit.start) + 1
    return unit.start if text[start : unit.start].strip() else start


Embed = Callable[[Sequence[str]], Any]  # one row for each text, of length 1
SATURATION, LENGTH_SHARE = 1.2, 0.75  # BM25's k1 and b
QUESTION_WEIGHT = 0.5  # of the words of the question that a paragraph answers
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
    """The paragraphs that hold a word, oldest first, with its count and the paragraph's length."""

    positions: array[int] = field(default_factory=lambda: array("Q"))
    counts: array[float] = field(default_factory=lambda: array("f"))
    lengths: array[float] = field(default_factory=lambda: array("f"))
    holders: int = 0  # paragraphs that say it, where not all of them are here

    def packed(self) -> bytes:
        """Return the postings as little-endian bytes."""
        return b"".join(_in_order(part).tobytes() for part in self._parts)

    @classmethod
    def unpacked(cls, blocks: Sequence[bytes], holders: int) -> Postings:
        """Read postings from packed blocks, the oldest first."""
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
        """Return the postings of the messages `[first, end)`."""
        low, high = (bisect_left(self.positions, end * PLACES) for end in (first, end))
        return Postings(
            self.positions[low:high], self.counts[low:high], self.lengths[low:high], high - low
        )

    def looked_at(self, paragraphs: Set[int]) -> list[int]:
        """Return the indices of the newest postings, and of older ones among `paragraphs`."""
        count = len(self.positions)
        first = max(0, count - MOST_HOLDERS)
        older = sorted(paragraphs & set(self.positions[:first])) if first else ()
        return [*(bisect_left(self.positions, place) for place in older), *range(first, count)]


BYTES = 16  # of a paragraph in packed postings


def _in_order(part: array[Any]) -> array[Any]:
    """Swap the order of bytes if the machine is big-endian."""
    if sys.byteorder == "big":
        part = array(part.typecode, part)
        part.byteswap()
    return part


class OlderParagraphs(Protocol):
    """The paragraphs of messages that are not in memory, found by an index elsewhere."""

    def size(self) -> tuple[int, float]:
        """Return how many paragraphs there are, and how many words they have in all."""

    def postings(self, words: Sequence[str]) -> Mapping[str, Postings]:
        """Return the newest postings of each word that occurs in a paragraph."""


@dataclass(slots=True)
class Index:
    """The paragraphs of one conversation, found by their words.

    The position of a paragraph is `message * PLACES + place`, where `place` counts in the message.
    """

    older: OlderParagraphs | None = None
    words: dict[str, Postings] = field(default_factory=dict)
    sizes: dict[int, tuple[int, float]] = field(default_factory=dict)  # of messages
    count: int = 0
    total: float = 0.0  # of the lengths

    def add(self, message: int, paragraphs: Sequence[Paragraph], question: str = "") -> None:
        """Add the paragraphs of the next message, and the question that it answers."""
        if not paragraphs:
            return
        language = language_of(" ".join(paragraph.text for paragraph in paragraphs)[:4000])
        question_words = Counter(telling(question[:LONGEST_QUESTION], language))
        whole = 0.0
        for place, paragraph in enumerate(paragraphs):
            words = Counter(telling(f"{paragraph.setting} {paragraph.text}", language))
            length = float(words.total())
            for word in words.keys() | question_words.keys():
                count = words[word] + QUESTION_WEIGHT * (word in question_words)
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
        """Return the packed postings of each word in the messages `[first, end)`."""
        return {word: part.packed() for word, part in self._cut(first, end).items()}

    def _cut(self, first: int, end: int) -> dict[str, Postings]:
        parts = ((word, postings.cut(first, end)) for word, postings in self.words.items())
        return {word: part for word, part in parts if part.holders}

    def holding(self, numbers: Sequence[int]) -> list[list[int]]:
        """Return for each number the positions of the paragraphs that hold it, oldest first."""
        words = list(map(number_word, numbers))
        older = self.older.postings(words) if self.older and words else {}
        parts = ((older.get(word), self.words.get(word)) for word in words)
        return [[p for part in both if part for p in part.positions] for both in parts]

    def best(self, question: str, *, before: int, meanings: Meanings | None = None) -> list[int]:
        """Return the positions of paragraphs before message `before` that match at all, best first.

        Place `REST` of a message stands for all its paragraphs that are not listed themselves.
        """
        scores = self._by_words(question)
        if meanings:
            in_memory = min(self.sizes, default=0) * PLACES
            older = [place for place in scores if place < in_memory]
            best = sorted(older, key=scores.__getitem__, reverse=True)[:MOST_OLDER]
            near = meanings(sorted({place // PLACES for place in best}))
            scores = _fused(scores, near) if near else scores
        scores = _with_near(scores)
        results = [(score, place) for place, score in scores.items() if place < before * PLACES]
        return [place for _, place in sorted(results, reverse=True)[:MOST_RANKED]]

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
        """Return the weights of a question's words and of related words, and their postings.

        Of each word the newest postings come first.
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
    """Add to each score a share of the scores of the messages around it."""
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
    """Return the index word for a number; no text contains it as a word."""
    return f"[{number}]"


def _fused(scores: dict[int, float], meanings: Mapping[int, float]) -> dict[int, float]:
    """Combine the scores of words and of meaning, each relative to its own maximum."""
    most, nearest = max(scores.values(), default=1.0), max(meanings.values())
    return {
        place: (1 - MEANING_WEIGHT) * scores.get(place, 0.0) / most
        + MEANING_WEIGHT * meanings.get(place, 0.0) / nearest
        for place in scores.keys() | meanings.keys()
    }


@lru_cache(maxsize=1024)
def telling(text: str, language: Language) -> tuple[str, ...]:
    """Return the index words of a text: stems, one word for all synonyms, and figures."""
    words: list[str] = []
    for token in tokens(text):
        lowered = token.lowered
        if UNSPACED.search(lowered):
            words += (one + other for one, other in pairwise(lowered))
        elif lowered.partition("'")[0] not in language.function_words:
            words.append(canonical(stem(lowered, language.code)))
    return tuple(words)

"""Find the earlier statements that bear on a question, and put them back before it.

Both fronts do it here: the library over all statements of a transcript, the application over those
of the turns that a search led to. By words (BM25 over stems; the question of the same turn counts,
and a little what was said just before, since people do not name a thing twice), and by meaning
where there is an embedder. Adding a statement costs the same however many there are.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import nlargest
from typing import Any

from rag.citations.gate import canonical as canonical_text
from rag.records import Message, Source, Summary
from rag.seams import TokenCounter
from rag.summaries.required import Line, stated_lines
from rag.summaries.same_thing import About, about, gives_another_figure, telling
from rag.text.related import related
from rag.text.words import language_of

Embed = Callable[[Sequence[str]], Any]  # one row for each text, of length 1
RELATED_WEIGHT = 0.4  # of words of about the same meaning
INSTEAD_WEIGHT = 0.8  # the same where nobody said the word itself
MOST_TURNS = 100  # after which statements are looked at for that
BEFORE_WEIGHT = (0.2, 0.1)  # of what the turns before were about, the nearest first
SATURATION, LENGTH_SHARE = 1.2, 0.6  # BM25's k1 and b
USUAL_LENGTH = 8  # words of a statement that carry meaning
COMMON_SHARE = 0.25  # of the statements: a word in more of them tells nothing, if others do
FEW = 300  # statements, among which no word is common
MOST_WORDS = 24
MOST_RIVALS = 12  # statements of the same words that are looked at for another figure
WORDS_WEIGHT = 0.4  # the rest is meaning
NEAR_ENOUGH = 0.35  # cosine of a statement that shares no word with the question
LONGEST_QUESTION = 400  # characters of one that are read


@dataclass(slots=True)
class RecallIndex:
    """Statements by their words and their meaning."""

    embed: Embed | None = None
    only: frozenset[str] | None = None  # words of the one question asked of it; None for any
    near: list[float] = field(default_factory=list)  # each line to the one question asked of it
    lines: list[Line] = field(default_factory=list)
    postings: dict[str, dict[int, float]] = field(default_factory=dict)  # word: line: weight
    by_turn: dict[int, range] = field(default_factory=dict)  # answer: lines
    alike: dict[About, list[int]] = field(default_factory=dict)  # of one thing: lines
    vectors: list[Any] = field(default_factory=list)

    def copy(self, *, before: int) -> "RecallIndex":
        """The same index of the messages before one."""
        kept = [line for line in self.lines if line.message < before]
        postings = {
            word: {number: weight for number, weight in found.items() if number < len(kept)}
            for word, found in self.postings.items()
        }
        alike = {
            key: [number for number in numbers if number < len(kept)]
            for key, numbers in self.alike.items()
        }
        by_turn = {at: lines for at, lines in self.by_turn.items() if at < before}
        vectors = self.vectors[: len(kept)]
        return RecallIndex(self.embed, None, [], kept, postings, by_turn, alike, vectors)

    def add(self, lines: Sequence[Line], question: str) -> None:
        """Statements of one answer, and the question that it replies to."""
        if not lines:
            return
        language = language_of(" ".join(line.text for line in lines))
        asked = dict.fromkeys(self._looked_up(telling(question[:LONGEST_QUESTION], language)), 1)
        for line in lines:
            number = len(self.lines)
            told = telling(f"{line.lead_in} {line.text}", language)
            said = Counter(self._looked_up(told))
            self.lines.append(line)
            length = 1 - LENGTH_SHARE + LENGTH_SHARE * len(told) / USUAL_LENGTH
            for word, frequency in {**asked, **said}.items():
                weight = frequency * (SATURATION + 1) / (frequency + SATURATION * length)
                self.postings.setdefault(word, {})[number] = weight
            self.alike.setdefault(about(line), []).append(number)
        self.by_turn[lines[0].message] = range(len(self.lines) - len(lines), len(self.lines))

    def _looked_up(self, words: Iterable[str]) -> Iterable[str]:
        return words if self.only is None else filter(self.only.__contains__, words)

    def best(self, question: str, *, before: int, limit: int) -> list[Line]:
        """The statements of the messages before one that bear most on a question, best first.

        Each comes with those that give another figure for the same, wherever they stand.
        """
        scores = self._scores(question)
        best = nlargest(4 * limit, zip(scores.values(), scores, strict=True))
        pool = _echoes_last(self._newest(number for _, number in best))
        found: dict[Line, None] = {}
        for line in pool:
            if len(found) >= limit:
                break
            if line.message >= before:
                continue
            found[line] = None
            rivals = (self.lines[number] for number in self.alike[about(line)][-MOST_RIVALS:])
            found |= {other: None for other in rivals if gives_another_figure(line, other)}
        return list(found)

    def _newest(self, ranked: Iterable[int]) -> Iterator[Line]:
        """The lines, best first; of those that say the same with the same numbers, the newest."""
        found: dict[tuple[str, tuple[int, ...]], Line] = {}
        for number in ranked:
            line = self.lines[number]
            said = found.setdefault((line.words, line.numbers), line)
            if line.place > said.place:
                found[line.words, line.numbers] = line
        yield from found.values()

    def _scores(self, question: str) -> dict[int, float]:
        by_words = self._by_words(question)
        if any(self.near):
            meanings = self.near
        elif self.embed is not None:
            meanings = self._meanings(question)
        else:
            return by_words
        most, nearest = max(by_words.values(), default=0.0), max(meanings, default=0.0)
        return {
            number: WORDS_WEIGHT * by_words.get(number, 0.0) / (most or 1.0)
            + (1 - WORDS_WEIGHT) * max(0.0, meaning) / (nearest or 1.0)
            for number, meaning in enumerate(meanings)
            if number in by_words or meaning >= NEAR_ENOUGH
        }

    def _by_words(self, question: str) -> dict[int, float]:
        own, _ = _words_of(question)
        words = self._related(own) | dict.fromkeys(own, 1.0)
        known = [word for word in words if word in self.postings]
        most = max(FEW, int(COMMON_SHARE * len(self.lines)))
        scores: dict[int, float] = {}
        turns: dict[int, float] = {}
        for word in [word for word in known if len(self.postings[word]) <= most] or known:
            found = self.postings[word]
            rarity = math.log(1 + (len(self.lines) - len(found) + 0.5) / (len(found) + 0.5))
            rarity *= words[word]
            for number, weight in found.items():
                scores[number] = scores.get(number, 0.0) + rarity * weight
            for turn in dict.fromkeys(self.lines[number].message for number in found):
                turns[turn] = turns.get(turn, 0.0) + rarity
        for turn in nlargest(MOST_TURNS, turns, key=turns.__getitem__):
            for at, weight in enumerate(BEFORE_WEIGHT, start=1):
                for number in self.by_turn.get(turn + 2 * at, ()):  # a question and its answer
                    scores[number] = scores.get(number, 0.0) + weight * turns[turn]
        return scores

    def _related(self, own: Sequence[str]) -> dict[str, float]:
        """What was said in words of about the same meaning, and how much each of them tells."""
        found: dict[str, float] = {}
        for word in own:
            near = [other for other in related(word) if other in self.postings]
            weight = RELATED_WEIGHT if word in self.postings else INSTEAD_WEIGHT
            for other in near:
                found[other] = max(found.get(other, 0.0), weight / math.sqrt(len(near)))
        rarest = sorted(found, key=lambda word: (len(self.postings[word]), word))
        return {word: found[word] for word in rarest[:MOST_WORDS]}

    def _meanings(self, question: str) -> list[float]:
        import numpy as np

        assert self.embed is not None, "only called with an embedder"
        new = [f"{line.lead_in} {line.text}".strip() for line in self.lines[len(self.vectors) :]]
        if new:
            self.vectors += list(np.asarray(self.embed(new)))
        if not self.vectors:
            return []
        return [*map(float, np.asarray(self.vectors) @ np.asarray(self.embed([question]))[0])]


Answered = tuple[Message, Message, Sequence[float]]  # and how near its statements are


def index_of(turns: Iterable[Answered], count: TokenCounter, *, question: str) -> RecallIndex:
    """The statements of some turns, cited or not, by the words that one question looks up."""
    own, others = _words_of(question)
    index = RecallIndex(only=others.union(own))
    for asked, answer, near in turns:
        lines = _lines_of(answer.index, answer.content, asked.content, count)
        index.add(lines, asked.content)
        is_known = len(near) == len(lines)
        index.near += near if is_known else [max(near, default=0.0)] * len(lines)
    return index


def _words_of(question: str) -> tuple[list[str], frozenset[str]]:
    """What is looked up for a question: its own words, and those of about the same meaning."""
    asked = question[:LONGEST_QUESTION]
    own = list(dict.fromkeys(telling(asked, language_of(asked))))[:MOST_WORDS]
    return own, frozenset(each for word in own for each in related(word)).difference(own)


@lru_cache(maxsize=1024)
def _lines_of(index: int, answer: str, question: str, count: TokenCounter) -> list[Line]:
    return stated_lines(index, canonical_text(answer), question, count)


def _echoes_last(ranked: Iterable[Line]) -> Iterator[Line]:
    """The lines, but at the end those that tell no more than a better one with the same numbers."""
    said: dict[tuple[int, ...], list[str]] = {}
    echoes: list[Line] = []
    for line in ranked:
        words = _spelled(line.bare)
        others = said.setdefault(line.numbers, [])
        is_echo = bool(line.numbers) and any(words in each or each in words for each in others)
        others.append(words)
        if is_echo:
            echoes.append(line)
        else:
            yield line
    yield from echoes


@lru_cache(maxsize=8192)
def _spelled(text: str) -> str:
    words = (word.rstrip(".,;:!?-") for word in text.casefold().split())
    return f" {' '.join(filter(None, words))} "


# ── What the question is given ───────────────────────────────────────────────────────────────

RECALLED = "Earlier statements of this conversation that bear on the question, the newest first:"
LATER = "(Said later than the next statement, which gives another figure for the same.)"
MOST_RECALLED = 40
JOINED_TOKENS = 3  # that a text put before another may take more


@dataclass(frozen=True, slots=True)
class PutBack:
    """What stands before a question, and the statements in it."""

    text: str = ""
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True, slots=True)
class InSight:
    """What the prompt holds anyway: its summaries, and the sources that come with the question."""

    quoted: frozenset[str]  # lines of summaries
    sources: Mapping[int, str]  # by number, without white space
    shown: str  # as much of them as there is room for

    @classmethod
    def of(cls, summaries: Iterable[Summary], sources: Iterable[Source], shown: str) -> "InSight":
        by_number = {source.number: "".join(source.passage.split()) for source in sources}
        lines = frozenset(line for summary in summaries for line in summary.text.split("\n"))
        return cls(lines, by_number, "".join(shown.split()))

    def __call__(self, line: Line) -> bool:
        """Whether a statement is quoted there, or stands in each source that it cites."""
        said = line.words.rstrip(".")
        stands = [said in self.sources.get(number, "") for number in line.numbers]
        return line.text in self.quoted or (any(stands) and all(stands) and said in self.shown)


def put_back(
    index: RecallIndex,
    question: str,
    *,
    before: int,
    room: int,
    count: TokenCounter,
    in_sight: Callable[[Line], bool] = lambda line: False,
) -> PutBack:
    """The statements of messages before one that bear on a question, as far as they fit.

    What is `in_sight` already is left out, but for what another corrects.
    """
    left = room - count(f"{RECALLED}\n") - JOINED_TOKENS
    if left <= 0 or not index.lines:
        return PutBack()
    kept: list[list[Line]] = []
    noted = count(f"{LATER}\n")
    for group in _groups(index.best(question, before=before, limit=MOST_RECALLED)):
        if len(group) == 1 and (group[0].message >= before or in_sight(group[0])):
            continue
        cost = sum(line.tokens + line.lead_in_tokens for line in group)
        cost += noted * (len(group) - 1)
        if cost <= left:
            kept.append(group)
            left -= cost
    if not kept:
        return PutBack()
    lines = tuple(line for group in kept for line in group)
    return PutBack("\n".join([RECALLED, *_text(kept)]), lines)


def _groups(best: Iterable[Line]) -> list[list[Line]]:
    """Statements that give different figures for the same together, the newest first."""
    groups: list[list[Line]] = []
    alike: dict[About, list[list[Line]]] = {}
    for line in best:
        rivals = alike.setdefault(about(line), [])
        own = next((g for g in rivals if any(gives_another_figure(line, o) for o in g)), None)
        if own is None:
            groups.append([line])
            rivals.append(groups[-1])
        elif all(line.words != other.words for other in own):
            own.append(line)
    return [sorted(group, key=lambda line: line.place, reverse=True) for group in groups]


def _text(groups: Iterable[list[Line]]) -> Iterator[str]:
    for group in sorted(groups, key=lambda group: group[0].place, reverse=True):
        for line in group:
            yield from (part for part in (line.lead_in, line.text) if part)
            if line is not group[-1]:
                yield LATER

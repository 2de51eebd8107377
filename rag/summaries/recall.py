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
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rag.citations import gate
from rag.records import Source, Summary
from rag.seams import TokenCounter
from rag.summaries.required import Line, stated_lines
from rag.summaries.same_thing import About, about, gives_another_figure
from rag.text.languages import Language
from rag.text.related import canonical, related
from rag.text.words import UNSPACED, language_of, stem, tokens

if TYPE_CHECKING:
    from rag.sessions.recall import RecalledTurn

Embed = Callable[[Sequence[str]], Any]  # one row for each text, of length 1
RELATED_WEIGHT = 0.4  # of words of about the same meaning
INSTEAD_WEIGHT = 0.8  # the same where nobody said the word itself
MOST_TURNS = 100  # after which statements are looked at for that
BEFORE_WEIGHT = (0.2, 0.1)  # of what the turns before were about, the nearest first
SATURATION, LENGTH_SHARE = 1.2, 0.6  # BM25's k1 and b
USUAL_LENGTH = 8  # words of a statement that carry meaning
MOST_WORDS = 24
MOST_FOUND = 160  # statements that are looked at
COMMON = 300  # statements: a word in more of them costs much and tells little, if others do
WORDS_WEIGHT = 0.4  # the rest is meaning
NEAR_ENOUGH = 0.35  # cosine of a statement that shares no word with the question
LONGEST_QUESTION = 400  # characters of one that are read


@dataclass(slots=True)
class RecallIndex:
    """Statements by their words and their meaning."""

    embed: Embed | None = None
    near: list[float] = field(default_factory=list)  # each line to the one question, if known
    lines: list[Line] = field(default_factory=list)
    postings: dict[str, dict[int, float]] = field(default_factory=dict)  # word: line: weight
    by_turn: dict[int, range] = field(default_factory=dict)  # answer: lines
    vectors: list[Any] = field(default_factory=list)

    def copy(self, *, before: int) -> "RecallIndex":
        """The same index of the messages before one."""
        kept = [line for line in self.lines if line.message < before]
        postings = {
            word: {number: weight for number, weight in found.items() if number < len(kept)}
            for word, found in self.postings.items()
        }
        by_turn = {at: lines for at, lines in self.by_turn.items() if at < before}
        vectors = self.vectors[: len(kept)]
        return RecallIndex(self.embed, [], kept, postings, by_turn, vectors)

    def add(self, lines: Sequence[Line], question: str) -> None:
        """Statements of one answer, and the question that it replies to."""
        self.put(lines, weights_of(lines, question))

    def put(self, lines: Sequence[Line], weights: Iterable[Mapping[str, float]]) -> None:
        """The same with what the words of each line tell of it, as far as they are looked up."""
        first = len(self.lines)
        self.lines += lines
        for number, told in enumerate(weights, start=first):
            for word, weight in told.items():
                self.postings.setdefault(word, {})[number] = weight
        if lines:
            self.by_turn[lines[0].message] = range(first, len(self.lines))

    def best(self, question: str) -> list[Line]:
        """The statements that bear most on a question, best first."""
        scores = self._scores(question)
        best = nlargest(MOST_FOUND, zip(scores.values(), scores, strict=True))
        return list(_echoes_last(self.lines[number] for _, number in best))

    def _scores(self, question: str) -> dict[int, float]:
        by_words = self._by_words(question)
        meanings = self._meanings(question, self.embed) if self.embed else self.near
        if not any(meanings):
            return by_words
        most, nearest = max(by_words.values(), default=0.0), max(meanings, default=0.0)
        return {
            number: WORDS_WEIGHT * by_words.get(number, 0.0) / (most or 1.0)
            + (1 - WORDS_WEIGHT) * max(0.0, meaning) / (nearest or 1.0)
            for number, meaning in enumerate(meanings)
            if number in by_words or meaning >= NEAR_ENOUGH
        }

    def _by_words(self, question: str) -> dict[int, float]:
        own = _own_words(question)
        words = self._related(own) | dict.fromkeys(own, 1.0)
        scores: dict[int, float] = {}
        turns: dict[int, float] = {}
        known = [word for word in words if word in self.postings]
        for word in [each for each in known if len(self.postings[each]) <= COMMON] or known:
            found = self.postings[word]
            rarity = math.log(1 + (len(self.lines) - len(found) + 0.5) / (len(found) + 0.5))
            rarity *= words[word]
            for number, weight in found.items():
                scores[number] = scores.get(number, 0.0) + rarity * weight
            for turn in dict.fromkeys([self.lines[number].message for number in found]):
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

    def _meanings(self, question: str, embed: Embed) -> list[float]:
        import numpy as np

        new = [f"{line.lead_in} {line.text}".strip() for line in self.lines[len(self.vectors) :]]
        self.vectors += list(np.asarray(embed(new))) if new else []
        asked = np.asarray(embed([question]))[0]
        return [float(asked @ vector) for vector in self.vectors]


@lru_cache(maxsize=8192)  # the statements of a conversation are looked up at each of its turns
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


def _own_words(question: str) -> list[str]:
    asked = question[:LONGEST_QUESTION]
    return list(dict.fromkeys(telling(asked, language_of(asked))))[:MOST_WORDS]


def weights_of(lines: Sequence[Line], question: str) -> list[dict[str, float]]:
    """What each word of a line tells of it, and those of the question that its answer replies to.

    The rarer a word, the more: that is left to the index.
    """
    language = language_of(" ".join(line.text for line in lines))
    asked = dict.fromkeys(telling(question[:LONGEST_QUESTION], language), 1)
    weights: list[dict[str, float]] = []
    for line in lines:
        told = telling(f"{line.lead_in} {line.text}", language)
        length = 1 - LENGTH_SHARE + LENGTH_SHARE * len(told) / USUAL_LENGTH
        weights.append({
            word: frequency * (SATURATION + 1) / (frequency + SATURATION * length)
            for word, frequency in {**asked, **Counter(told)}.items()
        })  # fmt: skip
    return weights


def index_of(turns: "Iterable[RecalledTurn]", count: TokenCounter, question: str) -> RecallIndex:
    """The statements of some turns, cited or not, by the words that one question looks up."""
    own = _own_words(question)
    wanted = frozenset(own).union(*map(related, own))
    index = RecallIndex()
    for turn in turns:
        answer = turn.answer
        lines, weights = _read(answer.index, answer.content, turn.question.content, count)
        index.put(lines, ({word: told[word] for word in told.keys() & wanted} for told in weights))
        is_known = len(turn.near) == len(lines)
        index.near += turn.near if is_known else [max(turn.near, default=0.0)] * len(lines)
    return index


@lru_cache(maxsize=1024)  # a turn reads the same answers as the one before it
def _read(
    index: int, answer: str, question: str, count: TokenCounter
) -> tuple[list[Line], list[dict[str, float]]]:
    lines = stated_lines(index, gate.canonical(answer), question, count)
    return lines, weights_of(lines, question)


def _echoes_last(ranked: Iterable[Line]) -> Iterator[Line]:
    """The lines, but at the end those that tell no more than a better one with the same numbers."""
    said: dict[tuple[int, ...], list[str]] = {}
    echoes: list[Line] = []
    for line in ranked:
        words = line.words.casefold().strip("-*.,;:!?")
        others = said.setdefault(line.numbers, [])
        if any(words in each or each in words for each in others):
            echoes.append(line)
        else:
            yield line
        others.append(words)
    yield from echoes


# ── What the question is given ───────────────────────────────────────────────────────────────

RECALLED = "Earlier statements of this conversation that bear on the question, the newest first:"
LATER = "(Said later than the next statement, which gives another figure for the same.)"
MOST_RECALLED = 40  # and those that give another figure
JOINED_TOKENS = 3  # that a text put before another may take more


def in_sight_of(
    summaries: Iterable[Summary], sources: Iterable[Source] = (), shown: str = ""
) -> Callable[[Line], bool]:
    """Tells of a statement whether a prompt holds it anyway.

    It is quoted in a summary, or stands in each source that it cites, as far as that is `shown`.
    """
    quoted = frozenset(line for summary in summaries for line in summary.text.split("\n"))
    passages = {source.number: "".join(source.passage.split()) for source in sources}
    beside = "".join(shown.split())

    def is_in_sight(line: Line) -> bool:
        said = line.words.rstrip(".")
        cited = [passages.get(number, "") for number in line.numbers]
        is_beside = bool(cited) and said in beside and all(said in passage for passage in cited)
        return line.text in quoted or is_beside

    return is_in_sight


def put_back(
    index: RecallIndex,
    question: str,
    *,
    before: int,
    room: int,
    count: TokenCounter,
    in_sight: Callable[[Line], bool] = lambda line: False,
) -> tuple[str, list[Line]]:
    """The statements of messages before one that bear on a question, as far as they fit.

    What is `in_sight` already is left out, but for what another corrects. They come as the text
    to stand before the question, too.
    """
    left = room - count(f"{RECALLED}\n") - JOINED_TOKENS
    if left <= 0 or not index.lines:
        return "", []
    kept: list[list[Line]] = []
    noted = count(f"{LATER}\n")
    for group in _groups(index.best(question)):
        if len(kept) == MOST_RECALLED:
            break
        is_alone = len(group) == 1
        if group[-1].message >= before or (is_alone and in_sight(group[0])):
            continue
        cost = sum(line.tokens + line.lead_in_tokens + noted for line in group) - noted
        if cost <= left:
            kept.append(group)
            left -= cost
    kept.sort(key=lambda group: group[0].place, reverse=True)
    lines = [line for group in kept for line in group]
    return ("\n".join([RECALLED, *_text(lines)]) if lines else ""), lines


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


def _text(lines: Sequence[Line]) -> Iterator[str]:
    for line, following in zip(lines, [*lines[1:], None], strict=True):
        yield from filter(None, (line.lead_in, line.text))
        if following is not None and gives_another_figure(line, following):
            yield LATER

"""What was said in one conversation, each message read once, and how it is put before a model."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, groupby, islice
from typing import Any

from rag.citations.gate import canonical
from rag.citations.markers import cited_numbers, find_markers, neutralise
from rag.language.names import Lexicon, find_names
from rag.language.sentences import asks, split_sentences
from rag.memory.evidence import SpokenMessage, TurnEvidence
from rag.memory.paragraphs import read_paragraphs, size
from rag.memory.phrases import SummaryPhrases, fenced, phrases_of
from rag.memory.recall import Index
from rag.records import Role
from rag.seams import TokenCounter

MARGIN = 3  # tokens that texts put together may take more
LABEL_TOKENS = 3  # of "Assistant:", and of what stands for what is left out
SKIPPED = "…\n"  # between paragraphs of one message
LONGEST_READ = 8_000  # characters of a message of the user, to see whether it only asks
LEAST_SAID = 24  # bytes of one that says something by itself
MOST_NAMED = 20  # numbers in a question
LANGUAGE_MESSAGES = 6  # of the user, that tell the language
NO_NAMES = Lexicon(())
_LIST = re.compile(r"\s*\[[\s\d]*(?:,[\s\d]+)*\]\s*")


@dataclass(frozen=True, slots=True)
class ParsedMessage(SpokenMessage):
    """One message as it is remembered."""

    tokens: int = 0  # of the whole message
    names: tuple[str, ...] = ()
    only_asks: bool = False  # of a user's message: it is shown with its answer alone


@dataclass(slots=True)
class History:
    """The messages of one conversation, oldest first. Those before `covered` are summarised."""

    count: TokenCounter
    said: list[ParsedMessage] = field(default_factory=list)
    totals: list[int] = field(default_factory=lambda: [0])  # tokens up to each message
    turns: list[int] = field(default_factory=list)  # index of each turn's first message
    first: int = 0  # messages before this one are in no summary
    covered: int = 0
    index: Index = field(default_factory=Index)
    given: dict[int, int] = field(default_factory=dict)  # number: the answer that gave it first
    holding: dict[int, list[int]] = field(default_factory=dict)  # number: paragraphs with it
    counted: tuple[int, int] = (0, 0)  # the messages that are in the three below
    numbers: dict[int, None] = field(default_factory=dict)
    names: dict[str, None] = field(default_factory=dict)
    uses: Counter[int] = field(default_factory=Counter)  # how often a number came up again
    vectors: dict[int, Any] = field(default_factory=dict)  # message: a row for each paragraph

    # ── Read ─────────────────────────────────────────────────────────────────────────────────

    def read(self, role: str, text: str, tokens: int, lexicon: Lexicon = NO_NAMES) -> None:
        """Take in the next message; what only serves the model has no text here."""
        at = len(self.said)
        text = text if role == Role.USER else canonical(_list_as_code(text))
        markers = find_markers(text)
        numbers = dict.fromkeys(n for marker in markers for n in marker.numbers)
        if role == Role.USER and not numbers.keys() <= self.given.keys():
            known = self.given.keys()
            text, markers = neutralise(text), []  # nobody gave him these numbers
            numbers = {number: None for number in numbers if number in known}
        elif role != Role.USER:
            self.given.update((n, at) for n in numbers if n not in self.given)
        paragraphs = read_paragraphs(at, text, self.count, markers)
        for place, paragraph in enumerate(paragraphs, start=len(self.index.paragraphs)):
            for number in (*paragraph.numbers, *paragraph.behind):
                self.holding.setdefault(number, []).append(place)
        only_asks = role == Role.USER and len(paragraphs) == 1 and _only_asks(text)
        names = _names(text, lexicon)
        self.said.append(ParsedMessage(role, text, tuple(numbers), tokens, names, only_asks))
        self.totals.append(self.totals[-1] + tokens)
        self.index.add(paragraphs, self.question_of(at))

    def cover(self, end: int) -> None:
        """Have a summary stand for the messages from `first` up to `end`."""
        first, counted = self.counted
        if first != self.first or end < counted:
            counted = self.first
            self.numbers, self.names, self.uses = {}, {}, Counter()
        for said in self.said[counted:end]:
            for number in said.numbers:
                if number in self.numbers:
                    self.uses[number] += 2 if said.role == Role.USER else 1
            self.numbers.update(dict.fromkeys(n for n in said.numbers if n in self.given))
            self.names.update(dict.fromkeys(said.names))
        self.covered = max(end, counted)
        self.counted = self.first, self.covered

    def cut(self, end: int) -> None:
        """Forget the messages from `end` on."""
        self.cover(min(self.covered, end))
        self.index.cut(end)
        kept = len(self.index.paragraphs)
        del self.said[end:], self.totals[end + 1 :]
        self.turns = self.turns[: bisect_left(self.turns, end)]
        self.vectors = {at: rows for at, rows in self.vectors.items() if at < end}
        self.given = {number: first for number, first in self.given.items() if first < end}
        held = ((n, places[: bisect_left(places, kept)]) for n, places in self.holding.items())
        self.holding = {number: places for number, places in held if places}

    def evidence(self, start: int, end: int) -> TurnEvidence:
        """What was said so far, as it is now; `[start, end)` is to be summarised."""
        return TurnEvidence(tuple(self.said), start, end)

    def tokens(self, start: int, end: int | None = None) -> int:
        """Tokens of a run of messages."""
        return self.totals[-1 if end is None else end] - self.totals[start]

    def turns_from(self, start: int) -> int:
        """How many turns begin there or later."""
        return len(self.turns) - bisect_left(self.turns, start)

    def end(self, last: int, *, low: float, high: float, keep: int, most: int | None) -> int:
        """Where a summary shall end so that what stays word for word fits.

        It ends where it does, where a turn begins or at `last`: as soon as there stay at most
        `low` tokens, or `high` of at most `keep` turns, and never more than `most` turns.
        """
        starts = self.turns[bisect_left(self.turns, self.covered) : bisect_left(self.turns, last)]
        ends = sorted({self.covered, *starts, max(last, self.covered)})

        def stays(end: int) -> bool:
            tokens, turns = self.tokens(end, last), self.turns_from(end)
            fits = tokens <= low or (turns <= keep and tokens <= high)
            return fits and (most is None or turns <= most)

        return next((end for end in ends if stays(end)), ends[-1])

    def asked_at(self, message: int) -> int | None:
        """The paragraph that asked for an answer: the last one of the user's message before it."""
        places = self.index.of_message.get(message - 1)
        is_answer = places and self.said[message].role != Role.USER == self.said[message - 1].role
        return places[-1] if places and is_answer else None

    def question_of(self, message: int) -> str:
        """What was asked for an answer; "" where nobody asked."""
        at = self.asked_at(message)
        return "" if at is None else self.index.paragraphs[at].text

    def _named(self, question: str, before: int) -> Iterator[int]:
        """The newest paragraphs with the numbers that a question names."""
        last = self.index.until(before)
        for number in cited_numbers(question)[:MOST_NAMED]:
            held = self.holding.get(number, ())
            yield from held[: bisect_left(held, last)][-2:]

    @property
    def phrases(self) -> SummaryPhrases:
        """In the language that the user speaks, by what he said last."""
        users = (each.text for each in reversed(self.said) if each.role == Role.USER)
        return phrases_of(islice(users, LANGUAGE_MESSAGES))

    # ── Put back ─────────────────────────────────────────────────────────────────────────────

    def recalled(
        self,
        question: str,
        *,
        before: int,
        room: int,
        meanings: Mapping[int, float] | None = None,
        beside: str = "",
    ) -> "ShownParagraphs":
        """What messages before one say that bears on a question, until the room is used.

        What shares nothing with the question comes last, the newest first; what stands `beside`
        is not shown again.
        """
        phrases = self.phrases
        shown = ShownParagraphs(self, room - self.count(fenced(phrases.earlier)) - MARGIN, phrases)
        found = self.index.best(question, before=before, meanings=meanings)
        newest = reversed(range(self.index.until(before)))
        for at in chain(self._named(question, before), found, newest):
            if shown.is_full:
                break
            if self.index.paragraphs[at].text not in beside:
                shown.take(at)
        return shown


class ShownParagraphs:
    """Paragraphs that are shown, whole and in their setting, as long as there is room."""

    FULL = 24  # tokens: what is left then is not worth looking for more
    MISSES = 60  # paragraphs for which there was no room

    def __init__(self, past: History, room: int, phrases: SummaryPhrases) -> None:
        self._past = past
        self._phrases = phrases
        self.left = room
        self.chosen: dict[int, None] = {}  # best first
        self._missed: set[int] = set()

    @property
    def is_full(self) -> bool:
        return self.left < self.FULL or len(self._missed) > self.MISSES

    def take(self, position: int) -> bool:
        """Show a paragraph with the question that it answers, if there is room for both."""
        paragraphs, said = self._past.index.paragraphs, self._past.said
        message = paragraphs[position].message
        is_answered = message + 1 < len(said) and said[message + 1].role == Role.ASSISTANT
        if said[message].only_asks and is_answered:
            return False  # it tells nothing without its answer, and is shown with it
        asked = self._past.asked_at(message)
        wanted = [
            each for each in (position, asked) if each is not None and each not in self.chosen
        ]
        cost = sum(paragraphs[each].tokens + LABEL_TOKENS for each in wanted)
        if cost > self.left:
            self._missed.add(position)
            return False
        self.left -= cost
        self.chosen |= dict.fromkeys(wanted)
        return True

    @property
    def asked_at(self) -> tuple[int, ...]:
        """The questions of the turns that are shown, best first."""
        return tuple(dict.fromkeys(map(self._turn_of, self.chosen)))

    def _turn_of(self, position: int) -> int:
        message = self._past.index.paragraphs[position].message
        return message if self._past.asked_at(message) is None else message - 1

    def blocks(self) -> list[tuple[int, str]]:
        """The newest turn first: the text of each, and the message that it ends with."""
        paragraphs = self._past.index.paragraphs
        blocks: list[tuple[int, str]] = []
        for _, turn in groupby(sorted(self.chosen), key=self._turn_of):
            own = groupby(turn, key=lambda at: paragraphs[at].message)
            texts = {message: self._of(message, list(places)) for message, places in own}
            blocks.insert(0, (max(texts), "".join(texts.values())))
        return blocks

    def text(self) -> str:
        """All of it, fenced, under its title; "" if there is none."""
        blocks = "".join(text for _, text in self.blocks())
        return fenced(f"{self._phrases.earlier}\n{blocks}") if blocks else ""

    def _of(self, message: int, places: list[int]) -> str:
        role = self._phrases.label(self._past.said[message].role)
        first = self._past.index.paragraphs[places[0]].shown
        # What stands on lines of its own is read so only there: code, lists, tables.
        text = f"{role}:\n" if "\n" in first.rstrip("\n") else f"{role}: "
        last = places[0] - 1
        for place in places:
            paragraph = self._past.index.paragraphs[place]
            setting, shown = paragraph.setting, paragraph.shown
            if place != last + 1:
                text += SKIPPED
            elif setting and {*setting.split("\n")} <= {*text.split("\n")}:
                shown = shown.removeprefix(f"{setting}\n")  # it stands there already
            text += shown
            last = place
        return text


def _list_as_code(text: str) -> str:
    """A message that is nothing but a list of figures is data, and cites nothing."""
    return f"```json\n{text.strip()}\n```" if _LIST.fullmatch(text) else text


def _names(text: str, lexicon: Lexicon) -> tuple[str, ...]:
    """The product names that a text holds: those of the lexicon, and codes of models."""
    known = [name.text for name in lexicon.find(text)] if lexicon.names else []
    codes = [name.text for name in find_names(text) if _is_code(name.text)]
    return tuple(dict.fromkeys([*known, *codes]))


def _is_code(name: str) -> bool:
    """`AX-5400`, `7590AX`: letters and figures in one word, most of it in capitals."""
    has_both = any(map(str.isdigit, name)) and any(map(str.isupper, name))
    return " " not in name and has_both and not any(map(str.islower, name[:2]))


def _only_asks(text: str) -> bool:
    """Whether no sentence says anything by itself."""
    spans = split_sentences(text[:LONGEST_READ])
    return all(asks(text[a:b]) or size(text[a:b]) < LEAST_SAID for a, b in spans)

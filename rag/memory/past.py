"""What was said in one conversation, each message read once, and how it is put before a model."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from rag.citations.gate import canonical
from rag.citations.markers import cited_numbers, find_markers, neutralise
from rag.memory.paragraphs import read_paragraphs, size
from rag.memory.recall import Index
from rag.records import Role
from rag.seams import TokenCounter
from rag.text.layout import asks
from rag.text.names import Lexicon, find_names
from rag.text.sentences import split_sentences
from rag.text.words import is_function_word, tokens

LONGEST_ASKED = 140  # bytes of a question that is shown with what answers it
SPEAKERS = {Role.USER.value: "User", Role.ASSISTANT.value: "Assistant"}
MARGIN = 3  # tokens that texts put together may take more
LABEL_TOKENS = 3  # of "Assistant:", and of what stands for what is left out
CUT = "… "  # before the end of what was asked
SKIPPED = "…\n"  # between paragraphs of one message
TITLE = "Said earlier in this conversation, word for word, the newest first:\n"
LONGEST_SAID = 400  # characters of one sentence of the user
LEAST_WORDS, LEAST_CONTENT = 4, 2  # of a sentence that says something by itself
MOST_NAMED = 20  # numbers in a question
NO_NAMES = Lexicon(())
_LIST = re.compile(r"\s*\[[\s\d]*(?:,[\s\d]+)*\]\s*")


@dataclass(frozen=True, slots=True)
class Said:
    """One message as it is remembered."""

    role: str
    text: str  # in canonical spelling
    tokens: int  # of the whole message
    numbers: tuple[int, ...] = ()  # that count
    names: tuple[str, ...] = ()
    asked: str = ""  # of a user's message: what is shown with its answer
    asked_tokens: int = 0
    only_asks: bool = False  # and is shown with it alone


@dataclass(slots=True)
class Past:
    """The messages of one conversation, oldest first. Those before `covered` are summarised."""

    count: TokenCounter
    said: list[Said] = field(default_factory=list)
    totals: list[int] = field(default_factory=lambda: [0])  # tokens up to each message
    turns: list[int] = field(default_factory=list)  # index of each turn's first message
    first: int = 0  # messages before this index are never summarised
    covered: int = 0
    index: Index = field(default_factory=Index)
    given: dict[int, int] = field(default_factory=dict)  # number: the answer that gave it first
    holding: dict[int, list[int]] = field(default_factory=dict)  # number: paragraphs with it
    stating: list[tuple[int, str]] = field(default_factory=list)  # the user's sentences that do
    counted: int = 0  # messages before this one are in the three below, from `since` on
    since: int = 0
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
        self.index.add(paragraphs, self.asked_before(at, role))
        asked = _asked(text) if role == Role.USER else ""
        stating = stating_sentences(text) if role == Role.USER else []
        self.stating += [(at, sentence) for sentence in stating]
        only_asks = bool(asked) and not stating and asked == " ".join(text.split())
        asked_tokens = self.count(f"User: {asked}\n") + 1 if asked else 0
        names = _names(text, lexicon)
        self.said.append(
            Said(role, text, tokens, tuple(numbers), names, asked, asked_tokens, only_asks)
        )
        self.totals.append(self.totals[-1] + tokens)

    def cover(self, end: int, since: int = 0) -> None:
        """Have a summary stand for the messages before `end`, from `since` on."""
        if since != self.since or end < self.counted:
            self.since = self.counted = since
            self.numbers, self.names, self.uses = {}, {}, Counter()
        for said in self.said[self.counted : end]:
            for number in said.numbers:
                if number in self.numbers:
                    self.uses[number] += 2 if said.role == Role.USER else 1
            self.numbers.update(dict.fromkeys(n for n in said.numbers if n in self.given))
            self.names.update(dict.fromkeys(said.names))
        self.covered = self.counted = max(end, self.counted)

    def cut(self, end: int) -> None:
        """Forget the messages from `end` on."""
        self.cover(min(self.covered, end), self.since)
        while self.stating and self.stating[-1][0] >= end:
            self.stating.pop()
        self.index.cut(end)
        kept = len(self.index.paragraphs)
        del self.said[end:], self.totals[end + 1 :]
        self.turns = self.turns[: bisect_left(self.turns, end)]
        self.vectors = {at: rows for at, rows in self.vectors.items() if at < end}
        self.given = {number: first for number, first in self.given.items() if first < end}
        held = ((n, places[: bisect_left(places, kept)]) for n, places in self.holding.items())
        self.holding = {number: places for number, places in held if places}

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

    def asked_before(self, message: int, role: str = "") -> str:
        """What the message before an answer asks."""
        is_answer = message > 0 and (role or self.said[message].role) != Role.USER
        return self.said[message - 1].asked if is_answer else ""

    def _named(self, question: str, before: int) -> Iterator[int]:
        """The newest paragraphs with the numbers that a question names."""
        last = self.index.until(before)
        for number in cited_numbers(question)[:MOST_NAMED]:
            held = self.holding.get(number, ())
            yield from held[: bisect_left(held, last)][-2:]

    # ── Put back ─────────────────────────────────────────────────────────────────────────────

    def recalled(
        self,
        question: str,
        *,
        before: int,
        room: int,
        meanings: Mapping[int, float] | None = None,
        beside: str = "",
    ) -> "Shown":
        """What messages before one say that bears on a question, until the room is used.

        What shares nothing with the question comes last, the newest first; what stands `beside`
        is not shown again.
        """
        shown = Shown(self, room - self.count(TITLE) - MARGIN)
        found = self.index.best(question, before=before, meanings=meanings)
        newest = reversed(range(self.index.until(before)))
        for at in chain(self._named(question, before), found, newest):
            if shown.is_full:
                break
            if self.index.paragraphs[at].text not in beside:
                shown.take(at)
        return shown


class Shown:
    """Paragraphs that are shown, whole and in their setting, as long as there is room."""

    FULL = 24  # tokens: what is left then is not worth looking for more
    MISSES = 60  # paragraphs for which there was no room

    def __init__(self, past: Past, room: int) -> None:
        self._past = past
        self.left = room
        self.chosen: dict[int, set[int]] = {}  # message: paragraphs
        self._missed: set[int] = set()

    @property
    def is_full(self) -> bool:
        return self.left < self.FULL or len(self._missed) > self.MISSES

    def take(self, at: int) -> None:
        """Show a paragraph with the question that it answers, if there is room for both."""
        message = self._past.index.paragraphs[at].message
        if at in self.chosen.get(message, ()) or self._is_shown_with_answer(message):
            return
        cost = self._past.index.paragraphs[at].tokens + LABEL_TOKENS
        if message not in self.chosen:
            cost += 0 if self._is_whole(message - 1) else self._asked_tokens(message)
            if message + 1 in self.chosen and len(self._past.index.of_message[message]) == 1:
                cost -= self._asked_tokens(message + 1)  # which is in what is shown now
        if cost > self.left:
            self._missed.add(at)
        else:
            self.left -= cost
            self.chosen.setdefault(message, set()).add(at)

    def _is_whole(self, message: int) -> bool:
        return message in self.chosen and len(self._past.index.of_message[message]) == 1

    def _asked_tokens(self, message: int) -> int:
        is_told = self._past.asked_before(message)
        return self._past.said[message - 1].asked_tokens if is_told else 0

    def _is_shown_with_answer(self, message: int) -> bool:
        """A question tells nothing without its answer, and is shown with it."""
        said, after = self._past.said, message + 1
        has_answer = after < len(said) and said[after].role == Role.ASSISTANT
        return has_answer and said[message].only_asks

    @property
    def asked_at(self) -> tuple[int, ...]:
        """The questions of the turns that are shown."""
        said = self._past.said
        return tuple(
            dict.fromkeys(at if said[at].role == Role.USER else at - 1 for at in self.chosen)
        )

    def blocks(self) -> list[tuple[int, str]]:
        """The newest turn first: the text of each, and the message that it is of."""
        blocks: list[tuple[int, str]] = []
        done = -1
        for message in sorted(self.chosen, reverse=True):
            if message == done:
                continue
            text, asked = self._of(message), self._past.asked_before(message)
            if asked and message - 1 in self.chosen:
                done = message - 1
                own = self._of(done)
                is_in = asked.removeprefix(CUT) in " ".join(own.split())
                text = own + text if is_in else f"{own}User: {asked}\n{text}"
            elif asked:
                text = f"User: {asked}\n{text}"
            blocks.append((message, text))
        return blocks

    def text(self) -> str:
        """All of it under its title; "" if there is none."""
        return TITLE + "".join(text for _, text in self.blocks()) if self.chosen else ""

    def _of(self, message: int) -> str:
        role = SPEAKERS.get(self._past.said[message].role, self._past.said[message].role)
        places = sorted(self.chosen[message])
        first = self._past.index.paragraphs[places[0]].shown
        # What stands on lines of its own is read so only there: code, lists, tables.
        text = f"{role}:\n" if "\n" in first.rstrip("\n") else f"{role}: "
        last, setting = places[0] - 1, ""
        for at in places:
            paragraph = self._past.index.paragraphs[at]
            shown = paragraph.shown
            if at != last + 1:
                text += SKIPPED
            elif setting and paragraph.setting == setting:
                shown = shown.removeprefix(f"{setting}\n")
            text += shown
            last, setting = at, paragraph.setting
        return text


def _asked(text: str) -> str:
    """What a user's message asks, as it is shown with the answer: whole, or its last sentences."""
    whole = " ".join(text.split())
    if size(whole) <= LONGEST_ASKED:
        return whole
    kept, tail = "", text[-2 * LONGEST_ASKED :]
    for start, end in reversed(split_sentences(tail)[len(tail) < len(text) :]):
        longer = f"{' '.join(tail[start:end].split())} {kept}".strip()
        if size(longer) > LONGEST_ASKED:
            break
        kept = longer
    return f"{CUT}{kept}" if kept else ""


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


# ── What a user says ─────────────────────────────────────────────────────────────────────────


def stating_sentences(text: str) -> list[str]:
    """Sentences that ask nothing, on one line each, and are understood alone."""
    spans = split_sentences(text[: 20 * LONGEST_SAID])
    sentences = (" ".join(text[start:end].split()) for start, end in spans)
    return [
        sentence
        for sentence in sentences
        if not asks(sentence) and len(sentence) <= LONGEST_SAID and _says_something(sentence)
    ]


def _says_something(sentence: str) -> bool:
    words = [token.lowered for token in tokens(sentence)]
    telling = sum(not is_function_word(word) for word in words)
    unspaced = (
        len(words) < LEAST_WORDS and not sentence.isascii() and len(sentence) >= 2 * LEAST_WORDS
    )
    return unspaced or (len(words) >= LEAST_WORDS and telling >= LEAST_CONTENT)

"""The messages of one conversation, each read once, and how they are shown to a model.

The newest messages are in memory; those before `base` are read again when they are needed.

The fence and the title are the same in every language, so that our own output is recognised.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, groupby, islice
from typing import Any, Protocol, overload

from rag.citations.gate import canonical
from rag.citations.markers import cited_numbers, find_markers, neutralise
from rag.language.names import Lexicon, find_names
from rag.language.sentences import asks, split_sentences
from rag.language.words import UNSPACED, language_of, read_lists, spoken
from rag.memory.recall import (
    LONGEST_QUESTION,
    PLACES,
    REST,
    Index,
    Meanings,
    OlderParagraphs,
    Paragraph,
    read_paragraphs,
    size,
    telling,
)
from rag.memory.verifier import SpokenMessage, TurnEvidence
from rag.records import Role, Summary
from rag.seams import TokenCounter

OPENS, CLOSES = "<earlier_turns>", "</earlier_turns>"
_TAG = re.compile(r"<(?=\s*/?\s*earlier_turns)", re.IGNORECASE)
READ = 2_000  # characters that tell the language


@dataclass(frozen=True, slots=True)
class SummaryPhrases:
    """The fixed phrases of summaries and recalled turns in one language."""

    notes: str
    about: str
    answered: str
    open: str
    sources: str
    products: str
    earlier: str
    user: str
    assistant: str
    against: str

    def label(self, role: str) -> str:
        """Return the name of a role in this language; an unknown role is returned unchanged."""
        return {"user": self.user, "assistant": self.assistant}.get(role, role)


@cache
def all_phrases() -> dict[str, SummaryPhrases]:
    """Return the phrases of every language, by language code."""
    return {code: SummaryPhrases(**texts) for code, texts in read_lists("memory").items()}


def fenced(text: str) -> str:
    """Put a text between the tags of the fence; no tag in the text can open or close it."""
    return f"{OPENS}\n{unfenced(text).rstrip()}\n{CLOSES}\n"


def unfenced(text: str) -> str:
    """Make every fence tag in a text harmless, whoever wrote it."""
    return _TAG.sub("‹", text)


MARGIN = 3  # tokens that texts put together may take more
LABEL_MARGIN = 1  # token of the space behind who speaks, and of what stands for what is left out
SKIPPED = "…\n"  # between paragraphs of one message
LONGEST_READ = 8_000  # characters of a message of the user, to see whether it only asks
LEAST_SAID = 24  # bytes of one that says something by itself
MOST_NAMED = 20  # numbers in a question
READ_AT_ONCE = 32  # messages that are not held
LANGUAGE_MESSAGES = 6  # of the user, that tell the language
NO_NAMES = Lexicon(())
_LIST = re.compile(r"\s*\[[\s\d]*(?:,[\s\d]+)*\]\s*")


@dataclass(frozen=True, slots=True)
class ParsedMessage(SpokenMessage):
    """One message as it is remembered."""

    tokens: int = 0  # of the whole message
    names: tuple[str, ...] = ()
    only_asks: bool = False  # of a user's message: it is shown with its answer alone
    paragraphs: tuple[Paragraph, ...] = ()


class OlderMessages(OlderParagraphs, Protocol):
    """The messages of a conversation that are not in memory, wherever they are stored."""

    def load(self, messages: Iterable[int]) -> None:
        """Load these messages in one query."""

    def message(self, index: int) -> ParsedMessage:
        """Return the message with this index."""


class Messages(Sequence[ParsedMessage]):
    """All messages of a conversation; only those from `base` on are in memory."""

    def __init__(self, older: OlderMessages | None = None, base: int = 0) -> None:
        self.older, self.base = older, base
        self._messages: list[ParsedMessage] = []

    def __len__(self) -> int:
        return self.base + len(self._messages)

    @overload
    def __getitem__(self, index: int) -> ParsedMessage: ...
    @overload
    def __getitem__(self, index: slice) -> list[ParsedMessage]: ...
    def __getitem__(self, index: int | slice) -> ParsedMessage | list[ParsedMessage]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        index = index + len(self) if index < 0 else index
        if 0 <= index < self.base and self.older is not None:
            return self.older.message(index)
        if index < self.base:
            raise IndexError(index)
        return self._messages[index - self.base]

    def load(self, messages: Iterable[int]) -> None:
        """Load these messages in one query, where they are not in memory."""
        missing = [message for message in messages if 0 <= message < self.base]
        if missing and self.older is not None:
            self.older.load(missing)

    def append(self, message: ParsedMessage) -> None:
        """Append the next message."""
        self._messages.append(message)

    def keep(self, first: int, end: int) -> "Messages":
        """Return a copy without the messages from `end` on; those before `first` leave memory."""
        messages = Messages(self.older, max(first, self.base))
        messages._messages = self._messages[messages.base - self.base : max(0, end - self.base)]
        return messages


@dataclass(slots=True)
class History:
    """The messages of one conversation, oldest first. Those before `covered` are summarised."""

    count: TokenCounter
    parsed: Messages = field(default_factory=Messages)
    totals: list[int] = field(default_factory=lambda: [0])  # tokens up to each that is held
    turns: list[int] = field(default_factory=list)  # index of each turn's first message
    first: int = 0  # messages before this one are in no summary
    covered: int = 0
    index: Index = field(default_factory=Index)
    givers: dict[int, int] = field(default_factory=dict)  # number: the answer that gave it first
    counted: tuple[int, int] = (0, 0)  # the messages that are in the four below
    covered_tokens: int = 0
    recallable: set[int] = field(default_factory=set)  # numbers that a paragraph holds
    numbers: dict[int, None] = field(default_factory=dict)
    names: dict[str, None] = field(default_factory=dict)
    vectors: dict[int, Any] = field(default_factory=dict)  # message: a row for each paragraph

    # ── Read ─────────────────────────────────────────────────────────────────────────────────

    @property
    def base(self) -> int:
        """The index of the first message in memory."""
        return self.parsed.base

    def read(self, role: str, text: str, tokens: int, lexicon: Lexicon = NO_NAMES) -> None:
        """Read the next message; `text` is "" for messages that only serve the model."""
        index = len(self.parsed)
        message = MessageReader(self.count, self.gave, lexicon).read(index, role, text, tokens)
        if role != Role.USER:
            self.givers.update((n, index) for n in message.numbers if n not in self.givers)
        self.parsed.append(message)
        self.totals.append(self.totals[-1] + tokens)
        self.index.add(index, message.paragraphs, self.question_of(index))

    def gave(self, number: int) -> bool:
        """Whether an answer has given this number so far."""
        return number in self.givers or (self.base > 0 and any(self.index.holding([number])))

    def cover(self, end: int) -> None:
        """Mark the messages from `first` up to `end` as summarised."""
        first, counted = self.counted
        if first != self.first or end < counted:
            counted = self.first
            self.numbers, self.names = {}, {}
            self.covered_tokens, self.recallable = 0, set()
        for index in range(counted, end):
            message = self.parsed[index]
            self.numbers.update(dict.fromkeys(message.numbers))
            self.names.update(dict.fromkeys(message.names))
            self.covered_tokens += message.tokens
            for part in message.paragraphs:
                self.recallable.update(part.numbers, part.behind)
        self.covered = max(end, counted)
        self.counted = self.first, self.covered

    def carry(self, summary: Summary) -> None:
        """Take numbers and names from a summary whose messages are not all in memory."""
        first, counted = self.counted
        if summary.start != self.first or (first == self.first and counted >= summary.end):
            return
        report = summary.report
        self.counted, self.covered = (summary.start, summary.end), summary.end
        self.numbers = dict.fromkeys(summary.required_numbers)
        self.names = dict.fromkeys(summary.required_names)
        self.covered_tokens = report.tokens_before
        self.recallable = {*report.stated_citations, *report.recallable_citations}

    def keep(self, first: int, end: int) -> None:
        """Forget the messages from `end` on, and drop those before `first` from memory."""
        self.cover(min(self.covered, end))
        base = self.base
        self.index.keep(first, end)
        self.parsed = self.parsed.keep(first, end)
        self.totals = self.totals[self.base - base : end - base + 1]
        self.turns = self.turns[bisect_left(self.turns, first) : bisect_left(self.turns, end)]
        self.vectors = {m: rows for m, rows in self.vectors.items() if first <= m < end}
        self.givers = {number: giver for number, giver in self.givers.items() if giver < end}

    def evidence(self, start: int, end: int) -> TurnEvidence:
        """Return the messages as they are now; `[start, end)` is to be summarised."""
        messages = self.parsed.keep(self.base, len(self.parsed))
        return TurnEvidence(messages, start, end, self.base, self._older_giving)

    def _older_giving(self, number: int) -> list[int]:
        """Return the messages that are not in memory and hold a number."""
        messages = dict.fromkeys(place // PLACES for place in self.index.holding([number])[0])
        return [message for message in messages if message < self.base]

    def tokens(self, start: int, end: int | None = None) -> int:
        """Return the tokens of the messages `[start, end)`, as far as they are in memory."""
        last = len(self.parsed) if end is None else end
        return self.totals[max(0, last - self.base)] - self.totals[max(0, start - self.base)]

    def turns_from(self, start: int) -> int:
        """Return the number of turns that begin at `start` or later."""
        return len(self.turns) - bisect_left(self.turns, start)

    def end(self, last: int, *, low: float, high: float, keep: int, most: int | None) -> int:
        """Return where a summary shall end so that the turns kept word for word fit.

        It ends where the last one did, where a turn begins, or at `last`: as soon as there stay at
        most `low` tokens, or `high` tokens of at most `keep` turns, and never more than `most`
        turns.
        """
        starts = self.turns[bisect_left(self.turns, self.covered) : bisect_left(self.turns, last)]
        ends = sorted({self.covered, *starts, max(last, self.covered)})

        def stays(end: int) -> bool:
            tokens, turns = self.tokens(end, last), self.turns_from(end)
            fits = tokens <= low or (turns <= keep and tokens <= high)
            return fits and (most is None or turns <= most)

        return next((end for end in ends if stays(end)), ends[-1])

    def question_before(self, message: int) -> int | None:
        """Return the position of an answer's question, its message's last paragraph, or None."""
        if message < 1 or self.parsed[message].role == Role.USER:
            return None
        before = self.parsed[message - 1]
        if before.role != Role.USER or not before.paragraphs:
            return None
        return (message - 1) * PLACES + len(before.paragraphs) - 1

    def question_of(self, message: int) -> str:
        """Return the question before an answer; "" if no question stands there."""
        position = self.question_before(message)
        return "" if position is None else self.paragraph(position).text

    def paragraph(self, position: int) -> Paragraph:
        """Return the paragraph at a position."""
        message, place = divmod(position, PLACES)
        return self.parsed[message].paragraphs[place]

    def ranked(self, question: str, before: int, meanings: Meanings | None = None) -> Iterator[int]:
        """Yield the positions of paragraphs that bear on a question, best first; read lazily."""
        before = min(before, len(self.parsed))
        best = self.index.best(question, before=before, meanings=meanings)
        for some in _split_numbers(best):
            messages = {position // PLACES for position in some}
            self.parsed.load({message + step for message in messages for step in (-1, 0, 1)})
            for position in some:
                message, place = divmod(position, PLACES)
                if place == REST:
                    yield from self._newest_of(message)
                elif place < len(self.parsed[message].paragraphs):
                    yield position

    def _newest(self, before: int) -> Iterator[int]:
        for some in _split_numbers(reversed(range(min(before, len(self.parsed))))):
            self.parsed.load([*some, some[-1] - 1])
            for message in some:
                yield from self._newest_of(message)

    def _newest_of(self, message: int) -> Iterator[int]:
        """Return the positions of all paragraphs of a message, the last first."""
        first = message * PLACES
        return reversed(range(first, first + len(self.parsed[message].paragraphs)))

    @property
    def phrases(self) -> SummaryPhrases:
        """The phrases in the language of the user's newest messages, else the English ones."""
        users = (message.text for message in reversed(self.parsed) if message.role == Role.USER)
        text = "\n".join(islice(users, LANGUAGE_MESSAGES))
        return all_phrases().get(spoken(text[:READ]), all_phrases()["en"])

    # ── Put back ─────────────────────────────────────────────────────────────────────────────

    def recalled(
        self,
        question: str,
        *,
        before: int,
        room: int,
        meanings: Meanings | None = None,
        beside: str = "",
    ) -> "ParagraphSelection":
        """Select paragraphs before message `before` for a question, until the room is used.

        Paragraphs that share nothing with the question come last, the newest first; those in
        `beside` are not shown again.
        """
        phrases = self.phrases
        own_room = room - self.count(fenced(phrases.earlier)) - MARGIN
        paragraphs = ParagraphSelection(self, own_room, phrases, wanted=question)
        numbers = cited_numbers(question)[:MOST_NAMED]
        newest_of_numbers = (
            positions[: bisect_left(positions, before * PLACES)][-2:]
            for positions in self.index.holding(numbers)
        )
        ranked = self.ranked(question, before, meanings)
        for position in chain(*newest_of_numbers, ranked, self._newest(before)):
            if paragraphs.is_full:
                break
            if self.paragraph(position).text not in beside:
                paragraphs.take(position)
        return paragraphs


class ParagraphSelection:
    """Selects paragraphs to show, whole and in their setting, as long as there is room."""

    FULL = 24  # tokens: what is left then is not worth looking for more
    MISSES = 60  # paragraphs for which there was no room

    def __init__(self, past: History, room: int, phrases: SummaryPhrases, wanted: str = "") -> None:
        self._history = past
        self._question_words = set(_words(wanted[:LONGEST_QUESTION]))
        labels = (past.count(f"{phrases.label(role)}:") for role in (Role.USER, Role.ASSISTANT))
        self._label = max(labels) + LABEL_MARGIN
        self._phrases = phrases
        self.left = room
        self.chosen: dict[int, None] = {}  # best first
        self._missed: set[int] = set()

    @property
    def is_full(self) -> bool:
        return self.left < self.FULL or len(self._missed) > self.MISSES

    def take(self, position: int) -> bool:
        """Add a paragraph with the question that it answers; return False if both do not fit.

        An answer without a number may not answer the message before it: that message is then added
        only if it asks something or shares a word with the wanted question.
        """
        past, message = self._history, position // PLACES
        is_last = message + 1 == len(past.parsed)
        only_asks = past.parsed[message].only_asks and not is_last
        if only_asks and past.parsed[message + 1].role == Role.ASSISTANT:
            return False  # it tells nothing without its answer, and is shown with it
        question = past.question_before(message)
        if question is not None and not past.parsed[message].numbers:
            before = past.paragraph(question).text
            bears = asks(before) or not self._question_words.isdisjoint(_words(before))
            question = question if bears else None
        added = [p for p in (position, question) if p is not None and p not in self.chosen]
        cost = sum(past.paragraph(addition).tokens + self._label for addition in added)
        if cost > self.left:
            self._missed.add(position)
            return False
        self.left -= cost
        self.chosen |= dict.fromkeys(added)
        return True

    @property
    def turns(self) -> tuple[int, ...]:
        """The index of the first message of each turn that is shown, best first."""
        return tuple(dict.fromkeys(map(self._turn_of, self.chosen)))

    def _turn_of(self, position: int) -> int:
        message = position // PLACES
        return message if self._history.question_before(message) is None else message - 1

    def text(self) -> str:
        """Return the turns, the newest first, under their title in a fence; "" if none is shown."""
        turns: list[str] = []
        for _, turn in groupby(sorted(self.chosen), key=self._turn_of):
            messages = groupby(turn, key=lambda position: position // PLACES)
            turns.insert(
                0, "".join(self._of(message, list(places)) for message, places in messages)
            )
        return fenced(f"{self._phrases.earlier}\n{''.join(turns)}") if turns else ""

    def _of(self, message: int, places: list[int]) -> str:
        role = self._phrases.label(self._history.parsed[message].role)
        first = self._history.paragraph(places[0]).with_setting
        # What stands on lines of its own is read so only there: code, lists, tables.
        text = f"{role}:\n" if "\n" in first.rstrip("\n") else f"{role}: "
        last = places[0] - 1
        for place in places:
            paragraph = self._history.paragraph(place)
            setting, shown = paragraph.setting, paragraph.with_setting
            if place != last + 1:
                text += SKIPPED
            elif setting and {*setting.split("\n")} <= {*text.split("\n")}:
                shown = shown.removeprefix(f"{setting}\n")  # it stands there already
            text += shown
            last = place
        return text


@dataclass(frozen=True, slots=True)
class MessageReader:
    """Reads messages of one conversation; a user's numbers count only if an answer gave them."""

    count: TokenCounter
    gave: Callable[[int], bool]
    lexicon: Lexicon = NO_NAMES

    def read(self, index: int, role: str, text: str, tokens: int) -> ParsedMessage:
        """Parse one message as it is remembered."""
        if role != Role.USER:  # nothing but a list of figures is data, and cites nothing
            is_list = _LIST.fullmatch(text)
            text = canonical(f"```json\n{text.strip()}\n```" if is_list else text)
        markers = find_markers(text)
        numbers = dict.fromkeys(n for marker in markers for n in marker.numbers)
        if role == Role.USER and not all(map(self.gave, numbers)):
            text, markers = neutralise(text), []  # nobody gave him these numbers
            numbers = {number: None for number in numbers if self.gave(number)}
        paragraphs = tuple(read_paragraphs(index, text, self.count, markers))
        only_asks = role == Role.USER and len(paragraphs) == 1 and _only_asks(text)
        names = _names(text, self.lexicon)
        return ParsedMessage(role, text, tuple(numbers), tokens, names, only_asks, paragraphs)


def _words(text: str) -> tuple[str, ...]:
    return telling(text, language_of(text))


def _split_numbers(numbers: Iterable[int]) -> Iterator[tuple[int, ...]]:
    left = iter(numbers)
    while batch := tuple(islice(left, READ_AT_ONCE)):
        yield batch


def _names(text: str, lexicon: Lexicon) -> tuple[str, ...]:
    """Return the product names in a text: those of the lexicon, and model codes."""
    products = [name.text for name in lexicon.find(text)] if lexicon.names else []
    parts = (part for name in find_names(text) for part in UNSPACED.split(name.text))
    codes = [code for part in parts if _is_model_code(code := part.strip(" ,"))]
    return tuple(dict.fromkeys([*products, *codes]))


def _is_model_code(name: str) -> bool:
    """Whether a name is one word of letters and digits, mostly capitals: `AX-5400`, `7590AX`."""
    has_both = any(map(str.isdigit, name)) and any(map(str.isupper, name))
    return " " not in name and has_both and not any(map(str.islower, name[:2]))


def _only_asks(text: str) -> bool:
    """Whether every sentence of a text is a question or too short to say something."""
    spans = split_sentences(text[:LONGEST_READ])
    return all(asks(text[a:b]) or size(text[a:b]) < LEAST_SAID for a, b in spans)

"""What was said in one conversation, each message read once, and what the oldest of it requires."""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from rag.seams import TokenCounter
from rag.summaries.choose import Choice, ask_to_choose
from rag.summaries.required import Line, Reading, Required, on_one_line, read_message
from rag.text.names import Lexicon

ASKED_TURNS = 12  # not yet shown to a model, so that asking is worth a call
Ask = Callable[[str, str], str]  # instructions and text in, the reply out


@dataclass(slots=True)
class Past:
    """The messages of one conversation, oldest first. Those before `covered` are summarised."""

    count: TokenCounter
    readings: list[Reading] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)  # in canonical spelling
    totals: list[int] = field(default_factory=lambda: [0])  # tokens up to each message
    turns: list[int] = field(default_factory=list)  # index of each turn's first message
    first: int = 0  # messages before this index are never summarised
    covered: int = 0
    asked: int = 0  # messages before this index were shown to a model
    required: Required = field(default_factory=Required)

    def read(self, role: str, text: str, tokens: int, lexicon: Lexicon) -> Reading:
        """Take in the next message."""
        index = len(self.texts)
        before = self.readings[-1] if self.readings else Reading()
        question = self.texts[-1] if before.is_users else ""
        reading = read_message(
            index, role, text, lexicon=lexicon, count=self.count, question=question
        )
        self.append(text, reading, tokens)
        return reading

    def append(self, text: str, reading: Reading, tokens: int) -> None:
        """Take in a message that was read already."""
        self.texts.append(text)
        self.readings.append(reading)
        self.totals.append(self.totals[-1] + tokens)

    def cut(self, end: int) -> None:
        """Forget the messages from `end` on, none of which is covered."""
        self.readings, self.texts = self.readings[:end], self.texts[:end]
        self.totals = self.totals[: end + 1]
        self.turns = [start for start in self.turns if start < end]

    def cover(self, end: int) -> None:
        """Have the summary stand for the messages before `end`."""
        for reading in self.readings[self.covered : end]:
            self.required.add(reading)
        self.covered = max(self.covered, end)

    def tokens(self, start: int, end: int | None = None) -> int:
        """Tokens of a run of messages."""
        return self.totals[-1 if end is None else end] - self.totals[start]

    def turns_from(self, start: int) -> int:
        """How many turns begin there or later."""
        return len(self.turns) - bisect_left(self.turns, start)

    @property
    def open_start(self) -> int:
        """Where the part begins that can never be summarised."""
        return len(self.texts)

    def ends(self) -> list[int]:
        """Where a summary may end: where it does, where a turn begins, after the last answer."""
        last = self.open_start
        starts = self.turns[bisect_left(self.turns, self.covered) : bisect_left(self.turns, last)]
        return sorted({self.covered, *starts, max(last, self.covered)})

    def stands(self, line: Line) -> bool:
        """Whether a line is a span of its message, led in there or by the question before.

        Whoever chose it, nothing else is quoted.
        """
        said = _on_one_line(self.texts[line.message])
        before = _on_one_line(self.texts[line.message - 1]) if line.message else ""
        return line.text in said and (line.lead_in in said or line.lead_in in before)

    # ── What a model chooses ─────────────────────────────────────────────────────────────────

    def ask(self, ask: Ask | None, end: int, *, room: int) -> Choice:
        """Show a model, once, the statements before `end` that none has seen, if they are enough
        to be worth a call."""
        unseen = self.turns_from(self.asked) - self.turns_from(end)
        if ask is None or not (unseen >= ASKED_TURNS or (unseen > 0 and not self.asked)):
            return Choice()
        start, self.asked = max(self.asked, self.first), end
        turns = [self.texts[at] for at in range(start, end) if self.readings[at].is_users]
        lines = [line for reading in self.readings[start:end] for line in reading.lines]
        choice = ask_to_choose(ask, turns, lines, count=self.count, room=room)
        self.required.choose(choice.lines, choice.said)
        return choice

    @property
    def choices(self) -> dict[str, Any]:
        """What models chose so far, to be stored; lines by their places."""
        chosen, said = self.required.chosen, self.required.said
        return {"asked": self.asked, "chosen": list(chosen), "said": said}

    def take_over(self, choices: Mapping[str, Any]) -> None:
        """What models chose of the turns so far, as it was stored."""
        if choices["asked"] > self.asked:
            self.asked = choices["asked"]
            places = {tuple(place) for place in choices["chosen"]}
            lines = [line for reading in self.readings for line in reading.lines]
            self.required.choose([line for line in lines if line.place in places], choices["said"])


_on_one_line = lru_cache(maxsize=1024)(on_one_line)

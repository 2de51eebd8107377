"""The parts that summaries are composed of."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from rag.conversation.facts import Fact
from rag.conversation.shorten import BRIEF_WORDS, closed, telegram, trim_sentence
from rag.names import find_names
from rag.seams import TokenCounter

LINE_TOKENS = 3  # the bullet and the line break around a line
MARKER_TOKENS = 2
FRAME_TOKENS = 30  # the titles of the blocks
FULL, TRIMMED, TELEGRAM, BRIEF = range(4)  # the forms of a sentence

EVIDENCE = "Cited in earlier turns:"


@dataclass(frozen=True, slots=True)
class Limits:
    """Tokens of a summary: `soft` for what is nice to have, `hard` for what is required."""

    soft: int
    hard: int


@dataclass(frozen=True)
class Line:
    """One cited sentence that can stand in a summary, and how much it takes, shortened or not."""

    fact: Fact
    count: TokenCounter = field(compare=False)
    is_models: bool = False  # the model wrote it, and it passed the check

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        return self.fact.numbers

    def form(self, which: int) -> str:
        """The sentence, full or shortened."""
        return self._forms[which]

    def size(self, which: int) -> int:
        """Its tokens, with the bullet and the line break."""
        return self._sizes[which]

    @cached_property
    def _forms(self) -> tuple[str, str, str, str]:
        text = closed(self.fact.text)
        trimmed = trim_sentence(text)
        return text, trimmed, telegram(trimmed), telegram(trimmed, BRIEF_WORDS)

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        known = {form: self.count(form) + LINE_TOKENS for form in dict.fromkeys(self._forms)}
        return tuple(known[form] for form in self._forms)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names in it."""
        return frozenset(name.text for name in find_names(self.fact.text))

    @cached_property
    def name(self) -> str:
        """The first name in it."""
        return min(self.names, key=self.fact.text.find, default="")


@dataclass(frozen=True, slots=True)
class Composed:
    """The text of a summary, and what had to be left to the archive."""

    text: str
    tokens: int
    rung: int
    archived_numbers: tuple[int, ...] = ()
    archived_names: tuple[str, ...] = ()
    cited: frozenset[int] = frozenset()  # read back from the text, as it is stored
    named: frozenset[str] = frozenset()


def measured(fact: Fact, count: TokenCounter) -> Line:
    """A line whose sizes are known already: the work is done when a message comes in."""
    line = Line(fact, count)
    line.size(TELEGRAM)
    return line


def names_line(names: Iterable[str]) -> str:
    """Names that no statement holds; "" for none."""
    listed = "; ".join(names)
    return f"Also named: {listed}." if listed else ""


def name_size(name: str) -> int:
    """About how many tokens a name takes in the list of names, a little too high."""
    return len(name) // 3 + 3

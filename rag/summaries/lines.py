"""The parts that summaries are composed of."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from rag.citations.claims import without_markers
from rag.citations.features import features, wording
from rag.citations.markers import cited_numbers
from rag.seams import TokenCounter
from rag.summaries.facts import Fact
from rag.summaries.kept_names import KeptNames
from rag.summaries.shorten import BRIEF_WORDS, closed, telegram, trim_sentence

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
class Required:
    """The numbers and names that a summary has to hold, in the order of their appearance."""

    numbers: tuple[int, ...]
    names: tuple[str, ...]
    reader: KeptNames  # of these names

    @cached_property
    def name_tokens(self) -> int:
        """What a list of the names takes, rather too low."""
        return sum(len(name) // 4 + 2 for name in self.names)

    def names_missing_in(self, lines: Iterable[str]) -> list[str]:
        kept = self.reader.kept("\n".join(lines))
        return [name for name in self.names if name not in kept]


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
        return self.sizes[which]

    @cached_property
    def rank(self) -> tuple[bool, bool, int]:
        """Low for what is quoted first: answers, the model's sentences, many numbers."""
        return self.fact.is_asked, not self.is_models, -len(self.numbers)

    def as_models(self) -> "Line":
        """The same line, said by the model as well; what is known of it is not measured again."""
        made = Line(self.fact, self.count, is_models=True)
        known = ("numbers", "_forms", "sizes", "wording", "names", "name")
        made.__dict__.update({name: vars(self)[name] for name in known if name in vars(self)})
        return made

    @cached_property
    def _forms(self) -> tuple[str, str, str, str]:
        return forms_of(self.fact.text)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        known = {form: self.count(form) + LINE_TOKENS for form in dict.fromkeys(self._forms)}
        return tuple(known[form] for form in self._forms)

    @cached_property
    def wording(self) -> str:
        """The words of the sentence alone, without topic and markers."""
        return wording(without_markers(self.fact.claims[0].sentence))

    @cached_property
    def names(self) -> frozenset[str]:
        """The names in it."""
        text = self.fact.text
        return frozenset(name for name in features(without_markers(text)).names if name in text)

    @cached_property
    def name(self) -> str:
        """The first name in it."""
        return min(self.names, key=self.fact.text.find, default="")


@lru_cache(maxsize=2048)
def forms_of(sentence: str) -> tuple[str, str, str, str]:
    """A sentence, full and shortened: folding a session's summaries asks for the same again."""
    text = closed(sentence)
    trimmed = trim_sentence(text)
    return text, trimmed, telegram(trimmed), telegram(trimmed, BRIEF_WORDS)


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
    for part in ("sizes", "wording", "name", "rank"):
        getattr(line, part)
    assert fact.key, "looked up to be known"
    return line


# ── Reading back ─────────────────────────────────────────────────────────────────────────────

# Most lines of a summary stand in the next one as well, so what they hold is read once.
REMEMBERED_LINES = 4096


def numbers_in(text: str) -> frozenset[int]:
    """The numbers of a text's markers."""
    if "`" in text or "~" in text:  # code goes over lines, nothing else that matters does
        return frozenset(cited_numbers(text))
    return frozenset().union(*map(_numbers_in_line, text.split("\n")))


@lru_cache(maxsize=REMEMBERED_LINES)
def _numbers_in_line(line: str) -> frozenset[int]:
    return frozenset(cited_numbers(line))


def names_line(names: Iterable[str]) -> str:
    """Names that no statement holds; "" for none."""
    listed = "; ".join(names)
    return f"Also named: {listed}." if listed else ""


def name_size(name: str) -> int:
    """About how many tokens a name takes in the list of names, a little too high."""
    return len(name) // 3 + 3

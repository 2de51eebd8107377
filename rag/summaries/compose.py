"""Compose a summary: as many statements as there is room for, and lists of all else.

Numbers come first, as ranges; then names; then statements, best first; none is ever shortened.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, groupby

from rag.citations.markers import neutralise
from rag.seams import TokenCounter
from rag.summaries.choose import ranked
from rag.summaries.required import Line, Required, on_one_line
from rag.text.names import Lexicon

HOW = (
    "(Word for word from earlier turns. What is only listed comes back when a question names it; "
    "a search of the conversation finds the rest.)"
)
OTHERS = "Other sources"
NAMED = "Named as well: "
SAID = "The user, word for word: "
SAID_WORDS = 80  # of the user at most
LONGEST_RANGE = 20  # a range over more numbers is no marker
SHORTEST_RANGE = 3
LONGEST_HEADING = 80  # characters
GROUPED_SHARE = 0.3  # of the room at most for numbers grouped by document
STATED_SHARE = 0.2  # of the room at least for statements, where lists take it and may take more


@dataclass(frozen=True, slots=True)
class Heading:
    """Where the index lists a number, and a few words on what its source is about."""

    title: str
    about: str = ""


@dataclass(slots=True)
class Composed:
    """What a summary is made of."""

    required: Required
    count: TokenCounter
    headings: Mapping[int, Heading] | None  # without documents, names head the index
    numbers: list[int]  # stated or listed
    names: list[str]
    said: list[str]
    how: list[str]
    lexicon: Lexicon  # of all names
    quoted: list[Line] = field(default_factory=list)  # in the order in which they were taken
    is_grouped: bool = True
    stated_names: set[str] = field(default_factory=set)
    tokens: int = 0

    # ── What must be in it ───────────────────────────────────────────────────────────────────

    def shrink(self, room: int, most: int) -> None:
        """Have the lists alone fit; what a tiny limit cannot hold is left to the archive."""
        grouped = self._cost(self._index(self._groups(self.numbers)))
        allowed = int(GROUPED_SHARE * room)
        self.is_grouped = grouped <= allowed or grouped <= self.count(ranges(self.numbers))
        for what in ("said", "names", "numbers", "how"):
            every = list(getattr(self, what))

            def fits(gone: int, what: str = what, every: list[object] = every) -> bool:
                setattr(self, what, every[gone:])
                return self._measured() <= most

            if fits(0):
                return
            fits(bisect_left(range(len(every)), True, key=fits))

    # ── What is quoted ───────────────────────────────────────────────────────────────────────

    def quote(self, room: int, most: int, stands: Callable[[Line], bool]) -> None:
        """Take statements as long as there is room, going on after those too long for it.

        Twice, because what is quoted need not be listed, and gives back that room.
        """
        room = max(room, min(self.tokens + int(STATED_SHARE * room), most))
        candidates = list(ranked(self.required))
        for _ in range(2):
            candidates = self._take(candidates, room - self.tokens, stands)
            self._measured()
        while self.tokens > room and self.quoted:
            self.quoted.pop()
            self._measured()

    def _take(
        self, candidates: Iterable[Line], left: int, stands: Callable[[Line], bool]
    ) -> list[Line]:
        """Those that were not taken."""
        lead_ins = {(line.message, line.lead_in) for line in self.quoted}
        rest: list[Line] = []
        for line in candidates:
            leads_in = (line.message, line.lead_in) not in lead_ins
            cost = line.tokens + leads_in * line.lead_in_tokens
            if cost > left or not stands(line):
                rest.append(line)
                continue
            left -= cost
            lead_ins.add((line.message, line.lead_in))
            self.quoted.append(line)
        return rest

    # ── The text ─────────────────────────────────────────────────────────────────────────────

    @property
    def lists(self) -> list[str]:
        """The lines that are no quotations."""
        return [*self._above(), *self._below()]

    @property
    def text(self) -> str:
        return "\n".join([*self._above(), *self._quotations(), *self._below()])

    def _measured(self) -> int:
        """The tokens of the text as it is now: lines apart take as many, or more."""
        self.stated_names = self.lexicon.kept("\n".join(self._quotations()))
        lead_ins = {(line.message, line.lead_in): line.lead_in_tokens for line in self.quoted}
        quoted = sum(line.tokens for line in self.quoted) + sum(lead_ins.values())
        self.tokens = quoted + self._cost(self.lists)
        return self.tokens

    def _cost(self, lines: Iterable[str]) -> int:
        """Most lines of an index stay as they are from summary to summary."""
        return sum(_tokens_of(line, self.count) for line in lines)

    @property
    def lines(self) -> list[Line]:
        """What is quoted, in the order of the text."""
        return sorted(self.quoted, key=lambda line: line.place)

    @property
    def stated_numbers(self) -> set[int]:
        return {number for line in self.quoted for number in line.numbers}

    @property
    def kept_names(self) -> set[str]:
        """Stated, or listed as they are."""
        return self.stated_names | {name for name in self.names if _harmless(name) == name}

    def _above(self) -> list[str]:
        return [*self.how, SAID + " ".join(self.said)] if self.said else self.how

    def _quotations(self) -> list[str]:
        said: list[str] = []
        for (_, lead_in), lines in groupby(self.lines, lambda line: (line.message, line.lead_in)):
            said += [lead_in] if lead_in else []
            said += [line.text for line in lines]
        return said

    def _below(self) -> list[str]:
        """The index, the names and what is in the archive only."""
        stated = self.stated_numbers
        groups = self._groups([number for number in self.numbers if number not in stated])
        said = self.stated_names | groups.keys()
        names = sorted(_harmless(name) for name in self.names if name not in said)
        listed = [NAMED + "; ".join(names)] if names else []
        return [*self._index(groups), *listed, *self._archive_line()]

    def _groups(self, numbers: Sequence[int]) -> dict[str, list[int]]:
        groups: dict[str, list[int]] = {}
        for number in numbers:
            groups.setdefault(self._title(number), []).append(number)
        return groups

    def _index(self, groups: Mapping[str, Sequence[int]]) -> list[str]:
        return [f"{title}: {ranges(group)}{self._about(group)}" for title, group in groups.items()]

    def _title(self, number: int) -> str:
        heading, line = (self.headings or {}).get(number), self.required.best.get(number)
        if not self.is_grouped:
            return OTHERS
        if self.headings is not None:
            return _harmless(heading.title) if heading else OTHERS
        return _harmless(min(line.names)) if line and line.names else OTHERS

    def _about(self, numbers: Sequence[int]) -> str:
        headings = self.headings if self.headings and self.is_grouped else {}
        about = dict.fromkeys(headings[number].about for number in numbers if number in headings)
        words = ", ".join(_harmless(each) for each in about if each)
        return f" {words}"[: LONGEST_HEADING + 1].rstrip()

    def _archive_line(self) -> list[str]:
        numbers = len(self.required.numbers) - len(self.numbers)
        names = len(self.required.names) - len(self.names)
        gone = [f"{numbers} citations" if numbers else "", f"{names} names" if names else ""]
        said = " and ".join(filter(None, gone))
        return [f"In the archive, found by a search of the conversation: {said}."] if said else []


def compose(
    required: Required,
    count: TokenCounter,
    *,
    room: int,
    most: int,
    stands: Callable[[Line], bool],
    headings: Mapping[int, Heading] | None = None,
) -> Composed:
    """The best summary: statements fill its `room`, numbers and names may need the `most`.

    Quoted is only what `stands` in the raw turns.
    """
    words = list(accumulate(len(sentence.split()) for sentence in reversed(required.said)))
    newest = bisect_left(words, SAID_WORDS + 1)
    composed = Composed(
        required,
        count,
        headings,
        sorted(required.numbers),
        list(required.names),
        required.said[len(words) - newest :],
        [HOW],
        Lexicon(required.names),
    )
    composed.shrink(room, most)
    composed.quote(room, most, stands)
    return composed


def ranges(numbers: Sequence[int]) -> str:
    """`[1][4][7–12]`: every number, several in a row as a range that is a marker still."""
    said: list[str] = []
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        row = [number for _, number in run]
        for at in range(0, len(row), LONGEST_RANGE):
            part = row[at : at + LONGEST_RANGE]
            if len(part) >= SHORTEST_RANGE:
                said.append(f"[{part[0]}–{part[-1]}]")
            else:
                said += [f"[{number}]" for number in part]
    return "".join(said)


@lru_cache(maxsize=8192)
def _tokens_of(line: str, count: TokenCounter) -> int:
    return count(f"{line}\n")


@lru_cache(maxsize=65_536)
def _harmless(title: str) -> str:
    """A title or name on one line; a document's own markers are none here."""
    return neutralise(on_one_line(title))[:LONGEST_HEADING].strip() or OTHERS

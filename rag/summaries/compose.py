"""Compose a summary: as many statements as there is room for, and lists of all else.

Numbers come first, as ranges; then names; then statements, best first; none is ever shortened.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, groupby, takewhile

from rag.citations.markers import neutralise
from rag.seams import TokenCounter
from rag.summaries.choose import ranked
from rag.summaries.required import Line, Required, on_one_line
from rag.text.names import Lexicon

HOW = (
    "(Statements of earlier turns, word for word. What is only listed comes back with its "
    "statement when a question names it; all else is found by a search of the conversation.)"
)
BRIEFLY = "(From earlier turns; search the conversation for more.)"
OTHERS = "Other sources"
NAMED = "Named as well: "
SAID = "The user, word for word: "
SAID_WORDS = 80  # of the user at most
LONGEST_RANGE = 20  # a range over more numbers is no marker
SHORTEST_RANGE = 3
LONGEST_HEADING = 80  # characters
GROUPED_SHARE = 0.3  # of the room at most for numbers grouped by document
BRIEF_ROOM = 300  # tokens; in less, little is explained
STATED_SHARE = 0.2  # of the room at least for statements, where lists take it and may take more
LINE_TOKENS = 8  # in less, no further statement is looked for


@dataclass(frozen=True, slots=True)
class Heading:
    """Where the index lists a number, and a few words on what its source is about."""

    title: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class Composed:
    """A summary's text, and what it is made of."""

    text: str
    tokens: int
    quoted: tuple[Line, ...]  # in the order of the text
    lists: frozenset[str]  # the lines that are no quotations
    stated_names: frozenset[str]
    numbers: frozenset[int]  # stated or listed
    names: frozenset[str]


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
    draft = _Draft(required, count, room, most, headings)
    draft.shrink()
    draft.quote(list(ranked(required)), stands)
    return draft.composed()


@dataclass(slots=True)
class _Draft:
    required: Required
    count: TokenCounter
    room: int
    most: int
    headings: Mapping[int, Heading] | None  # without documents, names head the index
    lexicon: Lexicon = field(init=False)
    quoted: list[Line] = field(default_factory=list)  # in the order in which they were taken
    stated_names: frozenset[str] = frozenset()
    numbers: list[int] = field(init=False)  # that are kept
    names: list[str] = field(init=False)
    said: list[str] = field(init=False)
    how: str = field(init=False)
    grouped: bool = True
    above: list[str] = field(default_factory=list)
    below: list[str] = field(default_factory=list)
    tokens: int = 0

    def __post_init__(self) -> None:
        self.numbers = sorted(self.required.numbers)
        self.names = list(self.required.names)
        self.lexicon = Lexicon(self.names)
        self.said = _newest(self.required.said)
        self.how = HOW if self.room >= BRIEF_ROOM else BRIEFLY

    # ── What must be in it ───────────────────────────────────────────────────────────────────

    def shrink(self) -> None:
        """Have the lists alone fit; what a tiny limit cannot hold is left to the archive."""
        groups = self._groups(self.numbers)
        grouped = self._tokens(f"{title}: {entry}" for title, entry in groups.items())
        if grouped > int(GROUPED_SHARE * self.room):
            self.grouped = grouped <= self.count(ranges(self.numbers))
        if self._fits():
            return
        self.said, self.how = [], BRIEFLY
        if not self._fits():
            names = self.names
            self.names = names[self._too_many(len(names), "names") :]
        if not self._fits():
            numbers = self.numbers
            self.numbers = numbers[self._too_many(len(numbers), "numbers") :]
        if not self._fits():
            self.how = ""

    def _too_many(self, number: int, what: str) -> int:
        """How many of the oldest names, or numbers, have to go so that the rest fits."""
        every = list(getattr(self, what))
        least, most = 0, number
        while least < most:
            gone = (least + most) // 2
            setattr(self, what, every[gone:])
            least, most = (least, gone) if self._fits() else (gone + 1, most)
        return least

    def _fits(self) -> bool:
        return self._listed() <= self.most

    # ── What is quoted ───────────────────────────────────────────────────────────────────────

    def quote(self, candidates: Sequence[Line], stands: Callable[[Line], bool]) -> None:
        """Take statements as long as there is room, going on after those too long for it.

        Twice, because what is quoted need not be listed, and gives back that room.
        """
        share = int(STATED_SHARE * self.room)
        if self.how and self.tokens + share > self.room:
            self.how = BRIEFLY  # lists that leave statements no fair share are explained briefly
            self._listed()
        room = max(self.room, min(self.tokens + share, self.most))
        for _ in range(2):
            candidates = self._take(candidates, stands, room - self.tokens)
            self._listed()
        while self.tokens > room and self.quoted:
            self.quoted.pop()
            self._listed()

    def _take(
        self, candidates: Sequence[Line], stands: Callable[[Line], bool], left: int
    ) -> list[Line]:
        """Those that were not taken."""
        lead_ins = {(line.message, line.lead_in) for line in self.quoted}
        listed = set(self.names).difference(*(line.names for line in self.quoted))
        rest: list[Line] = []
        for at, line in enumerate(candidates):
            if left < LINE_TOKENS:
                return [*rest, *candidates[at:]]
            cost = line.tokens - sum(len(name) // 4 for name in listed & line.names)
            if (line.message, line.lead_in) not in lead_ins:
                cost += line.lead_in_tokens
            if cost > left or not stands(line):
                rest.append(line)
                continue
            left -= cost
            listed -= line.names
            lead_ins.add((line.message, line.lead_in))
            self.quoted.append(line)
        return rest

    # ── The text ─────────────────────────────────────────────────────────────────────────────

    def _listed(self) -> int:
        """The tokens with lists of all that is not stated: lines apart take as many, or more."""
        self.stated_names = frozenset(self.lexicon.kept("\n".join(self._quotations())))
        self.above = [self.how, SAID + " ".join(self.said)] if self.said else [self.how]
        self.below = self._lists()
        lead_ins = {(line.message, line.lead_in): line.lead_in_tokens for line in self.quoted}
        self.tokens = sum(line.tokens for line in self.quoted) + sum(lead_ins.values())
        self.tokens += self._tokens([*self.above, *self.below])
        return self.tokens

    def _tokens(self, lines: Iterable[str]) -> int:
        """Most lines of an index stay as they are from summary to summary."""
        return sum(_tokens_of(line, self.count) for line in lines)

    def _quotations(self) -> list[str]:
        said: list[str] = []
        in_order = sorted(self.quoted, key=lambda line: line.place)
        for (_, lead_in), lines in groupby(in_order, key=lambda line: (line.message, line.lead_in)):
            said += [lead_in] if lead_in else []
            said += [line.text for line in lines]
        return said

    def _lists(self) -> list[str]:
        """The index, the names and what is in the archive only."""
        stated = self._stated()
        groups = self._groups([number for number in self.numbers if number not in stated])
        lines = [f"{title}: {entry}" for title, entry in groups.items()]
        said = self.stated_names | groups.keys()
        names = sorted(_harmless(name) for name in self.names if name not in said)
        lines += [NAMED + "; ".join(names)] if names else []
        return [*lines, *self._archive_line()]

    def _stated(self) -> set[int]:
        return {number for line in self.quoted for number in line.numbers}

    def _groups(self, numbers: Sequence[int]) -> dict[str, str]:
        """The entries of the index by title."""
        if not numbers:
            return {}
        if not self.grouped:
            return {OTHERS: ranges(numbers)}
        groups: dict[str, list[int]] = {}
        for number in numbers:
            groups.setdefault(self._title(number), []).append(number)
        return {title: self._entry(listed) for title, listed in groups.items()}

    def _title(self, number: int) -> str:
        if self.headings is not None:
            heading = self.headings.get(number)
            return _harmless(heading.title) if heading else OTHERS
        line = self.required.best.get(number)
        return _harmless(min(line.names)) if line and line.names else OTHERS

    def _entry(self, numbers: Sequence[int]) -> str:
        headings = self.headings or {}
        about = dict.fromkeys(headings[number].about for number in numbers if number in headings)
        words = ", ".join(_harmless(each) for each in about if each)
        return f"{ranges(numbers)} {words[:LONGEST_HEADING]}".rstrip()

    def _archive_line(self) -> list[str]:
        numbers = len(self.required.numbers) - len(self.numbers)
        names = len(self.required.names) - len(self.names)
        gone = [f"{numbers} citations" if numbers else "", f"{names} names" if names else ""]
        said = " and ".join(filter(None, gone))
        return [f"In the archive, found by a search of the conversation: {said}."] if said else []

    def composed(self) -> Composed:
        """The text, with what became of everything."""
        lines = [*self.above, *self._quotations(), *self.below]
        return Composed(
            "\n".join(filter(None, lines)),
            self.tokens,
            tuple(sorted(self.quoted, key=lambda line: line.place)),
            frozenset([*self.above, *self.below]),
            self.stated_names,
            frozenset(self.numbers) | self._stated(),
            self.stated_names | {name for name in self.names if _harmless(name) == name},
        )


def _newest(said: Sequence[str]) -> list[str]:
    """The newest sentences that together have at most `SAID_WORDS` words, oldest first."""
    words = accumulate(len(sentence.split()) for sentence in reversed(said))
    fit = sum(1 for _ in takewhile(lambda so_far: so_far <= SAID_WORDS, words))
    return list(said[len(said) - fit :])


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

"""What raw turns oblige a summary to keep: their numbers, their names, and the lines to quote."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, fields

from rag.citations.markers import cited_numbers, find_markers, neutralise
from rag.citations.scanner import Marker
from rag.citations.statements import Statement, read_statements
from rag.records import Role
from rag.seams import TokenCounter
from rag.text.names import Lexicon, distinct_names

LONGEST_LINE = 2_000  # characters; what is longer is listed, never cut
LONGEST_QUOTED = 200  # characters of what a user said
NO_NAMES = Lexicon(())


@dataclass(frozen=True, eq=False, slots=True)
class Line:
    """A statement as a summary quotes it: a span of one message, on one line, markers included."""

    message: int
    start: int
    text: str
    numbers: tuple[int, ...]
    tokens: int
    # Stands before it: the sentence that leads in its list, the head of its table, the question.
    lead_in: str = ""
    lead_in_tokens: int = 0
    names: frozenset[str] = frozenset()
    bare: str = ""  # both without their markers
    words: str = ""  # and without white space: two with the same are the same

    @property
    def place(self) -> tuple[int, int]:
        return self.message, self.start


@dataclass(frozen=True, slots=True)
class Reading:
    """What one message requires."""

    lines: tuple[Line, ...] = ()
    numbers: tuple[int, ...] = ()  # in the order of appearance
    names: tuple[str, ...] = ()
    is_users: bool = False


def on_one_line(text: str) -> str:
    """The words of a span; white space is all that a quotation changes."""
    return " ".join(text.split())


def read_message(
    index: int,
    role: str,
    text: str,
    *,
    lexicon: Lexicon,
    count: TokenCounter,
    question: str = "",
) -> Reading:
    """Read a message once; its markers are in canonical spelling.

    Users assert nothing of sources: of their words only names and numbers are kept. `question`
    is what the message before it, a user's, asks: a statement that leans on it is quoted with it.
    """
    names = tuple(
        name for name in distinct_names([text], lexicon) if not _is_shouted(name, lexicon)
    )
    numbers = tuple(cited_numbers(text))
    if role == Role.USER or not numbers:
        return Reading((), numbers, names, role == Role.USER)
    own = Lexicon((*names, *distinct_names([question], lexicon)))
    lines = stated_lines(index, text, question, count, names=own, cited=True)
    return Reading(tuple(lines), numbers, names)


def stated_lines(
    index: int,
    text: str,
    question: str,
    count: TokenCounter,
    *,
    names: Lexicon = NO_NAMES,
    cited: bool = False,
) -> list[Line]:
    """The statements of an answer as a summary quotes them; all, or those that are `cited`."""
    asked = quotable(question)
    markers = find_markers(text)
    found = (
        (statement, _line(index, text, statement, asked, names, count))
        for statement in read_statements(text)
        if statement.states and (statement.numbers or not cited)
    )
    # Alone, or on one line, a quotation may be read otherwise: code may end in it, or begin.
    return [
        line
        for said, line in found
        if line and set(said.numbers) <= set(line.numbers) == _numbers(said, markers)
    ]


def quotable(said: str) -> str:
    """What a user said if it is short, unless it holds what could be read as a marker."""
    short = on_one_line(said) if len(said) <= LONGEST_QUOTED else ""
    return short if neutralise(short) == short else ""


def _line(
    index: int, text: str, statement: Statement, asked: str, names: Lexicon, count: TokenCounter
) -> Line | None:
    if statement.end - statement.quote_start > LONGEST_LINE:
        return None
    quoted = on_one_line(text[statement.quote_start : statement.end])
    lead_in = asked if statement.leans else ""
    if statement.lead_in is not None and statement.lead_in[1] <= statement.quote_start:
        lead_in = on_one_line(text[slice(*statement.lead_in)])
        if len(lead_in) > LONGEST_LINE:
            return None
    whole = f"{lead_in}\n{quoted}"
    markers = find_markers(whole)
    numbers = tuple(dict.fromkeys(number for marker in markers for number in marker.numbers))
    ends = [0, *(marker.end for marker in markers)]
    starts = [*(marker.start for marker in markers), len(whole)]
    bare = "".join(whole[end:start] for end, start in zip(ends, starts, strict=True))
    return Line(
        index,
        statement.quote_start,
        quoted,
        numbers,
        count(f"{quoted}\n"),
        lead_in,
        count(f"{lead_in}\n") if lead_in else 0,
        frozenset(names.kept(whole)),
        bare,
        "".join(bare.split()),
    )


def _numbers(statement: Statement, markers: Sequence[Marker]) -> set[int]:
    """The numbers in a quotation of a statement, as they are read where it stands."""
    spans = {(statement.quote_start, statement.end), statement.lead_in or (0, 0)}
    found: set[int] = set()
    for span in spans:
        first, behind = (bisect_left(markers, at, key=lambda marker: marker.start) for at in span)
        found.update(number for marker in markers[first:behind] for number in marker.numbers)
    return found


def _is_shouted(name: str, lexicon: Lexicon) -> bool:
    """`RESET`, `HDMI`: one word in capitals is no name unless the documents call a product so."""
    return name.isalpha() and name.isupper() and name not in lexicon.names


@dataclass(slots=True)
class Required:
    """What the turns covered so far require, grown message by message; nothing is ever taken out.

    It is read in the order of the messages, each once, and composing looks at no more lines than
    there are numbers, and the newest.
    """

    numbers: dict[int, None] = field(default_factory=dict)
    names: dict[str, None] = field(default_factory=dict)
    lines: dict[tuple[str, tuple[int, ...]], Line] = field(default_factory=dict)
    best: dict[int, Line] = field(default_factory=dict)  # by number: chosen, or the newest
    uses: dict[int, int] = field(default_factory=dict)  # how often a number came up again
    chosen: dict[tuple[int, int], None] = field(default_factory=dict)  # places, as the model said
    said: list[str] = field(default_factory=list)  # chosen sentences of the user, oldest first

    def add(self, reading: Reading) -> None:
        """The next message. A user's numbers count only if an answer gave them before."""
        for number in reading.numbers:
            if number in self.numbers:
                self.uses[number] = self.uses.get(number, 0) + (2 if reading.is_users else 1)
            elif not reading.is_users:
                self.numbers[number] = None
        self.names.update(dict.fromkeys(reading.names))
        for line in reading.lines:
            key = (line.words, line.numbers)
            self.lines.pop(key, None)  # said again: it counts as new
            self.lines[key] = line
            for number in line.numbers:
                best = self.best.get(number)
                if best is None or best.place not in self.chosen:
                    self.best[number] = line

    def choose(self, lines: Iterable[Line], said: Iterable[str]) -> None:
        """Have lines that a model found worth keeping come first, and repeat what the user said."""
        for line in lines:
            self.chosen[line.place] = None
            self.best.update(dict.fromkeys(line.numbers, line))
        self.said += [sentence for sentence in said if sentence not in self.said]

    def copy(self) -> "Required":
        return Required(*(copy(getattr(self, each.name)) for each in fields(self)))


# ── A summary that is handed back ────────────────────────────────────────────────────────────

_LISTING = re.compile(r".*?: (?:\[\d+(?:–\d+)?\])+(?:[^\[\]]*)")


def read_summary(index: int, text: str, lexicon: Lexicon, count: TokenCounter) -> Reading:
    """What one of our own summaries keeps: its quotations are statements, its lists are none."""
    whole = read_message(index, Role.ASSISTANT, text, lexicon=lexicon, count=count)
    stated = tuple(line for line in whole.lines if not _LISTING.fullmatch(line.text))
    return Reading(stated, whole.numbers, whole.names)

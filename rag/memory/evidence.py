"""What the turns say, sentence by sentence: what a summary quotes, and what its words rest on."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rag.citations.clauses import depends
from rag.citations.markers import cited_numbers, without_markers
from rag.citations.statements import Statement, read_statements
from rag.language.sentences import asks
from rag.memory.paragraphs import size
from rag.records import Role

WHOLE = 200  # bytes of a message that is quoted whole
LONGEST = 600  # characters of a quotation; what is longer is no line of a summary
LEAST = 24  # bytes of a user's sentence that says something by itself
_QUOTATION = re.compile(r"[ \t]*\n\s*>")
_QUOTE_SIGNS = re.compile(r"(?m)^[ \t]*>[> ]*")
LEAST_WORDS = 4  # of one that says something in fewer
MOST_SENTENCES = 200  # of one message


@dataclass(frozen=True, slots=True)
class Claim:
    """What some numbers stand for in a sentence; no numbers: all of a sentence that cites none."""

    text: str
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SpokenSentence:
    """A sentence, entry or row of a message, and what limits it or leads it in."""

    text: str
    setting: str = ""  # headings, the lead-in, the sentence that it leans on
    claims: tuple[Claim, ...] = ()
    asks: bool = False
    leans: bool = False  # it says nothing without the question before its message

    @property
    def numbers(self) -> tuple[int, ...]:
        """Those that stand in it."""
        return tuple(dict.fromkeys(n for claim in self.claims for n in claim.numbers))

    @property
    def says_something(self) -> bool:
        """Whether it is more than a word of thanks: `Ours are from 1987`, `I am Marta Lind`."""
        has_figure = any(map(str.isdigit, self.text))
        return has_figure or size(self.text) >= LEAST or len(self.text.split()) >= LEAST_WORDS

    @property
    def quotation(self) -> str:
        """On one line, whole, with its setting."""
        return f"{self.setting} {self.text}".strip()


@lru_cache(maxsize=4096)
def read_evidence(text: str) -> tuple[SpokenSentence, ...]:
    """The sentences of a message in canonical spelling that say something."""
    results: list[SpokenSentence] = []
    heading = ""
    for statement in read_statements(text)[:MOST_SENTENCES]:
        line = flat(text[statement.start : statement.end])
        if statement.kind == "heading":
            heading = line.strip("#*_: ")
        elif _stands_over_quotation(text, statement):
            heading = without_markers(line).rpartition(" › ")[2].strip()
        elif statement.kind in ("sentence", "entry", "row") and line:
            before = results[-1] if results else None
            results.append(_sentence(text, statement, heading, before))
    return tuple(results)


def _stands_over_quotation(text: str, statement: Statement) -> bool:
    """Whether a line says where the quotation below it stands, as those of our own answers do."""
    is_quoted = text[statement.start : statement.end].lstrip().startswith(">")
    return not is_quoted and bool(_QUOTATION.match(text, statement.end))


def _sentence(
    text: str, statement: Statement, heading: str, before: SpokenSentence | None
) -> SpokenSentence:
    line = flat(text[statement.start : statement.end])
    lead = statement.lead_in
    led = flat(text[lead.start : lead.end]) if lead and lead.end <= statement.start else ""
    needs = statement.kind == "sentence" and depends(line)
    setting = [f"{heading} ›" if heading and heading not in led else "", led]
    if needs and before is not None:
        setting = [before.quotation]
    claims = tuple(
        Claim(flat(text[part.start : part.end]), part.numbers) for part in statement.parts
    )
    return SpokenSentence(
        line,
        " ".join(filter(None, setting)),
        claims or (Claim(line),),
        asks=asks(line),
        leans=needs and before is None,
    )


def flat(text: str) -> str:
    """On one line, without the signs of a quotation."""
    return " ".join(_QUOTE_SIGNS.sub("", text).split())


@dataclass(frozen=True, slots=True)
class SpokenMessage:
    """A message as evidence."""

    role: str
    text: str  # in canonical spelling
    numbers: tuple[int, ...] = ()  # that count in it


@dataclass(frozen=True, slots=True)
class TurnEvidence:
    """The messages of a conversation as they were at one moment, for whoever holds no lock.

    `[start, end)` is what is summarised; what comes later may replace a value.
    """

    messages: Sequence[SpokenMessage]
    start: int
    end: int
    base: int = 0  # the first message that is held in memory
    older: Callable[[int], Sequence[int]] = lambda number: ()  # those before it that give a number

    def sentences(self, message: int) -> tuple[SpokenSentence, ...]:
        """Those of one message."""
        return read_evidence(self.messages[message].text)

    def question(self, message: int) -> str:
        """What was asked for an answer; "" where nobody asked."""
        if message < 1 or self.messages[message].role == Role.USER:
            return ""
        before = self.messages[message - 1]
        return flat(before.text) if before.role == Role.USER else ""

    def giving(self, number: int) -> list[int]:
        """The messages before the end that hold a number, oldest first."""
        held = range(self.base, self.end)
        return [*self.older(number), *(at for at in held if number in self.messages[at].numbers)]

    def quotation(self, message: int, sentence: SpokenSentence) -> str:
        """A sentence word for word with what limits it; short messages stand whole."""
        text = self.messages[message].text
        is_answer = self.messages[message].role != Role.USER
        if is_answer and size(text) <= WHOLE and "\n" not in text.strip():
            quoted, needs_question = flat(text), any(s.leans for s in self.sentences(message))
        else:
            quoted, needs_question = sentence.quotation, sentence.leans
        question = self.question(message) if needs_question else ""
        return f"{question} → {quoted}" if question else quoted


def numbers_in(text: str) -> tuple[int, ...]:
    """Those that a line cites, in order."""
    return tuple(dict.fromkeys(cited_numbers(text)))

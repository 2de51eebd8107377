"""What the turns say, sentence by sentence: what a summary quotes, and what its words rest on."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rag.citations.markers import cited_numbers, without_markers
from rag.citations.statements import Statement, depends, read_statements
from rag.language.sentences import asks, leads_in
from rag.language.words import language_of
from rag.memory.recall import size, telling
from rag.records import Role

WHOLE = 200  # bytes of a message that is quoted whole
LONGEST = 600  # characters of a quotation; what is longer is no line of a summary
LEAST = 24  # bytes of a user's sentence that says something by itself
_QUOTATION = re.compile(r"[ \t]*\n\s*>")
_PARAGRAPH_END = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+#|]|\d+[.)]))")
_BOLD_LEVEL = 7  # of a heading without a sign of its level
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
    paragraph: str = ""  # a short one whole: what goes on behind a sentence may limit it

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
    headings: list[tuple[int, str]] = []  # the level of each, and what it says
    statements = read_statements(text)[:MOST_SENTENCES]
    for before, statement, behind in zip(
        [None, *statements], statements, [*statements[1:], None], strict=False
    ):
        line = flat(text[statement.start : statement.end])
        level = _heading_level(text, statement, behind)
        if level:
            headings = [heading for heading in headings if heading[0] < level]
            headings.append((level, line.strip("#*_: ")))
        elif _stands_over_quotation(text, statement):
            headings = [(1, without_markers(line).rpartition(" › ")[2].strip())]
        elif statement.kind in ("sentence", "entry", "row") and line:
            led = _lead(text, before, statement)
            path = [name for _, name in headings if name and name not in led]
            last = results[-1] if results else None
            results.append(_sentence(text, statement, [*map("{} ›".format, path), led], last))
    return tuple(results)


def _heading_level(text: str, statement: Statement, behind: Statement | None) -> int:
    """Of a heading, also of one that is underlined; 0: it is none."""
    line = text[statement.start : statement.end].lstrip(" \t>")
    if statement.kind == "heading":
        return len(line) - len(line.lstrip("#")) or _BOLD_LEVEL
    is_underlined = (
        behind is not None
        and (statement.kind, behind.kind) == ("sentence", "rule")
        and text[statement.end : behind.start].count("\n") == 1
    )
    return 2 if is_underlined and "\n" not in line else 0


def _lead(text: str, before: Statement | None, statement: Statement) -> str:
    lead = statement.lead_in
    if lead and lead.end <= statement.start:
        return flat(text[lead.start : lead.end])
    is_next = before is not None and text[before.end : statement.start].count("\n") <= 1
    if before is None or not is_next or before.kind != "sentence":
        return ""
    line = flat(text[before.start : before.end])
    return line if leads_in(line) else ""


def _stands_over_quotation(text: str, statement: Statement) -> bool:
    """Whether a line says where the quotation below it stands, as those of our own answers do."""
    is_quoted = text[statement.start : statement.end].lstrip().startswith(">")
    return not is_quoted and bool(_QUOTATION.match(text, statement.end))


def _sentence(
    text: str, statement: Statement, setting: list[str], before: SpokenSentence | None
) -> SpokenSentence:
    line = flat(text[statement.start : statement.end])
    needs = statement.kind == "sentence" and depends(line)
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
        paragraph=_paragraph(text, statement) if statement.kind == "sentence" else "",
    )


def _paragraph(text: str, statement: Statement) -> str:
    """What a sentence and those beside it say, from it on, if that is short."""
    end = _PARAGRAPH_END.search(text, statement.end)
    whole = flat(text[statement.start : end.start() if end else len(text)])
    return whole if size(whole) <= WHOLE else ""


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
        newest = range(self.base, self.end)
        return [
            *self.older(number),
            *(position for position in newest if number in self.messages[position].numbers),
        ]

    def quotation(self, message: int, sentence: SpokenSentence) -> str:
        """A sentence word for word with what limits it; short messages stand whole."""
        text = self.messages[message].text
        is_answer = self.messages[message].role != Role.USER
        question, needs_question = self.question(message), sentence.leans
        if is_answer and size(text) <= WHOLE and _has_sentences_only(text):
            quoted = flat(text)
            needs_question = any(s.leans for s in self.sentences(message))
        elif is_answer and sentence.paragraph:
            quoted = f"{sentence.setting} {sentence.paragraph}".strip()
        else:
            quoted = sentence.quotation
        is_short = is_answer and size(quoted) <= WHOLE // 2
        if question and is_short and not needs_question:
            language = language_of(question)
            words = set(telling(question, language))
            needs_question = words.isdisjoint(telling(quoted, language))
        return f"{question} → {quoted}" if question and needs_question else quoted


def _has_sentences_only(text: str) -> bool:
    """No code: on one line its numbers would count."""
    return all(statement.kind == "sentence" for statement in read_statements(text))


def numbers_in(text: str) -> tuple[int, ...]:
    """Those that a line cites, in order."""
    return tuple(dict.fromkeys(cited_numbers(text)))

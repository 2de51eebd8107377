"""Split text into sentences with exact offsets.

A sentence is what a reader would call one, inside the unit that its line belongs to: a list entry,
a table row, a heading and a line of a code fence are units of their own, everything else is a
paragraph. A citation marker after the full stop belongs to the sentence before it.

A window is a stretch of the text with the words without which it cannot be understood: the lead-in
of a list, the label of a row and the header of a column.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice, starmap
from typing import Literal, NamedTuple, TypeAlias

import regex
from sentencex import segment

from rag.language.words import all_meanings, phrases

# ── What kind each line of a text is of: code, a heading, a table's row or rule, a ──

LineKind: TypeAlias = Literal["code", "rule", "head", "row", "heading", "entry", "sentence"]

ENTRY = re.compile(r"[ \t>]*(?:[-*+•◦‣–]|\(?\d{1,3}[.)]|\(?[A-Za-z][.)])[ \t]+(?=\S)")
CELL = re.compile(r"(?:\\.|[^|\\])+")
_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})(?![^\n]*`)")
_INDENTED = re.compile(r"(?: {4}| {0,3}\t)[ \t]*\S")
_QUOTE = " \t>"  # before a line in a quotation
_KINDS: tuple[tuple[LineKind, re.Pattern[str]], ...] = (
    ("rule", re.compile(r"(?=[\s:|-]*$)(?:-?[\s:|])*--|(?:[-*_=][ \t]*){3,}$")),
    ("row", re.compile(r"\|")),
    ("heading", re.compile(r"#{1,6}[ \t]")),
    ("entry", ENTRY),
)
_LEADS_IN = re.compile(r"[:：?？][\W_]*$")
_ASKS = re.compile(r"[?？؟][\W_]*$")
_END = 20  # characters


class Lines:
    """Classifies the lines of a text, which are passed in order.

    The first few visible characters of a line suffice to tell whether it is code, except inside a
    fence or if it begins with backticks or tildes.
    """

    def __init__(self) -> None:
        self._fence = ""
        self._after_blank = True
        self._in_list = False
        self._indented = False

    def kind(self, line: str) -> LineKind:
        if self.is_code(line):
            return "code"
        bare = line.strip(_QUOTE)
        return next((kind for kind, pattern in _KINDS if pattern.match(bare)), "sentence")

    def is_code(self, line: str) -> bool:
        """Whether a line is in a fence, closed or not, or in an indented block."""
        opening = _FENCE.match(line)
        if self._fence:
            run = line.strip(" \t>\r")
            if run.startswith(self._fence) and not run.strip(self._fence[0]):
                self._fence = ""
            return True
        if opening:
            self._fence = opening.group(1)
            return True
        if not line.strip():
            self._after_blank = True
            return self._indented
        starts = self._after_blank and not self._in_list
        self._indented = bool(_INDENTED.match(line)) and (self._indented or starts)
        if ENTRY.match(line) and not self._indented:
            self._in_list = True
        elif not line[0].isspace() and self._after_blank:
            self._in_list = False
        self._after_blank = False
        return self._indented


def leads_in(text: str) -> bool:
    """Whether a text needs what follows: it ends with a colon or a question mark."""
    return bool(_LEADS_IN.search(text[-_END:]))


def asks(text: str) -> bool:
    """Whether a text ends with a question."""
    return bool(_ASKS.search(text[-_END:]))


# ── Text to sentences with exact offsets ──────────────────────────────────────────────────────────


class Span(NamedTuple):
    """A stretch of a text: `text[start:end]`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with the kind of its line."""

    start: int
    end: int
    kind: LineKind
    begins: bool  # its line


CODE_INDENT = "    "  # before each line of code in a section's text, as in Markdown
# What ends a sentence: Latin, CJK, Arabic, Urdu and Devanagari.
FULL_STOPS = ".!?…。！？؟۔।॥"

_BREAK = r"\n\r\x0b\x0c\x85\u2028\u2029"
_LINE = re.compile(rf"([^{_BREAK}]*)(?:[{_BREAK}]|\Z)")
# The shape of a marker, wherever it stands. The grammar proper is in rag.citations.grammar, which
# this module is not to know; what looks like a marker and is none costs nothing here.
_MARKER = r"(?:\[[0-9][0-9,\-– ]*\]|[【［][0-9０-９][0-9０-９,，、\-– ]*[】］])"
_UNREADABLE = re.compile("[\ud800-\udfff\x00]")
_BREAKS = re.compile(f"[{_BREAK}]")
_MARKERS = re.compile(rf"[ \t\u00a0\u202f]?{_MARKER}(?:[ \t]?{_MARKER})*")
_ENDS = re.compile(rf"[{FULL_STOPS}:;：；][\"'”’»)\]」』]*\s*(?:{_MARKER}\s*)*$|{_MARKER}\s*$")
# A line at least this long was probably broken by its width, a shorter one by its writer.
_WRAPPED_AT = 50
_PROSE = ("sentence", "entry")
_TAIL = 300  # characters of a line that tell whether it ends a sentence
# sentencex looks back from each stop to the beginning: over long stretches that would add up.
_PIECE = re.compile(
    r".{1,4000}\Z|.{0,3998}(?:[.!?][ \t]|[。！？])|.{0,3999}[ \t]|.{1,4000}", re.DOTALL
)
# Abbreviations that sentencex takes for an end, mostly those of data sheets.
_ABBREVIATED = re.compile(rf"(?:^|[\s(\"'])(?:{phrases('abbreviated')})\.\s*$", re.IGNORECASE)
# These are never the end of one, whatever follows: German nouns begin with a capital letter.
_LEADS_ON = re.compile(rf"(?:^|[\s(\"'/])(?:{phrases('leads_on')})\.\s*$", re.IGNORECASE)
_DAY = re.compile(r"(?<!\d)\d{1,2}\.\s*$")
_MONTH = re.compile("|".join(all_meanings("months")), re.IGNORECASE)
_GOES_ON = re.compile(r"[a-z0-9(“\"'$€£~<>±]")
# `Prod. code`; and dots that belong to what stands behind them: `.NET`, `./configure`, `...SHOULD`.
_WRITTEN_SHORT = re.compile(r"(?:^|[\s(/])[A-Z][a-z]{1,4}\.\s+$")
_BEGINS = re.compile(r"(?:^|[\s(\"'`])\.+$")
# Single letters look like initials to sentencex; after a figure they are units.
_UNIT_ENDS = regex.compile(r"(?<=\d[ \u00a0]?[A-Za-zΩ]\.[ \t]+)(?=[A-Z])", regex.V1)


def split_sentences(text: str) -> list[Span]:
    """Return the trimmed sentences of a text in order; they cover all that is not blank."""
    return [Span(sentence.start, sentence.end) for sentence in read_sentences(text)]


def read_sentences(text: str) -> list[Sentence]:
    """Return the sentences with their kinds; a table's head is the row above its rule."""
    results: list[Sentence] = []
    for start, end, kind in _blocks(text):
        if kind == "rule" and results and results[-1].kind == "row":
            results[-1] = replace(results[-1], kind="head")
        cut = _sentences(text, start, end) if kind in _PROSE else [trimmed(text, start, end)]
        spans = [span for span in cut if span]
        results.extend(Sentence(*span, kind, begins=span is spans[0]) for span in spans)
    return results


def _blocks(text: str) -> Iterator[tuple[int, int, LineKind]]:
    """Yield the stretches of lines that no sentence crosses."""
    lines = Lines()
    begun: tuple[int, int, LineKind] | None = None
    for match in _LINE.finditer(text):
        start, end = match.span(1)
        kind = lines.kind(match[1])
        if begun and kind == "sentence" and _continues(text, begun, start, match[1]):
            begun = (begun[0], end, begun[2])
            continue
        if begun:
            yield begun
        begun = (start, end, kind) if match[1].strip() else None
    if begun:
        yield begun


def _continues(text: str, block: tuple[int, int, LineKind], start: int, line: str) -> bool:
    """Whether a line continues the sentence of the line before, which was broken by its width."""
    stripped = line.lstrip()
    if not stripped or block[2] not in _PROSE:
        return False
    last = max(text.rfind("\n", block[0], block[1]) + 1, block[0])
    if _ENDS.search(text, max(last, block[1] - _TAIL), block[1]):
        return False
    return stripped[0].islower() or start - last >= _WRAPPED_AT


def _sentences(text: str, start: int, end: int) -> Iterator[Span | None]:
    """Cut one block at its full stops, ignoring citation markers."""
    entry = ENTRY.match(text, start, end)
    body = entry.end() if entry else start
    taken = (match.span() for match in _MARKERS.finditer(text, body, end))
    edges = [body, *(edge for span in taken for edge in span), end]
    stretches = list(zip(edges[::2], edges[1::2], strict=True))
    places = [*chain.from_iterable(starmap(range, stretches)), end]  # of each character in the text
    position, length = start, 0
    for sentence in _segments("".join(text[left:right] for left, right in stretches)):
        length += len(sentence)
        yield trimmed(text, position, places[length])
        position = places[length]
    yield trimmed(text, position, end)


def _segments(plain: str) -> Iterator[str]:
    """Yield the sentences of a text; joined, they are as long as `plain`."""
    # Lone surrogates cannot be handed over, and a line break inside a block is only a blank;
    # each replacement is one character, so that offsets stay true.
    readable = _UNREADABLE.sub("\ufffd", plain)
    readable = _BREAKS.sub(" ", readable)
    last = ""
    for piece in _PIECE.finditer(readable):
        for sentence in segment("en", piece[0]):
            if last and not _is_one(last, sentence):
                yield from _UNIT_ENDS.split(last)
                last = ""
            last += sentence
    yield from _UNIT_ENDS.split(last)


def _is_one(sentence: str, following: str) -> bool:
    """Whether the last dot belongs to an abbreviation, or to what follows: `.NET`."""
    end = sentence[-20:]
    if _LEADS_ON.search(end) or _BEGINS.search(end):
        return True
    if _ABBREVIATED.search(end) and _GOES_ON.match(following):
        return True
    if following[:1].islower():
        return bool(_WRITTEN_SHORT.search(end) or _DAY.search(end))
    return bool(_DAY.search(end) and _MONTH.match(following))


def trimmed(text: str, start: int, end: int) -> Span | None:
    """Return the span without blanks at its ends; None if all of it is blank."""
    stretch = text[start:end]
    left = len(stretch) - len(stretch.lstrip())
    if left == len(stretch):
        return None
    return Span(start + left, start + len(stretch.rstrip()))


_MARKUP = re.compile(r"\*\*|__(?=\S)|(?<=\S)__|`+|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)")
_MOST_WINDOWS = 400  # of one text: longer ones are read to there


@dataclass(frozen=True, slots=True)
class Window:
    """The stretch `text[start:end]` with its lead-in, label and header in `around`."""

    start: int
    end: int
    text: str
    around: str = ""
    kind: str = "sentence"  # sentence, entry, row, cell, heading, code
    column: str = ""  # of a cell, its header


@lru_cache(maxsize=512)
def read_windows(text: str) -> tuple[Window, ...]:
    """Return the windows of a text in order; a table gives its cells and each whole row."""
    return tuple(islice(_BlockReader(text).read(), _MOST_WINDOWS))


def plain(text: str) -> str:
    """Remove the emphasis signs of Markdown."""
    return _MARKUP.sub("", text).replace("\\|", "|").strip()


def cells_of(line: str) -> list[str]:
    """Return the plain cells of a table row; an escaped bar does not part cells."""
    return [plain(match[0]) for match in CELL.finditer(line.strip().strip("|"))]


class _BlockReader:
    """Reads a text in order and remembers heading, lead-in and table header."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.header: list[str] = []
        self.lead_in = ""
        self.heading = ""

    def read(self) -> Iterator[Window]:
        for sentence in read_sentences(self.text):
            kind, line = sentence.kind, self.text[sentence.start : sentence.end]
            if kind == "row":
                yield from self._row(sentence, line)
            elif kind == "head":
                self.header = cells_of(line)
            elif kind == "heading":
                self.header, self.lead_in, self.heading = [], "", plain(line.lstrip(" >#"))
            elif kind == "code":
                if not line.startswith(("```", "~~~")):
                    yield Window(sentence.start, sentence.end, line, self.heading, kind)
            elif kind != "rule":
                self.header = []
                yield self._sentence(sentence, line)

    def _sentence(self, sentence: Sentence, line: str) -> Window:
        entry = ENTRY.match(line) if sentence.kind == "entry" and sentence.begins else None
        begins = entry is None and sentence.begins
        around = "" if begins and not asks(self.lead_in) else self.lead_in
        words = plain(line[entry.end() :] if entry else line)
        if leads_in(line) and entry is None:
            self.lead_in = words
        elif begins:
            self.lead_in = ""
        kind = "entry" if entry else "sentence"
        return Window(sentence.start, sentence.end, words, _joined(self.heading, around), kind)

    def _row(self, sentence: Sentence, line: str) -> Iterator[Window]:
        span = sentence.start, sentence.end
        cells = cells_of(line)
        around = _joined(self.heading, self.lead_in)
        headers = [*self.header, *[""] * len(cells)]
        cells_with_headers = [
            f"{header}: {cell}" if header and cell else cell
            for header, cell in zip(headers, cells, strict=False)
        ]
        yield Window(*span, "; ".join(filter(None, cells_with_headers)), around, kind="row")
        for header, cell in zip(headers[1:], cells[1:], strict=False):
            if cell:
                label = _joined(around, cells[0], header)
                yield Window(*span, f"{cells[0]}: {cell}", label, kind="cell", column=header)


def _joined(*parts: str) -> str:
    return " · ".join(part for part in parts if part)

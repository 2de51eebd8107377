"""What a passage consists of: its sentences, rows, entries and code, each with its place."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from rag.text.sentences import CODE_INDENT, split_sentences

_RULE = re.compile(r"\|?[\s:|-]*-{2,}[\s:|-]*\|?$")
# A table's header, some of its rows, and behind a gap the header again.
_REPEATED = re.compile(r"^(\|.*\n\|[-:| ]+\n)((?:\|.*\n)+)\n+\1", re.MULTILINE)
_ENTRY = re.compile(r"[ \t]*(?:[-*+•◦‣–][ \t]+|\(?\d{1,3}[.)][ \t]+)(?=\S)")
_LINE = re.compile(r"[^\n]*")
_ENDED = re.compile(r"[.!?:;。！？：；…][\"'”’»)\]」』]*\s*$")
_LABELLED = re.compile(r"[^\s:][^:\n]{0,40}: +\S[^\n]*")  # "Boiling point: 56 °C"
_LEADS = re.compile(r"[:：]\s*$")
_ASKS = re.compile(r"[?？][\"'”’»)\]]*\s*$")
_LONGEST_TITLE = 8  # words of a line without a full stop that is taken for a title


class Kind(StrEnum):
    """How a unit stands in its document."""

    SENTENCE = "sentence"
    TITLE = "title"
    LEAD = "lead"  # ends with a colon, and says nothing without what follows
    ROW = "row"
    ENTRY = "entry"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Unit:
    """A stretch `[start, end)` of a passage that can be pointed at."""

    start: int
    end: int
    kind: Kind
    text: str
    above: str = ""  # the title, the lead-in and the header row that it stands below

    @property
    def is_statement(self) -> bool:
        """Whether it says something, and can stand alone."""
        stands = self.kind in (Kind.SENTENCE, Kind.ROW, Kind.ENTRY)
        return stands and not _ASKS.search(self.text) and any(map(str.isalnum, self.text))


def units_of(passage: str) -> list[Unit]:
    """The units of a passage, in reading order; blank lines and rules of tables are none."""
    return list(_Reader(passage).read())


def with_tables_joined(passage: str) -> str:
    """Without the header that a long table has again in each part, so that parts meet as one."""
    joined = _REPEATED.sub(r"\1\2", passage)
    return joined if joined == passage else with_tables_joined(joined)


def cells_of(line: str) -> tuple[str, ...]:
    """The cells of a table's line."""
    inner = line.strip().strip("|").replace(r"\|", "\0")
    return tuple(" ".join(cell.split()).replace("\0", "|") for cell in inner.split("|"))


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    shape: str


class _Reader:
    """Reads block by block and remembers what stands above."""

    def __init__(self, passage: str) -> None:
        self._passage = passage
        self._title = ""
        self._lead = ""

    def read(self) -> Iterator[Unit]:
        lines = _lines(self._passage)
        for shape, run in groupby(lines, key=lambda line: line.shape):
            block = list(run)
            if shape == "row":
                yield from self._rows(block)
            elif shape == "code":
                yield self._unit(block[0].start, block[-1].end, Kind.CODE)
            elif shape == "entry":
                yield from self._entries(block)
            elif shape == "text":
                yield from self._sentences(block)
            if shape in ("row", "code"):
                self._lead = ""

    def _unit(self, start: int, end: int, kind: Kind, above: str = "") -> Unit:
        told = " › ".join(filter(None, (self._title, self._lead, above)))
        return Unit(start, end, kind, self._passage[start:end], told)

    def _rows(self, block: Sequence[_Line]) -> Iterator[Unit]:
        texts = [self._passage[line.start : line.end] for line in block]
        is_ruled = len(texts) > 1 and bool(_RULE.match(texts[1].strip()))
        header = cells_of(texts[0]) if is_ruled else ()
        for line, text in list(zip(block, texts, strict=True))[2 if is_ruled else 0 :]:
            if not _RULE.match(text.strip()):
                yield self._unit(line.start, line.end, Kind.ROW, " | ".join(header))

    def _entries(self, block: Sequence[_Line]) -> Iterator[Unit]:
        """Each with the lines that go on with it."""
        starts = [line for line in block if _ENTRY.match(self._passage, line.start)] or block[:1]
        ends = [line.start for line in starts[1:]] + [block[-1].end]
        for line, end in zip(starts, ends, strict=True):
            mark = _ENTRY.match(self._passage, line.start)
            start = mark.end() if mark else line.start
            whole = self._passage[start:end].rstrip()
            yield self._unit(start, start + len(whole), Kind.ENTRY)
            if _LEADS.search(whole):
                self._lead = whole

    def _sentences(self, block: Sequence[_Line]) -> Iterator[Unit]:
        start, end = block[0].start, block[-1].end
        text = self._passage[start:end]
        self._lead = ""
        labelled = [bool(_LABELLED.fullmatch(line)) for line in text.split("\n")]
        if sum(labelled) > 1 and sum(labelled) > len(labelled) / 2:  # values, no titles
            for line in block:
                yield self._unit(line.start, line.end, Kind.SENTENCE)
            return
        for span in split_sentences(text):
            sentence = text[span.start : span.end]
            goes_on = text[span.end : span.end + 1] not in ("", "\n")
            kind = Kind.SENTENCE
            if _LEADS.search(sentence):
                kind = Kind.LEAD
            elif not goes_on and _is_title(sentence) and end < len(self._passage):
                kind = Kind.TITLE
            yield self._unit(start + span.start, start + span.end, kind)
            if kind is Kind.TITLE:
                self._title = " ".join(sentence.split()).lstrip("# ")
            self._lead = " ".join(sentence.split()) if kind is Kind.LEAD else ""


def _is_title(sentence: str) -> bool:
    return len(sentence.split()) <= _LONGEST_TITLE and not _ENDED.search(sentence)


def _lines(passage: str) -> list[_Line]:
    found: list[_Line] = []
    for match in _LINE.finditer(passage):
        if match.start() == match.end() and match.start() and passage[match.start() - 1] != "\n":
            continue
        before = found[-1].shape if found else "blank"
        found.append(_Line(*match.span(), _shape(match[0], before)))
    return _with_empty_lines_of_code(found)


def _shape(line: str, before: str) -> str:
    if not line.strip():
        return "code?" if before in ("code", "code?") else "blank"
    begins = before in ("code", "code?", "blank")
    if line.startswith(CODE_INDENT) and begins and (before != "blank" or not _ENTRY.match(line)):
        return "code"
    if line.lstrip().startswith("|"):
        return "row"
    if _ENTRY.match(line) or (before == "entry" and line.startswith("  ")):
        return "entry"
    return "text"


def _with_empty_lines_of_code(lines: Sequence[_Line]) -> list[_Line]:
    """An empty line belongs to code if code goes on below it."""
    told: list[_Line] = []
    after = "blank"
    for line in reversed(lines):
        shape = line.shape
        if shape == "code?":
            shape = "code" if after == "code" else "blank"
        told.append(_Line(line.start, line.end, shape))
        after = shape
    return told[::-1]

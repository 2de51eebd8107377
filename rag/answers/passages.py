"""What a source says, in pieces that can be quoted alone."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby, pairwise
from textwrap import dedent

from rag.citations.markers import neutralise
from rag.records import Source
from rag.text.sentences import CODE_INDENT, split_sentences

LONGEST_PIECE = 70  # words; longer sentences are mostly text without punctuation
LONGEST_GROUP = 130  # words of a list that is quoted whole
PIECES_PER_SOURCE = 80
MOST_CODE_LINES = 16
PROSE_WORDS = 5  # a line, on average
PROSE_SHARE = 0.93  # of the characters
_TABLE_RULE = re.compile(r"\|?[\s:|-]*-{2,}[\s:|-]*\|?$")
_ENTRY = re.compile(
    r"\s*(?:[-*+•◦‣–]\s+(?:(?P<number>\(?\d{1,3}[.)])\s+)?|(?P<plain>\(?\d{1,3}[.)])\s+)(?=\S)"
)
_FENCE = re.compile(r"\s*(```|~~~)")
_ADDRESS = re.compile(r"\w+://\S+")
_FENCES = re.compile(r"```|~~~")
_HEADING = re.compile(r"\s*#{1,6}\s+")
_STATES = re.compile(r"\d|\w: +\w")  # a figure, or a value after its name
_ENDED = re.compile(r"[.!?:;。！？：；…][\"'”’»)\]」』]*\s*$")
_LONGEST_TITLE = 8  # words of a line without a full stop that is taken for a title


class Kind(StrEnum):
    """How a piece stands in its document."""

    SENTENCE = "sentence"
    ROW = "row"
    ENTRY = "entry"
    LIST = "list"  # an introduction with its entries
    STEPS = "steps"  # numbered entries, in order


LISTS = frozenset({Kind.LIST, Kind.STEPS})  # quoted line by line


@dataclass(frozen=True, slots=True)
class Piece:
    """Something a source says; `text` is fit to be quoted, markers in it made harmless."""

    number: int  # of the source
    position: int  # from 0, in reading order within the source
    text: str
    kind: Kind
    context: str = ""  # what stands above it: headings, the introduction of a list
    heading: str = ""  # the innermost of the section's headings
    title: str = ""  # what stands above it within the passage: smaller titles, introductions
    in_chunk: bool = True  # else in its neighbourhood
    leads: bool = False  # the first of its source
    header: tuple[str, ...] = ()  # of a row: what its table calls the columns
    cells: tuple[str, ...] = ()  # of a row, its subject first
    code: str = ""  # the lines that the text introduces, to be quoted below it

    def below(self, title: str) -> "Piece":
        """The same under one more title."""
        return replace(
            self,
            context=f"{self.context} › {title}",
            title=f"{self.title} › {title}" if self.title else title,
        )


def pieces_of(source: Source) -> list[Piece]:
    """The pieces of a source's passage, in reading order."""
    chunk_start = max(0, source.passage.find(source.text))
    chunk_end = chunk_start + len(source.text)
    headings = tuple(dict.fromkeys((source.document_title, *source.heading_path)))
    heading = " › ".join(headings)
    found: list[Piece] = []
    for read in _Reader(source.passage).read():
        text, context = read.text, read.context
        above = f"{heading} › {context}" if context else heading
        quotable = neutralise(text if read.kind in LISTS else " ".join(text.split()))
        if _ADDRESS.fullmatch(quotable) or not any(map(str.isalnum, quotable)):
            continue
        inside = chunk_start <= read.start < chunk_end
        found.append(
            Piece(
                number=source.number,
                position=len(found),
                text=quotable,
                kind=read.kind,
                context=above,
                heading=headings[-1],
                title=context,
                in_chunk=inside,
                leads=not found,
                header=read.header,
                cells=read.cells,
                code=read.code,
            )
        )
        if len(found) == PIECES_PER_SOURCE:
            break
    return found


@dataclass(frozen=True, slots=True)
class _Found:
    text: str
    kind: Kind
    context: str
    start: int  # offset into the passage
    header: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    code: str = ""


class _Reader:
    """Reads one passage block by block, remembering the title and introduction above."""

    def __init__(self, passage: str) -> None:
        self._passage = passage
        self._headers = _headers(passage)
        self._title = ""
        self._introduction = ""
        self._introduced_at = 0
        self._following = ""
        self._below: Sequence[_Line] = ()

    def read(self) -> Iterator[_Found]:
        runs = groupby(_lines(self._passage), key=lambda line: line.shape)
        blocks = [(shape, list(lines)) for shape, lines in runs if shape != "blank"]
        for (shape, block), (following, below) in pairwise([*blocks, ("", [])]):
            self._following, self._below = following, below
            match shape:
                case "row":
                    yield from self._rows(block)
                case "entry":
                    yield from self._entries(block)
                case "heading":
                    self._title = _HEADING.sub("", block[-1].text).strip()
                case "text":
                    yield from self._sentences(block)
                case "code":
                    yield from self._code(block)
            if shape not in ("text", "entry"):
                self._introduction = ""

    def _context(self) -> str:
        return " › ".join(filter(None, (self._title, self._introduction.rstrip(":： "))))

    def _rows(self, block: Sequence["_Line"]) -> Iterator[_Found]:
        cells = [_cells(line.text) for line in block]
        ruled = _is_ruled([line.text for line in block])
        # A passage may begin inside a table, whose header then stands at its next part.
        header = cells[0] if ruled else self._headers.get(len(cells[0]), ())
        for line, row in list(zip(block, cells, strict=True))[2 if ruled else 0 :]:
            text = row_text(header, row)
            if text and not _TABLE_RULE.match(line.text.strip()):
                yield _Found(text, Kind.ROW, self._context(), line.start, tuple(header), tuple(row))

    def _entries(self, block: Sequence["_Line"]) -> Iterator[_Found]:
        entries = _joined_entries(block)
        is_steps = sum(entry.numbered for entry in entries) * 2 > len(entries) and len(entries) > 1
        whole = "\n".join(
            f"{number}. {entry.text}" if is_steps else f"- {entry.text}"
            for number, entry in enumerate(entries, start=1)
        )
        introduction = f"{self._introduction}\n" if self._introduction else ""
        if len(entries) > 1 and len(whole.split()) <= LONGEST_GROUP:
            kind = Kind.STEPS if is_steps else Kind.LIST
            yield _Found(introduction + whole, kind, self._title, block[0].start)
            if is_steps:
                return
        context = self._context()
        leads = self._introduce(entries[-1].text, entries[-1].start)
        leads &= self._following == "code"
        for entry in entries[: -1 if leads else None]:
            yield _Found(entry.text, Kind.ENTRY, context, entry.start)

    def _introduce(self, text: str, start: int) -> bool:
        """Whether a text is quoted with what it introduces."""
        introduces = text.endswith((":", "："))
        self._introduction = " ".join(text.split()) if introduces else ""
        self._introduced_at = start
        return introduces

    def _code(self, block: Sequence["_Line"]) -> Iterator[_Found]:
        """Code below the words that introduce it; else only what is prose after all."""
        lines = [line.text for line in block if not _FENCE.match(line.text)]
        code = dedent("\n".join(lines)).strip("\n")
        if self._introduction and code and not _FENCES.search(code):
            start = self._introduced_at
            yield _Found(self._introduction, Kind.SENTENCE, self._title, start, code=_short(code))
        elif _is_prose(lines):
            yield from self._sentences(block)

    def _sentences(self, block: Sequence["_Line"]) -> Iterator[_Found]:
        start, text = block[0].start, self._text_of(block)
        spans = split_sentences(text)
        titles = [self._is_title(text[s.start : s.end], text[s.end : s.end + 1]) for s in spans]
        for at, span in enumerate(spans):
            sentence = text[span.start : span.end]
            if titles[at]:
                self._title = " ".join(sentence.split())
                # Several in a row are lines of a list or a table rather than titles.
                is_alone = not any(titles[max(0, at - 1) : at] + titles[at + 1 : at + 2])
                if is_alone and (at + 1 < len(spans) or not self._stands_for_itself(sentence)):
                    continue
            if self._introduce(sentence, start + span.start):
                continue
            yield from self._in_pieces(sentence, start + span.start)

    def _stands_for_itself(self, line: str) -> bool:
        """Whether a last line that looks like a title has nothing below it that it could be of.

        Slides and notes state things without a full stop.
        """
        if self._following != "text":
            return self._following in ("", "heading")
        return bool(_STATES.search(line)) and self._begins_with_title(self._below)

    def _begins_with_title(self, block: Sequence["_Line"]) -> bool:
        text = self._text_of(block)
        first = split_sentences(text)[:1]
        return any(self._is_title(text[s.start : s.end], text[s.end : s.end + 1]) for s in first)

    def _text_of(self, block: Sequence["_Line"]) -> str:
        return self._passage[block[0].start : block[-1].start + len(block[-1].text)]

    def _is_title(self, sentence: str, following: str) -> bool:
        alone = following in ("", "\n")
        return alone and len(sentence.split()) <= _LONGEST_TITLE and not _ENDED.search(sentence)

    def _in_pieces(self, sentence: str, start: int) -> Iterator[_Found]:
        words = sentence.split()
        if len(words) <= LONGEST_PIECE:
            yield _Found(sentence, Kind.SENTENCE, self._title, start)
            return
        for at in range(0, len(words), LONGEST_PIECE):
            part = " ".join(words[at : at + LONGEST_PIECE])
            before = "… " if at else ""
            after = " …" if at + LONGEST_PIECE < len(words) else ""
            yield _Found(before + part[:1000] + after, Kind.SENTENCE, self._title, start)


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    start: int
    shape: str  # "row", "entry", "heading", "code", "text" or "blank"
    numbered: bool = False


def _lines(passage: str) -> list[_Line]:
    found: list[_Line] = []
    start = 0
    fenced = False
    for text in passage.split("\n"):
        is_fence = bool(_FENCE.match(text))
        shape = "code" if fenced or is_fence else _shape(text, found[-1].shape if found else "")
        fenced ^= is_fence
        if shape == "code" and [line.shape for line in found[-2:]] == ["code", "blank"]:
            found[-1] = replace(found[-1], shape="code")  # an empty line of it
        found.append(_Line(text, start, shape))
        start += len(text) + 1
    return found


def _shape(line: str, before: str) -> str:
    if not line.strip():
        return "blank"
    if line.startswith(CODE_INDENT) and (
        before == "code" or (before in ("", "blank") and not _ENTRY.match(line))
    ):
        return "code"
    if line.lstrip().startswith("|"):
        return "row"
    if _HEADING.match(line):
        return "heading"
    # An indented line under an entry goes on with it.
    if _ENTRY.match(line) or (before == "entry" and line.startswith("  ")):
        return "entry"
    return "text"


def _short(code: str) -> str:
    """As much of it as an answer may hold."""
    lines = code.split("\n")
    return "\n".join([*lines[:MOST_CODE_LINES], "…"] if len(lines) > MOST_CODE_LINES else lines)


def _is_prose(lines: Sequence[str]) -> bool:
    """Whether preformatted lines are sentences, as in old manuals, and no code."""
    text = " ".join(" ".join(lines).split())
    plain = sum(char.isalpha() or char in " .,'’-" for char in text)
    words = len(text.split()) / max(1, sum(bool(line.strip()) for line in lines))
    return words >= PROSE_WORDS and plain >= PROSE_SHARE * len(text)


def _joined_entries(block: Sequence[_Line]) -> list[_Line]:
    """One line for each entry, without its bullet."""
    entries: list[_Line] = []
    for line in block:
        mark = _ENTRY.match(line.text)
        if mark is None and entries:
            joined = f"{entries[-1].text} {line.text.strip()}"
            entries[-1] = replace(entries[-1], text=joined)
            continue
        text = " ".join(line.text[mark.end() if mark else 0 :].split())
        entries.append(_Line(text, line.start, line.shape, _is_numbered(mark)))
    return entries


def _is_numbered(mark: re.Match[str] | None) -> bool:
    return mark is not None and bool(mark["number"] or mark["plain"])


def _is_ruled(lines: Sequence[str]) -> bool:
    return len(lines) > 1 and bool(_TABLE_RULE.match(lines[1].strip()))


def _headers(passage: str) -> dict[int, list[str]]:
    """The headers of the passage's tables by their number of columns, the first of each."""
    found: dict[int, list[str]] = {}
    for pair in pairwise(passage.split("\n")):
        if pair[0].lstrip().startswith("|") and _is_ruled(pair):
            cells = _cells(pair[0])
            found.setdefault(len(cells), cells)
    return found


def _cells(line: str) -> list[str]:
    inner = line.strip().strip("|").replace(r"\|", "\0")
    return [" ".join(cell.split()).replace("\0", "|") for cell in inner.split("|")]


def row_text(header: Sequence[str], row: Sequence[str]) -> str:
    """A row as a sentence: `Aero 5 — Price: 129 EUR; Weight: 310 g`."""
    if not header:
        return "; ".join(filter(None, row))
    named = [
        f"{name}: {cell}" if name and name != cell else cell
        for name, cell in zip(header[1:], row[1:], strict=False)
        if cell
    ]
    subject = row[0] if row else ""
    return " — ".join(filter(None, (subject, "; ".join(named))))

"""The evidence for a source number: its passage, marked in the surrounding text; and cards."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby, pairwise, zip_longest

from markupsafe import Markup, escape

from rag.citations.markers import find_markers
from rag.documents.store import SqlDocumentStore
from rag.errors import NotFound
from rag.language.sentences import CODE_INDENT, Span, trimmed
from rag.records import (
    Card,
    Chunk,
    Document,
    QuotedPassage,
    Readable,
    Section,
    Source,
    SourceState,
    Verdict,
)
from rag.render.statements import TABLE_RULE, CitedStatement, deciding, places_of, strong

AROUND_CHARS = 1_800  # shown on each side of the passage
NEAR_CHARS = 500  # with less text around it, neighbouring sections are shown too
FOLDED = 400  # the least number of characters worth folding away
ENTRY = re.compile(r"[ \t]*- ")
NUMBER = re.compile(r"\(?(?:\d{1,3}|[a-z])[.)] ")  # an entry's own number, which needs no bullet
STRONG_CELL = re.compile(r'\*\*([^*\n]+)\*\*(?=" $)')  # at the end of a quotation
CELL_EDGE = re.compile(r"(?<!\\)\|")
LINE = re.compile(r"[^\n]+")
LOCATED = re.compile(r"\brows? (\d+)(?:–(\d+))?$")
AROUND, STATED, DECIDES = 1, 2, 3  # how a character is marked
RUN = re.compile(rb"(.)\1*", re.DOTALL)  # of characters with the same mark
NOWHERE = Span(0, 0)


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks in a text: the cited passage, and in it the words that state the claim."""

    passage: Span = NOWHERE
    stated: tuple[Span, ...] = ()
    decides: tuple[Span, ...] = ()  # the words within them that decide the verdict
    is_whole: bool = True  # with no stated words, the whole passage is marked as stated

    def moved(self, by: int) -> "Marks":
        """Return the marks shifted by `by` characters."""
        stated, decides = (
            tuple(_shifted(span, by) for span in spans) for spans in (self.stated, self.decides)
        )
        return Marks(_shifted(self.passage, by), stated, decides, self.is_whole)

    def styles(self, length: int) -> bytes:
        """Return how each character of a text is marked."""
        styles = bytearray(length)
        stated = self.stated or [self.passage] * self.is_whole
        for style, spans in ((AROUND, [self.passage]), (STATED, stated), (DECIDES, self.decides)):
            for span in spans:
                for position in range(max(0, span.start), min(length, span.end)):
                    styles[position] = style
        return bytes(styles)


NO_MARKS = Marks()
NO_NUMBERS: Mapping[int, int] = {}


def _shifted(span: Span, by: int) -> Span:
    return Span(span.start + by, span.end + by)


@dataclass(frozen=True, slots=True)
class PartView:
    """A part of a document as it is shown."""

    heading: str
    html: Markup


@dataclass(frozen=True, slots=True)
class Evidence:
    """A source with its surrounding text, as far as the document is unchanged."""

    source: Source
    parts: tuple[PartView, ...]
    section_index: int | None  # in the current document; None for a snapshot
    page: int | None = None
    quotes: tuple[str, ...] = ()  # the sentences and rows that concern the statement
    document: Document | None = None  # the current document, if it still has the passage
    rows: tuple[int, ...] = ()  # marked row numbers of a sheet or CSV file

    @property
    def is_current(self) -> bool:
        return self.source.state is SourceState.CURRENT


def evidence_of(
    source: Source,
    stated: Sequence[CitedStatement],
    documents: SqlDocumentStore,
    readable: Readable,
) -> Evidence:
    """Return the evidence in the current document, or in the snapshot if the passage has changed.

    `stated` are the statements that cite it; the words that support them are marked in the passage.
    """
    chunk = documents.chunks([source.chunk_id], readable).get(source.chunk_id)
    if chunk is None or chunk.text != source.text:
        return _snapshot(source, stated)
    try:
        near = documents.neighbourhood(chunk.document_id, chunk.section_index, readable)
        document = documents.document(chunk.document_id, readable)
    except NotFound:
        return _snapshot(source, stated)
    return replace(_in_document(source, chunk, near, stated), document=document)


def _snapshot(source: Source, stated: Sequence[CitedStatement]) -> Evidence:
    start = source.passage.find(source.text)
    text = source.passage if start >= 0 else source.text
    passage = Span(max(start, 0), max(start, 0) + len(source.text))
    marks = _marks(text, passage, places_of(text, [s.sought for s in stated]), stated)
    part = PartView("", text_html(text, marks))
    return Evidence(source, (part,), None, quotes=tuple(text[a:b] for a, b in marks.stated))


def _marks(
    text: str, passage: Span, spans: Sequence[Span], stated: Sequence[CitedStatement]
) -> Marks:
    """Mark the deciding words; where nothing in the passage matches, only the passage."""
    results = {
        span: tuple(
            _shifted(words, span.start)
            for statement in stated
            for words in deciding(statement, text[span.start : span.end])[1]
        )
        for span in spans
    }
    is_contradicted = any(statement.verdict is Verdict.CONTRADICTED for statement in stated)
    if is_contradicted and any(results.values()):
        results = {span: words for span, words in results.items() if words}
    decides = tuple(words for result in results.values() for words in result)
    return Marks(passage, tuple(results), decides, is_whole=not stated)


def _in_document(
    source: Source, chunk: Chunk, near: Sequence[Section], stated: Sequence[CitedStatement]
) -> Evidence:
    section = next(section for section in near if section.index == chunk.section_index)
    spans = _stated_spans(source, chunk, section, [statement.sought for statement in stated])
    marks = _marks(section.text, Span(chunk.start, chunk.end), spans, stated)
    first = max(0, min(span.start for span in (marks.passage, *marks.stated)) - AROUND_CHARS)
    last = max(span.end for span in (marks.passage, *marks.stated)) + AROUND_CHARS
    shown, moved = _cut(section.text, first, min(len(section.text), last))
    rows = numbers_of_rows(section)
    numbers = {row.start - moved: number for row, number in rows.items()}
    parts = [PartView(_heading(section), text_html(shown, marks.moved(-moved), numbers=numbers))]
    if len(section.text) - (chunk.end - chunk.start) < NEAR_CHARS:
        parts = [parts[0] if other is section else _neighbour(other) for other in near]
    quotes = tuple(section.text[a:b] for a, b in marks.stated)
    marked = tuple(
        number
        for row, number in rows.items()
        if any(row.start <= span.start < row.end for span in marks.stated)
    )
    return Evidence(source, tuple(parts), section.index, section.page, quotes, rows=marked)


def _stated_spans(
    source: Source, chunk: Chunk, section: Section, clauses: Sequence[str]
) -> tuple[Span, ...]:
    """Find the stated words in the passage that the model read, which may exceed the chunk."""
    text, start = source.passage, chunk.start - max(0, source.passage.find(source.text))
    if not text or not section.text.startswith(text, max(0, start)):
        text, start = chunk.text, chunk.start
    return tuple(_shifted(span, start) for span in places_of(text, clauses))


def _neighbour(section: Section) -> PartView:
    text, _ = _cut(section.text, 0, min(len(section.text), AROUND_CHARS))
    return PartView(_heading(section), text_html(text))


def _heading(section: Section) -> str:
    return section.heading_path[-1] if section.heading_path else ""


def _cut(text: str, first: int, last: int) -> tuple[str, int]:
    """Cut a text at whole words, with … at the cuts; also return the shift of its start."""
    before = after = ""
    line = text.rfind("\n", 0, first) + 1
    if first > 0 and text.startswith(CODE_INDENT, line):
        first, before = line, f"{CODE_INDENT}…\n"
    elif first > 0:
        blank = text.find(" ", first, first + 40)
        first, before = (blank + 1 if blank >= 0 else first), "… "
    if last < len(text):
        blank = text.rfind(" ", max(first, last - 40), last)
        last, after = (blank if blank >= 0 else last), " …"
    return before + text[first:last] + after, first - len(before)


# ── Text as people read it ──────────────────────────────────────────────────────────────────


def text_html(
    text: str,
    marks: Marks = NO_MARKS,
    *,
    is_target: bool = True,
    numbers: Mapping[int, int] = NO_NUMBERS,
) -> Markup:
    """Render a section's text: tables, lists, and the marked passage.

    If `is_target`, the first mark is the anchor `#passage`. `numbers` are the file's row numbers,
    by the offsets where the rows begin.
    """
    lines = [Span(line.start(), line.end()) for line in LINE.finditer(text)]
    styles = marks.styles(len(text))
    target = (STATED if max(styles, default=0) >= STATED else AROUND) if is_target else None
    writing = _Writing(text, styles, target, numbers)
    parts = []
    for kind, block in _blocks(text, lines):
        if kind == "table":
            parts.append(writing.table(block))
        elif kind == "list":
            entries = Markup("").join(map(writing.entry, block))
            parts.append(Markup("<ul>{}</ul>").format(entries))
        elif kind == "code":
            parts.append(writing.code(block))
        else:
            shown = writing.marked(Span(block[0].start, block[-1].end))
            parts.append(Markup("<p>{}</p>").format(shown))
    return Markup("\n").join(parts)


def _blocks(text: str, lines: Sequence[Span]) -> Iterator[tuple[str, list[Span]]]:
    """Yield runs of lines of one kind; an empty line ends a paragraph, a new header a table."""
    block: list[Span] = []
    kind = ""
    for line, after in zip_longest(lines, lines[1:]):
        apart = not block or text.count("\n", block[-1].end, line.start) > 1
        words = text[slice(*line)]
        of_line = _kind(words, before=kind, apart=apart)
        is_head = apart and after and TABLE_RULE.fullmatch(text, *after)
        is_other = is_head and block and words != text[slice(*block[0])]
        if block and (of_line != kind or (apart and of_line == "text") or is_other):
            yield kind, block
            block = []
        kind = of_line
        block.append(line)
    if block:
        yield kind, block


def _kind(line: str, *, before: str, apart: bool) -> str:
    """Return what a line is; `apart` if an empty line separates it from the block before."""
    if line.startswith(CODE_INDENT):
        goes_on = before == "list" and ENTRY.match(line)
        if before == "code" or (apart and not goes_on):
            return "code"
    stripped = line.strip()
    if len(stripped) > 1 and stripped[0] == stripped[-1] == "|":
        return "table"
    return "list" if ENTRY.match(line) else "text"


@dataclass(slots=True)
class _Writing:
    """Renders the blocks of one text; the first mark of a style gets the anchor."""

    text: str
    styles: bytes
    target: int | None  # that style; None once the anchor is set
    numbers: Mapping[int, int]

    def entry(self, line: Span) -> Markup:
        sign = ENTRY.match(self.text, line.start)
        start = sign.end() if sign else line.start
        has_number = NUMBER.match(self.text, start)
        style = Markup(' class="is-numbered"') if has_number else ""
        return Markup("<li{}>{}</li>").format(style, self.marked(Span(start, line.end)))

    def code(self, block: Sequence[Span]) -> Markup:
        """Render code line by line, with empty lines and without its indentation."""
        shown, position = Markup(""), block[0].start
        for line in block:
            shown += self.text[position : line.start]
            set_in = self.text.startswith(CODE_INDENT, line.start)
            shown += self.marked(Span(line.start + set_in * len(CODE_INDENT), line.end))
            position = line.end
        return Markup("<pre><code>{}</code></pre>").format(shown)

    def table(self, block: Sequence[Span]) -> Markup:
        rows = []
        has_head = len(block) > 1 and TABLE_RULE.fullmatch(self.text, *block[1])
        head = self.text[slice(*block[0])] if has_head else ""
        for index, line in enumerate(block):
            words = self.text[slice(*line)]
            # A long table is stored in parts, each below its header.
            if TABLE_RULE.fullmatch(words) or (index and words == head):
                continue
            tag = Markup("th" if has_head and index == 0 else "td")
            bars = [match.start() for match in CELL_EDGE.finditer(self.text, *line)]
            spans = (trimmed(self.text, a + 1, b) or Span(b, b) for a, b in pairwise(bars))
            cells = map(self._cell, spans)
            row = Markup("").join(Markup("<{0}>{1}</{0}>").format(tag, cell) for cell in cells)
            if self.numbers:
                number = self.numbers.get(line.start, "")
                row = Markup('<td class="row-number">{}</td>').format(number) + row
            style = self._row_style(line) if tag == "td" else ""
            rows.append(Markup("<tr{}>{}</tr>").format(style, row))
        return Markup('<div class="table"><table>{}</table></div>').format(Markup("").join(rows))

    def _cell(self, cell: Span) -> Markup:
        """Emphasise what decides, if the cell's offsets are those of the shown text."""
        words = self.text[cell.start : cell.end]
        if "\\|" in words:
            return escape(words.replace("\\|", "|"))
        return strong(words, self._deciding(cell))

    def _deciding(self, span: Span) -> list[Span]:
        """Return the deciding spans, as offsets into the given span."""
        runs = RUN.finditer(self.styles, span.start, span.end)
        return [_shifted(Span(*r.span()), -span.start) for r in runs if r[1][0] == DECIDES]

    def _row_style(self, line: Span) -> Markup | str:
        style = max(self.styles[line.start : line.end])
        if style >= STATED:
            return Markup('{} class="is-marked"').format(self._anchor(STATED))
        return Markup('{} class="is-around"').format(self._anchor(AROUND)) if style else ""

    def marked(self, span: Span) -> Markup:
        """Mark the words of a span; strong marks lie over the pale mark of the whole passage."""
        runs = RUN.finditer(self.styles, span.start, span.end)
        parts = Markup("")
        for is_said, grouped in groupby(runs, lambda run: run[1][0] >= STATED):
            pieces = list(grouped)
            if is_said:
                stated = Span(pieces[0].start(), pieces[-1].end())
                words = strong(self.text[slice(*stated)], self._deciding(stated))
                parts += Markup("<mark{}>{}</mark>").format(self._anchor(STATED), words)
            else:
                parts += Markup("").join(map(self._plain, pieces))
        return parts

    def _plain(self, run: re.Match[bytes]) -> Markup:
        words = self.text[run.start() : run.end()]
        if run[1][0] != AROUND:
            return escape(words)
        return Markup('<span{} class="is-around">{}</span>').format(self._anchor(AROUND), words)

    def _anchor(self, style: int) -> Markup | str:
        if self.target != style:
            return ""
        self.target = None
        return Markup(' id="passage"')


# ── Rows and cards ────────────────────────────────────────────────────────────────────────────────


def numbers_of_rows(section: Section) -> dict[Span, int]:
    """Return the row numbers from the locator; none if it does not cover each row."""
    text, located = section.text, LOCATED.search(section.locator)
    lines = [Span(*line.span()) for line in LINE.finditer(text)]
    is_rule = [bool(TABLE_RULE.fullmatch(text, *line)) for line in lines]
    if located is None or True not in is_rule[1:]:
        return {}
    head = text[slice(*lines[is_rule.index(True) - 1])]  # repeated above each part of a long table
    pairs = zip(lines, is_rule, strict=True)
    rows = [line for line, rule in pairs if not rule and text[slice(*line)] != head]
    first, last = int(located[1]), int(located[2] or located[1])
    if len(rows) != last - first + 1 or not all(text[row.start] == "|" for row in rows):
        return {}
    return dict(zip(rows, range(first, last + 1), strict=True))


def parts_of(shown: QuotedPassage) -> tuple[QuotedPassage, QuotedPassage, QuotedPassage]:
    """Split a passage into what to fold before, show, and fold after the marked text.

    The folded parts are empty where they are short, or nothing is marked.
    """
    text, start, end = shown.text, 0, len(shown.text)
    if shown.marked:
        blocks = [0, *(match.end() for match in re.finditer(r"\n\n", text))]
        first, last = min(shown.marked)[0], max(until for _, until in shown.marked)
        start = [block for block in blocks if block <= first][-2:][0]
        end = ([block for block in blocks if block >= last][1:] or [end])[0]
    start = start if start >= FOLDED else 0
    end = end if len(text) - end >= FOLDED else len(text)
    marked = tuple((a - start, b - start) for a, b in shown.marked)
    before, after = (replace(shown, text=part, marked=()) for part in (text[:start], text[end:]))
    return before, replace(shown, text=text[start:end], marked=marked), after


def passage_html(shown: QuotedPassage) -> Markup:
    """Render a passage with the text nearest to the question marked."""
    spans = tuple(Span(start, end) for start, end in shown.marked)
    return text_html(shown.text, Marks(NOWHERE, spans), is_target=False)


def lead_of(card: Card) -> list[tuple[Markup, int]]:
    """Return a card's lead as (words, source number after them); 0 after the last."""
    parts, position = list[tuple[Markup, int]](), 0
    for marker in find_markers(card.lead):
        parts.append((_with_strong_cell(card.lead[position : marker.start]), marker.numbers[0]))
        position = marker.end
    return [*parts, (_with_strong_cell(card.lead[position:]), 0)]


def _with_strong_cell(words: str) -> Markup:
    """Render the words of a lead, in which the cell that a quoted row ends with is `**so**`."""
    pieces = STRONG_CELL.split(words)  # every second one is a cell
    return Markup("").join(
        Markup("<strong>{}</strong>").format(piece) if index % 2 else piece
        for index, piece in enumerate(pieces)
    )


def marked_in(card: Card, number: int) -> list[str]:
    """Return the sentences and rows of one source that a card marks."""
    passages = (passage for passage in card.passages if passage.number == number)
    return [passage.text[start:end] for passage in passages for start, end in passage.marked]


def moment_html(when: datetime) -> Markup:
    """Render a time; scripts show it in the reader's own zone."""
    utc = when if when.tzinfo else when.replace(tzinfo=UTC)
    shown = f"{utc.day} {utc:%B %Y, %H:%M} UTC"
    return Markup('<time datetime="{}">{}</time>').format(utc.isoformat(), shown)

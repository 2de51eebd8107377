"""The evidence behind a number: the very passage, marked in its surroundings; and cards."""

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
NEAR_CHARS = 500  # with less than that around it, the neighbouring sections are shown too
FOLDED = 400  # characters, at least, far from what is marked: what is folded saves a look
ENTRY = re.compile(r"[ \t]*- ")
NUMBER = re.compile(r"\(?(?:\d{1,3}|[a-z])[.)] ")  # of an entry: it needs no bullet beside
CELL_EDGE = re.compile(r"(?<!\\)\|")
LINE = re.compile(r"[^\n]+")
LOCATED = re.compile(r"\brows? (\d+)(?:–(\d+))?$")
AROUND, STATED, DECIDES = 1, 2, 3  # how a character is marked, if it is
RUN = re.compile(rb"(.)\1*", re.DOTALL)  # of characters that are marked alike
NOWHERE = Span(0, 0)


@dataclass(frozen=True, slots=True)
class Marks:
    """What is marked in a text: the passage that was cited, and in it the words that say it."""

    passage: Span = NOWHERE
    stated: tuple[Span, ...] = ()
    decides: tuple[Span, ...] = ()  # of what is said, the words that settle it
    is_whole: bool = True  # where nothing is said to be in it, all of the passage is meant

    def moved(self, by: int) -> "Marks":
        """The same in a text that begins `by` characters earlier or, below 0, later."""
        stated, decides = (
            tuple(_shifted(span, by) for span in spans) for spans in (self.stated, self.decides)
        )
        return Marks(_shifted(self.passage, by), stated, decides, self.is_whole)

    def styles(self, length: int) -> bytes:
        """How each character of a text is marked."""
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
    """A stretch of a document as it is shown."""

    heading: str
    html: Markup


@dataclass(frozen=True, slots=True)
class Evidence:
    """A source with the text around it, as far as that still is what it was."""

    source: Source
    parts: tuple[PartView, ...]
    section_index: int | None  # in the document as it is now; None for a snapshot
    page: int | None = None
    quotes: tuple[str, ...] = ()  # the sentences and rows that speak of what is stated
    document: Document | None = None  # as it is now, where it still says so
    rows: tuple[int, ...] = ()  # of a sheet or a CSV file, those that are marked

    @property
    def is_current(self) -> bool:
        return self.source.state is SourceState.CURRENT


def evidence_of(
    source: Source,
    stated: Sequence[CitedStatement],
    documents: SqlDocumentStore,
    readable: Readable,
) -> Evidence:
    """In the document as it stands, or, where that changed or vanished, in the snapshot.

    `stated` is what an answer cites it for: the words that say so are marked in the passage.
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
    """Where nothing in the passage says it, none of its words is marked more than the others."""
    results = {
        span: tuple(
            _shifted(words, span.start)
            for statement in stated
            for words in deciding(statement, text[span.start : span.end])[1]
        )
        for span in spans
    }
    if any(statement.verdict is Verdict.CONTRADICTED for statement in stated) and any(
        results.values()
    ):
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
        parts = [
            *(_neighbour(other) for other in near if other.index < section.index),
            *parts,
            *(_neighbour(other) for other in near if other.index > section.index),
        ]
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
    """Writers read more than the chunk: what they say may stand in the text around it."""
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
    """The text between whole words, with … where it goes on, and by how much its start moved."""
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
    """A section's text: its tables as tables, its entries as a list, the passage marked.

    Its first mark is what `#passage` leads to, if it is a target. `numbers` are those of rows in
    their file, by where they begin.
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
    """Runs of lines of one kind; an empty line begins a new paragraph, another head a new table."""
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
    """What a line is; `apart` if an empty one stands between it and the block before."""
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
    """Writes the blocks of one text; the first of its marks of one style can be linked to."""

    text: str
    styles: bytes
    target: int | None  # that style; None once it was met
    numbers: Mapping[int, int]

    def entry(self, line: Span) -> Markup:
        sign = ENTRY.match(self.text, line.start)
        start = sign.end() if sign else line.start
        has_number = NUMBER.match(self.text, start)
        style = Markup(' class="is-numbered"') if has_number else ""
        return Markup("<li{}>{}</li>").format(style, self.marked(Span(start, line.end)))

    def code(self, block: Sequence[Span]) -> Markup:
        """Line by line as it stands, empty lines too, without the blanks that set it in."""
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
            # A long table is read in pieces, each below its head.
            if TABLE_RULE.fullmatch(words) or (index and words == head):
                continue
            tag = Markup("th" if has_head and index == 0 else "td")
            cells = map(self._cell, _cells(self.text, line))
            row = Markup("").join(Markup("<{0}>{1}</{0}>").format(tag, cell) for cell in cells)
            if self.numbers:
                number = self.numbers.get(line.start, "")
                row = Markup('<td class="row-number">{}</td>').format(number) + row
            style = self._row_style(line) if tag == "td" else ""
            rows.append(Markup("<tr{}>{}</tr>").format(style, row))
        return Markup('<div class="table"><table>{}</table></div>').format(Markup("").join(rows))

    def _cell(self, cell: Span) -> Markup:
        """What decides strong, where its offsets are those of the text that is shown."""
        words = self.text[cell.start : cell.end]
        if "\\|" in words:
            return escape(words.replace("\\|", "|"))
        return strong(words, self._deciding(cell))

    def _deciding(self, span: Span) -> list[Span]:
        """The stretches that decide, by offsets into the stretch around them."""
        runs = RUN.finditer(self.styles, span.start, span.end)
        return [_shifted(Span(*r.span()), -span.start) for r in runs if r[1][0] == DECIDES]

    def _row_style(self, line: Span) -> Markup | str:
        style = max(self.styles[line.start : line.end])
        if style >= STATED:
            return Markup('{} class="is-marked"').format(self._anchor(STATED))
        return Markup('{} class="is-around"').format(self._anchor(AROUND)) if style else ""

    def marked(self, span: Span) -> Markup:
        """The words of a stretch; strong marks lie over the paler one of the whole passage."""
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


def _cells(text: str, row: Span) -> list[Span]:
    edges = [match.start() for match in CELL_EDGE.finditer(text, row.start, row.end)]
    return [trimmed(text, start + 1, end) or Span(end, end) for start, end in pairwise(edges)]


# ── Rows and cards ────────────────────────────────────────────────────────────────────────────────


def numbers_of_rows(section: Section) -> dict[Span, int]:
    """As the locator tells; none where it does not tell of each, as between empty rows."""
    text, located = section.text, LOCATED.search(section.locator)
    lines = [Span(*line.span()) for line in LINE.finditer(text)]
    is_rule = [bool(TABLE_RULE.fullmatch(text, *line)) for line in lines]
    if located is None or True not in is_rule[1:]:
        return {}
    head = text[slice(*lines[is_rule.index(True) - 1])]  # once more above each piece of many rows
    pairs = zip(lines, is_rule, strict=True)
    rows = [line for line, rule in pairs if not rule and text[slice(*line)] != head]
    first, last = int(located[1]), int(located[2] or located[1])
    if len(rows) != last - first + 1 or not all(text[row.start] == "|" for row in rows):
        return {}
    return dict(zip(rows, range(first, last + 1), strict=True))


def parts_of(shown: QuotedPassage) -> tuple[QuotedPassage, QuotedPassage, QuotedPassage]:
    """What stands before and after what is marked and the blocks beside it, to be folded.

    Both are empty where they are short, or nothing is marked.
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
    """A passage with what is nearest to the question marked."""
    spans = tuple(Span(start, end) for start, end in shown.marked)
    return text_html(shown.text, Marks(NOWHERE, spans), is_target=False)


def lead_of(card: Card) -> list[tuple[str, int]]:
    """The words of a card's lead, each stretch with the number behind it; 0 behind the last."""
    parts, position = list[tuple[str, int]](), 0
    for marker in find_markers(card.lead):
        parts.append((card.lead[position : marker.start], marker.numbers[0]))
        position = marker.end
    return [*parts, (card.lead[position:], 0)]


def marked_in(card: Card, number: int) -> list[str]:
    """The sentences and rows of one source that a card marks."""
    passages = (passage for passage in card.passages if passage.number == number)
    return [passage.text[start:end] for passage in passages for start, end in passage.marked]


def moment_html(when: datetime) -> Markup:
    """A time that scripts show in the reader's own zone."""
    utc = when if when.tzinfo else when.replace(tzinfo=UTC)
    shown = f"{utc.day} {utc:%B %Y, %H:%M} UTC"
    return Markup('<time datetime="{}">{}</time>').format(utc.isoformat(), shown)

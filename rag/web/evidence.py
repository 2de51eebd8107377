"""The evidence behind a number: the very passage, marked in its surroundings."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from rag.errors import NotFound
from rag.records import Chunk, Section, Source, SourceState
from rag.sentences import Span
from rag.web.current import application

AROUND_CHARS = 1_800  # shown on each side of the passage
NEAR_CHARS = 500  # with less than that around it, the neighbouring sections are shown too
TABLE_RULE = re.compile(r"[ \t]*\|?[ \t:|-]*-{3}[ \t:|-]*\|?[ \t]*")
ENTRY = re.compile(r"[ \t]*- ")
LINE = re.compile(r"[^\n]+")


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a document as it is shown."""

    heading: str
    html: Markup


@dataclass(frozen=True, slots=True)
class Evidence:
    """A source with the text around it, as far as that still is what it was."""

    source: Source
    parts: tuple[Part, ...]
    section_index: int | None  # in the document as it is now; None for a snapshot
    page: int | None = None

    @property
    def is_current(self) -> bool:
        return self.source.state is SourceState.CURRENT


def evidence_of(source: Source) -> Evidence:
    """In the document as it stands, or, where that changed or vanished, in the snapshot."""
    chunk = application().documents.chunks([source.chunk_id]).get(source.chunk_id)
    if chunk is None or chunk.text != source.text:
        return _snapshot(source)
    try:
        near = application().documents.neighbourhood(chunk.document_id, chunk.section_index)
    except NotFound:
        return _snapshot(source)
    return _in_document(source, chunk, near)


def _snapshot(source: Source) -> Evidence:
    start = source.passage.find(source.text)
    text = source.passage if start >= 0 else source.text
    marked = Span(max(start, 0), max(start, 0) + len(source.text))
    return Evidence(source, (Part("", text_html(text, marked)),), None)


def _in_document(source: Source, chunk: Chunk, near: Sequence[Section]) -> Evidence:
    section = next(each for each in near if each.index == chunk.section_index)
    first = max(0, chunk.start - AROUND_CHARS)
    last = min(len(section.text), chunk.end + AROUND_CHARS)
    shown, moved = _cut(section.text, first, last)
    marked = Span(chunk.start - moved, chunk.end - moved)
    parts = [Part(_heading(section), text_html(shown, marked))]
    if len(section.text) - (chunk.end - chunk.start) < NEAR_CHARS:
        parts = [
            *(_neighbour(each) for each in near if each.index < section.index),
            *parts,
            *(_neighbour(each) for each in near if each.index > section.index),
        ]
    return Evidence(source, tuple(parts), section.index, section.page)


def _neighbour(section: Section) -> Part:
    text, _ = _cut(section.text, 0, min(len(section.text), AROUND_CHARS))
    return Part(_heading(section), text_html(text))


def _heading(section: Section) -> str:
    return section.heading_path[-1] if section.heading_path else ""


def _cut(text: str, first: int, last: int) -> tuple[str, int]:
    """The text between whole words, with … where it goes on, and by how much its start moved."""
    before = after = ""
    if first > 0:
        blank = text.find(" ", first, first + 40)
        first, before = (blank + 1 if blank >= 0 else first), "… "
    if last < len(text):
        blank = text.rfind(" ", max(first, last - 40), last)
        last, after = (blank if blank >= 0 else last), " …"
    return before + text[first:last] + after, first - len(before)


# ── Text as people read it ───────────────────────────────────────────────────────────────────


def text_html(text: str, marked: Span | None = None) -> Markup:
    """A section's text: its tables as tables, its entries as a list, the passage marked."""
    lines = [Span(line.start(), line.end()) for line in LINE.finditer(text)]
    parts = []
    for kind, block in _blocks(text, lines):
        if kind == "table":
            parts.append(_table(text, block, marked))
        elif kind == "list":
            entries = [_entry(text, line, marked) for line in block]
            parts.append(Markup("<ul>{}</ul>").format(Markup("").join(entries)))
        else:
            shown = _marked(text, Span(block[0].start, block[-1].end), marked)
            parts.append(Markup("<p>{}</p>").format(shown))
    return Markup("\n").join(parts)


def _blocks(text: str, lines: Sequence[Span]) -> Iterator[tuple[str, list[Span]]]:
    """Runs of lines of one kind; an empty line begins a new paragraph."""
    block: list[Span] = []
    kind = ""
    for line in lines:
        found = _kind(text[line.start : line.end])
        gap = bool(block) and found == "text" and text.count("\n", block[-1].end, line.start) > 1
        if block and (found != kind or gap):
            yield kind, block
            block = []
        kind = found
        block.append(line)
    if block:
        yield kind, block


def _kind(line: str) -> str:
    stripped = line.strip()
    if len(stripped) > 1 and stripped[0] == stripped[-1] == "|":
        return "table"
    return "list" if ENTRY.match(line) else "text"


def _entry(text: str, line: Span, marked: Span | None) -> Markup:
    sign = ENTRY.match(text, line.start)
    start = sign.end() if sign else line.start
    return Markup("<li>{}</li>").format(_marked(text, Span(start, line.end), marked))


def _table(text: str, block: Sequence[Span], marked: Span | None) -> Markup:
    rows = []
    has_head = len(block) > 1 and TABLE_RULE.fullmatch(text, block[1].start, block[1].end)
    for at, line in enumerate(block):
        if TABLE_RULE.fullmatch(text, line.start, line.end):
            continue
        tag = Markup("th" if has_head and at == 0 else "td")
        cells = _cells(text[line.start : line.end])
        row = Markup("").join(Markup("<{0}>{1}</{0}>").format(tag, cell) for cell in cells)
        is_marked = marked is not None and line.start < marked.end and marked.start < line.end
        style = Markup(' class="is-marked"') if is_marked and tag == "td" else ""
        rows.append(Markup("<tr{}>{}</tr>").format(style, row))
    return Markup('<div class="table"><table>{}</table></div>').format(Markup("").join(rows))


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", inner)]


def _marked(text: str, span: Span, marked: Span | None) -> Markup:
    if marked is None or marked.end <= span.start or span.end <= marked.start:
        return escape(text[span.start : span.end])
    start, end = max(span.start, marked.start), min(span.end, marked.end)
    return Markup("{}<mark>{}</mark>{}").format(
        text[span.start : start], text[start:end], text[end : span.end]
    )

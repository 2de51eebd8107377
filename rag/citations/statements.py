"""What each `[n]` of a text stands for: the one reader of cited statements.

The text is in the canonical spelling. Everybody who asks which words carry a number (summaries,
verdicts, the page, recall) asks here, so that no two readers disagree.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rag.citations.clauses import Clause, limits, parts_of, states_something
from rag.citations.markers import find_markers
from rag.citations.scanner import Marker
from rag.language.languages import phrases
from rag.language.lazy_patterns import memoised
from rag.language.sentences import CELL, ENTRY, LineKind, Span, leads_in, read_sentences, trimmed


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, list entry, table row or block of code, whole and with its markers."""

    start: int
    end: int
    kind: LineKind
    lead_in: Span | None  # of a list's entry its sentence, of a table's row its head
    parts: tuple[Clause, ...]
    states: bool  # whether it says anything that a source could carry

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(n for part in self.parts for n in part.numbers))


def read_statements(text: str) -> list[Statement]:
    """All statements in order; every marker beside words is in a part of one of them."""
    return list(_read(text))


@memoised
def _read(text: str) -> tuple[Statement, ...]:
    units = _with_entries(_joined(_units(text)))
    results: list[Statement] = []
    for unit, lead_in, parts in zip(units, _lead_ins(units), _parts(text, units), strict=True):
        cites, kind = bool(unit.markers), unit.kind
        states = (unit.is_prose or kind == "row") and (
            (cites and lead_in is not None) or states_something(unit.bare, cites=cites)
        )
        kind = "row" if kind == "head" else kind
        results.append(Statement(unit.start, unit.end, kind, lead_in, parts, states))
    return tuple(results)


# ── Units ────────────────────────────────────────────────────────────────────────────────────

_BARS = re.compile(r"[ \t|]*")
_BOLD = re.compile(r"[ \t>]*(?:\*\*|__)[^*_]+(?:\*\*|__)[:：]?$")
_WORD = re.compile(r"[^\W_]")


@dataclass(frozen=True, slots=True)
class _StatementDraft:
    """A statement while it is put together."""

    text: str  # that it stands in
    start: int
    end: int
    kind: LineKind
    markers: tuple[Marker, ...] = ()
    entries: tuple[Span, ...] = ()  # what the markers of a lead-in stand for
    begins: bool = False  # its line

    @property
    def is_prose(self) -> bool:
        return self.kind in ("sentence", "entry")

    @property
    def words(self) -> str:
        return self.text[self.start : self.end]

    @property
    def bare(self) -> str:
        """Its words without the markers."""
        edges = [self.start, *(edge for m in self.markers for edge in (m.start, m.end)), self.end]
        kept = (self.text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True))
        return "".join(map(str.rstrip, kept)).strip()


def _units(text: str) -> Iterator[_StatementDraft]:
    markers = find_markers(text)
    position = 0
    for sentence in read_sentences(text):
        first = position
        while position < len(markers) and markers[position].start < sentence.end:
            position += 1
        inside = tuple(markers[first:position])
        start, end, kind = sentence.start, sentence.end, sentence.kind
        if kind == "sentence" and sentence.begins and _BOLD.match(text, start, end):
            kind = "heading"
        yield _StatementDraft(text, start, end, kind, inside, begins=sentence.begins)


def _joined(units: Iterable[_StatementDraft]) -> list[_StatementDraft]:
    """Markers on their own, and sentences that limit the one before, belong to that."""
    results: list[_StatementDraft] = []
    for unit in units:
        if results:
            results[-1], unit = _handed_on(results[-1], unit)
        if results and _belongs(results[-1], unit):
            markers = results[-1].markers + unit.markers
            results[-1] = replace(results[-1], end=unit.end, markers=markers)
        else:
            results.append(unit)
    return results


def _handed_on(
    before: _StatementDraft, unit: _StatementDraft
) -> tuple[_StatementDraft, _StatementDraft]:
    """Where a marker begins a sentence, one behind its stop begins the next: "[1] A. [2] B."."""
    text, markers = unit.text, before.markers
    position, end = len(markers), before.end
    opens = position > 1 and not _WORD.search(text, before.start, markers[0].start)
    if opens and "\n" not in text[end : unit.start]:
        while position and not text[markers[position - 1].end : end].strip():
            position -= 1
            end = markers[position].start
    if not 0 < position < len(markers):
        return before, unit
    end = before.start + len(text[before.start : end].rstrip())
    begun = replace(unit, start=markers[position].start, markers=markers[position:] + unit.markers)
    return replace(before, end=end, markers=markers[:position]), begun


def _belongs(before: _StatementDraft, unit: _StatementDraft) -> bool:
    if before.kind in ("code", "rule") or not unit.is_prose:
        return before.kind == unit.kind == "code"
    if unit.markers and not _WORD.search(unit.bare):
        return True
    is_beside = before.is_prose and "\n" not in unit.text[before.end : unit.start]
    can_be_limited = is_beside and bool(before.markers)
    return can_be_limited and limits(unit.words, cites=bool(unit.markers))


# ── Lists and tables ─────────────────────────────────────────────────────────────────────────

_FOLLOWING = re.compile(rf"\b(?:{phrases('following')})\b", re.IGNORECASE)


def _with_entries(units: Iterable[_StatementDraft]) -> list[_StatementDraft]:
    """A lead-in with markers and the entries without any that follow it are one statement."""
    results: list[_StatementDraft] = []
    for unit in units:
        last = results[-1] if results else unit
        asks_for_any = last.kind == "sentence" and last.markers and leads_in(last.bare)
        if unit.kind == "entry" and not unit.markers and (last.entries or asks_for_any):
            entries = (*last.entries, Span(unit.start, unit.end))
            results[-1] = replace(last, end=unit.end, entries=entries)
        else:
            results.append(unit)
    return results


def _lead_ins(units: Sequence[_StatementDraft]) -> Iterator[Span | None]:
    """For each unit the sentence that leads its list in, or the head of its table."""
    lead: Span | None = None  # what stands before the list or table
    head: Span | None = None
    nested: list[tuple[int, Span]] = []  # entries that lead in deeper ones: indent, span
    for unit in units:
        span = Span(unit.start, unit.end)
        if unit.kind == "entry":
            indent = unit.start - unit.text.rfind("\n", 0, unit.start)
            while nested and nested[-1][0] >= indent and unit.begins:
                nested.pop()
            yield nested[-1][1] if nested else lead
            if leads_in(unit.bare):
                nested.append((indent, span))
            continue
        nested.clear()
        yield head if unit.kind == "row" else None
        if unit.kind == "head":
            head = Span(lead.start if lead else unit.start, unit.end)
        elif unit.kind not in ("row", "rule"):
            leads = unit.kind == "sentence" and (
                leads_in(unit.bare) or _FOLLOWING.search(unit.bare)
            )
            lead, head = (span if leads or unit.kind == "heading" else None), None


# ── Parts ────────────────────────────────────────────────────────────────────────────────────


def _parts(text: str, units: Sequence[_StatementDraft]) -> Iterator[tuple[Clause, ...]]:
    heads: dict[int, tuple[Marker, ...]] = {}  # markers in a table's head, by column
    for unit in units:
        if unit.kind in ("row", "head"):
            cells = [_cell(unit, *match.span()) for match in CELL.finditer(unit.words)]
            yield tuple(_of_cells(unit, cells, {} if unit.kind == "head" else heads))
            if unit.kind == "head":
                heads = {column: cell.markers for column, cell in enumerate(cells)}
            continue
        heads = heads if unit.kind == "rule" else {}
        if unit.entries:
            yield tuple(Clause(unit.markers, *_body(text, *span)) for span in unit.entries)
        else:
            yield parts_of(text, *_body(text, unit.start, unit.end), unit.markers)


def _body(text: str, start: int, end: int) -> Span:
    """Without the bullet of an entry."""
    match = ENTRY.match(text, start, end)
    return Span(match.end() if match else start, end)


def _cell(row: _StatementDraft, start: int, end: int) -> _StatementDraft:
    start, end = row.start + start, row.start + end
    markers = tuple(marker for marker in row.markers if start <= marker.start < end)
    return replace(row, start=start, end=end, markers=markers)


def _of_cells(
    row: _StatementDraft, cells: Sequence[_StatementDraft], heads: Mapping[int, tuple[Marker, ...]]
) -> Iterator[Clause]:
    """Markers stand for all cells since the last ones.

    Those of the first cell for the others: as the only markers of their row, or alone in theirs.
    """
    label = cells[0] if cells and row.kind != "head" else replace(row, markers=())
    is_alone = len(label.markers) == len(row.markers) or not _WORD.search(label.bare)
    of_row = label.markers if is_alone else ()
    free = row.start
    for column, cell in enumerate(cells):
        markers = heads.get(column) or of_row
        has_words = bool(_WORD.search(cell.bare))
        if cell.markers:
            bars = _BARS.match(row.text, free, cell.start)
            begin = bars.end() if bars else free
            yield from parts_of(row.text, begin, cell.end, cell.markers)
        elif markers and has_words:
            yield Clause(markers, *(trimmed(row.text, cell.start, cell.end) or ()))
        else:
            continue
        free = cell.end

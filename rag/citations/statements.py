"""What each `[n]` of a text stands for: the one reader of cited statements.

The text is in the canonical spelling. Everybody who asks which words carry a number (summaries,
verdicts, the page, recall) asks here, so that no two readers disagree.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from rag.citations.clauses import Part, parts_of
from rag.citations.leaning import leans, limits, states_something
from rag.citations.markers import find_markers
from rag.citations.scanner import Marker
from rag.text.layout import CELL, ENTRY, Kind, asks, leads_in
from rag.text.remembered import remembered
from rag.text.sentences import Span, read_sentences, trimmed


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, list entry, table row or block of code, whole and with its markers.

    To quote it take `quotation`: an entry alone misses its lead-in, a reply its question.
    """

    start: int
    end: int
    quote_start: int  # where a quotation begins that stands alone
    kind: Kind
    lead_in: Span | None  # of a list's entry its sentence, of a table's row its head
    parts: tuple[Part, ...]
    states: bool  # whether it says anything that a source could carry
    leans: bool  # only the question that the whole text answers would make it stand alone

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(n for part in self.parts for n in part.numbers))


@dataclass(frozen=True, slots=True)
class _Unit:
    """A statement while it is put together."""

    start: int
    end: int
    kind: Kind
    markers: tuple[Marker, ...] = ()
    entries: tuple[Span, ...] = ()  # what the markers of a lead-in stand for
    begins: bool = False  # its line

    @property
    def is_prose(self) -> bool:
        return self.kind in ("sentence", "entry")


def quotation(text: str, statement: Statement) -> str:
    """The statement as it can be quoted alone: with its lead-in, and what it leans on."""
    own = text[statement.quote_start : statement.end]
    if statement.lead_in is None or statement.lead_in[1] > statement.quote_start:
        return own
    return f"{text[slice(*statement.lead_in)]}\n{own}"


def read_statements(text: str) -> list[Statement]:
    """All statements in order; every marker beside words is in a part of one of them."""
    return list(_read(text))


@remembered
def _read(text: str) -> tuple[Statement, ...]:
    units = _with_entries(text, _joined(text, _opened(text, _units(text))))
    found: list[Statement] = []
    leaning: dict[int, bool] = {}  # by where a quotation begins
    for at, (unit, lead_in, parts) in enumerate(
        zip(units, _lead_ins(text, units), _parts(text, units), strict=True)
    ):
        start = _quote_start(text, units, at)
        stands_first = start == unit.start and lead_in is None
        if stands_first:
            leaning[start] = unit.is_prose and leans(text[start : unit.end])
        states = _states(text, unit, alone=stands_first)
        kind: Kind = "row" if unit.kind == "head" else unit.kind
        leans_alone = lead_in is None and leaning.get(start, False)
        found.append(
            Statement(unit.start, unit.end, start, kind, lead_in, parts, states, leans_alone)
        )
    return tuple(found)


def _states(text: str, unit: _Unit, *, alone: bool) -> bool:
    if unit.kind not in ("sentence", "entry", "row"):
        return False
    bare = _bare(text, unit)
    return (bool(unit.markers) and not alone) or states_something(bare)


def _bare(text: str, unit: _Unit) -> str:
    """Its words without the markers."""
    kept: list[str] = []
    at = unit.start
    for marker in unit.markers:
        kept.append(text[at : marker.start].rstrip())
        at = marker.end
    return "".join([*kept, text[at : unit.end]]).strip()


# ── Units ────────────────────────────────────────────────────────────────────────────────────

_BOLD = re.compile(r"[ \t>]*(?:\*\*|__)[^*_]+(?:\*\*|__)[:：]?$")
_WORD = re.compile(r"[^\W_]")


def _units(text: str) -> Iterator[_Unit]:
    """The sentences of the text with their markers; a block of code is one unit."""
    markers = find_markers(text)
    at = 0
    sentences = read_sentences(text)
    for is_code, run in groupby(sentences, lambda sentence: sentence.kind == "code"):
        if is_code:
            lines = list(run)
            start = text.rfind("\n", 0, lines[0].start) + 1
            yield _Unit(start, lines[-1].end, "code", begins=True)
            continue
        for sentence in run:
            first = at
            while at < len(markers) and markers[at].start < sentence.end:
                at += 1
            is_title = sentence.begins and _BOLD.match(text, sentence.start, sentence.end)
            kind: Kind = "heading" if is_title else sentence.kind
            own = tuple(markers[first:at])
            yield _Unit(sentence.start, sentence.end, kind, own, begins=sentence.begins)


def _opened(text: str, units: Iterable[_Unit]) -> list[_Unit]:
    """Where a marker begins a sentence, one behind its stop begins the next: "[1] A. [2] B."."""
    found: list[_Unit] = []
    for unit in units:
        at = _handed_on(text, found[-1], unit) if found else 0
        if at:
            last = found[-1]
            own, others = last.markers[:at], last.markers[at:]
            end = last.start + len(text[last.start : others[0].start].rstrip())
            found[-1] = replace(last, end=end, markers=own)
            unit = replace(unit, start=others[0].start, markers=others + unit.markers)
        found.append(unit)
    return found


def _handed_on(text: str, before: _Unit, unit: _Unit) -> int:
    """From which of its markers on they belong to the sentence behind it; 0 for none."""
    markers = before.markers
    begins = bool(markers) and not _WORD.search(text, before.start, markers[0].start)
    if not begins or "\n" in text[before.end : unit.start]:
        return 0
    at, end = len(markers), before.end
    while at and not text[markers[at - 1].end : end].strip():
        at -= 1
        end = markers[at].start
    return at if at < len(markers) else 0


def _joined(text: str, units: Iterable[_Unit]) -> list[_Unit]:
    """Markers on their own, and sentences that limit the one before, belong to that."""
    found: list[_Unit] = []
    for unit in units:
        if found and _belongs(text, found[-1], unit):
            last = found.pop()
            unit = replace(last, end=unit.end, markers=last.markers + unit.markers)
        found.append(unit)
    return found


def _belongs(text: str, before: _Unit, unit: _Unit) -> bool:
    if before.kind in ("code", "rule") or not unit.is_prose:
        return False
    if unit.markers and not _WORD.search(_bare(text, unit)):
        return True
    return (
        bool(before.markers)
        and before.is_prose
        and "\n" not in text[before.end : unit.start]
        and limits(text[unit.start : unit.end], cites=bool(unit.markers))
    )


# ── Lists and tables ─────────────────────────────────────────────────────────────────────────

_FOLLOWING = re.compile(r"\b(?:follow(?:s|ing)|these|such|folgende\w*)\b", re.IGNORECASE)


def _with_entries(text: str, units: Iterable[_Unit]) -> list[_Unit]:
    """A lead-in with markers and the entries without any that follow it are one statement."""
    found: list[_Unit] = []
    for unit in units:
        last = found[-1] if found else unit
        is_led_in = unit.kind == "entry" and not unit.markers
        if is_led_in and (last.entries or _asks_for_entries(text, last)):
            entries = (*last.entries, Span(unit.start, unit.end))
            found[-1] = replace(last, end=unit.end, entries=entries)
        else:
            found.append(unit)
    return found


def _asks_for_entries(text: str, unit: _Unit) -> bool:
    is_cited = unit.kind == "sentence" and bool(unit.markers)
    return is_cited and leads_in(_bare(text, unit))


def _lead_ins(text: str, units: Sequence[_Unit]) -> Iterator[Span | None]:
    """For each unit the sentence that leads its list in, or the head of its table."""
    lead: Span | None = None  # what stands before the list or table
    head: Span | None = None
    nested: list[tuple[int, Span]] = []  # entries that lead in deeper ones: indent, span
    for unit in units:
        span = Span(unit.start, unit.end)
        if unit.kind == "entry":
            indent = unit.start - text.rfind("\n", 0, unit.start)
            while nested and nested[-1][0] >= indent and unit.begins:
                nested.pop()
            yield nested[-1][1] if nested else lead
            if leads_in(_bare(text, unit)):
                nested.append((indent, span))
            continue
        nested.clear()
        if unit.kind == "head":
            head = Span(lead.start if lead else unit.start, unit.end)
            yield None
        elif unit.kind in ("row", "rule"):
            yield head if unit.kind == "row" else None
        else:
            yield None
            lead, head = (span if _leads_on(text, unit) else None), None


def _leads_on(text: str, unit: _Unit) -> bool:
    bare = _bare(text, unit)
    return unit.kind == "heading" or (
        unit.kind == "sentence" and (leads_in(bare) or bool(_FOLLOWING.search(bare)))
    )


# ── Parts ────────────────────────────────────────────────────────────────────────────────────


def _parts(text: str, units: Sequence[_Unit]) -> Iterator[tuple[Part, ...]]:
    heads: dict[int, tuple[int, ...]] = {}  # numbers in a table's head, by column
    for unit in units:
        if unit.kind in ("row", "head"):
            cells = _cells(text, unit)
            is_head = unit.kind == "head"
            yield _of_cells(text, unit.start, cells, {} if is_head else heads)
            if is_head:
                heads = {column: _numbers(cell.markers) for column, cell in enumerate(cells)}
            continue
        heads = heads if unit.kind == "rule" else {}
        if unit.entries:
            numbers = _numbers(unit.markers)
            yield tuple(Part(numbers, *_without_bullet(text, *span)) for span in unit.entries)
        else:
            yield parts_of(text, *_without_bullet(text, unit.start, unit.end), unit.markers)


def _numbers(markers: Sequence[Marker]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(n for marker in markers for n in marker.numbers))


def _without_bullet(text: str, start: int, end: int) -> Span:
    found = ENTRY.match(text, start, end)
    return Span(found.end() if found else start, end)


def _cells(text: str, row: _Unit) -> list[_Unit]:
    """The cells of a row, each with its markers."""
    spans = [found.span() for found in CELL.finditer(text, row.start, row.end)]
    within = [tuple(m for m in row.markers if start <= m.start < end) for start, end in spans]
    return [_Unit(*span, row.kind, own) for span, own in zip(spans, within, strict=True)]


def _of_cells(
    text: str, free: int, cells: Sequence[_Unit], heads: Mapping[int, tuple[int, ...]]
) -> tuple[Part, ...]:
    """A cell's markers stand for the cell, those of a cell without words for what is before it."""
    found: list[Part] = []
    of_row = _of_row(text, cells)
    for column, cell in enumerate(cells):
        has_words = bool(_WORD.search(_bare(text, cell)))
        numbers = heads.get(column) or of_row
        if cell.markers:
            start = cell.start if has_words else free
            found.extend(parts_of(text, start, cell.end, cell.markers))
        elif numbers and has_words:
            found.append(Part(numbers, *(trimmed(text, cell.start, cell.end) or ())))
        else:
            continue
        free = cell.end
    return tuple(found)


def _of_row(text: str, cells: Sequence[_Unit]) -> tuple[int, ...]:
    """What the first cell says of the others: with the only markers of its row, or nothing else."""
    if not cells or cells[0].kind == "head":
        return ()
    label, *others = cells
    is_alone = not any(cell.markers for cell in others)
    return _numbers(label.markers) if is_alone or not _WORD.search(_bare(text, label)) else ()


# ── Quotations ───────────────────────────────────────────────────────────────────────────────

_FARTHEST = 3  # sentences that a quotation takes in before its own


def _quote_start(text: str, units: Sequence[_Unit], at: int) -> int:
    """Where a quotation of a unit begins: before it where it answers or points back."""
    first = at
    while first and at - first < _FARTHEST and _needs(text, units[first - 1], units[first]):
        first -= 1
    return units[first].start


def _needs(text: str, before: _Unit, unit: _Unit) -> bool:
    if not unit.is_prose or (unit.kind == "entry" and unit.begins):
        return False
    if asks(_bare(text, before)):
        return True
    return before.is_prose and leans(text[unit.start : unit.end])

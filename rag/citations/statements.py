"""Which words each `[n]` of a text stands for: the one reader of cited statements.

The text has canonical spelling. Summaries, verdicts, the page and recall all ask here which words
carry a number, so that they never disagree.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from rag.citations.grammar import Marker
from rag.citations.markers import find_markers
from rag.language.lazy_patterns import re
from rag.language.sentences import CELL, ENTRY, LineKind, Span, leads_in, read_sentences, trimmed
from rag.language.words import memoised, phrases


@dataclass(frozen=True, slots=True)
class Clause:
    """The words `text[start:end]` that a group of markers stands for.

    A marker at either end is not among them; one in the middle is ("meets the norm [7], but only
    indoors"). No two parts of a statement share a word.
    """

    markers: tuple[Marker, ...]
    start: int
    end: int

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(n for marker in self.markers for n in marker.numbers))


class _Group(NamedTuple):
    """Markers with nothing between them but blanks, commas or "and"."""

    markers: tuple[Marker, ...]
    start: int
    end: int


_AND = phrases("ands")
_BETWEEN = re.compile(rf"[\s,;&/*_()]*(?:{_AND}|{phrases('ors')})?[\s,;&/*_()]*")
_BREAK = rf"(?:^|[,;:.!?—–(]|\b(?:{phrases('joins')})\b)"
# Words after which a marker opens its clause: "According to [1], …", "as source [2] says, …".
_SOURCE = rf"(?:(?:{phrases('articles')})\s+)?(?:{phrases('cited_things')})?"
_INTRODUCES = re.compile(
    rf"{_BREAK}\s*(?:(?:{phrases('introduces')})\s+)?{_SOURCE}\s*[*_(\"]*$", re.IGNORECASE
)
_REPORTS = re.compile(rf"[*_)\"\s]*(?:{phrases('reports')})\b", re.IGNORECASE)
_CLAUSE_END = re.compile(
    rf"[,;:—–]\s|\s(?:{phrases('joins')}|{phrases('concedes')})\s", re.IGNORECASE
)
# Behind a marker that stands within its clause: "The hose [1] is 3 m long, the tube [2] …".
_JOINS = re.compile(
    rf"\s+(?:{phrases('joins')}|{_AND}|{phrases('ors')}|{phrases('concedes')})\b", re.IGNORECASE
)
_NEXT_CLAUSE = re.compile(rf"[;—–]\s|[,:،]\s|[，；：、]|\s(?:{phrases('joins')})\s", re.IGNORECASE)
_WORDS = re.compile(r"[^\W_]+")
_LEADING = re.compile(rf"[\s,;:.)*_—–]*(?:(?:{_AND})\s+)?")


def parts_of(text: str, start: int, end: int, markers: Sequence[Marker]) -> tuple[Clause, ...]:
    """Return the parts of the sentence `text[start:end]`, which holds these markers."""
    groups = _grouped(text, markers)
    if len(groups) < 2:
        return _with_words(
            [_clause_between(text, group.markers, start, end, groups) for group in groups]
        )
    return _with_words(_shared(text, start, end, groups))


def _grouped(text: str, markers: Sequence[Marker]) -> list[_Group]:
    groups: list[_Group] = []
    for marker in markers:
        group = _Group((marker,), marker.start, marker.end)
        if groups and _BETWEEN.fullmatch(text, groups[-1].end, marker.start):
            first = groups.pop()
            group = _Group((*first.markers, marker), first.start, marker.end)
        groups.append(group)
    return groups


def _shared(text: str, start: int, end: int, groups: Sequence[_Group]) -> list[Clause]:
    """Divide a sentence among several groups: each gets the clause it opens, else the one it
    closes.
    """
    results: list[Clause] = []
    taken = start  # up to here the words belong to a part
    opened: _Group | None = None
    for position, group in enumerate(groups):
        following = groups[position + 1].start if position + 1 < len(groups) else end
        opening = _opens(text, taken, group, following, led=opened is not None or not position)
        if opened is not None:
            stop = opening if opening is not None else _divided(text, opened.end, group.start)
            results.append(_clause_between(text, opened.markers, opened.end, stop, groups))
            taken = stop
        if opening is not None:
            opened, taken = group, group.end
        elif opened is not None and not says_enough(text[taken : group.start]):
            # The marker again at the end of its clause: "According to [1], … [1]".
            results[-1] = replace(results[-1], markers=results[-1].markers + group.markers)
            opened, taken = None, group.end
        else:
            stop = _end_of_clause(text, group, following) if following < end else group.start
            results.append(_clause_between(text, group.markers, taken, stop, groups))
            opened, taken = None, max(stop, group.end)
    if opened is not None:  # what stands after the last group belongs to it
        results.append(_clause_between(text, opened.markers, opened.end, end, groups))
    elif _WORDS.search(text, groups[-1].end, end):
        results[-1] = _clause_between(text, results[-1].markers, results[-1].start, end, groups)
    return results


def _opens(text: str, taken: int, group: _Group, following: int, *, led: bool) -> int | None:
    """Return where the clause begins that this group opens; None if it closes one."""
    before = text[taken : group.start]
    lead = _INTRODUCES.search(before)
    after = text[group.end : following]
    if not lead or not (says_enough(after) or _REPORTS.match(after)):
        return None
    words = _WORDS.search(lead.group())
    if words or _REPORTS.match(after) or (led and not _WORDS.search(before)):
        opening = taken + lead.start()
        return opening + len(lead.group()) - len(lead.group().lstrip(",;:.!?—–( "))
    return None


def _end_of_clause(text: str, group: _Group, following: int) -> int:
    """Return where a group's clause ends: behind the group only if another clause begins there."""
    if not text[group.end : following][:1].isspace() or _JOINS.match(text, group.end):
        return group.start
    match = _NEXT_CLAUSE.search(text, group.end, following)
    if not match or not _WORDS.search(text, group.end, match.start()):
        return group.start
    return match.start() if says_enough(text[match.end() : following]) else group.start


def _divided(text: str, start: int, end: int) -> int:
    """Return where an opened clause ends and a closed one begins, between two groups."""
    ends = [
        match.start()
        for match in _CLAUSE_END.finditer(text, start, end)
        if says_enough(text[start : match.start()]) and says_enough(text[match.end() : end])
    ]
    return ends[-1] if ends else end


def _clause_between(
    text: str, markers: tuple[Marker, ...], start: int, end: int, groups: Sequence[_Group]
) -> Clause:
    """Return a clause without the blanks, commas and markers at its ends."""
    first, behind = (
        bisect_left(groups, position, key=lambda group: group.start) for position in (start, end)
    )
    inside = groups[first:behind]
    for group in inside:
        if group.end > end or _WORDS.search(text, start, group.start):
            break
        start = group.end
    for group in reversed(inside):
        if group.start <= start or _WORDS.search(text, group.end, end):
            break
        end = group.start
    leading = _LEADING.match(text, start, end)
    start = leading.end() if leading else start
    return Clause(markers, start, max(start, start + len(text[start:end].rstrip())))


def _with_words(parts: Sequence[Clause]) -> tuple[Clause, ...]:
    """Drop parts without words; their markers go to a neighbouring part."""
    clauses: list[Clause] = []
    waiting: tuple[Marker, ...] = ()
    for part in parts:
        if part.start < part.end:
            clauses.append(replace(part, markers=waiting + part.markers))
            waiting = ()
        elif clauses:
            clauses[-1] = replace(clauses[-1], markers=clauses[-1].markers + part.markers)
        else:
            waiting += part.markers
    return tuple(clauses)


def says_enough(clause: str, enough: int = 2) -> bool:
    """Whether a clause has words enough to state anything; each CJK character counts as one."""
    words = _WORDS.finditer(clause)
    counted = accumulate(len(word[0]) if word[0][0] >= "\u2e80" else 1 for word in words)
    return any(count >= enough for count in counted)


# Words that point back; a sentence that begins with one is quoted with the sentence before it.
_POINTS_BACK = re.compile(rf"(?:{phrases('points_back')})\b", re.IGNORECASE)
_CJK_PRONOUN = re.compile("[它他她这這那此该該其]|不|否|是的|それ|これ|いいえ|はい")
_LIMITS = re.compile(rf"(?:{phrases('narrows')})\b", re.IGNORECASE)
# What takes back the sentence before it, whatever that cites.
_TAKES_BACK = re.compile(rf"(?:{phrases('takes_back')})\b", re.IGNORECASE)
_ELIDES = re.compile(
    rf"\b(?:{phrases('elides')})[\s.!*_]*(?:\[\d[\d,\s]*\][\s.!]*)*$", re.IGNORECASE
)
_MARKUP = re.compile(r"^[\s>*_\"'“„(«]*(?:\[\d[\d,\s]*\][\s:,]*)*")  # at the beginning of any
_FEW = 4  # words; with fewer it is part of what it follows


def depends(sentence: str) -> bool:
    """Whether a sentence is only understood together with the one before it."""
    body = _MARKUP.sub("", sentence, count=1)
    points_back = _POINTS_BACK.match(body) or _CJK_PRONOUN.match(body) or _ELIDES.search(body)
    return bool(points_back or not says_enough(body, _FEW))


def limits(sentence: str, *, cites: bool) -> bool:
    """Whether a sentence withdraws or narrows the one before it, so that both are quoted."""
    body = _MARKUP.sub("", sentence, count=1)
    return bool(_TAKES_BACK.match(body) or (not cites and _LIMITS.match(body)))


# ── Sentences that state nothing ─────────────────────────────────────────────────────────────

_MANNERS = re.compile(rf"(?:{phrases('manners')})\b", re.IGNORECASE)
_DECLINES = re.compile(phrases("declines"), re.IGNORECASE)


def states_something(sentence: str, *, cites: bool) -> bool:
    """Whether a sentence states anything that a source could support, without its markers.

    A sentence that cites states something, however it begins: `If you need longer, ask for leave
    [2]`.
    """
    bare = sentence.strip()
    if leads_in(bare):
        return False
    bullet = ENTRY.match(bare)
    plain = bare[bullet.end() :] if bullet else bare
    if (not cites and _MANNERS.match(plain)) or _DECLINES.search(plain[:400]):
        return False
    return says_enough(plain)


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
    """Return all statements in order; every marker beside words is in one of their parts."""
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
    """A statement while it is being put together."""

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
        """The words without the markers."""
        edges = [self.start, *(edge for m in self.markers for edge in (m.start, m.end)), self.end]
        pieces = (self.text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True))
        return "".join(map(str.rstrip, pieces)).strip()


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
    """Join markers on their own, and sentences that limit the one before, to that one."""
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
    """Move a marker behind a stop to the next sentence, if markers lead: "[1] A. [2] B."."""
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
    """Join a lead-in with markers and the following entries without any into one statement."""
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
    """Yield for each unit the sentence that leads its list in, or its table's header."""
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
    """Return an entry without its bullet."""
    match = ENTRY.match(text, start, end)
    return Span(match.end() if match else start, end)


def _cell(row: _StatementDraft, start: int, end: int) -> _StatementDraft:
    start, end = row.start + start, row.start + end
    markers = tuple(marker for marker in row.markers if start <= marker.start < end)
    return replace(row, start=start, end=end, markers=markers)


def _of_cells(
    row: _StatementDraft, cells: Sequence[_StatementDraft], heads: Mapping[int, tuple[Marker, ...]]
) -> Iterator[Clause]:
    """Yield the cells that each marker of a row stands for: those since the last marker.

    A row's only markers, or those alone in the first cell, stand for the other cells.
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

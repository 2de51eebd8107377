"""Which words of a sentence its markers stand for, and which sentences cannot stand alone."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from rag.citations.scanner import Marker
from rag.language.languages import phrases
from rag.language.lazy_patterns import re
from rag.language.sentences import ENTRY, leads_in


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
_WORD = re.compile(r"[^\W_]+")
_LEADING = re.compile(rf"[\s,;:.)*_—–]*(?:(?:{_AND})\s+)?")


def parts_of(text: str, start: int, end: int, markers: Sequence[Marker]) -> tuple[Clause, ...]:
    """The parts of the sentence `text[start:end]`, which holds these markers."""
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
    """Several groups share a sentence: each has the clause that it opens, else that it closes."""
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
            stop = _goes_on(text, group, following) if following < end else group.start
            results.append(_clause_between(text, group.markers, taken, stop, groups))
            opened, taken = None, max(stop, group.end)
    if opened is not None:  # what stands after the last group belongs to it
        results.append(_clause_between(text, opened.markers, opened.end, end, groups))
    elif _WORD.search(text, groups[-1].end, end):
        results[-1] = _clause_between(text, results[-1].markers, results[-1].start, end, groups)
    return results


def _opens(text: str, taken: int, group: _Group, following: int, *, led: bool) -> int | None:
    """Where the clause begins that this group opens; None if it closes one."""
    before = text[taken : group.start]
    lead = _INTRODUCES.search(before)
    after = text[group.end : following]
    if not lead or not (says_enough(after) or _REPORTS.match(after)):
        return None
    words = _WORD.search(lead.group())
    if words or _REPORTS.match(after) or (led and not _WORD.search(before)):
        opening = taken + lead.start()
        return opening + len(lead.group()) - len(lead.group().lstrip(",;:.!?—–( "))
    return None


def _goes_on(text: str, group: _Group, following: int) -> int:
    """Where the clause ends that a group stands in: behind it only where another begins there."""
    if not text[group.end : following][:1].isspace() or _JOINS.match(text, group.end):
        return group.start
    match = _NEXT_CLAUSE.search(text, group.end, following)
    if not match or not _WORD.search(text, group.end, match.start()):
        return group.start
    return match.start() if says_enough(text[match.end() : following]) else group.start


def _divided(text: str, start: int, end: int) -> int:
    """Where a clause that was opened ends and one that is closed begins, between two groups."""
    results = [
        m for m in _CLAUSE_END.finditer(text, start, end) if says_enough(text[start : m.start()])
    ]
    fit = [m for m in results if says_enough(text[m.end() : end])]
    return fit[-1].start() if fit else end


def _clause_between(
    text: str, markers: tuple[Marker, ...], start: int, end: int, groups: Sequence[_Group]
) -> Clause:
    """Without the blanks, commas and markers at either end."""
    first, behind = (
        bisect_left(groups, position, key=lambda group: group.start) for position in (start, end)
    )
    inside = groups[first:behind]
    for group in inside:
        if group.end > end or _WORD.search(text, start, group.start):
            break
        start = group.end
    for group in reversed(inside):
        if group.start <= start or _WORD.search(text, group.end, end):
            break
        end = group.start
    leading = _LEADING.match(text, start, end)
    start = leading.end() if leading else start
    return Clause(markers, start, max(start, start + len(text[start:end].rstrip())))


def _with_words(parts: Sequence[Clause]) -> tuple[Clause, ...]:
    """Those with words, so that each marker is of one; those of others go to a neighbour."""
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
    """Whether there are words enough to state anything; each CJK character counts as one."""
    words = _WORD.finditer(clause)
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
    """Whether a sentence only says what it says after the one before it."""
    body = _MARKUP.sub("", sentence, count=1)
    points_back = _POINTS_BACK.match(body) or _CJK_PRONOUN.match(body) or _ELIDES.search(body)
    return bool(points_back or not says_enough(body, _FEW))


def limits(sentence: str, *, cites: bool) -> bool:
    """Whether it takes back or narrows the sentence before it, so that both are quoted."""
    body = _MARKUP.sub("", sentence, count=1)
    return bool(_TAKES_BACK.match(body) or (not cites and _LIMITS.match(body)))


# ── Sentences that state nothing ─────────────────────────────────────────────────────────────

_MANNERS = re.compile(rf"(?:{phrases('manners')})\b", re.IGNORECASE)
_DECLINES = re.compile(phrases("declines"), re.IGNORECASE)


def states_something(sentence: str, *, cites: bool) -> bool:
    """Whether a sentence says anything that a source could carry; its markers are taken out.

    Who cites states something, however it begins: `If you need longer, ask for leave [2]`.
    """
    bare = sentence.strip()
    if leads_in(bare):
        return False
    bullet = ENTRY.match(bare)
    plain = bare[bullet.end() :] if bullet else bare
    if (not cites and _MANNERS.match(plain)) or _DECLINES.search(plain[:400]):
        return False
    return says_enough(plain)

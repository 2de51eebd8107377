"""The sentences of an answer: which of them state something, and what each marker stands for."""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag.citations.evidence import read
from rag.citations.grammar import Marker
from rag.citations.markers import find_markers
from rag.text.sentences import Span, split_sentences

_FENCE = re.compile(r"[ \t]*(?:`{3,}(?![^\n]*`)|~{3,})")
_RULE = re.compile(r"\|?[\s:|-]*-{2,}[\s:|-]*\|?$")
_HEADING = re.compile(r"#{1,6}\s|(?:\*\*|__)[^*_]+(?:\*\*|__):?$")
_LEADS_IN = re.compile(r"[:：?？][\"'”’*_)\]」』]*$")
_ENTRY = re.compile(r"(?:[-*+•◦‣–]|\(?\d{1,3}[.)]|\(?[A-Za-z][.)])\s+")
_MANNERS = re.compile(
    r"(?:hi|hello|hey|sure|certainly|of course|thanks|thank you|you[’']re welcome|glad to|happy to|"
    r"great question|good question|let me know|please let me|i hope|feel free|if you have any|"
    r"if you need|here (?:is|are|[’']s)|hallo|gern|danke|wenn sie|bitte)\b",
    re.IGNORECASE,
)
_DECLINES = re.compile(
    r"\b(?:documents?|documentation|sources?|context|manuals?|passages?|texts?|excerpts?|"
    r"information)\b.{0,40}\b(?:(?:do|does|did)(?: not|n[’']t)|cannot|never) (?:\w+ )?"
    r"(?:say|mention|contain|provide|answer|specify|state|include|cover|tell|describe|give|list|"
    r"address|discuss|explain|indicate)"
    r"|\b(?:documents?|sources?|context|manuals?|passages?) (?:\w+ ){0,3}(?:contain|provide|give|"
    r"say|have|offer|include)s? (?:no|nothing)\b"
    r"|\b(?:is|are|was|were|there[’']s) no (?:\w+ )?(?:information|mention|details?|answer)\b"
    r"|\bno (?:\w+ )?(?:information|mention|answer) (?:\w+ ){0,3}(?:is|was|in|about|on)\b"
    r"|(?:^|\W)i (?:could not|couldn[’']t|cannot|can[’']t|do not|don[’']t|was unable to) "
    r"(?:find|know|see|answer|tell|determine)\b"
    r"|\b(?:dokumente?n?|quellen?|unterlagen) (?:\w+ ){0,6}(?:nichts?|keine?)\b",
    re.IGNORECASE,
)
_ENOUGH = 2  # words with meaning, or figures


@dataclass(frozen=True, slots=True)
class Cited:
    """A marker with the words that it stands behind."""

    marker: Marker
    numbers: tuple[int, ...]  # also those of the markers right beside it
    clause: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of an answer; `text` is without its markers."""

    span: Span
    text: str
    states: bool
    cited: tuple[Cited, ...]


def read_sentences(text: str) -> list[Sentence]:
    """All sentences in order, with every marker of the text in one of them."""
    spans = split_sentences(text)
    markers = deque(find_markers(text))
    found: list[Sentence] = []
    for span, kind in zip(spans, _kinds(text, spans), strict=True):
        own = list(_taken(markers, span.end))
        bare = _without(text, span, own)
        if found and own and not read(bare).words and not read(bare).figures:
            # Markers on a line of their own belong to what stands before them.
            before = found.pop()
            own = [cited.marker for cited in before.cited] + own
            span = Span(before.span.start, span.end)
            bare = _without(text, span, own)
            kind = before.states
        states = kind and states_something(bare)
        found.append(Sentence(span, bare, states, tuple(_cited(text, span, own, bare))))
    return found


def _taken(markers: deque[Marker], end: int) -> Iterator[Marker]:
    while markers and markers[0].start < end:
        yield markers.popleft()


def _kinds(text: str, spans: Sequence[Span]) -> Iterator[bool]:
    """Whether each span is prose, a list entry or a table row; not code, rules or table heads."""
    fenced = False
    for position, span in enumerate(spans):
        line = text[span.start : span.end]
        following = spans[position + 1] if position + 1 < len(spans) else Span(0, 0)
        is_fence = bool(_FENCE.match(line))
        is_head = line.startswith("|") and _RULE.match(text[following.start : following.end])
        yield not (fenced or is_fence or is_head or _RULE.match(line))
        fenced = fenced != is_fence


def states_something(sentence: str) -> bool:
    """Whether a sentence without markers says anything that a source could carry."""
    bare = sentence.strip()
    if _HEADING.match(bare) or _LEADS_IN.search(bare[-20:]):
        return False
    plain = _ENTRY.sub("", bare, count=1)
    if _MANNERS.match(plain) or _DECLINES.search(plain[:400]):
        return False
    return _says_enough(bare)


def _without(text: str, span: Span, markers: Sequence[Marker]) -> str:
    kept: list[str] = []
    at = span.start
    for marker in markers:
        kept.append(text[at : marker.start].rstrip())
        at = marker.end
    kept.append(text[at : span.end])
    return "".join(kept).strip()


def _cited(text: str, span: Span, markers: Sequence[Marker], bare: str) -> Iterator[Cited]:
    """Each marker with its clause: the words since the marker before, if they say enough.

    Where a sentence begins with a marker ("[1] says …, [2] says …"), the words until the next.
    """
    groups = _groups(text, markers)
    leads = bool(groups) and not text[span.start : groups[0][0].start].strip()
    for position, group in enumerate(groups):
        if leads:
            start = group[-1].end
            end = groups[position + 1][0].start if position + 1 < len(groups) else span.end
        else:
            start = groups[position - 1][-1].end if position else span.start
            end = group[0].start
        clause = text[start:end].strip()
        if len(groups) == 1 or not _says_enough(clause):
            clause = bare
        numbers = tuple(dict.fromkeys(n for marker in group for n in marker.numbers))
        yield from (Cited(marker, numbers, clause) for marker in group)


def _says_enough(clause: str) -> bool:
    reading = read(clause)
    return len(reading.words) + len(reading.figures) >= _ENOUGH


def _groups(text: str, markers: Sequence[Marker]) -> list[list[Marker]]:
    """Markers with nothing but blanks, commas or "and" between them stand for the same words."""
    groups: list[list[Marker]] = []
    for marker in markers:
        between = text[groups[-1][-1].end : marker.start] if groups else ""
        if groups and between.strip(" \t,;&") in ("", "and", "und"):
            groups[-1].append(marker)
        else:
            groups.append([marker])
    return groups

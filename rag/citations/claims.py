"""Claims: which statement each `[n]` of an answer stands for."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rag.citations.features import features
from rag.citations.grammar import Marker
from rag.citations.markers import find_markers, neutralise
from rag.text.sentences import Span, split_sentences

LONGEST_CLAUSE = 600  # characters; of a longer one, what stands next to its marker
LONGEST_TOPIC = 160


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement for which a text cites these numbers."""

    text: str  # the clause in front of the marker, without markers, on one line
    numbers: tuple[int, ...]
    start: int  # of the clause, offsets into the text that the claim was found in
    end: int
    sentence: str = ""  # all of the sentence with its markers, on one line, as it can be quoted
    topic: str = ""  # what the sentence is about where it does not say so: lead-in, question, name


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of a text, on one line, with the claims in it (none where it cites nothing)."""

    text: str
    claims: tuple[Claim, ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(n for claim in self.claims for n in claim.numbers))


@dataclass(frozen=True, slots=True)
class _Group:
    """Markers next to each other: they stand for the same clause."""

    numbers: tuple[int, ...]
    start: int
    end: int


def claims(text: str) -> list[Claim]:
    """Every claim of a text, in order: a clause with the numbers behind it.

    A marker in the middle of a sentence stands for the clause before it, one after the full stop
    for the sentence before, one in a table for its cell with row and column named, one in a list
    entry for the entry, with the line that leads the list in as its topic.
    """
    found = (claim for statement in statements(text) for claim in statement.claims)
    return [claim for claim in found if claim.text]


def statements(text: str) -> list[Statement]:
    """The sentences of a text in order, headings, rules and code left out.

    Numbers that stand for nothing, such as those in front of all text, are in a claim without
    text: every number of the text is in some claim.
    """
    return list(_Reader(text).read())


class _Reader:
    """Walks over the sentences of one text and remembers table header and lead-in."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.groups = _groups(text, find_markers(text))
        self.at = 0  # the next group that was not yet read
        self.header: list[str] = []
        self.lead_in = ""
        self.before: Statement | None = None  # the last statement, for markers that stand alone

    def read(self) -> Iterator[Statement]:
        for span in split_sentences(self.text):
            line = self.text[span.start : span.end]
            if _is_row(line):
                yield from self._row(span, line)
                continue
            self.header = []
            statement = self._sentence(span, line)
            if statement is not None:
                yield statement
        if self.groups[self.at :]:
            yield _unstated(self.groups[self.at :])

    def _groups_in(self, span: Span) -> list[_Group]:
        first = self.at
        while self.at < len(self.groups) and self.groups[self.at].start < span.end:
            self.at += 1
        return self.groups[first : self.at]

    def _sentence(self, span: Span, line: str) -> Statement | None:
        groups = self._groups_in(span)
        entry = _ENTRY.match(line)
        body = span.start + (entry.end() if entry else 0)
        if _HEADING.match(line) and not groups:
            self.lead_in = ""
            return None
        if not _says_something(self.text, body, span.end, groups):
            return self._alone(groups)
        if entry is None:
            self.lead_in = ""
        statement = self._cut(Span(body, span.end), groups)
        if line.rstrip().endswith(":") or _ends_with_colon(statement.text):
            self.lead_in = _topic(statement)
        self.before = statement
        return statement

    def _cut(self, span: Span, groups: list[_Group]) -> Statement:
        sentence = _rendered(self.text, span, groups)
        found = (
            Claim(clause, group.numbers, start, end, sentence, self.lead_in)
            for clause, group, start, end in _clauses(self.text, span, groups)
        )
        return Statement(sentence, tuple(_with_own_sentence(found)))

    def _alone(self, groups: list[_Group]) -> Statement | None:
        """Markers on a line of their own stand for the statement before them."""
        if not groups:
            return None
        if self.before is None:
            return _unstated(groups)
        numbers = tuple(dict.fromkeys(n for group in groups for n in group.numbers))
        text = without_markers(self.before.text)
        sentence = f"{text.rstrip('.')} {marks(numbers)}."
        start, end = groups[0].start, groups[-1].end
        claim = Claim(text, numbers, start, end, sentence, self.lead_in)
        return Statement(sentence, (claim,))

    def _row(self, span: Span, line: str) -> Iterator[Statement]:
        groups = self._groups_in(span)
        if _RULE.fullmatch(line.strip()):
            return
        cells = list(_cells(line, span.start))
        held = _groups_by_cell(cells, groups)
        plain = [
            _literal(_cut_out(self.text, cell, own)) for cell, own in zip(cells, held, strict=True)
        ]
        if self._is_header(span.end):
            self.header = plain
            if not groups:
                return
        if self.header and not line.rstrip().endswith("|"):
            plain = plain[: len(self.header)]
        if not groups:
            yield Statement(self._whole_row(plain) + ".", ())
        for column, own in enumerate(held):
            if own:
                yield self._cell_statement(cells[column], plain, column, own)

    def _is_header(self, end: int) -> bool:
        """Whether the line after this one is the rule under a header."""
        return bool(_RULE_BELOW.match(self.text, end))

    def _cell_statement(
        self, cell: Span, plain: list[str], column: int, groups: list[_Group]
    ) -> Statement:
        alone = column == 0 or column >= len(plain) or plain[column] == ""
        text = (self._whole_row(plain) if alone else self._cell(plain, column))[:LONGEST_CLAUSE]
        numbers = tuple(dict.fromkeys(n for group in groups for n in group.numbers))
        sentence = f"{text} {marks(numbers)}."
        return Statement(sentence, (Claim(text, numbers, cell.start, cell.end, sentence),))

    def _cell(self, plain: list[str], column: int) -> str:
        named = self._named(plain, column)
        return f"{plain[0]} – {named}" if plain[0] else named

    def _whole_row(self, plain: list[str]) -> str:
        rest = "; ".join(self._named(plain, c) for c in range(1, len(plain)) if plain[c])
        return f"{plain[0]} – {rest}" if rest and plain[0] else rest or plain[0]

    def _named(self, plain: list[str], column: int) -> str:
        name = self.header[column] if column < len(self.header) else ""
        return f"{name}: {plain[column]}" if name and name != plain[column] else plain[column]


def _unstated(groups: Sequence[_Group]) -> Statement:
    numbers = tuple(dict.fromkeys(n for group in groups for n in group.numbers))
    return Statement("", (Claim("", numbers, groups[0].start, groups[-1].end),))


# ── Lines ────────────────────────────────────────────────────────────────────────────────────

_ENTRY = re.compile(r"[ \t>]*(?:[-*+•◦‣–]|\(?\d{1,3}[.)]|#{1,6})[ \t]+")
_HEADING = re.compile(r"[ \t>]*#{1,6}[ \t]|(?:```|~~~)|[-*_=]{3,}\s*$")
_RULE = re.compile(r"[|:\-=+ \t]+")
_RULE_BELOW = re.compile(r"[ \t]*\r?\n[ \t>]*\|?[ \t]*:?-{2,}[|:\- \t]*(?:\n|$)")
_CELL = re.compile(r"(?:\\.|[^|\\])*")


def _is_row(line: str) -> bool:
    stripped = line.strip()
    return stripped.startswith("|") and stripped.count("|") >= 2


def _cells(line: str, offset: int) -> Iterator[Span]:
    at = line.index("|") + 1
    end = len(line.rstrip())
    while at < end:
        found = _CELL.match(line, at, end)
        stop = max(found.end() if found else at, at)
        yield Span(offset + at, offset + stop)
        at = stop + 1


def _groups_by_cell(cells: list[Span], groups: list[_Group]) -> list[list[_Group]]:
    held: list[list[_Group]] = [[] for _ in cells]
    column = 0
    for group in groups:
        while column < len(cells) - 1 and group.start >= cells[column].end:
            column += 1
        if cells:
            held[column].append(group)
    return held


def _ends_with_colon(sentence: str) -> bool:
    return without_markers(sentence).endswith(":")


def _topic(statement: Statement) -> str:
    return without_markers(statement.text).rstrip(" :")[:LONGEST_TOPIC]


# ── Clauses ──────────────────────────────────────────────────────────────────────────────────

_JOINT = re.compile(r"[\s,;&]*(?:and|und|et|y|or)?[\s,;&]*")
_EMPTY_CLAUSE = re.compile(
    r"[\W_]*(?:(?:according|per|see|as|in|to|also|both|source|sources|from|by|and|cf|the|documents?)\b[\W_]*)*",
    re.IGNORECASE,
)
_EDGE = " \t\n\r,;:.–—-)(*"


def _groups(text: str, markers: Sequence[Marker]) -> list[_Group]:
    groups: list[_Group] = []
    for marker in markers:
        last = groups[-1] if groups else None
        if last and marker.start - last.end < 12 and _JOINT.fullmatch(text, last.end, marker.start):
            joined = tuple(dict.fromkeys((*last.numbers, *marker.numbers)))
            groups[-1] = _Group(joined, last.start, marker.end)
        else:
            groups.append(_Group(marker.numbers, marker.start, marker.end))
    return groups


def _clauses(text: str, span: Span, groups: list[_Group]) -> Iterator[tuple[str, _Group, int, int]]:
    """The clause of each group: what stands before it, or after it if there is nothing before."""
    at = span.start
    for index, group in enumerate(groups):
        start, end = at, group.start
        at = group.end
        if _EMPTY_CLAUSE.fullmatch(text, start, end):
            start = group.end
            end = groups[index + 1].start if index + 1 < len(groups) else span.end
        start = max(start, end - LONGEST_CLAUSE) if end == group.start else start
        end = min(end, start + LONGEST_CLAUSE)
        yield _literal(text[start:end]).strip(_EDGE), group, start, end


def _says_something(text: str, start: int, end: int, groups: list[_Group]) -> bool:
    """Whether there is a word beside the markers."""
    return any(character.isalnum() for character in _cut_out(text, Span(start, end), groups))


def _cut_out(text: str, span: Span, groups: Iterable[_Group]) -> str:
    pieces: list[str] = []
    at = span.start
    for group in groups:
        pieces.append(text[at : group.start])
        at = group.end
    pieces.append(text[at : span.end])
    return "".join(pieces).strip()


def _with_own_sentence(found: Iterable[Claim]) -> Iterator[Claim]:
    """Of a sentence too long to quote, each claim gets its own clause as the sentence."""
    for claim in found:
        if len(claim.sentence) <= LONGEST_CLAUSE:
            yield claim
        else:
            yield replace(claim, sentence=f"{claim.text} {marks(claim.numbers)}.")


# ── Quoting ──────────────────────────────────────────────────────────────────────────────────

_MARKUP = re.compile(r"\*\*|__(?=\S)|(?<=\S)__|`+|~~~+|^\s*>+\s?", re.MULTILINE)
_BLANKS = re.compile(r"\s+")
_MARKER = re.compile(r"\s*\[\d+(?:, \d+)*\]")
_SPACE_BEFORE = re.compile(r" +(?=[,.;:!?)])")
_STOP_BEFORE_MARKS = re.compile(r"([.!?。！？]) ?((?:\[\d+\])+)$")


def marks(numbers: Iterable[int]) -> str:
    """Markers as we write them: one bracket for each number, which every reader understands."""
    return "".join(f"[{number}]" for number in numbers)


def _literal(text: str) -> str:
    """Text on one line that holds no marker and no beginning of one, whatever stands around it."""
    return _BLANKS.sub(" ", neutralise(_MARKUP.sub("", text))).strip()


def _rendered(text: str, span: Span, groups: list[_Group]) -> str:
    """A sentence on one line, with its markers in the plain form and nothing else like a marker."""
    pieces: list[str] = []
    at = span.start
    for group in groups:
        pieces += [_literal(text[at : group.start]), marks(group.numbers)]
        at = group.end
    pieces.append(_literal(text[at : span.end]))
    joined = " ".join(piece for piece in pieces if piece)
    return _STOP_BEFORE_MARKS.sub(r" \2\1", _SPACE_BEFORE.sub("", joined))


def without_markers(rendered: str) -> str:
    """A quoted sentence without its markers."""
    return _SPACE_BEFORE.sub("", _MARKER.sub("", rendered)).strip()


# ── Topics ───────────────────────────────────────────────────────────────────────────────────

_ANAPHORIC = re.compile(
    r"(?:it|its|it's|they|their|this|that|these|those|he|she|here|there|yes|no|both|neither|"
    r"the (?:latter|former|device|product|unit|model|phone|battery|price|weight)|"
    r"es|er|sie|diese[rs]?|ja|nein)\b",
    re.IGNORECASE,
)
_REPLY = re.compile(r"(?:yes|no|both|neither|none|correct|right|exactly|ja|nein)\b", re.IGNORECASE)
FEW_WORDS = 3


def with_topic(found: Claim, topic: str) -> Claim:
    """The claim with what it is about, if it does not say so itself: `240 g`, `It weighs 240 g`."""
    if found.topic or not topic or not needs_topic(found.text):
        return found
    return replace(found, topic=topic[:LONGEST_TOPIC])


def needs_topic(text: str) -> bool:
    """Whether a statement cannot be understood alone: it names nothing, and says little or `it`."""
    seen = features(text)
    return not seen.names and (len(seen.words) < FEW_WORDS or is_anaphoric(text))


def is_reply(text: str) -> bool:
    """Whether a statement only makes sense after its question: `No`, `Yes, it does`."""
    return bool(_REPLY.match(text))


def is_anaphoric(text: str) -> bool:
    """Whether a statement begins with a word that stands for something said before."""
    return bool(_ANAPHORIC.match(text))

"""Reads a text, whole or in pieces, into literal text and citations.

Code, mathematics, links and indices are literal text. Nothing is held back that is decided, and
each decision looks ahead for a fixed distance only, so that every split of a text reads alike.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import regex

from rag.citations.grammar import (
    AWAY,
    BEGINS,
    COLUMN,
    EXPONENT,
    INTRODUCED,
    INTRODUCES,
    INVISIBLE,
    LITERAL,
    MAX_CODE,
    MEMBER,
    MOST,
    OPENING,
    REPORTING,
    ROW,
    SEPARATOR,
    SPAN,
    SUPERSCRIPT,
    TARGET,
    TITLED,
    UNIT,
    around,
    is_index,
)
from rag.language.sentences import Lines
from rag.runtime.budget import spend

MAX_RANGE = 20  # numbers; a longer range is text, as is one that runs backwards
_MAX_TOGETHER = 20
_CONTEXT = 500  # characters of the line that are kept for looking back
_MAX_LINE = 300  # of a line that may open or close a fence

_SPECIAL = r"\n`$\\(（<^*_{&" + re.escape(OPENING) + SUPERSCRIPT
# Nor may `source 7` and `Quelle 7` begin in it.
_PLAIN = regex.compile(rf"(?:[^{_SPECIAL}sSqQ]|(?<=[^\W_])[sSqQ]|[sS](?=[^oO])|[qQ](?=[^uU]))+")
_LINE = regex.compile(r"[^\n]+")
_RAISED = regex.compile(f"[{SUPERSCRIPT}]+")
_RAISED_TO = str.maketrans(SUPERSCRIPT + "⁻–", "0123456789--")
_TICKS = regex.compile(r"`{1,100}")
_INVISIBLE = re.compile(f"[{INVISIBLE}]+")
_USUAL = re.compile(r"\[([1-9][0-9]{0,4}(?:–[1-9][0-9]{0,4})?)\][^(]")
FIGURE = regex.compile(rf"[\d{SUPERSCRIPT}]|cite_start", regex.IGNORECASE)
_TELLING = 8  # visible characters of a line that tell a list's entry
_NOT_ESCAPED = "\n\\" + OPENING


@dataclass(frozen=True, slots=True)
class Marker:
    """A marker in a text: its distinct numbers in order, and where it stands."""

    numbers: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class MarkerGroup:
    """Markers side by side, each with the text between it and the one before."""

    markers: tuple[Marker, ...]
    between: tuple[str, ...]
    text: str  # as it was spelled
    is_unsure: bool = False  # such as a link to elsewhere: a citation only if its number is known
    leaves: str = ""  # what stays of it without its numbers


class _MoreNeeded(Exception):
    """What follows decides, and is not here yet."""


class Scanner:
    """Told a text piece by piece; the tokens joined are the text."""

    def __init__(self) -> None:
        self._text = ""  # of the line so far, and what is not decided yet
        self._position = 0
        self._offset = 0  # of `_text` in the whole
        self._line = 0  # where the line begins in `_text`
        self._final = False
        self._lines = Lines()
        self._begins = True  # a line, whose kind is not known yet
        self._is_code = False
        self._cited_to = -1  # where the last marker ended
        self._figure = -1  # in the whole: before it, from where it was looked for, there is none

    def scan(self, text: str, *, final: bool = False) -> Iterator[str | MarkerGroup]:
        """Yield what is decided; with `final`, the rest too."""
        passed = max(self._line, self._position - _CONTEXT)
        self._text = self._text[passed:] + text
        self._position -= passed
        self._line = max(0, self._line - passed)
        self._offset += passed
        end = len(self._text)
        if final:
            self._final = True
            self._text += "\n"  # for patterns that look one character ahead
        while self._position < end:
            spend()
            try:
                yield self._next()
            except _MoreNeeded:
                return

    def _next(self) -> str | MarkerGroup:
        if self._begins:
            self._begin_line()
        char = self._text[self._position]
        if char == "\n":
            self._begins = True
            self._line = self._position + 1
            return self._take(self._line)
        if self._is_code:
            return self._taken_by(_LINE)
        plain = _PLAIN.match(self._text, self._position)
        if plain:  # most of any text
            return self._take(plain.end())
        group = self._citation(char)
        if group:
            self._position += len(group.text)
            self._cited_to = self._offset + self._position
            return group
        if char in SUPERSCRIPT:
            return self._taken_by(_RAISED)
        return self._literal(char) if char in LITERAL else self._take(self._position + 1)

    def _take(self, end: int) -> str:
        taken = self._text[self._position : end]
        self._position = end
        return taken

    def _taken_by(self, pattern: "regex.Pattern[str]") -> str:
        match = pattern.match(self._text, self._position)
        return self._take(match.end() if match else self._position + 1)

    def _match(
        self, pattern: "regex.Pattern[str]", position: int, most: int = MOST
    ) -> "regex.Match[str] | None":
        match = pattern.match(self._text, position, position + most)
        is_cut = not self._final and len(self._text) < position + most
        if not match and is_cut and pattern.match(self._text, position, partial=True):
            raise _MoreNeeded
        return match

    def _before(self, position: int) -> str:
        return self._text[max(self._line, position - _CONTEXT) : position]

    # ── Code and mathematics ─────────────────────────────────────────────────────────────────

    def _begin_line(self) -> None:
        line, newline, _ = self._text[self._position : self._position + _MAX_LINE].partition("\n")
        visible = line.lstrip(" \t>")
        is_fence = visible.startswith(("```", "~~~"))
        if not newline and len(line) < _MAX_LINE and (is_fence or len(visible) < _TELLING):
            raise _MoreNeeded
        self._is_code = self._lines.is_code(line)
        self._begins = False

    def _literal(self, char: str) -> str:
        most = MAX_CODE if char == "`" else MOST
        match = self._match(LITERAL[char], self._position, most)
        if match:
            return self._take(match.end())
        if char == "`":
            return self._taken_by(_TICKS)
        if char != "\\":
            return self._take(self._position + 1)
        if self._position + 1 == len(self._text):
            raise _MoreNeeded
        return self._take(
            self._position + (1 if self._text[self._position + 1] in _NOT_ESCAPED else 2)
        )

    # ── Citations ────────────────────────────────────────────────────────────────────────────

    def _citation(self, char: str) -> MarkerGroup | None:
        if char in "sSqQ":
            return self._spoken()
        if self._is_far_from_figures(self._position):
            return None
        first = self._unit(self._position, is_next=self._offset + self._position == self._cited_to)
        return self._together(first) if first else None

    def _unit(self, position: int, *, is_next: bool) -> MarkerGroup | None:
        """A bracket, or what stands around one: `([7])`, `**[7]**`, `<sup>7</sup>`."""
        char = self._text[position]
        if char in "[\\(" and not is_next and self._is_index(position):
            return None
        plain = _USUAL.match(self._text, position)
        if plain:  # nearly all are so
            numbers = _numbers([plain[1]])
            return self._cited(numbers, position, plain.end() - 1) if numbers else None
        pattern = around(char)
        match = self._match(pattern, position) if pattern else None
        if not match or not self._fits(char, match):
            return None
        groups = match.groupdict()
        is_plain = bool(groups.get("plain"))
        end = match.end()
        target = self._match(TARGET, end) if char in "[\\" else None
        if target and is_plain and self._before(position).endswith("!"):
            return None  # an image
        numbers = _numbers(_ranges(match))
        if not numbers and not groups.get("start"):
            return None
        end = target.end() if target else end
        unsure = match.capturesdict().get("unsure", [])
        leads_away = bool(target and is_plain and AWAY.search(target["target"]))
        is_apart = bool(unsure) and not numbers[0] <= numbers[-1] < numbers[0] + MAX_RANGE
        if is_apart or (leads_away and TITLED.search(match.group())):
            return None  # a fraction, a date; a link to a section, `[1. Refunds](/documents/…)`
        is_unsure = bool(unsure) or leads_away
        return self._cited(numbers, position, end, is_unsure=is_unsure)

    def _is_far_from_figures(self, position: int) -> bool:
        """Whether no citation can begin here; the text is looked through once."""
        most = position + MOST
        if most > len(self._text) and not self._final:
            return False
        if self._figure < self._offset + position:
            match = FIGURE.search(self._text, position)
            self._figure = self._offset + (match.start() if match else len(self._text))
        return self._figure - self._offset >= min(most, len(self._text))

    def _is_index(self, position: int) -> bool:
        """Whichever way it is read: behind a citation, a blank or nothing may come to stand."""
        before = self._before(position)
        if ROW.match(before) and self._match(COLUMN, position):
            return True
        if before[-1:].isalnum() and self._match(MEMBER, position):
            return True
        behind = self._text[max(position - len(before), self._cited_to - self._offset) : position]
        return is_index(before) and is_index(behind)

    def _cited(
        self, numbers: tuple[int, ...], position: int, end: int, *, is_unsure: bool = False
    ) -> MarkerGroup:
        marker = Marker(numbers, self._offset + position, self._offset + end)
        return MarkerGroup((marker,), ("",), self._text[position:end], is_unsure)

    def _fits(self, char: str, match: "regex.Match[str]") -> bool:
        """Whether emphasis opens here, a raised figure is no exponent, and no name goes on."""
        before = self._before(match.start())
        if char == "{":
            return not before or before[-1].isspace()
        if char not in "*_":
            group = "raised" if char in SUPERSCRIPT else "figure"
            figure = match.groupdict().get(group)
            return not (figure and _is_exponent(before, figure))
        run = re.escape(match["run"])
        is_open = len(re.findall(rf"(?<![*_]){run}(?![*_])", before)) % 2
        return not (is_open or before.endswith(char) or (char == "_" and before[-1:].isalnum()))

    def _together(self, first: MarkerGroup) -> MarkerGroup:
        """With the markers that stand beside it, so that what is between them can go with them."""
        group, position = first, self._position + len(first.text)
        while not first.is_unsure and len(group.markers) < _MAX_TOGETHER:
            span = separator = None
            if not _USUAL.match(self._text, position):
                span = self._match(SPAN, position)
                separator = span or self._match(SEPARATOR, position)
                if not separator:
                    break
            apart = separator.group() if separator else ""
            start = position + len(apart)
            unit = self._unit(start, is_next=bool(span or not apart))
            if not unit or unit.is_unsure:
                break
            if span:
                unit = _with_all_between(group, unit)
            between = (*group.between, "" if span else apart)
            group = MarkerGroup(
                group.markers + unit.markers, between, group.text + apart + unit.text
            )
            position = start + len(unit.text)
        return group

    def _spoken(self) -> MarkerGroup | None:
        """ "According to source 7, …" and "Source 7 says …"."""
        before, match = self._before(self._position), None
        cited_to = self._cited_to - self._offset
        between = self._text[max(0, cited_to) : self._position]
        follows_marker = cited_to >= 0 and not between.strip(" \t>*_-…")
        if INTRODUCES.match(before):
            match = self._match(INTRODUCED, self._position)
        elif BEGINS.match(before) or follows_marker:
            match = self._match(REPORTING, self._position)
        numbers = _numbers(match.captures("range")) if match else ()
        if not match or not numbers:
            return None
        return replace(self._cited(numbers, self._position, match.end()), leaves=match["word"])


def _with_all_between(first: MarkerGroup, last: MarkerGroup) -> MarkerGroup:
    """`[7]–[9]`: the second marker with the numbers that are between the two."""
    marker = last.markers[0]
    between = _numbers([f"{first.markers[-1].numbers[-1]}-{marker.numbers[0]}"])[1:-1]
    return replace(last, markers=(replace(marker, numbers=between + marker.numbers),))


def _numbers(ranges: Sequence[str]) -> tuple[int, ...]:
    """The distinct numbers in order; none if one of the ranges is none."""
    numbers: dict[int, None] = {}
    for range_ in ranges:
        ends = [int(end) for end in re.findall(r"\d+", _INVISIBLE.sub("", range_))]
        if not 0 < ends[0] <= ends[-1] < ends[0] + MAX_RANGE:
            return ()
        numbers.update(dict.fromkeys(range(ends[0], ends[-1] + 1)))
    return tuple(numbers)


def _ranges(match: "regex.Match[str]") -> list[str]:
    """Of `⁷` or `⁷˒⁸` none where one begins with a zero."""
    raised = match.capturesdict().get("raised")
    if not raised:
        return match.captures("range")
    ranges = [part.translate(_RAISED_TO) for part in re.split(r"[,˒⸴]", raised[0])]
    return [] if any(range_.startswith("0") for range_ in ranges) else ranges


def _is_exponent(before: str, figure: str) -> bool:
    is_power = figure.strip().translate(_RAISED_TO) in ("2", "3")
    return bool(EXPONENT.match(before) or (is_power and UNIT.match(before)))

"""The grammar of `[n]` markers, and the scanner that reads it in texts and streams alike.

A marker is `[n]`, `[n, m]` or `[n-m]` (also with an en dash), in square, full-width `［ ］` or
lenticular `【 】` brackets. Numbers begin at 1 and have no leading zero; they and the commas and
dashes between them may be full-width, blanks may stand around commas and dashes only, and
zero-width characters inside count as absent. Other digits (superscript, Arabic-Indic) are text.

Not a marker: inside inline code or a fence; `[` directly after an ASCII letter, digit or `_`, or
after the `]` of such an index (`arr[0]`, `a[1][2]`); before `(` (a link or image); at the start of
a line before `:` (a definition). Full-width brackets are never indices, links or definitions.

Every rule can be decided within MAX_MARKER or
MAX_CODE characters, so that a stream is never held back for longer:

- inline code closes on its own line, with as many backticks as it began with, within MAX_CODE
  characters; backticks that find no end in that distance are rewritten as apostrophes;
- a fence is opened by three backticks or tildes at the start of a line, and ends with the text at
  the latest; a line with further backticks after the first three opens inline code instead;
- a bracket followed by more than MAX_MARKER characters of numbers is no marker; `(` replaces it;
- a range over more than MAX_RANGE numbers, or one that runs backwards, stands for its two ends.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_MARKER = 4_000
MAX_CODE = 500
MAX_RANGE = 100


@dataclass(frozen=True, slots=True)
class Marker:
    """A marker in a text: its distinct numbers in order, and where it stands."""

    numbers: tuple[int, ...]
    start: int
    end: int


OPENING = "[【［"
_INVISIBLE = "\u00ad\u200b-\u200d\u2060\ufeff"
_DIGITS = "0-9０-９"
_BLANKS = " \\t\u00a0\u202f\u3000"
_COMMAS = ",，、"
_DASHES = "\\-‐‑–—－"
_INSIDE = rf"[{_DIGITS}{_INVISIBLE}{_BLANKS}{_COMMAS}{_DASHES}]"
_NUMBER = rf"[{_INVISIBLE}]*+[1-9１-９][{_DIGITS}{_INVISIBLE}]*+"
_RANGE = rf"{_NUMBER}(?:[{_BLANKS}]*+[{_DASHES}][{_BLANKS}]*+{_NUMBER})?+"
_NUMBERS = rf"{_RANGE}(?:[{_BLANKS}]*+[{_COMMAS}][{_BLANKS}]*+{_RANGE})*+"
_MARKER = re.compile(rf"\[{_NUMBERS}\]|【{_NUMBERS}】|［{_NUMBERS}］")
# The most of a marker that can be told from other text: nothing, or a digit and what follows it.
_BEGINNING = rf"[{_INVISIBLE}]*+(?:[{_DIGITS}]{_INSIDE}*+)?"
_BEGUN = re.compile(rf"[{re.escape(OPENING)}]{_BEGINNING}")
_ONE_RANGE = re.compile(rf"([{_DIGITS}]+)(?:[{_BLANKS}]*[{_DASHES}][{_BLANKS}]*([{_DIGITS}]+))?")
_INVISIBLES = re.compile(rf"[{_INVISIBLE}]+")
_PLAIN = re.compile(rf"[^{re.escape(OPENING)}\]`~\n]+")
_MAX_RUN = 100
_RUN = re.compile(rf"`{{1,{_MAX_RUN}}}|~{{1,{_MAX_RUN}}}")
_MAX_FENCE_LINE = 300
_FENCE_END = re.compile(r"[ \t]*([`~]*)[ \t]*")
_LINE = re.compile(r"[^\n]*")

BLANK = re.compile(rf"[{_BLANKS}]")
IDENTIFIER = re.compile(r"[A-Za-z0-9_]")
INSIDE = re.compile(rf"{_INSIDE}*")
CANDIDATE = re.compile(rf"([{re.escape(OPENING)}])({_BEGINNING})([\]】］]|\Z)")


def _numbers(marker: str) -> tuple[int, ...]:
    numbers: dict[int, None] = {}
    for found in _ONE_RANGE.finditer(_INVISIBLES.sub("", marker)):
        first = int(found.group(1))
        last = int(found.group(2) or first)
        if first <= last < first + MAX_RANGE:
            numbers.update(dict.fromkeys(range(first, last + 1)))
        else:
            numbers.update(dict.fromkeys((first, last)))
    return tuple(numbers)


class Scanner:
    """Reads a text in pieces of any size into literal text and markers.

    Each rule either decides from the characters at hand or asks for more; what it decides is
    the same for every split, because it never looks beyond a fixed distance.
    """

    line_is_blank: bool  # so far
    after_index: bool  # a `[` here would be an index

    def __init__(self) -> None:
        self._text = ""  # not decided yet
        self._at = 0
        self._offset = 0  # of `_text` in the whole text
        self._final = False
        self._fence = ""
        self._brackets: list[bool] = []  # open ones of this line: is it an index?
        self._dropped = False
        self.line_is_blank = True
        self.after_index = False

    def scan(self, text: str, *, final: bool = False) -> Iterator[str | Marker]:
        """Yield what is decided; with `final`, the rest too."""
        self._text = self._text[self._at :] + text
        self._at = 0
        self._final = final
        while self._at < len(self._text):
            was_blank = self.line_is_blank
            start = self._at
            token = self._next()
            if token is None:
                return
            yield token
            if self._dropped:  # as if it had never been there
                self.line_is_blank = was_blank
                self._dropped = False
            self._offset += self._at - start

    def drop(self) -> None:
        """Told by who consumes: the marker just yielded is removed from the text."""
        self._dropped = True

    def _next(self) -> str | Marker | None:
        """The next token, or None if more text is needed to tell."""
        char = self._text[self._at]
        if char == "\n":
            return self._newline()
        if self._fence:
            return self._fence_line()
        if char in "`~":
            return self._run()
        if char in OPENING:
            return self._opening(char)
        if char == "]":
            return self._take(self._at + 1, index=bool(self._brackets) and self._brackets.pop())
        found = _PLAIN.match(self._text, self._at)
        end = found.end() if found else self._at + 1
        return self._take(end, index=bool(IDENTIFIER.match(self._text, end - 1)))

    def _take(self, end: int, *, index: bool = False) -> str:
        taken = self._text[self._at : end]
        self._at = end
        self.line_is_blank = self.line_is_blank and not taken.strip(" \t")
        self.after_index = index
        return taken

    def _newline(self) -> str:
        taken = self._take(self._at + 1)
        self._brackets.clear()
        self.line_is_blank = True
        return taken

    def _needs(self, end: int, limit: int) -> bool:
        """Whether what was read up to `end` may read otherwise with more text, before `limit`."""
        return end == len(self._text) and end < limit and not self._final

    def _opening(self, bracket: str) -> str | Marker | None:
        if bracket == "[" and self.after_index:
            self._brackets.append(True)
            return self._take(self._at + 1)
        limit = self._at + MAX_MARKER
        found = _MARKER.match(self._text, self._at, limit)
        if found:
            return self._marker(bracket, found)
        begun = _BEGUN.match(self._text, self._at, limit)
        end = begun.end() if begun else self._at
        if self._needs(end, limit):
            return None
        taken = self._take(self._at + 1)
        if end == limit:
            return "("
        if bracket == "[":
            self._brackets.append(False)
        return taken

    def _marker(self, bracket: str, found: re.Match[str]) -> str | Marker | None:
        end = found.end()
        if bracket == "[":
            if end == len(self._text) and not self._final:
                return None
            after = self._text[end : end + 1]
            if after == "(" or (after == ":" and self.line_is_blank):
                return self._take(end)
        self._take(end)
        return Marker(_numbers(found.group()), self._offset, self._offset + len(found.group()))

    def _run(self) -> str | None:
        """Backticks or tildes: a fence, inline code, or themselves."""
        found = _RUN.match(self._text, self._at)
        end = found.end() if found else self._at + 1
        if self._needs(end, self._at + _MAX_RUN):
            return None
        run = self._text[self._at : end]
        if run[0] == "`":
            return self._code(run, end)
        if self.line_is_blank and len(run) >= 3:
            self._fence = run
        return self._take(end)

    def _code(self, run: str, end: int) -> str | None:
        limit = end + MAX_CODE
        newline = self._text.find("\n", end, limit)
        stop = newline if newline >= 0 else min(limit, len(self._text))
        whole = newline >= 0 or self._final  # the line is known to its end
        if self.line_is_blank and len(run) >= 3 and self._text.find("`", end, stop) < 0:
            if whole and stop < limit:
                self._fence = run
                return self._take(end)
        else:
            closing = re.compile(rf"(?<!`){run}(?!`)").search(self._text, end, stop)
            if closing and not self._needs(closing.end(), limit):
                return self._take(closing.end())
            if newline >= 0:
                return self._take(end)
        return self._unclosed(run, end, stop == limit)

    def _unclosed(self, run: str, end: int, is_too_long: bool) -> str | None:
        if not (self._final or is_too_long):
            return None
        self._take(end)
        return "'" * len(run) if is_too_long else run

    def _fence_line(self) -> str | None:
        """A line inside a fence, or what is left of it; perhaps the line that closes the fence."""
        if self.line_is_blank:
            limit = self._at + _MAX_FENCE_LINE
            found = _FENCE_END.match(self._text, self._at, limit)
            end = found.end() if found else self._at
            if self._needs(end, limit):
                return None
            at_end = end < limit and self._text[end : end + 1] in ("", "\n")
            if found and at_end and self._closes(found.group(1)):
                self._fence = ""
                return self._take(end)
            self.line_is_blank = False  # whatever comes on this line does not close the fence
        line = _LINE.match(self._text, self._at)
        return self._take(line.end() if line else self._at + 1)

    def _closes(self, run: str) -> bool:
        return run.startswith(self._fence) and not run.strip(self._fence[0])

"""What kind each line of a text is of: code, a heading, a table's row or rule, a list's entry."""

import re
from typing import Literal, TypeAlias

LineKind: TypeAlias = Literal["code", "rule", "head", "row", "heading", "entry", "sentence"]

ENTRY = re.compile(r"[ \t>]*(?:[-*+•◦‣–]|\(?\d{1,3}[.)]|\(?[A-Za-z][.)])[ \t]+(?=\S)")
CELL = re.compile(r"(?:\\.|[^|\\])+")
_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})(?![^\n]*`)")
_INDENTED = re.compile(r"(?: {4}| {0,3}\t)[ \t]*\S")
_QUOTE = " \t>"  # before a line in a quotation
_KINDS: tuple[tuple[LineKind, re.Pattern[str]], ...] = (
    ("rule", re.compile(r"(?=[\s:|-]*$)(?:-?[\s:|])*--|(?:[-*_=][ \t]*){3,}$")),
    ("row", re.compile(r"\|")),
    ("heading", re.compile(r"#{1,6}[ \t]")),
    ("entry", ENTRY),
)
_LEADS_IN = re.compile(r"[:：?？][\W_]*$")
_ASKS = re.compile(r"[?？؟][\W_]*$")
_END = 20  # characters


class Lines:
    """Told the lines of a text in order, says of each what kind it is of.

    To know whether it is code, the beginning of a line up to a few visible characters is enough,
    but for one in a fence or that begins with backticks or tildes.
    """

    def __init__(self) -> None:
        self._fence = ""
        self._after_blank = True
        self._in_list = False
        self._indented = False

    def kind(self, line: str) -> LineKind:
        if self.is_code(line):
            return "code"
        bare = line.strip(_QUOTE)
        return next((kind for kind, pattern in _KINDS if pattern.match(bare)), "sentence")

    def is_code(self, line: str) -> bool:
        """Within a fence, closed or not, or of an indented block."""
        opening = _FENCE.match(line)
        if self._fence:
            run = line.strip(" \t>\r")
            if run.startswith(self._fence) and not run.strip(self._fence[0]):
                self._fence = ""
            return True
        if opening:
            self._fence = opening.group(1)
            return True
        if not line.strip():
            self._after_blank = True
            return self._indented
        starts = self._after_blank and not self._in_list
        self._indented = bool(_INDENTED.match(line)) and (self._indented or starts)
        if ENTRY.match(line) and not self._indented:
            self._in_list = True
        elif not line[0].isspace() and self._after_blank:
            self._in_list = False
        self._after_blank = False
        return self._indented


def leads_in(text: str) -> bool:
    """Whether it says nothing without what follows: it ends with a colon or asks."""
    return bool(_LEADS_IN.search(text[-_END:]))


def asks(text: str) -> bool:
    """Whether it ends with a question."""
    return bool(_ASKS.search(text[-_END:]))

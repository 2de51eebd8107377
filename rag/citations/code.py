"""Which lines of a text are code: fences, closed or not, and indented blocks."""

import re
from collections.abc import Iterator
from itertools import groupby

from rag.text.sentences import ENTRY

_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})(?![^\n]*`)")
_INDENTED = re.compile(r"(?: {4}| {0,3}\t)[ \t]*\S")


class CodeLines:
    """Told the lines of a text in order, says of each whether it is code.

    Of a line outside a fence that does not begin with backticks or tildes, the beginning up to the
    first visible character is enough.
    """

    def __init__(self) -> None:
        self._fence = ""
        self._after_blank = True
        self._in_list = False
        self._indented = False

    def reads(self, line: str) -> bool:
        if self._fence:
            run = line.strip(" \t>\r")
            if run.startswith(self._fence) and not run.strip(self._fence[0]):
                self._fence = ""
            return True
        opening = _FENCE.match(line)
        if opening:
            self._fence = opening.group(1)
            return True
        return self._is_indented(line)

    def _is_indented(self, line: str) -> bool:
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


def code_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Where blocks of code stand, from the first line to the last."""
    lines = CodeLines()
    at = 0
    for is_code, run in groupby(
        text.splitlines(keepends=True), lambda line: lines.reads(line.rstrip("\n"))
    ):
        end = at + sum(map(len, run))
        if is_code:
            yield at, end
        at = end

"""Text as windows to compare with: a sentence, a list's entry with its lead-in, a row's cell.

Each window is words of the text with the words that it cannot be understood without: the lead-in
of a list, the label of a row and the header of a column.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from rag.text.sentences import ENTRY, Span, split_sentences

_RULE = re.compile(r"[ \t]*\|?[ \t:|-]*-{3}[ \t:|-]*\|?[ \t]*")
CELL = re.compile(r"(?:\\.|[^|\\])+")
_LEADS_IN = re.compile(r"[:：?？]\W*$")
_HEADING = re.compile(r"#{1,6}[ \t]+(.*)")
_QUESTION = re.compile(r"[?？]\W*$")
_FENCE = re.compile(r"[ \t]*(?:`{3,}|~{3,})")
_MARKUP = re.compile(r"\*\*|__(?=\S)|(?<=\S)__|`+|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)")
_MOST_WINDOWS = 400  # of one text: longer ones are read to there


@dataclass(frozen=True, slots=True)
class Window:
    """`text[start:end]` with `around`: what it belongs to, a lead-in, a label, a header."""

    start: int
    end: int
    text: str
    around: str = ""
    kind: str = "sentence"  # sentence, entry, row, cell, heading, code
    column: str = ""  # of a cell, its header


@lru_cache(maxsize=512)
def read_windows(text: str) -> tuple[Window, ...]:
    """All windows of a text, in order; a table gives its cells, and each row whole."""
    return tuple(islice(_Reader(text).read(), _MOST_WINDOWS))


def plain(text: str) -> str:
    """Without the signs of Markdown that emphasise."""
    return _MARKUP.sub("", text).replace("\\|", "|").strip()


def cells_of(line: str) -> list[str]:
    """The cells of a table's row, plain; an escaped bar is none."""
    return [plain(found[0]) for found in CELL.finditer(line.strip().strip("|"))]


class _Reader:
    """Walks over a text and remembers heading, lead-in and table header."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.header: list[str] = []
        self.lead_in = ""
        self.heading = ""
        self.in_code = False

    def read(self) -> Iterator[Window]:
        spans = split_sentences(self.text)
        for at, span in enumerate(spans):
            line = self.text[span.start : span.end]
            following = spans[at + 1] if at + 1 < len(spans) else None
            yield from self._window(span, line, following)

    def _window(self, span: Span, line: str, following: Span | None) -> Iterator[Window]:
        heading = _HEADING.match(line)
        if _FENCE.match(line):
            self.in_code = not self.in_code
        elif self.in_code:
            yield Window(*span, line, self.heading, kind="code")
        elif line.startswith("|"):
            yield from self._row(span, line, following)
        elif heading is not None:
            self.header, self.lead_in, self.heading = [], "", plain(heading[1])
        else:
            self.header = []
            yield self._sentence(span, line)

    def _sentence(self, span: Span, line: str) -> Window:
        entry = ENTRY.match(line)
        starts_line = not self.text[self.text.rfind("\n", 0, span.start) + 1 : span.start].strip()
        begins = entry is None and starts_line
        around = "" if begins and not _QUESTION.search(self.lead_in) else self.lead_in
        said = plain(line[entry.end() :] if entry else line)
        if _LEADS_IN.search(line[-12:]) and entry is None:
            self.lead_in = said
        elif begins:
            self.lead_in = ""
        kind = "entry" if entry else "sentence"
        return Window(*span, said, _joined(self.heading, around), kind=kind)

    def _row(self, span: Span, line: str, following: Span | None) -> Iterator[Window]:
        below = self.text[following.start : following.end] if following else ""
        if _RULE.fullmatch(line):
            return
        cells = cells_of(line)
        if _RULE.fullmatch(below):
            self.header = cells
            return
        around = _joined(self.heading, self.lead_in)
        headers = [*self.header, *[""] * len(cells)]
        named = [
            f"{header}: {cell}" if header and cell else cell
            for header, cell in zip(headers, cells, strict=False)
        ]
        yield Window(*span, "; ".join(filter(None, named)), around, kind="row")
        for header, cell in zip(headers[1:], cells[1:], strict=False):
            if cell:
                label = _joined(around, cells[0], header)
                yield Window(*span, f"{cells[0]}: {cell}", label, kind="cell", column=header)


def _joined(*parts: str) -> str:
    return " · ".join(part for part in parts if part)

"""Text as windows to compare with: a sentence, a list's entry with its lead-in, a row's cell.

Each window is words of the text with the words that it cannot be understood without: the lead-in
of a list, the label of a row and the header of a column.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from rag.language.sentences import CELL, ENTRY, Sentence, Span, asks, leads_in, read_sentences

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
    return tuple(islice(_BlockReader(text).read(), _MOST_WINDOWS))


def plain(text: str) -> str:
    """Without the signs of Markdown that emphasise."""
    return _MARKUP.sub("", text).replace("\\|", "|").strip()


def cells_of(line: str) -> list[str]:
    """The cells of a table's row, plain; an escaped bar is none."""
    return [plain(found[0]) for found in CELL.finditer(line.strip().strip("|"))]


class _BlockReader:
    """Walks over a text and remembers heading, lead-in and table header."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.header: list[str] = []
        self.lead_in = ""
        self.heading = ""

    def read(self) -> Iterator[Window]:
        for sentence in read_sentences(self.text):
            yield from self._window(sentence, self.text[sentence.start : sentence.end])

    def _window(self, sentence: Sentence, line: str) -> Iterator[Window]:
        kind = sentence.kind
        if kind == "row":
            yield from self._row(sentence, line)
        elif kind == "head":
            self.header = cells_of(line)
        elif kind == "heading":
            self.header, self.lead_in, self.heading = [], "", plain(line.lstrip(" >#"))
        elif kind == "code":
            if not line.startswith(("```", "~~~")):
                yield Window(sentence.start, sentence.end, line, self.heading, kind)
        elif kind != "rule":
            self.header = []
            yield self._sentence(sentence, line)

    def _sentence(self, sentence: Sentence, line: str) -> Window:
        entry = ENTRY.match(line) if sentence.kind == "entry" and sentence.begins else None
        begins = entry is None and sentence.begins
        around = "" if begins and not asks(self.lead_in) else self.lead_in
        said = plain(line[entry.end() :] if entry else line)
        if leads_in(line) and entry is None:
            self.lead_in = said
        elif begins:
            self.lead_in = ""
        kind = "entry" if entry else "sentence"
        return Window(sentence.start, sentence.end, said, _joined(self.heading, around), kind)

    def _row(self, sentence: Sentence, line: str) -> Iterator[Window]:
        span = Span(sentence.start, sentence.end)
        cells = cells_of(line)
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

"""AsciiDoc to sections: headings, paragraphs, lists, tables and listings. Nothing is included."""

import csv
import re
from collections.abc import Iterator
from itertools import takewhile

from rag.documents.cleaning import clean, decode
from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline

HEADING = re.compile(r"(={1,6}|#{1,6}) (\S.*)")
ATTRIBUTE = re.compile(r":(!?[\w-]+!?):(?: +(.*))?")
USED = re.compile(r"\{([\w-]{1,60})\}")
FENCE = re.compile(r"(-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|/{4,}|--|`{3,}\w*)")
CODE = ("----", "....", "```", "++++")
TABLE = re.compile(r"([|,:!])===")
STYLE = re.compile(r"\[[^\]]*\]")
ENTRY = re.compile(r"(\*{1,5}|-|\.{1,5}|\d+\.|[a-zA-Z]\.|<\d*\.?>) +(\S.*)")
TERM = re.compile(r"(\S[^:;]{0,200})(?::{2,4}|;;)(?: +(.*))?")
CAPTION = re.compile(r"\.([^\s.].*)")
COLUMNS = re.compile(r"cols=(?:\"([^\"]*)\"|'([^']*)'|([^,\]]*))")
CELL = re.compile(r"(?:^|\s|(?<=\|))(?:\d+(?:\.\d+)?[+*])?(?:[<^>]?(?:\.[<^>])?)?[adehlmsv]?\|")
MACRO = re.compile(
    r"(?:<<[^,<>]{0,200},\s?([^<>]{0,200})>>|<<([^<>]{0,200})>>"
    r"|(?:link:|xref:|mailto:)[^\s\[]{0,300}\[([^\]]{0,300})\]"
    r"|(?:https?|ftp)://[^\s\[]{1,300}\[([^\]]{1,300})\]"
    r"|(?:image|video|audio|kbd|btn|menu|icon|footnote):{1,2}[^\s\[]{0,300}\[([^\]]{0,300})\]"
    r"|\[\[[^\[\]]{0,100}\]\]|\(\(\([^()]{0,100}\)\)\))"
)
QUOTE = re.compile(r"(?<![\w\\])(\*\*?|__?|``?|##?)(?=\S)(.{1,300}?)(?<=\S)\1(?!\w)")
DROPPED = re.compile(
    r"(?://(?!/).*|include::.*|ifn?def::.*|ifeval::.*|endif::.*|toc::.*|<<<|'{3,})"
)
ADMONITIONS = re.compile(r"\[(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]")
MOST_COLUMNS = 200


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline from a text in any encoding."""
    _AsciiDoc(outline).read(clean(decode(data)).split("\n"))


class _AsciiDoc:
    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        self.attributes: dict[str, str] = {}
        self.paragraph: list[str] = []
        self.style = ""  # of the block that follows

    def read(self, lines: list[str]) -> None:
        rest = iter(lines)
        for line in rest:
            self._line(line.rstrip(), rest)
        self._flush()

    def _line(self, line: str, rest: Iterator[str]) -> None:
        attribute = ATTRIBUTE.fullmatch(line)
        if not line or line == "+" or DROPPED.fullmatch(line) or attribute:
            self._flush()
            if attribute:
                self.attributes[attribute[1]] = attribute[2] or ""
            return
        if not self._is_block(line, rest):
            self.paragraph.append(line.strip())

    def _is_block(self, line: str, rest: Iterator[str]) -> bool:
        heading, fence = HEADING.fullmatch(line), FENCE.fullmatch(line)
        if heading and not self.paragraph:
            self.outline.heading(len(heading[1]), self._plain(heading[2]))
        elif TABLE.fullmatch(line):
            self._flush()
            self._table(line, rest)
        elif fence and not line.startswith("//"):
            self._flush()
            if line.startswith(CODE):
                self._code(line, rest)
        elif fence:
            _until(line, rest)
        elif STYLE.fullmatch(line) and not self.paragraph:
            self.style = line
            self.paragraph += [f"{kind.capitalize()}:" for kind in ADMONITIONS.findall(line)]
        elif CAPTION.fullmatch(line) and not self.paragraph:
            self.outline.paragraph(self._plain(line[1:]))
        else:
            return self._is_entry(line)
        return True

    def _is_entry(self, line: str) -> bool:
        entry = ENTRY.fullmatch(line.strip())
        term = TERM.fullmatch(line) if not entry and not self.paragraph else None
        if entry:
            self._flush()
            depth = len(entry[1]) - 1 if entry[1][0] in "*." else 0
            self.outline.entry(self._plain(entry[2]), depth=min(depth, 5), mark="-")
        elif term:
            text = f"{term[1]}: {term[2]}" if term[2] else f"{term[1]}:"
            self.paragraph.append(text)
        return bool(entry or term)

    def _flush(self) -> None:
        if self.paragraph:
            self.outline.paragraph(self._plain(" ".join(self.paragraph)))
        self.paragraph = []

    def _code(self, fence: str, rest: Iterator[str]) -> None:
        end = "```" if fence.startswith("```") else fence
        self.outline.code("\n".join(_until(end, rest)))

    def _table(self, fence: str, rest: Iterator[str]) -> None:
        lines = _until(fence, rest)
        separated = csv.reader(lines, delimiter=fence[0])
        rows = filter(None, separated) if fence[0] in ",:" else _cells(lines, self.style)
        self.style = ""
        if cells := [list(map(self._plain, row)) for row in rows]:
            self.outline.table(cells)

    def _plain(self, text: str) -> str:
        text = USED.sub(lambda match: self.attributes.get(match[1], match[0]), text)
        text = MACRO.sub(lambda match: next(filter(None, match.groups()), ""), text)
        return QUOTE.sub(r"\2", QUOTE.sub(r"\2", text))


def _until(fence: str, rest: Iterator[str]) -> list[str]:
    return list(takewhile(lambda line: line.rstrip() != fence, rest))


def _cells(lines: list[str], style: str) -> list[list[str]]:
    """Rows by the number of columns that is stated, else that of the first line."""
    cells: list[str] = []
    width = _stated_columns(style)
    for line in lines:
        parts = [part.strip() for part in CELL.split(line)]
        if len(parts) == 1:  # more of the cell before
            if cells and parts[0]:
                cells[-1] = f"{cells[-1]} {parts[0]}".strip()
            continue
        cells.extend(parts[1:])
        width = width or len(cells)
    width = width or len(cells) or 1
    return [cells[position : position + width] for position in range(0, len(cells), width)]


def _stated_columns(style: str) -> int:
    match = COLUMNS.search(style)
    if not match:
        return 0
    stated = next(filter(None, match.groups()), "").split(",")
    times = (re.match(r"(\d{1,3})\*", part.strip()) for part in stated)
    return min(sum(int(count[1]) if count else 1 for count in times), MOST_COLUMNS)

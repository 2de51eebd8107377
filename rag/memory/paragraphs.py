"""A message as paragraphs in their setting: the unit that is remembered, never a fragment.

A short message is one paragraph. A longer one is cut between its paragraphs, lists, tables and
blocks of code; what is too long itself between entries, rows, lines or sentences. Each part knows
what it cannot be understood without: its headings, the line that leads in, the head of its table.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rag.citations.markers import cited_numbers, find_markers, neutralise
from rag.citations.scanner import Marker
from rag.seams import TokenCounter
from rag.text.layout import ENTRY, Kind, Lines, leads_in
from rag.text.sentences import split_sentences

USUAL = 600  # bytes of UTF-8, some 150 tokens: as much is one paragraph
LONGEST = 900  # what is longer is cut
HARD = 4_000  # characters of what has no place to cut
MOST_SETTING = 400  # characters of lead-in
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_RULE = re.compile(r"[ \t]*(?:=+|-{2,})[ \t]*$")
_BOLD = re.compile(r"[ \t]*(\*\*|__)[^*_\n]{1,80}\1[ \t]*[:：]?[ \t]*$")
_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})")
_BETWEEN = re.compile(r"[\s.!?,;:。*_)\]]*")
_BOLD_LEVEL = 7  # a line in bold stands below all headings


@dataclass(frozen=True, eq=False, slots=True)
class Paragraph:
    """A stretch of a message, word for word, with what it cannot be understood without."""

    message: int
    place: int  # among those of its message
    text: str
    setting: str = ""  # lines that stand before it
    numbers: tuple[int, ...] = ()  # in it, or in its setting
    behind: tuple[int, ...] = ()  # at the end of what it is a part of, where it has none itself
    tokens: int = 0  # of all that is shown of it

    @property
    def shown(self) -> str:
        """What is sent of it; ends its line."""
        marks = "".join(f"[{number}]" for number in self.behind)
        lines = (self.setting, self.text, f"(at the end: {marks})" if marks else "")
        return "".join(f"{line}\n" for line in lines if line)


def read_paragraphs(
    message: int, text: str, count: TokenCounter, markers: Sequence[Marker] | None = None
) -> list[Paragraph]:
    """The paragraphs of a message in canonical spelling; `markers` are those that count in it."""
    markers = find_markers(text) if markers is None else markers
    found: list[Paragraph] = []
    for part in _parts(text):
        made = _paragraph(message, len(found), text, part, markers)
        tokens = count(made.shown)
        found.append(
            Paragraph(
                message, made.place, made.text, made.setting, made.numbers, made.behind, tokens
            )
        )
    return found


def _paragraph(
    message: int, place: int, text: str, part: "_Part", markers: Sequence[Marker]
) -> Paragraph:
    """Alone, a stretch may be read otherwise than where it stands: then no marker of it counts."""
    said, setting = part.text(text), "\n".join(part.setting)
    there = {n for each in markers if part.start <= each.start < part.end for n in each.numbers}
    if not set(cited_numbers(said)) <= there:
        said = neutralise(said)
    if not set(cited_numbers(setting)) <= {n for each in markers for n in each.numbers}:
        setting = neutralise(setting)
    own = tuple(cited_numbers(f"{setting}\n{said}"))
    behind = () if own else _behind(text, part, markers)
    return Paragraph(message, place, said, setting, own, behind)


def _behind(text: str, part: "_Part", markers: Sequence[Marker]) -> tuple[int, ...]:
    """The numbers that close the paragraph, else the message, where it has no others."""
    for start, end in ((part.whole[0], part.whole[1]), (0, len(text))):
        own = [each for each in markers if start <= each.start < end]
        ends = [each.end for each in own]
        starts = [*(each.start for each in own[1:]), len(text[:end].rstrip())]
        if own and all(_BETWEEN.fullmatch(text[a:b]) for a, b in zip(ends, starts, strict=True)):
            return tuple(dict.fromkeys(n for each in own for n in each.numbers))
        if own:
            return ()
    return ()


# ── Where a message is cut ───────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Part:
    """`text[start:end]` of a message; `whole` is what it is a part of."""

    start: int
    end: int
    kind: Kind
    path: tuple[str, ...] = ()
    setting: tuple[str, ...] = ()
    whole: tuple[int, int] = (0, 0)
    fence: tuple[str, str] = ("", "")  # that opens and closes what was cut out of a block of code

    def text(self, message: str) -> str:
        said = message[self.start : self.end].strip("\n").rstrip()
        return "\n".join(filter(None, (self.fence[0], said, self.fence[1])))


def size(text: str) -> int:
    """Bytes, which tell the tokens of any script."""
    return len(text.encode("utf-8", "replace"))


def _parts(text: str) -> list[_Part]:
    if size(text) <= USUAL and not _is_open(text) and text[:1] not in " \t":
        whole = (0, len(text))
        return [_Part(*whole, "sentence", whole=whole)] if text.strip() else []
    cut = [part for block in _joined(text, _blocks(text)) for part in _cut(text, block)]
    parts: list[_Part] = []
    for part in cut:
        last = parts[-1] if parts else None
        if last and _belong_together(text, last, part):
            last.end, last.whole = part.end, (last.start, part.end)
        else:
            parts.append(part)
    return parts


def _is_open(text: str) -> bool:
    """Whether a block of code does not end in it."""
    return (
        len(_FENCE.findall("\n".join(line for line in text.split("\n") if _FENCE.match(line)))) % 2
        == 1
    )


def _belong_together(text: str, one: _Part, other: _Part) -> bool:
    apart = any(one.fence + other.fence) or one.whole == other.whole
    return not apart and one.setting == other.setting and size(text[one.start : other.end]) <= USUAL


def _blocks(text: str) -> Iterator[_Part]:
    """Stretches of lines of one kind, each with the headings that it stands under."""
    return _Reader(text).blocks()


class _Reader:
    """Walks over the lines of a text and remembers headings and the block that is begun."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._path: list[tuple[int, str]] = []
        self._begun: _Part | None = None
        self._bare: tuple[int, int, int] | None = None  # a heading with nothing under it, its level
        self._is_blank = False  # the line before

    def blocks(self) -> Iterator[_Part]:
        lines = Lines()
        for found in _LINE.finditer(self._text):
            line = found[0].rstrip("\n")
            kind = lines.kind(line)
            if kind != "code" and not line.strip():
                self._is_blank = True
                continue
            yield from self._line(kind, line, *found.span())
            self._is_blank = False
        if self._begun:
            yield self._begun
        yield from self._bare_heading(0)

    def _bare_heading(self, level: int) -> Iterator[_Part]:
        """The last heading, if there is nothing under it but one of this level."""
        if self._bare and level <= self._bare[2]:
            start, end, _ = self._bare
            yield _Part(start, end, "sentence", tuple(name for _, name in self._path[:-1]))
        self._bare = None

    def _line(self, kind: Kind, line: str, start: int, end: int) -> Iterator[_Part]:
        begun, level = self._begun, _level(kind, line)
        if self._underlines(kind, line) and begun:
            heading = self._text[begun.start : begun.end].strip()
            self._path = _under(self._path, 1 if "=" in line else 2, heading)
            self._begun = None
            return
        if not level and begun and _continues(begun.kind, kind, line, is_blank=self._is_blank):
            begun.end = end
            return
        if begun:
            yield begun
        if level:
            yield from self._bare_heading(level)
            self._bare = (start, end, level)
            self._path = _under(self._path, level, line.strip().strip("#*_: ：>"))
            self._begun = None
        else:
            self._bare = None
            of = "row" if kind in ("rule", "head") and "|" in line else kind
            self._begun = _Part(start, end, of, tuple(name for _, name in self._path))

    def _underlines(self, kind: Kind, line: str) -> bool:
        """Whether a rule makes a heading of the one line before it."""
        begun = self._begun
        if kind != "rule" or begun is None or begun.kind != "sentence" or self._is_blank:
            return False
        is_one = "\n" not in self._text[begun.start : begun.end].strip("\n")
        return is_one and bool(_RULE.match(line))


def _level(kind: Kind, line: str) -> int:
    """Of a heading; 0 of any other line."""
    if kind == "heading":
        bare = line.lstrip(" \t>")
        return len(bare) - len(bare.lstrip("#"))
    return _BOLD_LEVEL if kind == "sentence" and _BOLD.match(line) else 0


def _under(path: Sequence[tuple[int, str]], level: int, name: str) -> list[tuple[int, str]]:
    return [*(each for each in path if each[0] < level), (level, name)]


def _continues(block: Kind, kind: Kind, line: str, *, is_blank: bool) -> bool:
    """Whether a line goes on with a block; a list does so behind blank lines, too."""
    if block == "entry":
        return kind == "entry" or line[0] in " \t" or (not is_blank and kind == "sentence")
    if block == "row":
        return kind in ("row", "rule", "head") and not is_blank
    if block == "code":
        return kind == "code"
    return kind == block and not is_blank


def _joined(text: str, blocks: Iterable[_Part]) -> Iterator[_Part]:
    """The blocks, each with its headings and the paragraph that leads in as its setting."""
    leading: _Part | None = None
    for block in blocks:
        block.whole = (block.start, block.end)
        block.setting = (" › ".join(filter(None, block.path)),) if any(block.path) else ()
        said = text[block.start : block.end].strip()
        leads = (*leading.setting, text[leading.start : leading.end].strip()) if leading else ()
        is_short = sum(map(len, leads[len(block.setting) :])) <= MOST_SETTING
        if leading and leading.path == block.path and is_short:
            block.setting = leads
        elif leading:
            yield leading
        leading = block if block.kind == "sentence" and leads_in(said) else None
        if leading is None:
            yield block
    if leading:
        yield leading


def _cut(text: str, block: _Part) -> Iterator[_Part]:
    """A block whole, or in pieces that have its setting."""
    said = text[block.start : block.end]
    opening = _FENCE.match(said) if block.kind == "code" else None
    if size(said) <= LONGEST:
        if block.kind == "code":
            block.fence = _fence_of(said, opening)
        yield block
        return
    head: tuple[str, ...] = ()
    at, end = block.start, block.end
    lines = [found.span() for found in _LINE.finditer(text, block.start, block.end)]
    if opening:
        closing = opening[1]
        fence = (text[slice(*lines[0])].rstrip("\n"), closing)
        last = text[slice(*lines[-1])].strip(" \t>\n")
        body = lines[1:-1] if len(lines) > 1 and last and not last.strip(closing[0]) else lines[1:]
        pieces: Iterable[tuple[int, int]] = body or lines
    elif block.kind == "code":
        fence, pieces = _fence_around(said), lines
    elif block.kind == "row":
        fence, kinds = ("", ""), [set(text[a:b].strip()) <= set("|:- \t") for a, b in lines]
        top = 2 if len(lines) > 2 and kinds[1] else 0
        head, pieces = tuple(text[a:b].rstrip() for a, b in lines[:top]), lines[top:]
    elif block.kind == "entry":
        yield from _entries(text, block, lines)
        return
    else:
        fence, pieces = ("", ""), _sentences(text, at, end)
    for start, stop in _packed(text, pieces):
        setting = block.setting + head
        yield _Part(start, stop, block.kind, block.path, setting, block.whole, fence)


def _fence_of(code: str, opening: re.Match[str] | None) -> tuple[str, str]:
    """What a whole block of code lacks to stay code anywhere."""
    if opening is None:
        return _fence_around(code)
    return "", opening[1] if _is_open(code) else ""


def _fence_around(code: str) -> tuple[str, str]:
    """One that nothing in the code closes."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return fence, fence


def _entries(text: str, block: _Part, lines: Sequence[tuple[int, int]]) -> Iterator[_Part]:
    """The entries of a list, those of a nested one with the entries that they stand under."""
    starts = [a for a, b in lines if ENTRY.match(text[a:b])] or [block.start]
    over: list[tuple[int, str]] = []
    found: list[tuple[int, int, tuple[str, ...]]] = []
    for start, stop in pairwise([*starts, block.end]):
        first = text[start:stop].split("\n", 1)[0]
        indent = len(first) - len(first.lstrip())
        over = [each for each in over if each[0] < indent]
        found += [
            (a, b, tuple(t for _, t in over)) for a, b in _sentences_if_long(text, start, stop)
        ]
        over.append((indent, first[:MOST_SETTING]))
    at = 0
    while at < len(found):
        start, stop, parents = found[at]
        at += 1
        while (
            at < len(found)
            and size(text[start : found[at][1]]) <= USUAL
            and (found[at][2] == parents or len(found[at][2]) > len(parents))
        ):
            stop, at = found[at][1], at + 1
        yield _Part(start, stop, "entry", block.path, block.setting + parents, block.whole)


def _sentences_if_long(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    if size(text[start:stop]) <= LONGEST:
        yield start, stop
    else:
        yield from _packed(text, _sentences(text, start, stop))


def _sentences(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Sentences, and what is no sentence in stretches that are not too long."""
    for span in split_sentences(text[start:stop]):
        at, end = start + span.start, start + span.end
        while end - at > HARD:
            blank = text.rfind(" ", at + HARD // 2, at + HARD)
            cut = blank if blank > 0 else at + HARD
            yield at, cut
            at = cut
        yield at, end


def _packed(text: str, pieces: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Neighbouring pieces together, up to the usual size."""
    begun: tuple[int, int] | None = None
    for start, stop in pieces:
        if begun and size(text[begun[0] : stop]) <= USUAL:
            begun = (begun[0], stop)
            continue
        if begun:
            yield begun
        begun = (start, stop)
    if begun:
        yield begun

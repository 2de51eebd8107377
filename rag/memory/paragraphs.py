"""A message as paragraphs in their setting: the unit that is remembered, never a fragment.

A short message is one paragraph. A longer one is cut between its paragraphs, lists, tables and
blocks of code; what is too long itself between entries, rows, lines or sentences. Each part knows
what it cannot be understood without: its headings, the line that leads in, the head of its table.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rag.citations.markers import cited_numbers, find_markers, neutralise
from rag.citations.scanner import Marker
from rag.seams import TokenCounter
from rag.text.layout import ENTRY, LineKind, Lines, leads_in
from rag.text.sentences import split_sentences

USUAL = 600  # bytes of UTF-8, some 150 tokens: as much is one paragraph
LONGEST = 900  # what is longer is cut
HARD = 4_000  # characters of what has no place to cut
MOST_SETTING = 400  # characters of lead-in
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_UNDERLINE = re.compile(r"[ \t]*(?:=+|-{2,})[ \t]*$")
_BOLD = re.compile(r"[ \t]*(\*\*|__)[^*_\n]{1,80}\1[ \t]*[:：]?[ \t]*$")
_FENCE = re.compile(r"^[ \t>]*(?:`{3,}|~{3,})(.*)", re.MULTILINE)
_NAME = re.compile(r"^[\s#*_:：>]+|[\s#*_:：>=-]+$")  # what is no part of a heading's name
_BETWEEN = re.compile(r"[\s.!?,;:。*_)\]]*")
_BOLD_LEVEL, _LEADING, _TEXT = 7, 8, 9  # below all headings; what leads in; what is no heading


@dataclass(frozen=True, eq=False, slots=True)
class Paragraph:
    """A stretch of a message, word for word, with what it cannot be understood without."""

    message: int
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
    made = (_paragraph(message, text, part, markers) for part in _parts(text))
    return [replace(each, tokens=count(each.shown)) for each in made]


def _paragraph(message: int, text: str, part: "_Part", markers: Sequence[Marker]) -> Paragraph:
    """Alone, a stretch may be read otherwise than where it stands: then no marker of it counts."""
    said, setting = part.text(text), "\n".join(part.setting)
    there = {n for each in markers if part.start <= each.start < part.end for n in each.numbers}
    if not set(cited_numbers(said)) <= there:
        said = neutralise(said)
    if not set(cited_numbers(setting)) <= {n for each in markers for n in each.numbers}:
        setting = neutralise(setting)
    own = tuple(cited_numbers(f"{setting}\n{said}"))
    return Paragraph(message, said, setting, own, () if own else _behind(text, part, markers))


def _behind(text: str, part: "_Part", markers: Sequence[Marker]) -> tuple[int, ...]:
    """The numbers that close the paragraph, else the message, where it has no others."""
    for start, end in (part.whole, (0, len(text))):
        own = [each for each in markers if start <= each.start < end]
        ends = [each.end for each in own]
        starts = [*(each.start for each in own[1:]), len(text[:end].rstrip())]
        if own:
            closing = all(_BETWEEN.fullmatch(text[a:b]) for a, b in zip(ends, starts, strict=True))
            return tuple(dict.fromkeys(n for each in own for n in each.numbers if closing))
    return ()


# ── Where a message is cut ───────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Part:
    """`text[start:end]` of a message; `whole` is what it is a part of."""

    start: int
    end: int
    kind: LineKind
    level: int = _TEXT
    setting: tuple[str, ...] = ()
    whole: tuple[int, int] = (0, 0)
    fence: tuple[str, str] = ("", "")  # that opens and closes a block of code
    is_used: bool = False  # as the setting of another one

    def text(self, message: str) -> str:
        said = message[self.start : self.end].strip("\n").rstrip()
        return "\n".join(filter(None, (self.fence[0], said, self.fence[1])))


def size(text: str) -> int:
    """Bytes, which tell the tokens of any script."""
    return len(text.encode("utf-8", "replace"))


def _parts(text: str) -> list[_Part]:
    is_open = len(_FENCE.findall(text)) % 2 == 1 or text[:1] in " \t"
    if size(text) <= USUAL and not is_open:
        return [_Part(0, len(text), "sentence", whole=(0, len(text)))] if text.strip() else []
    parts: list[_Part] = []
    for part in (cut for block in _settled(text, _blocks(text)) for cut in _cut(text, block)):
        last = parts[-1] if parts else None
        if last and _belong_together(text, last, part):
            last.end, last.whole = part.end, (last.start, part.end)
        else:
            parts.append(part)
    return parts


def _belong_together(text: str, one: _Part, other: _Part) -> bool:
    apart = any(one.fence + other.fence) or one.whole == other.whole
    return not apart and one.setting == other.setting and size(text[one.start : other.end]) <= USUAL


def _blocks(text: str) -> Iterator[_Part]:
    """Stretches of lines of one kind; a heading is one of its own."""
    lines, begun, is_blank = Lines(), None, False
    for found in _LINE.finditer(text):
        line = found[0].rstrip("\n")
        kind = lines.kind(line)
        if kind != "code" and not line.strip():
            is_blank = True
            continue
        level = _level(kind, line)
        if begun and not is_blank and _is_underlined(text, begun, line):
            begun.level = 1 if "=" in line else 2
        elif begun and level == begun.level == _TEXT and _goes_on(begun.kind, kind, line, is_blank):
            begun.end = found.end()
        else:
            if begun:
                yield begun
            of = "row" if kind in ("rule", "head") and "|" in line else kind
            begun = _Part(*found.span(), of, level)
        is_blank = False
    if begun:
        yield begun


def _is_underlined(text: str, begun: _Part, line: str) -> bool:
    """Whether a line makes a heading of the one before it."""
    is_one = "\n" not in text[begun.start : begun.end].strip("\n")
    return begun.kind == "sentence" and is_one and bool(_UNDERLINE.match(line))


def _level(kind: LineKind, line: str) -> int:
    if kind == "heading":
        bare = line.lstrip(" \t>")
        return len(bare) - len(bare.lstrip("#"))
    return _BOLD_LEVEL if kind == "sentence" and _BOLD.match(line) else _TEXT


def _goes_on(block: LineKind, kind: LineKind, line: str, is_blank: bool) -> bool:
    """Whether a line goes on with a block; a list does so behind blank lines, too."""
    if block == "entry":
        return kind == "entry" or line[0] in " \t" or (not is_blank and kind == "sentence")
    if block == "row":
        return kind in ("row", "rule", "head") and not is_blank
    return kind == block and (kind == "code" or not is_blank)


def _settled(text: str, blocks: Iterable[_Part]) -> Iterator[_Part]:
    """The blocks in their setting: headings, and what leads in. These alone if nothing follows."""
    over: list[_Part] = []
    for block in blocks:
        said = text[block.start : block.end].strip()
        if block.kind == "sentence" and leads_in(said) and len(said) <= MOST_SETTING:
            block.level = min(block.level, _LEADING)
        kept = [each for each in over if each.level < block.level]
        yield from (each for each in over[len(kept) :] if not each.is_used)
        for each in kept:
            each.is_used = True
        names = [_NAME.sub("", each.text(text)) for each in kept if each.level < _LEADING]
        leading = [each.text(text).strip() for each in kept if each.level == _LEADING]
        block.setting = tuple(filter(None, (" › ".join(filter(None, names)), *leading)))
        block.whole = (block.start, block.end)
        over = [each for each in kept if each.level < _LEADING]
        if block.level < _TEXT:
            over.append(block)
        else:
            yield block
    yield from (each for each in over if not each.is_used)


def _cut(text: str, block: _Part) -> Iterator[_Part]:
    """A block whole, or in pieces that have its setting."""
    lines = [found.span() for found in _LINE.finditer(text, block.start, block.end)]
    if block.kind == "code":
        lines = _fenced(text, block, lines)
    if size(text[block.start : block.end]) <= LONGEST:
        yield block
        return
    head: tuple[str, ...] = ()
    pieces: Iterable[_Piece] = ((start, end, ()) for start, end in lines)
    if block.kind == "row":
        top = 2 if len(lines) > 2 and set(text[slice(*lines[1])].strip()) <= set("|:- \t") else 0
        head = tuple(text[a:b].rstrip() for a, b in lines[:top])
        pieces = ((start, end, ()) for start, end in lines[top:])
    elif block.kind == "entry":
        pieces = _entries(text, block, lines)
    elif block.kind != "code":
        pieces = ((start, end, ()) for start, end in _sentences(text, block.start, block.end))
    for start, end, over in _packed(text, pieces):
        yield replace(block, start=start, end=end, setting=block.setting + head + over)


def _fenced(text: str, block: _Part, lines: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The lines of a block of code, and around it a fence that nothing in it closes."""
    opening = _FENCE.match(text[block.start : block.end])
    if opening:
        is_closed = len(lines) > 1 and _FENCE.fullmatch(text[slice(*lines[-1])].rstrip("\n"))
        lines = lines[1 : -1 if is_closed else None]
        block.start, block.end = (lines[0][0], lines[-1][1]) if lines else (block.end, block.end)
    runs = re.findall("`+", text[block.start : block.end])
    fence = "`" * max([3, *(len(run) + 1 for run in runs)])
    block.fence = f"{fence}{opening[1].strip() if opening else ''}", fence
    return lines


_Piece = tuple[int, int, tuple[str, ...]]  # from, to, and the entries that it stands under


def _entries(text: str, block: _Part, lines: Sequence[tuple[int, int]]) -> list[_Piece]:
    """The entries of a list, those of a nested one with the entries that they stand under."""
    starts = [a for a, b in lines if ENTRY.match(text[a:b])] or [block.start]
    over: list[tuple[int, str]] = []
    found: list[_Piece] = []
    for start, stop in pairwise([*starts, block.end]):
        first = text[start:stop].split("\n", 1)[0]
        indent = len(first) - len(first.lstrip())
        over = [each for each in over if each[0] < indent]
        is_long = size(text[start:stop]) > LONGEST
        cut = _sentences(text, start, stop) if is_long else [(start, stop)]
        found += [(a, b, tuple(name for _, name in over)) for a, b in cut]
        over.append((indent, first[:MOST_SETTING]))
    return found


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


def _packed(text: str, pieces: Iterable[_Piece]) -> Iterator[_Piece]:
    """Neighbouring pieces together, up to the usual size; an entry with those under it."""
    begun: _Piece | None = None
    for piece in pieces:
        fits = begun and size(text[begun[0] : piece[1]]) <= USUAL
        if begun and fits and piece[2][: len(begun[2])] == begun[2]:
            begun = (begun[0], piece[1], begun[2])
            continue
        if begun:
            yield begun
        begun = piece
    if begun:
        yield begun

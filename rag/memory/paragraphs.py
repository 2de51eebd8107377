"""A message as paragraphs in their setting: the unit that is remembered, never a fragment.

A short message is one paragraph. A longer one is cut between its paragraphs, lists, tables and
blocks of code; what is too long itself between entries, rows, lines or sentences. Each part knows
what it cannot be understood without: its headings, the line that leads in, the head of its table,
the entries that it stands under.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rag.citations.markers import cited_numbers, find_markers, neutralise
from rag.citations.scanner import Marker
from rag.language.sentences import LineKind, Sentence, leads_in, read_sentences
from rag.seams import TokenCounter

USUAL = 600  # bytes of UTF-8, some 150 tokens: as much is one paragraph
LONGEST = 900  # what is longer is cut
MOST_SETTING = 400  # characters of one line that stands over others
_STRETCH = re.compile(r".{1,4000}(?:\s|\Z)|.{1,4000}", re.DOTALL)  # of what has no end
_UNDERLINE = re.compile(r"=+|-{2,}")
_BOLD = re.compile(r"(\*\*|__)[^*_\n]{1,80}\1[ \t]*[:：]?")
_FENCE = re.compile(r"^[ \t>]*(?:`{3,}|~{3,})", re.MULTILINE)
_FENCES = re.compile(r"\A[ \t>]*(?:`{3,}|~{3,}).*\n?|\n?[ \t>]*(?:`{3,}|~{3,})[ \t]*\Z")
_NAME = re.compile(r"^[\s#*_:：>]+|[\s#*_:：>=-]+$")  # what is no part of a heading's name
_BETWEEN = re.compile(r"[\s.!?,;:。*_)\]]*")
_BOLD_LEVEL, _LEADING, _TEXT, _ENTRY = 7, 8, 9, 10  # below headings; what leads in; no heading
_TABLE = ("head", "row", "rule")


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
        lines = (self.setting, self.text, f"(… {marks})" if marks else "")
        return "".join(f"{line}\n" for line in lines if line)


def read_paragraphs(
    message: int, text: str, count: TokenCounter, markers: Sequence[Marker] | None = None
) -> list[Paragraph]:
    """The paragraphs of a message in canonical spelling; `markers` are those that count in it."""
    markers = find_markers(text) if markers is None else markers
    paragraphs = (_paragraph(message, text, part, markers) for part in _parts(text))
    return [replace(paragraph, tokens=count(paragraph.shown)) for paragraph in paragraphs]


def _paragraph(
    message: int, text: str, part: "_ParagraphPart", markers: Sequence[Marker]
) -> Paragraph:
    """Alone, a stretch may be read otherwise than where it stands: then no marker of it counts."""
    words, setting = part.text(text), part.setting
    there = {
        n for marker in markers if part.start <= marker.start < part.end for n in marker.numbers
    }
    if not set(cited_numbers(words)) <= there:
        words = neutralise(words)
    if not set(cited_numbers(setting)) <= {n for marker in markers for n in marker.numbers}:
        setting = neutralise(setting)
    numbers = tuple(cited_numbers(f"{setting}\n{words}"))
    behind = () if numbers else _behind(text, part, markers)
    return Paragraph(message, words, setting, numbers, behind)


def _behind(text: str, part: "_ParagraphPart", markers: Sequence[Marker]) -> tuple[int, ...]:
    """The numbers that close the paragraph, else the message, where it has no others."""
    for start, end in (part.whole, (0, len(text))):
        inside = [marker for marker in markers if start <= marker.start < end]
        ends = [marker.end for marker in inside]
        starts = [*(marker.start for marker in inside[1:]), len(text[:end].rstrip())]
        if inside:
            closing = all(_BETWEEN.fullmatch(text[a:b]) for a, b in zip(ends, starts, strict=True))
            return tuple(dict.fromkeys(n for marker in inside for n in marker.numbers if closing))
    return ()


# ── Where a message is cut ───────────────────────────────────────────────────────────────────

_Over = tuple[int, int, str]  # a line that others stand under: its level, where it begins, itself


@dataclass(slots=True)
class _ParagraphPart:
    """`text[start:end]` of a message; `whole` is what it is a part of."""

    start: int
    end: int
    kind: LineKind
    over: tuple[_Over, ...]
    whole: tuple[int, int]
    is_over: bool = False  # nothing but lines that others stand under

    @property
    def setting(self) -> str:
        names = (_NAME.sub("", line) for level, _, line in self.over if level < _LEADING)
        leading = (line.rstrip() for level, _, line in self.over if level >= _LEADING)
        return "\n".join(filter(None, (" › ".join(filter(None, names)), *leading)))

    def text(self, message: str) -> str:
        """Code in a fence of its own, wherever it was cut, that nothing in it closes."""
        words = message[self.start : self.end].strip("\n").rstrip()
        if self.kind != "code":
            return words
        bare = _FENCES.sub("", words)
        fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", bare))])
        return f"{fence}\n{bare}\n{fence}" if bare else ""


def size(text: str) -> int:
    """Bytes, which tell the tokens of any script."""
    return len(text.encode("utf-8", "replace"))


def _parts(text: str) -> list[_ParagraphPart]:
    is_open = len(_FENCE.findall(text)) % 2 == 1 or text[:1] in " \t"
    whole = (0, len(text))
    if size(text) <= USUAL and not is_open:
        return [_ParagraphPart(*whole, "sentence", (), whole)] if text.strip() else []
    over: list[_Over] = []
    parts: list[_ParagraphPart] = []
    for block in _blocks(text):
        level = _level(text, block)
        over = [head for head in over if head[0] < level]
        for part in _cut(text, block, tuple(over)):
            part.is_over = level < _TEXT
            _put(text, parts, part)
        over = [head for head in over if head[0] < _LEADING]  # what leads in leads to one block
        if level < _TEXT:
            line = text[block[0].start : block[-1].end]
            over.append((level, _begin(text, block[0]), line[:MOST_SETTING]))
    return parts


def _put(text: str, parts: list[_ParagraphPart], part: _ParagraphPart) -> None:
    """With the last one if both fit; a heading alone is no part where something is under it."""
    last = parts[-1] if parts else part
    is_cut = last.whole == part.whole
    is_under = part.over[: len(last.over)] == last.over
    fits = is_under and size(text[last.start : part.end]) <= USUAL and not part.is_over
    if last is not part and fits and (is_cut or "code" not in (last.kind, part.kind)):
        last.whole = last.whole if is_cut else (last.start, part.end)
        last.end, last.is_over = part.end, False
    elif last.is_over and last.start in [start for _, start, _ in part.over]:
        parts[-1] = part
    else:
        parts.append(part)


def _blocks(text: str) -> Iterator[list[Sentence]]:
    """Paragraphs, lists, tables, blocks of code; a heading is one of its own."""
    block: list[Sentence] = []
    for sentence in read_sentences(text):
        if block and not _goes_on(text, block, sentence):
            yield block
            block = []
        block.append(sentence)
    if block:
        yield block


def _goes_on(text: str, block: list[Sentence], unit: Sentence) -> bool:
    """Whether a sentence, entry, row or line belongs to a block."""
    kind, gap = block[0].kind, text[block[-1].end : unit.start]
    is_next = gap.count("\n") <= 1
    if kind == "entry":
        is_indented = gap.endswith((" ", "\t"))
        return unit.kind == "entry" or is_indented or (is_next and unit.kind == "sentence")
    if kind in _TABLE or kind == "code":
        return unit.kind == "code" if kind == "code" else unit.kind in _TABLE and is_next
    words = text[block[0].start : block[-1].end]
    if unit.kind == "rule":
        is_line = kind == "sentence" and "\n" not in words
        return is_next and is_line and bool(_UNDERLINE.fullmatch(text, unit.start, unit.end))
    is_bold = _BOLD.fullmatch(words) or _BOLD.fullmatch(text, unit.start, unit.end)
    return is_next and not is_bold and kind == unit.kind == "sentence" and block[-1].kind == kind


def _level(text: str, block: list[Sentence]) -> int:
    """Of a heading, or of what leads in."""
    words = text[block[0].start : block[-1].end]
    if block[0].kind == "heading":
        bare = words.lstrip(" \t>")
        return len(bare) - len(bare.lstrip("#"))
    if block[0].kind != "sentence":
        return _TEXT
    if block[-1].kind == "rule":
        return 1 if words.endswith("=") else 2
    leads = _LEADING if leads_in(words) and len(words) <= MOST_SETTING else _TEXT
    return _BOLD_LEVEL if _BOLD.fullmatch(words) else leads


def _cut(text: str, block: list[Sentence], over: tuple[_Over, ...]) -> Iterator[_ParagraphPart]:
    """A block whole, or in pieces under the head of their table, or the entries above."""
    whole, kind = (_begin(text, block[0]), block[-1].end), block[0].kind
    if size(text[slice(*whole)]) <= LONGEST:
        yield _ParagraphPart(*whole, kind, over, whole)
        return
    above: list[_Over] = []
    for group in _groups(block):
        start, end, first = _begin(text, group[0]), group[-1].end, group[0]
        level = _ENTRY + first.start - start
        if first.kind == "entry":
            above = [head for head in above if head[0] < level]
        spans = [(start, end)]
        if size(text[start:end]) > LONGEST:
            every = (_STRETCH.finditer(text, sentence.start, sentence.end) for sentence in group)
            spans = [stretche.span() for stretches in every for stretche in stretches]
        for a, b in spans:
            yield _ParagraphPart(a, b, kind, (*over, *above), whole)
        if first.kind in ("entry", "head"):
            line = text[start : first.end if first.kind == "entry" else end]
            above.append((level, start, line[:MOST_SETTING]))


def _groups(block: list[Sentence]) -> list[list[Sentence]]:
    """Entries with what goes on with them, the head of a table with its rule; else each alone."""
    groups: list[list[Sentence]] = []
    for sentence in block:
        begins = sentence.kind != "rule"
        if block[0].kind == "entry":
            begins = sentence.kind == "entry" and sentence.begins
        if begins or not groups:
            groups.append([])
        groups[-1].append(sentence)
    return groups


def _begin(text: str, unit: Sentence) -> int:
    """Where its line begins, if nothing stands before it there."""
    start = text.rfind("\n", 0, unit.start) + 1
    return unit.start if text[start : unit.start].strip() else start

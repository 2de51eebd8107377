"""Read plain text, under what looks like headings, else by lines; and RTF, subtitles, notebooks."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rag.documents.cleaning import clean, decode
from rag.documents.limits import LoadLimits
from rag.documents.outline import NO_MARKS, Mark, Outline, Run, written
from rag.documents.readers import markdown
from rag.documents.readers.packages import damage_message
from rag.errors import Unreadable

UNDERLINE = re.compile(r"([=\-~^\"'`*+#_:.<>])\1{2,}\s*")
ASCIIDOC_HEADING = re.compile(r"(={1,6}) (\S.*)")
BULLET = re.compile(r"\s*(?:[-*•‣▪◦·]|\(?\d{1,3}[.)])\s+\S")
NUMBERED = re.compile(r"(?:§\s?|[A-Z][A-Za-z]+ )?(\d{1,2})[.):]?\s+[^\W\d_]")  # 3. How to use it
CLAUSE = re.compile(r"\s*\d{1,3}(?:\.\d{1,3})+\.?\s+\S")  # 4.1 Tenants pay for light.
SET_IN = ("  ", "\t")
TITLE_CHARS = 90
LEAD_CHARS = 40
SECTION_LINES = 60  # of a section in a text without headings, located by line numbers


@dataclass(frozen=True, slots=True)
class TextHeading:
    """A heading, and how many lines of its block it takes."""

    level: int
    text: str
    lines: int


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline from plain text in any encoding."""
    lines = clean(decode(data)).split("\n")
    blocks = list(_blocks(lines))
    title = outline.fallback_title = _title(blocks)
    headings = _headings([block for _first, block in blocks])
    if not any(headings):
        _write_by_lines(blocks, outline)
        return
    if title and headings[0] is None:
        outline.heading(1, title)
        del blocks[0][1][0]
    writing = _TextWriting(outline)
    for (_first, block), heading in zip(blocks, headings, strict=True):
        if heading:
            outline.heading(heading.level, heading.text)
        writing.write(block[heading.lines :] if heading else block)


def _headings(blocks: list[list[str]]) -> list[TextHeading | None]:
    """Return each block's heading: by underlines, else by capitals, else by shape."""
    marks: list[str] = []  # underline characters, outermost first
    marked = [_marked_heading(block, marks) for block in blocks]
    if any(marked):
        return marked
    capitals = [_capital_heading(block) for block in blocks[1:]]
    if any(capitals):
        return [None, *capitals]
    if numbered := _numbered_headings(blocks):
        return numbered
    leads = [_lead_heading(block) for block in blocks[1:]]
    return [None, *leads] if sum(map(bool, leads)) > 1 else [None] * len(blocks)


def _write_by_lines(blocks: list[tuple[int, list[str]]], outline: Outline) -> None:
    group: list[tuple[int, list[str]]] = []
    writing = _TextWriting(outline)
    for first, block in [*blocks, (0, [])]:
        if group and (not block or first + len(block) - group[0][0] > SECTION_LINES):
            last, last_block = group[-1]
            outline.place(f"lines {group[0][0]}–{last + len(last_block) - 1}")
            for _first, lines in group:
                writing.write(lines)
            group = []
        group.append((first, block))


def _title(blocks: list[tuple[int, list[str]]]) -> str:
    """Return the first line if it is alone or in capitals, and no sentence; else ""."""
    if len(blocks) < 2:
        return ""
    block = blocks[0][1]
    line = block[0].strip()
    fits = len(line) <= TITLE_CHARS and line[-1] not in ".,;:!?" and not BULLET.match(line)
    return line if fits and (len(block) == 1 or _is_capitals(line)) else ""


def _blocks(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield runs of non-empty lines, with the number of the first, from 1."""
    block: list[str] = []
    for number, line in enumerate([*lines, ""], start=1):
        if line.strip():
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []


def _marked_heading(block: list[str], marks: list[str]) -> TextHeading | None:
    """Return an underlined or AsciiDoc heading; new underline characters are added to `marks`."""
    asciidoc = ASCIIDOC_HEADING.fullmatch(block[0])
    if asciidoc:
        return TextHeading(len(asciidoc.group(1)), asciidoc.group(2), 1)
    over = len(block) > 2 and UNDERLINE.fullmatch(block[0]) and UNDERLINE.fullmatch(block[2])
    lines = block[1:] if over else block
    if len(lines) < 2 or not UNDERLINE.fullmatch(lines[1]) or UNDERLINE.fullmatch(lines[0]):
        return None
    title, line = lines[0].strip(), lines[1].strip()
    if len(title) > 100 or len(line) < len(title) * 0.7:
        return None
    mark = line[0] * 2 if over else line[0]
    if mark not in marks:
        marks.append(mark)
    return TextHeading(marks.index(mark) + 1, title, 3 if over else 2)


def _capital_heading(block: list[str]) -> TextHeading | None:
    line = block[0].strip()
    return TextHeading(2, line, 1) if len(line) <= TITLE_CHARS and _is_capitals(line) else None


def _is_capitals(line: str) -> bool:
    letters = [letter for letter in line if letter.isalpha()]
    # Scripts without case have no capitals.
    return len(letters) > 2 and line == line.upper() != line.lower() and line[-1] not in ".,;!?"


def _numbered_headings(blocks: list[list[str]]) -> list[TextHeading | None]:
    """Find short first lines numbered from 1 that are headings, not entries of a list."""
    results: list[TextHeading | None] = []
    count = over_text = 0
    for block in blocks:
        line = block[0].strip()
        number = NUMBERED.match(line)
        is_next = number is not None and int(number[1]) == count + 1 and line[-1] not in ".,;:!"
        goes_on = len(block) > 1 and (block[1].startswith(SET_IN) or block[1][0].islower())
        is_heading = is_next and not goes_on and len(line) <= TITLE_CHARS
        over_text += is_heading and len(block) > 1
        over_text += not is_heading and bool(results) and results[-1] is not None
        count += is_heading
        results.append(TextHeading(2, line, 1) if is_heading else None)
    return results if count > 2 and over_text > count * 0.7 else []


def _lead_heading(block: list[str]) -> TextHeading | None:
    """Return a heading of a few words above a long line, a list or clauses; else None."""
    line = block[0].strip()
    if len(block) < 2 or len(line) > LEAD_CHARS or len(line.split()) > 6 or line[-1] in ".,;:!?":
        return None
    is_list = BULLET.match(block[1]) or CLAUSE.match(block[1])
    follows = len(block[1]) > LEAD_CHARS * 1.5 or is_list
    starts_well = line[0].isalnum() and not line[0].islower() and not BULLET.match(line)
    return TextHeading(2, line, 1) if follows and starts_well and ":" not in line else None


@dataclass(slots=True)
class _TextWriting:
    """Writes block after block.

    Text indented below `::` is code, as in reStructuredText; also below `:`, unless it is a list or
    ends like a sentence.
    """

    outline: Outline
    before: str = ""  # the last line before the block, or before preceding code

    def write(self, block: list[str]) -> None:
        if not block:
            return
        text = "\n".join(line.rstrip() for line in block)
        has_bullets = any(BULLET.match(line) for line in block)
        is_prose = has_bullets or text[-1] in ".!?"
        is_announced = self.before.endswith(":") and not is_prose
        is_set_in = all(line.startswith(SET_IN) for line in block)
        if is_set_in and (is_announced or self.before.endswith("::")):
            self.outline.code(text)
            return
        self.before = block[-1].rstrip()
        starts = {len(line) - len(line.lstrip()) for line in block}
        if has_bullets or len(starts) > 1:  # as in source code and settings
            self.outline.lines(text)
        else:
            self.outline.paragraph(text.removesuffix(":") if text.endswith("::") else text)


RTF_TOKEN = re.compile(r"\\([a-z]+)(-?\d+)? ?|\\[^a-z]|[{}]")
RTF_MARKS = {
    **{"super": Mark.RAISED, "sub": Mark.LOWERED, "strike": Mark.STRUCK, "striked": Mark.STRUCK},
    **{"v": Mark.HIDDEN, "deleted": Mark.DELETED},
}
RTF_ENDS = {"nosupersub": {Mark.RAISED, Mark.LOWERED}, "plain": {*Mark}}
RTF_UNREAD = re.compile(r"\\(footnote|annotation|header|footer)[lrf]?\b")
RTF_STATES = tuple(
    frozenset(mark for bit, mark in enumerate(Mark) if state >> bit & 1) for state in range(32)
)
FIRST_STATE = 0xE000  # the first private-use character; no text font has them


def read_rtf(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline; pictures, notes and comments are omitted."""
    from striprtf.striprtf import rtf_to_text

    markup = data.decode("latin-1")
    with damage_message(outline.name):
        plain = rtf_to_text(_with_states(markup), errors="replace")  # type: ignore[no-untyped-call]
    runs, marks = [], NO_MARKS
    for piece in re.split(r"([\ue000-\ue01f])", plain):
        if len(piece) == 1 and 0 <= ord(piece) - FIRST_STATE < len(RTF_STATES):
            marks = RTF_STATES[ord(piece) - FIRST_STATE]
        else:
            runs.append(Run(piece, marks))
    outline.count_unseen(runs)
    unread = {part[1] for part in RTF_UNREAD.finditer(markup)}
    outline.left_out += [f"{part}s: not read of RTF" for part in sorted(unread)]
    lines = filter(None, map(str.rstrip, written(runs).split("\n")))
    for is_row, group in groupby(lines, key=lambda line: line.endswith("|")):
        if is_row:
            outline.table([line.removesuffix("|").split("|") for line in group])
        else:
            read("\n\n".join(group).encode(), outline, limits)


def _with_states(rtf: str) -> str:
    """Insert a private-use character wherever the marks change, which striprtf passes on."""
    states = [NO_MARKS]

    def written_again(token: re.Match[str]) -> str:
        before, (word, value) = states[-1], token.groups()
        if token[0] == "{":
            states.append(before)
        elif token[0] == "}" and len(states) > 1:
            states.pop()
        elif word in RTF_MARKS:
            mark = frozenset({RTF_MARKS[word]})
            states[-1] = before - mark if value == "0" else before | mark
        elif word in RTF_ENDS:
            states[-1] = before - RTF_ENDS[word]
        if states[-1] == before:
            return token[0]
        return ("}" if token[0] == "}" else "") + chr(FIRST_STATE + RTF_STATES.index(states[-1]))

    return RTF_TOKEN.sub(written_again, rtf)


SPAN = re.compile(r"((?:\d+:)?\d{1,2}:\d{2})[.,]\d+[ \t]+-->[ \t]+((?:\d+:)?\d{1,2}:\d{2})[.,]\d+")
CUE_MARKUP = re.compile(r"<[^<>\n]{0,200}>")
SPEAKER = re.compile(r"<v(?:\.[\w.]*)?[ \t]+([^<>\n]{1,80})>")
SECTION_SECONDS = 60  # seconds in one section


def read_subtitles(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline with the spoken text."""
    gathered: list[str] = []
    first = last = ""
    for start, end, words in _cues(clean(decode(data))):
        if gathered and _seconds(start) - _seconds(first) >= SECTION_SECONDS:
            _write_cues(outline, first, last, gathered)
            gathered = []
        first, last = (start, end) if not gathered else (first, end)
        if words != (gathered[-1] if gathered else ""):  # rolling captions repeat lines
            gathered.append(words)
    if not first:
        raise Unreadable(outline.name, "there are no times with words (00:01.000 --> 00:04.000).")
    _write_cues(outline, first, last, gathered)


def _write_cues(outline: Outline, first: str, last: str, gathered: list[str]) -> None:
    outline.place(f"{first}–{last}")
    outline.paragraph(" ".join(gathered))


def _cues(text: str) -> Iterator[tuple[str, str, str]]:
    for block in text.split("\n\n"):
        lines = block.strip().split("\n")
        for index, line in enumerate(lines[:2]):
            if span := SPAN.match(line.strip()):
                speech = SPEAKER.sub(r"\1: ", "\n".join(lines[index + 1 :]))
                if words := " ".join(CUE_MARKUP.sub("", speech).split()):
                    yield span[1], span[2], words
                break


def _seconds(time: str) -> int:
    return sum(int(part) * 60**power for power, part in enumerate(reversed(time.split(":"))))


PRINTED_CHARS = 4_000  # of one cell's output


def read_notebook(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline; pictures in outputs are omitted."""
    for number, cell in enumerate(_cells(data, outline.name), start=1):
        source = _joined(cell.get("source"))
        outline.place(f"cell {number}")
        if cell.get("cell_type") == "markdown":
            markdown.read(source.encode(), outline, limits)
        elif source.strip():
            outline.code(source)
        for output in cell.get("outputs") or ():
            if not isinstance(output, dict):
                continue
            media = output.get("data") or {}
            outline.pictures += sum(1 for kind in media if str(kind).startswith("image/"))
            printed = _joined(output.get("text") or media.get("text/plain"))
            if printed.strip():
                outline.code(printed[:PRINTED_CHARS])


def _cells(data: bytes, name: str) -> list[dict[str, Any]]:
    try:
        book = json.loads(clean(decode(data)))
        cells = book["cells"] if "cells" in book else book["worksheets"][0]["cells"]
        return [cell for cell in cells if isinstance(cell, dict)]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise Unreadable(name, "this is no Jupyter notebook: it has no cells.") from error


def _joined(lines: Any) -> str:
    return "".join(map(str, lines)) if isinstance(lines, list) else str(lines or "")

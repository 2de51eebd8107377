"""Plain text to sections: under its underlined headings, else by lines."""

import re
from collections.abc import Iterator

from rag.documents.cleaning import clean, decode
from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline

UNDERLINE = re.compile(r"([=\-~^\"'`*+#_:.<>])\1{2,}\s*")
ASCIIDOC_HEADING = re.compile(r"(={1,6}) (\S.*)")
BULLET = re.compile(r"\s*(?:[-*•‣▪◦·]|\(?\d{1,3}[.)])\s+\S")
SECTION_LINES = 60  # a section without headings: short enough to be found by its line numbers


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline from plain text in any encoding."""
    lines = clean(decode(data)).split("\n")
    outline.fallback_title = _title(lines)
    blocks = list(_blocks(lines))
    marks: list[str] = []  # underline characters, outermost first
    headings = [_heading(block, marks) for _first, block in blocks]
    if any(headings):
        _write_under_headings(blocks, headings, outline)
    else:
        _write_by_lines(blocks, outline)


def _write_under_headings(
    blocks: list[tuple[int, list[str]]], headings: list[tuple[int, str] | None], outline: Outline
) -> None:
    for (_first, block), heading in zip(blocks, headings, strict=True):
        if heading:
            outline.heading(*heading)
        used = 0 if not heading else 1 if ASCIIDOC_HEADING.fullmatch(block[0]) else 2
        _write(block[used:], outline)


def _write_by_lines(blocks: list[tuple[int, list[str]]], outline: Outline) -> None:
    group: list[tuple[int, list[str]]] = []
    for first, block in [*blocks, (0, [])]:
        if group and (not block or first + len(block) - group[0][0] > SECTION_LINES):
            last, last_block = group[-1]
            outline.place(f"lines {group[0][0]}–{last + len(last_block) - 1}")
            for _first, lines in group:
                _write(lines, outline)
            group = []
        group.append((first, block))


def _title(lines: list[str]) -> str:
    """A first line that stands alone and is no sentence."""
    filled = [line.strip() for line in lines[:3]]
    if len(filled) == 3 and 0 < len(filled[0]) <= 80 and not filled[1]:
        return "" if filled[0][-1] in ".,;:!?" else filled[0]
    return ""


def _blocks(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Runs of lines without an empty one, with the number of the first, from 1."""
    block: list[str] = []
    for number, line in enumerate([*lines, ""], start=1):
        if line.strip():
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []


def _heading(block: list[str], marks: list[str]) -> tuple[int, str] | None:
    """Level and text of a heading at the beginning of a block; `marks` learns the underlines."""
    asciidoc = ASCIIDOC_HEADING.fullmatch(block[0])
    if asciidoc:
        return len(asciidoc.group(1)), asciidoc.group(2)
    if len(block) > 2 and UNDERLINE.fullmatch(block[0]) and UNDERLINE.fullmatch(block[2]):
        del block[0]  # overlined as well
    if len(block) < 2 or not UNDERLINE.fullmatch(block[1]) or UNDERLINE.fullmatch(block[0]):
        return None
    title, line = block[0].strip(), block[1].strip()
    if len(title) > 100 or len(line) < len(title) * 0.7:
        return None
    if line[0] not in marks:
        marks.append(line[0])
    return marks.index(line[0]) + 1, title


def _write(block: list[str], outline: Outline) -> None:
    if any(BULLET.match(line) for line in block):
        outline.code("\n".join(line.rstrip() for line in block))
    elif block:
        outline.paragraph("\n".join(block))
